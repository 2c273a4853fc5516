//@ machine: --bus wire --net --usb-stick --clock virtual
//@ commands: methods ping wire
//@ parts: 3
//! Studies from outside, on the lab's cards and virtual wires: their conditions, a gateway in another network namespace,
//! and what becomes of a run that is interrupted.

use crate::testbed::{self, alone, canter, output, series, start};
use serde_json::Value;
use std::{
    env, fs,
    os::unix::fs::OpenOptionsExt,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

/// Timeout of a study of this file.
const STUDY_DEADLINE: Duration = Duration::from_secs(300);

/// A study file with this `[latency]`, on wires or cards, in a folder that the guest has.
pub fn study(folder: &tempfile::TempDir, name: &str, bus: &str, latency: &str) -> String {
    study_of(folder, name, bus, &format!("[latency]\n{latency}"))
}

pub fn study_of(folder: &tempfile::TempDir, name: &str, bus: &str, kind: &str) -> String {
    let text = format!(
        "name = \"{name}\"\ntitle = \"A test\"\nsource = \"\"\n\
         [lab]\nkernels = [\"6.12\"]\nclock = \"virtual\"\ncpus = 1\nbus = \"{bus}\"\n{kind}"
    );
    let path = folder.path().join(format!("{name}.toml"));
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// The events of `canter study inside`.
pub fn inside(file: &str) -> Vec<Value> {
    let ended = canter(&["study", "inside", file]).ended(STUDY_DEADLINE);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!ended.stderr.contains("restore a kernel setting"), "{}", ended.stderr);
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
#[ignore = "needs the lab: make test ONLY=study"]
fn every_condition_is_measured_and_told() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let loads = ["none", "cpu", "hackbench", "ethernet-receive"];
    let measured = |name: &str, methods: &[&str], count: u64, lines: &str| {
        let common = format!("methods = {methods:?}\nlens = [8]\ncount = {count}\njitter = \"200us\"\n");
        let events = inside(&study(&folder, name, "wire", &(common + lines)));
        let series = series(&events);
        assert_eq!(events.len(), series.len() + 2, "an event for each, the beginning and the end");
        for one in series.iter().filter(|one| one["method"] == "can-gw") {
            assert_eq!(
                (&one["unavailable"], &one["ledger"]["received"]),
                (&"".into(), &count.into()),
                "{one}"
            );
        }
        series
    };
    let both = ["can-gw", "bare-metal"];
    let rules = measured("rules", &both, 5, "rules = [\"eff=16\", \"xor\"]\n");
    assert_eq!(rules.len(), 2 * 2);
    for one in &rules {
        if one["method"] == "bare-metal" {
            let why = one["unavailable"].as_str().unwrap();
            assert!(why.starts_with("bare-metal: it forwards every frame unchanged"), "{why}");
            continue;
        }
        match one["condition"]["variant"].as_str().unwrap() {
            "EFF" => assert_eq!(one["condition"]["varied"]["value"], 16),
            other => assert_eq!(other, "xor"),
        }
    }
    let series = measured("loads", &both, 5, &format!("loads = {loads:?}\nrules = [\"xor\"]\n"));
    let told: Vec<_> = series.iter().map(|one| one["condition"]["load"].as_str().unwrap()).collect();
    assert_eq!(told, loads.map(|load| [load; 2]).concat());
    // can-gw works in the interrupt, before any thread: only a load of interrupts is felt for certain.
    let series =
        measured("felt", &["can-gw"], 100, "loads = [\"none\", \"ethernet-receive\"]\nrules = [\"xor\"]\n");
    // All frames together: one frame that a tick meets makes the maximum of any load.
    let [quiet, loaded] = ["none", "ethernet-receive"].map(|load| -> u64 {
        let measured_so = |one: &&Value| one["condition"]["load"] == load;
        let latency = &series.iter().find(measured_so).unwrap()["latency_ns"];
        let bars = latency["buckets"].as_array().unwrap().iter();
        bars.map(|bar| bar[0].as_u64().unwrap() * bar[1].as_u64().unwrap()).sum()
    });
    assert!(loaded > quiet, "a load that nobody feels is none: {series:#?}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=study"]
fn what_is_sent_as_a_load_is_not_answered() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let lines =
        "methods = [\"can-gw\"]\nloads = [\"ethernet-send\"]\nlens = [8]\ncount = 20\njitter = \"1ms\"\n";
    let packets = |name: &str| -> u64 {
        let path = format!("/sys/class/net/eth1/statistics/{name}_packets");
        fs::read_to_string(path).unwrap().trim().parse().unwrap()
    };
    let before = ["tx", "rx"].map(packets);
    let events = inside(&study(&folder, "sending", "wire", lines));
    assert_eq!(series(&events)[0]["unavailable"], "", "{events:?}");
    let [sent, received] = [packets("tx") - before[0], packets("rx") - before[1]];
    assert!(sent > 100 && received < sent / 100, "{sent} sent, {received} received");
    let queue = output("tc", &["qdisc", "show", "dev", "eth1"]);
    assert!(queue.contains("rate 100Mbit"), "a load as fast as a program computes: {queue}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=study"]
fn the_frames_of_a_write_follow_each_other_without_a_bit_between() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let plan = "[writes]\nbus = \"A\"\nwriters = [{ method = \"write\", interface = \"wcan0\" }]\nothers = [\"wcan1\"]\n\
                bitrates = [1000000, 250000]\nbatch = [1, 3]\nlen = 8\ncount = 5\n";
    let measured = series(&inside(&study_of(&folder, "writes", "wire", plan)));
    assert_eq!(measured.len(), 2 * 2 * 3);
    let median = |quantity: &str, variant: &str| {
        let is_it = |one: &&Value| one["quantity"] == quantity && one["condition"]["variant"] == variant;
        let one = measured.iter().find(is_it).unwrap_or_else(|| panic!("{quantity}, {variant}"));
        assert_eq!(one["ledger"]["received"], 5, "{one}");
        one["latency_ns"]["p50"].as_u64().unwrap()
    };
    for (rate, bit_ns) in [("1000 kbit/s", 1000), ("250 kbit/s", 4000)] {
        let median_ns = |quantity: &str, frames: &str| median(quantity, &format!("{frames} at {rate}"));
        // The two medians may be of two writes, whose first instructions differ by some ns.
        let bits = |frames: &str| {
            let ns = median_ns("total time", frames) - median_ns("start delay", frames);
            let bits = (ns + bit_ns / 2) / bit_ns;
            assert!(
                ns.abs_diff(bits * bit_ns) <= bit_ns / 100,
                "{frames} at {rate}: {ns} ns are no whole bits"
            );
            bits
        };
        // Three bits of intermission between two frames.
        assert_eq!(bits("3 frames"), 3 * bits("1 frame") + 2 * 3);
        assert!(median_ns("start delay", "1 frame") < median_ns("write time", "1 frame"));
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=study"]
fn between_many_buses_no_frame_is_lost_and_rules_cost_the_same_on_each() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let gateways = ["ring+write", "ring+write --one-thread", "ring/spin+write --one-thread"];
    let plan = format!(
        "[throughput]\nbuses = [1, 4]\nshare = 2\nmethods = {gateways:?}\nrules = [\"all\", \"edited=300\"]\nlen = 8\n\
         frames = 60\nperiod = \"1ms\"\n"
    );
    let measured = series(&inside(&study_of(&folder, "many-buses", "wire", &plan)));
    let told = |condition: &Value| condition["variant"].as_str().unwrap_or_default().to_owned();
    let points = |method: &str, quantity: &str, variant: &str| -> Vec<u64> {
        let is_it = |one: &&Value| {
            let (curve, condition) = (&one["curve"], &one["condition"]);
            one["method"] == method && curve["quantity"] == quantity && told(condition) == variant
        };
        let one =
            measured.iter().find(is_it).unwrap_or_else(|| panic!("{method}, {quantity}: {measured:#?}"));
        assert_eq!(one["ledger"]["received"], 60 * (1 + 4), "{one}");
        one["curve"]["points"].as_array().unwrap().iter().map(|point| point[1].as_u64().unwrap()).collect()
    };
    for method in gateways {
        let [few, many] = ["", "edited EFF"].map(|variant| points(method, "median latency", variant));
        assert!(
            few.iter().zip(&many).all(|(few, many)| many < &(few + few / 5)),
            "{method}: {few:?} {many:?}"
        );
        let [few, many] = ["", "edited EFF"].map(|variant| points(method, "memory of the gateway", variant));
        assert!(few.iter().zip(&many).all(|(few, many)| many > few), "{method}: {few:?} {many:?}");
    }
    for method in &gateways[..2] {
        let cost = ["", "edited EFF"].map(|variant| points(method, "processor time of a frame", variant));
        assert!(cost.concat().iter().all(|ns| (1_000..100_000).contains(ns)), "{method}: {cost:?}");
    }
    // Nobody can tell from outside what a gateway that spins takes.
    assert!(measured.iter().all(|one| {
        let cost = one["curve"]["quantity"] == "processor time of a frame";
        one["method"] != gateways[2] || !cost
    }));
}

#[test]
#[ignore = "needs the lab: make test ONLY=study"]
fn the_highest_rate_of_can_gw_is_that_of_the_wire() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let plan = "[throughput]\nbuses = [1, 2]\nmethods = [\"none\", \"can-gw\"]\nlen = 2\nframes = 200\n";
    let measured = series(&inside(&study_of(&folder, "highest", "wire", plan)));
    let rates: Vec<_> =
        measured.iter().filter(|one| one["curve"]["quantity"] == "highest rate of each bus").collect();
    let [wire, gateway] = &rates[..] else { panic!("{measured:#?}") };
    assert_eq!(wire["curve"]["points"], gateway["curve"]["points"], "{measured:#?}");
    assert_eq!(gateway["ledger"]["received"], 200 * (1 + 2));
}

#[test]
#[ignore = "needs the lab: make test ONLY=study"]
fn the_stick_is_written_beside_the_gateway_and_not_mounted_afterwards() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let written_sectors = || -> u64 {
        let stat = fs::read_to_string("/sys/block/sda/stat").unwrap();
        stat.split_whitespace().nth(6).unwrap().parse().unwrap()
    };
    let before = written_sectors();
    let lines = "methods = [\"can-gw\"]\nloads = [\"usb-stick\"]\nlens = [8]\ncount = 20\njitter = \"1ms\"\n";
    let events = inside(&study(&folder, "stick", "wire", lines));
    let [one] = &series(&events)[..] else { panic!("{events:?}") };
    assert_eq!((&one["unavailable"], &one["ledger"]["received"]), (&"".into(), &20.into()), "{one}");
    let written = written_sectors() - before;
    assert!(written >= 2048, "the four files of one round are 2048 sectors, and {written} were written");
    /// By open(2): the kernel opens a mounted disk for nobody who wants it alone. The number of every architecture of the lab.
    const O_EXCL: i32 = 0o200;
    let alone = || fs::OpenOptions::new().read(true).custom_flags(O_EXCL).open("/dev/sda");
    testbed::eventually("the stick is not mounted", || alone().is_ok());
}

