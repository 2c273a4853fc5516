//@ machine: host
//@ also: all --kernel 6.1 --cpus 2
//@ or: --cpus 2
//! The files of `canter capture` on buses of TUN devices: rows of them, compressed, and what is left of them after SIGKILL.

use crate::namespaces::ran_in_namespaces;
use crate::recorder::*;
use crate::testbed::program;
use crate::tun_bus::TunBuses;
use canter_io::process;
use serde_json::Value;
use std::{fs, os::unix::net::UnixDatagram, process::Command, time::Duration};

/// The paths of the files that an account names.
fn files(account: &Value) -> Vec<String> {
    let name = |file: &Value| file["name"].as_str().unwrap().to_owned();
    account["files"].as_array().unwrap().iter().map(name).collect()
}

/// The sizes of all recordings on a disk, in bytes.
fn written(disk: &Disk) -> u64 {
    fs::read_dir(&disk.0)
        .unwrap()
        .flatten()
        .map(|entry| entry.metadata().map_or(0, |about| about.len()))
        .sum()
}

mod a_row_of_files_has_every_frame_once_and_each_file_is_complete {
    use super::*;

    #[test]
    fn logs() {
        row("log", "200K");
    }

    #[test]
    fn pcapng() {
        row("pcapng", "400K");
    }

    #[test]
    fn compressed_logs() {
        row("log.zst", "40K");
    }

    #[test]
    fn compressed_pcapng() {
        row("pcapng.zst", "60K");
    }
}

/// Records to a row of files whose names end with `end`, each of at most `size`.
#[track_caller]
fn row(end: &str, size: &str) {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("row", "64M"), TunBuses::new("ka", 3));
    let file = disk.file(&format!("a.{end}"));
    let capture = Capture::start(&["ka0", "ka1", "ka2", "-o", &file, "--rotate-size", size]);
    let mut senders = buses.senders();
    for part in 0..6 {
        let before = written(&disk);
        send(&mut senders, part * 1000, (part + 1) * 1000);
        // It compresses at each write, and begins a new file between two writes: there are to be several.
        if part < 3 {
            eventually("it writes", || written(&disk) > before);
        }
    }
    let ended = capture.stop();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let account = account(&file);
    let names = files(&account);
    assert!(names.len() >= 2, "{end}: {}", ended.said);
    assert!(names.is_sorted() && ended.said.contains(names.last().unwrap()), "{}", ended.said);
    assert_eq!(account["frames"], 18_000);
    let all = disk.file("all");
    for (name, about) in names.iter().zip(account["files"].as_array().unwrap()) {
        let frames = about["frames"].as_u64().unwrap();
        assert_eq!(fs::metadata(name).unwrap().len(), about["bytes"].as_u64().unwrap(), "{about}");
        let bare = if end.ends_with("zst") {
            sh(&format!("zstd -qdfc {name} > {name}.bare; echo {name}.bare"))
        } else {
            name.clone()
        };
        let bare = bare.trim();
        if end.starts_with("log") {
            assert_eq!(fs::read_to_string(bare).unwrap().lines().count() as u64, frames);
            sh(&format!("cat {bare} >> {all}"));
        } else if has("tshark") {
            let fields = "-T fields -e frame.interface_name -e data -e frame.time_epoch";
            sh(&format!("tshark -r {bare} {fields} > {bare}.text && cat {bare}.text >> {all}"));
            let read = fs::read_to_string(format!("{bare}.text")).unwrap().lines().count() as u64;
            assert_eq!(read, frames, "{bare}");
        }
    }
    if end.starts_with("log") {
        assert_all(&all, &buses.names(), 6000);
    } else if has("tshark") {
        assert_eq!(sh(&format!("sort -u {all} | wc -l")).trim(), "18000", "{end}");
    }
}

