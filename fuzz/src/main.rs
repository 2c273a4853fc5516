//! A fuzzer of every input: `READER=blf canter-fuzz CORPUS`. The readers are the rows of `canter_formats::FORMATS` and of
//! `canter::inputs::INPUTS`, and `packed`, which is any recording as .zst or .gz; without READER it lists them.
//!
//! An input fails that makes a reader panic, takes more than [`CPU_NS_MAX`] of processor time, or [`MEMORY_BYTES_MAX`]
//! more memory than an empty input. It also fails when it is a recording without a flaw, and the same recording with another
//! byte somewhere, or without its end, has other frames and the reader says nothing. With STATS=FILE, the largest values of the run are written to that file.
#![no_main]

use canter_formats::{FORMATS, Format, Reader};
use libfuzzer_sys::fuzz_target;
use std::{
    alloc::{GlobalAlloc, Layout, System},
    io::Cursor,
    sync::{
        OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

/// The most processor time that an input may take, in ns.
const CPU_NS_MAX: u64 = 1_000_000_000;
/// The most memory that an input may take above that of an empty one, in bytes.
const MEMORY_BYTES_MAX: usize = 64 << 20;
/// The longest recording that is also read with a change, in bytes: each is read three times.
const CHANGED_BYTES_MAX: usize = 4 << 10;
/// Frames that are read of one input. Packed text of zeros may hold billions.
const FRAMES_MAX: usize = 200_000;

/// Counts the bytes that Rust has allocated, now and at most.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn add(bytes: usize) {
    let now = NOW.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(now, Relaxed);
}

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller keeps the rules of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new exist at the same time while the content is copied.
        add(size);
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Processor time of this thread, in ns.
fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime(2) fills the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Resets the peak of the process's resident memory, and returns that memory in bytes; C libraries take some of it.
fn resident_now() -> usize {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    resident("VmRSS:")
}

fn resident(field: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap_or(0) << 10
}

/// What reads the inputs of this run.
enum Target {
    Recording(Vec<Format>),
    Other(fn(&[u8])),
}

struct Run {
    target: Target,
    /// A C library unpacks this input, and its memory counts too.
    packed: bool,
    /// Memory for an empty input, in bytes.
    empty_bytes: usize,
    stats: Option<String>,
}

static RUN: OnceLock<Run> = OnceLock::new();
static SLOWEST_NS: AtomicU64 = AtomicU64::new(0);
static LARGEST_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The names and functions of what the program itself reads.
fn others() -> Vec<(&'static str, fn(&[u8]))> {
    #[cfg(feature = "program")]
    return canter::inputs::INPUTS.iter().map(|input| (input.name, input.read)).collect();
    #[cfg(not(feature = "program"))]
    return Vec::new();
}

fn readers() -> Vec<&'static str> {
    let formats = FORMATS.iter().filter(|format| format.read.is_some()).map(|format| format.name);
    formats.chain(["packed"]).chain(others().into_iter().map(|(name, _)| name)).collect()
}

fn target(name: &str) -> Option<Target> {
    if name == "packed" {
        return Some(Target::Recording(FORMATS.to_vec()));
    }
    if let Some(format) = canter_formats::named(name, FORMATS) {
        return Some(Target::Recording(vec![*format]));
    }
    others().into_iter().find(|(other, _)| *other == name).map(|(_, read)| Target::Other(read))
}

