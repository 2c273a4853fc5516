//! `canter wire`, `canter analyze` and the instrument wire, in the lab with `--bus wire --clock virtual`: what the wire
//! says of itself against what the rules of CAN say.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod testbed;

use canter_io::{
    Batch, Filters, Frame, Identifier, Interface,
    frame::{BRS, BitRate, EFF_MASK, INTERFRAME_BITS},
    interface::BitTiming,
    method::{Receive, ReceiveMethod, ReceiveOptions, Transmit, TransmitMethod, TransmitOptions, sim},
    netlink::wire::{self, Fifo, NodeOptions, Pace, Random, Source},
    tap::{Record, Tap},
};
use serde_json::Value;
use std::time::{Duration, Instant};
use testbed::{Candump, DEADLINE, Ended, Gateway, alone, canter, eventually, exists, ip, output, play};

const LIMIT: Duration = Duration::from_secs(120);

/// Nodes of a bus of their own, up at a rate, deleted when this is dropped.
struct Nodes(Vec<String>);

impl Nodes {
    fn up(names: &[&str], bus: &str, timing: &BitTiming) -> Self {
        let nodes = Self(names.iter().map(|&name| name.to_owned()).collect());
        for name in names {
            wire::add(name, bus, &NodeOptions::default()).unwrap();
            let mut interface = Interface::find(name).unwrap();
            interface.set_bit_timing(timing).unwrap();
            interface.set_tx_queue_len(1000).unwrap();
            interface.up().unwrap();
        }
        nodes
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.0.iter().for_each(|name| drop(wire::delete(name))); // a test may have deleted it
    }
}