#[test]
fn a_ring_of_files_keeps_the_last_and_counts_what_made_room() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("keep", "16M"), TunBuses::new("kb", 1));
    let file = disk.file("a.log");
    let capture = Capture::start(&["kb0", "-o", &file, "--rotate-time", "400ms", "--keep", "2"]);
    let mut senders = buses.senders();
    for part in 0..8 {
        send(&mut senders, part * 100, (part + 1) * 100);
        std::thread::sleep(Duration::from_millis(300)); // the traffic: one part in each file or in two
    }
    let ended = capture.stop();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let account = account(&file);
    let names = files(&account);
    let existing = sh(&format!("ls {}/a-*.log", disk.0.display()));
    assert_eq!(existing.split_whitespace().collect::<Vec<_>>(), names);
    assert_eq!((names.len(), account["frames"].as_u64()), (2, Some(800)), "{account}");
    let kept: u64 = names.iter().map(|name| fs::read_to_string(name).unwrap().lines().count() as u64).sum();
    assert_eq!(account["deleted"]["frames"], 800 - kept, "{account}");
    assert!(account["deleted"]["files"].as_u64().unwrap() >= 1 && kept >= 1, "{account}");

    // A second recording does not write over the first.
    let again = refused(&["kb0", "-o", &file, "--rotate-time", "1s"]);
    assert!(again.said.contains("--overwrite replaces it"), "{}", again.said);
    let none = disk.file("none.log");
    for (arguments, says) in [
        (["kb0", "-o", &none, "--keep", "3"], "--keep, --keep-free and --keep-age: need --rotate-size"),
        (["kb0", "-o", &none, "--flush-interval", "1ms"], "at least 500 ms"),
        (["kb0", "-o", &none, "--rotate-time", "0s"], "must be more than 0"),
    ] {
        let ended = refused(&arguments);
        assert!(ended.code == Some(2) && ended.said.contains(says), "{:?} {}", ended.code, ended.said);
    }
}

/// Fills a disk; returns the file that takes all its space.
fn fill(disk: &Disk) -> String {
    let filler = disk.file("filler");
    fs::write(&filler, vec![0; 64 << 20]).unwrap_err();
    filler
}

#[test]
fn a_recording_continues_in_another_file_when_a_full_disk_has_room_again() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("again", "4M"), TunBuses::new("kc", 1));
    for end in ["log", "log.zst"] {
        let (file, next) = (disk.file(&format!("a.{end}")), disk.file(&format!("a-000002.{end}")));
        let mut capture = Capture::start(&["kc0", "-o", &file]);
        send(&mut buses.senders(), 0, 100);
        eventually("it writes", || fs::metadata(&file).unwrap().len() > 0);
        let filler = fill(&disk);
        send(&mut buses.senders(), 100, 10_000);
        capture.until_it_says(&[&file, "no space left", "until another file can be written"]);
        fs::remove_file(filler).unwrap();
        capture.until_it_says(&[&next, "the recording continues here"]);
        send(&mut buses.senders(), 10_000, 10_200);
        let ended = capture.stop();
        let account = account(&file);
        assert_eq!(
            (ended.code, files(&account)),
            (Some(3), vec![file.clone(), next.clone()]),
            "{}",
            ended.said
        );
        let lines = |file: &str| sh(&format!("zstdcat -f {file} | wc -l")).trim().parse::<u64>().unwrap();
        let kept = lines(&file) + lines(&next);
        assert_eq!(
            (account["frames"].as_u64(), account["lost"]["disk"].as_u64()),
            (Some(kept), Some(10_200 - kept))
        );
        assert!(lines(&next) >= 200 && lines(&file) >= 100, "{account}");
        let verdict = format!("{0} frames lost at the disk ({0})", 10_200 - kept);
        assert_eq!((&account["verdict"], &account["failure"]), (&verdict.into(), &"".into()), "{account}");
    }
}

