//@ machine: host --ignored
//@ limit: 20m
//! `canter lab` from outside: real guests, as few as will do.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn lab(folder: &Path, options: &[&str], command: &[&str]) -> Command {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_canter"));
    let limit: &[&str] = if options.contains(&"--timeout") { &[] } else { &["--timeout", "3m"] };
    lab.current_dir(folder).arg("lab").args(limit).args(options).arg("--").args(command);
    lab.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    lab
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The output of a command that must have ended with `code`.
#[track_caller]
fn ended(output: Output, code: i32) -> (String, String) {
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "stdout: {stdout}\nstderr: {stderr}");
    (stdout, stderr)
}

/// The value of the line `name=value`.
#[track_caller]
fn value<'a>(stdout: &'a str, name: &str) -> &'a str {
    let line = stdout.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    line.unwrap_or_else(|| panic!("no {name}= in {stdout}"))
}

/// The processes whose command line contains `mark`.
fn processes(mark: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines =
        entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok()).map(|line| text(&line));
    lines.filter(|line| line.contains(mark) && line.contains("qemu-system")).collect()
}

/// Starts a lab with a command that goes on, and waits until it has said `up`.
fn running(folder: &Path, temporary: &Path, mark: &str) -> Child {
    let append = format!("canter.test={mark}");
    let mut command = lab(folder, &["--append", &append], &["echo up; sleep 1000"]);
    let mut child = command.env("TMPDIR", temporary).spawn().unwrap();
    let mut byte = [0; 3];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut byte).unwrap();
    assert_eq!(&byte, b"up\n");
    assert_eq!(processes(mark).len(), 1, "one QEMU runs");
    child
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

fn left_behind(temporary: &Path) -> Vec<String> {
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
echo "links=$(ip -br link | awk '{ print $1 ":" $2 }' | xargs)"
echo "modprobe=$(modprobe can-isotp && grep -c ^can_isotp /proc/modules)"
echo "modules=$([ "$(ls /lib/modules)" = "$(uname -r)" ] && echo of the kernel that runs)"
echo "version=$(canter --version)"
echo "program=$(cp "$(command -v canter)" ./own && ./own --version)"
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
fn the_machine_is_what_the_documentation_says() {
    // Below /tmp, which is the guest's own, and with characters that QEMU and shells take for theirs.
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
    assert!(cmdline.contains("quiet noautogroup canter.lab=1 canter.clock=real canter.accel="), "{cmdline}");
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
fn fifty_megabytes_come_through_all_three_streams_byte_for_byte() {
    const BYTES: usize = 50_000_000;
    let mut state = 88_172_645_463_325_252_u64;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    let data: Vec<u8> = (0..BYTES).map(next).collect();
    let folder = tempfile::tempdir().unwrap();
    let mut child =
        lab(folder.path(), &[], &["tee /dev/stderr written"]).stdin(Stdio::piped()).spawn().unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), data.clone());
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout == data, "standard output: {} bytes", output.stdout.len());
    assert!(output.stderr == data, "standard error: {} bytes", output.stderr.len());
    assert!(fs::read(folder.path().join("written")).unwrap() == data, "the file in the share is complete");
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

