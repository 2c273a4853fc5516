//! Methods to receive and to send frames: the traits that each method implements, and the rows that open it by name.
//!
//! A *receiver* appends frames to a [`Batch`]; a *transmitter* takes over a prefix of a slice. One call moves a batch,
//! so the cost of a call is paid once per batch. The caller decides what happens when a queue is full.
//!
//! This file imports no method. The register, [`table`], imports them all: its rows, and names parsed with these rows.
//! A program may pass its own table to [`ReceiveMethod::parse`]; `tests/it/rows.rs` does, with the smallest method of all and
//! the smallest carrier.
//!
//! To add a method: a file in `method/`, its `mod` below, its place in the order at the top of `lib.rs`, a row at the end of
//! each table of `method/table.rs` that it serves and one in the table of that file's first lines, and CHANGELOG.md. One frame
//! a call on a socket: as `read_write.rs`, of which `Source`, `Stamping` and `Call` may become `pub(super)` with what you use
//! of them; many: as `mmsg.rs`, by `can_raw::receiving` and the check of `read_write`. A method of sockets has `syscalls:
//! Ok(…)`, because canter's test `meter` wants a cost of each. `canter methods`, `canter syscalls`, `--method`, `--one-thread`
//! and the tests follow the row; a study of latencies names its pairs. There is more to do only where
//! - `check` refuses a link that its carriers reach: a line in `REFUSALS` of `tests/it/promises.rs`, and in
//!   `crates/canter/tests/it/` one in `excused` of `gateway_wire.rs` and one in `every_method_is_listed_with_the_reason_why_not`
//!   of `meter.rs`;
//! - it is another packet ring, or may echo or not: its name beside theirs in `tests/it/promises/receivers.rs`, `links.rs`;
//! - [`Wait`] lacks its wait: there, in [`Wait::ALL`], in `canter-lab/src/report/family.rs`, and a pair in `WAITS` of
//!   `crates/canter/tests/it/testbed.rs`;
//! - it needs a kernel version or behaves differently: docs/gateway.md.

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

use crate::{Batch, Error, Filters, Frame, Interface, Result, carrier::Carrier, sys::poll};
use std::{fmt, io, os::fd::BorrowedFd, time::Duration};

/// Receives frames from one interface.
pub trait Receive: Send {
    /// Appends waiting frames to `batch`, and returns how many. If none wait, it waits as its [`Wait`] defines.
    /// `Ok(0)`: no frame while spinning, a signal, or no room in the batch.
    ///
    /// # Errors
    /// `ENETDOWN` when the interface went down, `ENODEV` when it disappeared, both after the frames received before;
    /// never for a full or empty queue. A socket reports it before those frames, and once: keep it until none waits.
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize>;

    /// The number of frames lost in this receiver's queue since it was opened, up to date at each call.
    ///
    /// # Errors
    /// The error of the kernel.
    fn drops(&mut self) -> io::Result<u64>;

    /// The file descriptor for poll(2); `None` when the method has none. With `capabilities.origin` it is the socket or
    /// device itself, for programs send by it.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

/// Sends frames to one interface.
///
/// Ownership: [`transmit`](Self::transmit) returns how many frames the method has *taken over*. The method sends those
/// frames in order, some perhaps only at [`flush`](Self::flush), or counts them in [`lost`](Self::lost). All other
/// frames stay with the caller. A call returns an error only if it took over no frame.
pub trait Transmit: Send {
    /// Takes over a prefix of `frames`, in order, and returns its length. It is shorter than `frames` when a queue is
    /// full (`ENOBUFS`, `EAGAIN`, no free slot) or a signal arrived.
    ///
    /// # Errors
    /// `ENETDOWN`, `ENODEV`, `EINVAL` for an FD frame on a classic interface; never for a full queue.
    fn transmit(&mut self, frames: &[Frame]) -> io::Result<usize>;

    /// Gives the kernel the frames that were taken over and not given yet, as far as its queue has room.
    ///
    /// # Errors
    /// As `transmit`. The method keeps frames that it could not give to the kernel.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// How many frames that were taken over wait for `flush`.
    fn pending(&self) -> usize {
        0
    }

    /// Frames that were taken over and that the kernel then refused.
    fn lost(&self) -> u64 {
        0
    }

    /// Gives up the frames that wait for `flush`, and returns how many; they will not be sent. Frames that the kernel has
    /// are not affected.
    fn abandon(&mut self) -> usize {
        0
    }

    /// Switches waiting for room off, and on again; see [`TransmitOptions::patience`]. Without effect on a transmitter that
    /// was opened not to wait.
    fn set_waiting(&mut self, _waits: bool) {}

