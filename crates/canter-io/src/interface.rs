//! CAN interfaces: find and list them, see what they are and what they have counted, create, set and delete them.
//!
//! An [`Interface`] is what the kernel said when it was asked; [`refresh`](Interface::refresh) asks again.

mod canchar;
mod port;
pub mod remedy;

use std::fs;
use std::io;

use crate::netlink::{self, link, link::Link};
use crate::{Error, Result};

pub use crate::netlink::controller::{BitTiming, Controller, ErrorCounters, Modes, State, Timing};
pub use crate::netlink::counters::Counters;

/// How the name of an in-memory interface begins. It exists in this process only, and no kernel is asked about it.
pub const SIMULATED: &str = "sim:";

/// Characters that an interface's name may have (`IFNAMSIZ` less its NUL).
const NAME_CHARACTERS_MAX: usize = libc::IFNAMSIZ - 1;

/// What carries the frames.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A controller, driven through the kernel's can-dev.
    Can,
    /// Virtual: what is sent comes back to all sockets of the interface.
    Vcan,
    /// One end of a virtual pair, like a cable.
    Vxcan,
    /// A controller as a character device, /dev/canchar0: the kernel's network stack knows nothing of it.
    Canchar,
    /// A card that the process which opens it drives itself, `port:0000:00:07.0`: the kernel has no driver for it.
    Port,
    /// In the memory of this process; see [`SIMULATED`].
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

    /// What an interface of this name is that sockets do not reach, whether it is there or not; `None`: they reach it.
    pub fn without_sockets(name: &str) -> Option<Self> {
        match name {
            _ if name.starts_with(SIMULATED) => Some(Self::Sim),
            _ if name.starts_with(canchar::DEVICES) => Some(Self::Canchar),
            _ if name.starts_with(port::PREFIX) => Some(Self::Port),
            _ => None,
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

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// A CAN interface, as it was when it was last asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name: `can0`.
    pub name: String,
    /// Its index; 0 for [`Kind::Sim`].
    pub index: u32,
    /// The largest frame it takes, in bytes: 16 classic, 72 FD, more for XL.
    pub mtu: u32,
    /// What carries its frames.
    pub kind: Kind,
    /// It was brought up (`IFF_UP`).
    pub up: bool,
    /// It can carry frames (`IFF_RUNNING`): up and, of a controller, not off the bus. The kernel says so from a work
    /// queue, up to a second after [`up`](Self::up); frames can be sent before.
    pub running: bool,
    /// The driver sends own frames back when they were on the bus (`IFF_ECHO`); otherwise the kernel does, at once.
    pub echo: bool,
    /// The driver of the device behind it (sysfs), `kvaser_pci`; virtual interfaces have none.
    pub driver: Option<String>,
    /// The queueing discipline: `pfifo_fast`, `noqueue`.
    pub qdisc: String,
    /// How many frames may wait to be sent (`txqueuelen`).
    pub tx_queue_len: u32,
    /// The index of a vxcan's other end, in its own network namespace.
    pub peer: Option<u32>,
    /// What a controller tells about itself; [`Kind::Can`] only.
    pub controller: Option<Controller>,
}

impl Interface {
    /// The CAN interface of this name, the canchar device of this path, or the card that `port:` names; a name that starts with [`SIMULATED`] always
    /// exists.
    ///
    /// # Errors
    /// `ENODEV` when there is none (the way out lists those that there are), `InvalidInput` when it is no CAN
    /// interface or can be no name.
    pub fn find(name: &str) -> Result<Self> {
        const STEP: &str = "find";
        match Kind::without_sockets(name) {
            Some(Kind::Canchar) => return canchar::find(name),
            Some(Kind::Port) => return port::find(name),
            Some(_) => return Ok(Self::simulated(name)),
            None => check_name(name, STEP)?,
        }
        let link = match ask_link(link::get_by_name(name)) {
            Ok(link) => link,
            Err(refusal) => return Err(refusal.of(name, STEP, &whereabouts())),
        };
        if link.hardware != libc::ARPHRD_CAN {
            return Err(not_can(name));
        }
        Ok(link.interface.with_driver())
    }

    /// All CAN interfaces of this network namespace, in the kernel's order.
    ///
    /// # Errors
    /// When the kernel cannot be asked.
    pub fn list() -> Result<Vec<Self>> {
        let answers =
            netlink::dump(link::get_all()).map_err(|refusal| refusal.of("interfaces", "list", ""))?;
        let links = answers.iter().filter_map(|(_, payload)| Link::decode(payload));
        let can = links.filter(|link| link.hardware == libc::ARPHRD_CAN);
        Ok(can.map(|link| link.interface.with_driver()).collect())
    }

    /// All canchar devices of this machine, by their numbers.
    pub fn devices() -> Vec<Self> {
        canchar::list()
    }

    /// The CAN interface of this index, as a received frame names it.
    ///
    /// # Errors
    /// `ENODEV` when there is none, `InvalidInput` when it is no CAN interface.
    pub fn by_index(index: u32) -> Result<Self> {
        let thing = || format!("interface {index}");
        let link = ask_link(link::get_by_index(index)).map_err(|refusal| refusal.of(&thing(), "find", ""))?;
        if link.hardware != libc::ARPHRD_CAN {
            return Err(not_can(&link.interface.name));
        }
        Ok(link.interface.with_driver())
    }

    /// Asks the kernel again. The interface is followed by its index, so a new name shows too.
    ///
    /// # Errors
    /// `ENODEV` when it has gone.
    pub fn refresh(&mut self) -> Result<()> {
        match self.kind {
            Kind::Sim => {}
            Kind::Canchar => *self = canchar::find(&self.name)?,
            Kind::Port => *self = port::find(&self.name)?,
            _ => *self = self.ask("refresh")?.interface.with_driver(),
        }
        Ok(())
    }

    /// Asks the kernel again, for the controller's state at least: of a device only for that, which takes a sixth of the
    /// time.
    ///
    /// # Errors
    /// `ENODEV` when it has gone.
    pub fn refresh_state(&mut self) -> Result<()> {
        if self.kind == Kind::Canchar { self.canchar_refresh_state() } else { self.refresh() }
    }

    /// What it has counted so far, read now. A simulated interface counts nothing here.
    ///
    /// # Errors
    /// `ENODEV` when it has gone.
    pub fn counters(&self) -> Result<Counters> {
        match self.kind {
            Kind::Sim => Ok(Counters::default()),
            Kind::Canchar => self.canchar_counters(),
            Kind::Port => self.port_counters(),
            _ => Ok(self.ask("counters")?.counters),
        }
    }

    /// Whether the kernel's sockets reach it: it is neither simulated, nor a canchar device, nor driven from user space.
    pub fn has_sockets(&self) -> bool {
        !matches!(self.kind, Kind::Sim | Kind::Canchar | Kind::Port)
    }

    /// Whether it takes FD frames: its mtu is 72 or more.
    pub fn supports_fd(&self) -> bool {
        self.mtu as usize >= crate::frame::CANFD_MTU
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

    /// Creates a vcan. It is down.
    ///
    /// # Errors
    /// `AlreadyExists`; without the vcan module `EOPNOTSUPP`; without `CAP_NET_ADMIN` `EPERM`.
    pub fn create_vcan(name: &str) -> Result<Self> {
        Self::create("vcan", name, None)
    }

    /// Creates a vxcan: two interfaces, joined like two ends of a cable. Answers the first; both are down.
    ///
    /// # Errors
    /// As [`create_vcan`](Self::create_vcan).
    pub fn create_vxcan(name: &str, peer: &str) -> Result<Self> {
        check_name(peer, "create")?;
        Self::create("vxcan", name, Some(peer))
    }

    fn create(kind: &'static str, name: &str, peer: Option<&str>) -> Result<Self> {
        check_name(name, "create")?;
        let request = link::create(kind, name, peer);
        netlink::ask(request).map_err(|refusal| {
            let hint = match refusal.source.raw_os_error() {
                Some(libc::EOPNOTSUPP) => format!("modprobe {kind}, or run in canter lab"),
                Some(libc::EEXIST) => match peer {
                    Some(peer) => format!("{name} or {peer} is there already; ip link delete removes it"),
                    None => "ip link delete removes it".to_owned(),
                },
                _ => String::new(),
            };
            refusal.of(name, "create", &hint)
        })?;
        Self::find(name)
    }

    /// Deletes a virtual interface; of a vxcan, both ends.
    ///
    /// # Errors
    /// `Unsupported` for a controller: the kernel would report success and do nothing.
    pub fn delete(self) -> Result<()> {
        match self.kind {
            Kind::Can | Kind::Canchar | Kind::Port => {
                Err(Error::unsupported(self.name, "delete", "a controller's interface cannot be deleted")
                    .hint("bring it down, or remove its driver's module"))
            }
            Kind::Sim => Ok(()),
            _ => self.change(link::delete(self.index), "delete", |_, _| String::new()),
        }
    }

    /// Brings it up. A controller needs a bit rate first; a simulated interface is always up.
    ///
    /// # Errors
    /// What the kernel or the driver answers.
    pub fn up(&mut self) -> Result<()> {
        match self.kind {
            Kind::Sim => return Ok(()),
            Kind::Canchar => return self.canchar_run(true),
            Kind::Port => return self.port_run(true),
            _ => {}
        }
        self.set(link::set_up(self.index, true), "up", |interface, error| {
            let unset = interface.kind == Kind::Can && interface.bitrate().is_none();
            if unset && error == Some(libc::EINVAL) { "set a bit rate first".into() } else { String::new() }
        })
    }

    /// Brings it down. Frames in its queue are lost. A simulated interface stays up.
    ///
    /// # Errors
    /// What the kernel or the driver answers.
    pub fn down(&mut self) -> Result<()> {
        match self.kind {
            Kind::Sim => return Ok(()),
            Kind::Canchar => return self.canchar_run(false),
            Kind::Port => return self.port_run(false),
            _ => {}
        }
        self.set(link::set_up(self.index, false), "down", |_, _| String::new())
    }

    /// Sets the largest frame in bytes: 16 classic, 72 FD. Of a controller it follows from
    /// [`set_bit_timing`](Self::set_bit_timing).
    ///
    /// # Errors
    /// `EBUSY` when it is up, `EINVAL` for an mtu that it cannot have.
    pub fn set_mtu(&mut self, bytes: u32) -> Result<()> {
        self.set(link::set_u32(self.index, libc::IFLA_MTU, bytes), "set mtu", Self::busy)
    }

    /// Sets how many frames may wait to be sent; the kernel's default for CAN is 10. 0: as many as the queueing
    /// discipline takes.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn set_tx_queue_len(&mut self, frames: u32) -> Result<()> {
        self.set(link::set_u32(self.index, libc::IFLA_TXQLEN, frames), "set txqueuelen", |_, _| String::new())
    }

    /// Sets bit rate and modes of a controller, which must be down.
    ///
    /// # Errors
    /// `InvalidInput` for settings that contradict each other; `Unsupported` on an interface that has no bit rate;
    /// `EBUSY` when it is up; what the kernel answers to a bit rate or a mode that the controller cannot do.
    pub fn set_bit_timing(&mut self, timing: &BitTiming) -> Result<()> {
        const STEP: &str = "set bit rate";
        if let Some(fault) = timing.fault() {
            return Err(Error::new(&self.name, STEP, io::Error::new(io::ErrorKind::InvalidInput, fault)));
        }
        if self.kind == Kind::Canchar {
            return self.canchar_set_bit_timing(timing);
        }
        if self.kind == Kind::Port {
            let why = "its bit rate is part of its name";
            return Err(Error::unsupported(&self.name, STEP, why).hint("port:…@250000"));
        }
        if self.kind != Kind::Can {
            return Err(Error::unsupported(&self.name, STEP, format!("a {} has no bit rate", self.kind)));
        }
        self.set(link::set_bit_timing(self.index, timing), STEP, |interface, error| match error {
            Some(libc::EOPNOTSUPP) => interface.modes_hint(timing),
            Some(libc::EINVAL | libc::EDOM | libc::ERANGE) => format!(
                "a bit rate of {} bit/s cannot be made from its clock of {} Hz; the kernel log may say more",
                timing.bitrate,
                interface.controller.as_ref().map_or(0, |controller| controller.clock_hz),
            ),
            _ => interface.busy(error),
        })
    }

    /// Which of the wanted modes the controller does not have.
    fn modes_hint(&self, timing: &BitTiming) -> String {
        let supported = self.controller.as_ref().and_then(|controller| controller.supported);
        let missing = supported.map(|supported| Modes(timing.modes().0 & !supported.0)).unwrap_or_default();
        let names: Vec<&str> = missing.names().collect();
        if names.is_empty() {
            "the controller does not have one of the wanted modes".into()
        } else {
            format!("the controller does not have {}", names.join(", "))
        }
    }

    fn busy(&self, error: Option<i32>) -> String {
        let busy = error == Some(libc::EBUSY);
        if busy { format!("bring it down first: ip link set {} down", self.name) } else { String::new() }
    }

    /// Makes a change, and looks at what came out.
    fn set(
        &mut self,
        request: netlink::request::Request,
        step: &'static str,
        hint: impl FnOnce(&Self, Option<i32>) -> String,
    ) -> Result<()> {
        if !self.has_sockets() {
            let why = format!("a {} interface has no such setting", self.kind);
            return Err(Error::unsupported(&self.name, step, why));
        }
        self.change(request, step, hint)?;
        self.refresh()
    }

    fn change(
        &self,
        request: netlink::request::Request,
        step: &'static str,
        hint: impl FnOnce(&Self, Option<i32>) -> String,
    ) -> Result<()> {
        netlink::ask(request).map(drop).map_err(|refusal| {
            let hint = hint(self, refusal.source.raw_os_error());
            refusal.of(&self.name, step, &hint)
        })
    }

    fn ask(&self, step: &'static str) -> Result<Link> {
        ask_link(link::get_by_index(self.index)).map_err(|refusal| refusal.of(&self.name, step, ""))
    }

    fn simulated(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            index: 0,
            mtu: crate::frame::CANFD_MTU as u32,
            kind: Kind::Sim,
            up: true,
            running: true,
            echo: false,
            driver: None,
            qdisc: String::new(),
            tx_queue_len: 0,
            peer: None,
            controller: None,
        }
    }

    /// What only sysfs knows.
    fn with_driver(mut self) -> Self {
        let link = fs::read_link(format!("/sys/class/net/{}/device/driver", self.name)).ok();
        self.driver = link.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        self
    }
}