/// A thread that writes to a frozen file system cannot be killed; the first thread of its process can.
#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn a_process_that_the_kernel_does_not_let_go_is_named_and_does_not_keep_the_machine_up() {
    let folder = tempfile::tempdir().unwrap();
    let command = "truncate -s 8M /tmp/disk && mkfs.ext4 -q /tmp/disk && modprobe -a loop ext4 && \
        mount -o loop /tmp/disk /mnt && fsfreeze --freeze /mnt && \
        { python3 -c 'import threading; threading.Thread(target=lambda: open(\"/mnt/file\", \"w\")).start()' & } && \
        until grep -qs percpu_rwsem_wait /proc/$!/task/*/wchan; do sleep 0.1; done; echo frozen";
    let output = lab(folder.path(), &["--timeout", "30m"], &[command]).output().unwrap();
    let (stdout, stderr) = ended(output, 125);
    assert_eq!(stdout, "frozen\n", "{stderr}");
    let told = "lab: the command ended, but the guest's kernel does not let go of ";
    let named = stderr.lines().find_map(|line| line.split_once(told)).map(|(_, named)| named);
    assert!(named.is_some_and(|named| named.ends_with("(python3)")), "{stderr}");
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
fn a_boot_that_fails_before_the_command_is_repeated_once() {
    let folder = tempfile::tempdir().unwrap();
    let output = lab(folder.path(), &["--append", "rdinit=/none init=/none"], &["true"]).output().unwrap();
    let (_, stderr) = ended(output, 125);
    assert_eq!(
        stderr.matches("lab: boot failed before the command began: booting once more").count(),
        1,
        "{stderr}"
    );
    assert!(stderr.contains("lab: the guest ended before the command began"), "{stderr}");
    assert!(stderr.contains("Kernel panic"), "{stderr}");
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
fn qemus_own_refusal_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let output = lab(folder.path(), &["--memory", "1M"], &["true"]).output().unwrap();
    let (_, stderr) = ended(output, 125);
    assert!(stderr.contains("QEMU refused to start") && stderr.contains("qemu: "), "{stderr}");
}

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn a_signal_ends_the_guest_at_once_and_leaves_nothing() {
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let (folder, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mark = format!("{}-{name}", std::process::id());
        let mut child = running(folder.path(), temporary.path(), &mark);
        assert_eq!(left_behind(temporary.path()).len(), 1, "the folder of the run");
        let sent = Instant::now();
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert!(sent.elapsed() < Duration::from_secs(2), "{:?}", sent.elapsed());
        assert_eq!(processes(&mark), Vec::<String>::new());
        assert_eq!(left_behind(temporary.path()), Vec::<String>::new());
    }
}

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn a_killed_lab_takes_qemu_with_it_and_the_next_sweeps_up() {
    let (folder, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mark = format!("{}-killed", std::process::id());
    let mut child = running(folder.path(), temporary.path(), &mark);
    signal(&child, "KILL");
    child.wait().unwrap();
    let sent = Instant::now();
    while !processes(&mark).is_empty() {
        assert!(sent.elapsed() < Duration::from_secs(3), "QEMU lives on");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(left_behind(temporary.path()).len(), 1, "nobody was there to remove it");
    let output = lab(folder.path(), &["--memory", "1M"], &["true"]).env("TMPDIR", temporary.path()).output();
    ended(output.unwrap(), 125);
    assert_eq!(left_behind(temporary.path()), Vec::<String>::new());
}

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn a_reader_who_leaves_ends_the_guest() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = lab(folder.path(), &[], &["yes"]).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut line = [0; 2];
    std::io::Read::read_exact(&mut stdout, &mut line).unwrap();
    drop(stdout);
    assert_eq!(child.wait().unwrap().code(), Some(141), "128 + SIGPIPE");
}

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn the_virtual_clock_counts_instructions_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let output = lab(
        folder.path(),
        &["--clock", "virtual", "--shift", "1", "--cards", "2"],
        &["cat /proc/cmdline; ls /sys/class/net"],
    )
    .output()
    .unwrap();
    let (stdout, _) = ended(output, 0);
    assert!(stdout.contains("canter.clock=virtual canter.shift=1 canter.accel=tcg canter.qemu="), "{stdout}");
    assert!(stdout.contains("can1\n") && !stdout.contains("can2\n"), "two cards: {stdout}");
}

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn the_root_directory_is_not_written_to() {
    let output = lab(Path::new("/"), &[], &["touch /canter-lab-test && pwd"]).output().unwrap();
    let (stdout, stderr) = ended(output, 0);
    assert_eq!(stdout, "/\n");
    assert!(stderr.contains("the current directory is /"), "{stderr}");
    assert!(!Path::new("/canter-lab-test").exists());
}