#[test]
fn a_file_that_is_removed_while_the_disk_is_full_takes_its_frames_with_it() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("taken", "4M"), TunBuses::new("kt", 1));
    let (file, next) = (disk.file("a.log"), disk.file("a-000002.log"));
    let mut capture = Capture::start(&["kt0", "-o", &file]);
    send(&mut buses.senders(), 0, 100);
    eventually("it writes", || fs::metadata(&file).unwrap().len() > 0);
    let filler = fill(&disk);
    send(&mut buses.senders(), 100, 10_000);
    capture.until_it_says(&[&file, "no space left", "until another file can be written"]);
    fs::remove_file(&file).unwrap();
    fs::remove_file(filler).unwrap();
    capture.until_it_says(&[&next, "the recording continues here"]);
    send(&mut buses.senders(), 10_000, 10_200);
    let ended = capture.stop();
    let account = account(&file);
    let kept = fs::read_to_string(&next).unwrap().lines().count() as u64;
    assert_eq!((ended.code, files(&account)), (Some(3), vec![next]), "{}", ended.said);
    assert_eq!(
        (account["frames"].as_u64(), account["lost"]["disk"].as_u64()),
        (Some(kept), Some(10_200 - kept)),
        "{account}"
    );
}

#[test]
fn a_row_of_files_that_keeps_only_the_last_makes_room_on_a_full_disk() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("room", "4M"), TunBuses::new("kd", 1));
    let file = disk.file("a.log");
    let mut capture = Capture::start(&["kd0", "-o", &file, "--rotate-size", "512K", "--keep", "4"]);
    let mut senders = buses.senders();
    let full = || fs::exists(disk.file("a-000005.log")).unwrap();
    let mut sent = 0;
    while !full() {
        send(&mut senders, sent, sent + 1000);
        sent += 1000;
        std::thread::sleep(Duration::from_millis(5)); // the traffic: slower than the disk
    }
    fill(&disk);
    send(&mut senders, sent, sent + 30_000);
    capture.until_it_says(&["no space left"]);
    capture.until_it_says(&["the recording continues here"]);
    send(&mut senders, sent + 30_000, sent + 30_100);
    let ended = capture.stop();
    let account = account(&file);
    let number = |value: &Value| value.as_u64().unwrap();
    let (frames, lost) = (number(&account["frames"]), number(&account["lost"]["disk"]));
    assert_eq!((ended.code, frames + lost), (Some(3), u64::from(sent) + 30_100), "{}", ended.said);
    let kept: u64 =
        files(&account).iter().map(|name| fs::read_to_string(name).unwrap().lines().count() as u64).sum();
    assert_eq!(kept + number(&account["deleted"]["frames"]), frames, "{account}");
    // Two of 512 KiB have made room for the next.
    assert!(number(&account["deleted"]["files"]) >= 3 && kept >= 100, "{account}");
}

#[test]
fn a_file_that_another_program_truncates_loses_its_frames_and_the_recording_goes_on() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("truncated", "16M"), TunBuses::new("kt", 1));
    let file = disk.file("a.log");
    let mut capture = Capture::start(&["kt0", "-o", &file]);
    let mut senders = buses.senders();
    send(&mut senders, 0, 100);
    eventually("its frames are in the file", || fs::read_to_string(&file).unwrap().lines().count() == 100);
    fs::File::options().write(true).open(&file).unwrap().set_len(0).unwrap();
    capture.until_it_says(&["a.log: was truncated or written by another program while it was written"]);
    capture.until_it_says(&["a-000002.log: the recording continues here, 100 frames and 0 s later"]);
    send(&mut senders, 100, 150);
    let ended = capture.stop();
    let account = account(&file);
    assert_eq!((ended.code, &account["verdict"]), (Some(3), &"100 frames lost at the disk (100)".into()));
    assert_eq!((&account["frames"], fs::metadata(&file).unwrap().len()), (&50.into(), 0), "{account}");
    assert_eq!(numbers(&disk.file("a-000002.log"))["kt0"], (100..150).collect::<Vec<_>>());
}

#[test]
fn two_recordings_never_write_one_file() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("twice", "16M"), TunBuses::new("kv", 1));
    let file = disk.file("a.log");
    let capture = Capture::start(&["kv0", "-o", &file]);
    let second =
        Command::new(program()).args(["capture", "kv0", "-o", &file, "--overwrite"]).output().unwrap();
    let said = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.ends_with("a.log: open: another recording writes it\n"), "{said}");
    send(&mut buses.senders(), 0, 100);
    let ended = capture.stop();
    is_complete(&ended, &account(&file));
    assert_all(&file, &buses.names(), 100);
}

