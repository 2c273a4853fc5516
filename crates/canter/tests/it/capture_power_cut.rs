//@ machine: --clock virtual
//@ in: all
//@ limit: 30m
//! What a power cut leaves of a recording. The disk is an ext4 on a device mapper target that logs each write and each flush
//! (Documentation/admin-guide/device-mapper/log-writes.rst). At random moments of that log, the disk has everything up to the
//! last flush, and of the writes behind it some, in any order: the others were in its cache. The file system is mounted from
//! that, and the recording is read.
//!
//! `CUTS` (how many, 200), `SEED` (the first, 1); `SYNC=0`, the sync interval, makes it fail.

use crate::{
    random::Random,
    recorder::{Buses, Cables, Capture, Disk, send, sh},
};
use std::{env, fs, path::Path, time::Duration};

/// The size of the disk.
const DISK_KIB: usize = 24 << 10;
/// The batches that are sent, and the frames of each.
const BATCHES: u32 = 150;
const FRAMES: u32 = 20;
const PERIOD: Duration = Duration::from_millis(100);
/// Batches that may be missing of those sent before a moment: the sync interval and the flush interval, 500 ms each, and as long
/// again for the disk.
const MISSING_MAX: u32 = 20;

/// The ends of the files' names: each format that is recorded, by a recorder of its own.
const ENDINGS: [&str; 4] = [".log", ".pcapng", ".log.zst", ".pcapng.zst"];

const DEVICE: &str = "/dev/dm-0";
const BASE: &str = "/dev/ram0";
const LOG: &str = "/dev/ram1";
const AFTER: &str = "/dev/ram2";

/// What the log has: a write, or the mark of a batch that was sent.
enum Entry {
    Write { at: usize, data: Vec<u8>, flags: u64 },
    Mark(u32),
}

/// All writes before are on the disk, and this one too if it carries data with [`FUA`].
const FLUSH: u64 = 1;
/// This write is on the disk when it ends.
const FUA: u64 = 2;
const DISCARD: u64 = 4;
const MARK: u64 = 8;

/// Reads the log: a sector with a magic number, the version, the number of entries and the size of a sector; then each entry in
/// a sector of its own (place, length in sectors, flags, bytes of its text), and its data behind it.
fn entries() -> Vec<Entry> {
    let bytes = fs::read(LOG).unwrap();
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!((number(0), number(8)), (0x006a_7366_7773_6872, 1), "a log of writes");
    let sector = u32::from_le_bytes(bytes[24..28].try_into().unwrap()) as usize;
    let mut at = sector;
    let mut entries = Vec::new();
    for _ in 0..number(16) {
        let (place, count, flags, text) =
            (number(at) as usize, number(at + 8) as usize, number(at + 16), number(at + 24) as usize);
        let words = &bytes[at + 32..at + 32 + text];
        at += sector;
        if flags & MARK != 0 {
            // The last one is the target's own.
            let batch = std::str::from_utf8(words).unwrap().trim_end_matches('\0').parse();
            entries.extend(batch.ok().map(Entry::Mark));
            continue;
        }
        let length = if flags & DISCARD == 0 { count * sector } else { 0 };
        entries.push(Entry::Write { at: place * sector, data: bytes[at..at + length].to_vec(), flags });
        at += length;
    }
    entries
}

fn apply(disk: &mut [u8], entry: &Entry) {
    if let Entry::Write { at, data, .. } = entry {
        disk[*at..*at + data.len()].copy_from_slice(data);
    }
}

fn ends_with_flush(entry: &Entry) -> bool {
    matches!(entry, Entry::Write { flags, .. } if flags & (FLUSH | FUA) != 0)
}

/// The disk when the power is cut after the first `count` entries; the last batch that was sent before for certain.
fn cut(base: &[u8], entries: &[Entry], count: usize, random: &mut Random) -> (Vec<u8>, Option<u32>) {
    let mut disk = base.to_vec();
    let flushed = entries[..count].iter().rposition(ends_with_flush).map_or(0, |last| last + 1);
    entries[..flushed].iter().for_each(|entry| apply(&mut disk, entry));
    let behind = &entries[flushed..];
    let unflushed = behind.iter().position(ends_with_flush).unwrap_or(behind.len());
    let mut rest: Vec<&Entry> = behind[..unflushed].iter().collect();
    while !rest.is_empty() {
        let entry = rest.swap_remove(random.below(rest.len() as u64) as usize);
        if random.below(2) == 0 {
            apply(&mut disk, entry);
        }
    }
    let sent = entries[..count].iter().rev().find_map(|entry| match entry {
        Entry::Mark(batch) => Some(*batch),
        Entry::Write { .. } => None,
    });
    (disk, sent)
}

