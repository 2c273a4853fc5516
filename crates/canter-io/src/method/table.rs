//! The register of methods: a row for each way to receive and to send, the pairs of the 2014 paper, and names parsed
//! with these tables.
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

use super::{
    Capabilities, Pair, ReceiveMethod, Receiver, TransmitMethod, Transmitter, Wait, canchar, canchar_ring,
    mmsg, packet_ring, port, read_write, sim, uring,
};
use crate::{
    Error, Result,
    carrier::table::{self as carriers, CANCHAR, NETWORK, PORT, SIM},
};
use std::str::FromStr;

/// The right to use I/O ports.
const PORTS: &str = "CAP_SYS_RAWIO";
/// Why `canter syscalls` measures nothing of a method that makes no system call.
const NO_CALLS: &str = "it makes no system call";
/// Why `canter syscalls` measures nothing of a bus in this process.
const IN_MEMORY: &str = "a simulated bus makes no system call";

/// Every way to receive.
pub static RECEIVERS: &[&Receiver] = &[
    &Receiver {
        name: "read",
        about: "one frame per system call, by recv(2) on a raw CAN socket",
        waits: &[Wait::Block, Wait::Poll, Wait::Spin, Wait::BusyPoll],
        capabilities: Capabilities { fd: true, batch: false, origin: true },
        carriers: &[&NETWORK],
        right: None,
        syscalls: Ok(Wait::Block),
        check: read_write::check_receiver,
        open: read_write::receiver,
    },
    &Receiver {
        name: "recvmmsg",
        about: "many frames per system call, by recvmmsg(2) on a raw CAN socket",
        waits: &[Wait::Block, Wait::Poll, Wait::Spin],
        capabilities: Capabilities { fd: true, batch: true, origin: true },
        carriers: &[&NETWORK],
        right: None,
        syscalls: Ok(Wait::Spin),
        check: read_write::check_receiver,
        open: mmsg::receiver,
    },
    &Receiver {
        name: "ring",
        about: "no system call per frame: a PF_PACKET ring (TPACKET_V2) shared with the kernel",
        waits: &[Wait::Poll, Wait::Spin],
        capabilities: Capabilities { fd: true, batch: true, origin: false },
        carriers: &[&NETWORK],
        right: None,
        syscalls: Ok(Wait::Spin),
        check: packet_ring::check_receiver,
        open: packet_ring::receiver,
    },
    &Receiver {
        name: "io-uring",
        about: "one multishot request to io_uring; completions are processed when the receiver asks for them",
        waits: &[Wait::Block, Wait::Spin],
        capabilities: Capabilities { fd: true, batch: true, origin: true },
        carriers: &[&NETWORK],
        right: None,
        syscalls: Ok(Wait::Spin),
        check: uring::check_receive,
        open: uring::receiver,
    },
    &Receiver {
        name: "canchar",
        about: "many frames per system call, by read(2) on a character device (/dev/canchar0)",
        waits: &[Wait::Block, Wait::Poll, Wait::Spin, Wait::ChipPoll, Wait::Adaptive, Wait::Coalesce],
        capabilities: Capabilities { fd: false, batch: true, origin: true },
        carriers: &[&CANCHAR],
        right: None,
        syscalls: Ok(Wait::Spin),
        check: canchar::check_receiver,
        open: canchar::receiver,
    },
    &Receiver {
        name: "canchar-ring",
        about: "no system call per frame: the ring of a character device, mapped",
        waits: &[Wait::Block, Wait::Poll, Wait::Spin, Wait::ChipPoll, Wait::Adaptive],
        capabilities: Capabilities { fd: false, batch: true, origin: true },
        carriers: &[&CANCHAR],
        right: None,
        syscalls: Ok(Wait::Spin),
        check: canchar::check_receiver,
        open: canchar_ring::receiver,
    },
    &Receiver {
        name: "port",
        about: "without the kernel: this process polls the controller of a card through I/O ports (port:0000:00:07.0)",
        waits: &[Wait::Spin],
        capabilities: Capabilities { fd: false, batch: false, origin: false },
        carriers: &[&PORT],
        right: Some(PORTS),
        syscalls: Err(NO_CALLS),
        check: port::check_receiver,
        open: port::receiver,
    },
    &Receiver {
        name: "sim",
        about: "an in-memory bus with a clock, for tests (interfaces named sim:WORLD/BUS)",
        waits: &[Wait::Spin],
        capabilities: Capabilities { fd: true, batch: true, origin: false },
        carriers: &[&SIM],
        right: None,
        syscalls: Err(IN_MEMORY),
        check: sim::check_receiver,
        open: sim::receiver,
    },
];

