//! Copies received frames to the queue and counts them, also those for which the queue has no room.

use crate::{buses::Buses, chunk::Chunk, queue::Queue};
use canter_io::captured::Captured;

/// Counts all frames, and moves those to be recorded to the queue.
pub struct Keeper<'a> {
    pub queue: &'a Queue,
    pub buses: Buses<'a>,
    /// Frames moved to the queue, or lost because it was full.
    pub kept: u64,
    /// Frames among them that were lost because the queue was full.
    pub queue_lost: u64,
}

impl<'a> Keeper<'a> {
    pub fn new(queue: &'a Queue, buses: Buses<'a>) -> Self {
        Self { queue, buses, kept: 0, queue_lost: 0 }
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
