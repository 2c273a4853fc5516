//@ machine: host --ignored
//@ in: all
//@ limit: 20m
//! `canter lab` from outside in every kind of trouble, with every kernel and all of its cache. The gate has `lab`, whose
//! tests are those that a change of the lab breaks first.

use crate::lab::{
    cache_with_a_kernel, ended, find, lab, left_behind, open, processes, restored, running, signal, value,
};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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
    let message = "lab: the command ended, but the guest's kernel does not let go of ";
    let named = stderr.lines().find_map(|line| line.split_once(message)).map(|(_, named)| named);
    assert!(named.is_some_and(|named| named.ends_with("(python3)")), "{stderr}");
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
fn qemus_own_refusal_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let output = lab(folder.path(), &["--memory", "1M"], &["true"]).output().unwrap();
    let (_, stderr) = ended(output, 125);
    assert!(stderr.contains("QEMU refused to start") && stderr.contains("qemu: "), "{stderr}");
}

#[test]
#[ignore = "starts a guest: make test ONLY=lab_trouble"]
fn a_guest_with_more_memory_than_the_host_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let output = lab(folder.path(), &["--memory", "1000000G"], &["true"]).output().unwrap();
    let (_, stderr) = ended(output, 125);
    assert!(
        stderr.starts_with("canter: lab: the guest's memory, 1024000000M, is more than this host's "),
        "{stderr}"
    );
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn a_killed_lab_takes_qemu_with_it_and_the_next_sweeps_up() {
    let (folder, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut child = running(folder.path(), temporary.path());
    signal(&child, "KILL");
    child.wait().unwrap();
    let sent = Instant::now();
    while !processes(temporary.path()).is_empty() {
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

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn a_damaged_module_of_the_cache_is_built_again_with_one_line() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), cache_with_a_kernel());
    let wire = || {
        let output = lab(folder.path(), &["--bus", "wire"], &["cat /sys/class/net/wcan0/type"])
            .env("CANTER_CACHE", cache.path())
            .output();
        let (stdout, stderr) = ended(output.unwrap(), 0);
        assert_eq!(stdout, "280\n");
        stderr
    };
    assert!(wire().contains("lab: building modules for 6.12."));
    assert!(!wire().contains("building"), "the module is in the cache");
    fs::remove_file(find(&cache.path().join("drivers"), "canwire.ko")).unwrap();
    let stderr = wire();
    let wanted = "canwire/canwire.ko is missing: making it again\n";
    assert_eq!(stderr.matches(wanted).count(), 1, "{stderr}");
}

#[test]
#[ignore = "boots a guest: make test runs it"]
fn a_saved_machine_that_is_cut_short_or_another_one_boots_with_one_line_and_is_saved_again() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), cache_with_a_kernel());
    let machines = cache.path().join("machines");
    let run = || {
        let (output, reported) = restored(cache.path(), folder.path(), "echo here");
        assert_eq!(output, "here\n");
        reported
    };
    assert_eq!(run(), "");
    open(&find(&machines, "state")).set_len(100_000).unwrap();
    let reported = run();
    assert!(reported.ends_with("state has changed: the machine boots"), "{reported}");
    assert_eq!(reported.lines().count(), 1, "{reported}");
    assert!(run().starts_with("lab: restoring "));
    // Of another version, or of another machine whose name is the same by chance.
    let description = find(&machines, "description");
    let (text, time) =
        (fs::read_to_string(&description).unwrap(), fs::metadata(&description).unwrap().modified().unwrap());
    fs::write(&description, text.replacen("machine 2", "machine 0", 1)).unwrap();
    open(&description).set_modified(time).unwrap();
    let reported = run();
    assert!(reported.ends_with("it is another machine: the machine boots"), "{reported}");
    assert!(run().starts_with("lab: restoring "));
    let output = lab(folder.path(), &["-v", "--boot"], &["true"]).env("CANTER_CACHE", cache.path()).output();
    assert!(!ended(output.unwrap(), 0).1.contains("restoring"), "--boot boots");
}

#[test]
#[ignore = "boots a guest: make test runs it"]
fn two_labs_that_would_save_a_machine_at_once_both_run_and_one_is_kept() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), cache_with_a_kernel());
    let start = || lab(folder.path(), &[], &["echo here"]).env("CANTER_CACHE", cache.path()).spawn().unwrap();
    for child in [start(), start()] {
        assert_eq!(ended(child.wait_with_output().unwrap(), 0).0, "here\n");
    }
    assert_eq!(fs::read_dir(cache.path().join("machines")).unwrap().count(), 1);
}