/// The gateway prints more at its end than a pipe holds.
#[test]
#[ignore = "needs the lab: make test ONLY=study"]
fn a_gateway_with_2048_rules_comes_to_its_end() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let lines = "methods = [\"ring+write\"]\nrules = [\"sff=2048\"]\nlens = [8]\ncount = 5\n";
    let events = inside(&study(&folder, "many", "wire", lines));
    assert_eq!(series(&events)[0]["ledger"]["received"], 5);
}

#[test]
#[ignore = "needs the lab: make test ONLY=study"]
fn the_time_chart_tells_how_busy_the_processor_was() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let file = study(
        &folder,
        "busy",
        "sja1000",
        "methods = [\"can-gw\"]\nloads = [\"cpu\"]\nlens = [4]\ncount = 60\ngap = \"5ms\"\ntimeline = true\n",
    );
    let events = inside(&file);
    let load = &series(&events)[0]["timeline"]["load"];
    let points = load.as_array().unwrap();
    assert!(!points.is_empty() && points.iter().all(|point| point[1].as_u64().unwrap() > 500), "{load}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=study"]
fn what_a_study_tunes_is_so_while_it_measures_and_put_back() {
    const BUDGET: &str = "/proc/sys/net/core/netdev_budget";
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let before = fs::read_to_string(BUDGET).unwrap();
    let file = study_of(
        &folder,
        "tuned",
        "sja1000",
        "[ping]\ncount = 20\nlen = 8\nrealtime = 60\ntuning = [\"\", \"netdev-budget=7\", \"irq-priority=90\"]\n\
         pairs = [{ method = \"read+write\", from = \"can2\", to = \"can4\" }]\n",
    );
    let (ended, seen) = (AtomicBool::new(false), || fs::read_to_string(BUDGET).unwrap().trim() == "7");
    let (events, tuned) = thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut tuned = false;
            while !ended.load(Ordering::Acquire) && !tuned {
                tuned = seen();
                thread::sleep(Duration::from_millis(2));
            }
            tuned
        });
        let events = inside(&file);
        ended.store(true, Ordering::Release);
        (events, watch.join().unwrap())
    });
    assert!(tuned, "the budget was never another one");
    assert_eq!(fs::read_to_string(BUDGET).unwrap(), before);
    let series = &series(&events);
    let variants: Vec<_> =
        series.iter().map(|one| one["condition"]["variant"].as_str().unwrap_or_default()).collect();
    assert_eq!(variants, ["", "netdev-budget=7", "irq-priority=90"]);
    for one in &series[..2] {
        assert_eq!(one["ledger"]["received"], 20, "{one}");
        let [median, most] = ["p50", "max"].map(|name| one["latency_ns"][name].as_u64().unwrap());
        assert!(most < 4 * median, "no ping waits for the ping's own receiver to begin: {one}");
    }
    let why = series[2]["unavailable"].as_str().unwrap();
    assert!(why.starts_with("can2, can4: interrupts are not threads here"), "{}", series[2]);
}

