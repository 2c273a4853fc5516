//! A bus as Python sees it: one or more channels, whose frames are received many per system call without the GIL and
//! handed out one by one.

use crate::{
    channel::Channel,
    exception::{failed, refused},
    fork,
    message::{self, Maker},
    open::{Open, Stats},
    waiting::{Deadline, seconds},
};
use canter_io::{
    Error, Filter, Filters, Interface,
    filter::EVERY_ERROR,
    monitor::{Change, Monitor},
    node::{NodeOptions, Received},
};
use pyo3::{
    prelude::*,
    types::{PyDict, PyList, PyString},
};
use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The time between two attempts to send into a full queue, for which poll(2) cannot wait.
const RETRY_INTERVAL: Duration = Duration::from_micros(500);

enum State {
    Open(Arc<Open>),
    /// Shut down, with the last counts.
    Shut(Stats),
}

/// The names of interfaces by their index, as Python strings.
struct Names {
    known: HashMap<u32, Py<PyString>>,
    /// For the channel `any`: reports interfaces that get another name, and new ones with an index that was another's.
    monitor: Option<Monitor>,
}

impl Names {
    /// Forgets the names that have changed.
    fn forget_changed(&mut self) {
        let Some(monitor) = &mut self.monitor else { return };
        let known = &mut self.known;
        let read = monitor.changes(|change| match change {
            Change::Is(interface, _) | Change::Gone(interface, _) => _ = known.remove(&interface.index),
            Change::Missed => known.clear(),
        });
        if read.is_err() {
            known.clear();
        }
    }
}