/// fdatasync(2) that fails the first time, as on a disk that has lost dirty pages.
const FIRST_SYNC_FAILS: &str = "
    #define _GNU_SOURCE
    #include <errno.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    int fdatasync(int file)
    {
        static int calls;
        if (calls++ == 0) {
            errno = EIO;
            return -1;
        }
        return syscall(SYS_fdatasync, file);
    }";

/// The variable that puts these functions in front of the C library's.
fn preloaded(disk: &Disk, functions: &str) -> String {
    let (source, library) = (disk.file("sync.c"), disk.file("sync.so"));
    fs::write(&source, functions).unwrap();
    sh(&format!("gcc -shared -fPIC -o {library} {source}"));
    format!("LD_PRELOAD={library}")
}

#[test]
fn frames_of_a_file_that_could_not_be_synced_are_lost() {
    if ran_in_namespaces() || !has("gcc") {
        return;
    }
    let (disk, buses) = (Disk::new("sync", "16M"), TunBuses::new("kx", 1));
    let preload = preloaded(&disk, FIRST_SYNC_FAILS);
    let file = disk.file("a.log");
    let arguments = ["kx0", "-o", &file, "--rotate-size", "2K", "--sync-interval", "0"];
    let mut capture = Capture::start_by(&["env", &preload], &arguments);
    let mut senders = buses.senders();
    send(&mut senders, 0, 100);
    capture.until_it_says(&["a-000001.log: sync: input/output error"]);
    capture.until_it_says(&["a-000002.log: the recording continues here"]);
    send(&mut senders, 100, 120);
    let ended = capture.stop();
    let account = account(&file);
    let lost = account["lost"]["disk"].as_u64().unwrap();
    assert_eq!(lost + account["frames"].as_u64().unwrap(), 120, "{account}");
    assert_eq!((ended.code, &account["files"][0]["frames"]), (Some(3), &0.into()), "{account}");
    assert!(lost >= 50, "all of the first file: {account}");
    assert_eq!(account["verdict"], format!("{lost} frames lost at the disk ({lost})"));
}

#[test]
fn a_sync_that_fails_while_the_file_is_written_costs_its_frames_at_once() {
    if ran_in_namespaces() || !has("gcc") {
        return;
    }
    let (disk, buses) = (Disk::new("midsync", "16M"), TunBuses::new("ky", 1));
    // The first sync is that of the new file.
    let preload = preloaded(&disk, &FIRST_SYNC_FAILS.replace("calls++ == 0", "calls++ == 1"));
    let file = disk.file("a.log");
    let mut capture = Capture::start_by(&["env", &preload], &["ky0", "-o", &file, "--sync-interval", "1s"]);
    let mut senders = buses.senders();
    send(&mut senders, 0, 100);
    capture.until_it_says(&["a.log: sync: input/output error"]);
    capture.until_it_says(&["a-000002.log: the recording continues here"]);
    send(&mut senders, 100, 120);
    let ended = capture.stop();
    let account = account(&file);
    let lost = account["lost"]["disk"].as_u64().unwrap();
    assert_eq!((ended.code, &account["files"][0]["frames"]), (Some(3), &0.into()), "{account}");
    assert!(lost >= 100 && lost + account["frames"].as_u64().unwrap() == 120, "{account}");
}

