//! The papers' PC in the same image, on two more cards: sends a frame, and stamps it where it comes out.
//!
//! It is asked by the gateway's own loop whenever no frame waits, so the loop that is measured is the one that runs
//! otherwise. A latency is from the command that sends the frame to the first look at the receiving controller that
//! finds it: everything the gateway executes, and the two looks that frame it. In QEMU's virtual clock at one ns an
//! instruction it is exact.

use crate::{
    card::Channel,
    ports::{self, ChannelPorts},
};
use core::cell::Cell;
use sja1000::{
    Controller, Frame, Identifier, Registers,
    gateway::{Counts, Idle},
    register,
};

/// How often the receiver is looked at before the frame is lost.
const LOOKS_MAX: u32 = 1 << 20;

/// A controller's registers; the last command was given at `command`.
struct Stamped<'a> {
    ports: ChannelPorts,
    command: &'a Cell<u64>,
}

impl Registers for Stamped<'_> {
    #[inline]
    fn read(&mut self, register: u8) -> u8 {
        self.ports.read(register)
    }

    #[inline]
    fn write(&mut self, register: u8, value: u8) {
        if register == register::CMR {
            self.command.set(ports::clock());
        }
        self.ports.write(register, value);
    }
}

/// What has been measured, in ticks of the processor's clock.
#[derive(Clone, Copy, Debug)]
pub struct Latencies {
    /// Frames that came through as they were sent.
    pub count: u64,
    /// Frames that did not come, or otherwise than they were sent.
    pub lost: u64,
    /// Of those that came: the shortest.
    pub min: u64,
    /// The longest.
    pub max: u64,
    sum: u64,
}

impl Latencies {
    /// The mean; 0 of none.
    pub fn mean(&self) -> u64 {
        self.sum.checked_div(self.count).unwrap_or(0)
    }
}

/// The PC.
pub struct Pc<'a> {
    sender: Controller<Stamped<'a>>,
    receiver: Channel,
    command: &'a Cell<u64>,
    len: usize,
    left: u64,
    /// The frame that is on its way, and how often it was looked for.
    sent: Option<(Frame, u32)>,
    /// What has been measured so far.
    pub latencies: Latencies,
}

impl<'a> Pc<'a> {
    /// One that sends `count` frames of `len` bytes. Both controllers are on their buses.
    pub fn new(sender: Channel, receiver: Channel, command: &'a Cell<u64>, len: usize, count: u64) -> Self {
        let sender = Controller::new(Stamped { ports: sender.into_registers(), command });
        let latencies = Latencies { count: 0, lost: 0, min: u64::MAX, max: 0, sum: 0 };
        Self { sender, receiver, command, len, left: count, sent: None, latencies }
    }

    fn send(&mut self) {
        let mut data = [0x55; 8];
        data[..2].copy_from_slice(&(self.left as u16).to_le_bytes());
        let frame = Frame::data(Identifier::Standard(0x123), &data[..self.len]);
        self.left -= 1;
        self.sent = self.sender.transmit(&frame).then_some((frame, 0));
        if self.sent.is_none() {
            self.latencies.lost += 1;
        }
    }

    #[inline]
    fn receive(&mut self, sent: Frame, looks: u32) {
        if !self.receiver.status().received() {
            self.sent = (looks < LOOKS_MAX).then_some((sent, looks + 1));
            self.latencies.lost += u64::from(self.sent.is_none());
            return;
        }
        let ticks = ports::clock() - self.command.get();
        self.sent = None;
        let Latencies { count, lost, min, max, sum } = &mut self.latencies;
        if self.receiver.take() != sent {
            *lost += 1;
            return;
        }
        (*count, *sum) = (*count + 1, *sum + ticks);
        (*min, *max) = ((*min).min(ticks), (*max).max(ticks));
    }
}

impl Idle for Pc<'_> {
    #[inline]
    fn goes_on(&mut self, _: &Counts) -> bool {
        match self.sent {
            Some((frame, looks)) => self.receive(frame, looks),
            None if self.left == 0 => return false,
            None => self.send(),
        }
        true
    }
}