fn method(name: &str) -> ReceiveMethod {
    name.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn done(arguments: &[&str]) -> Ended {
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
#[ignore = "needs canwire: make test runs it in the lab"]
fn nodes_are_added_listed_and_deleted() {
    let _alone = alone();
    done(&[
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
    done(&["wire", "add", "t2", "--bus", "T"]);
    let list = done(&["wire", "list", "T", "--json", "-"]).json();
    let nodes: Vec<_> =
        list["nodes"].as_array().unwrap().iter().map(|node| node["name"].as_str().unwrap()).collect();
    assert_eq!(nodes, ["t0", "t1", "t2"]);
    let node = &list["nodes"][0];
    assert_eq!(
        (&node["fifo_frames"], &node["tx_buffers"], &node["state"]),
        (&5.into(), &3.into(), &"ERROR-ACTIVE".into())
    );
    assert_eq!((&list["nodes"][2]["state"], &list["buses"][0]["bitrate"]), (&"DOWN".into(), &500_000.into()));
    let table = done(&["wire", "list", "T"]).stdout;
    let widths: Vec<_> = table.lines().take(4).map(|line| line.find(" T ").unwrap_or(0)).collect();
    assert!(widths[1..].iter().all(|&at| at == widths[1] && at > 0), "{table}");
    assert!(output("ip", &["-details", "link", "show", "t0"]).contains("bitrate 500000"));

    done(&["wire", "delete", "t0", "t2"]);
    assert!(!exists("t0") && exists("t1"));
    ip("link set t1 down");
    done(&["wire", "delete", "t1"]);
    assert!(!wire::buses().unwrap().iter().any(|bus| bus.name == "T"));
}

#[test]
#[ignore = "needs canwire: make test runs it in the lab"]
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
        (&["analyze", "nosuch"], 1, "nosuch: there is no such node or bus (canter wire list"),
        (&["analyze", "lo"], 1, "lo: "),
        (&["analyze", "t0", "-o", "/tmp/x.csv"], 2, "/tmp/x.csv: which format?"),
        (&["latency", "--instrument", "wire", "--send", "T", "--routed", "t0"], 2, "t0: is on bus T too"),
        (
            &["latency", "--instrument", "wire", "--send", "T", "--routed", "nosuch"],
            1,
            "nosuch: there is no such",
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

/// 10 000 frames by chance at 100 % load: what the tap says of each against [`Frame::bits`].
#[test]
#[ignore = "needs canwire: make test runs it in the lab"]
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
            .map(|is| records.iter().filter(|record| is(&record.frame)).count());
        assert!(
            kinds[0] > 100 && (data.is_some() || kinds[1] > 50) && (kinds[2] > 0) == data.is_some(),
            "{kinds:?}"
        );
        let stats = wire::bus("T").unwrap().stats;
        assert_eq!((stats.frames, stats.errors, stats.slips, stats.overruns), (u64::from(count), 0, 0, 0));
    }
}

/// Numbers by chance, the same for a seed (SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % bound
    }

    /// Any frame of a sender, whose identifiers nobody else has: two nodes must not send the same one.
    fn frame(&mut self, sender: u64) -> Frame {
        let base = self.below(16) as u32 * 8 + sender as u32 + 0x100;
        let id = match self.below(2) {
            0 => Identifier::Sff(base as u16),
            _ => Identifier::Eff(base << 18 | self.below(4) as u32),
        };
        let data: Vec<u8> = (0..self.below(9))
            .map(|_| [0, 0xff, 0x55, self.below(256) as u8][self.below(4) as usize])
            .collect();
        match self.below(4) {
            0 => Frame::rtr(id, data.len() as u8).unwrap(),
            1 => Frame::fd(id, &data, if self.below(2) == 0 { BRS } else { 0 }).unwrap(),
            _ => Frame::classic(id, &data).unwrap(),
        }
    }
}

const SENDERS: usize = 4;
/// As many as fit into a socket's send buffer.
const FRAMES: usize = 200;

/// What the simulated bus makes of senders that all have frames from the start: frames with their ends.
fn simulated(queues: &[Vec<Frame>], rate: BitRate) -> Vec<(Frame, u64)> {
    let interface = Interface::find("sim:wire-test/bus").unwrap();
    let world = sim::world("wire-test");
    world.set_bit_rate("bus", rate);
    let options = ReceiveOptions { queue_frames: Some(10_000), ..ReceiveOptions::default() };
    let mut receiver: Box<dyn Receive> = method("sim").open(&interface, &options).unwrap();
    let transmit = "sim".parse::<TransmitMethod>().unwrap();
    let mut senders: Vec<Box<dyn Transmit>> =
        queues.iter().map(|_| transmit.open(&interface, &TransmitOptions::default()).unwrap()).collect();
    let mut left: Vec<&[Frame]> = queues.iter().map(Vec::as_slice).collect();
    loop {
        for (sender, left) in senders.iter_mut().zip(&mut left) {
            let taken = sender.transmit(left).unwrap();
            *left = &left[taken..];
        }
        let Some(next_ns) = world.next_ns() else { break };
        world.advance(next_ns);
    }
    let mut batch = Batch::new(10_000);
    receiver.receive(&mut batch).unwrap();
    batch.iter().map(|(frame, meta)| (*frame, meta.stamp_ns)).collect()
}

/// A babbling node holds the bus until every sender has its queue full of frames; then arbitration alone decides, frame
/// by frame, and the simulated bus of the other tests must be of the same opinion to the nanosecond.
#[test]
#[ignore = "needs canwire: make test runs it in the lab"]
fn the_simulated_bus_and_the_wire_carry_the_same_frames_in_the_same_order_at_the_same_times() {
    let _alone = alone();
    let rate = BitRate { nominal: 500_000, data: 2_000_000 };
    let mut chance = Chance(2014);
    let queues: Vec<Vec<Frame>> =
        (0..SENDERS).map(|sender| (0..FRAMES).map(|_| chance.frame(sender as u64)).collect()).collect();
    // A wire that was late has waited, and says so; only one that kept its time can be compared.
    let on_time = (0..5).map(|_| race(&queues)).find(|(_, slips)| *slips == 0);
    let (records, _) = on_time.expect("a race without a slip");
    let simulated = simulated(&queues, rate);
    let zero_ns = records[0].sof_ns;
    for (at, (record, (frame, end_ns))) in records.iter().zip(&simulated).enumerate() {
        assert_eq!(record.error, None, "{at}: {record:?}");
        assert_eq!((record.frame, record.end_ns - zero_ns), (*frame, *end_ns), "frame {at}: {record:?}");
    }
    let contended = records.iter().filter(|record| record.pending.count_ones() > 1).count();
    assert!(contended > SENDERS * FRAMES / 2, "{contended} frames had a rival");
}

/// Lets four nodes send their queues at once; what was on the wire, and how often it slipped.
fn race(queues: &[Vec<Frame>]) -> (Vec<Record>, u64) {
    let names = ["t0", "t1", "t2", "t3"];
    let timing = BitTiming::fd(500_000, 2_000_000);
    let nodes = Nodes::up(&[&names[..], &["t4", "t5"]].concat(), "T", &timing);
    let mut tap = Tap::open("T").unwrap();
    let babble: Frame = "000#".parse().unwrap();
    wire::babble("t4", &babble, None).unwrap();
    let write = "write".parse::<TransmitMethod>().unwrap();
    let mut senders = Vec::new();
    for (name, frames) in names.iter().zip(queues) {
        let interface = Interface::find(name).unwrap();
        let mut sender =
            write.open(&interface, &TransmitOptions { no_wait: true, ..Default::default() }).unwrap();
        assert_eq!(sender.transmit(frames).unwrap(), FRAMES, "{name} takes them all");
        senders.push(sender); // closed only when all has been sent
    }
    let before = wire::bus("T").unwrap().stats.slips;
    while tap.next_record().is_some() {} // the babble so far
    wire::stop_babbling("t4").unwrap();
    let mut records = Vec::new();
    eventually("all frames are through", || {
        records.extend(std::iter::from_fn(|| tap.next_record()).filter(|record| record.frame != babble));
        records.len() >= SENDERS * FRAMES
    });
    let slips = wire::bus("T").unwrap().stats.slips - before;
    drop(nodes);
    assert_eq!((records.len(), tap.missed()), (SENDERS * FRAMES, 0));
    (records, slips)
}

/// The one series of a result, all of whose frames came through.
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
#[ignore = "needs canwire: make test runs it in the lab"]
fn a_gateway_is_measured_under_every_traffic_and_the_floor_stands_beside_it() {
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
        let (floor_ns, p50) = (one["floor_ns"].as_u64().unwrap(), one["latency_ns"]["p50"].as_u64().unwrap());
        assert!((1..=800).contains(&floor_ns), "{traffic}: {floor_ns} ns");
        assert!((floor_ns..20_000).contains(&p50), "{traffic}: {p50} ns");
        let wire = &one["wire"];
        assert_eq!(
            (&wire["slips"], &wire["overruns"], &wire["errors"]),
            (&0.into(), &0.into(), &0.into()),
            "{wire}"
        );
    }
}

