//@ machine: host --ignored
//@ commands: capture generate
//@ parts: 2
//! `canter lab` from outside: real guests, as few as will do. What else can go wrong is `lab_trouble`'s.

use crate::wait::eventually;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub fn lab(folder: &Path, options: &[&str], command: &[&str]) -> Command {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_canter"));
    let limit: &[&str] = if options.contains(&"--timeout") { &[] } else { &["--timeout", "3m"] };
    lab.current_dir(folder).arg("lab").args(limit).args(options).arg("--").args(command);
    lab.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    lab
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The output of a command that must have ended with `code`.
#[track_caller]
pub fn ended(output: Output, code: i32) -> (String, String) {
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "stdout: {stdout}\nstderr: {stderr}");
    (stdout, stderr)
}

/// The value of the line `name=value`.
#[track_caller]
pub fn value<'a>(stdout: &'a str, name: &str) -> &'a str {
    let line = stdout.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    line.unwrap_or_else(|| panic!("no {name}= in {stdout}"))
}

/// The QEMUs with this folder for temporary files.
pub fn processes(temporary: &Path) -> Vec<String> {
    let mark = temporary.to_str().unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines =
        entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok()).map(|line| text(&line));
    lines.filter(|line| line.contains(mark) && line.contains("qemu-system")).collect()
}

/// Starts a lab with a command that does not end, and waits until the command has printed `up`.
pub fn running(folder: &Path, temporary: &Path) -> Child {
    let mut command = lab(folder, &[], &["echo up; sleep 1000"]);
    let mut child = command.env("TMPDIR", temporary).spawn().unwrap();
    let mut byte = [0; 3];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut byte).unwrap();
    assert_eq!(&byte, b"up\n");
    assert_eq!(processes(temporary).len(), 1, "one QEMU runs");
    child
}

pub fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

pub fn left_behind(temporary: &Path) -> Vec<String> {
    fs::read_dir(temporary)
        .unwrap()
        .flatten()
        .map(|entry| text(entry.file_name().as_encoded_bytes()))
        .collect()
}