    /// The file descriptor for poll(2), to wait for room; `None` when the method has none.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

/// How a receiver waits for the next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// In the receiving call itself.
    Block,
    /// In poll(2) or epoll_wait(2), when no frame waits.
    Poll,
    /// Not at all: returns `Ok(0)` at once, after one `pause`. The caller's loop spins.
    Spin,
    /// In the receiving call, which polls the driver (`SO_BUSY_POLL`).
    BusyPoll,
    /// In the receiving call, which polls the controller with its interrupt masked.
    ChipPoll,
    /// In the receiving call, which looks for frames before it sleeps, for a time that adapts to theirs.
    Adaptive,
    /// In the receiving call, until many frames wait or a moment has passed: one wake-up for many frames.
    Coalesce,
}

impl Wait {
    /// Every way to wait.
    pub const ALL: [Self; 7] =
        [Self::Block, Self::Poll, Self::Spin, Self::BusyPoll, Self::ChipPoll, Self::Adaptive, Self::Coalesce];

    /// The wait's name after the slash: `ring/spin`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Poll => "poll",
            Self::Spin => "spin",
            Self::BusyPoll => "busy-poll",
            Self::ChipPoll => "chip-poll",
            Self::Adaptive => "adaptive",
            Self::Coalesce => "coalesce",
        }
    }
}

/// Options of a receiver.
#[derive(Clone, Debug, Default)]
pub struct ReceiveOptions {
    /// The frames to receive; by default all data and RTR frames, no error frames.
    pub filters: Filters,
    /// How it waits; `None`: the row's default.
    pub wait: Option<Wait>,
    /// Stamp every frame, and report its [`Origin`](crate::batch::Origin) where the method can. On sockets this costs
    /// one control message per frame.
    pub stamps: bool,
    /// Also receive the frames that this socket sends (`CAN_RAW_RECV_OWN_MSGS`).
    pub own_frames: bool,
    /// Also receive on a ring the driver's echoes of frames that this program sent by a ring. Off: no echo loops.
    pub echoes: bool,
    /// Do not receive frames that this program sent on a vcan by a sender that [marks](TransmitOptions::marked) them.
    pub deaf_to_marked: bool,
    /// How many frames its queue should hold; a socket's holds no more than the system permits (`net.core.rmem_max`, unless
    /// the process has CAP_NET_ADMIN). `None`: the default (222 on a socket, 2048 in a ring).
    pub queue_frames: Option<u32>,
    /// Opening fails when the system does not permit the whole queue.
    pub whole_queue: bool,
}

/// Whether local sockets on the same interface receive the sent frames (`CAN_RAW_LOOPBACK`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Echo {
    /// On for a vcan, which has no other receivers; off elsewhere, which saves the cost and prevents loops.
    #[default]
    Auto,
    /// On.
    On,
    /// Off.
    Off,
}

/// Options of a transmitter.
#[derive(Clone, Debug, Default)]
pub struct TransmitOptions {
    /// Whether local sockets receive the sent frames.
    pub echo: Echo,
    /// Mark the sent frames (`SO_MARK`), so that receivers of this program can ignore their echoes.
    pub marked: bool,
    /// The longest that a call waits for room when a queue is full, before it returns a short count; zero: it never waits.
    /// `None`: as long as it takes, which is forever on a bus where no node acknowledges. The kernel rounds it up to its
    /// timer's ticks. Waiting uses a send buffer that is smaller than the interface's queue.
    pub patience: Option<Duration>,
}

impl TransmitOptions {
    /// These options with a transmitter that never waits for room.
    #[must_use]
    pub fn without_waiting(self) -> Self {
        Self { patience: Some(Duration::ZERO), ..self }
    }
}

/// Whether a transmitter waits for room, and how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Whether the transmitter waits now.
    pub waits: bool,
    /// `None`: as long as it takes.
    pub patience: Option<Duration>,
}

impl Room {
    /// As these options say.
    pub fn new(options: &TransmitOptions) -> Self {
        let never = options.patience == Some(Duration::ZERO);
        Self { waits: !never, patience: options.patience }
    }

    /// Switches waiting on or off, as [`Transmit::set_waiting`] does.
    pub fn set_waiting(&mut self, waits: bool) {
        self.waits = waits && self.patience != Some(Duration::ZERO);
    }

    /// Whether it was opened to wait, but not as long as it takes.
    pub fn ends(&self) -> bool {
        self.patience.is_some_and(|patience| patience > Duration::ZERO)
    }

    /// The flags of a sending call.
    #[inline]
    pub fn flags(&self) -> libc::c_int {
        if self.waits { 0 } else { libc::MSG_DONTWAIT }
    }

    /// Waits until `descriptor` may have room; false after a signal or the patience.
    pub fn wait(&self, descriptor: BorrowedFd<'_>) -> io::Result<bool> {
        let patience_ns =
            self.patience.map(|patience| u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX));
        Ok(poll::writable(descriptor, patience_ns)? > 0)
    }
}