const FD: &str = r#"
for each in 5 6 7 8; do ip link set can$each up type can bitrate 500000 dbitrate 2000000 fd on; done
echo "mtu=$(cat /sys/class/net/can[5678]/mtu | xargs)"
echo "network=$(ip -br link | grep -c ^eth)"
for each in 6 7 8; do timeout 20 candump -n 1 can$each > /tmp/seen$each & done
until [ "$(grep -c ' can[678] ' /proc/net/can/rcvlist_all)" = 3 ]; do sleep 0.02; done; cansend can5 123##11122334455667788; wait
echo "frames=$(cat /tmp/seen? | xargs)"
"#;

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

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn the_fd_cards_carry_fd_frames_on_every_kernel() {
    for kernel in ["6.12", "6.1", "6.12-rt", "6.1-rt"] {
        let folder = tempfile::tempdir().unwrap();
        let output =
            lab(folder.path(), &["--kernel", kernel, "--fd-cards", "2", "--net"], &[FD]).output().unwrap();
        let (stdout, _) = ended(output, 0);
        assert_eq!(value(&stdout, "mtu"), "72 72 72 72", "{kernel}");
        assert_eq!(value(&stdout, "network"), "2", "{kernel}");
        assert_eq!(
            value(&stdout, "frames"),
            "can6 123 [08] 11 22 33 44 55 66 77 88 can7 123 [08] 11 22 33 44 55 66 77 88",
            "{kernel}: can5 can6 can7 are on bus A, can8 is on bus B"
        );
    }
}

/// The user's cache.
fn cache() -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    variable("CANTER_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|path| path.join("canter")))
        .unwrap_or_else(|| variable("HOME").unwrap().join(".cache/canter"))
}

/// A cache with the same newest 6.12 and its headers, by links to the same files. Beside the user's: not below /tmp, which the
/// guest hides, nor below this folder, whose path may have spaces, which the kernel's build does not take.
fn cache_with_a_kernel() -> tempfile::TempDir {
    ended(lab(Path::new("/"), &[], &["true"]).output().unwrap(), 0); // now the user's cache has a kernel
    let own = tempfile::tempdir_in(cache().parent().unwrap()).unwrap();
    for folder in ["kernels", "headers"] {
        let to = own.path().join(folder);
        fs::create_dir(&to).unwrap();
        for entry in fs::read_dir(cache().join(folder)).into_iter().flatten().flatten() {
            let name = text(entry.file_name().as_encoded_bytes());
            if name.contains("6.12.") && !name.contains("-rt-") && !name.starts_with('.') {
                let copied = Command::new("cp").arg("-al").args([&entry.path(), &to]).status().unwrap();
                assert!(copied.success());
            }
        }
    }
    own
}

/// The path of a file below a folder.
fn find(folder: &Path, name: &str) -> PathBuf {
    let found = Command::new("find").arg(folder).args(["-name", name, "-print", "-quit"]).output().unwrap();
    PathBuf::from(text(&found.stdout).trim_end())
}

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn a_damaged_module_of_the_cache_is_built_again_with_one_line() {
    let (folder, own) = (tempfile::tempdir().unwrap(), cache_with_a_kernel());
    let wire = || {
        let output = lab(folder.path(), &["--bus", "wire"], &["cat /sys/class/net/wcan0/type"])
            .env("CANTER_CACHE", own.path())
            .output();
        let (stdout, stderr) = ended(output.unwrap(), 0);
        assert_eq!(stdout, "280\n");
        stderr
    };
    assert!(wire().contains("lab: building modules for 6.12."));
    assert!(!wire().contains("building"), "the module is in the cache");
    fs::remove_file(find(&own.path().join("drivers"), "canwire.ko")).unwrap();
    let stderr = wire();
    let wanted = "canwire/canwire.ko is missing: making it again\n";
    assert_eq!(stderr.matches(wanted).count(), 1, "{stderr}");
}

/// Runs a command on a machine of this cache; returns its output, and what the lab said of saved machines.
fn restored(cache: &Path, folder: &Path, command: &str) -> (String, String) {
    let mut lab = lab(folder, &["-v"], &[command]);
    let (stdout, stderr) = ended(lab.env("CANTER_CACHE", cache).output().unwrap(), 0);
    let is_told = |line: &&str| line.contains("restoring") || line.ends_with("the machine boots");
    let told: Vec<_> = stderr.lines().filter(is_told).collect();
    (stdout, told.join("\n"))
}