const INSPECT: &str = r#"
echo "folder=$PWD"
echo "words=$1|$2|$3"
echo "variable=$CANTER_LAB_TEST secret=$LAB_TEST_SECRET"
echo "cmdline=$(cat /proc/cmdline)"
echo "features=$(awk '/^flags/ { print; exit }' /proc/cpuinfo | xargs -n 1 | grep -xE 'cx16|erms|fsrm' | xargs)"
echo "links=$(ip -br link | awk '{ print $1 ":" $2 }' | xargs)"
echo "modprobe=$(modprobe can-isotp && grep -c ^can_isotp /proc/modules)"
echo "modules=$([ "$(ls /lib/modules)" = "$(uname -r)" ] && echo of the kernel that runs)"
echo "version=$(canter --version)"
echo "program=$(cp "$(command -v canter)" ./cache && ./cache --version)"
for each in 0 1 2 3 4; do ip link set can$each up type can bitrate 500000; done
echo "lines=$(awk '/can[0-9]/ { print $1 $NF }' /proc/interrupts | xargs)"
for each in 1 2 3; do timeout 20 candump -n 1 can$each > /tmp/seen$each & done
until [ "$(grep -c ' can[123] ' /proc/net/can/rcvlist_all)" = 3 ]; do sleep 0.02; done; cansend can0 123#11; cansend can4 321#22; wait
echo "frames=$(cat /tmp/seen? | xargs)"
echo kept > here.txt; echo kept > "$CANTER_LAB_SHARED/there.txt"
echo lost > /tmp/elsewhere.txt; echo lost > /etc/canter-lab-test
echo "pipe=$(echo through > /dev/stderr; cat <(echo substitution))"
echo "namespace=$(unshare -Ur id -u)"
exit 7
"#;

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn an_old_kernel_has_its_second_processor_in_the_virtual_clock_too() {
    let options = ["--kernel", "6.1", "--clock", "virtual", "--cpus", "2"];
    let command = "uname -r; nproc; taskset -c 1 true && pidof pausing || echo nothing pauses";
    let (stdout, _) = ended(lab(Path::new("/"), &options, &[command]).output().unwrap(), 0);
    let lines: Vec<&str> = stdout.lines().collect();
    assert!(lines[0].starts_with("6.1.") && lines[1..] == ["2", "nothing pauses"], "{stdout}");
}

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn the_machine_is_what_the_documentation_says() {
    // Below /tmp, which is the guest's cache, and with characters that QEMU and shells take for theirs.
    let folder = tempfile::Builder::new().prefix("canter lab,test'").tempdir_in("/tmp").unwrap();
    fs::write(folder.path().join("inspect"), INSPECT).unwrap();
    let shared = tempfile::tempdir().unwrap();
    let options = ["--share", shared.path().to_str().unwrap()];
    let output = lab(folder.path(), &options, &["bash", "inspect", "a b", "it's $HOME", ""])
        .env("CANTER_LAB_SHARED", shared.path())
        .env("CANTER_LAB_TEST", "seen  twice")
        .env("LAB_TEST_SECRET", "never")
        .output()
        .unwrap();
    let (stdout, stderr) = ended(output, 7);
    assert_eq!(value(&stdout, "folder"), folder.path().to_str().unwrap());
    assert_eq!(value(&stdout, "words"), "a b|it's $HOME|");
    assert_eq!(value(&stdout, "variable"), "seen  twice secret=");
    let cmdline = value(&stdout, "cmdline");
    let words = "quiet noautogroup transparent_hugepage=madvise canter.lab=1 canter.clock=real canter.accel=";
    assert!(cmdline.contains(words), "{cmdline}");
    if cmdline.contains("canter.accel=tcg") {
        assert_eq!(
            value(&stdout, "features"),
            "",
            "the kernel uses what QEMU counts by bytes or emulates falsely"
        );
    }
    let links = "lo:UNKNOWN can0:DOWN can1:DOWN can2:DOWN can3:DOWN can4:DOWN";
    assert_eq!(value(&stdout, "links"), links, "five cards, all down, and nothing else");
    assert_eq!(value(&stdout, "modprobe"), "1");
    assert_eq!(value(&stdout, "modules"), "of the kernel that runs");
    assert_eq!(value(&stdout, "version"), format!("canter {}", env!("CARGO_PKG_VERSION")));
    assert_eq!(value(&stdout, "program"), value(&stdout, "version"), "programs in the share can be executed");
    assert_eq!(value(&stdout, "lines"), "16:can4 20:can0 21:can1 22:can2 23:can3");
    assert_eq!(
        value(&stdout, "frames"),
        "can1 123 [1] 11 can2 321 [1] 22 can3 123 [1] 11",
        "bus A is can0 can1 can3, bus B is can2 can4"
    );
    assert_eq!(value(&stdout, "pipe"), "substitution");
    assert_eq!(value(&stdout, "namespace"), "0");
    assert_eq!(stderr, "through\n", "standard error has that and nothing else");
    assert_eq!(fs::read_to_string(folder.path().join("here.txt")).unwrap(), "kept\n");
    assert_eq!(fs::read_to_string(shared.path().join("there.txt")).unwrap(), "kept\n");
    for gone in ["/tmp/elsewhere.txt", "/etc/canter-lab-test"] {
        assert!(!Path::new(gone).exists(), "{gone} must not have reached the host");
    }
}

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn a_command_ended_by_a_signal_has_its_code_and_what_it_left_behind_does_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    let started = Instant::now();
    let output = lab(folder.path(), &[], &["sleep 1000 & echo '@@exit 0'; kill -9 $$"]).output().unwrap();
    let (stdout, _) = ended(output, 137);
    assert_eq!(stdout, "@@exit 0\n");
    assert!(started.elapsed() < Duration::from_secs(100), "nobody waits for the sleep");
}

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn a_panic_is_the_labs_failure_and_shows_the_console() {
    let folder = tempfile::tempdir().unwrap();
    let command = ["echo before; sleep 2; echo c > /proc/sysrq-trigger"];
    let output = lab(folder.path(), &["--console", "kept"], &command).output().unwrap();
    let (stdout, stderr) = ended(output, 125);
    assert_eq!(stdout, "before\n");
    assert!(stderr.contains("lab: the guest ended without a result"), "{stderr}");
    assert!(stderr.contains("console: ") && stderr.contains("Kernel panic"), "{stderr}");
    assert!(fs::read_to_string(folder.path().join("kept")).unwrap().contains("Kernel panic"));
}

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn a_command_that_takes_too_long_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    // The time includes that of the boot, which only the host's load knows: more, until the command has begun.
    for seconds in [10, 20, 40, 80, 160] {
        let mut command =
            lab(folder.path(), &["--timeout", &format!("{seconds}s")], &["echo up; sleep 1000"]);
        let (stdout, stderr) = ended(command.output().unwrap(), 125);
        let late = |step| format!("lab: {step} did not end within {seconds} s (--timeout)");
        if stdout == "up\n" {
            return assert!(stderr.contains(&late("the command")), "{stderr}");
        }
        assert!(stdout.is_empty() && stderr.contains(&late("the boot")), "{stdout}{stderr}");
    }
    panic!("no boot within 160 s");
}

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn a_signal_ends_the_guest_at_once_and_leaves_nothing() {
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let (folder, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut child = running(folder.path(), temporary.path());
        assert_eq!(left_behind(temporary.path()).len(), 1, "the folder of the run");
        let sent = Instant::now();
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert!(sent.elapsed() < Duration::from_secs(2), "{:?}", sent.elapsed());
        assert_eq!(processes(temporary.path()), Vec::<String>::new());
        assert_eq!(left_behind(temporary.path()), Vec::<String>::new());
    }
}

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn a_program_below_tmp_runs_from_a_folder_below_tmp_and_its_other_changes_are_lost() {
    let clone = tempfile::Builder::new().prefix("a clone").tempdir_in("/tmp").unwrap();
    let (program, folder) = (clone.path().join("program"), clone.path().join("package"));
    fs::create_dir(&folder).unwrap();
    fs::write(&program, "#!/bin/sh\ncat ../beside; echo kept > here; echo lost > ../there; ls .. | xargs\n")
        .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(clone.path().join("beside"), "seen\n").unwrap();
    let output = lab(&folder, &[], &[program.to_str().unwrap(), "an argument"]).output().unwrap();
    let (stdout, _) = ended(output, 0);
    assert_eq!(stdout, "seen\nbeside package program there\n");
    assert!(folder.join("here").exists() && !clone.path().join("there").exists());
}

