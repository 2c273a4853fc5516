//! The writer's thread: queue → merge → windows of triggers → output.

use crate::{
    live::{Live, Progress},
    merge::{Merge, Piece},
    output::Output,
    queue::{Ending, Item, Queue},
    windows::Windows,
};
use canter_io::clock;
use std::{
    collections::VecDeque,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// The longest wait for a message of the queue.
pub const LOOK: Duration = Duration::from_millis(100);
/// After this number of looks without a message, no older frame can arrive before those that are held back. Counts looks,
/// not time: while the whole process is stopped, time passes and the ring fills.
pub const QUIET_LOOKS: u32 = 2;
/// How often the writer looks which closed files are not to stay, and whether its own counts add up.
const CHECK: Duration = Duration::from_secs(10);

/// Where frames go: to the file, or through the windows of triggers.
struct Stage<'a> {
    output: Output<'a>,
    windows: Option<Windows<'a>>,
}

impl Stage<'_> {
    fn frames(&mut self, piece: Piece<'_>) {
        match &mut self.windows {
            None => self.output.frames(piece),
            Some(windows) => windows.frames(piece, &mut self.output),
        }
    }

    fn interface(&mut self, name: String) {
        if let Some(windows) = &mut self.windows {
            windows.add_bus(&name);
        }
        self.output.interface(name);
    }

    fn clock_was_set(&mut self, text: &str, step_ns: i64) {
        if let Some(windows) = &mut self.windows {
            windows.clock_was_set(step_ns, clock::realtime_ns());
        }
        self.output.remark(text);
    }

    fn event(&mut self, at_ns: u64, what: String) {
        if let Some(windows) = &mut self.windows {
            windows.request(at_ns, what);
        }
    }

    /// All frames with stamps before this were taken.
    fn pass(&mut self, stamp_ns: u64) {
        if let Some(windows) = &mut self.windows {
            windows.pass(stamp_ns, &mut self.output);
        }
    }

    fn finish(mut self, late: u64, ending: Ending) -> Progress {
        let Some(mut windows) = self.windows else { return self.output.finish(late, ending) };
        let causes = windows.last_words(&mut self.output);
        let with_causes: Ending = Box::new(move |written| {
            let (closings, verdict) = ending(written);
            let about = causes.map_or_else(|| verdict.clone(), |causes| format!("{causes}; {verdict}"));
            (closings, about)
        });
        let triggered = Some(windows.finish());
        Progress { triggered, ..self.output.finish(late, with_causes) }
    }
}

/// Writes the frames from `queue` until its end. At the frame limit, it sets [`Live::enough`] and counts further frames.
pub fn run<'a>(queue: &Queue, live: &'a Live, output: Output<'a>, windows: Option<Windows<'a>>) -> Progress {
    let mut stage = Stage { output, windows };
    let (mut merge, mut items, mut looks_without) = (Merge::default(), VecDeque::new(), 0);
    let (mut taken, mut unaccounted, mut checked) = (0, 0, Instant::now());
    loop {
        let complete_ns = queue.complete_until();
        queue.take(&mut items, LOOK);
        let now_ns = clock::realtime_ns(); // read last: all frames that were taken have earlier stamps
        looks_without = if items.is_empty() { looks_without + 1 } else { 0 };
        for item in items.drain(..) {
            let freed = match item {
                Item::Chunk(chunk) => {
                    taken += chunk.len() as u64;
                    merge.add(chunk);
                    merge.hand_out_future(now_ns, |piece| stage.frames(piece))
                        + merge.hand_out_complete(complete_ns, |piece| stage.frames(piece))
                }
                Item::Interface(name) => {
                    stage.interface(name);
                    0
                }
                Item::ClockStep(text, step_ns) => {
                    let freed = merge.restart(|piece| stage.frames(piece));
                    stage.clock_was_set(&text, step_ns);
                    freed
                }
                Item::Event(at_ns, what) => {
                    stage.event(at_ns, what);
                    0
                }
                Item::End(ending) => {
                    queue.release(merge.hand_out_all(|piece| stage.frames(piece)));
                    return stage.finish(merge.late(), ending);
                }
            };
            queue.release(freed);
        }
        if looks_without >= QUIET_LOOKS {
            queue.release(merge.hand_out_after_pause(complete_ns, |piece| stage.frames(piece)));
            stage.pass(complete_ns.min(now_ns)); // without any interface, everything is complete for ever
        }
        queue.recycle(merge.spare());
        if stage.output.left == 0 {
            live.enough.store(true, Ordering::Relaxed);
        }
        stage.output.tick();
        if checked.elapsed() > CHECK {
            checked = Instant::now();
            stage.output.delete_surplus();
            let missing = taken.abs_diff(stage.output.placed() + merge.frames());
            if missing > unaccounted {
                live.alarm(format!("{missing} frames unaccounted inside canter, a fault of canter"));
            }
            unaccounted = missing;
        }
    }
}

#[cfg(test)]
#[path = "writer/tests.rs"]
mod tests;
