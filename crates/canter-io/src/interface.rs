//! CAN interfaces: find, list, create, configure and delete them; read their state and counters.
//!
//! An [`Interface`] holds the kernel's description at the time of the query; [`refresh`](Interface::refresh) queries
//! again. The operations depend on the interface's carrier ([`crate::carrier`]): each method here calls a function of
//! the carrier's row.

pub mod remedy;

use crate::{
    Error, Result,
    carrier::{
        Carrier, canchar, network,
        table::{CANCHAR, CARRIERS, NETWORK},
    },
};
use std::io;

pub use crate::{
    carrier::{Interface, Kind},
    frame_counters::FrameCounters,
    netlink::{
        controller::{BitTiming, Controller, ErrorCounters, Modes, State, Timing},
        counters::Counters,
    },
};

impl Interface {
    /// Finds the CAN interface of this name, the canchar device of this path, or the card that `port:` names. Every
    /// name that starts with `sim:` exists.
    ///
    /// # Errors
    /// `ENODEV` when it does not exist (the remedy lists those that do); `InvalidInput` when it is not a CAN interface
    /// or the name is invalid.
    pub fn find(name: &str) -> Result<Self> {
        Self::find_among(name, CARRIERS)
    }

    /// Finds an interface with a table of carriers: [`CARRIERS`], or those and others.
    ///
    /// # Errors
    /// The carrier's error; `InvalidInput` when no carrier's prefix fits the name.
    pub fn find_among(name: &str, carriers: &[&'static Carrier]) -> Result<Self> {
        let carrier = Carrier::find_in(name, carriers).ok_or_else(|| {
            let why = io::Error::new(io::ErrorKind::InvalidInput, "no carrier's prefix fits this name");
            let names: Vec<&str> = carriers.iter().map(|row| row.prefix).collect();
            Error::new(name, "find", why).hint(format!("names begin with {}", names.join(", ")))
        })?;
        (carrier.find)(name, carrier)
    }

    /// All CAN interfaces of this network namespace, in the kernel's order.
    ///
    /// # Errors
    /// When netlink fails.
    pub fn list() -> Result<Vec<Self>> {
        network::list(&NETWORK)
    }

    /// All canchar devices of this machine, by their numbers.
    pub fn devices() -> Vec<Self> {
        canchar::list(&CANCHAR)
    }

    /// The node of a virtual wire that this canchar device drives; the node's own interface is down meanwhile.
    pub fn driven_node(&self) -> Option<String> {
        canchar::node(self)
    }

    /// Finds the CAN interface with this index, as in [`Meta::interface`](crate::Meta).
    ///
    /// # Errors
    /// `ENODEV` when it does not exist, `InvalidInput` when it is not a CAN interface.
    pub fn by_index(index: u32) -> Result<Self> {
        network::by_index(index, &NETWORK)
    }

    /// Reads the interface again. A network interface is identified by its index, so a new name is read too.
    ///
    /// # Errors
    /// `ENODEV` when it no longer exists.
    pub fn refresh(&mut self) -> Result<()> {
        (self.carrier.refresh)(self)
    }

    /// Reads at least the controller's state again. For a canchar device it reads only the state, which takes a sixth
    /// of the time of [`refresh`](Self::refresh).
    ///
    /// # Errors
    /// `ENODEV` when it no longer exists.
    pub fn refresh_state(&mut self) -> Result<()> {
        (self.carrier.refresh_state)(self)
    }

    /// Reads its counters. A simulated interface has none: all are 0.
    ///
    /// # Errors
    /// `ENODEV` when it no longer exists.
    pub fn counters(&self) -> Result<Counters> {
        (self.carrier.counters)(self)
    }

    /// Reads what it has counted of frames, without waiting for anybody who changes an interface meanwhile. A simulated
    /// interface has counted nothing.
    ///
    /// # Errors
    /// `ENODEV` when it no longer exists; when `/proc/net/dev` cannot be read.
    pub fn frame_counters(&self) -> Result<FrameCounters> {
        (self.carrier.frame_counters)(self)
    }

    /// Creates a vcan interface. It is down.
    ///
    /// # Errors
    /// `AlreadyExists`; without the vcan module `EOPNOTSUPP`; without `CAP_NET_ADMIN` `EPERM`.
    pub fn create_vcan(name: &str) -> Result<Self> {
        network::create("vcan", name, None, &NETWORK)
    }

    /// Creates a vxcan pair: two interfaces, connected like the ends of a cable. Returns the first; both are down.
    ///
    /// # Errors
    /// As [`create_vcan`](Self::create_vcan).
    pub fn create_vxcan(name: &str, peer: &str) -> Result<Self> {
        network::create("vxcan", name, Some(peer), &NETWORK)
    }

    /// Deletes a virtual interface; for a vxcan, both ends.
    ///
    /// # Errors
    /// `Unsupported` for a controller: the kernel would report success and do nothing.
    pub fn delete(self) -> Result<()> {
        (self.carrier.delete)(&self)
    }

    /// Brings it up. A controller needs a bit rate first; a simulated interface is always up.
    ///
    /// # Errors
    /// The error of the kernel or the driver.
    pub fn up(&mut self) -> Result<()> {
        (self.carrier.set_up)(self, true)
    }

    /// Brings it down. Frames in its transmit queue are lost. A simulated interface stays up.
    ///
    /// # Errors
    /// The error of the kernel or the driver.
    pub fn down(&mut self) -> Result<()> {
        (self.carrier.set_up)(self, false)
    }

    /// Sets the size of the largest frame in bytes: 16 classic, 72 FD. For a controller,
    /// [`set_bit_timing`](Self::set_bit_timing) sets it.
    ///
    /// # Errors
    /// `EBUSY` when it is up; `EINVAL` for an unsupported mtu; `Unsupported` if it is not a network interface.
    pub fn set_mtu(&mut self, bytes: u32) -> Result<()> {
        (self.carrier.set_mtu)(self, bytes)
    }

    /// Sets the transmit queue length in frames; the kernel's default for CAN is 10. 0: no limit but that of the
    /// queueing discipline.
    ///
    /// # Errors
    /// The kernel's error; `Unsupported` if it is not a network interface.
    pub fn set_tx_queue_len(&mut self, frames: u32) -> Result<()> {
        (self.carrier.set_tx_queue_len)(self, frames)
    }

    /// Sets bit rate and modes of a controller, which must be down.
    ///
    /// # Errors
    /// `InvalidInput` for settings that contradict each other; `Unsupported` on an interface that has no bit rate;
    /// `EBUSY` when it is up; the kernel's error for a bit rate or a mode that the controller does not support.
    pub fn set_bit_timing(&mut self, timing: &BitTiming) -> Result<()> {
        if let Some(fault) = timing.fault() {
            let wrong = io::Error::new(io::ErrorKind::InvalidInput, fault);
            return Err(Error::new(&self.name, "set bit rate", wrong));
        }
        (self.carrier.set_bit_timing)(self, timing)
    }
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
