//! The seam: every way to receive and to send frames is a row of a table, opened by name.
//!
//! A *receiver* appends frames to a [`Batch`]; a *transmitter* takes over a prefix of a slice. One call moves a
//! batch, so what a call costs is paid once a batch. What to do when a queue is full is the caller's policy.
//!
//! | name | receives by | sends by |
//! | --- | --- | --- |
//! | `read`, `write` | recv(2), one frame a call | send(2), one frame a call |
//! | `recvmmsg`, `sendmmsg` | recvmmsg(2) | sendmmsg(2) |
//! | `ring` | a PF_PACKET ring mapped into this process | the same |
//! | `io-uring` | a multishot request of io_uring | linked requests of io_uring |
//! | `canchar` | read(2) on a canchar device, many frames a call | write(2), the same |
//! | `canchar-ring` | the device's ring mapped into this process | the same |
//! | `port` | the controller's registers, through I/O ports | the same |
//! | `sim` | an in-memory bus with a clock | the same |
//!
//! A new method is one file in `method/` and one row here.

pub(crate) mod canchar;
mod canchar_ring;
mod mmsg;
mod packet_ring;
pub(crate) mod port;
mod read_write;
pub mod sim;
mod uring;

use crate::{Batch, Error, Filters, Frame, Interface, Result, interface::Kind};
use std::{fmt, io, os::fd::BorrowedFd, str::FromStr};

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

/// A way to receive.
pub struct Receiver {
    /// Its name on the command line, in results, plots and documentation.
    pub name: &'static str,
    /// One line for `canter methods`.
    pub about: &'static str,
    /// The waits it has; the first is the default and is left out of names.
    pub waits: &'static [Wait],
    /// What it can do.
    pub capabilities: Capabilities,
    /// Why it cannot work on this interface or machine; `Ok` when it can.
    pub check: fn(&Interface, Wait) -> Result<()>,
    /// Opens it.
    pub open: fn(&Interface, &ReceiveOptions) -> Result<Box<dyn Receive>>,
}

/// A way to send.
pub struct Transmitter {
    /// Its name on the command line, in results, plots and documentation.
    pub name: &'static str,
    /// One line for `canter methods`.
    pub about: &'static str,
    /// What it can do.
    pub capabilities: Capabilities,
    /// Why it cannot work on this interface or machine; `Ok` when it can.
    pub check: fn(&Interface) -> Result<()>,
    /// Opens it.
    pub open: fn(&Interface, &TransmitOptions) -> Result<Box<dyn Transmit>>,
}

/// Every way to receive.
pub static RECEIVERS: &[Receiver] = &[
    Receiver {
        name: "read",
        about: "one frame per system call, by recv(2) on a raw CAN socket",
        waits: &[Wait::Block, Wait::Poll, Wait::Spin, Wait::BusyPoll],
        capabilities: Capabilities { fd: true, batch: false, origin: true },
        check: read_write::check_receiver,
        open: read_write::receiver,
    },
    Receiver {
        name: "recvmmsg",
        about: "many frames per system call, by recvmmsg(2) on a raw CAN socket",
        waits: &[Wait::Block, Wait::Poll, Wait::Spin],
        capabilities: Capabilities { fd: true, batch: true, origin: true },
        check: read_write::check_receiver,
        open: mmsg::receiver,
    },
    Receiver {
        name: "ring",
        about: "no system call per frame: a PF_PACKET ring (TPACKET_V2) shared with the kernel",
        waits: &[Wait::Poll, Wait::Spin],
        capabilities: Capabilities { fd: true, batch: true, origin: false },
        check: packet_ring::check_receiver,
        open: packet_ring::receiver,
    },
    Receiver {
        name: "io-uring",
        about: "one standing request to io_uring; completions are run when they are asked for",
        waits: &[Wait::Block, Wait::Spin],
        capabilities: Capabilities { fd: true, batch: true, origin: true },
        check: uring::check_receive,
        open: uring::receiver,
    },
    Receiver {
        name: "canchar",
        about: "many frames per system call, by read(2) on a character device (/dev/canchar0)",
        waits: &[Wait::Block, Wait::Poll, Wait::Spin, Wait::ChipPoll],
        capabilities: Capabilities { fd: false, batch: true, origin: true },
        check: canchar::check_receiver,
        open: canchar::receiver,
    },
    Receiver {
        name: "canchar-ring",
        about: "no system call per frame: the ring of a character device, mapped",
        waits: &[Wait::Block, Wait::Poll, Wait::Spin, Wait::ChipPoll],
        capabilities: Capabilities { fd: false, batch: true, origin: true },
        check: canchar::check_receiver,
        open: canchar_ring::receiver,
    },
    Receiver {
        name: "port",
        about: "no kernel at all: this process polls the controller of a card through I/O ports (port:0000:00:07.0)",
        waits: &[Wait::Spin],
        capabilities: Capabilities { fd: false, batch: false, origin: false },
        check: port::check_receiver,
        open: port::receiver,
    },
    Receiver {
        name: "sim",
        about: "an in-memory bus with a clock, for tests (interfaces named sim:WORLD/BUS)",
        waits: &[Wait::Spin],
        capabilities: Capabilities { fd: true, batch: true, origin: false },
        check: sim::check_receiver,
        open: sim::receiver,
    },
];