/// One or more channels. Receiving and sending may be done by different threads.
///
/// Each method holds the [`Open`] while it runs: its descriptors close when the bus is shut down and no method runs.
/// No lock is held while the GIL is taken.
#[pyclass(frozen, module = "canter._native")]
pub struct Bus {
    state: Mutex<State>,
    maker: Maker,
    names: Mutex<Names>,
    hardware: bool,
    /// The process that opened it.
    process: fork::Process,
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
        let process = fork::Process::this()?;
        let filters =
            Filters { error_mask: if error_frames { EVERY_ERROR } else { 0 }, ..Filters::default() };
        let options = NodeOptions { own_frames, echo, fd, filters, queue_bytes, hardware_stamps };
        let maker = Maker::new(py)?;
        // The kernel answers only when nobody changes an interface.
        let open = py.detach(|| Open::new(&channels, &options)).map_err(refused)?;
        let named = open.channels.iter().filter_map(|channel| channel.interface.as_ref());
        let known = named.map(|one| (one.index, PyString::new(py, &one.name).unbind())).collect();
        let is_any = open.channels.iter().any(|channel| channel.interface.is_none());
        let monitor = if is_any { Some(Monitor::open().map_err(refused)?) } else { None };
        let names = Names { known, monitor };
        let state = Mutex::new(State::Open(Arc::new(open)));
        Ok(Self { state, maker, names: Mutex::new(names), hardware: hardware_stamps, process })
    }

    /// The next message; None after `timeout` seconds (None: forever).
    #[pyo3(signature = (timeout=None))]
    fn recv<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let open = self.open()?;
        let mut deadline = None;
        loop {
            if let Some(received) = open.pop() {
                return self.message(py, &received).map(Some);
            }
            let deadline = *deadline.get_or_insert_with(|| Deadline::after(timeout));
            // Another thread may take the frame first.
            if !wait(py, &open, deadline)? {
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
        let open = self.open()?;
        let list = PyList::empty(py);
        let deadline = Deadline::after(timeout);
        while list.len() < max {
            let batch = open.take(max - list.len());
            let begun = list.len();
            if let Err(error) = self.append(py, &batch, &list) {
                // The frame that is no message goes with its error, which is raised when there is nothing to hand out.
                let passed = list.len() - begun + usize::from(list.is_empty());
                open.put_back(&batch[passed..]);
                return if list.is_empty() { Err(error) } else { Ok(list) };
            }
            // Waits only for the first, and raises an error only when there is no message to hand out.
            let more = match list.len() {
                0 => wait(py, &open, deadline)?,
                count => count < max && py.detach(|| open.fill()),
            };
            if !more {
                break;
            }
        }
        Ok(list)
    }

    /// Sends a message, waiting up to `timeout` seconds for room in a full queue.
    fn send(&self, py: Python<'_>, message: &Bound<'_, PyAny>, timeout: f64) -> PyResult<()> {
        let open = self.open()?;
        let frame = message::frame(message)?;
        let (channel, index) = destination(py, &open, message)?;
        let deadline = Instant::now() + seconds(timeout);
        loop {
            let Err(error) = channel.node.send(&frame, index) else {
                open.count_sent();
                return Ok(());
            };
            let full = matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN | libc::EINTR));
            if !full {
                check_open(&open)?; // closing it meanwhile is the reason
                return Err(failed(channel.cannot_send(&frame, error)));
            }
            if Instant::now() >= deadline {
                let error = Error::new(channel.name(), "send: transmit queue full", error);
                return Err(failed(error.hint(channel.room())));
            }
            py.detach(|| std::thread::sleep(RETRY_INTERVAL));
            py.check_signals()?;
            check_open(&open)?;
        }
    }

    /// Passes only frames that match one of these (id, mask) pairs, in the kernel's format.
    fn set_filters(&self, py: Python<'_>, filters: Vec<(u32, u32)>, error_frames: bool) -> PyResult<()> {
        let list = filters.into_iter().map(|(id, mask)| Filter { id, mask }).collect();
        let filters = Filters { list, error_mask: if error_frames { EVERY_ERROR } else { 0 }, join: false };
        let open = self.open()?;
        py.detach(|| open.set_filters(&filters)).map_err(refused)
    }

    /// A descriptor that is readable while a message can be received without waiting.
    fn fileno(&self) -> PyResult<i32> {
        Ok(self.open()?.descriptor())
    }

    /// The counts of received and lost frames so far, by place.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.process.check().map_err(failed)?;
        let open = match &*self.lock_state() {
            State::Open(open) => Ok(Arc::clone(open)),
            State::Shut(stats) => Err(stats.clone()),
        };
        let counted = open.map_or_else(Ok, |open| py.detach(|| open.stats()))?;
        let stats = PyDict::new(py);
        stats.set_item("received", counted.received)?;
        stats.set_item("sent", counted.sent)?;
        stats.set_item("queued", counted.queued)?;
        stats.set_item("lost_socket", counted.lost_socket)?;
        stats.set_item("lost_driver", counted.lost_driver)?;
        stats.set_item("overrun_events", counted.overrun_events)?;
        stats.set_item("receive_buffer", counted.receive_buffer)?;
        Ok(stats)
    }

    /// The kernel's name of the first controller's state; None without a controller.
    fn state(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let open = self.open()?;
        let first = open.channels.iter().find_map(|channel| channel.interface.clone());
        let Some(mut now) = first else { return Ok(None) };
        py.detach(|| now.refresh()).map_err(failed)?;
        Ok(now.controller.and_then(|controller| controller.state).map(|state| state.to_string()))
    }

    /// For each channel with bit rates: its name, its bit rate and its data bit rate in bit/s.
    fn bit_rates(&self) -> PyResult<Vec<(String, u32, Option<u32>)>> {
        let open = self.open()?;
        let named = open.channels.iter().filter_map(|channel| channel.interface.as_ref());
        Ok(named.filter_map(|one| Some((one.name.clone(), one.bitrate()?, one.data_bitrate()))).collect())
    }

    /// Whether this process was forked from the one that opened it.
    fn is_forked(&self) -> bool {
        self.process.check().is_err()
    }

    /// Ends all waits and closes all channels, devices when they have sent all frames; then everything but `stats` fails.
    /// In a process that was forked it does nothing: the bus belongs to the other one.
    fn close(&self, py: Python<'_>) {
        if self.process.check().is_err() {
            return;
        }
        let Ok(open) = self.open() else { return };
        open.shut();
        let last = py.detach(|| {
            open.channels.iter().for_each(|channel| channel.node.close());
            open.stats().unwrap_or_default()
        });
        let open_state = std::mem::replace(&mut *self.lock_state(), State::Shut(last));
        py.detach(|| drop((open_state, open))); // the kernel may let a socket's close wait
    }
}