/// Reads a recording; whether it came to its end without an error.
fn read_frames(bytes: &[u8], formats: &[Format], salvage: bool) -> bool {
    let input = Box::new(Cursor::new(bytes.to_vec()));
    let Ok(reader) = Reader::from_read("input", input, formats) else { return true };
    let mut reader = reader.salvage(salvage);
    for _ in 0..FRAMES_MAX {
        match reader.next_record() {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
    true
}

/// How many frames a recording has, and whether the reader says that something is left out or wrong; `None`: it has more than
/// [`FRAMES_MAX`].
fn outcome(bytes: &[u8], formats: &[Format]) -> Option<(usize, bool)> {
    let Ok(mut reader) = Reader::from_read("input", Box::new(Cursor::new(bytes.to_vec())), formats) else {
        return Some((0, true));
    };
    for frames in 0..FRAMES_MAX {
        match reader.next_record() {
            Ok(Some(_)) => {}
            Err(_) => return Some((frames, true)),
            Ok(None) => {
                let left_out =
                    reader.skipped().iter().next().is_some() || reader.flawed().iter().next().is_some();
                return Some((frames, left_out || reader.lost() > 0 || reader.cut().is_some()));
            }
        }
    }
    None
}

/// Fails when a change of a recording without a flaw makes its frames more or fewer, and the reader does not say so. The input
/// itself chooses the place and the change, so that the fuzzer finds them.
fn check_changed(bytes: &[u8], formats: &[Format]) {
    let Some((frames @ 1.., false)) = outcome(bytes, formats) else { return };
    let sum = bytes.iter().fold(0_usize, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let at = sum % bytes.len();
    let mut changed = bytes.to_vec();
    changed[at] ^= 1 << (sum / bytes.len() % 8);
    // Without its line break, a comment of a text takes the next line along, and nobody can know.
    if bytes[at] == b'\n' || changed[at] == b'\n' {
        return;
    }
    let silent = |bytes: &[u8]| matches!(outcome(bytes, formats), Some((now, false)) if now != frames);
    assert!(!silent(&changed), "byte {at} as {:#04x}: other frames in silence", changed[at]);
    // A text or a file that grows may end behind any line or block: one of one line less is a whole one.
    if formats.iter().all(|format| format.write.is_some() && !format.grows) {
        assert!(!silent(&bytes[..at]), "cut at {at}: fewer frames in silence");
    }
}

impl Target {
    fn read(&self, bytes: &[u8]) {
        match self {
            Self::Other(read) => read(bytes),
            // What has an error is also read past it.
            Self::Recording(formats) => {
                _ = read_frames(bytes, formats, false) || read_frames(bytes, formats, true)
            }
        }
    }

    fn check_changed(&self, bytes: &[u8]) {
        if let Self::Recording(formats) = self
            && bytes.len() <= CHANGED_BYTES_MAX
        {
            check_changed(bytes, formats);
        }
    }
}

/// Reads an input; returns its processor time in ns, and its memory in bytes.
fn measured(target: &Target, packed: bool, bytes: &[u8]) -> (u64, usize) {
    let resident_before = if packed { resident_now() } else { 0 };
    let before = NOW.load(Relaxed);
    PEAK.store(before, Relaxed);
    let start_ns = cpu_ns();
    target.read(bytes);
    let cpu_ns = cpu_ns() - start_ns;
    let rust = PEAK.load(Relaxed).saturating_sub(before);
    let resident = if packed { resident("VmHWM:").saturating_sub(resident_before) } else { 0 };
    (cpu_ns, rust.max(resident))
}

fn open() -> Run {
    let name = std::env::var("READER").unwrap_or_default();
    let Some(target) = target(&name) else {
        println!("{}", readers().join("\n"));
        std::process::exit(if name.is_empty() { 0 } else { 2 });
    };
    let packed = name == "packed";
    measured(&target, packed, b""); // what is allocated once
    let (_, empty_bytes) = measured(&target, packed, b"");
    Run { target, packed, empty_bytes, stats: std::env::var("STATS").ok() }
}

/// Keeps the largest values in a file: this process may end by a signal.
fn note(run: &Run, cpu_ns: u64, bytes: usize) {
    let slower = SLOWEST_NS.fetch_max(cpu_ns, Relaxed) < cpu_ns;
    let larger = LARGEST_BYTES.fetch_max(bytes, Relaxed) < bytes;
    if let Some(path) = run.stats.as_ref().filter(|_| slower || larger) {
        let path = format!("{path}.{}", std::process::id());
        let text = format!("{} {}\n", SLOWEST_NS.load(Relaxed), LARGEST_BYTES.load(Relaxed));
        let _ = std::fs::write(path, text);
    }
}

fuzz_target!(
    init: {
        RUN.get_or_init(open);
    },
    |bytes: &[u8]| {
        let Some(run) = RUN.get() else { return };
        let (cpu_ns, all_bytes) = measured(&run.target, run.packed, bytes);
        let above = all_bytes.saturating_sub(run.empty_bytes);
        note(run, cpu_ns, above);
        assert!(above <= MEMORY_BYTES_MAX, "takes {above} bytes of memory more than an empty input");
        // Once more, because a busy machine may have been the cause.
        let again = || measured(&run.target, false, bytes).0;
        assert!(cpu_ns <= CPU_NS_MAX || again() <= CPU_NS_MAX, "takes {cpu_ns} ns of processor time");
        run.target.check_changed(bytes);
    }
);
