use super::*;
use crate::{
    chunk::{Chunk, Hold},
    files::{Files, Retention},
    live::Progress,
    output::Style,
    trigger::{Condition, When},
};
use canter_formats::{FORMATS, Reader, by_extension};
use canter_frame::{BusId, Frame};
use proptest::prelude::*;
use std::{ops::Range, time::Duration};
use tempfile::TempDir;

const BEFORE: u64 = 3_000_000_000;
const AFTER: u64 = 1_000_000_000;
/// Memory for all frames of a test.
const ENOUGH: usize = 1 << 20;
const SECOND: u64 = 1_000_000_000;

/// Which frames the files have, by their numbers, and the account.
struct Kept {
    files: Vec<Vec<u32>>,
    triggered: Triggered,
    progress: Progress,
    events: String,
}

/// A recording of one bus with the trigger `700`. Frames get numbers from 0 on.
struct Bench<'a> {
    folder: TempDir,
    live: &'a Live,
    output: Output<'a>,
    windows: Windows<'a>,
    sent: u32,
}

impl<'a> Bench<'a> {
    fn new(live: &'a Live, conditions: Vec<Condition>, buffer_bytes: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("event.pcapng");
        let files = Files::create_later(&target, Retention::default(), false).unwrap();
        let format = by_extension(&target, FORMATS).unwrap();
        let style = Style { flush: Duration::from_secs(1), sync: Duration::MAX, ..Style::plain(format) };
        let [before, after] = [BEFORE, AFTER].map(Duration::from_nanos);
        let triggers = Triggers { conditions, before, after, buffer_bytes: None };
        let (mut output, mut windows) =
            (Output::new(files, style, live, None), Windows::new(triggers, buffer_bytes, live));
        windows.add_bus("can0");
        output.interface("can0".to_owned());
        Self { folder, live, output, windows, sent: 0 }
    }

    /// Frames with these stamps, the second of which are events.
    fn send(&mut self, frames: &[(u64, bool)]) {
        let mut chunk = Chunk::new(false, frames.len());
        for &(stamp_ns, is_event) in frames {
            let id = if is_event { "700" } else { "123" };
            let frame: Frame = format!("{id}#{:08X}", self.sent).parse().unwrap();
            assert!(chunk.hold(&RawRecord::new(stamp_ns, BusId(0), &frame.kernel_bytes()[..16])));
            self.sent += 1;
        }
        self.windows.frames(Piece { chunk: &chunk, places: 0..chunk.len(), late: false }, &mut self.output);
    }

    fn finish(mut self) -> Kept {
        self.windows.last_words(&mut self.output);
        let triggered = self.windows.finish();
        let progress = self
            .output
            .finish(0, Box::new(|_| (vec![canter_formats::Closing::default()], "complete".to_owned())));
        let mut files = Vec::new();
        for window in &triggered.windows {
            let mut numbers = Vec::new();
            for file in &window.files {
                let mut reader = Reader::open(file, FORMATS).unwrap();
                while let Some(record) = reader.next_record().unwrap() {
                    numbers.push(u32::from_be_bytes(record.frame.data().try_into().unwrap()));
                }
            }
            assert_eq!(numbers.len() as u64, window.frames);
            files.push(numbers);
        }
        let events = self.live.take_events().into_iter().map(|event| event.what + "\n").collect();
        drop(self.folder);
        Kept { files, triggered, progress, events }
    }
}

fn frame_700() -> Vec<Condition> {
    vec![Condition { text: "700".to_owned(), interface: None, when: When::Frame("700".parse().unwrap()) }]
}

/// The numbers of the frames that belong into each file.
fn expected(frames: &[(u64, bool)]) -> Vec<Vec<u32>> {
    let mut windows: Vec<(u64, u64)> = Vec::new();
    for &(time, _) in frames.iter().filter(|(_, is_event)| *is_event) {
        let (from, until) = (time.saturating_sub(BEFORE), time + AFTER);
        match windows.last_mut() {
            Some(last) if from <= last.1 + 1 => last.1 = until,
            _ => windows.push((from, until)),
        }
    }
    let numbers = |&(from, until): &(u64, u64)| {
        let inside = frames.iter().zip(0..).filter(|((time, _), _)| (from..=until).contains(time));
        inside.map(|(_, number)| number).collect()
    };
    windows.iter().map(numbers).collect()
}

fn run(frames: &[(u64, bool)]) -> Kept {
    let live = Live::default();
    let mut bench = Bench::new(&live, frame_700(), ENOUGH);
    frames.chunks(7).for_each(|part| bench.send(part));
    bench.finish()
}

/// A frame every 100 ms, and events at these numbers.
fn regular(count: u64, events: &[u64]) -> Vec<(u64, bool)> {
    (0..count).map(|at| (10 * SECOND + at * SECOND / 10, events.contains(&at))).collect()
}

fn range(range: Range<u32>) -> Vec<u32> {
    range.collect()
}

#[test]
fn an_event_keeps_what_is_before_and_after_it_and_nothing_else() {
    let kept = run(&regular(200, &[100]));
    assert_eq!(kept.files, [range(70..111)]);
    assert_eq!((kept.progress.in_file, kept.progress.outside), (vec![41], vec![159]));
    let window = &kept.triggered.windows[0];
    assert_eq!((window.from_ns, window.until_ns, window.is_cut), (17 * SECOND, 21 * SECOND, false));
    assert_eq!(window.causes[0], Event { at_ns: 20 * SECOND, what: "700: can0 700#00000064".to_owned() });
    assert!(kept.events.contains("event 1: 700: can0 700#00000064 → "), "{}", kept.events);
    assert!(run(&regular(200, &[])).files.is_empty());
}