/// The folder of the user's cache.
fn user_cache() -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    variable("CANTER_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|path| path.join("canter")))
        .unwrap_or_else(|| variable("HOME").unwrap().join(".cache/canter"))
}

/// A cache with links to the newest 6.12 and its headers in the user's cache. It is beside that one, because the guest hides
/// /tmp, and because the path of this folder may have spaces, which break the kernel's build.
pub fn cache_with_a_kernel() -> tempfile::TempDir {
    ended(lab(Path::new("/"), &[], &["true"]).output().unwrap(), 0); // now the user's cache has a kernel
    let cache = tempfile::tempdir_in(user_cache().parent().unwrap()).unwrap();
    for folder in ["kernels", "headers"] {
        let copy = cache.path().join(folder);
        fs::create_dir(&copy).unwrap();
        for entry in fs::read_dir(user_cache().join(folder)).into_iter().flatten().flatten() {
            let name = text(entry.file_name().as_encoded_bytes());
            if name.contains("6.12.") && !name.contains("-rt-") && !name.starts_with('.') {
                let copied = Command::new("cp").arg("-al").args([&entry.path(), &copy]).status().unwrap();
                assert!(copied.success());
            }
        }
    }
    cache
}

/// The path of a file below a folder.
pub fn find(folder: &Path, name: &str) -> PathBuf {
    let found = Command::new("find").arg(folder).args(["-name", name, "-print", "-quit"]).output().unwrap();
    PathBuf::from(text(&found.stdout).trim_end())
}

/// Runs a command on a machine of this cache; returns its output, and the lab's lines about saved machines.
pub fn restored(cache: &Path, folder: &Path, command: &str) -> (String, String) {
    let mut lab = lab(folder, &["-v"], &[command]);
    let (stdout, stderr) = ended(lab.env("CANTER_CACHE", cache).output().unwrap(), 0);
    let is_report = |line: &&str| line.contains("restoring") || line.ends_with("the machine boots");
    let reported: Vec<_> = stderr.lines().filter(is_report).collect();
    (stdout, reported.join("\n"))
}

pub fn open(path: &Path) -> fs::File {
    fs::File::options().read(true).write(true).open(path).unwrap()
}

fn seconds() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

#[test]
#[ignore = "boots a guest: make test runs it"]
fn a_saved_machine_is_restored_with_another_time_and_other_random_numbers() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), cache_with_a_kernel());
    let boot = "cat /proc/sys/kernel/random/uuid; dmesg | tail -1 | cut -d] -f1; date +%s; ip -br link | grep -c can";
    let (first, reported) = restored(cache.path(), folder.path(), boot);
    assert_eq!(reported, "");
    let mut outputs = vec![first];
    for _ in 0..2 {
        let before = seconds();
        let (output, reported) = restored(cache.path(), folder.path(), boot);
        assert!(
            reported.starts_with("lab: restoring machines/") && reported.lines().count() == 1,
            "{reported}"
        );
        let guest: u64 = output.lines().nth(2).unwrap().parse().unwrap();
        // The clock is set in whole seconds.
        assert!(before <= guest + 1 && guest <= seconds() + 1, "{output}");
        outputs.push(output);
    }
    let line = |output: &String, number: usize| output.lines().nth(number).unwrap().to_owned();
    let mut random: Vec<_> = outputs.iter().map(|output| line(output, 0)).collect();
    random.sort();
    random.dedup();
    assert_eq!(random.len(), 3, "{outputs:?}");
    assert!(outputs.iter().all(|output| line(output, 3) == "5"), "{outputs:?}");
    let symbols = fs::read_to_string(find(&cache.path().join("machines"), "kallsyms")).unwrap();
    assert!(symbols.contains(" can_send\t[can]\n") && symbols.ends_with('\n'));
}