/// The sync of a disk that works until the file `go` exists, once there is a file `slow`, and counts the pages that it writes.
const SLOW_SYNC: &str = "\
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <stdarg.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    static char *at(const char *name)
    {
        static __thread char path[4096];
        snprintf(path, sizeof(path), \"%s/%s\", getenv(\"SLOW\"), name);
        return path;
    }
    int open64(const char *path, int flags, ...)
    {
        va_list rest;
        va_start(rest, flags);
        int mode = va_arg(rest, int);
        va_end(rest);
        if (!strcmp(path, \"/proc/vmstat\"))
            path = at(\"vmstat\");
        return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    }
    int fdatasync(int file)
    {
        for (long pages = 1; !access(at(\"slow\"), F_OK) && access(at(\"go\"), F_OK); pages++) {
            FILE *vmstat = fopen(at(\"vmstat\"), \"w\");
            fprintf(vmstat, \"nr_dirty 7\\nnr_written %ld\\n\", pages);
            fclose(vmstat);
            usleep(10000);
        }
        return syscall(SYS_fdatasync, file);
    }";

#[test]
fn a_slow_last_sync_that_goes_on_gets_more_time_from_the_service_manager() {
    if ran_in_namespaces() || !has("gcc") {
        return;
    }
    let (disk, buses) = (Disk::new("slow", "16M"), TunBuses::new("kw", 1));
    let preload = preloaded(&disk, SLOW_SYNC);
    let manager = UnixDatagram::bind(disk.file("notify")).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let words = [
        preload,
        format!("SLOW={}", disk.file("").trim_end_matches('/')),
        format!("NOTIFY_SOCKET={}", disk.file("notify")),
    ];
    let by: Vec<&str> = ["env"].into_iter().chain(words.iter().map(String::as_str)).collect();
    let file = disk.file("a.log");
    let capture = Capture::start_by(&by, &["kw0", "-o", &file, "--sync-interval", "0"]);
    send(&mut buses.senders(), 0, 100);
    fs::write(disk.file("slow"), "").unwrap();
    process::terminate(&capture.child).unwrap();
    let mut message = [0; 512];
    while {
        let bytes = manager.recv(&mut message).unwrap();
        !String::from_utf8_lossy(&message[..bytes]).contains("EXTEND_TIMEOUT_USEC=30000000")
    } {}
    fs::write(disk.file("go"), "").unwrap();
    let ended = capture.wait();
    is_complete(&ended, &account(&file));
    assert_all(&file, &buses.names(), 100);
}

#[test]
fn at_the_limit_of_a_file_s_size_the_recording_goes_on_in_another_and_loses_nothing() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("limit", "16M"), TunBuses::new("kz", 1));
    // 150 frames have 6900 bytes in a log, and more in pcapng.
    for (name, kib) in [("a.log", "4"), ("a.pcapng", "8")] {
        let file = disk.file(name);
        let limited = ["bash", "-c", "ulimit -f $0; exec \"$@\"", kib];
        let mut capture = Capture::start_by(&limited, &["kz0", "-o", &file]);
        let mut senders = buses.senders();
        send(&mut senders, 0, 150);
        capture.until_it_says(&[&format!("{name}: write: file too large")]);
        capture.until_it_says(&["the recording continues here, 0 frames and 0 s later"]);
        send(&mut senders, 150, 170);
        let ended = capture.stop();
        let account = account(&file);
        is_complete(&ended, &account);
        let log = |path: String| {
            if path.ends_with(".log") {
                return fs::read_to_string(path).unwrap();
            }
            let log = format!("{path}.log");
            sh(&format!("'{}' convert --quiet {path} -o {log}", program()));
            fs::read_to_string(log).unwrap()
        };
        let logs: String = files(&account).into_iter().map(log).collect();
        assert_each(&numbers_of_lines(&logs).0, &buses.names(), 170);
        // The account of each file has the stamps of its own frames.
        let [first, second] = [0, 1].map(|at| account["files"][at].clone());
        let ends = |file: &Value| [&file["first_ns"], &file["last_ns"]].map(|ns| ns.as_u64().unwrap());
        assert!(ends(&first).is_sorted() && ends(&second).is_sorted(), "{account}");
        // What a full log could not hold is read back from it, in microseconds: two frames may have the same.
        let is_before: fn(&u64, &u64) -> bool = if name == "a.log" { u64::le } else { u64::lt };
        assert!(is_before(&ends(&first)[1], &ends(&second)[0]), "{account}");
    }
}

#[test]
fn a_name_that_leaves_no_room_for_its_account_is_refused_before_anything_starts() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, _buses) = (Disk::new("long", "16M"), TunBuses::new("kl", 1));
    let file = disk.file(&format!("{}.log", "x".repeat(240)));
    let ended = Command::new(program()).args(["capture", "kl0", "-o", &file]).output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("account.json: open: file name too long"), "{said}");
    assert_eq!(fs::read_dir(&disk.0).unwrap().count(), 0, "no file was made");
}