#[test]
#[ignore = "needs canwire: make test runs it in the lab"]
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
        assert!(ended.complaint().starts_with("bus U: nothing arrives (is a gateway running"), "{ended:?}");
    }
}

#[test]
#[ignore = "needs canwire: make test runs it in the lab"]
fn busy_polling_works_on_a_virtual_wire_and_is_faster_than_sleeping() {
    let _alone = alone();
    let megabit = BitTiming::classic(1_000_000);
    let _from = Nodes::up(&["t0", "t3"], "T", &megabit);
    let _to = Nodes::up(&["t1", "t2"], "U", &megabit);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let rows = done(&["methods", "-i", "t0", "--json", "-"]).json();
    let row = rows.as_array().unwrap().iter().find(|row| row["name"] == "read/busy-poll").unwrap().clone();
    if wire::node("t0").unwrap().napi_id == 0 {
        assert_ne!(row["unavailable"], "", "{kernel}");
        return eprintln!("SKIP busy polling: {}", row["unavailable"]);
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
#[ignore = "needs canwire: make test runs it in the lab"]
fn an_analysis_shows_and_records_what_candump_hears() {
    let _alone = alone();
    let _nodes = Nodes::up(&["t0", "t1"], "T", &BitTiming::classic(500_000));
    let frames: Vec<String> =
        (0..40u32).map(|n| format!("{:03X}#{}", 0x100 + n, "5A".repeat(n as usize % 9))).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let count = frames.len().to_string();

    for file in ["x.log", "x.pcapng"] {
        let candump = Candump::on("t1");
        let mut analysis =
            canter(&["analyze", "t0", "--count", &count, "-o", &path(file), "--json", "-", "-v"]);
        let shown = canter(&["analyze", "T", "--count", &count]);
        std::thread::sleep(Duration::from_millis(500)); // both have opened the tap
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
#[ignore = "needs canwire: make test runs it in the lab"]
fn injected_errors_are_seen_by_the_analyzer_and_by_candump_and_the_frames_go_through() {
    let _alone = alone();
    let timing = BitTiming { berr_reporting: true, ..BitTiming::classic(500_000) };
    let _nodes = Nodes::up(&["t0", "t1"], "T", &timing);
    for error in ["crc", "stuff", "form", "bit", "ack"] {
        let mut tap = Tap::open("T").unwrap();
        let filters = Filters { error_mask: EFF_MASK, ..Filters::default() };
        let options = ReceiveOptions { filters, ..ReceiveOptions::default() };
        let mut receiver = method("read/spin").open(&Interface::find("t1").unwrap(), &options).unwrap();
        done(&["wire", "fault", "inject", "T", "--error", error, "--count", "2"]);
        output("cansend", &["t0", "123#11"]);
        eventually("the frame is through", || wire::node("t1").unwrap().stats.tx_errors == 0);
        std::thread::sleep(Duration::from_millis(100));
        let records: Vec<_> = std::iter::from_fn(|| tap.next_record()).collect();
        let names: Vec<_> =
            records.iter().map(|record| record.error.map_or("none", wire::Fault::name)).collect();
        assert_eq!(names, [error, error, "none"]);
        let mut batch = Batch::new(64);
        while receiver.receive(&mut batch).unwrap() > 0 {}
        let (errors, frames): (Vec<Frame>, Vec<Frame>) =
            batch.frames().iter().copied().partition(Frame::is_error);
        assert_eq!(frames, ["123#11".parse().unwrap()], "{error}");
        assert!(error == "ack" || !errors.is_empty(), "{error}: t1 has seen no error frame");
    }
    let list = done(&["wire", "list", "T", "--json", "-"]).json();
    assert_eq!((&list["buses"][0]["frames"], &list["buses"][0]["errors"]), (&5.into(), &10.into()), "{list}");
}

#[test]
#[ignore = "needs canwire: make test runs it in the lab"]
fn a_node_whose_wire_is_cut_gets_its_frame_through_when_it_is_joined() {
    let _alone = alone();
    let _nodes = Nodes::up(&["t0", "t1"], "T", &BitTiming::classic(500_000));
    let candump = Candump::on("t1");
    done(&["wire", "fault", "disconnect", "t0"]);
    output("cansend", &["t0", "123#11"]);
    eventually("t0 is error-passive", || wire::node("t0").unwrap().stats.tx_errors >= 128);
    assert_eq!(wire::node("t1").unwrap().stats.received, 0);
    done(&["wire", "fault", "connect", "t0"]);
    assert_eq!(candump.frames(1), ["123#11"]);
}

#[test]
#[ignore = "needs canwire: make test runs it in the lab"]
fn a_babbling_node_takes_the_bus_until_it_is_told_to_stop() {
    let _alone = alone();
    let _nodes = Nodes::up(&["t0", "t1"], "T", &BitTiming::classic(500_000));
    done(&["wire", "fault", "babble", "t0", "--frame", "001#"]);
    let candump = Candump::on("t0,123:7FF");
    output("cansend", &["t1", "123#11"]);
    std::thread::sleep(Duration::from_millis(100));
    assert!(wire::node("t1").unwrap().stats.arbitration_lost > 10, "t1 wins against 001");
    assert_eq!(wire::node("t1").unwrap().stats.sent, 0);
    done(&["wire", "fault", "babble", "t0", "--stop"]);
    assert_eq!(candump.frames(1), ["123#11"]);
}

#[test]
#[ignore = "needs canwire: make test runs it in the lab"]
fn a_recorded_log_is_sent_at_its_times_and_a_source_says_when_it_has_ended() {
    let _alone = alone();
    let options = NodeOptions { fifo: Some(Fifo::Frames(5)), ..NodeOptions::default() };
    wire::add("t0", "T", &options).unwrap();
    let _nodes = Nodes(vec!["t0".to_owned()]);
    let mut interface = Interface::find("t0").unwrap();
    interface.set_bit_timing(&BitTiming::classic(1_000_000)).unwrap();
    interface.up().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.log");
    let gaps_us = [0, 500, 700, 10_000, 10_200];
    let lines = gaps_us.iter().map(|us| format!("(1700000000.{:06}) can7 123#{us:08}\n", 5 + us));
    std::fs::write(&path, lines.collect::<String>()).unwrap();
    let mut tap = Tap::open("T").unwrap();
    let ended = done(&["wire", "source", "start", "T", "--log", path.to_str().unwrap(), "--wait"]);
    assert!(ended.stdout.starts_with("5 frames sent, 0 attempts failed"), "{ended:?}");
    let records: Vec<_> = std::iter::from_fn(|| tap.next_record()).collect();
    for round in records.chunks(5) {
        let times: Vec<_> = round.iter().map(|record| (record.sof_ns - round[0].sof_ns) / 1000).collect();
        assert_eq!(times, gaps_us, "{records:#?}");
    }
    assert_eq!(records.len(), 5);
}
