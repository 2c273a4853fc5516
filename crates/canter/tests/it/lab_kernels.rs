//@ machine: host --ignored
//@ in: all
//@ limit: 40m
//! Kernels that this Debian lacks come from Debian's other suites; needs the network the first time.

use crate::lab::{ended, lab};
use std::path::Path;
use std::process::Command;

#[test]
#[ignore = "boots a guest: make test-all runs it"]
fn todays_kernels_boot_by_their_names() {
    for name in ["7.3", "7.3-rt", "6.18"] {
        let (stdout, _) =
            ended(lab(Path::new("/"), &["--kernel", name], &["uname -rv"]).output().unwrap(), 0);
        let (series, realtime) = name.split_once('-').map_or((name, false), |(series, _)| (series, true));
        assert!(stdout.starts_with(&format!("{series}.")), "{name}: {stdout}");
        assert_eq!(stdout.contains("PREEMPT_RT"), realtime, "{name}: {stdout}");
    }
}

#[test]
#[ignore = "boots a guest: make test-all runs it"]
fn a_kernel_s_packages_and_their_hashes_are_in_its_command_line() {
    let cache = tempfile::tempdir().unwrap();
    let mut lab = lab(Path::new("/"), &["--kernel", "7.3"], &["cat /proc/cmdline"]);
    let (stdout, _) = ended(lab.env("XDG_CACHE_HOME", cache.path()).output().unwrap(), 0);
    let words = stdout.split_whitespace().find_map(|word| word.strip_prefix("canter.packages="));
    let packages: Vec<&str> = words.expect("the word is there").split(',').collect();
    let names = packages.iter().map(|package| package.split('_').next().unwrap_or_default());
    let parts = names.map(|name| name.rsplit_once("-7.3.").unwrap_or_default().0);
    assert_eq!(parts.collect::<Vec<_>>(), ["linux-binary", "linux-modules", "linux-base"], "{stdout}");
    for package in packages {
        let (name, sum) = package.split_once(':').expect("a hash follows");
        assert!(name.ends_with("_amd64.deb"), "{package}");
        assert!(sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit()), "{package}");
    }
}

#[test]
#[ignore = "boots a guest: make test-all runs it"]
fn our_modules_are_built_and_loaded_on_the_newest_kernel() {
    for name in ["7.3", "7.3-rt"] {
        let options = ["--kernel", name, "--bus", "wire", "--canchar", "3,4"];
        let command = "ip -br link | grep -c wcan; ls /dev/canchar* | wc -l";
        let (stdout, _) = ended(lab(Path::new("/"), &options, &[command]).output().unwrap(), 0);
        assert_eq!(stdout, "5\n2\n", "{name}");
    }
}

#[test]
#[ignore = "reads apt's lists: make test-all runs it"]
fn the_list_has_the_suite_of_each_kernel_and_an_unknown_one_is_answered_by_the_list() {
    let mut list = Command::new(env!("CARGO_BIN_EXE_canter"));
    let (stdout, _) = ended(list.args(["lab", "--kernel", "list"]).output().unwrap(), 0);
    let row = |name: &str| {
        let rows = stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        rows.into_iter()
            .find(|row| row.first() == Some(&name))
            .unwrap_or_else(|| panic!("no {name}: {stdout}"))
    };
    assert!(row("7.3").contains(&"trixie-backports"), "{stdout}");
    assert!(row("7.3-rt").len() >= 3 && row("6.1").len() >= 3, "{stdout}");
    let (_, stderr) = ended(lab(Path::new("/"), &["--kernel", "9.9"], &["true"]).output().unwrap(), 125);
    assert_eq!(stderr.lines().filter(|line| line.starts_with("canter:")).count(), 1, "{stderr}");
    assert!(stderr.contains("kernel 9.9: not offered (offered: 6.1, "), "{stderr}");
}
