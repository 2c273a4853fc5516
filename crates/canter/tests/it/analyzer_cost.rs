//@ machine: host --ignored
//! What the analyzer costs the guest: nothing. And what `canter lab --analyzer` refuses.

use crate::lab::{ended, lab};
use serde_json::Value;
use std::fs;

const MEASURE: &str = "for each in 0 1 2 3 4; do ip link set can$each up type can bitrate 500000; done
canter latency --quiet --send can0 --direct can1 --routed can2 --through can3,can4 --method can-gw --count 200 --json -";

#[test]
#[ignore = "starts guests: make test ONLY=analyzer_cost"]
fn medians_with_and_without_the_analyzer_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let [without, with] = [&[][..], &["--analyzer"]].map(|options| {
        let options = [&["--clock", "virtual"], options].concat();
        let (stdout, _) = ended(lab(folder.path(), &options, &[MEASURE]).output().unwrap(), 0);
        let result: Value = serde_json::from_str(&stdout).unwrap();
        result["series"][0]["latency_ns"]["p50"].as_u64().unwrap()
    });
    assert!(without.abs_diff(with) * 10_000 <= without, "{without} ns without, {with} ns with");
}

#[test]
#[ignore = "starts guests: make test ONLY=analyzer_cost"]
fn a_machine_without_analyzer_says_which_one_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let command = "canter latency --instrument analyzer --send can0 --routed can2";
    let (stdout, stderr) = ended(lab(folder.path(), &[], &[command]).output().unwrap(), 4);
    let wanted = "canter: analyzer: this machine has none (canter lab --analyzer --clock virtual has)\n";
    assert_eq!((stdout.as_str(), stderr.as_str()), ("", wanted));
}

#[test]
#[ignore = "starts guests: make test ONLY=analyzer_cost"]
fn the_analyzer_needs_the_virtual_clock_and_a_qemu_with_plugins() {
    let folder = tempfile::tempdir().unwrap();
    let (_, stderr) = ended(lab(folder.path(), &["--analyzer"], &["true"]).output().unwrap(), 2);
    assert!(stderr.contains("--analyzer needs --clock virtual"), "{stderr}");
    let programs = folder.path().join("bin");
    fs::create_dir(&programs).unwrap();
    let qemu = programs.join("qemu-system-x86_64");
    fs::write(&qemu, "#!/bin/sh\necho 'QEMU emulator version 7.2.22'\n").unwrap();
    fs::set_permissions(&qemu, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = std::env::join_paths(
        [programs].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let mut command = lab(folder.path(), &["--analyzer", "--clock", "virtual"], &["true"]);
    let (_, stderr) = ended(command.env("PATH", path.unwrap()).output().unwrap(), 4);
    assert_eq!(stderr, "canter: lab: analyzer: QEMU 7.2.22 is built without plugins (Debian's has them)\n");
}