fn seconds() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

#[test]
#[ignore = "boots a guest: make test runs it"]
fn a_saved_machine_is_restored_with_another_time_and_other_random_numbers() {
    let (folder, own) = (tempfile::tempdir().unwrap(), cache_with_a_kernel());
    let boot = "cat /proc/sys/kernel/random/uuid; dmesg | tail -1 | cut -d] -f1; date +%s; ip -br link | grep -c can";
    let (first, told) = restored(own.path(), folder.path(), boot);
    assert_eq!(told, "");
    let mut outputs = vec![first];
    for _ in 0..2 {
        let before = seconds();
        let (output, told) = restored(own.path(), folder.path(), boot);
        assert!(told.starts_with("lab: restoring machines/") && told.lines().count() == 1, "{told}");
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
    let symbols = fs::read_to_string(find(&own.path().join("machines"), "kallsyms")).unwrap();
    assert!(symbols.contains(" can_send\t[can]\n") && symbols.ends_with('\n'));
    let output = lab(folder.path(), &["-v", "--boot"], &["true"]).env("CANTER_CACHE", own.path()).output();
    assert!(!ended(output.unwrap(), 0).1.contains("restoring"), "--boot boots");
}

#[test]
#[ignore = "boots a guest: make test runs it"]
fn a_saved_machine_that_cannot_be_restored_boots_with_one_line_and_is_saved_again() {
    let (folder, own) = (tempfile::tempdir().unwrap(), cache_with_a_kernel());
    let memory = || find(&own.path().join("machines"), "memory.zst");
    let run = || {
        let (output, told) = restored(own.path(), folder.path(), "echo here");
        assert_eq!(output, "here\n");
        told
    };
    assert_eq!(run(), "");
    // The list of the cache's files has sizes and times, so only its content differs.
    let file = memory();
    let (mut bytes, time) = (fs::read(&file).unwrap(), fs::metadata(&file).unwrap().modified().unwrap());
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4].iter_mut().for_each(|byte| *byte = !*byte);
    fs::write(&file, bytes).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
    let told = run();
    assert!(told.lines().count() == 2 && told.ends_with(": the machine boots"), "{told}");
    assert!(run().starts_with("lab: restoring "));
    // Cut short.
    let file = fs::File::options().write(true).open(memory()).unwrap();
    file.set_len(100_000).unwrap();
    let told = run();
    assert!(
        told.ends_with("memory.zst has changed: the machine boots") && told.lines().count() == 1,
        "{told}"
    );
    assert!(run().starts_with("lab: restoring "));
    // Of another version, or of another machine whose name is the same by chance.
    let description = find(&own.path().join("machines"), "description");
    let (text, time) =
        (fs::read_to_string(&description).unwrap(), fs::metadata(&description).unwrap().modified().unwrap());
    fs::write(&description, text.replacen("machine 1", "machine 0", 1)).unwrap();
    fs::File::options().write(true).open(&description).unwrap().set_modified(time).unwrap();
    let told = run();
    assert!(told.ends_with("it is another machine: the machine boots"), "{told}");
    assert!(run().starts_with("lab: restoring "));
}

#[test]
#[ignore = "boots a guest: make test runs it"]
fn two_labs_that_would_save_a_machine_at_once_both_run_and_one_is_kept() {
    let (folder, own) = (tempfile::tempdir().unwrap(), cache_with_a_kernel());
    let start = || lab(folder.path(), &[], &["echo here"]).env("CANTER_CACHE", own.path()).spawn().unwrap();
    for child in [start(), start()] {
        assert_eq!(ended(child.wait_with_output().unwrap(), 0).0, "here\n");
    }
    assert_eq!(fs::read_dir(own.path().join("machines")).unwrap().count(), 1);
}

