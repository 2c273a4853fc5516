//! A chip in memory: it keeps the data sheet's rules and counts accesses.

use sja1000::{Registers, register as r};
use std::collections::VecDeque;

const FIFO_BYTES: usize = 64;

/// The registers, and what stands behind them.
pub struct Chip {
    pub mode: u8,
    pub enabled: u8,
    latched: u8,
    /// BTR0, BTR1, OCR, CDR, RXERR, TXERR, acceptance code and mask, by their addresses.
    pub settings: [u8; 32],
    transmit_buffer: [u8; 13],
    pub fifo: VecDeque<Vec<u8>>,
    overrun: bool,
    pub bus_off: bool,
    /// What was sent; while `busy` the last one still waits.
    pub sent: Vec<Vec<u8>>,
    pub busy: bool,
    pub accesses: usize,
    /// Keeps the FIFO through a reset, as QEMU does.
    pub keeps_fifo: bool,
    /// The card has been removed: every register reads 0xff.
    pub gone: bool,
}

impl Default for Chip {
    fn default() -> Self {
        Self {
            mode: r::MOD_RESET,
            enabled: 0,
            latched: 0,
            settings: [0x55; 32],
            transmit_buffer: [0; 13],
            fifo: VecDeque::new(),
            overrun: false,
            bus_off: false,
            sent: Vec::new(),
            busy: false,
            accesses: 0,
            keeps_fifo: false,
            gone: false,
        }
    }
}

impl Chip {
    fn in_reset(&self) -> bool {
        self.mode & r::MOD_RESET != 0
    }

    /// A frame comes from the bus, as bytes of the receive buffer.
    pub fn arrive(&mut self, bytes: &[u8]) {
        let used: usize = self.fifo.iter().map(Vec::len).sum();
        if used + bytes.len() > FIFO_BYTES {
            self.overrun = true;
            self.latched |= r::IR_OVERRUN;
        } else {
            self.fifo.push_back(bytes.to_vec());
        }
    }

    fn status(&self) -> u8 {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        bit(!self.fifo.is_empty(), r::SR_RECEIVED)
            | bit(self.overrun, r::SR_OVERRUN)
            | bit(!self.busy, r::SR_BUFFER_FREE | r::SR_SENT)
            | bit(self.bus_off, r::SR_BUS_OFF)
    }

    fn command(&mut self, value: u8) {
        if value & r::CMR_SEND != 0 {
            let info = self.transmit_buffer[0];
            let identifier = if info & r::FRAME_EXTENDED != 0 { 4 } else { 2 };
            let data = if info & r::FRAME_REMOTE != 0 { 0 } else { usize::from(info & r::FRAME_DLC) };
            self.sent.push(self.transmit_buffer[..1 + identifier + data].to_vec());
        }
        if value & r::CMR_RELEASE != 0 {
            self.fifo.pop_front();
        }
        if value & r::CMR_CLEAR_OVERRUN != 0 {
            self.overrun = false;
        }
    }
}

impl Registers for Chip {
    fn read(&mut self, register: u8) -> u8 {
        self.accesses += 1;
        match register {
            _ if self.gone => 0xff,
            r::MOD => self.mode,
            r::SR => self.status(),
            r::IR => {
                let waits = if self.fifo.is_empty() { 0 } else { r::IR_RECEIVED };
                std::mem::take(&mut self.latched) | waits
            }
            r::IER => self.enabled,
            16..29 if !self.in_reset() => {
                let front = self.fifo.front();
                front.and_then(|frame| frame.get(usize::from(register) - 16)).copied().unwrap_or(0)
            }
            other => self.settings[usize::from(other)],
        }
    }

    fn write(&mut self, register: u8, value: u8) {
        self.accesses += 1;
        match register {
            _ if self.gone => {}
            r::MOD => {
                if self.in_reset() && value & r::MOD_RESET == 0 && !self.keeps_fifo {
                    self.fifo.clear();
                }
                self.bus_off &= value & r::MOD_RESET != 0;
                self.mode = value;
            }
            r::CMR => self.command(value),
            r::IER => self.enabled = value,
            16..29 if !self.in_reset() => self.transmit_buffer[usize::from(register) - 16] = value,
            r::BTR0 | r::BTR1 | r::OCR | r::CDR | r::RXERR | r::TXERR | 16..24 => {
                assert!(self.in_reset(), "register {register} is written in reset mode only");
                self.settings[usize::from(register)] = value;
            }
            other => panic!("register {other} is not to be written"),
        }
    }
}

/// No chip: every line is high.
pub struct Nothing;

impl Registers for Nothing {
    fn read(&mut self, _: u8) -> u8 {
        0xff
    }

    fn write(&mut self, _: u8, _: u8) {}
}
