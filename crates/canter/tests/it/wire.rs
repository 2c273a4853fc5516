//@ machine: --bus wire --clock virtual
//@ commands: analyze latency methods wire
//@ parts: 2
//! `canter wire`, `canter analyze` and the instrument wire: what the wire says of itself against what the rules of
//! CAN say.

mod race;

use crate::testbed::{
    self, Candump, DEADLINE, Ended, Gateway, Nodes, alone, canter, eventually, exists, ip, output, play,
};
use canter_io::{
    Batch, Filters, Frame, Identifier, Interface,
    frame::{BRS, BitRate, EFF_MASK, INTERFRAME_BITS},
    interface::BitTiming,
    method::{Receive, ReceiveMethod, ReceiveOptions, Transmit, TransmitMethod, TransmitOptions, sim},
    netlink::wire::{self, Fault, Fifo, Injection, NodeOptions, Pace, Random, Source},
    tap::{Record, Tap},
};
use serde_json::Value;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(120);

fn method(name: &str) -> ReceiveMethod {
    name.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn run(arguments: &[&str]) -> Ended {
    let ended = canter(arguments).ended(DEADLINE);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended
}

/// Every record until the source of `bus` has ended and the wire is quiet.
fn records_until_end(tap: &mut Tap) -> Vec<Record> {
    let mut records = Vec::new();
    let since = Instant::now();
    loop {
        let running = wire::bus(tap.bus()).unwrap().source.running;
        records.extend(std::iter::from_fn(|| tap.next_record()));
        if !running {
            break;
        }
        assert!(since.elapsed() < LIMIT, "the source does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(tap.missed(), 0);
    records
}

#[test]
#[ignore = "needs the lab: make test ONLY=wire"]
fn nodes_are_added_listed_and_deleted() {
    let _alone = alone();
    run(&[
        "wire",
        "add",
        "t0",
        "--bus",
        "T",
        "--fifo",
        "mpc5200",
        "--tx-buffers",
        "3",
        "--bitrate",
        "500000",
    ]);
    let _others = Nodes::up(&["t1"], "T", &BitTiming::classic(500_000));
    run(&["wire", "add", "t2", "--bus", "T"]);
    let list = run(&["wire", "list", "T", "--json", "-"]).json();
    let nodes: Vec<_> =
        list["nodes"].as_array().unwrap().iter().map(|node| node["name"].as_str().unwrap()).collect();
    assert_eq!(nodes, ["t0", "t1", "t2"]);
    let node = &list["nodes"][0];
    assert_eq!(
        (&node["fifo_frames"], &node["tx_buffers"], &node["state"]),
        (&5.into(), &3.into(), &"ERROR-ACTIVE".into())
    );
    assert_eq!((&list["nodes"][2]["state"], &list["buses"][0]["bitrate"]), (&"DOWN".into(), &500_000.into()));
    let table = run(&["wire", "list", "T"]).stdout;
    let widths: Vec<_> = table.lines().take(4).map(|line| line.find(" T ").unwrap_or(0)).collect();
    assert!(widths[1..].iter().all(|&at| at == widths[1] && at > 0), "{table}");
    assert!(output("ip", &["-details", "link", "show", "t0"]).contains("bitrate 500000"));

    run(&["wire", "delete", "t0", "t2"]);
    assert!(!exists("t0") && exists("t1"));
    ip("link set t1 down");
    run(&["wire", "delete", "t1"]);
    assert!(!wire::buses().unwrap().iter().any(|bus| bus.name == "T"));
}

#[test]
#[ignore = "needs the lab: make test ONLY=wire"]
fn what_cannot_be_is_one_line_and_an_exit_code() {
    let _alone = alone();
    let _nodes = Nodes::up(&["t0"], "T", &BitTiming::classic(500_000));
    for (arguments, code, says) in [
        (&["wire", "add", "t0", "--bus", "T"][..], 1, "t0: add: "),
        (&["wire", "delete", "nosuch"], 1, "nosuch: delete: "),
        (&["wire", "list", "nosuch"], 1, "bus nosuch: find: "),
        (&["wire", "fault", "connect", "nosuch"], 1, "nosuch: connect: "),
        (&["wire", "fault", "inject", "nosuch", "--error", "crc"], 1, "bus nosuch: inject: "),
        (&["wire", "source", "start", "T", "--wait"], 2, "--wait: "),
        (&["wire", "source", "start", "T", "--traffic", "one-at-a-time"], 2, "--traffic one-at-a-time: "),
        (&["wire", "source", "start", "T", "--log", "/nosuch.log"], 1, "/nosuch.log: read: "),
        (&["analyze", "nosuch"], 1, "nosuch: no such node or bus of a virtual wire (canter wire list"),
        (&["analyze", "lo"], 1, "lo: "),
        (&["analyze", "/proc/version"], 2, "/proc/version: is a file"),
        (&["analyze", "t0", "-o", "/tmp/x.csv"], 2, "/tmp/x.csv: unknown format"),
        (&["latency", "--instrument", "wire", "--send", "T", "--routed", "t0"], 2, "t0: is also on bus T"),
        (
            &["latency", "--instrument", "wire", "--send", "T", "--routed", "nosuch"],
            1,
            "nosuch: no such node or bus",
        ),
    ] {
        let ended = canter(arguments).ended(DEADLINE);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.complaint().starts_with(says), "{ended:?}");
    }
    for arguments in [
        &["wire", "add", "t1", "--bus", "T", "--fifo", "0"][..],
        &["wire", "add", "t1", "--bus", "T", "--tx-buffers", "4"],
        &["wire", "add", "t1"],
        &["wire", "fault", "inject", "T", "--error", "boredom"],
        &["wire", "source", "start", "T", "--frame", "123"],
        &["analyze", "T", "--load", "1us"],
    ] {
        assert_eq!(canter(arguments).ended(DEADLINE).code, Some(2), "{arguments:?}");
    }
    assert!(!exists("t1"));
}

/// 10 000 random frames at 100 % load: compares the tap's record of each with [`Frame::bits`].
#[test]
#[ignore = "needs the lab: make test ONLY=wire"]
fn every_frame_takes_exactly_its_bits_and_the_next_follows_three_bits_later() {
    let _alone = alone();
    for (nominal, data, count) in [
        (125_000, None, 1000),
        (250_000, None, 1000),
        (500_000, None, 1500),
        (1_000_000, None, 2500),
        (500_000, Some(2_000_000), 2000),
        (1_000_000, Some(5_000_000), 2000),
    ] {
        let timing = data.map_or(BitTiming::classic(nominal), |data| BitTiming::fd(nominal, data));
        let _nodes = Nodes::up(&["t0"], "T", &timing);
        let mut tap = Tap::open("T").unwrap();
        let frame = match data {
            None => Frame::default(),
            Some(_) => Frame::fd(Identifier::Sff(0), &[], BRS).unwrap(),
        };
        let random = Random { id: true, format: true, len: true, data: true, seed: Some(u64::from(nominal)) };
        let source = Source { frame, random, pace: Pace::Always, count: Some(count), ..Source::default() };
        wire::start("T", &source).unwrap();
        let records = records_until_end(&mut tap);
        assert_eq!(records.len(), count as usize);
        let rate = BitRate { nominal, data: data.unwrap_or(0) };
        let space_ns = u64::from(INTERFRAME_BITS) * 1_000_000_000 / u64::from(nominal);
        let mut free_ns = 0;
        for record in &records {
            let bits = record.frame.bits();
            assert_eq!(record.error, None, "{record:?}");
            assert_eq!((record.nominal_bits, record.data_bits), (bits.nominal, bits.data), "{record:?}");
            assert_eq!(record.duration_ns(), record.frame.duration_ns(rate), "{record:?}");
            assert!(free_ns == 0 || record.sof_ns == free_ns, "{record:?} could start at {free_ns}");
            free_ns = record.end_ns + space_ns;
        }
        let kinds = [Frame::is_eff, Frame::is_rtr, Frame::is_fd]
            .map(|has_kind| records.iter().filter(|record| has_kind(&record.frame)).count());
        assert!(
            kinds[0] > 100 && (data.is_some() || kinds[1] > 50) && (kinds[2] > 0) == data.is_some(),
            "{kinds:?}"
        );
        let stats = wire::bus("T").unwrap().stats;
        assert_eq!((stats.frames, stats.errors, stats.slips, stats.overruns), (u64::from(count), 0, 0, 0));
    }
}

/// The only series of a result, all of whose frames came through.
#[track_caller]
fn series(ended: &Ended, sent: u64) -> Value {
    let result = ended.json();
    let [one] = &result["series"].as_array().unwrap()[..] else { panic!("one series: {result}") };
    let account = format!("{} {} {}", one["ledger"], one["wire"], one["condition"]);
    assert_eq!(
        (&one["ledger"]["sent"], &one["ledger"]["received"]),
        (&sent.into(), &sent.into()),
        "{account}"
    );
    assert_eq!(ended.code, Some(0), "{account}");
    one.clone()
}

#[test]
#[ignore = "needs the lab: make test ONLY=wire"]
fn a_gateway_is_measured_under_every_traffic_and_how_late_the_wire_was_stands_beside_it() {
    let _alone = alone();
    let megabit = BitTiming::classic(1_000_000);
    let _from = Nodes::up(&["t0"], "T", &megabit);
    let _to = Nodes::up(&["t1", "t2"], "U", &megabit);
    let _gateway = Gateway::start("t0", "t1", "can-gw", &[]);
    for (traffic, period_ns) in
        [("one-at-a-time", 0), ("period=500us", 500_000), ("load=50%", 0), ("flood", 0)]
    {
        let options = ["latency", "--instrument", "wire", "--send", "T", "--routed", "U", "--count", "300"];
        let ended = canter(&[&options[..], &["--traffic", traffic, "--json", "-"]].concat()).ended(LIMIT);
        let one = series(&ended, 300);
        assert_eq!(
            (&one["condition"]["instrument"], &one["latency_ns"]["count"]),
            (&"wire".into(), &300.into())
        );
        assert!(period_ns == 0 || one["condition"]["period_ns"] == period_ns, "{one}");
        let wire = &one["wire"];
        let (late_ns, p50) =
            (wire["late_ns_p50"].as_u64().unwrap(), one["latency_ns"]["p50"].as_u64().unwrap());
        assert!((1..=800).contains(&late_ns), "{traffic}: {late_ns} ns");
        assert!((1..20_000).contains(&p50), "{traffic}: {p50} ns");
        assert_eq!((&one["floor_ns"], &one["ledger"]["late"]), (&0.into(), &Value::Null), "{one}");
        assert_eq!(
            (&wire["slips"], &wire["overruns"], &wire["errors"]),
            (&0.into(), &0.into(), &0.into()),
            "{wire}"
        );
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=wire"]
fn the_controllers_stamps_say_what_the_wires_say_and_two_clocks_are_refused() {
    let _alone = alone();
    let megabit = BitTiming::classic(1_000_000);
    let _from = Nodes::up(&["t0", "t3", "t4"], "T", &megabit);
    let _to = Nodes::up(&["t1", "t2"], "U", &megabit);
    let _gateway = Gateway::start("t0", "t1", "can-gw", &[]);
    let measure = |words: &[&str]| canter(&[&["latency", "--count", "300"], words].concat()).ended(LIMIT);
    let p50 = |words: &[&str]| {
        let one = series(&measure(&[words, &["--json", "-"]].concat()), 300);
        (one["latency_ns"]["p50"].as_u64().unwrap(), one["condition"]["instrument"].clone())
    };
    let (wires_ns, _) = p50(&["--instrument", "wire", "--send", "T", "--routed", "U"]);
    // The sender's echo, or another node of its bus, has the first stamp.
    for direct in [&[][..], &["--direct", "t4"]] {
        let by_controllers = ["--instrument", "hardware", "--send", "t3", "--routed", "t2"];
        let (ns, instrument) = p50(&[&by_controllers, direct].concat());
        // A frame is stamped when it is delivered, which the wire's timer does up to a bit late.
        assert!(ns.abs_diff(wires_ns) < 1000, "{direct:?}: {ns} ns, by the wires {wires_ns} ns");
        assert_eq!(instrument, "hardware");
    }
    run(&["wire", "add", "t5", "--bus", "U", "--bitrate", "1000000", "--clock-drift", "50"]);
    let refused = measure(&["--instrument", "hardware", "--send", "t3", "--routed", "t5"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.complaint().starts_with("t3, t5: their controllers stamp by two clocks"), "{refused:?}");
    run(&["wire", "delete", "t5"]);
}

#[test]
#[ignore = "needs the lab: make test ONLY=wire"]
fn the_meter_does_not_delay_the_gateway_that_it_measures() {
    let _alone = alone();
    let megabit = BitTiming::classic(1_000_000);
    let _from = Nodes::up(&["t0"], "T", &megabit);
    let _to = Nodes::up(&["t1", "t2"], "U", &megabit);
    // A gateway that spins keeps the kernel's tick, which is in its tail.
    for method in ["can-gw", "read+write"] {
        let _gateway = Gateway::start("t0", "t1", method, &[]);
        // Longer than the meter ever slept: it woke up beside the gateway, which then took 45 times the median. The kernel's
        // own timers and threads make a few frames of 1000 take 1.5 to 2.5 times the median. Its tick comes every 4 ms: with a
        // period that divides them, all ticks or none would meet a frame in the gateway, and all are 1 frame in 16.
        let options = ["latency", "--instrument", "wire", "--send", "T", "--routed", "U", "--count", "10000"];
        let ended =
            canter(&[&options[..], &["--traffic", "period=257us", "--json", "-"]].concat()).ended(LIMIT);
        let one = series(&ended, 10_000);
        let figure = |name: &str| one["latency_ns"][name].as_u64().unwrap();
        assert!(10 * figure("p99") <= 11 * figure("p50"), "{method}: {}", one["latency_ns"]);
        assert!(figure("max") <= 5 * figure("p50"), "{method}: {}", one["latency_ns"]);
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=wire"]
fn more_frames_than_a_tap_keeps_are_refused_with_the_way_out() {
    let _alone = alone();
    let megabit = BitTiming::classic(1_000_000);
    let _from = Nodes::up(&["t0"], "T", &megabit);
    let _to = Nodes::up(&["t1", "t2"], "U", &megabit);
    let capacity = Tap::open("T").unwrap().capacity();
    let options = ["latency", "--instrument", "wire", "--send", "T", "--routed", "U", "--traffic", "flood"];
    let ended = canter(&[&options[..], &["--count", &capacity.to_string()]].concat()).ended(LIMIT);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let expected = format!("bus T: its tap keeps {capacity} frames");
    assert!(ended.complaint().starts_with(&expected), "{ended:?}");
    assert!(ended.complaint().contains(&format!("tap_records={}", 2 * capacity)), "{ended:?}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=wire"]
fn on_a_real_time_kernel_a_node_s_thread_has_the_priority_of_an_interrupt_s() {
    let _alone = alone();
    let _node = Nodes::up(&["t0"], "T", &BitTiming::classic(1_000_000));
    let is_realtime = std::fs::read_to_string("/proc/version").is_ok_and(|text| text.contains("PREEMPT_RT"));
    let processes = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let stats = processes.filter_map(|path| std::fs::read_to_string(path.join("stat")).ok());
    let threads: Vec<String> = stats.filter(|stat| stat.contains("(napi/t0-")).collect();
    assert_eq!(threads.len(), usize::from(is_realtime), "{threads:?}");
    for stat in threads {
        // proc(5): rt_priority and policy are the 40th and the 41st word, SCHED_FIFO is 1.
        let words: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        assert_eq!(words[37..39], ["50", "1"], "{stat}");
    }
}

/// `canter latency` through a gateway from t0 on bus T to t1 on bus U.
fn through(options: &[&str]) -> Ended {
    let fixed = ["latency", "--instrument", "wire", "--send", "T", "--routed", "U", "--through", "t0,t1"];
    canter(&[&fixed, options, &["--json", "-"]].concat()).ended(LIMIT)
}

/// Each series' period in ns, frames lost, and frames that the gateway dropped. Each account must balance.
#[track_caller]
fn losses(ended: &Ended) -> Vec<(u64, u64, u64)> {
    let result = ended.json();
    let losses = |one: &Value| {
        let (ledger, lost) = (&one["ledger"], &one["ledger"]["lost"]);
        let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{one}"));
        let frames: u64 = lost.as_object().unwrap().values().map(number).sum();
        assert_eq!(number(&ledger["sent"]), number(&ledger["received"]) + frames, "{ledger}");
        assert_eq!((number(&lost["unaccounted"]), &one["unavailable"]), (0, &"".into()), "{one}");
        (number(&one["condition"]["period_ns"]), frames, number(&lost["gateway"]))
    };
    result["series"].as_array().unwrap().iter().map(losses).collect()
}

#[test]
#[ignore = "needs the lab: make test ONLY=wire"]
fn the_first_loss_is_where_the_slower_wire_is_full() {
    let _alone = alone();
    let _from = Nodes::up(&["t0"], "T", &BitTiming::classic(1_000_000));
    let _to = Nodes::up(&["t1", "t2"], "U", &BitTiming::classic(500_000));
    Interface::find("t1").unwrap().set_tx_queue_len(10).unwrap();
    let ended = through(&["--method", "can-gw", "--first-loss", "--count", "2000"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let [losing, kept] = losses(&ended)[..] else { panic!("{ended:?}") };
    // What a numbered frame of two bytes takes at 500 kbit/s, stuffed or not, less what a queue of ten holds.
    assert!((125_000..=138_000).contains(&losing.0) && losing.1 > 0 && losing.1 == losing.2, "{losing:?}");
    assert!(kept.0 > losing.0 && kept.0 <= losing.0 + losing.0 / 100 + 1 && kept.1 == 0, "{kept:?}");
    let sweep = ["--method", "can-gw,read+write", "--traffic", "period", "--sweep", "200us..100us/50us"];
    let ended = through(&[&sweep[..], &["--count", "2000"]].concat());
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let found = losses(&ended);
    let periods: Vec<_> = found.iter().map(|(period_ns, ..)| *period_ns).collect();
    assert_eq!(periods, [200_000, 150_000, 100_000, 200_000, 150_000, 100_000]);
    assert_eq!(
        found.iter().map(|(_, lost, _)| *lost > 0).collect::<Vec<_>>(),
        [false, false, true].repeat(2)
    );
    let [_, _, in_kernel, _, _, in_user_space] = found[..] else { unreachable!("there are six") };
    // can-gw drops; a route waits for room, and what comes meanwhile does not fit into its receive queue.
    assert_eq!((in_kernel.2, in_user_space.2), (in_kernel.1, 0));
}

#[test]
#[ignore = "needs the lab: make test ONLY=wire"]
fn just_above_the_wires_own_limit_no_batching_pair_loses_a_frame() {
    let _alone = alone();
    let megabit = BitTiming::classic(1_000_000);
    let _from = Nodes::up(&["t0"], "T", &megabit);
    let _to = Nodes::up(&["t1", "t2"], "U", &megabit);
    Interface::find("t1").unwrap().set_tx_queue_len(10).unwrap();
    let pairs = "ring+ring,recvmmsg+sendmmsg,io-uring+io-uring";
    let ended = through(&["--method", pairs, "--first-loss", "--count", "3000"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let found = losses(&ended);
    assert!(
        found.iter().all(|(period_ns, _, gateway)| (64_000..70_000).contains(period_ns) && *gateway == 0),
        "{found:?}"
    );
    // Each search ends where it began, at the limit, or a hundredth above, when the guest did something else meanwhile.
    assert_eq!(found.iter().filter(|(_, lost, _)| *lost == 0).count(), 3, "{found:?}");
}

/// Puts t1 off the bus: a fault destroys its frame until it is bus-off.
fn put_off_the_bus(sender: &mut dyn Transmit) {
    let injection =
        Injection { fault: Fault::Bit, probability: None, count: Some(32), node: Some("t1".to_owned()) };
    wire::inject("U", &injection).unwrap();
    assert_eq!(sender.transmit(&["321#00".parse().unwrap()]).unwrap(), 1);
    let bus_offs = || wire::node("t1").unwrap().stats.bus_offs;
    let before = bus_offs();
    eventually("t1 is off the bus", || bus_offs() > before);
    wire::stop_injecting("U").unwrap();
}

fn sender_to(interface: &str) -> Box<dyn Transmit> {
    let method: TransmitMethod = "write".parse().unwrap();
    method.open(&Interface::find(interface).unwrap(), &TransmitOptions::default()).unwrap()
}

#[test]
#[ignore = "needs the lab: make test ONLY=wire"]
fn a_gateway_whose_output_is_off_the_bus_says_so_rests_and_goes_on_when_it_is_back() {
    let _alone = alone();
    let megabit = BitTiming::classic(1_000_000);
    let _from = Nodes::up(&["t0", "t3"], "T", &megabit);
    let _to = Nodes::up(&["t1", "t2"], "U", &megabit);
    let mut sender = sender_to("t3");
    for (method, policy) in [
        ("read+write", "wait"),
        ("recvmmsg+sendmmsg", "drop-old"),
        ("ring+ring", "wait"),
        ("io-uring+io-uring", "drop-new"),
    ] {
        let arguments = ["gateway", "t0", "t1", "--method", method, "--when-full", policy, "--json", "-"];
        let mut gateway = canter(&arguments);
        gateway.until_it_says("gateway: t0");
        put_off_the_bus(&mut *sender);
        gateway.until_it_says("gateway: t1: bus-off");
        let (begun, before_ns) = (Instant::now(), gateway.processor_ns());
        let frame = "123#0000".parse().unwrap();
        let source = Source {
            frame,
            pace: Pace::Period(1_000_000),
            count: Some(600),
            number: true,
            ..Source::default()
        };
        wire::start("T", &source).unwrap();
        eventually("all is sent", || !wire::bus("T").unwrap().source.running);
        let (spent_ns, passed) = (gateway.processor_ns() - before_ns, begun.elapsed());
        assert!(u128::from(spent_ns) * 10 < passed.as_nanos(), "{method}: {spent_ns} ns of {passed:?}");
        let routed = Candump::start("t2");
        ip("link set t1 type can restart");
        gateway.until_it_says("gateway: t1: recovered from bus-off");
        let mut sent = 601;
        eventually("it routes again", || {
            sent += sender.transmit(&["7F0#11".parse().unwrap()]).unwrap() as u64;
            routed.so_far().contains("7F0#11")
        });
        gateway.signal("TERM");
        let ended = gateway.ended(DEADLINE);
        let [received, transmitted, _, dropped] = testbed::counts(&ended);
        assert!(received > 2 && transmitted > 1, "{method}: {ended:?}");
        assert_eq!(ended.json()["counts"]["drops"]["no_room"], dropped, "{method}: {ended:?}");
        // Those that waited are late, and all others are accounted for as lost.
        let overrun = ended.json()["counts"]["overrun"].as_u64().unwrap();
        assert_eq!(received + overrun, sent, "{method}: {ended:?}");
        assert_eq!(ended.code, Some(if dropped + overrun > 0 { 3 } else { 0 }), "{method}: {ended:?}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=wire"]
fn a_gateway_goes_on_when_its_output_restarts_by_itself() {
    let _alone = alone();
    let megabit = BitTiming::classic(1_000_000);
    let _from = Nodes::up(&["t0", "t3"], "T", &megabit);
    let _to = Nodes::up(&["t1", "t2"], "U", &megabit);
    ip("link set t1 down");
    ip("link set t1 up type can bitrate 1000000 restart-ms 50");
    let mut sender = sender_to("t3");
    for method in ["can-gw", "read+write", "ring/spin+write"] {
        let gateway = Gateway::start("t0", "t1", method, &[]);
        put_off_the_bus(&mut *sender);
        let routed = Candump::start("t2");
        eventually("it routes again", || {
            assert_eq!(sender.transmit(&["7F0#11".parse().unwrap()]).unwrap(), 1);
            routed.so_far().contains("7F0#11")
        });
        let ended = gateway.stop("TERM");
        assert!(testbed::counts(&ended)[1] > 0, "{method}: {ended:?}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=wire"]
fn fd_frames_are_measured_between_fd_nodes_and_refused_where_a_node_would_destroy_them() {
    let _alone = alone();
    let fd = BitTiming::fd(500_000, 2_000_000);
    let _from = Nodes::up(&["t0"], "T", &fd);
    let _to = Nodes::up(&["t1", "t2"], "U", &fd);
    let _gateway = Gateway::start("t0", "t1", "can-gw", &[]);
    let measure = ["latency", "--instrument", "wire", "--send", "T", "--routed", "U", "--count", "100"];
    for more in [["--len", "64", "--traffic", "one-at-a-time"], ["--len", "24", "--traffic", "load=40%"]] {
        let ended = canter(&[&measure[..], &["--fd", "--brs", "--json", "-"], &more].concat()).ended(LIMIT);
        let one = series(&ended, 100);
        assert_eq!(one["condition"]["len"].to_string(), more[1]);
        assert!(one["latency_ns"]["min"].as_u64().unwrap() > 0, "{one}");
    }
    let _classic = Nodes::up(&["t3"], "U", &BitTiming::classic(500_000));
    let ended = canter(&[&measure[..], &["--fd"]].concat()).ended(LIMIT);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.complaint().starts_with("t3: destroys FD frames on bus U"), "{ended:?}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=wire"]
fn a_side_that_is_silent_is_named_and_its_frames_are_lost() {
    let _alone = alone();
    let megabit = BitTiming::classic(1_000_000);
    let _from = Nodes::up(&["t0"], "T", &megabit);
    let _to = Nodes::up(&["t1", "t2"], "U", &megabit);
    for traffic in ["one-at-a-time", "period=1ms"] {
        let options =
            ["latency", "--instrument", "wire", "--send", "T", "--routed", "U", "--traffic", traffic];
        let ended = canter(&options).ended(LIMIT);
        assert_eq!(ended.code, Some(3), "{ended:?}");
        assert!(ended.complaint().starts_with("bus U: carries no frame (is a gateway running"), "{ended:?}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=wire"]
fn busy_polling_works_on_a_virtual_wire_and_is_faster_than_sleeping() {
    let _alone = alone();
    let megabit = BitTiming::classic(1_000_000);
    let _from = Nodes::up(&["t0", "t3"], "T", &megabit);
    let _to = Nodes::up(&["t1", "t2"], "U", &megabit);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let rows = run(&["methods", "-i", "t0", "--json", "-"]).json();
    let row = rows.as_array().unwrap().iter().find(|row| row["name"] == "read/busy-poll").unwrap().clone();
    if wire::node("t0").unwrap().napi_id == 0 {
        assert_ne!(row["unavailable"], "", "{kernel}");
        return testbed::skip(&format!("no busy polling: {}", row["unavailable"]));
    }
    assert_eq!(row["unavailable"], "", "{row}");
    let median = |method: &str| {
        let _gateway = Gateway::start("t0", "t1", method, &[]);
        let options = ["latency", "--instrument", "wire", "--send", "T", "--routed", "U", "--count", "200"];
        let ended =
            canter(&[&options[..], &["--traffic", "period=200us", "--json", "-"]].concat()).ended(LIMIT);
        series(&ended, 200)["latency_ns"]["p50"].as_u64().unwrap()
    };
    let (sleeping, polling) = (median("read+write"), median("read/busy-poll+write"));
    assert!(polling * 10 < sleeping * 9, "{polling} ns by busy polling, {sleeping} ns by sleeping");
}

#[test]
#[ignore = "needs the lab: make test ONLY=wire"]
fn an_analysis_shows_and_records_what_candump_hears() {
    let _alone = alone();
    let _nodes = Nodes::up(&["t0", "t1"], "T", &BitTiming::classic(500_000));
    let frames: Vec<String> =
        (0..40u32).map(|n| format!("{:03X}#{}", 0x100 + n, "5A".repeat(n as usize % 9))).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let count = frames.len().to_string();

    for file in ["x.log", "x.pcapng"] {
        let candump = Candump::start("t1");
        let mut analysis =
            canter(&["analyze", "t0", "--count", &count, "-o", &path(file), "--json", "-", "-v"]);
        let shown = canter(&["analyze", "T", "--count", &count]);
        eventually("both read the tap", || {
            [&analysis, &shown].iter().all(|one| one.has_mapped("/dev/canwire-T") && one.is_asleep())
        });
        play(&frames, "t0", 1000);
        let heard = candump.frames(frames.len());
        assert_eq!(heard, frames);
        let report = analysis_ended(&mut analysis).unwrap_or_else(|| panic!("still analyzing"));
        drop(analysis);
        assert_eq!(
            (&report["frames"], &report["missed"], &report["bus"]),
            (&40.into(), &0.into(), &"T".into())
        );
        let shown = shown.ended(DEADLINE).stdout;
        let lines: Vec<_> = shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
        assert_eq!(lines.iter().map(|words| words[5]).collect::<Vec<_>>(), frames, "{shown}");
        assert!(lines.iter().all(|words| words[3] == "bits" && words[4] == "t0"), "{shown}");
    }
    let log = std::fs::read_to_string(path("x.log")).unwrap();
    let recorded: Vec<_> =
        log.lines().map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(recorded, frames.iter().map(|frame| format!("t0 {frame}")).collect::<Vec<_>>());
    let ids = output("tshark", &["-r", &path("x.pcapng"), "-T", "fields", "-e", "can.id"]);
    assert_eq!(ids.lines().count(), frames.len(), "{ids}");
}

/// The document of an analysis that ends by itself.
fn analysis_ended(running: &mut testbed::Running) -> Option<Value> {
    let taken = std::mem::replace(running, canter(&["--version"]));
    let ended = taken.ended(DEADLINE);
    (ended.code == Some(0)).then(|| ended.json())
}

#[test]
#[ignore = "needs the lab: make test ONLY=wire"]
fn injected_errors_are_seen_by_the_analyzer_and_by_candump_and_the_frames_go_through() {
    let _alone = alone();
    let timing = BitTiming { berr_reporting: true, ..BitTiming::classic(500_000) };
    let _nodes = Nodes::up(&["t0", "t1"], "T", &timing);
    for error in ["crc", "stuff", "form", "bit", "ack"] {
        let mut tap = Tap::open("T").unwrap();
        let filters = Filters { error_mask: EFF_MASK, ..Filters::default() };
        let options = ReceiveOptions { filters, ..ReceiveOptions::default() };
        let mut receiver = method("read/spin").open(&Interface::find("t1").unwrap(), &options).unwrap();
        run(&["wire", "fault", "inject", "T", "--error", error, "--count", "2"]);
        output("cansend", &["t0", "123#11"]);
        let mut records = Vec::new();
        eventually("the tap has three tries", || {
            records.extend(std::iter::from_fn(|| tap.next_record()));
            records.len() >= 3
        });
        let names: Vec<_> = records.iter().map(|record| record.error.map_or("none", Fault::name)).collect();
        assert_eq!(names, [error, error, "none"]);
        let mut batch = Batch::new(64);
        eventually("t1 has the frame", || {
            receiver.receive(&mut batch).unwrap();
            batch.frames().iter().any(|frame| !frame.is_error())
        });
        let (errors, frames): (Vec<Frame>, Vec<Frame>) =
            batch.frames().iter().copied().partition(Frame::is_error);
        assert_eq!(frames, ["123#11".parse().unwrap()], "{error}");
        assert!(error == "ack" || !errors.is_empty(), "{error}: t1 has seen no error frame");
    }
    let list = run(&["wire", "list", "T", "--json", "-"]).json();
    assert_eq!((&list["buses"][0]["frames"], &list["buses"][0]["errors"]), (&5.into(), &10.into()), "{list}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pcapng").to_str().unwrap().to_owned();
    let analysis = canter(&["analyze", "T", "--count", "2", "-o", &path]);
    eventually("it reads the tap", || analysis.has_mapped("/dev/canwire-T") && analysis.is_asleep());
    run(&["wire", "fault", "inject", "T", "--error", "crc", "--count", "1"]);
    output("cansend", &["t0", "123#11"]);
    assert_eq!(analysis.ended(DEADLINE).code, Some(0));
    let shown =
        output("tshark", &["-r", &path, "-T", "fields", "-e", "can.flags.err", "-e", "frame.comment"]);
    let lines: Vec<_> = shown.lines().collect();
    assert!(
        lines[0].starts_with("1\t123#11 ERROR crc after bit ") && lines[0].ends_with(", injected"),
        "{shown}"
    );
    assert_eq!(lines[1], "0\t", "{shown}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=wire"]
fn a_node_whose_wire_is_cut_gets_its_frame_through_when_it_is_joined() {
    let _alone = alone();
    let _nodes = Nodes::up(&["t0", "t1"], "T", &BitTiming::classic(500_000));
    let candump = Candump::start("t1");
    run(&["wire", "fault", "disconnect", "t0"]);
    output("cansend", &["t0", "123#11"]);
    eventually("t0 is error-passive", || wire::node("t0").unwrap().stats.tx_errors >= 128);
    assert_eq!(wire::node("t1").unwrap().stats.received, 0);
    run(&["wire", "fault", "connect", "t0"]);
    assert_eq!(candump.frames(1), ["123#11"]);
}

#[test]
#[ignore = "needs the lab: make test ONLY=wire"]
fn a_babbling_node_takes_the_bus_until_it_is_told_to_stop() {
    let _alone = alone();
    let _nodes = Nodes::up(&["t0", "t1"], "T", &BitTiming::classic(500_000));
    run(&["wire", "fault", "babble", "t0", "--frame", "001#"]);
    let candump = Candump::start("t0,123:7FF");
    output("cansend", &["t1", "123#11"]);
    eventually("t1 loses against 001", || wire::node("t1").unwrap().stats.arbitration_lost > 10);
    assert_eq!(wire::node("t1").unwrap().stats.sent, 0);
    run(&["wire", "fault", "babble", "t0", "--stop"]);
    assert_eq!(candump.frames(1), ["123#11"]);
}

#[test]
#[ignore = "needs the lab: make test ONLY=wire"]
fn a_recorded_log_is_sent_at_its_times_and_a_source_says_when_it_has_ended() {
    let _alone = alone();
    let options = NodeOptions { fifo: Some(Fifo::Frames(5)), ..NodeOptions::default() };
    wire::add("t0", "T", &options).unwrap();
    let _nodes = Nodes::named(&["t0"]);
    let mut interface = Interface::find("t0").unwrap();
    interface.set_bit_timing(&BitTiming::classic(1_000_000)).unwrap();
    interface.up().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.log");
    let gaps_us = [0, 500, 700, 10_000, 10_200];
    let lines = gaps_us.iter().map(|us| format!("(1700000000.{:06}) can7 123#{us:08}\n", 5 + us));
    std::fs::write(&path, lines.collect::<String>()).unwrap();
    let mut tap = Tap::open("T").unwrap();
    let ended = run(&["wire", "source", "start", "T", "--log", path.to_str().unwrap(), "--wait"]);
    assert!(ended.stdout.starts_with("5 frames sent, 0 attempts failed"), "{ended:?}");
    let records: Vec<_> = std::iter::from_fn(|| tap.next_record()).collect();
    for round in records.chunks(5) {
        let times: Vec<_> = round.iter().map(|record| (record.sof_ns - round[0].sof_ns) / 1000).collect();
        assert_eq!(times, gaps_us, "{records:#?}");
    }
    assert_eq!(records.len(), 5);
}