#[test]
#[ignore = "boots a guest: make test runs it"]
fn without_room_for_the_saved_machine_the_command_runs_all_the_same() {
    let (folder, own) = (tempfile::tempdir().unwrap(), cache_with_a_kernel());
    let machines = own.path().join("machines");
    fs::create_dir(&machines).unwrap();
    let canter = env!("CARGO_BIN_EXE_canter");
    let script = format!(
        "mount -t tmpfs -o size=2M small '{0}' && cd '{1}' && '{canter}' -v lab --timeout 3m -- echo here; \
         code=$?; find '{0}' -mindepth 1 | wc -l >&2; exit $code",
        machines.display(),
        folder.path().display(),
    );
    let mut small = Command::new("unshare");
    small.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]).env("CANTER_CACHE", own.path());
    let (stdout, stderr) = ended(small.stdin(Stdio::null()).output().unwrap(), 0);
    assert_eq!(stdout, "here\n");
    let lines: Vec<_> = stderr.lines().filter(|line| line.contains("machine is not saved")).collect();
    assert!(lines.len() == 1 && lines[0].contains("No space left on device"), "{stderr}");
    assert!(stderr.ends_with("\n0\n"), "nothing is left: {stderr}");
}

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn clean_removes_what_no_lab_uses_and_a_running_guest_goes_on() {
    let (folder, own) = (tempfile::tempdir().unwrap(), cache_with_a_kernel());
    let clean = || {
        let mut clean = Command::new(env!("CARGO_BIN_EXE_canter"));
        let output = clean.args(["lab", "--clean"]).env("CANTER_CACHE", own.path()).output().unwrap();
        ended(output, 0).0
    };
    let mut guest = lab(folder.path(), &[], &["echo up; read go; modprobe can-isotp && echo went on"])
        .env("CANTER_CACHE", own.path())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut byte = [0; 3];
    std::io::Read::read_exact(guest.stdout.as_mut().unwrap(), &mut byte).unwrap();
    let said = clean();
    assert!(said.starts_with("removed ") && said.contains(" MB: "), "{said}");
    let kept = format!(": the lab of process {} uses it\n", guest.id());
    assert!(said.contains("kept kernels/linux-image-6.12.") && said.contains(&kept), "{said}");
    assert!(!own.path().join("headers").exists() && own.path().join("kernels").exists());
    guest.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let (stdout, _) = ended(guest.wait_with_output().unwrap(), 0);
    assert_eq!(stdout, "went on\n");
    assert!(clean().starts_with("removed 1 entry, "));
    assert_eq!(left_behind(own.path()), ["locks"]);
}

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn a_lab_that_waits_for_another_one_names_it_and_can_be_interrupted() {
    let (folder, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    const KERNEL: &str = "linux-image-6.12.1+deb12-amd64";
    fs::create_dir_all(own.path().join("kernels").join(KERNEL)).unwrap();
    fs::create_dir(own.path().join("locks")).unwrap();
    let lock = own.path().join("locks").join(format!("kernels-{KERNEL}"));
    let mut flock = Command::new("flock");
    flock.arg(&lock).args(["-c", "echo held; read go"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut other = flock.spawn().unwrap();
    std::io::Read::read_exact(other.stdout.as_mut().unwrap(), &mut [0; 5]).unwrap();
    fs::write(&lock, other.id().to_string()).unwrap();
    let mut waiting = lab(folder.path(), &[], &["true"]).env("CANTER_CACHE", own.path()).spawn().unwrap();
    let mut line = String::new();
    let mut stderr = std::io::BufReader::new(waiting.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
    let wanted =
        format!("lab: waiting for the lab of process {}, which makes kernels/{KERNEL}\n", other.id());
    assert_eq!(line, wanted);
    signal(&waiting, "INT");
    assert_eq!(waiting.wait().unwrap().code(), Some(130));
    drop(other.stdin.take());
    other.wait().unwrap();
}

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn a_kernel_that_apt_does_not_offer_is_named_with_those_that_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let output = lab(folder.path(), &["--kernel", "4.4-rt"], &["true"]).output().unwrap();
    let (_, stderr) = ended(output, 125);
    let wanted = "lab: kernel 4.4-rt: apt offers no package matching linux-image-4.4.*-rt-amd64 (apt-get update first?";
    assert!(stderr.contains(wanted), "{stderr}");
    assert!(stderr.contains("6.12"), "{stderr}");
}
