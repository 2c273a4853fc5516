//! Runs a test in network, mount and process namespaces of its own: it may create interfaces and mount file systems there
//! without a right on this machine, leaves no trace, and everything that it has started ends with it.
//!
//! The test's process starts itself again for this one test, by unshare(1): a process of several threads, as that of tests
//! is, cannot enter a user namespace.

use crate::skip;
use std::{env, fs, path::Path, process::Command, sync::OnceLock, thread};

/// The namespaces. The first process in them may be killed with its parent, and takes all others with it.
const NAMESPACES: [&str; 6] = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
/// How to become root in them: as root of the machine, or as a user with the right to make user namespaces.
const WAYS: [&[&str]; 2] = [&[], &["--user", "--map-root-user"]];
/// Set for the test inside: the network namespace of the process that started it.
const OUTSIDE: &str = "CANTER_TEST_OUTSIDE";

/// Outside: runs the current test again in namespaces of its own, fails if it fails there, and returns true. Inside: returns
/// false. On a host without such namespaces or without TUN devices it skips the test and returns true; a guest has both.
#[track_caller]
pub fn ran_in_namespaces() -> bool {
    let here = fs::read_link("/proc/self/ns/net").unwrap().into_os_string();
    if let Some(outside) = env::var_os(OUTSIDE) {
        assert_ne!(here, outside, "{OUTSIDE} is for the tests themselves");
        return false;
    }
    static WAY: OnceLock<Result<&[&str], String>> = OnceLock::new();
    match WAY.get_or_init(way) {
        Ok(way) => run(unshare(way).env(OUTSIDE, here)),
        Err(why) if is_lab() => panic!("there are no TUN devices in this guest: {why}"),
        Err(why) => skip::skip(&format!("no CAN interfaces of TUN devices here: {why}")),
    }
    true
}

/// A command in new namespaces, killed when the thread that has started it ends.
fn unshare(way: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare"]).args(way).args(NAMESPACES);
    command
}

fn is_lab() -> bool {
    fs::read_to_string("/proc/cmdline").is_ok_and(|words| words.contains("canter.lab=1"))
}

/// The first way that leads to a TUN device; otherwise the reason against the last way.
fn way() -> Result<&'static [&'static str], String> {
    if is_lab() && !Path::new(canter_io::tun::DEVICE).exists() {
        Command::new("modprobe").arg("tun").status().unwrap();
    }
    let mut why = String::new();
    for way in WAYS {
        match unshare(way).args(["ip", "tuntap", "add", "dev", "tun0", "mode", "tun"]).output() {
            Ok(done) if done.status.success() => return Ok(way),
            Ok(done) => why = String::from_utf8_lossy(&done.stderr).trim().replace('\n', "; "),
            Err(error) => why = format!("setpriv: {error}"),
        }
    }
    Err(why)
}

/// Runs the current test, and no other, by a command that starts programs in namespaces.
#[track_caller]
fn run(command: &mut Command) {
    let test = thread::current().name().unwrap().to_owned();
    let only = ["--exact", &test, "--include-ignored", "--nocapture", "--test-threads=1"];
    let ended = command.arg(env::current_exe().unwrap()).args(only).output().unwrap();
    let [printed, said] = [&ended.stdout, &ended.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    said.lines().filter(|line| line.starts_with("SKIP ")).for_each(skip::print);
    printed.lines().chain(said.lines()).for_each(|line| println!("inside: {line}"));
    assert!(ended.status.success(), "it fails in its namespaces: {}", ended.status);
    assert!(printed.contains("test result: ok. 1 passed"), "there is no test {test} inside");
}