/// The numbers of the frames in the files of a folder with this ending, in the order of the files' names. Only the last file may
/// end before its end.
fn numbers(folder: &Path, ending: &str) -> Vec<u32> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_str().unwrap().ends_with(ending));
    files.sort();
    let mut numbers = Vec::new();
    let mut ended = None;
    for path in files {
        assert_eq!(ended, None, "in the midst of a recording");
        ended = read(&path, &mut numbers).err().map(|why| format!("{}: {why}", path.display()));
    }
    numbers
}

/// Adds the numbers of the frames of a file, as far as it can be read.
fn read(path: &Path, numbers: &mut Vec<u32>) -> canter_formats::Result<()> {
    let mut reader = canter_formats::open(path)?;
    while let Some(record) = reader.next_record()? {
        let data = record.frame.data().try_into();
        numbers.push(u32::from_be_bytes(data.unwrap_or_else(|_| panic!("{}: garbage", path.display()))));
    }
    Ok(())
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_power_cut"]
fn what_was_synced_outlives_a_power_cut_and_nothing_is_garbage() {
    let number = |name: &str, usual| env::var(name).map_or(usual, |text| text.parse::<u64>().unwrap());
    let (cuts, seed) = (number("CUTS", 200), number("SEED", 1));
    sh(&format!("modprobe brd rd_nr=3 rd_size={DISK_KIB} && modprobe dm-log-writes && modprobe ext4"));
    sh(&format!("mkfs.ext4 -q -b 1024 -E lazy_itable_init=0,lazy_journal_init=0 {BASE}"));
    let base = fs::read(BASE).unwrap();
    let table = format!("0 {} log-writes {BASE} {LOG}", DISK_KIB * 2);
    sh(&format!("dmsetup --noudevsync create logged --table '{table}'"));
    let (mounted, after) = (Disk::new("cut", "1M"), Disk::new("after", "1M"));
    sh(&format!("mount -t ext4 {DEVICE} {}", mounted.0.display()));
    let cables = Cables::new("pc", 1);
    let sync = env::var("SYNC").unwrap_or("500ms".to_owned());
    let settings = ["--sync-interval", &sync, "--flush-interval", "500ms", "--rotate-size", "80K"];
    let start = |ending| {
        Capture::start(&[&["pc0", "-o", &mounted.file(&format!("a{ending}"))][..], &settings].concat())
    };
    let captures = ENDINGS.map(start);
    let mut senders = cables.senders();
    for batch in 0..BATCHES {
        send(&mut senders, batch * FRAMES, (batch + 1) * FRAMES);
        sh(&format!("dmsetup message logged 0 mark {batch}"));
        std::thread::sleep(PERIOD); // the load: so fast do they come
    }
    for ended in captures.map(Capture::stop) {
        assert_eq!(ended.code, Some(0), "{}", ended.said);
    }
    sh(&format!("umount {} && dmsetup --noudevsync remove logged", mounted.0.display()));

    let entries = entries();
    let begun = entries.iter().position(|entry| matches!(entry, Entry::Mark(_))).unwrap();
    let (mut random, mut behind, mut early) = (Random(seed), 0, 0);
    for _ in 0..cuts {
        let count = begun + 1 + random.below((entries.len() - begun) as u64) as usize;
        let (disk, sent) = cut(&base, &entries, count.min(entries.len()), &mut random);
        fs::write(AFTER, disk).unwrap();
        sh(&format!("mount -t ext4 {AFTER} {}", after.0.display()));
        let all = ENDINGS.map(|ending| numbers(&after.0, ending));
        sh(&format!("umount {}", after.0.display()));
        let least = sent.map_or(0, |batch| (batch + 1).saturating_sub(MISSING_MAX) * FRAMES);
        for (present, ending) in all.iter().zip(ENDINGS) {
            let frames = present.len() as u32;
            assert!(present.iter().copied().eq(0..frames), "{ending} after {count} entries: {present:?}");
            assert!(frames >= least, "{ending} after {count} entries: {frames} frames, {least} were synced");
            behind = behind.max(sent.map_or(0, |batch| (batch + 1) * FRAMES).saturating_sub(frames));
        }
        early += u32::from(all.iter().any(|present| (present.len() as u32) < BATCHES * FRAMES));
    }
    println!(
        "{cuts} cuts of {} entries, {early} before the end, {behind} frames missing at most",
        entries.len()
    );
    assert!(u64::from(early) > cuts / 2, "most cuts are in the midst of the recording");
}
