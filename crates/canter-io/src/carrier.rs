//! Carriers: the kinds of things that carry frames. This is the seam between an [`Interface`] and what its name refers
//! to.
//!
//! | names | carrier | reached by |
//! | --- | --- | --- |
//! | `can0`, `vcan0` | an interface of the kernel's network | sockets and packet rings |
//! | `/dev/canchar0` | a character device of the module canchar | its file |
//! | `port:0000:00:07.0` | a card that no driver has | this process, through I/O ports |
//! | `sim:world/bus` | a bus in the memory of this process | this process |
//!
//! A [`Carrier`] is a row of a table ([`table::CARRIERS`]); an [`Interface`] keeps the row that found it, and its
//! methods ([`crate::interface`]) call the row's functions. A program may pass [`Interface::find_among`] another table.
//!
//! To add a carrier: a file in `carrier/` and a row in `carrier/table.rs`. A row says how names begin, who hands the
//! frames out (the kernel's sockets, an open file, this process), which methods are usual, which driver a card needs, what
//! to type when frames do not move, and how to find, read, count, set up and delete; [`Carrier::PLAIN`] fills what does not
//! apply. It needs a transmitter and a receiver that spins, and a link for the conformance test: a `Kind` in
//! `tests/it/promises/links.rs` and a module beside `conformance_canchar.rs`. `Access::File` is canchar's: programs that
//! read its files (recorder, `top`, `dump`, `decode`) know them by that column and by their names below `/dev/`.

pub(crate) mod canchar;
pub(crate) mod network;
pub(crate) mod port;
mod sim;
pub mod table;

use crate::{
    Error, Result,
    frame::CANFD_MTU,
    frame_counters::FrameCounters,
    netlink::{
        controller::{BitTiming, Controller},
        counters::Counters,
    },
};
use std::fmt;

/// The kind of an interface, with the kernel's name where it has one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A controller, driven through the kernel's can-dev.
    Can,
    /// Virtual: each frame sent is received by all other sockets of the interface.
    Vcan,
    /// One end of a virtual pair, like a cable.
    Vxcan,
    /// A controller as a character device, /dev/canchar0, outside of the network stack.
    Canchar,
    /// A card that this process drives through I/O ports, `port:0000:00:07.0`, without a kernel driver.
    Port,
    /// A bus in the memory of this process, `sim:world/bus`.
    Sim,
    /// Another kind, by the kernel's name for it; empty when it has none.
    Other(String),
}

impl Kind {
    /// From `IFLA_INFO_KIND`.
    pub(crate) fn from_name(name: &str) -> Self {
        match name {
            "can" => Self::Can,
            "vcan" => Self::Vcan,
            "vxcan" => Self::Vxcan,
            other => Self::Other(other.to_owned()),
        }
    }

    /// The kernel's name for it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Can => "can",
            Self::Vcan => "vcan",
            Self::Vxcan => "vxcan",
            Self::Canchar => "canchar",
            Self::Port => "port",
            Self::Sim => "sim",
            Self::Other(name) => name,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A CAN interface, as it was when it was last read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The interface's name: `can0`.
    pub name: String,
    /// The interface's index, as in [`Meta::interface`](crate::Meta); 0 for [`Kind::Sim`].
    pub index: u32,
    /// The largest frame it takes, in bytes: 16 classic, 72 FD, more for XL.
    pub mtu: u32,
    /// What kind of interface it is.
    pub kind: Kind,
    /// Whether the interface was brought up (`IFF_UP`).
    pub up: bool,
    /// Whether the interface can carry frames (`IFF_RUNNING`): it is up and its controller is not bus-off. The kernel
    /// reports this from a work queue, up to 1 s after [`up`](Self::up); frames can be sent before.
    pub running: bool,
    /// The driver echoes sent frames when they were on the bus (`IFF_ECHO`); otherwise the kernel echoes them at once.
    pub echo: bool,
    /// The driver of the device behind it (sysfs), `kvaser_pci`; virtual interfaces have none.
    pub driver: Option<String>,
    /// The queueing discipline: `pfifo_fast`, `noqueue`.
    pub qdisc: String,
    /// The transmit queue length in frames (`txqueuelen`).
    pub tx_queue_len: u32,
    /// The index of a vxcan's other end, in its own network namespace.
    pub peer: Option<u32>,
    /// State and bit timing of a controller; virtual interfaces have none.
    pub controller: Option<Controller>,
    /// The interface's carrier: the row that found it.
    pub carrier: &'static Carrier,
}

impl Interface {
    /// Whether the kernel's sockets reach it: it is neither simulated, nor a canchar device, nor driven from user
    /// space.
    pub fn has_sockets(&self) -> bool {
        self.carrier.access == Access::Sockets
    }

    /// Whether it takes FD frames: its mtu is 72 or more.
    pub fn supports_fd(&self) -> bool {
        self.mtu as usize >= CANFD_MTU
    }

    /// The bit rate in bit/s, of a controller that has one set.
    pub fn bitrate(&self) -> Option<u32> {
        self.controller.as_ref().map(|controller| controller.timing.bitrate).filter(|&bitrate| bitrate != 0)
    }

    /// The bit rate of the data phase in bit/s, of a controller that has FD on.
    pub fn data_bitrate(&self) -> Option<u32> {
        let timing = self.controller.as_ref().filter(|controller| controller.is_fd())?.data_timing?;
        Some(timing.bitrate).filter(|&bitrate| bitrate != 0)
    }
}

/// How programs receive the frames of a carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// From the kernel's network stack, by CAN sockets and packet rings.
    Sockets,
    /// An open file for each program and device.
    File,
    /// In this process only, by the carrier's own method.
    Process,
}

