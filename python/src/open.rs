//! What an open bus has: channels, and the frames received from them. Nothing here takes the GIL, so a thread that holds
//! the GIL may wait for the locks here.

use crate::{channel::Channel, waiting::Waiting};
use canter_io::{
    Error, Filters, event,
    node::{Inbox, NodeOptions, Received},
    poll,
};
use std::{
    collections::VecDeque,
    io,
    os::fd::{AsFd, AsRawFd, RawFd},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// How often a receiver checks whether a stopped device runs again, which the kernel does not report.
const STATE_CHECK_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Default)]
struct Inside {
    inbox: Inbox,
    queue: VecDeque<Received>,
    /// An error to report after the frames that precede it. The kernel reports it before them, and only once.
    failure: Option<Error>,
    /// The flag `queued` is set.
    flagged: bool,
}

/// An open bus. Its descriptors are closed when the last thread that uses it lets go of it.
pub struct Open {
    pub channels: Vec<Channel>,
    inside: Mutex<Inside>,
    /// Readable when a channel is, when frames are queued here, or when the bus is shut down.
    ready: event::Any,
    queued: event::Flag,
    /// A program polls `ready`, so `queued` must be kept up to date.
    polled: AtomicBool,
    /// Threads that wait. A single thread sees the frames that it has queued; other threads must be woken.
    waiting: AtomicUsize,
    closing: event::Flag,
    closed: AtomicBool,
    received: AtomicU64,
    sent: AtomicU64,
}

/// Counts since the bus was opened.
#[derive(Clone, Default)]
pub struct Stats {
    pub received: u64,
    pub sent: u64,
    pub queued: usize,
    pub lost_socket: u64,
    pub lost_driver: u64,
    pub overrun_events: u64,
    pub receive_buffer: u64,
}

impl Open {
    pub fn new(names: &[String], options: &NodeOptions) -> Result<Self, Error> {
        let channels = names.iter().map(|name| Channel::open(name, options));
        let channels = channels.collect::<Result<Vec<_>, _>>()?;
        let parts = || -> io::Result<_> {
            let (ready, queued, closing) = (event::Any::new()?, event::Flag::new()?, event::Flag::new()?);
            ready.add(queued.as_fd())?;
            ready.add(closing.as_fd())?;
            for channel in &channels {
                ready.add(channel.node.as_fd())?;
            }
            Ok((ready, queued, closing))
        };
        let (ready, queued, closing) = parts().map_err(|error| Error::new("bus", "open", error))?;
        Ok(Self {
            channels,
            inside: Mutex::default(),
            ready,
            queued,
            polled: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            closing,
            closed: AtomicBool::new(false),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
        })
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next queued frame.
    pub fn pop(&self) -> Option<Received> {
        let mut inside = self.inside();
        let received = inside.queue.pop_front()?;
        self.note_queued(&mut inside);
        Some(received)
    }

    /// Up to `max` queued frames.
    pub fn take(&self, max: usize) -> Vec<Received> {
        let mut inside = self.inside();
        let count = max.min(inside.queue.len());
        let batch = inside.queue.drain(..count).collect();
        self.note_queued(&mut inside);
        batch
    }

    /// Puts frames back that were taken and not handed out.
    pub fn put_back(&self, frames: &[Received]) {
        let mut inside = self.inside();
        frames.iter().rev().for_each(|frame| inside.queue.push_front(*frame));
        self.note_queued(&mut inside);
    }

    /// Updates the flag for a program that polls the descriptor and for other threads that wait.
    fn note_queued(&self, inside: &mut Inside) {
        if inside.queue.is_empty() && inside.failure.is_none() {
            if std::mem::take(&mut inside.flagged) {
                self.queued.clear();
            }
        } else if !inside.flagged
            && (self.polled.load(Ordering::Relaxed) || self.waiting.load(Ordering::Relaxed) > 1)
        {
            inside.flagged = true;
            self.queued.set();
        }
    }

    /// Counts a thread that waits, for as long as it does.
    pub fn waiting(&self) -> Waiting<'_> {
        Waiting::on(&self.waiting)
    }