/// The value of a file of an interface, such as `threaded`.
fn setting(interface: &str, name: &str) -> String {
    fs::read_to_string(format!("/sys/class/net/{interface}/{name}")).unwrap().trim().to_owned()
}

#[test]
#[ignore = "needs the lab: make test ONLY=study"]
fn who_does_napi_s_work_is_tuned_and_put_back() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let text =
        "methods = [\"can-gw\"]\ntuning = [\"napi=80\", \"defer-interrupts=2\"]\nlens = [4]\ncount = 20\n";
    let file = study(&folder, "napi", "wire", text);
    let priority = || output("sh", &["-c", "chrt -p $(pgrep '^napi/wcan3-') 2>&1"]);
    let ended = AtomicBool::new(false);
    let (events, seen) = thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut seen = [false; 2];
            while !ended.load(Ordering::Acquire) && seen != [true; 2] {
                seen[0] |= setting("wcan3", "threaded") == "1" && priority().contains("priority: 80");
                seen[1] |= setting("wcan3", "napi_defer_hard_irqs") == "2";
                thread::sleep(Duration::from_millis(2));
            }
            seen
        });
        let events = inside(&file);
        ended.store(true, Ordering::Release);
        (events, watch.join().unwrap())
    });
    assert_eq!(seen, [true; 2], "the thread's priority; deferred interrupts");
    for one in &series(&events) {
        assert_eq!(one["ledger"]["received"], 20, "{one}");
    }
    for interface in ["wcan3", "wcan4"] {
        let settings = ["threaded", "napi_defer_hard_irqs", "gro_flush_timeout"];
        assert_eq!(settings.map(|name| setting(interface, name)), ["0"; 3], "{interface}");
    }
    let file = study(
        &folder,
        "none",
        "sja1000",
        "methods = [\"can-gw\"]\ntuning = [\"napi=80\"]\nlens = [4]\ncount = 2\n",
    );
    let events = inside(&file);
    let why = series(&events)[0]["unavailable"].as_str().unwrap().to_owned();
    assert!(why.ends_with("(its driver may have no NAPI)"), "{why}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=study"]
