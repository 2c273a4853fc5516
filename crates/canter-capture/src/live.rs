//! What can be seen of a recording while it runs. Whoever records never waits for whoever looks.

use crate::{account::Event, writer};
use canter_io::clock;
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// How many events are kept; an interface that comes and goes all day shall not fill the memory.
const EVENTS_MAX: usize = 1000;

/// How long a bus was busy so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// The interface.
    pub name: String,
    /// The time that its frames took on the wire, in ns, by their exact bits; `None`: no bit rate is known.
    pub busy_ns: Option<u64>,
}

/// Shared by the threads and whoever looks at them.
#[derive(Default)]
pub struct Live {
    pub stop: AtomicBool,
    /// The writer has as many frames as were asked for.
    pub enough: AtomicBool,
    /// How often the receiver came by: it does so several times a second, frames or none.
    pub rounds: AtomicU64,
    pub frames: AtomicU64,
    pub queue_lost: AtomicU64,
    /// Frames that the ring or the sockets have lost.
    pub ring_lost: AtomicU64,
    /// Whether somebody wants to know how busy the buses are.
    pub show_load: AtomicBool,
    pub busy: Mutex<Vec<Busy>>,
    /// What the writer has written so far.
    pub written: Mutex<writer::Report>,
    events: Mutex<Vec<Event>>,
}

impl Live {
    /// Notes that something happened now.
    pub fn say(&self, what: String) {
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

    /// Frames lost so far by what this program knows while it runs.
    pub fn lost(&self) -> u64 {
        self.ring_lost.load(Ordering::Relaxed) + self.queue_lost.load(Ordering::Relaxed)
    }
}