#[test]
fn windows_that_overlap_have_one_file_also_when_the_first_is_over() {
    // The first window is over at 110, and the second begins at 109.
    let kept = run(&regular(300, &[100, 139]));
    assert_eq!(kept.files, [range(70..150)]);
    assert_eq!((kept.triggered.events, kept.triggered.windows[0].causes.len()), (2, 2));
    // They only touch, and they do not.
    assert_eq!(run(&regular(300, &[100, 140])).files, [range(70..151)]);
    assert_eq!(run(&regular(300, &[100, 142])).files, [range(70..111), range(112..153)]);
    assert_eq!(run(&regular(300, &(50..200).collect::<Vec<_>>())).files, [range(20..210)]);
}

#[test]
fn a_window_at_the_start_is_shorter_and_one_at_the_end_is_cut() {
    let kept = run(&regular(100, &[2, 98]));
    assert_eq!(kept.files, [range(0..13), range(68..100)]);
    let cut: Vec<(u64, bool)> =
        kept.triggered.windows.iter().map(|window| (window.from_ns, window.is_cut)).collect();
    assert_eq!(cut, [(10 * SECOND, false), (16 * SECOND + 800_000_000, true)]);
}

#[test]
fn frames_before_an_event_for_which_there_is_no_memory_are_lost_and_counted() {
    let live = Live::default();
    let mut bench = Bench::new(&live, frame_700(), 1); // one block
    let frames: Vec<(u64, bool)> = (0..10_000).map(|at| (SECOND + at * 1000, at == 9_999)).collect();
    bench.send(&frames);
    let kept = bench.finish();
    let (lost, in_file) = (kept.progress.window_lost[0], kept.progress.in_file[0]);
    assert!(lost > 7_000 && lost + in_file == 10_000, "{lost} {in_file}");
    assert_eq!((kept.progress.outside, kept.files[0].len() as u64), (vec![0], in_file));
    assert!(kept.events.contains("frames of a window were lost"), "{}", kept.events);
}

#[test]
fn a_clock_that_is_set_shortens_no_window() {
    const HOUR: i64 = 3_600_000_000_000;
    for step_ns in [HOUR, -HOUR] {
        let live = Live::default();
        let mut bench = Bench::new(&live, frame_700(), ENOUGH);
        let start = 100_000 * SECOND;
        let frames: Vec<(u64, bool)> = (0..100).map(|at| (start + at * SECOND / 10, at == 60)).collect();
        let later = |&(stamp_ns, is_event): &(u64, bool)| (stamp_ns.wrapping_add_signed(step_ns), is_event);
        bench.send(&frames[..50]);
        // The clock is set 2 s after the window's beginning and 1 s before the event. Some frames still have the old time.
        let now_ns = later(&frames[50]).0;
        bench.windows.clock_was_set(step_ns, now_ns);
        bench.send(&frames[50..52]);
        bench.send(&frames[52..].iter().map(later).collect::<Vec<_>>());
        assert_eq!(bench.finish().files, [range(30..71)], "{step_ns}");
    }
}

#[test]
fn a_period_is_missed_and_a_program_asks_also_while_nothing_is_received() {
    let live = Live::default();
    let missing = When::Missing("123".parse().unwrap(), Duration::from_millis(500));
    let conditions = vec![Condition { text: "missing".to_owned(), interface: None, when: missing }];
    let mut bench = Bench::new(&live, conditions, ENOUGH);
    bench.send(&regular(50, &[])); // until 14.9 s
    bench.windows.pass(15 * SECOND + 400_000_000, &mut bench.output);
    assert!(bench.windows.open.is_none());
    bench.windows.pass(15 * SECOND + 500_000_000, &mut bench.output);
    assert!(bench.windows.open.is_some());
    bench.windows.pass(20 * SECOND, &mut bench.output);
    bench.windows.request(21 * SECOND, "asked".to_owned());
    let kept = bench.finish();
    assert_eq!(kept.files, [range(24..50), Vec::new()]);
    let causes: Vec<&Event> = kept.triggered.windows.iter().flat_map(|window| &window.causes).collect();
    assert_eq!(causes[0].at_ns, 15 * SECOND + 400_000_000);
    assert_eq!(*causes[1], Event { at_ns: 21 * SECOND, what: "asked".to_owned() });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn every_frame_of_a_window_is_in_its_file_and_every_other_frame_in_none(
        gaps in prop::collection::vec((0..SECOND, 0u32..40), 1..300),
    ) {
        let mut time = SECOND;
        let frames: Vec<(u64, bool)> = gaps
            .into_iter()
            .map(|(gap, event)| {
                time += gap;
                (time, event == 0)
            })
            .collect();
        let (kept, expected) = (run(&frames), expected(&frames));
        prop_assert_eq!(&kept.files, &expected);
        let inside: usize = expected.iter().map(Vec::len).sum();
        prop_assert_eq!(kept.progress.outside[0], (frames.len() - inside) as u64);
    }
}
