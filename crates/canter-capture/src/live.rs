//! The state of a recording while it runs. The recording threads never wait for a reader of this state.

use crate::account::{Deleted, Event, Triggered, Written};
use canter_io::clock;
use serde::Serialize;
use std::{
    collections::VecDeque,
    mem,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// How many events the account keeps, so that an interface that comes and goes all day does not fill the memory. Alarms
/// are kept beyond that.
const EVENTS_MAX: usize = 1000;
/// How many alarms the account keeps.
const ALARMS_MAX: usize = 1000;
/// How many events wait to be reported; of more, the oldest are left out.
const NEWS_MAX: usize = 1000;

/// How many frames a bus had, and how long it was busy, since the recording began or since somebody asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Busy {
    /// The interface.
    pub name: String,
    /// Frames received of it.
    pub frames: u64,
    /// The time that its frames took on the wire, in ns, computed from their exact number of bits; `None`: the bit rate
    /// is unknown.
    pub busy_ns: Option<u64>,
}

/// A file that is being written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Current {
    /// The path of the file.
    pub name: String,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// When it was begun, in ns of the real-time clock.
    pub since_ns: u64,
}

/// The frames that the writer has written and lost.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// The names of the interfaces, at the end.
    pub names: Vec<String>,
    /// Frames in the files, of each interface.
    pub in_file: Vec<u64>,
    /// Frames not written because of a disk error, of each interface.
    pub lost: Vec<u64>,
    /// Frames after the frame limit was reached, of each interface.
    pub beyond: Vec<u64>,
    /// Frames outside of all windows of triggers, of each interface.
    pub outside: Vec<u64>,
    /// Frames of windows for which there was no memory, of each interface.
    pub window_lost: Vec<u64>,
    /// Frames written after younger ones.
    pub late: u64,
    /// The size of all files in bytes.
    pub bytes: u64,
    /// Why it does not write.
    pub error: Option<String>,
    /// The file that is being written; `None`: none, between windows of triggers.
    pub current: Option<Current>,
    /// How often a condition of triggers was met.
    pub triggered_events: u64,
    /// The files that exist.
    pub files: Vec<Written>,
    pub deleted: Deleted,
    /// The windows of triggers, at the end.
    pub triggered: Option<Triggered>,
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
    /// Whether the receiver publishes `busy` all the time.
    pub show_load: AtomicBool,
    /// Until when it does because somebody asked, in ns of the monotonic clock.
    pub asked_until_ns: AtomicU64,
    pub busy: Mutex<Vec<Busy>>,
    /// The writer's progress so far.
    pub written: Mutex<Progress>,
    events: Mutex<Events>,
}

/// What happened.
#[derive(Default)]
struct Events {
    /// For the account.
    kept: Vec<Event>,
    alarms: usize,
    left_out: u64,
    /// Not reported yet.
    fresh: VecDeque<Event>,
    /// Events that were left out of `fresh`.
    unreported: u64,
}

impl Events {
    fn add(&mut self, event: Event, alarm: bool) {
        let (count, most) = match alarm {
            true => (self.alarms, ALARMS_MAX),
            false => (self.kept.len() - self.alarms, EVENTS_MAX),
        };
        if count < most {
            self.alarms += usize::from(alarm);
            self.kept.push(event.clone());
        } else {
            self.left_out += 1;
        }
        self.fresh.push_back(event);
        if self.fresh.len() > NEWS_MAX {
            self.fresh.pop_front();
            self.unreported += 1;
        }
    }
}

impl Live {
    /// Whether somebody wants to see what each bus does.
    pub fn wants_load(&self) -> bool {
        self.show_load.load(Ordering::Relaxed)
            || self.asked_until_ns.load(Ordering::Relaxed) > clock::monotonic_ns()
    }

    /// Adds an event with the current time.
    pub fn log(&self, what: String) {
        self.add(what, false);
    }

    /// Adds an event that must not be missed: frames are lost from now on.
    pub fn alarm(&self, what: String) {
        self.add(what, true);
    }

    fn add(&self, what: String, alarm: bool) {
        let event = Event { at_ns: clock::realtime_ns(), what };
        self.events.lock().unwrap_or_else(PoisonError::into_inner).add(event, alarm);
    }

    /// The events since the last call.
    pub fn take_events(&self) -> Vec<Event> {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let unreported = mem::take(&mut events.unreported);
        let mut fresh: Vec<Event> = mem::take(&mut events.fresh).into();
        if unreported > 0 {
            let what = format!("{unreported} earlier events are not reported");
            fresh.insert(0, Event { at_ns: clock::realtime_ns(), what });
        }
        fresh
    }

    /// The events for the account, and how many it leaves out.
    pub fn kept_events(&self) -> (Vec<Event>, u64) {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        (events.kept.clone(), events.left_out)
    }

    /// Frames lost so far in the ring, the sockets, memory and at the disk; other losses are known at the end only.
    pub fn lost(&self) -> u64 {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let by_writer: u64 = written.lost.iter().chain(&written.window_lost).sum();
        self.ring_lost.load(Ordering::Relaxed) + self.queue_lost.load(Ordering::Relaxed) + by_writer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_after_thousands_of_events_is_reported_and_in_the_account() {
        let live = Live::default();
        for number in 0..3000 {
            live.log(format!("can0: is down {number}"));
            if number % 100 == 0 {
                live.take_events();
            }
        }
        live.alarm("drive.log: write: no space left on device".to_owned());
        assert!(live.take_events().last().unwrap().what.contains("no space left"));
        live.log("can0: is up".to_owned());
        assert_eq!(live.take_events()[0].what, "can0: is up", "nothing is silent after the first thousand");
        let (kept, left_out) = live.kept_events();
        assert!(kept.iter().any(|event| event.what.contains("no space left")));
        assert_eq!((kept.len(), left_out), (1001, 2001));
    }

    #[test]
    fn events_that_nobody_reads_are_left_out_and_counted() {
        let live = Live::default();
        (0..NEWS_MAX + 5).for_each(|number| live.log(number.to_string()));
        let events = live.take_events();
        assert_eq!((events.len(), events[1].what.as_str()), (NEWS_MAX + 1, "5"));
        assert_eq!(events[0].what, "5 earlier events are not reported");
    }
}
