//@ machine: --analyzer --clock virtual --bus wire
//@ commands: latency wire
//@ limit: 20m
//@ parts: 3
//! The analyzer's truth: it equals the taps of virtual wires, a planted delay reads as what it is, and its account closes.

use crate::testbed::{Ended, Gateway, alone, canter, cards, eventually, ip, output, start};
use canter_io::tap::{Record, Tap};
use serde_json::Value;
use std::{fs, path::Path, process::Command, time::Duration};

const LIMIT: Duration = Duration::from_secs(120);

pub fn latency(options: &[&str]) -> Ended {
    let analyzer = ["latency", "--instrument", "analyzer", "--json", "-"];
    canter(&[&analyzer[..], options].concat()).ended(LIMIT)
}

/// The one series of a result, in which every frame arrived and the stages add up to the latencies.
#[track_caller]
pub fn series(ended: &Ended) -> Value {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    only_series(&ended.json())
}

#[track_caller]
pub fn only_series(result: &Value) -> Value {
    let [series] = &result["series"].as_array().unwrap()[..] else { panic!("one series: {result}") };
    assert_eq!(series["unavailable"], "", "{series}");
    assert_eq!(series["ledger"]["sent"], series["ledger"]["received"], "{series}");
    let account = &series["stages"];
    let sum = |part: &str| -> u64 {
        account["stages"].as_array().unwrap().iter().map(|stage| number(&stage[part])).sum()
    };
    assert_eq!(account["frames"], series["latency_ns"]["count"], "{series}");
    assert_eq!(sum("median_frame_ns"), number(&account["median_frame_ns"]), "{series}");
    assert_eq!(sum("total_ns"), number(&account["total_ns"]), "{series}");
    assert!(series["floor_ns"] == 0 && series["condition"]["instrument"] == "analyzer", "{series}");
    series.clone()
}

#[track_caller]
pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}: not a number"))
}

#[track_caller]
fn median(series: &Value) -> u64 {
    number(&series["stages"]["median_frame_ns"])
}

/// The median frame's time without the meter's own.
#[track_caller]
pub fn own_median(series: &Value) -> u64 {
    median(series) - stage(series, "instrument")
}

/// The time of a stage on the way of the median frame.
#[track_caller]
pub fn stage(series: &Value, name: &str) -> u64 {
    let stages = series["stages"]["stages"].as_array().unwrap();
    let found = stages.iter().find(|stage| stage["name"] == name);
    number(&found.unwrap_or_else(|| panic!("{name}: {series}"))["median_frame_ns"])
}

/// Brings up five nodes at 500 kbit/s, whether they were up or not.
fn wires() {
    for node in 0..5 {
        ip(&format!("link set wcan{node} down"));
        ip(&format!("link set wcan{node} up type can bitrate 500000"));
    }
}

fn records(tap: &mut Tap) -> Vec<Record> {
    std::iter::from_fn(|| tap.next_record()).collect()
}