/// One link, or `ENODEV`.
fn ask_link(request: netlink::request::Request) -> std::result::Result<Link, netlink::answer::Refusal> {
    let answers = netlink::ask(request)?;
    let link = answers.iter().find_map(|(_, payload)| Link::decode(payload));
    link.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV).into())
}

fn not_can(name: &str) -> Error {
    let no = io::Error::new(io::ErrorKind::InvalidInput, "not a CAN interface");
    Error::new(name, "find", no).hint(whereabouts())
}

/// What there is instead of the interface that was asked for.
fn whereabouts() -> String {
    let names: Vec<String> =
        Interface::list().unwrap_or_default().into_iter().map(|found| found.name).collect();
    if names.is_empty() {
        "there is no CAN interface here; canter lab has can0…can4".into()
    } else {
        format!("CAN interfaces: {}", names.join(", "))
    }
}

/// What the kernel takes as a name (`dev_valid_name`).
fn check_name(name: &str, step: &'static str) -> Result<()> {
    let bad = |character: char| {
        character == '/' || character == ':' || character == '\0' || character.is_whitespace()
    };
    let fault = if name.is_empty() || name.len() > NAME_CHARACTERS_MAX {
        "an interface's name has 1…15 characters"
    } else if name.contains(bad) || name == "." || name == ".." {
        "no interface can have such a name"
    } else {
        return Ok(());
    };
    Err(Error::new(name, step, io::Error::new(io::ErrorKind::InvalidInput, fault)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulated_interface_is_found_without_a_kernel() {
        let mut simulated = Interface::find("sim:a").unwrap();
        assert_eq!((simulated.kind.clone(), simulated.index, simulated.mtu), (Kind::Sim, 0, 72));
        assert!(simulated.supports_fd());
        simulated.refresh().unwrap();
        assert_eq!(simulated.set_mtu(16).unwrap_err().kind(), io::ErrorKind::Unsupported);
    }

    #[test]
    fn names_that_no_interface_can_have_are_refused_before_the_kernel_is_asked() {
        for name in ["", "sixteen_letters_", "a/b", "a b", ".."] {
            assert_eq!(Interface::find(name).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name:?}");
        }
        assert_eq!(Interface::create_vcan("sim:a").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn an_interface_that_is_not_there_is_reported_with_those_that_are() {
        let error = Interface::find("nosuchcan").unwrap_err();
        assert_eq!(error.source.raw_os_error(), Some(libc::ENODEV));
        assert!(error.to_string().starts_with("nosuchcan: find: no such device ("), "{error}");
    }

    #[test]
    fn the_loopback_interface_is_not_a_can_interface() {
        let error = Interface::find("lo").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().starts_with("lo: find: not a CAN interface ("), "{error}");
        assert!(Interface::list().unwrap().iter().all(|interface| interface.name != "lo"));
    }
}
