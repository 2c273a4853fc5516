//! CAN interfaces: find and list them, look at their state and counters, create, set and delete them.
//!
//! An [`Interface`] is what the kernel answered when it was asked; [`refresh`](Interface::refresh) asks again. What an
//! operation does depends on what carries the interface's frames ([`crate::carrier`]): each method here calls a
//! function of that row.

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
    netlink::{
        controller::{BitTiming, Controller, ErrorCounters, Modes, State, Timing},
        counters::Counters,
    },
};

impl Interface {
    /// The CAN interface of this name, the canchar device of this path, or the card that `port:` names; a name that
    /// starts with `sim:` always exists.
    ///
    /// # Errors
    /// `ENODEV` when there is none (the way out lists those that exist), `InvalidInput` when it is no CAN interface or
    /// can be no name.
    pub fn find(name: &str) -> Result<Self> {
        Self::find_among(name, CARRIERS)
    }

    /// The same, with a table of carriers: [`CARRIERS`], or those and others.
    ///
    /// # Errors
    /// What the carrier answers; `InvalidInput` when no carrier's interfaces have such names.
    pub fn find_among(name: &str, carriers: &[&'static Carrier]) -> Result<Self> {
        let carrier = Carrier::of(name, carriers).ok_or_else(|| {
            let why = io::Error::new(io::ErrorKind::InvalidInput, "no carrier has such names");
            let names: Vec<&str> = carriers.iter().map(|row| row.prefix).collect();
            Error::new(name, "find", why).hint(format!("names begin with {}", names.join(", ")))
        })?;
        (carrier.find)(name, carrier)
    }

    /// All CAN interfaces of this network namespace, in the kernel's order.
    ///
    /// # Errors
    /// When the kernel cannot be asked.
    pub fn list() -> Result<Vec<Self>> {
        network::list(&NETWORK)
    }

    /// All canchar devices of this machine, by their numbers.
    pub fn devices() -> Vec<Self> {
        canchar::list(&CANCHAR)
    }

    /// The CAN interface of this index, as a received frame names it.
    ///
    /// # Errors
    /// `ENODEV` when there is none, `InvalidInput` when it is no CAN interface.
    pub fn by_index(index: u32) -> Result<Self> {
        network::by_index(index, &NETWORK)
    }

    /// Asks the kernel again. An interface of the network is followed by its index, so a new name shows too.
    ///
    /// # Errors
    /// `ENODEV` when it has gone.
    pub fn refresh(&mut self) -> Result<()> {
        (self.carrier.refresh)(self)
    }

    /// Asks the kernel again, for the controller's state at least: of a device only for that, which takes a sixth of the
    /// time.
    ///
    /// # Errors
    /// `ENODEV` when it has gone.
    pub fn refresh_state(&mut self) -> Result<()> {
        (self.carrier.refresh_state)(self)
    }

    /// What it has counted so far, read now. A simulated interface counts nothing here.
    ///
    /// # Errors
    /// `ENODEV` when it has gone.
    pub fn counters(&self) -> Result<Counters> {
        (self.carrier.counters)(self)
    }

    /// Creates a vcan. It is down.
    ///
    /// # Errors
    /// `AlreadyExists`; without the vcan module `EOPNOTSUPP`; without `CAP_NET_ADMIN` `EPERM`.
    pub fn create_vcan(name: &str) -> Result<Self> {
        network::create("vcan", name, None, &NETWORK)
    }

    /// Creates a vxcan: two interfaces, joined like two ends of a cable. Answers the first; both are down.
    ///
    /// # Errors
    /// As [`create_vcan`](Self::create_vcan).
    pub fn create_vxcan(name: &str, peer: &str) -> Result<Self> {
        network::create("vxcan", name, Some(peer), &NETWORK)
    }

    /// Deletes a virtual interface; of a vxcan, both ends.
    ///
    /// # Errors
    /// `Unsupported` for a controller: the kernel would report success and do nothing.
    pub fn delete(self) -> Result<()> {
        (self.carrier.delete)(&self)
    }

    /// Brings it up. A controller needs a bit rate first; a simulated interface is always up.
    ///
    /// # Errors
    /// What the kernel or the driver answers.
    pub fn up(&mut self) -> Result<()> {
        (self.carrier.set_up)(self, true)
    }

    /// Brings it down. Frames in its queue are lost. A simulated interface stays up.
    ///
    /// # Errors
    /// What the kernel or the driver answers.
    pub fn down(&mut self) -> Result<()> {
        (self.carrier.set_up)(self, false)
    }

    /// Sets the largest frame in bytes: 16 classic, 72 FD. Of a controller it follows from
    /// [`set_bit_timing`](Self::set_bit_timing).
    ///
    /// # Errors
    /// `EBUSY` when it is up, `EINVAL` for an mtu that it cannot have; `Unsupported` outside of the network.
    pub fn set_mtu(&mut self, bytes: u32) -> Result<()> {
        (self.carrier.set_mtu)(self, bytes)
    }

    /// Sets how many frames may wait to be sent; the kernel's default for CAN is 10. 0: as many as the queueing
    /// discipline takes.
    ///
    /// # Errors
    /// What the kernel answers; `Unsupported` outside of the network.
    pub fn set_tx_queue_len(&mut self, frames: u32) -> Result<()> {
        (self.carrier.set_tx_queue_len)(self, frames)
    }

    /// Sets bit rate and modes of a controller, which must be down.
    ///
    /// # Errors
    /// `InvalidInput` for settings that contradict each other; `Unsupported` on an interface that has no bit rate;
    /// `EBUSY` when it is up; what the kernel answers to a bit rate or a mode that the controller cannot do.
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
