//@ machine: lab
//@ commands: latency methods
//! `canter latency`, `canter syscalls` and the lists, in the lab: figures that are complete, and losses that are told.

use crate::testbed::{
    Candump, DEADLINE, Ended, Gateway, Virtual, alone, canter, cards, eventually, exists, ip, listeners,
    output, start,
};
use canter_io::{
    Interface,
    carrier::table::NETWORK,
    method::{
        ReceiveMethod, TransmitMethod,
        table::{RECEIVERS, TRANSMITTERS},
    },
};
use serde_json::Value;
use std::time::Duration;

/// Timeout of a measurement.
const LIMIT: Duration = Duration::from_secs(60);

/// An interrupted one ends within this: it waits a second for what is on its way, and sums up.
const INTERRUPTED: Duration = Duration::from_secs(10);

#[track_caller]
fn latency(options: &[&str]) -> Ended {
    canter(&[&["latency", "--json", "-"], options].concat()).ended(LIMIT)
}

/// The one series of a result in which `sent` frames are accounted for.
#[track_caller]
fn series(ended: &Ended, sent: u64) -> Value {
    let result = ended.json();
    assert_eq!(result["schema"], 1, "{result}");
    let [series] = &result["series"].as_array().unwrap()[..] else { panic!("one series: {result}") };
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value}: {series}"));
    let ledger = &series["ledger"];
    let lost: u64 = ledger["lost"].as_object().unwrap().values().map(number).sum();
    assert_eq!(number(&ledger["sent"]), sent, "{series}");
    assert_eq!(number(&ledger["received"]) + lost, sent, "{series}");
    assert_eq!(ended.code, Some(if lost > 0 { 3 } else { 0 }), "{ended:?}");

    let latency = &series["latency_ns"];
    let steps = ["min", "p50", "p90", "p99", "p999", "max"].map(|name| number(&latency[name]));
    assert!(steps.is_sorted(), "{latency}");
    let buckets = latency["buckets"].as_array().unwrap();
    let count: u64 = buckets.iter().map(|bucket| number(&bucket[1])).sum();
    assert_eq!(number(&latency["count"]), count, "{latency}");
    assert_eq!(count, number(&ledger["received"]), "a latency a frame: {series}");
    assert!(count == 0 || number(&latency["max"]) < 1_000_000_000, "a frame is lost after a second");
    assert_eq!(latency["negative"], 0, "{latency}");
    series.clone()
}