/// Every way to send.
pub static TRANSMITTERS: &[Transmitter] = &[
    Transmitter {
        name: "write",
        about: "one frame per system call, by send(2) on a raw CAN socket",
        capabilities: Capabilities { fd: true, batch: false, origin: true },
        check: read_write::check_transmitter,
        open: read_write::transmitter,
    },
    Transmitter {
        name: "sendmmsg",
        about: "many frames per system call, by sendmmsg(2) on a raw CAN socket",
        capabilities: Capabilities { fd: true, batch: true, origin: true },
        check: read_write::check_transmitter,
        open: mmsg::transmitter,
    },
    Transmitter {
        name: "ring",
        about: "one system call for all frames put into a PF_PACKET ring shared with the kernel",
        capabilities: Capabilities { fd: true, batch: true, origin: false },
        check: packet_ring::check_transmitter,
        open: packet_ring::transmitter,
    },
    Transmitter {
        name: "io-uring",
        about: "one system call for many sends, linked so that their order holds",
        capabilities: Capabilities { fd: true, batch: true, origin: true },
        check: uring::check_transmit,
        open: uring::transmitter,
    },
    Transmitter {
        name: "canchar",
        about: "many frames per system call, by write(2) on a character device (/dev/canchar0)",
        capabilities: Capabilities { fd: false, batch: true, origin: true },
        check: canchar::check_transmitter,
        open: canchar::transmitter,
    },
    Transmitter {
        name: "canchar-ring",
        about: "one system call for all frames put into the mapped ring of a character device",
        capabilities: Capabilities { fd: false, batch: true, origin: true },
        check: canchar::check_transmitter,
        open: canchar_ring::transmitter,
    },
    Transmitter {
        name: "port",
        about: "no kernel at all: this process writes the controller's registers through I/O ports",
        capabilities: Capabilities { fd: false, batch: false, origin: false },
        check: port::check_transmitter,
        open: port::transmitter,
    },
    Transmitter {
        name: "sim",
        about: "an in-memory bus with a clock, for tests (interfaces named sim:WORLD/BUS)",
        capabilities: Capabilities { fd: true, batch: true, origin: false },
        check: sim::check_transmitter,
        open: sim::transmitter,
    },
];

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
    /// Every receiver with every wait that it has.
    pub fn all() -> impl Iterator<Item = Self> {
        RECEIVERS.iter().flat_map(|row| row.waits.iter().map(move |&wait| Self { row, wait }))
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
    /// Every sender.
    pub fn all() -> impl Iterator<Item = Self> {
        TRANSMITTERS.iter().map(|row| Self { row })
    }

    /// What sends on an interface of this name unless another one is asked for: `write`, or what the interface has instead.
    ///
    /// # Errors
    /// None; every name is that of a row.
    pub fn usual(name: &str) -> Result<Self> {
        own_method(name).unwrap_or("write").parse()
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

impl FromStr for ReceiveMethod {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, wait) = text.split_once('/').map_or((text, None), |(name, wait)| (name, Some(wait)));
        let row = RECEIVERS.iter().find(|row| row.name == name).ok_or_else(|| {
            unknown(text, "no such receiver", RECEIVERS.iter().map(|row| row.name.to_owned()))
        })?;
        let Some(wait) = wait else { return Ok(Self { row, wait: row.waits[0] }) };
        let names = row.waits.iter().map(|wait| format!("{name}/{}", wait.name()));
        let wait = row.waits.iter().find(|have| have.name() == wait);
        wait.map(|&wait| Self { row, wait }).ok_or_else(|| unknown(text, "no such wait", names))
    }
}