#[test]
#[ignore = "boots a guest: make test runs it"]
fn a_damaged_saved_machine_boots_with_one_line_and_is_saved_again() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), cache_with_a_kernel());
    let run = || restored(cache.path(), folder.path(), "echo here");
    assert_eq!(run(), ("here\n".to_owned(), String::new()));
    // The list of the cache's files has sizes and times, so only its content differs.
    let path = find(&cache.path().join("machines"), "memory");
    let (file, time) = (open(&path), fs::metadata(&path).unwrap().modified().unwrap());
    let mut byte = [0];
    file.read_exact_at(&mut byte, 100_000).unwrap();
    file.write_all_at(&[!byte[0]], 100_000).unwrap();
    file.set_modified(time).unwrap();
    let (output, reported) = run();
    assert!(output == "here\n" && reported.lines().count() == 2, "{output}{reported}");
    assert!(reported.ends_with("it is damaged: the machine boots"), "{reported}");
    assert!(run().1.starts_with("lab: restoring "));
}

/// A terminal of tmux(1), from a server of its own.
struct Terminal(String);

impl Terminal {
    fn ask(&self, words: &[&str]) -> String {
        text(&Command::new("tmux").args(["-L", &self.0]).args(words).output().unwrap().stdout)
    }

    fn type_line(&self, line: &str) {
        self.ask(&["send-keys", line, "Enter"]);
    }

    fn shows(&self, what: &str) -> bool {
        self.ask(&["capture-pane", "-p"]).contains(what)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.ask(&["kill-server"]);
    }
}

/// A study of one gateway on a machine of its own.
fn study(folder: &Path, name: &str, words: &str) -> String {
    let text = format!(
        "name = {name:?}\ntitle = \"\"\nsource = \"\"\n[lab]\nkernels = [\"6.12\"]\nclock = \"virtual\"\ncpus = 1\n\
         append = [{words:?}]\n[latency]\nmethods = [\"can-gw\"]\nlens = [2]\ncount = 300\n"
    );
    let path = folder.join(format!("{name}.toml"));
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
#[ignore = "boots guests: make test runs it"]
fn studies_on_two_machines_are_measured_side_by_side_and_interrupted_together() {
    let (folder, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let studies = [study(folder.path(), "ticking", "nohz=off"), study(folder.path(), "tickless", "nohz=on")];
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_canter"));
        command.args(["study", "run", "--jobs", "2", "--out", "results"]).args(&studies);
        command.current_dir(folder.path()).env("TMPDIR", temporary.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let both = run().spawn().unwrap();
    eventually("two QEMUs run", || processes(temporary.path()).len() == 2);
    signal(&both, "INT");
    ended(both.wait_with_output().unwrap(), 130);
    assert_eq!(processes(temporary.path()), [""; 0]);

    let (_, stderr) = ended(run().output().unwrap(), 0);
    for name in ["ticking", "tickless"] {
        assert!(stderr.contains(&format!("results/{name}.json: written")), "{stderr}");
        let result = fs::read_to_string(folder.path().join(format!("results/{name}.json"))).unwrap();
        let result: serde_json::Value = serde_json::from_str(&result).unwrap();
        let words = result["environment"]["cmdline"].as_str().unwrap();
        assert_eq!(words.contains("nohz=off"), name == "ticking", "{words}");
        assert_eq!(result["series"][0]["ledger"]["received"], 300, "{result}");
    }
}

#[test]
#[ignore = "starts guests: make test ONLY=lab"]
fn the_shell_has_a_terminal_that_follows_the_size_of_the_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let terminal = Terminal(format!("canter-test-{}", std::process::id()));
    let line = format!("cd {} && '{}' lab", folder.path().display(), env!("CARGO_BIN_EXE_canter"));
    terminal.ask(&["new-session", "-d", "-x", "90", "-y", "24", &line]);
    eventually("the shell has a prompt", || terminal.shows("Try: canter generate") && terminal.shows("lab:"));
    for (columns, rows) in [("70", "17"), ("101", "31")] {
        terminal.ask(&["resize-window", "-x", columns, "-y", rows]);
        let size = terminal.ask(&["display-message", "-p", "is #{pane_height} #{pane_width}."]);
        eventually("the guest's terminal has the host's size", || {
            terminal.type_line("clear; echo is $(stty size).");
            std::thread::sleep(Duration::from_millis(300)); // the guest's answer, before the next question
            terminal.shows(size.trim())
        });
    }
    terminal.type_line("exit");
    eventually("exit ends the lab", || terminal.ask(&["list-sessions"]).is_empty());
}
