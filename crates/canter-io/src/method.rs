//! The seam: what a way to receive or to send frames promises, and the rows by which it is opened by name.
//!
//! A *receiver* appends frames to a [`Batch`]; a *transmitter* takes over a prefix of a slice. One call moves a
//! batch, so a call's cost is paid once per batch. What to do when a queue is full is the caller's policy.
//!
//! This file imports no method. The register, [`table`], imports them all: its rows, and names parsed with these rows.
//! To add a method: a file in `method/`, and a row in each table that it serves. A program may pass
//! [`ReceiveMethod::parse`] a table with rows of its own.

pub(crate) mod can_raw;
pub(crate) mod canchar;
mod canchar_ring;
mod mmsg;
mod packet_ring;
mod port;
mod read_write;
pub mod sim;
pub mod table;
mod uring;

use crate::{Batch, Error, Filters, Frame, Interface, Result, carrier::Carrier};
use std::{fmt, io, os::fd::BorrowedFd};

/// Takes frames from one interface.
pub trait Receive: Send {
    /// Appends what is there to `batch`, waiting first as the receiver's [`Wait`] says, and answers how many came.
    /// `Ok(0)`: none came (nothing there while spinning, a signal, or no room in the batch).
    ///
    /// # Errors
    /// `ENETDOWN` when the interface went down, `ENODEV` when it disappeared, behind the frames that came before;
    /// never for a full or empty queue.
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize>;

    /// Frames that this receiver's own queue has lost since it was opened, exact at once.
    ///
    /// # Errors
    /// What the kernel answers.
    fn drops(&mut self) -> io::Result<u64>;

    /// What poll(2) can wait on; `None` when the method has no descriptor.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

/// Hands frames to one interface.
///
/// Who owns a frame: the count that [`transmit`](Self::transmit) answers is what the method has *taken over*. Those
/// frames go out in order, perhaps only with [`flush`](Self::flush), or are counted by [`lost`](Self::lost). All
/// others stay the caller's. An error is answered only when this call took nothing over.
pub trait Transmit: Send {
    /// Takes over a prefix of `frames`, in order, and answers its length. Shorter than `frames`: a queue is full
    /// (`ENOBUFS`, `EAGAIN`, no free slot) or a signal came.
    ///
    /// # Errors
    /// `ENETDOWN`, `ENODEV`, `EINVAL` for an FD frame on a classic interface; never for a full queue.
    fn transmit(&mut self, frames: &[Frame]) -> io::Result<usize>;

    /// Gives the kernel what was taken over and not given yet, as far as there is room.
    ///
    /// # Errors
    /// As `transmit`. Frames that wait stay taken over.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// How many frames were taken over and wait for `flush`.
    fn pending(&self) -> usize {
        0
    }

    /// Frames that were taken over and that the kernel then refused.
    fn lost(&self) -> u64 {
        0
    }

    /// What poll(2) can wait on for room; `None` when the method has no descriptor.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

/// How a receiver waits for the next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// In the receiving call itself.
    Block,
    /// In poll(2), once nothing is there.
    Poll,
    /// Not at all: it answers `Ok(0)` at once, after one `pause`. The caller's loop spins.
    Spin,
    /// In the receiving call, which polls the driver (`SO_BUSY_POLL`).
    BusyPoll,
    /// In the receiving call, which polls the controller itself, its interrupt masked.
    ChipPoll,
}

impl Wait {
    /// Its name behind the slash: `ring/spin`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Poll => "poll",
            Self::Spin => "spin",
            Self::BusyPoll => "busy-poll",
            Self::ChipPoll => "chip-poll",
        }
    }
}

