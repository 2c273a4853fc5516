//! An analyzer's tap on a virtual wire: every frame with its start and its end in ns, and its error if it has one, read
//! from memory that the module canwire shares. Reading needs no system call and does not disturb the bus. When a reader
//! is slower than the ring, [`Tap::missed`] counts the overwritten records.

mod receiver;
mod record;
mod ring;

use crate::{
    Error, Result,
    netlink::wire::{self, BusStats},
    sys::{map::Map, poll},
    uapi::canwire::canwire_record,
};
use std::{
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd},
};

pub use receiver::{Edge, TapReceiver};
pub use record::{Marks, Record};
use ring::Ring;

/// Words of a record.
const RECORD_WORDS: usize = size_of::<canwire_record>() / 8;

/// A tap on one bus.
#[derive(Debug)]
pub struct Tap {
    bus: String,
    device: File,
    ring: Ring<Map>,
}

impl Tap {
    /// Opens the tap of a bus. It reads records from now on, not earlier ones.
    ///
    /// # Errors
    /// `Unsupported` without the module, `ENOENT` when the bus does not exist, `PermissionDenied` when the device may
    /// not be read, `InvalidData` when the module has another version.
    pub fn open(bus: &str) -> Result<Self> {
        let about = wire::bus(bus)?;
        let path = format!("/dev/canwire-{bus}");
        let device =
            File::open(&path).map_err(|error| Error::new(&path, "open", error).hint("it needs root"))?;
        let map = Map::read_only(device.as_fd(), about.tap_bytes as usize)
            .map_err(|error| Error::new(&path, "map", error))?;
        let Some(ring) = Ring::new(map, about.tap_bytes.into()) else {
            let no = io::Error::new(
                io::ErrorKind::InvalidData,
                "unknown layout of the ring (are canter and canwire of the same version?)",
            );
            return Err(Error::new(path, "map", no).hint("canter and canwire must be of the same version"));
        };
        Ok(Self { bus: bus.to_owned(), device, ring })
    }

    /// The bus it is on.
    pub fn bus(&self) -> &str {
        &self.bus
    }

    /// How many records the ring holds before the oldest is overwritten.
    pub fn capacity(&self) -> u64 {
        self.ring.capacity()
    }

    /// How many records the bus has written to the ring in all, read or not.
    pub fn written(&self) -> u64 {
        self.ring.head()
    }

    /// Records that were overwritten before they were read.
    pub fn missed(&self) -> u64 {
        self.ring.missed()
    }

    /// The bus's counters.
    pub fn stats(&self) -> BusStats {
        self.ring.stats()
    }

    /// The next record, in the order of the wire; `None` when all have been read.
    pub fn next_record(&mut self) -> Option<Record> {
        self.ring.next_record()
    }

    /// Waits until records were written since the last wait, for at most `timeout_ns` (`None`: forever). False:
    /// timeout or a signal. True at once when the bus no longer exists; see [`is_gone`](Self::is_gone).
    ///
    /// # Errors
    /// The error of ppoll(2).
    pub fn wait(&self, timeout_ns: Option<u64>) -> io::Result<bool> {
        poll::readable(&[self.device.as_fd()], timeout_ns).map(|ready| ready > 0)
    }

    /// Whether its bus no longer exists; the last records can still be read.
    pub fn is_gone(&self) -> bool {
        poll::hung_up(self.device.as_fd()).unwrap_or(true)
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

#[cfg(test)]
mod tests;