/// Every way to send.
pub static TRANSMITTERS: &[&Transmitter] = &[
    &Transmitter {
        name: "write",
        about: "one frame per system call, by send(2) on a raw CAN socket",
        capabilities: Capabilities { fd: true, batch: false, origin: true },
        carriers: &[&NETWORK],
        right: None,
        syscalls: Ok(()),
        check: read_write::check_transmitter,
        open: read_write::transmitter,
    },
    &Transmitter {
        name: "sendmmsg",
        about: "many frames per system call, by sendmmsg(2) on a raw CAN socket",
        capabilities: Capabilities { fd: true, batch: true, origin: true },
        carriers: &[&NETWORK],
        right: None,
        syscalls: Ok(()),
        check: read_write::check_transmitter,
        open: mmsg::transmitter,
    },
    &Transmitter {
        name: "ring",
        about: "one system call for all frames put into a PF_PACKET ring shared with the kernel",
        capabilities: Capabilities { fd: true, batch: true, origin: false },
        carriers: &[&NETWORK],
        right: None,
        syscalls: Ok(()),
        check: packet_ring::check_transmitter,
        open: packet_ring::transmitter,
    },
    &Transmitter {
        name: "io-uring",
        about: "one system call for many sends, linked so that their order holds",
        capabilities: Capabilities { fd: true, batch: true, origin: true },
        carriers: &[&NETWORK],
        right: None,
        syscalls: Ok(()),
        check: uring::check_transmit,
        open: uring::transmitter,
    },
    &Transmitter {
        name: "canchar",
        about: "many frames per system call, by write(2) on a character device (/dev/canchar0)",
        capabilities: Capabilities { fd: false, batch: true, origin: true },
        carriers: &[&CANCHAR],
        right: None,
        syscalls: Ok(()),
        check: canchar::check_transmitter,
        open: canchar::transmitter,
    },
    &Transmitter {
        name: "canchar-ring",
        about: "one system call for all frames put into the mapped ring of a character device",
        capabilities: Capabilities { fd: false, batch: true, origin: true },
        carriers: &[&CANCHAR],
        right: None,
        syscalls: Ok(()),
        check: canchar::check_transmitter,
        open: canchar_ring::transmitter,
    },
    &Transmitter {
        name: "port",
        about: "without the kernel: this process writes the controller's registers through I/O ports",
        capabilities: Capabilities { fd: false, batch: false, origin: false },
        carriers: &[&PORT],
        right: Some(PORTS),
        syscalls: Err(NO_CALLS),
        check: port::check_transmitter,
        open: port::transmitter,
    },
    &Transmitter {
        name: "sim",
        about: "an in-memory bus with a clock, for tests (interfaces named sim:WORLD/BUS)",
        capabilities: Capabilities { fd: true, batch: true, origin: false },
        carriers: &[&SIM],
        right: None,
        syscalls: Err(IN_MEMORY),
        check: sim::check_transmitter,
        open: sim::transmitter,
    },
];

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

impl ReceiveMethod {
    /// Every built-in receiver with every wait that it has.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::all_in(RECEIVERS)
    }
}

impl TransmitMethod {
    /// Every built-in sender.
    pub fn all() -> impl Iterator<Item = Self> {
        TRANSMITTERS.iter().map(|row| Self { row })
    }

    /// The default transmitter of an interface of this name: `write` on the network.
    ///
    /// # Errors
    /// None; every carrier names a row.
    pub fn usual(name: &str) -> Result<Self> {
        carriers::carrier_of(name).usual.transmit.parse()
    }
}

impl Pair {
    /// The default pair for receiving from an interface of one name and sending to one of another:
    /// `read+write` on the network.
    ///
    /// # Errors
    /// None; every carrier names a row.
    pub fn usual(from: &str, to: &str) -> Result<Self> {
        let receive = carriers::carrier_of(from).usual.receive.parse()?;
        Ok(Self { receive, transmit: TransmitMethod::usual(to)? })
    }
}

impl FromStr for ReceiveMethod {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text, RECEIVERS)
    }
}

impl FromStr for TransmitMethod {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text, TRANSMITTERS)
    }
}

impl FromStr for Pair {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text, RECEIVERS, TRANSMITTERS, PAPER_PAIRS)
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