fn hops_go_through_virtual_interfaces_and_cost_something_each() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let file = study(
        &folder,
        "hops",
        "wire",
        "methods = [\"can-gw\"]\nrules = [\"hops=0\", \"hops=1\", \"hops=5\"]\nlens = [4]\ncount = 20\n",
    );
    let events = inside(&file);
    let series = series(&events);
    let medians: Vec<u64> =
        series.iter().map(|one| one["latency_ns"]["p50"].as_u64().unwrap_or_default()).collect();
    assert!(medians.is_sorted_by(|a, b| a < b), "{medians:?} {series:?}");
    assert!(!output("ip", &["link"]).contains("canterhop"), "they are deleted at the end");
}

/// A network namespace with the gateway's cards, which return when this is dropped.
struct Elsewhere;

impl Elsewhere {
    fn new() -> Self {
        testbed::ip("netns add elsewhere");
        testbed::ip("link set can3 netns elsewhere");
        testbed::ip("link set can4 netns elsewhere");
        Self
    }

    /// The prefix that starts programs there: `canter` is the program that is tested.
    fn prefix() -> String {
        let (folder, _) = testbed::program().rsplit_once('/').unwrap();
        format!("env PATH={folder}:{} ip netns exec elsewhere", env::var("PATH").unwrap())
    }