#[track_caller]
fn received(series: &Value, expected: u64) {
    assert_eq!(series["ledger"]["received"], expected, "{series}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=meter"]
fn a_gateway_between_the_cards_is_measured_under_every_traffic() {
    let _alone = alone();
    cards();
    for method in ["read+write", "can-gw"] {
        let _gateway = Gateway::start("can3", "can4", method, &[]);
        for (traffic, name, direct) in [
            ("one-at-a-time", "one-at-a-time", true),
            ("one-at-a-time", "one-at-a-time", false), // the sender's echo is the reference
            ("period=2ms", "period", true),
            ("load=10%", "load", true),
        ] {
            let direct: &[&str] = if direct { &["--direct", "can1"] } else { &[] };
            let options = ["--send", "can0", "--routed", "can2", "--traffic", traffic, "--count", "100"];
            let ended = latency(&[&options, &["--name", method][..], direct].concat());
            let one = series(&ended, 100);
            received(&one, 100);
            assert_eq!(one["method"], method);
            let condition = &one["condition"];
            assert_eq!((&condition["traffic"], &condition["frames"]), (&name.into(), &100.into()));
            let period = condition["period_ns"].as_u64().unwrap();
            match traffic {
                "period=2ms" => assert_eq!(period, 2_000_000),
                // 63…75 bits of 1 µs with their space, ten times
                "load=10%" => assert!((600_000..=800_000).contains(&period), "{condition}"),
                _ => assert_eq!(period, 0),
            }
            assert!(one["latency_ns"]["min"].as_u64().unwrap() > 0, "{one}");
        }
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=meter"]
fn a_null_test_shows_the_meters_own_floor() {
    let _alone = alone();
    cards();
    // Of two cards with something to do the one with the higher interrupt line is served first.
    let interfaces = ["--send", "can0", "--direct", "can3", "--routed", "can1"];
    let one = series(&latency(&[&interfaces[..], &["--null", "--count", "50"]].concat()), 50);
    received(&one, 50);
    assert_eq!(one["floor_ns"], one["latency_ns"]["p50"]);
}

#[test]
#[ignore = "needs the lab: make test ONLY=meter"]
fn a_meter_whose_queues_may_not_hold_the_frames_says_what_to_permit() {
    let _alone = alone();
    let _vcan = Virtual::vcan(&["vcan7", "vcan8"], 72);
    let latency = ["latency", "--send", "vcan7", "--routed", "vcan8", "--count", "10000"];
    let plain = ["--bounding-set=-all", "--inh-caps=-all", "--reuid=65534", env!("CARGO_BIN_EXE_canter")];
    let ended = start("setpriv", &[&plain[..], &latency].concat()).ended(LIMIT);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let complaint = ended.complaint();
    assert!(
        complaint.contains("SO_RCVBUF") && complaint.contains("net.core.rmem_max=5440000"),
        "{complaint}"
    );
}

#[test]
#[ignore = "needs the lab: make test ONLY=meter"]
fn virtual_interfaces_will_do_and_carry_fd_and_floods() {
    let _alone = alone();
    let (_vcan, _cables) = (Virtual::vcan(&["vcan7", "vcan8"], 72), Virtual::cables(72));
    let (vcan, vxcan) = (["vcan7", "vcan8", "vcan7", "vcan8"], ["vx1", "vx2", "vx0", "vx3"]);
    for (method, [from, to, send, routed], options, count, len) in [
        ("read+write", vcan, "--count 50", 50, 2),
        ("recvmmsg/spin+sendmmsg", vcan, "--traffic flood --count 120 --len 8", 120, 8),
        ("can-gw", vcan, "--count 50 --ext --id 1234", 50, 2),
        ("ring+ring", vxcan, "--traffic period=1ms --count 50 --fd --brs --len 64", 50, 64),
        ("read+write", vxcan, "--count 20 --gap 0us --fd --len 12", 20, 12),
        ("ring/spin+write", vxcan, "--traffic flood --count 120", 120, 2),
        ("ring+ring", vxcan, "--traffic flood --count 700", 700, 2),
    ] {
        let _gateway = Gateway::start(from, to, method, &[]);
        let options: Vec<_> = options.split(' ').collect();
        let one = series(&latency(&[&["--send", send, "--routed", routed], &options[..]].concat()), count);
        received(&one, count);
        assert_eq!(one["condition"]["len"], len, "{method}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=meter"]
fn when_nothing_arrives_the_silent_side_is_named_soon() {
    let _alone = alone();
    cards();
    // Everything is filtered out; the reference hears the sender.
    let gateway = Gateway::start("can3", "can4", "read+write", &["--filter", "7FF:7FF"]);
    for (direct, silent, question) in [
        ("can1", "can2", "is a gateway running between can1 and can2?"),
        ("can4", "can4", "is it on the bus of can0?"),
        ("can0", "can2", "is a gateway running between can0 and can2?"), // by the sender's echo
    ] {
        for traffic in ["one-at-a-time", "period=2ms"] {
            let direct: &[&str] = if direct == "can0" { &[] } else { &["--direct", direct] };
            let options = ["latency", "--send", "can0", "--routed", "can2", "--traffic", traffic];
            let ended = canter(&[&options, direct].concat()).ended(Duration::from_secs(10));
            assert_eq!(ended.code, Some(3), "{ended:?}");
            let expected = format!("{silent}: receives no frame ({question}); ");
            assert!(ended.complaint().starts_with(&expected), "{ended:?}");
        }
    }
    assert_eq!(gateway.stop("INT").code, Some(0), "filtering is no loss");
}

#[test]
#[ignore = "needs the lab: make test ONLY=meter"]
fn a_gateway_that_ends_halfway_costs_frames_and_the_ledger_says_how_many() {
    let _alone = alone();
    cards();
    for method in ["ring+write", "can-gw"] {
        let gateway = Gateway::start("can3", "can4", method, &[]);
        let options = ["latency", "--send", "can0", "--direct", "can1", "--routed", "can2", "--json", "-"];
        let routed = || Interface::find("can2").unwrap().counters().unwrap().rx_frames;
        let sent = || Interface::find("can0").unwrap().counters().unwrap().tx_frames;
        let before = routed();
        let meter = canter(&[&options[..], &["--traffic", "period=10ms", "--count", "1000000"]].concat());
        eventually("some frames have been routed", || routed() > before + 20);
        gateway.stop("TERM");
        let halfway = sent();
        eventually("some more have been sent", || sent() > halfway + 20);
        meter.signal("INT");
        let ended = meter.ended(INTERRUPTED);
        assert_eq!(ended.code, Some(130), "{ended:?}");
        let ledger = ended.json()["series"][0]["ledger"].clone();
        let [sent, received] = ["sent", "received"].map(|name| ledger[name].as_u64().unwrap());
        assert!(received > 0 && received + 20 < sent, "{method}: {ledger}");
        assert_eq!(ledger["lost"]["unaccounted"], sent - received, "nobody knows where: {ledger}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=meter"]
fn what_arrives_twice_is_counted_and_measured_once() {
    let _alone = alone();
    cards();
    let _first = Gateway::start("can3", "can4", "read+write", &[]);
    let _second = Gateway::start("can3", "can4", "can-gw", &[]);
    let options = ["--send", "can0", "--direct", "can1", "--routed", "can2", "--count", "60"];
    let one = series(&latency(&[&options[..], &["--traffic", "period=3ms"]].concat()), 60);
    received(&one, 60);
    // The second copy of the last frame may come after the end.
    assert!((59..=60).contains(&one["ledger"]["duplicated"].as_u64().unwrap()), "{one}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=meter"]
fn foreign_traffic_does_not_disturb() {
    let _alone = alone();
    cards();
    let _gateway = Gateway::start("can3", "can4", "recvmmsg+sendmmsg", &[]);
    let _foreign = start("cangen", &["can1", "-g", "3", "-I", "456", "-L", "2"]);
    let _same_id = start("cangen", &["can1", "-g", "7", "-I", "123", "-L", "5"]);
    for traffic in ["one-at-a-time", "period=5ms"] {
        let options = ["--send", "can0", "--routed", "can2", "--count", "60", "--traffic", traffic];
        let one = series(&latency(&options), 60);
        received(&one, 60);
        assert_eq!(one["ledger"]["duplicated"], 0, "{one}");
        assert_eq!(one["ledger"]["reordered"], 0, "{one}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=meter"]
fn an_interrupted_measurement_keeps_what_it_has() {
    let _alone = alone();
    let _vcan = Virtual::vcan(&["vcan7", "vcan8"], 16);
    let gateway = Gateway::start("vcan7", "vcan8", "read+write", &[]);
    let options = ["latency", "--send", "vcan7", "--routed", "vcan8", "--count", "1000000", "--json", "-"];
    for signal in ["INT", "TERM"] {
        let routed = Candump::start("vcan8");
        let meter = canter(&options);
        assert!(!routed.frames(1).is_empty(), "it measures");
        meter.signal(signal);
        let ended = meter.ended(INTERRUPTED);
        assert_eq!(ended.code, Some(130), "{ended:?}");
        let ledger = &ended.json()["series"][0]["ledger"];
        assert!(ledger["sent"].as_u64().unwrap() > 0, "{ended:?}");
        assert_eq!(ledger["sent"], ledger["received"], "{ended:?}");
    }
    // Also when nothing has come back yet.
    gateway.stop("INT");
    let meter = canter(&options);
    eventually("the meter listens", || listeners("vcan8") > 0);
    meter.signal("INT");
    assert_eq!(meter.ended(INTERRUPTED).code, Some(130));
}

#[test]
#[ignore = "needs the lab: make test ONLY=meter"]
fn the_table_is_for_people_and_the_json_for_programs() {
    let _alone = alone();
    let _vcan = Virtual::vcan(&["vcan7", "vcan8"], 16);
    let _gateway = Gateway::start("vcan7", "vcan8", "read+write", &[]);
    let options = ["latency", "--send", "vcan7", "--routed", "vcan8", "--count", "5"];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("result.json");
    let ended = canter(&[&options[..], &["--json", file.to_str().unwrap()]].concat()).ended(LIMIT);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.stdout.contains("gateway"), "{ended:?}");
    let written: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(written["series"][0]["latency_ns"]["count"], 5);
    let quiet = canter(&[&options[..], &["--quiet"]].concat()).ended(LIMIT);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    canter(&["syscalls", "--frames", "100", "--methods", "read", "--json", "-"]).ended(LIMIT).json();
}

/// Interfaces that `canter syscalls` makes for itself.
const ITS_OWN: [&str; 3] = ["canter-v", "canter-x0", "canter-x1"];

#[track_caller]
fn its_own_interfaces_have_gone() {
    assert_eq!(ITS_OWN.map(exists), [false; 3]);
}

#[test]
#[ignore = "needs the lab: make test ONLY=meter"]
fn every_system_call_has_its_figures_and_loses_nothing() {
    let _alone = alone();
    let _vcan = Virtual::vcan(&["vcan7"], 72);
    let receivers = RECEIVERS.iter().filter(|row| row.carriers.contains(&&NETWORK)).map(|row| row.name);
    let transmitters = TRANSMITTERS.iter().filter(|row| row.carriers.contains(&&NETWORK)).map(|row| row.name);
    let every: Vec<_> =
        ["read(2)"].into_iter().chain(receivers).chain(["write(2)"]).chain(transmitters).collect();
    for (options, expected) in [
        ("", &every[..]),
        ("--methods read,ring", &["read", "ring", "ring"]),
        (
            "--queue 64 --batch 1,16 --methods sendmmsg,recvmmsg --len 8",
            &["recvmmsg", "recvmmsg", "sendmmsg", "sendmmsg"],
        ),
        ("-i vcan7 --methods ring", &["ring", "ring"]),
    ] {
        let options = options.split_whitespace().collect::<Vec<_>>();
        let ended = canter(&[&["syscalls", "--frames", "500,1000", "--json", "-"], &options[..]].concat())
            .ended(LIMIT);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let result = ended.json();
        let series = result["series"].as_array().unwrap();
        let names: Vec<_> = series.iter().map(|one| one["method"].as_str().unwrap()).collect();
        assert_eq!(names, expected);
        for one in series {
            assert_eq!(one["unavailable"], "", "{one}");
            assert!(one["cost_ns"]["per_frame"].as_u64().unwrap() > 0, "{one}");
            assert_eq!(one["cost_ns"]["points"].as_array().unwrap().len(), 2, "{one}");
            assert!(one["cost_ns"]["fit"]["slope_per_1000"].is_i64(), "{one}");
            assert_eq!((&one["ledger"]["sent"], &one["ledger"]["received"]), (&1500.into(), &1500.into()));
        }
        its_own_interfaces_have_gone();
    }
    assert!(exists("vcan7"), "what it did not make it does not delete");
}

#[test]
#[ignore = "needs the lab: make test ONLY=meter"]
fn more_readers_of_the_same_frames_are_a_series_of_their_own_and_read_them_all() {
    let _alone = alone();
    let options = ["syscalls", "--frames", "500", "--methods", "read", "--json", "-", "--readers"];
    let result = canter(&[&options[..], &["1,3"]].concat()).ended(LIMIT).json();
    let series = result["series"].as_array().unwrap();
    let readers: Vec<_> = series.iter().map(|one| &one["condition"]["varied"]["value"]).collect();
    assert_eq!(readers, [1, 3]);
    for one in series {
        assert_eq!((&one["ledger"]["sent"], &one["ledger"]["received"]), (&500.into(), &500.into()), "{one}");
    }
    for number in ["0", "65"] {
        let ended = canter(&[&options[..], &[number]].concat()).ended(LIMIT);
        assert_eq!((ended.code, ended.complaint()), (Some(2), "--readers: 1 to 64"), "{ended:?}");
    }
    its_own_interfaces_have_gone();
}

#[test]
#[ignore = "needs the lab: make test ONLY=meter"]
fn interfaces_made_for_measuring_go_whatever_happens() {
    let _alone = alone();
    // The second of them cannot be made.
    ip("link add canter-x1 type vcan");
    let ended = canter(&["syscalls"]).ended(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.complaint().starts_with("canter-x0: create: file exists ("), "{ended:?}");
    ip("link delete canter-x1");
    its_own_interfaces_have_gone();

    let measures = || {
        Interface::find("canter-v")
            .and_then(|one| one.counters())
            .is_ok_and(|counters| counters.tx_frames > 0)
    };
    for signal in ["INT", "TERM"] {
        let measuring = canter(&["syscalls", "--frames", "2000,3000,4000,5000,6000,7000"]);
        eventually("it measures", measures);
        measuring.signal(signal);
        let ended = measuring.ended(INTERRUPTED);
        assert_eq!(ended.code, Some(130), "{ended:?}");
        assert_eq!(ended.complaint(), "syscalls: interrupted");
        its_own_interfaces_have_gone();
    }

    // One of them goes down under the measurement.
    let measuring = canter(&["syscalls", "--frames", "2000,3000,4000,5000,6000,7000"]);
    eventually("it measures", measures);
    ip("link set canter-v down");
    let ended = measuring.ended(DEADLINE);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    // The measurement is sending or receiving at that moment.
    let complaint = ended.complaint();
    let steps = ["send", "receive"].map(|step| format!("canter-v: {step}: network is down"));
    assert!(steps.iter().any(|step| complaint.starts_with(step)), "{ended:?}");
    its_own_interfaces_have_gone();
}

#[test]
#[ignore = "needs the lab: make test ONLY=meter"]
fn other_traffic_on_a_given_interface_breaks_no_count() {
    let _alone = alone();
    let _vcan = Virtual::vcan(&["vcan7"], 16);
    let _foreign = start("cangen", &["vcan7", "-g", "0", "-i"]);
    let options = ["syscalls", "-i", "vcan7", "--frames", "70,700", "--methods", "read,recvmmsg,ring"];
    let ended = canter(&[&options[..], &["--json", "-"]].concat()).ended(LIMIT);
    assert!(matches!(ended.code, Some(0 | 3)), "{ended:?}");
    for one in ended.json()["series"].as_array().unwrap() {
        let (sent, received) = (&one["ledger"]["sent"], &one["ledger"]["received"]);
        assert!(received.as_u64().unwrap() <= sent.as_u64().unwrap(), "{one}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=meter"]
fn every_method_is_listed_with_the_reason_why_not() {
    let _alone = alone();
    cards();
    let _vcan = Virtual::vcan(&["vcan7"], 72);
    let nowhere = "has no effect on can3: its driver gives CAN sockets no NAPI context";
    for (interface, refused) in [
        ("can3", &[("receive", "read/busy-poll", nowhere)][..]),
        (
            "vcan7",
            &[
                ("receive", "read/busy-poll", "SO_INCOMING_NAPI_ID is 0"),
                ("send", "ring", "reaches nobody on a vcan"),
            ],
        ),
    ] {
        let ended = canter(&["methods", "-i", interface, "--json", "-"]).ended(DEADLINE);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        let rows = ended.json();
        let rows = rows.as_array().unwrap();
        let names: Vec<_> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
        let receivers = ReceiveMethod::all().map(|method| (method.to_string(), method.row.carriers));
        let transmitters = TransmitMethod::all().map(|method| (method.to_string(), method.row.carriers));
        let methods: Vec<_> = receivers.chain(transmitters).collect();
        let every = methods.iter().map(|(name, _)| name.as_str()).chain(["can-gw", "bare-metal"]);
        assert_eq!(names, every.collect::<Vec<_>>());
        let elsewhere = |row: &Value| {
            methods.iter().any(|(name, carriers)| row["name"] == **name && !carriers.contains(&&NETWORK))
        };
        for row in rows {
            let reason = row["unavailable"].as_str().unwrap();
            let is_row = |(kind, name, _): &&(&str, &str, &str)| row["kind"] == *kind && row["name"] == *name;
            match refused.iter().find(is_row) {
                Some((.., part)) => assert!(!reason.is_empty() && reason.contains(part), "{row}"),
                None if row["name"].as_str().unwrap().starts_with("canchar") => {
                    assert!(reason.contains("only on devices of the module canchar"), "{row}");
                }
                None if row["name"] == "port" => assert!(reason.contains("driver"), "{row}"),
                None if row["name"] == "bare-metal" => assert!(reason.contains("canbare"), "{row}"),
                None => assert_eq!(reason.is_empty(), !elsewhere(row), "{row}"),
            }
        }
    }
    assert!(output(env!("CARGO_BIN_EXE_canter"), &["methods"]).starts_with("On can0 (can):\n"));
}
