//! Copies received frames to the queue and counts them, also those for which the queue has no room.

use crate::{
    buses::Buses,
    chunk::Chunk,
    counting::{clock_offset_ns, clock_step},
    live::Live,
    queue::{Item, Queue},
};
use canter_io::captured::Captured;
use std::time::Instant;

/// Counts all frames, and moves those to be recorded to the queue.
pub struct Keeper<'a> {
    pub queue: &'a Queue,
    pub buses: Buses<'a>,
    /// Frames moved to the queue, or lost because it was full.
    pub kept: u64,
    /// Frames among them that were lost because the queue was full.
    pub queue_lost: u64,
    live: &'a Live,
    /// Real time minus monotonic time, in ns, at the last look.
    clock_offset_ns: u64,
    /// How often the clock was set.
    pub clock_steps: u64,
    /// When the clock was set last.
    pub clock_set: Option<Instant>,
}

impl<'a> Keeper<'a> {
    pub fn new(queue: &'a Queue, buses: Buses<'a>, live: &'a Live) -> Self {
        Self {
            queue,
            buses,
            kept: 0,
            queue_lost: 0,
            live,
            clock_offset_ns: clock_offset_ns(),
            clock_steps: 0,
            clock_set: None,
        }
    }

    /// Looks whether the clock was set, and tells the writer.
    pub fn check_clock(&mut self) {
        let now_ns = clock_offset_ns();
        let step_ns = clock_step(self.clock_offset_ns, now_ns);
        self.clock_offset_ns = now_ns;
        let Some(step_ns) = step_ns else { return };
        let (way, ms) = (if step_ns < 0 { "back" } else { "forward" }, step_ns.unsigned_abs() / 1_000_000);
        let text = format!("the clock was set {way} by {}.{:03} s", ms / 1000, ms % 1000);
        self.live.log(text.clone());
        self.clock_steps += 1;
        self.clock_set = Some(Instant::now());
        self.queue.send(Item::ClockStep(text, step_ns));
        self.buses.clock_was_set(step_ns);
    }

    /// Moves the records to be recorded, at most `frames`, to the queue.
    pub fn keep_block<'r>(&mut self, fd: bool, frames: usize, records: impl Iterator<Item = Captured<'r>>) {
        let chunk = self.queue.chunk(fd, frames);
        self.keep(chunk, records);
    }

    /// Copies the records to be recorded into `chunk`, which has room for all, and moves the chunk to the queue. If the
    /// queue is full, the frames count as lost there.
    #[inline]
    pub fn keep<'r>(&mut self, mut chunk: Chunk, records: impl Iterator<Item = Captured<'r>>) {
        // Before the frames: the writer would take those that were stamped after a step for old ones, or ones of the future.
        self.check_clock();
        self.buses.copy_wanted(&mut chunk, records);
        self.kept += chunk.len() as u64;
        if chunk.len() == 0 {
            return;
        }
        if let Err(chunk) = self.queue.push(chunk) {
            for record in chunk.records() {
                self.buses.list[record.bus.index()].tally.queue_lost += 1;
                self.queue_lost += 1;
            }
        }
    }
}