    /// Receives the waiting frames of every channel; returns whether any frame is queued. Errors are kept for
    /// [`failure`](Self::failure).
    pub fn fill(&self) -> bool {
        let mut inside = self.inside();
        let count: usize = self.channels.iter().map(|channel| self.take_from(channel, &mut inside)).sum();
        self.received.fetch_add(count as u64, Ordering::Relaxed);
        if self.channels.len() > 1 {
            inside.queue.make_contiguous().sort_by_key(|received| received.meta.stamp_ns);
        }
        self.note_queued(&mut inside);
        !inside.queue.is_empty()
    }

    /// The error that is due, once all frames before it have been handed out.
    pub fn failure(&self) -> Option<Error> {
        let mut inside = self.inside();
        if !inside.queue.is_empty() {
            return None;
        }
        let failure = inside.failure.take();
        self.note_queued(&mut inside);
        failure
    }

    /// Receives the waiting frames of a channel, and notes an error once.
    fn take_from(&self, channel: &Channel, inside: &mut Inside) -> usize {
        let Inside { inbox, queue, failure, .. } = inside;
        let (count, error) = match channel.node.receive(inbox, queue) {
            Ok(count) => (count, None),
            Err(error) => (0, Some(error)),
        };
        let errno = error.as_ref().map_or(0, |error| error.raw_os_error().unwrap_or_default());
        let news = self.errno_changed(channel, errno);
        match (news, error) {
            (Err(error), _) => *failure = Some(Error::new(channel.name(), "poll", error)),
            (Ok(true), Some(error)) => {
                *failure = Some(Error::moving(channel.name(), "receive", error));
                // For a socket the kernel reports the error before the waiting frames.
                return channel.node.receive(inbox, queue).unwrap_or(0);
            }
            _ => {}
        }
        count
    }

    /// Records a channel's errno, or 0; returns whether it has changed. A device repeats its error and would be
    /// readable all the time.
    fn errno_changed(&self, channel: &Channel, errno: i32) -> io::Result<bool> {
        if !channel.is_device() {
            return Ok(true);
        }
        let before = channel.trouble.swap(errno, Ordering::Relaxed);
        match (before, errno) {
            // A closed descriptor has been removed already.
            (0, 1..) => self.ready.remove(channel.node.as_fd()).unwrap_or(()),
            (1.., 0) => self.ready.add(channel.node.as_fd())?,
            _ => {}
        }
        Ok(before != errno)
    }

    /// Waits until a frame or an error may have come, for at most `left`; it may return early.
    pub fn wait(&self, left: Option<Duration>) -> io::Result<()> {
        let stopped = self.channels.iter().any(|channel| channel.trouble.load(Ordering::Relaxed) != 0);
        let left = if stopped {
            Some(left.map_or(STATE_CHECK_INTERVAL, |left| left.min(STATE_CHECK_INTERVAL)))
        } else {
            left
        };
        let left_ns = left.map(|left| u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
        poll::readable(&[self.ready.as_fd()], left_ns).map(drop)
    }

    /// Counts a frame that was sent.
    pub fn count_sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    pub fn set_filters(&self, filters: &Filters) -> Result<(), Error> {
        self.channels.iter().try_for_each(|channel| channel.node.set_filters(filters))
    }

    /// A descriptor that is readable while a frame, or an error, can be received without waiting.
    pub fn descriptor(&self) -> RawFd {
        let mut inside = self.inside();
        self.polled.store(true, Ordering::Relaxed);
        self.note_queued(&mut inside);
        self.ready.as_fd().as_raw_fd()
    }

    /// The counts so far. Those of an interface that has gone are the last ones that could be read.
    pub fn stats(&self) -> io::Result<Stats> {
        let mut stats = Stats {
            received: self.received.load(Ordering::Relaxed),
            sent: self.sent.load(Ordering::Relaxed),
            queued: self.inside().queue.len(),
            receive_buffer: u64::MAX,
            ..Stats::default()
        };
        for channel in &self.channels {
            stats.lost_socket += channel.node.drops()?;
            let grown = channel.counters().since(&channel.before);
            stats.overrun_events += grown.rx_over_errors + grown.rx_fifo_errors + grown.rx_missed;
            stats.lost_driver += grown.rx_dropped;
            stats.receive_buffer = stats.receive_buffer.min(channel.node.queue_bytes()?.into());
        }
        Ok(stats)
    }

    /// Ends all waits.
    pub fn shut(&self) {
        self.closed.store(true, Ordering::Release);
        self.closing.set();
    }

    pub fn is_shut(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}