impl FromStr for TransmitMethod {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        TRANSMITTERS.iter().find(|row| row.name == text).map(|row| Self { row }).ok_or_else(|| {
            unknown(text, "no such transmitter", TRANSMITTERS.iter().map(|row| row.name.to_owned()))
        })
    }
}

fn unknown(text: &str, what: &str, known: impl Iterator<Item = String>) -> Error {
    let known: Vec<_> = known.collect();
    Error::new(text, "method", io::Error::new(io::ErrorKind::InvalidInput, what))
        .hint(format!("there are {}", known.join(", ")))
}

/// What receives and sends where sockets do not.
fn own_method(name: &str) -> Option<&'static str> {
    match Kind::without_sockets(name)? {
        Kind::Canchar => Some("canchar"),
        Kind::Port => Some("port"),
        _ => Some("sim"),
    }
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
    /// What receives from an interface of one name and sends to one of another unless another pair is asked for:
    /// `read+write`, or on each side what the interface has instead.
    ///
    /// # Errors
    /// None; every name is that of a row.
    pub fn usual(from: &str, to: &str) -> Result<Self> {
        let receive = own_method(from).unwrap_or("read").parse()?;
        Ok(Self { receive, transmit: TransmitMethod::usual(to)? })
    }
}

/// The names of the 2014 paper (table 3.1) and ours.
pub static PAPER_PAIRS: &[(&str, &str)] = &[
    ("read-write", "read+write"),
    ("readnb-write", "read/spin+write"),
    ("readbusy-write", "read/busy-poll+write"),
    ("mmap-mmap", "ring+ring"),
    ("mmap-write", "ring+write"),
    ("mmapbusy-mmap", "ring/spin+ring"),
    ("mmapbusy-write", "ring/spin+write"),
    ("readnb-mmap", "read/spin+ring"),
    ("mmsg-mmsg", "recvmmsg+sendmmsg"),
    ("readbusynoirq-write", "canchar/chip-poll+canchar"),
];

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.receive, self.transmit)
    }
}

impl FromStr for Pair {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let ours = PAPER_PAIRS.iter().find(|(paper, _)| *paper == text).map_or(text, |(_, ours)| ours);
        let (receive, transmit) = ours.split_once('+').ok_or_else(|| {
            unknown(
                text,
                "not a pair RECEIVER+TRANSMITTER",
                PAPER_PAIRS.iter().map(|(_, ours)| (*ours).to_owned()),
            )
        })?;
        Ok(Self { receive: receive.parse()?, transmit: transmit.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_named_so_that_its_name_finds_it_again() {
        for method in ReceiveMethod::all() {
            assert_eq!(method.to_string().parse::<ReceiveMethod>().unwrap().to_string(), method.to_string());
        }
        for method in TransmitMethod::all() {
            assert_eq!(method.to_string().parse::<TransmitMethod>().unwrap().to_string(), method.to_string());
        }
    }

    #[test]
    fn a_name_of_the_paper_is_understood() {
        for (paper, ours) in PAPER_PAIRS {
            let pair: Pair = paper.parse().unwrap();
            assert_eq!(pair.to_string(), *ours);
        }
    }

    #[test]
    fn an_unknown_method_is_refused_with_the_list_of_those_there_are() {
        let Err(error) = "ring/nap+write".parse::<Pair>() else { panic!("there is no such wait") };
        assert_eq!(error.to_string(), "ring/nap: method: no such wait (there are ring/poll, ring/spin)");
        assert!("read".parse::<Pair>().is_err());
    }
}