#[test]
#[ignore = "boots a guest: make test runs it"]
fn without_room_for_the_saved_machine_the_command_runs_all_the_same() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), cache_with_a_kernel());
    let machines = cache.path().join("machines");
    fs::create_dir(&machines).unwrap();
    let canter = env!("CARGO_BIN_EXE_canter");
    let script = format!(
        "mount -t tmpfs -o size=2M small '{0}' && cd '{1}' && '{canter}' -v lab --timeout 3m -- echo here; \
         code=$?; find '{0}' -mindepth 1 | wc -l >&2; exit $code",
        machines.display(),
        folder.path().display(),
    );
    let mut small = Command::new("unshare");
    small
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
        .env("CANTER_CACHE", cache.path());
    let (stdout, stderr) = ended(small.stdin(Stdio::null()).output().unwrap(), 0);
    assert_eq!(stdout, "here\n");
    let lines: Vec<_> = stderr.lines().filter(|line| line.contains("machine is not saved")).collect();
    assert!(lines.len() == 1 && lines[0].contains("No space left on device"), "{stderr}");
    assert!(stderr.ends_with("\n0\n"), "nothing is left: {stderr}");
}

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn clean_removes_what_no_lab_uses_and_a_running_guest_goes_on() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), cache_with_a_kernel());
    let clean = || {
        let mut clean = Command::new(env!("CARGO_BIN_EXE_canter"));
        let output = clean.args(["lab", "--clean"]).env("CANTER_CACHE", cache.path()).output().unwrap();
        ended(output, 0).0
    };
    let mut guest = lab(folder.path(), &[], &["echo up; read go; modprobe can-isotp && echo went on"])
        .env("CANTER_CACHE", cache.path())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut byte = [0; 3];
    std::io::Read::read_exact(guest.stdout.as_mut().unwrap(), &mut byte).unwrap();
    let said = clean();
    assert!(said.starts_with("removed ") && said.contains(" MB: "), "{said}");
    let kept = format!(": the lab of process {} uses it\n", guest.id());
    assert!(said.contains("kept kernels/linux-image-6.12.") && said.contains(&kept), "{said}");
    assert!(!cache.path().join("headers").exists() && cache.path().join("kernels").exists());
    guest.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let (stdout, _) = ended(guest.wait_with_output().unwrap(), 0);
    assert_eq!(stdout, "went on\n");
    assert!(clean().starts_with("removed 1 entry, "));
    assert_eq!(left_behind(cache.path()), ["locks"]);
}

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn a_lab_that_waits_for_another_one_names_it_and_can_be_interrupted() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    const KERNEL: &str = "linux-image-6.12.1+deb12-amd64";
    fs::create_dir_all(cache.path().join("kernels").join(KERNEL)).unwrap();
    fs::create_dir(cache.path().join("locks")).unwrap();
    let lock = cache.path().join("locks").join(format!("kernels-{KERNEL}"));
    let mut flock = Command::new("flock");
    flock.arg(&lock).args(["-c", "echo held; read go"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut holder = flock.spawn().unwrap();
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut [0; 5]).unwrap();
    fs::write(&lock, holder.id().to_string()).unwrap();
    let mut waiting = lab(folder.path(), &[], &["true"]).env("CANTER_CACHE", cache.path()).spawn().unwrap();
    let mut line = String::new();
    let mut stderr = std::io::BufReader::new(waiting.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
    let wanted =
        format!("lab: waiting for the lab of process {}, which makes kernels/{KERNEL}\n", holder.id());
    assert_eq!(line, wanted);
    signal(&waiting, "INT");
    assert_eq!(waiting.wait().unwrap().code(), Some(130));
    drop(holder.stdin.take());
    holder.wait().unwrap();
}

#[test]
#[ignore = "boots guests: make test ONLY=lab"]
fn a_kernel_that_apt_does_not_offer_is_named_with_those_that_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let output = lab(folder.path(), &["--kernel", "4.4-rt"], &["true"]).output().unwrap();
    let (_, stderr) = ended(output, 125);
    // Before it, once a day, the lab says that it updates the lists of other suites.
    let complaint = stderr.lines().last().unwrap();
    let offered = complaint.strip_prefix("canter: lab: kernel 4.4-rt: not offered (offered: ");
    assert!(offered.is_some_and(|kernels| kernels.contains("6.12")), "{stderr}");
}