    fn processes() -> Vec<String> {
        output("ip", &["netns", "pids", "elsewhere"]).lines().map(str::to_owned).collect()
    }

    fn cangw(line: &str) -> String {
        let words = ["netns", "exec", "elsewhere", "cangw"].into_iter().chain(line.split(' '));
        start("ip", &words.collect::<Vec<_>>()).ended(testbed::DEADLINE).stdout // its exit code says nothing
    }

    /// Starts a long measurement there by this prefix, and waits until a gateway and a load run.
    fn measure_by(&self, folder: &tempfile::TempDir, prefix: &str) -> testbed::Running {
        let latency = "methods = [\"can-gw\"]\nrules = [\"xor\"]\nloads = [\"cpu\"]\nlens = [4]\ngap = \"5ms\"\ncount = 1000000\n";
        let file = study(folder, "long", "sja1000", latency);
        let run =
            canter(&[&run_words(&file, prefix, folder.path().to_str().unwrap())[..], &["--quiet"]].concat());
        testbed::eventually("a load and a gateway run", || {
            Self::processes().len() >= 2 && Self::cangw("-L").contains("can3")
        });
        run
    }

    #[track_caller]
    fn everything_has_ended(&self) {
        testbed::eventually("no process is left", || Self::processes().is_empty());
        assert!(!Self::cangw("-L").contains("can3"), "no job is left");
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        for process in Self::processes() {
            start("kill", &["-KILL", &process]).ended(testbed::DEADLINE);
        }
        for card in ["can3", "can4"] {
            testbed::ip(&format!("-n elsewhere link set {card} netns 1"));
        }
        testbed::ip("netns delete elsewhere");
    }
}

fn run_words<'a>(file: &'a str, prefix: &'a str, out: &'a str) -> Vec<&'a str> {
    let interfaces = ["--interfaces", "can0,can1,can2", "--gateway", "can3,can4"];
    [&["study", "run", file][..], &interfaces, &["--gateway-by", prefix, "--out", out]].concat()
}

#[test]
#[ignore = "needs the lab: make test ONLY=study"]
fn a_gateway_elsewhere_is_ordered_through_a_command() {
    let _alone = alone();
    let elsewhere = Elsewhere::new();
    let folder = tempfile::tempdir().unwrap();
    let latency = "methods = [\"can-gw\", \"read+write\"]\nrules = [\"xor\"]\n\
                   loads = [\"none\", \"cpu\", \"ethernet-send\"]\nlens = [4]\ncount = 20\n";
    let file = study(&folder, "remote", "sja1000", latency);
    // A job of somebody else's stays.
    for name in ["mine0", "mine1"] {
        testbed::ip(&format!("-n elsewhere link add {name} type vcan"));
        testbed::ip(&format!("-n elsewhere link set {name} up"));
    }
    Elsewhere::cangw("-A -s mine0 -d mine1");
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let run = canter(&run_words(&file, &Elsewhere::prefix(), out)).ended(STUDY_DEADLINE);
    assert!(matches!(run.code, Some(0 | 3)), "{}", run.stderr);
    let result: Value = serde_json::from_slice(&fs::read(format!("{out}/remote.json")).unwrap()).unwrap();
    let series = result["series"].as_array().unwrap();
    assert_eq!(series.len(), 6);
    for one in series {
        if one["condition"]["load"] == "ethernet-send" {
            assert!(one["unavailable"].as_str().unwrap().contains("SSH_CONNECTION"), "{one}");
            continue;
        }
        assert_eq!(one["unavailable"], "", "{one}");
        assert!(one["ledger"]["received"].as_u64().unwrap() > 0, "{one}");
    }
    assert!(!fs::exists(format!("{out}/unfinished.jsonl")).unwrap(), "a complete run leaves no journal");
    elsewhere.everything_has_ended();
    assert!(Elsewhere::cangw("-L").contains("-s mine0 -d mine1"));
}

