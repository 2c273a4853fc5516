//! `port`: this process is the driver. It polls the SJA1000 of a Kvaser PCI card through I/O ports (ioperm(2)), so that
//! between the controller and the program there is no system call and no interrupt. Named `port:0000:00:07.0`, with
//! `,1` for a second channel and `@250000` for another bit rate than 500 kbit/s.
//!
//! The kernel's driver must be unbound from the card first (sysfs); it gets the card back in reset mode. Only one
//! process at a time can use a channel. Each receiver in that process has a queue, and a frame that one receiver takes
//! out of the controller reaches all of them. Between calls nothing empties the controller: its FIFO holds five frames
//! of 8 bytes.

use super::{Echo, Receive, ReceiveOptions, Room, Transmit, TransmitOptions, Wait, read_write::short_count};
use crate::{
    Batch, Error, Frame, Interface, Result,
    interface::Kind,
    port::{
        card::Name,
        channel::{self, Shared, Wanted},
    },
};
use std::{io, os::fd::BorrowedFd};

/// The default length of a receiver's queue in frames; only frames that another receiver took out of the controller
/// wait there.
const QUEUE_FRAMES: usize = 256;
/// Polls of an empty controller per receiving call. Few, because other threads of this process wait for the channel
/// meanwhile; enough that most of the time is spent polling, not entering the call.
const EMPTY_POLLS: u32 = 32;
/// Polls of a full transmit buffer before the call returns a short count.
const POLLS_MAX: u32 = 1 << 12;

pub(super) fn check_receiver(interface: &Interface, _wait: Wait) -> Result<()> {
    check_transmitter(interface)
}

pub(super) fn check_transmitter(interface: &Interface) -> Result<()> {
    open(interface).map(drop)
}

fn open(interface: &Interface) -> Result<Shared> {
    if interface.kind != Kind::Port {
        let why = "this method works only on cards without a kernel driver";
        let way_out = "port:0000:00:07.0, after unbinding it";
        return Err(Error::unsupported(&interface.name, "port", why).hint(way_out));
    }
    let name: Name = interface.name.parse().map_err(|error| Error::new(&interface.name, "open", error))?;
    channel::open(&name)
}

pub(super) fn receiver(interface: &Interface, options: &ReceiveOptions) -> Result<Box<dyn Receive>> {
    let channel = open(interface)?;
    let wanted = Wanted {
        filters: options.filters.clone(),
        stamps: options.stamps,
        interface: interface.index,
        frames_max: options.queue_frames.map_or(QUEUE_FRAMES, |frames| frames as usize),
    };
    let queue = channel.lock().map_err(|error| Error::new(&interface.name, "ioperm", error))?.add(wanted);
    Ok(Box::new(Receiver { channel, queue }))
}

struct Receiver {
    channel: Shared,
    queue: u32,
}

impl Receive for Receiver {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
        if batch.room() == 0 {
            return Ok(0);
        }
        let mut channel = self.channel.lock()?;
        let count = channel.receive(self.queue, batch, EMPTY_POLLS);
        if count > 0 {
            return Ok(count);
        }
        channel.trouble()?;
        drop(channel);
        crate::sys::thread::relax();
        Ok(0)
    }

    fn drops(&mut self) -> io::Result<u64> {
        Ok(self.channel.lock()?.lost(self.queue))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Ok(mut channel) = self.channel.lock() {
            channel.remove(self.queue);
        }
    }
}

pub(super) fn transmitter(interface: &Interface, options: &TransmitOptions) -> Result<Box<dyn Transmit>> {
    let channel = open(interface)?;
    Ok(Box::new(Transmitter { channel, echo: options.echo == Echo::On, room: Room::new(options) }))
}

struct Transmitter {
    channel: Shared,
    echo: bool,
    /// Room counted in polls, up to [`POLLS_MAX`], not in time.
    room: Room,
}

impl Transmitter {
    /// Gives one frame to the controller; false when the previous frame is still in its buffer after all polls.
    fn send(&self, frame: &Frame) -> io::Result<bool> {
        for _ in 0..if self.room.waits { POLLS_MAX } else { 1 } {
            if self.channel.lock()?.transmit(frame, self.echo)? {
                return Ok(true);
            }
            crate::sys::thread::relax();
        }
        Ok(false)
    }
}

impl Transmit for Transmitter {
    fn transmit(&mut self, frames: &[Frame]) -> io::Result<usize> {
        for (taken, frame) in frames.iter().enumerate() {
            match self.send(frame) {
                Ok(true) => {}
                Ok(false) => return Ok(taken),
                Err(error) => return short_count(taken, error),
            }
        }
        Ok(frames.len())
    }

    fn set_waiting(&mut self, waits: bool) {
        self.room.set_waiting(waits);
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