impl Bus {
    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The open bus; an error when it is shut down, or was opened by another process.
    fn open(&self) -> PyResult<Arc<Open>> {
        self.process.check().map_err(failed)?;
        match &*self.lock_state() {
            State::Open(open) if !open.is_shut() => Ok(Arc::clone(open)),
            _ => Err(failed(shut_down())),
        }
    }

    fn message<'py>(&self, py: Python<'py>, received: &Received) -> PyResult<Bound<'py, PyAny>> {
        let name = self.name_of(py, received.meta.interface);
        self.maker.message(py, received, self.stamp_ns(received), &name)
    }

    fn stamp_ns(&self, received: &Received) -> u64 {
        let hardware = self.hardware && received.hardware_ns != 0;
        if hardware { received.hardware_ns } else { received.meta.stamp_ns }
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends frames as messages, up to the first that cannot be made.
    fn append(&self, py: Python<'_>, batch: &[Received], list: &Bound<'_, PyList>) -> PyResult<()> {
        // Consecutive frames are often of one bus: its name is looked up once for them.
        for row in batch.chunk_by(|one, next| one.meta.interface == next.meta.interface) {
            let name = self.name_of(py, row[0].meta.interface);
            for received in row {
                list.append(self.maker.message(py, received, self.stamp_ns(received), &name)?)?;
            }
        }
        Ok(())
    }

    fn name_of<'py>(&self, py: Python<'py>, index: u32) -> Bound<'py, PyString> {
        let mut names = self.names();
        names.forget_changed();
        if let Some(known) = names.known.get(&index) {
            return known.bind(py).clone();
        }
        drop(names);
        // One without a name yet is forgotten, too, when the kernel reports it.
        let found = py.detach(|| Interface::by_index(index));
        let name = PyString::new(py, &found.map_or_else(|_| index.to_string(), |interface| interface.name));
        self.names().known.insert(index, name.clone().unbind());
        name
    }
}

fn shut_down() -> Error {
    Error::new("bus", "use", io::Error::other("the bus is shut down"))
}

fn check_open(open: &Open) -> PyResult<()> {
    if open.is_shut() { Err(failed(shut_down())) } else { Ok(()) }
}

/// Waits until a frame is queued; false after the deadline. Without the GIL.
fn wait(py: Python<'_>, open: &Open, deadline: Deadline) -> PyResult<bool> {
    let _waiting = open.waiting();
    loop {
        check_open(open)?;
        if py.detach(|| open.fill()) {
            return Ok(true);
        }
        if let Some(failure) = open.failure() {
            check_open(open)?; // closing a channel meanwhile is not a failure
            return Err(failed(failure));
        }
        let left = deadline.left();
        if left == Some(Duration::ZERO) {
            return Ok(false);
        }
        py.detach(|| open.wait(left))?;
        py.check_signals()?;
    }
}

/// The channel of a message: the one that it names, or the only one.
fn destination<'a>(
    py: Python<'_>,
    open: &'a Open,
    message: &Bound<'_, PyAny>,
) -> PyResult<(&'a Channel, u32)> {
    let wanted: Option<String> = message.getattr("channel")?.extract().unwrap_or_default();
    match (open.channels.as_slice(), wanted) {
        ([one], _) if one.interface.is_some() => Ok((one, 0)),
        ([any], Some(name)) => {
            let found = py.detach(|| find_network_interface(&name));
            Ok((any, found.map_err(failed)?.index))
        }
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

/// Finds an interface that `any` includes.
fn find_network_interface(name: &str) -> Result<Interface, Error> {
    let interface = Interface::find(name)?;
    if interface.has_sockets() {
        return Ok(interface);
    }
    Err(Error::unsupported(name, "send", "the channel any has only interfaces of the network")
        .hint("name it as a channel"))
}
