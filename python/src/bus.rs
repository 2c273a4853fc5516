//! A bus of one or more channels: receives many frames per system call without the GIL, and returns them one by one.

use crate::{
    channel::Channel,
    exception::{failed, refused},
    message::{self, Maker},
    waiting::{Deadline, Waiting, seconds},
};
use canter_io::{
    Error, Filter, Filters, Interface, event,
    filter::EVERY_ERROR,
    node::{Inbox, NodeOptions, Received},
    poll,
};
use pyo3::{
    prelude::*,
    types::{PyDict, PyList, PyString},
};
use std::{
    collections::{HashMap, VecDeque},
    io,
    os::fd::{AsFd, AsRawFd},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// The time between two attempts to send into a full queue, for which poll(2) cannot wait.
const RETRY_INTERVAL: Duration = Duration::from_micros(500);
/// How often a receiver checks whether a stopped device runs again, which the kernel does not report.
const STATE_CHECK_INTERVAL: Duration = Duration::from_millis(100);

struct Inside {
    inbox: Inbox,
    queue: VecDeque<Received>,
    /// The names of interfaces by their index, as Python strings.
    names: HashMap<u32, Py<PyString>>,
    /// An error to raise after the frames that precede it. The kernel reports it before them, and only once.
    failure: Option<Error>,
    /// The flag `queued` is set.
    flagged: bool,
}

/// One or more channels. Receiving and sending may be done by different threads.
#[pyclass(frozen, module = "canter._native")]
pub struct Bus {
    channels: Vec<Channel>,
    inside: Mutex<Inside>,
    maker: Maker,
    hardware: bool,
    /// Readable when a channel is, when frames are queued here, or when the bus is closed.
    ready: event::Any,
    queued: event::Flag,
    /// A program polls `ready`, so `queued` must be kept up to date.
    polled: AtomicBool,
    /// Threads in [`Bus::wait`]. A single thread sees the frames that it has queued; other threads must be woken.
    waiting: AtomicUsize,
    closing: event::Flag,
    closed: AtomicBool,
    received: AtomicU64,
    sent: AtomicU64,
}

#[pymethods]
impl Bus {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "each has a name in Python")]
    #[pyo3(signature = (channels, *, own_frames, echo, fd, error_frames, queue_bytes, hardware_stamps))]
    fn new(
        py: Python<'_>,
        channels: Vec<String>,
        own_frames: bool,
        echo: bool,
        fd: bool,
        error_frames: bool,
        queue_bytes: Option<u32>,
        hardware_stamps: bool,
    ) -> PyResult<Self> {
        let filters =
            Filters { error_mask: if error_frames { EVERY_ERROR } else { 0 }, ..Filters::default() };
        let options = NodeOptions { own_frames, echo, fd, filters, queue_bytes, hardware_stamps };
        let channels = channels.iter().map(|name| Channel::open(name, &options));
        let channels = channels.collect::<Result<Vec<_>, _>>().map_err(refused)?;
        let parts = || -> io::Result<_> {
            let (ready, queued, closing) = (event::Any::new()?, event::Flag::new()?, event::Flag::new()?);
            ready.add(queued.as_fd())?;
            ready.add(closing.as_fd())?;
            for channel in &channels {
                ready.add(channel.node.as_fd())?;
            }
            Ok((ready, queued, closing))
        };
        let (ready, queued, closing) = parts()?;
        let named = channels.iter().filter_map(|channel| channel.interface.as_ref());
        let names = named.map(|one| (one.index, PyString::new(py, &one.name).unbind())).collect();
        let inside =
            Inside { inbox: Inbox::default(), queue: VecDeque::new(), names, failure: None, flagged: false };
        Ok(Self {
            channels,
            inside: Mutex::new(inside),
            maker: Maker::new(py)?,
            hardware: hardware_stamps,
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

    /// The next message; None after `timeout` seconds (None: forever).
    #[pyo3(signature = (timeout=None))]
    fn recv<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut deadline = None;
        loop {
            if let Some(received) = self.pop() {
                return self.message(py, &received).map(Some);
            }
            let deadline = *deadline.get_or_insert_with(|| Deadline::after(timeout));
            // Another thread may take the frame first.
            if !self.wait(py, deadline)? {
                return Ok(None);
            }
        }
    }

    /// Up to `max` messages: the waiting ones, or the first to arrive; an empty list after `timeout`.
    #[pyo3(signature = (max, timeout=None))]
    fn recv_many<'py>(
        &self,
        py: Python<'py>,
        max: usize,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        let deadline = Deadline::after(timeout);
        while list.len() < max {
            let batch = self.take(max - list.len());
            // Consecutive frames are often of one bus: its name is looked up once for them.
            for row in batch.chunk_by(|one, next| one.meta.interface == next.meta.interface) {
                let name = self.name_of(py, row[0].meta.interface);
                for received in row {
                    list.append(self.maker.message(py, received, self.stamp_ns(received), &name)?)?;
                }
            }
            // Waits only for the first.
            let wait = if list.is_empty() { deadline } else { Deadline::after(Some(0.0)) };
            if list.len() == max || !self.wait(py, wait)? {
                break;
            }
        }
        Ok(list)
    }

    /// Sends a message, waiting up to `timeout` seconds for room in a full queue.
    fn send(&self, py: Python<'_>, message: &Bound<'_, PyAny>, timeout: f64) -> PyResult<()> {
        let frame = message::frame(message)?;
        let (channel, index) = self.destination(message)?;
        let deadline = Instant::now() + seconds(timeout);
        loop {
            let Err(error) = channel.node.send(&frame, index) else {
                self.sent.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            };
            let full = matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN | libc::EINTR));
            if !full {
                return Err(failed(channel.cannot_send(&frame, error)));
            }
            if Instant::now() >= deadline {
                let error = Error::new(channel.name(), "send: transmit queue full", error);
                return Err(failed(error.hint(channel.room())));
            }
            py.detach(|| std::thread::sleep(RETRY_INTERVAL));
            py.check_signals()?;
        }
    }

    /// Passes only frames that match one of these (id, mask) pairs, in the kernel's format.
    fn set_filters(&self, filters: Vec<(u32, u32)>, error_frames: bool) -> PyResult<()> {
        let list = filters.into_iter().map(|(id, mask)| Filter { id, mask }).collect();
        let filters = Filters { list, error_mask: if error_frames { EVERY_ERROR } else { 0 }, join: false };
        self.channels.iter().try_for_each(|channel| channel.node.set_filters(&filters)).map_err(refused)
    }

    /// A descriptor that is readable while a message can be received without waiting.
    fn fileno(&self) -> PyResult<i32> {
        self.check_open()?;
        let mut inside = self.inside();
        self.polled.store(true, Ordering::Relaxed);
        self.note_queued(&mut inside);
        Ok(self.ready.as_fd().as_raw_fd())
    }

    /// The counts of received and lost frames so far, by place.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = PyDict::new(py);
        let mut dropped = 0;
        let (mut overruns, mut driver) = (0, 0);
        for channel in &self.channels {
            dropped += channel.node.drops()?;
            let grown = channel.node.counters().map_err(failed)?.since(&channel.before);
            overruns += grown.rx_over_errors + grown.rx_fifo_errors + grown.rx_missed;
            driver += grown.rx_dropped;
        }
        stats.set_item("received", self.received.load(Ordering::Relaxed))?;
        stats.set_item("sent", self.sent.load(Ordering::Relaxed))?;
        stats.set_item("queued", self.inside().queue.len())?;
        stats.set_item("lost_socket", dropped)?;
        stats.set_item("lost_driver", driver)?;
        stats.set_item("overrun_events", overruns)?;
        let sizes = self.channels.iter().map(|channel| channel.node.queue_bytes());
        stats.set_item("receive_buffer", sizes.collect::<io::Result<Vec<_>>>()?.into_iter().min())?;
        Ok(stats)
    }

    /// The kernel's name of the first controller's state; None without a controller.
    fn state(&self) -> PyResult<Option<String>> {
        let first = self.channels.iter().find_map(|channel| channel.interface.clone());
        let Some(mut now) = first else { return Ok(None) };
        now.refresh().map_err(failed)?;
        Ok(now.controller.and_then(|controller| controller.state).map(|state| state.to_string()))
    }

    /// For each channel with bit rates: its name, its bit rate and its data bit rate in bit/s.
    fn bit_rates(&self) -> Vec<(String, u32, Option<u32>)> {
        let named = self.channels.iter().filter_map(|channel| channel.interface.as_ref());
        named.filter_map(|one| Some((one.name.clone(), one.bitrate()?, one.data_bitrate()))).collect()
    }

    /// Ends all waits, and closes devices when they have sent all frames; then everything but `stats` fails.
    fn close(&self, py: Python<'_>) {
        self.closed.store(true, Ordering::Release);
        self.closing.set();
        py.detach(|| self.channels.iter().for_each(|channel| channel.node.close()));
    }
}