#[test]
#[ignore = "needs the lab: make test ONLY=study"]
fn a_gateway_elsewhere_ends_with_the_run_that_is_killed() {
    let _alone = alone();
    let elsewhere = Elsewhere::new();
    let folder = tempfile::tempdir().unwrap();
    let run = elsewhere.measure_by(&folder, &Elsewhere::prefix());
    run.signal("KILL");
    run.ended(testbed::DEADLINE);
    elsewhere.everything_has_ended();
}

/// The program elsewhere, and the one that carries the orders, as ssh does.
#[test]
#[ignore = "needs the lab: make test ONLY=study"]
fn a_run_ends_in_one_line_when_the_gateway_s_side_does() {
    let _alone = alone();
    let elsewhere = Elsewhere::new();
    let relay = format!("sh -c 'sed -u b | {} \"$@\"' --", Elsewhere::prefix());
    let far_side = || Elsewhere::processes().remove(0);
    let carrier = || output("pgrep", &["-x", "sed"]).trim().to_owned();
    type Victim<'a> = &'a dyn Fn() -> String;
    let cases: [(&str, Victim<'_>, &str); 2] = [
        (&Elsewhere::prefix(), &far_side, "study gateway: interrupted"),
        (&relay, &carrier, "ended, exit status: 0"),
    ];
    for (prefix, victim, why) in cases {
        let folder = tempfile::tempdir().unwrap();
        let run = elsewhere.measure_by(&folder, prefix);
        output("kill", &[&victim()]);
        let run = run.ended(STUDY_DEADLINE);
        assert_eq!(run.code, Some(1), "{run:?}");
        let complaint = run.complaint();
        assert!(
            complaint.contains(why) && complaint.ends_with("(the same command continues)"),
            "{complaint}"
        );
        elsewhere.everything_has_ended();
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=study"]
fn a_killed_run_continues_after_its_last_case_and_never_with_another_study() {
    let _alone = alone();
    // Gateways that end with their process: a killed program leaves its job in can-gw, which is nobody else's to delete.
    let folder = tempfile::tempdir().unwrap();
    let latency =
        "methods = [\"read+write\", \"ring+write\", \"ring+ring\"]\nlens = [2, 4, 6, 8]\ncount = 20\n";
    let file = study(&folder, "killed", "sja1000", latency);
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let words =
        ["study", "run", &file, "--interfaces", "can0,can1,can2", "--gateway", "can3,can4", "--out", out];
    let mut run = canter(&words);
    run.until_it_says("ring+ring, one-at-a-time, 2 bytes: median");
    run.signal("KILL");
    run.ended(STUDY_DEADLINE);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("count = 20", "count = 21")).unwrap();
    let refused = canter(&words).ended(STUDY_DEADLINE);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stderr.contains("is of another run") && refused.stderr.contains("--again"),
        "{refused:?}"
    );
    fs::write(&file, text).unwrap();
    let run = canter(&words).ended(STUDY_DEADLINE);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for (case, again) in
        [("read+write, one-at-a-time, 2 bytes", false), ("read+write, one-at-a-time, 8 bytes", true)]
    {
        assert_eq!(run.stderr.contains(&format!("{case}: median")), again, "{case}: {}", run.stderr);
    }
    let result: Value = serde_json::from_slice(&fs::read(format!("{out}/killed.json")).unwrap()).unwrap();
    let lens: Vec<_> =
        result["series"].as_array().unwrap().iter().map(|one| one["condition"]["len"].clone()).collect();
    assert_eq!(lens, [2, 2, 2, 4, 4, 4, 6, 6, 6, 8, 8, 8], "in the order of the plan");
    assert!(!fs::exists(format!("{out}/unfinished.jsonl")).unwrap(), "a complete run leaves no journal");
}

#[test]
#[ignore = "needs the lab: make test ONLY=study"]
fn a_gateway_that_cannot_be_ordered_is_one_line() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    for (prefix, why) in [
        ("ip netns exec nowhere", "\"nowhere\": No such file or directory (needs this build of canter there"),
        ("sh -c 'exec no-such-canter' --", "no-such-canter: not found"),
        ("sh -c 'sleep 1000'", "no answer within 60 s"),
    ] {
        let run = canter(&run_words("2014-fig4.2", prefix, out)).ended(STUDY_DEADLINE);
        assert_eq!(run.code, Some(1), "{run:?}");
        assert!(run.complaint().contains(why), "{run:?}");
    }
}
