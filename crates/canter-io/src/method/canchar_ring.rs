//! `canchar-ring`: the rings of a canchar device, mapped. The interrupt handler, or a call that polls the controller,
//! fills the receive ring; sending takes a system call only when the driver does not poll the ring.

mod ring;

use super::{
    Receive, ReceiveOptions, Room, Transmit, TransmitOptions, Wait,
    canchar::{open_receiver, open_transmitter, to_raw},
    read_write::short_count,
};
use crate::{
    Batch, Error, Frame, Interface, Result,
    sys::{
        canchar::{Device, FOREVER},
        poll,
    },
};
use ring::{Consumer, Direction, Producer, Ring};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
};

/// Slots of the receive ring of a transmitter: the minimum.
const UNUSED_SLOTS: u32 = 2;
/// After this number of empty polls, a spinning receiver asks the device whether it still runs.
const LOOKS_PER_CHECK: u32 = 1 << 12;

pub(super) fn receiver(interface: &Interface, options: &ReceiveOptions) -> Result<Box<dyn Receive>> {
    let wait = options.wait.unwrap_or(Wait::Block);
    let device = open_receiver(interface, options, wait)?;
    let ring = Ring::map(&device, Direction::Receive).map(Consumer::new);
    let ring = ring.map_err(|error| Error::new(&interface.name, "mmap", error))?;
    let (index, stamps) = (interface.index, options.stamps);
    Ok(Box::new(RingReceiver { ring, device, wait, looks: 0, index, stamps }))
}

struct RingReceiver {
    ring: Consumer,
    device: Device,
    wait: Wait,
    /// Empty polls since the device was last asked.
    looks: u32,
    index: u32,
    stamps: bool,
}

impl RingReceiver {
    fn take(&mut self, batch: &mut Batch) -> io::Result<usize> {
        self.ring.take(batch, self.index, self.stamps)
    }

    /// Waits until a frame may be available; false after a signal or a timeout.
    fn wait(&mut self) -> io::Result<bool> {
        match self.wait {
            Wait::Spin => {
                crate::sys::thread::relax();
                self.looks += 1;
                if self.looks < LOOKS_PER_CHECK {
                    return Ok(false);
                }
                self.looks = 0;
                self.ask(0)
            }
            Wait::Poll => {
                let ready = poll::readable(&[self.device.as_fd()], None)?;
                // Readiness may also mean an error, which only the device reports.
                if ready == 0 { Ok(false) } else { self.ask(0) }
            }
            _ => self.ask(FOREVER),
        }
    }

    fn ask(&self, timeout_ns: u64) -> io::Result<bool> {
        match self.device.wait(1, timeout_ns) {
            Ok(waiting) => Ok(waiting > 0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Receive for RingReceiver {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
        if batch.room() == 0 {
            return Ok(0);
        }
        match self.take(batch)? {
            0 if self.wait()? => self.take(batch),
            count => Ok(count),
        }
    }

    fn drops(&mut self) -> io::Result<u64> {
        self.device.lost()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.device.as_fd())
    }
}

pub(super) fn transmitter(interface: &Interface, options: &TransmitOptions) -> Result<Box<dyn Transmit>> {
    let device = open_transmitter(interface, options)?;
    let set = device.change(|set| set.rx_slots = UNUSED_SLOTS);
    set.map_err(|error| Error::new(&interface.name, "set options", error))?;
    let ring = Ring::map(&device, Direction::Transmit).map(Producer::new);
    let ring = ring.map_err(|error| Error::new(&interface.name, "mmap", error))?;
    Ok(Box::new(RingTransmitter { ring, device, room: Room::new(options) }))
}

struct RingTransmitter {
    ring: Producer,
    device: Device,
    room: Room,
}

impl RingTransmitter {
    /// Waits for a free slot; false after a signal or the patience.
    fn wait_for_room(&mut self) -> io::Result<bool> {
        if self.pending() > 0 {
            self.flush()?;
        }
        if !self.ring.is_full() {
            return Ok(true);
        }
        self.room.wait(self.device.as_fd())
    }
}

impl Transmit for RingTransmitter {
    fn transmit(&mut self, frames: &[Frame]) -> io::Result<usize> {
        for (taken, frame) in frames.iter().enumerate() {
            let raw = match to_raw(frame) {
                Ok(raw) => raw,
                Err(error) => return short_count(taken, error),
            };
            while !self.ring.put(raw) {
                if !self.room.waits {
                    return Ok(taken);
                }
                match self.wait_for_room() {
                    Ok(true) => {}
                    Ok(false) => return Ok(taken),
                    Err(error) => return short_count(taken, error),
                }
            }
        }
        Ok(frames.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.ring.waiting() == 0 {
            return Ok(());
        }
        match self.device.kick() {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn set_waiting(&mut self, waits: bool) {
        self.room.set_waiting(waits);
    }

    /// Makes the driver send the frames that it would not fetch without a call.
    fn pending(&self) -> usize {
        let waiting = self.ring.waiting();
        if waiting > 0 && self.ring.needs_kick() { waiting as usize } else { 0 }
    }

    fn lost(&self) -> u64 {
        self.device.statistics().map_or(0, |counted| counted.file_tx_lost)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.device.as_fd())
    }
}