/// The default methods of a carrier, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsualMethods {
    /// Receives.
    pub receive: &'static str,
    /// Receives without sleeping, many frames per call: for measurements, which need each frame's stamp.
    pub receive_spinning: &'static str,
    /// Sends, one frame at a time.
    pub transmit: &'static str,
}

/// Commands for the user that make an interface carry frames again.
#[derive(Clone, Copy)]
pub struct Remedies {
    /// Brings the interface of this name up; with `true`, sets a bit rate too.
    pub up: fn(name: &str, set_rate: bool) -> String,
    /// Whether a bit rate must be set before the interface can be up.
    pub needs_rate: fn(&Interface) -> bool,
    /// Restarts a controller after bus-off.
    pub restart: fn(name: &str) -> String,
    /// Makes a controller restart automatically, 100 ms after each bus-off.
    pub restart_always: fn(name: &str) -> String,
}

/// A card of the PCI bus, as a carrier makes interfaces of it.
#[derive(Clone, Copy)]
pub struct PciCard {
    /// The driver that a Kvaser PCI card must have; `None`: none may have it.
    pub driver: Option<&'static str>,
    /// The interface name of the card at this PCI address; the bit rate in bit/s is used where it is part of the name.
    pub name: fn(address: &str, bitrate: u32) -> Result<String>,
}

/// A carrier: a row of a table.
///
/// [`Carrier::PLAIN`] fills the columns in which a carrier is like a bus in memory.
#[derive(Clone, Copy)]
pub struct Carrier {
    /// The carrier's name, unique in a table.
    pub name: &'static str,
    /// A noun with its article for its interfaces, for use in sentences: `a canchar device`.
    pub about: &'static str,
    /// How the names of its interfaces begin. Rows are tried in the table's order; an empty prefix fits every name.
    pub prefix: &'static str,
    /// How programs receive its frames.
    pub access: Access,
    /// The default methods of the carrier.
    pub usual: UsualMethods,
    /// How it uses a PCI card; `None`: it does not.
    pub card: Option<PciCard>,
    /// The commands that make an interface carry frames again.
    pub remedies: Remedies,
    /// Finds the interface of this name, which begins with the prefix. The row is for [`Interface::carrier`].
    pub find: fn(&str, &'static Carrier) -> Result<Interface>,
    /// Reads all fields of the interface again.
    pub refresh: fn(&mut Interface) -> Result<()>,
    /// Reads the controller's state again, and more where that costs no more.
    pub refresh_state: fn(&mut Interface) -> Result<()>,
    /// Reads its counters.
    pub counters: fn(&Interface) -> Result<Counters>,
    /// Reads those of its frames, without waiting for changes of other interfaces.
    pub frame_counters: fn(&Interface) -> Result<FrameCounters>,
    /// Brings it up (`true`) or down, and reads it again.
    pub set_up: fn(&mut Interface, bool) -> Result<()>,
    /// Sets the largest frame in bytes.
    pub set_mtu: fn(&mut Interface, u32) -> Result<()>,
    /// Sets the transmit queue length in frames.
    pub set_tx_queue_len: fn(&mut Interface, u32) -> Result<()>,
    /// Sets bit rate and modes. The caller has checked that the settings do not contradict each other.
    pub set_bit_timing: fn(&mut Interface, &BitTiming) -> Result<()>,
    /// Deletes it.
    pub delete: fn(&Interface) -> Result<()>,
}

impl Carrier {
    /// A carrier whose interfaces are always up, count nothing and have no settings: the base of other rows.
    pub const PLAIN: Self = Self {
        name: "",
        about: "",
        prefix: "",
        access: Access::Process,
        usual: UsualMethods { receive: "", receive_spinning: "", transmit: "" },
        card: None,
        remedies: Remedies {
            up: |name, _| format!("bring {name} up"),
            needs_rate: |_| false,
            restart: |name| format!("bring {name} down and up again"),
            restart_always: |name| format!("bring {name} down and up again, each time"),
        },
        find: |name, _| {
            let none = std::io::Error::from_raw_os_error(libc::ENODEV);
            Err(Error::new(name, "find", none))
        },
        refresh: |_| Ok(()),
        refresh_state: |_| Ok(()),
        counters: |_| Ok(Counters::default()),
        frame_counters: |interface| Ok(interface.counters()?.into()),
        set_up: |_, _| Ok(()),
        set_mtu: |interface, _| Err(no_such_setting(interface, "set mtu")),
        set_tx_queue_len: |interface, _| Err(no_such_setting(interface, "set txqueuelen")),
        set_bit_timing: |interface, _| {
            let why = format!("a {} has no bit rate", interface.kind);
            Err(Error::unsupported(&interface.name, "set bit rate", why))
        },
        delete: |_| Ok(()),
    };

    /// The row of `table` whose prefix fits `name`.
    pub fn find_in(name: &str, table: &[&'static Self]) -> Option<&'static Self> {
        table.iter().copied().find(|row| name.starts_with(row.prefix))
    }
}

impl PartialEq for Carrier {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Carrier {}

impl fmt::Debug for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

fn no_such_setting(interface: &Interface, step: &'static str) -> Error {
    let why = format!("a {} interface does not have this setting", interface.kind);
    Error::unsupported(&interface.name, step, why)
}

/// A controller stays when its interface goes: the kernel would report success and do nothing.
fn refuse_to_delete(interface: &Interface) -> Result<()> {
    Err(Error::unsupported(&interface.name, "delete", "a controller's interface cannot be deleted")
        .hint("bring it down, or remove its driver's module"))
}