/// How a receiver is to be opened.
#[derive(Clone, Debug, Default)]
pub struct ReceiveOptions {
    /// Which frames; the default is all data and RTR frames and no error frames.
    pub filters: Filters,
    /// How it waits; `None`: as the row does by default.
    pub wait: Option<Wait>,
    /// Stamp every frame, and tell [`Origin`](crate::batch::Origin) where the method can. Costs a little in the kernel and, on sockets, a control message a frame.
    pub stamps: bool,
    /// Also receive what this very socket sends (`CAN_RAW_RECV_OWN_MSGS`).
    pub own_frames: bool,
    /// Also receive on a ring what this program sent by a ring and the driver echoes. Off: no echo loops.
    pub echoes: bool,
    /// Do not receive what this program sent on a vcan by a sender that [marks](TransmitOptions::marked) its frames.
    pub deaf_to_marked: bool,
    /// How many frames its queue must hold; `None`: as the system has it (222 on a socket, 2048 in a ring).
    pub queue_frames: Option<u32>,
}

/// Whether local sockets on the same interface hear what is sent (`CAN_RAW_LOOPBACK`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Echo {
    /// On a vcan, where nobody else could hear it; off elsewhere, which saves its cost and makes loops impossible.
    #[default]
    Auto,
    /// On.
    On,
    /// Off.
    Off,
}

/// How a transmitter is to be opened.
#[derive(Clone, Debug, Default)]
pub struct TransmitOptions {
    /// Who hears it locally.
    pub echo: Echo,
    /// Mark frames whose echo a receiver of this program must not take for one of the bus.
    pub marked: bool,
    /// Answer a short count at once when a queue is full, instead of waiting for room. Waiting works by a send
    /// buffer smaller than the interface's queue.
    pub no_wait: bool,
}

/// What a method can do, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// FD frames.
    pub fd: bool,
    /// Many frames a call.
    pub batch: bool,
    /// It tells frames of this machine from frames of the bus.
    pub origin: bool,
}

/// A way to receive: a row of a table.
#[derive(Clone, Copy)]
pub struct Receiver {
    /// Its name on the command line, in results, plots and documentation.
    pub name: &'static str,
    /// One line for `canter methods`.
    pub about: &'static str,
    /// The waits it has; the first is the default and is left out of names.
    pub waits: &'static [Wait],
    /// What it can do.
    pub capabilities: Capabilities,
    /// What carries the frames that it receives.
    pub carriers: &'static [&'static Carrier],
    /// The wait with which `canter syscalls` measures it, which reads queues that hold all frames already; `Err`: why
    /// it cannot be measured so.
    pub syscalls: std::result::Result<Wait, &'static str>,
    /// Why it cannot work on this interface or machine; `Ok` when it can.
    pub check: fn(&Interface, Wait) -> Result<()>,
    /// Opens it.
    pub open: fn(&Interface, &ReceiveOptions) -> Result<Box<dyn Receive>>,
}

/// A way to send: a row of a table.
#[derive(Clone, Copy)]
pub struct Transmitter {
    /// Its name on the command line, in results, plots and documentation.
    pub name: &'static str,
    /// One line for `canter methods`.
    pub about: &'static str,
    /// What it can do.
    pub capabilities: Capabilities,
    /// What carries the frames that it sends.
    pub carriers: &'static [&'static Carrier],
    /// Whether `canter syscalls` can measure it; `Err`: why not.
    pub syscalls: std::result::Result<(), &'static str>,
    /// Why it cannot work on this interface or machine; `Ok` when it can.
    pub check: fn(&Interface) -> Result<()>,
    /// Opens it.
    pub open: fn(&Interface, &TransmitOptions) -> Result<Box<dyn Transmit>>,
}

/// A receiver with its wait, as named: `ring`, `ring/spin`.
#[derive(Clone, Copy)]
pub struct ReceiveMethod {
    /// The row.
    pub row: &'static Receiver,
    /// The wait.
    pub wait: Wait,
}

/// A sender, as named: `sendmmsg`.
#[derive(Clone, Copy)]
pub struct TransmitMethod {
    /// The row.
    pub row: &'static Transmitter,
}