/// The capabilities of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// FD frames.
    pub fd: bool,
    /// Many frames per call.
    pub batch: bool,
    /// Whether the method distinguishes frames sent by this machine from frames of the bus.
    pub origin: bool,
}

/// A way to receive: a row of a table.
#[derive(Clone, Copy)]
pub struct Receiver {
    /// The receiver's name on the command line, in results, plots and documentation.
    pub name: &'static str,
    /// One line for `canter methods`.
    pub about: &'static str,
    /// The supported waits; the first is the default and is omitted in names.
    pub waits: &'static [Wait],
    /// What the receiver is capable of.
    pub capabilities: Capabilities,
    /// The carriers that it can receive from.
    pub carriers: &'static [&'static Carrier],
    /// The capability (capabilities(7)) that it needs besides CAP_NET_RAW and CAP_NET_ADMIN.
    pub right: Option<&'static str>,
    /// The wait with which `canter syscalls` measures it; its queue is filled before the measurement. `Err`: why it
    /// cannot be measured.
    pub syscalls: std::result::Result<Wait, &'static str>,
    /// Checks whether it works on this interface and machine; the error has the reason.
    pub check: fn(&Interface, Wait) -> Result<()>,
    /// Opens it.
    pub open: fn(&Interface, &ReceiveOptions) -> Result<Box<dyn Receive>>,
}

/// A way to send: a row of a table.
#[derive(Clone, Copy)]
pub struct Transmitter {
    /// The transmitter's name on the command line, in results, plots and documentation.
    pub name: &'static str,
    /// One line for `canter methods`.
    pub about: &'static str,
    /// What the transmitter is capable of.
    pub capabilities: Capabilities,
    /// The carriers that it can send to.
    pub carriers: &'static [&'static Carrier],
    /// The capability (capabilities(7)) that it needs besides CAP_NET_RAW and CAP_NET_ADMIN.
    pub right: Option<&'static str>,
    /// Whether `canter syscalls` can measure it; `Err`: why not.
    pub syscalls: std::result::Result<(), &'static str>,
    /// Checks whether it works on this interface and machine; the error has the reason.
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
    pub fn all_in(table: &[&'static Receiver]) -> impl Iterator<Item = Self> {
        table.iter().flat_map(|&row| row.waits.iter().map(move |&wait| Self { row, wait }))
    }

    /// The receiver of this name in a table, with its wait: `ring`, `ring/spin`.
    ///
    /// # Errors
    /// `InvalidInput` for a name that is not in the table; the remedy lists the names in the table.
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

    /// Checks whether it works on this interface.
    ///
    /// # Errors
    /// The reason.
    pub fn check(&self, interface: &Interface) -> Result<()> {
        (self.row.check)(interface, self.wait)
    }

    /// Opens it on an interface. `options.wait` is replaced by the method's.
    ///
    /// # Errors
    /// The kernel's error, with the interface and the step.
    pub fn open(&self, interface: &Interface, options: &ReceiveOptions) -> Result<Box<dyn Receive>> {
        (self.row.open)(interface, &ReceiveOptions { wait: Some(self.wait), ..options.clone() })
    }
}

impl TransmitMethod {
    /// The sender of this name in a table: `sendmmsg`.
    ///
    /// # Errors
    /// `InvalidInput` for a name that is not in the table; the remedy lists the names in the table.
    pub fn parse(text: &str, table: &[&'static Transmitter]) -> Result<Self> {
        table
            .iter()
            .find(|row| row.name == text)
            .map(|row| Self { row })
            .ok_or_else(|| unknown(text, "no such transmitter", table.iter().map(|row| row.name.to_owned())))
    }

    /// Checks whether it works on this interface.
    ///
    /// # Errors
    /// The reason.
    pub fn check(&self, interface: &Interface) -> Result<()> {
        (self.row.check)(interface)
    }

    /// Opens it on an interface.
    ///
    /// # Errors
    /// The kernel's error, with the interface and the step.
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

fn unknown(text: &str, reason: &str, known: impl Iterator<Item = String>) -> Error {
    let known: Vec<_> = known.collect();
    Error::new(text, "method", io::Error::new(io::ErrorKind::InvalidInput, reason))
        .hint(format!("there are {}", known.join(", ")))
}

/// A receiver and a transmitter, named `receiver+transmitter`: the two methods of a user-space gateway.
#[derive(Clone, Copy)]
pub struct Pair {
    /// Receives.
    pub receive: ReceiveMethod,
    /// Sends.
    pub transmit: TransmitMethod,
}

impl Pair {
    /// Parses `RECEIVER+TRANSMITTER`, each a name in its table, or an alias from `names` (alias, pair).
    ///
    /// # Errors
    /// `InvalidInput` for a text that is not a pair, and for a name that is not in its table.
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
