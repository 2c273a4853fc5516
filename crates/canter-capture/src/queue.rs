//! The RAM queue between the receiver and the writer: frames wait here while the disk stalls. Its size in bytes is
//! limited. When it is full, the receiver discards and counts frames, so that the ring does not fill.

use crate::{chunk::Chunk, live::Progress};
use canter_formats::Closing;
use std::{
    collections::VecDeque,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// A message from the receiver to the writer.
pub enum Item {
    Chunk(Chunk),
    /// A new interface; the first is number 0.
    Interface(String),
    /// The real-time clock was set; a sentence for the file, and by how much, in ns.
    ClockStep(String, i64),
    /// The program asks for an event, at this time of the real-time clock; the cause.
    Event(u64, String),
    /// The end of the recording.
    End(Ending),
}

/// Makes the statistics of each interface and the verdict, for the end of the last file, from what was written.
pub type Ending = Box<dyn FnOnce(&Progress) -> (Vec<Closing>, String) + Send>;

/// How many empty chunks are kept for reuse: more than arrive between two rounds of the writer. Without reuse, malloc
/// would return memory freed by the other thread to the kernel, which clears each page before it hands it out again.
const SPARE_CHUNKS: usize = 64;

pub struct Queue {
    items: Mutex<VecDeque<Item>>,
    more: Condvar,
    /// Bytes in use: of the chunks in the queue, and of those taken and not released yet.
    bytes: AtomicUsize,
    high_water: AtomicUsize,
    limit: usize,
    spare: Mutex<Vec<Chunk>>,
    /// Every frame with a stamp below this, in ns, has been added to the queue.
    complete_until_ns: AtomicU64,
}

impl Queue {
    /// An empty queue for chunks of at most `limit` bytes in total.
    pub fn new(limit: usize) -> Self {
        Self {
            items: Mutex::default(),
            more: Condvar::new(),
            bytes: AtomicUsize::new(0),
            high_water: AtomicUsize::new(0),
            limit,
            spare: Mutex::default(),
            complete_until_ns: AtomicU64::new(0),
        }
    }

    fn items(&self) -> MutexGuard<'_, VecDeque<Item>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An empty chunk with room for `frames`, all of them FD or none.
    pub fn chunk(&self, fd: bool, frames: usize) -> Chunk {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        match spare.iter_mut().rposition(|chunk| chunk.reuse(fd, frames)) {
            Some(at) => spare.swap_remove(at),
            None => {
                drop(spare.pop()); // makes room for a chunk of a size that is in use
                Chunk::new(fd, frames)
            }
        }
    }

    /// Keeps empty chunks for reuse by [`chunk`](Self::chunk).
    pub fn recycle(&self, chunks: impl Iterator<Item = Chunk>) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let room = SPARE_CHUNKS - spare.len();
        let mut left = chunks;
        spare.extend(left.by_ref().take(room));
        drop(spare);
        left.for_each(drop);
    }

    /// Adds a chunk, or returns it when the queue is full. Does not wake the writer, which looks periodically: that costs
    /// less than one wake-up per block.
    pub fn push(&self, chunk: Chunk) -> Result<(), Chunk> {
        let bytes = self.bytes.load(Ordering::Relaxed) + chunk.bytes();
        if bytes > self.limit {
            return Err(chunk);
        }
        // Only the receiver adds, so the sum cannot exceed the limit. Relaxed: the number orders no other memory.
        self.bytes.fetch_add(chunk.bytes(), Ordering::Relaxed);
        self.high_water.fetch_max(bytes, Ordering::Relaxed);
        self.items().push_back(Item::Chunk(chunk));
        Ok(())
    }

    /// Adds a message without frames, which does not count as memory in use, and wakes the writer.
    pub fn send(&self, item: Item) {
        self.items().push_back(item);
        self.more.notify_one();
    }

    /// Declares that every frame with a stamp below `ns` has been added.
    pub fn set_complete_until(&self, ns: u64) {
        self.complete_until_ns.store(ns, Ordering::Release); // pairs with `complete_until`
    }

    /// The latest value of [`set_complete_until`](Self::set_complete_until). Read it before `take`: then it holds for all
    /// that was taken.
    pub fn complete_until(&self) -> u64 {
        self.complete_until_ns.load(Ordering::Acquire)
    }

    /// Moves all messages into `into`, which is empty; waits up to `wait` for [`send`](Self::send) if there are none.
    pub fn take(&self, into: &mut VecDeque<Item>, wait: Duration) {
        let mut items = self.items();
        if items.is_empty() {
            items = self.more.wait_timeout(items, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::swap(&mut *items, into);
    }

    /// Releases the memory of chunks that the writer has finished with, in bytes.
    pub fn release(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes in use now, and the most that were in use.
    pub fn used(&self) -> (usize, usize) {
        (self.bytes.load(Ordering::Relaxed), self.high_water.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_gives_the_chunk_back_until_memory_is_released() {
        let one = Chunk::new(false, 10).bytes();
        let queue = Queue::new(2 * one);
        assert!(queue.push(Chunk::new(false, 10)).is_ok() && queue.push(Chunk::new(false, 10)).is_ok());
        let back = queue.push(Chunk::new(false, 10)).err().unwrap();
        let mut taken = VecDeque::new();
        queue.take(&mut taken, Duration::ZERO);
        assert_eq!((taken.len(), queue.used()), (2, (2 * one, 2 * one)));
        assert!(queue.push(Chunk::new(false, 10)).is_err(), "taken is not released");
        queue.release(one);
        assert!(queue.push(back).is_ok());
        assert_eq!(queue.used(), (2 * one, 2 * one));
    }

    #[test]
    fn memory_is_reused_for_a_similar_number_of_frames_of_the_same_kind() {
        let queue = Queue::new(1 << 20);
        let frames_fit = |chunk: &Chunk, frames: usize| chunk.bytes() == Chunk::new(false, frames).bytes();
        queue.recycle([Chunk::new(false, 100), Chunk::new(true, 50)].into_iter());
        let again = queue.chunk(false, 60);
        assert!(frames_fit(&again, 100) && again.len() == 0);
        queue.recycle([again].into_iter());
        assert!(frames_fit(&queue.chunk(false, 40), 40), "too large for so few");
        queue.recycle((0..2 * SPARE_CHUNKS).map(|_| Chunk::new(false, 1)));
        assert_eq!(queue.spare.lock().unwrap().len(), SPARE_CHUNKS);
    }
}