impl ReceiveMethod {
    /// Every receiver of a table with every wait that it has.
    pub fn of(table: &[&'static Receiver]) -> impl Iterator<Item = Self> {
        table.iter().flat_map(|&row| row.waits.iter().map(move |&wait| Self { row, wait }))
    }

    /// The receiver of this name in a table, with its wait: `ring`, `ring/spin`.
    ///
    /// # Errors
    /// `InvalidInput` for a name that is not in the table, with those that are.
    pub fn parse(text: &str, table: &[&'static Receiver]) -> Result<Self> {
        let (name, wait) = text.split_once('/').map_or((text, None), |(name, wait)| (name, Some(wait)));
        let row = table
            .iter()
            .find(|row| row.name == name)
            .ok_or_else(|| unknown(text, "no such receiver", table.iter().map(|row| row.name.to_owned())))?;
        let Some(wait) = wait else { return Ok(Self { row, wait: row.waits[0] }) };
        let names = row.waits.iter().map(|wait| format!("{name}/{}", wait.name()));
        let wait = row.waits.iter().find(|have| have.name() == wait);
        wait.map(|&wait| Self { row, wait }).ok_or_else(|| unknown(text, "no such wait", names))
    }

    /// Why it cannot work on this interface.
    ///
    /// # Errors
    /// The reason.
    pub fn check(&self, interface: &Interface) -> Result<()> {
        (self.row.check)(interface, self.wait)
    }

    /// Opens it on an interface. `options.wait` is replaced by the method's.
    ///
    /// # Errors
    /// What the kernel answers, with the interface and the step.
    pub fn open(&self, interface: &Interface, options: &ReceiveOptions) -> Result<Box<dyn Receive>> {
        (self.row.open)(interface, &ReceiveOptions { wait: Some(self.wait), ..options.clone() })
    }
}

impl TransmitMethod {
    /// The sender of this name in a table: `sendmmsg`.
    ///
    /// # Errors
    /// `InvalidInput` for a name that is not in the table, with those that are.
    pub fn parse(text: &str, table: &[&'static Transmitter]) -> Result<Self> {
        table
            .iter()
            .find(|row| row.name == text)
            .map(|row| Self { row })
            .ok_or_else(|| unknown(text, "no such transmitter", table.iter().map(|row| row.name.to_owned())))
    }

    /// Why it cannot work on this interface.
    ///
    /// # Errors
    /// The reason.
    pub fn check(&self, interface: &Interface) -> Result<()> {
        (self.row.check)(interface)
    }

    /// Opens it on an interface.
    ///
    /// # Errors
    /// What the kernel answers, with the interface and the step.
    pub fn open(&self, interface: &Interface, options: &TransmitOptions) -> Result<Box<dyn Transmit>> {
        (self.row.open)(interface, options)
    }
}

impl fmt::Display for ReceiveMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row.name)?;
        if self.wait == self.row.waits[0] { Ok(()) } else { write!(f, "/{}", self.wait.name()) }
    }
}

impl fmt::Display for TransmitMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row.name)
    }
}

fn unknown(text: &str, what: &str, known: impl Iterator<Item = String>) -> Error {
    let known: Vec<_> = known.collect();
    Error::new(text, "method", io::Error::new(io::ErrorKind::InvalidInput, what))
        .hint(format!("there are {}", known.join(", ")))
}

/// A receiver and a transmitter, named `receiver+transmitter`: what a user-space gateway is made of.
#[derive(Clone, Copy)]
pub struct Pair {
    /// Receives.
    pub receive: ReceiveMethod,
    /// Sends.
    pub transmit: TransmitMethod,
}

impl Pair {
    /// `RECEIVER+TRANSMITTER`, each of a table, or another name of a pair (the name, and the pair).
    ///
    /// # Errors
    /// `InvalidInput` for what is no pair, and for a name that is not in its table.
    pub fn parse(
        text: &str,
        receivers: &[&'static Receiver],
        transmitters: &[&'static Transmitter],
        names: &[(&str, &str)],
    ) -> Result<Self> {
        let pair = names.iter().find(|(name, _)| *name == text).map_or(text, |(_, pair)| pair);
        let (receive, transmit) = pair.split_once('+').ok_or_else(|| {
            let known = names.iter().map(|(_, pair)| (*pair).to_owned());
            unknown(text, "not a pair RECEIVER+TRANSMITTER", known)
        })?;
        let receive = ReceiveMethod::parse(receive, receivers)?;
        Ok(Self { receive, transmit: TransmitMethod::parse(transmit, transmitters)? })
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.receive, self.transmit)
    }
}