#[test]
#[ignore = "needs the lab: make test ONLY=analyzer"]
fn on_virtual_wires_the_analyzer_equals_the_taps() {
    let _alone = alone();
    wires();
    for method in ["read+write", "can-gw"] {
        let mut taps = ["A", "B"].map(|bus| Tap::open(bus).unwrap());
        let through = ["--through", "wcan3,wcan4", "--method", method];
        let ended =
            latency(&[&["--send", "wcan0", "--routed", "wcan2", "--count", "40"], &through[..]].concat());
        let series = series(&ended);
        let [sent, routed] = taps.each_mut().map(records);
        assert_eq!([sent.len(), routed.len()], [40, 40], "{method}");
        let mut by_taps: Vec<u64> = sent
            .iter()
            .zip(&routed)
            .map(|(sent, routed)| routed.sof_ns - sent.end_ns - u64::from(sent.late_ns))
            .collect();
        by_taps.sort_unstable();
        // A bit takes 2 µs at 500 kbit/s; the two read the clock some instructions from the functions' first ones.
        let [tapped, seen] = [by_taps[19], median(&series)];
        assert!(tapped.abs_diff(seen) < 200, "{method}: {seen} ns, by the taps {tapped} ns");
        let most = number(&series["latency_ns"]["max"]);
        assert!(by_taps[39].abs_diff(most) < 200, "{method}: {most} ns, by the taps {by_taps:?}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=analyzer"]
fn the_kernels_functions_are_described_anew_when_a_module_has_come() {
    let _alone = alone();
    wires();
    let _gateway = Gateway::start("wcan3", "wcan4", "can-gw", &[]);
    let (mut requests, mut medians) = (Vec::new(), Vec::new());
    for module in [None, None, Some("ext4")] {
        if let Some(module) = module {
            output("modprobe", &[module]);
        }
        let series = series(&latency(&["--send", "wcan0", "--routed", "wcan2", "--count", "9"]));
        let request = fs::read_to_string("/run/canter-lab/analyzer/request").unwrap();
        requests.push(request.lines().next().unwrap().to_owned());
        medians.push(median(&series));
    }
    assert!(requests[1] == "keep" && requests[2].starts_with("f ffffffff"), "{requests:?}");
    assert!(medians.iter().all(|median| median.abs_diff(medians[0]) < 20), "{medians:?}");
}

/// Compiles a program of the folder beside this file.
pub fn compile(source: &str, option: &str, program: &Path) {
    compile_by("cc", source, &[option], program);
}

pub fn compile_by(compiler: &str, source: &str, options: &[&str], program: &Path) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/analyzer");
    let mut compiler = Command::new(compiler);
    compiler.arg("-O1").args(options).arg("-o").arg(program).arg(folder.join(source));
    let done = compiler.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// The gateway of delayed.c with this number of no-operations in its loop.
fn delayed(instructions: u32) -> String {
    let program = format!("/tmp/delayed-{instructions}");
    compile("delayed.c", &format!("-DDELAY={instructions}"), Path::new(&program));
    program
}

#[test]
#[ignore = "needs the lab: make test ONLY=analyzer"]
fn an_instruction_that_a_fault_breaks_off_is_counted_once_and_no_other_is_left_out() {
    let _alone = alone();
    cards();
    let _gateway = Gateway::start("can3", "can4", "can-gw", &[]);
    // Gives the analyzer the kernel's functions.
    series(&latency(&["--send", "can0", "--routed", "can2", "--count", "1"]));
    let program = "/tmp/faults";
    compile("faults.c", "-Wall", Path::new(program));
    let drifts = output(program, &["/run/canter-lab/analyzer"]);
    assert_eq!(drifts, "drift 0\n".repeat(5));
}

#[test]
#[ignore = "needs the lab: make test ONLY=analyzer"]
fn a_planted_delay_of_100_instructions_reads_as_100() {
    let _alone = alone();
    cards();
    let [without, with] = [0, 100].map(|instructions| {
        let mut gateway = start(&delayed(instructions), &["can3", "can4"]);
        gateway.until_it_says("ready");
        eventually("the gateway waits", || gateway.is_asleep());
        let ended = latency(&["--send", "can0", "--routed", "can2", "--count", "50"]);
        gateway.signal("KILL");
        gateway.ended(LIMIT);
        series(&ended)
    });
    assert_eq!(own_median(&with) - own_median(&without), 100, "{without} {with}");
    assert_eq!(stage(&with, "gateway's own") - stage(&without, "gateway's own"), 100, "{with}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=analyzer"]
fn a_way_through_the_kernel_has_no_process_and_one_through_user_space_has_all_stages() {
    let _alone = alone();
    cards();
    let through = |method: &str| {
        let options =
            ["--send", "can0", "--routed", "can2", "--count", "50", "--through", "can3,can4", "--method"];
        series(&latency(&[&options[..], &[method]].concat()))
    };
    let (kernel, user) = (through("can-gw"), through("read+write"));
    have_the_stages_of_their_ways(&kernel, &user);
    assert!(median(&user) > median(&kernel));
}

/// The stages of can-gw and of read+write.
#[track_caller]
pub fn have_the_stages_of_their_ways(kernel: &Value, user: &Value) {
    for name in ["scheduler", "system call", "load", "idle"] {
        assert_eq!(stage(kernel, name), 0, "{name}: {kernel}");
    }
    for name in ["interrupt", "driver", "soft interrupt", "CAN core", "gateway's own"] {
        assert!(stage(kernel, name) > 0, "{name}: {kernel}");
        assert!(stage(user, name) > 0, "{name}: {user}");
    }
    for name in ["socket", "scheduler", "system call"] {
        assert!(stage(user, name) > 0, "{name}: {user}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=analyzer"]
fn the_stages_are_printed_in_80_columns() {
    let _alone = alone();
    cards();
    let options =
        ["--send", "can0", "--routed", "can2", "--through", "can3,can4", "--method", "can-gw,read+write"];
    let arguments = ["latency", "--instrument", "analyzer", "--stages", "--count", "20"];
    let ended = canter(&[&arguments[..], &options].concat()).ended(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let text = &ended.stdout;
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for line in ["can-gw", "read+write", "soft interrupt", "gateway's own", "sum"] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=analyzer"]
fn frames_that_a_gateway_drops_are_lost_and_frames_of_others_make_the_series_invalid() {
    let _alone = alone();
    cards();
    let measured = ["--send", "can0", "--routed", "can2", "--count", "10"];
    let gateway = Gateway::start("can3", "can4", "read+write", &["--filter", "7FF:7FF"]);
    let ended = latency(&measured);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.complaint().contains("can2: no driver sends on after can0"), "{ended:?}");
    gateway.stop("TERM");
    // A second gateway sends each frame once more.
    let _both = [
        Gateway::start("can3", "can4", "read+write", &[]),
        Gateway::start("can1", "can2", "read+write", &[]),
    ];
    let result = latency(&measured).json();
    let why = result["series"][0]["unavailable"].as_str().unwrap();
    assert!(why.contains("sja1000_start_xmit ran once more"), "{result}");
    assert_eq!(result["series"][0]["latency_ns"], Value::Null, "{result}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=analyzer"]
fn a_study_by_the_analyzer_has_the_account_of_each_gateway_and_nothing_of_the_meter_in_its_latencies() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    for bus in ["sja1000", "wire"] {
        let file = folder.path().join("study.toml");
        let text = format!(
            "name = \"study\"\ntitle = \"\"\nsource = \"\"\n[lab]\nkernels = [\"6.12\"]\nclock = \"virtual\"\ncpus = 1\nbus = \"{bus}\"\n\
             analyzer = true\n[latency]\nmethods = [\"can-gw\", \"read+write\", \"bare-metal\"]\nlens = [2]\ncount = 20\n"
        );
        fs::write(&file, text).unwrap();
        let ended = canter(&["study", "inside", file.to_str().unwrap()]).ended(LIMIT);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let events = ended.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let series: Vec<Value> =
            events.filter_map(|event| Some(event.get("case")?["case"]["series"][0].clone())).collect();
        let [kernel, user, without_linux] = &series[..] else { panic!("three gateways: {series:?}") };
        for one in [kernel, user] {
            assert!(one["unavailable"] == "" && one["condition"]["instrument"] == "analyzer", "{bus}: {one}");
            assert_eq!(one["ledger"]["received"], 20, "{bus}: {one}");
            assert!(stage(one, "gateway's own") > 0 && one["floor_ns"] == 0, "{bus}: {one}");
            let own = own_median(one);
            assert!(number(&one["latency_ns"]["p50"]).abs_diff(own) <= own / 200, "{bus}: {own}: {one}");
        }
        assert!(stage(kernel, "socket") < 100 && stage(user, "socket") > 1000, "{bus}: {series:?}");
        let why = without_linux["unavailable"].as_str().unwrap();
        assert!(why.starts_with("bare-metal: the module canbare is not loaded"), "{bus}: {why}");
    }
    for node in ["wcan0", "wcan2", "wcan3", "wcan4"] {
        ip(&format!("link set {node} down"));
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=analyzer"]
fn what_the_analyzer_cannot_measure_is_refused_in_one_line() {
    let _alone = alone();
    cards();
    for (options, code, reason) in [
        (&["--traffic", "period=1ms"][..], 2, "frames one at a time"),
        (&["--count", "20001"], 2, "at most 20000"),
        (&["--null"], 2, "has no floor"),
        (&["--direct", "can1"], 2, "only for --beside-sockets"),
    ] {
        let ended = latency(&[&["--send", "can0", "--routed", "can2"], options].concat());
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.complaint().contains(reason), "{ended:?}");
    }
    let ended = canter(&["latency", "--send", "can0", "--routed", "can2", "--beside-sockets"]).ended(LIMIT);
    assert!(ended.code == Some(2) && ended.complaint().contains("needs --instrument analyzer"), "{ended:?}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=analyzer"]
fn sockets_stamp_the_same_frames_and_are_a_few_microseconds_apart() {
    let _alone = alone();
    cards();
    let _gateway = Gateway::start("can3", "can4", "read+write", &[]);
    let beside = |options: &[&str]| {
        let ends = ["--beside-sockets", "--send", "can0", "--routed", "can2", "--count", "50"];
        let result = latency(&[&ends[..], options].concat()).json();
        let series = result["series"][0].clone();
        assert_eq!(series["quantity"], "difference of sockets and analyzer", "{series}");
        assert_eq!(series["latency_ns"]["count"], 50, "{series}");
        number(&series["latency_ns"]["p50"])
    };
    for options in [&["--direct", "can1"][..], &[]] {
        assert!((1..10_000).contains(&beside(options)), "{options:?}: {} ns", beside(options));
    }
}
