//! The papers' PC in the same image, on two more cards: sends a frame, and stamps it on arrival.
//!
//! The gateway's loop calls it when no frame waits, so the measured loop is the same as without measurement. A latency
//! is the time from the command that sends the frame to the first poll of the receiving controller that finds it: all
//! instructions of the gateway and of the two polls around it. In QEMU's virtual clock at 1 ns per instruction it is
//! exact.

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

/// Polls of the receiver before the frame counts as lost.
const POLLS_MAX: u32 = 1 << 20;

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

/// The measured latencies, in ticks of the processor's clock.
#[derive(Clone, Copy, Debug)]
pub struct Latencies {
    /// Frames that arrived unchanged.
    pub count: u64,
    /// Frames that did not arrive, or arrived changed.
    pub lost: u64,
    /// The shortest latency.
    pub min: u64,
    /// The longest latency.
    pub max: u64,
    sum: u64,
}

impl Latencies {
    /// The mean; 0 without frames.
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
    /// The frame on its way, and the number of polls for it.
    sent: Option<(Frame, u32)>,
    /// The results so far.
    pub latencies: Latencies,
}

impl<'a> Pc<'a> {
    /// Sends `count` frames of `len` bytes. Both controllers must have been started.
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
            self.sent = (looks < POLLS_MAX).then_some((sent, looks + 1));
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
    fn keep_running(&mut self, _: &Counts) -> bool {
        match self.sent {
            Some((frame, looks)) => self.receive(frame, looks),
            None if self.left == 0 => return false,
            None => self.send(),
        }
        true
    }
}