impl Bus {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_open(&self) -> PyResult<()> {
        let closed = || failed(Error::new("bus", "use", io::Error::other("the bus is shut down")));
        if self.closed.load(Ordering::Acquire) { Err(closed()) } else { Ok(()) }
    }

    fn pop(&self) -> Option<Received> {
        let mut inside = self.inside();
        let received = inside.queue.pop_front()?;
        self.note_queued(&mut inside);
        Some(received)
    }

    fn take(&self, max: usize) -> Vec<Received> {
        let mut inside = self.inside();
        let count = max.min(inside.queue.len());
        let batch = inside.queue.drain(..count).collect();
        self.note_queued(&mut inside);
        batch
    }

    /// Updates the flag for a program that polls the descriptor and for other threads in [`Self::wait`].
    fn note_queued(&self, inside: &mut Inside) {
        if inside.queue.is_empty() {
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

    /// Waits until a frame is queued; false after the deadline. Without the GIL.
    fn wait(&self, py: Python<'_>, deadline: Deadline) -> PyResult<bool> {
        let _waiting = Waiting::on(&self.waiting);
        loop {
            self.check_open()?;
            if py.detach(|| self.fill())? {
                return Ok(true);
            }
            let left = deadline.left();
            if left == Some(Duration::ZERO) {
                return Ok(false);
            }
            let stopped = self.channels.iter().any(|channel| channel.trouble.load(Ordering::Relaxed) != 0);
            let left = if stopped {
                Some(left.unwrap_or(STATE_CHECK_INTERVAL).min(STATE_CHECK_INTERVAL))
            } else {
                left
            };
            let left_ns = left.map(|left| left.as_nanos() as u64);
            py.detach(|| poll::readable(&[self.ready.as_fd()], left_ns))?;
            py.check_signals()?;
        }
    }

    /// Receives the waiting frames of every channel; returns whether any frame is queued.
    fn fill(&self) -> PyResult<bool> {
        let mut inside = self.inside();
        let mut count = 0;
        for channel in &self.channels {
            count += self.take_from(channel, &mut inside)?;
        }
        self.received.fetch_add(count as u64, Ordering::Relaxed);
        let Inside { queue, failure, .. } = &mut *inside;
        if queue.is_empty()
            && let Some(failure) = failure.take()
        {
            self.check_open()?; // closing a channel meanwhile is not a failure
            return Err(failed(failure));
        }
        if self.channels.len() > 1 {
            queue.make_contiguous().sort_by_key(|received| received.meta.stamp_ns);
        }
        self.note_queued(&mut inside);
        Ok(!inside.queue.is_empty())
    }

    /// Receives the waiting frames of a channel. Records an error once.
    fn take_from(&self, channel: &Channel, inside: &mut Inside) -> io::Result<usize> {
        let Inside { inbox, queue, failure, .. } = inside;
        let error = match channel.node.receive(inbox, queue) {
            Ok(count) => {
                self.errno_changed(channel, 0)?;
                return Ok(count);
            }
            Err(error) => error,
        };
        if !self.errno_changed(channel, error.raw_os_error().unwrap_or_default())? {
            return Ok(0);
        }
        *failure = Some(Error::moving(channel.name(), "receive", error));
        // For a socket the kernel reports the error before the waiting frames.
        Ok(channel.node.receive(inbox, queue).unwrap_or(0))
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

    fn message<'py>(&self, py: Python<'py>, received: &Received) -> PyResult<Bound<'py, PyAny>> {
        let name = self.name_of(py, received.meta.interface);
        self.maker.message(py, received, self.stamp_ns(received), &name)
    }

    fn stamp_ns(&self, received: &Received) -> u64 {
        let hardware = self.hardware && received.hardware_ns != 0;
        if hardware { received.hardware_ns } else { received.meta.stamp_ns }
    }

    fn name_of<'py>(&self, py: Python<'py>, index: u32) -> Bound<'py, PyString> {
        let known = self.inside().names.get(&index).map(|name| name.clone_ref(py));
        known
            .unwrap_or_else(|| {
                let name =
                    Interface::by_index(index).map_or_else(|_| index.to_string(), |interface| interface.name);
                let name = PyString::new(py, &name).unbind();
                self.inside().names.insert(index, name.clone_ref(py));
                name
            })
            .into_bound(py)
    }

    /// The channel of a message: the one that it names, or the only one.
    fn destination(&self, message: &Bound<'_, PyAny>) -> PyResult<(&Channel, u32)> {
        self.check_open()?;
        let wanted: Option<String> = message.getattr("channel")?.extract().unwrap_or_default();
        match (self.channels.as_slice(), wanted) {
            ([one], _) if one.interface.is_some() => Ok((one, 0)),
            ([any], Some(name)) => Ok((any, find_network_interface(&name).map_err(failed)?.index)),
            (several, Some(name)) if several.len() > 1 => {
                let channel = several.iter().find(|channel| channel.name() == name);
                let unknown = || io::Error::other("it is not a channel of this bus");
                channel
                    .map(|channel| (channel, 0))
                    .ok_or_else(|| failed(Error::new(name.clone(), "send", unknown())))
            }
            _ => Err(failed(Error::new(
                "bus",
                "send",
                io::Error::other("the message names no channel of several (set message.channel)"),
            ))),
        }
    }
}

/// Finds an interface that `any` includes.
fn find_network_interface(name: &str) -> Result<Interface, Error> {
    let interface = Interface::find(name)?;
    if interface.has_sockets() {
        return Ok(interface);
    }
    Err(Error::unsupported(name, "send", "the channel any has only interfaces of the network")
        .hint("name it as a channel"))
}
