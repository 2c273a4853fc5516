//! The state of a recording while it runs. The recording threads never wait for a reader of this state.

use crate::account::{Deleted, Event, Written};
use canter_io::clock;
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// How many events are kept, so that an interface that comes and goes all day does not fill the memory.
const EVENTS_MAX: usize = 1000;

/// How long a bus has been busy since the recording began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// The interface.
    pub name: String,
    /// The time that its frames took on the wire, in ns, computed from their exact number of bits; `None`: the bit rate
    /// is unknown.
    pub busy_ns: Option<u64>,
}

/// What the writer has written and lost.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Frames in the files, of each interface.
    pub in_file: Vec<u64>,
    /// Frames not written because of a disk error, of each interface.
    pub lost: Vec<u64>,
    /// Frames after the frame limit was reached, of each interface.
    pub beyond: Vec<u64>,
    /// Frames written after younger ones.
    pub late: u64,
    /// The size of all files in bytes.
    pub bytes: u64,
    /// Why it stopped writing.
    pub error: Option<String>,
    /// The files that exist.
    pub files: Vec<Written>,
    pub deleted: Deleted,
}

/// Shared by the threads of a recording and its [`Recording`](crate::Recording).
#[derive(Default)]
pub struct Live {
    pub stop: AtomicBool,
    /// The writer has reached the frame limit.
    pub enough: AtomicBool,
    /// Rounds of the receiver's loop: several per second, also without frames.
    pub rounds: AtomicU64,
    pub frames: AtomicU64,
    pub queue_lost: AtomicU64,
    /// Frames that the ring or the sockets have lost.
    pub ring_lost: AtomicU64,
    /// Whether the receiver publishes `busy`.
    pub show_load: AtomicBool,
    pub busy: Mutex<Vec<Busy>>,
    /// What the writer has done so far.
    pub written: Mutex<Progress>,
    events: Mutex<Vec<Event>>,
}

impl Live {
    /// Adds an event with the current time.
    pub fn log(&self, what: String) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() < EVENTS_MAX {
            events.push(Event { at_ns: clock::realtime_ns(), what });
        }
    }

    /// The events from number `from` on.
    pub fn events(&self, from: usize) -> Vec<Event> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.get(from..).unwrap_or_default().to_vec()
    }

    /// Frames lost so far in the ring, the sockets and the RAM queue; other losses are known at the end only.
    pub fn lost(&self) -> u64 {
        self.ring_lost.load(Ordering::Relaxed) + self.queue_lost.load(Ordering::Relaxed)
    }
}
