//! A chip in memory: the registers of the data sheet's PeliCAN mode and what they do, with the bus that a test plays.
//! It counts accesses and remembers what a driver did against the data sheet (sections 6.4.3 to 6.4.16).

use sja1000::{Registers, register as r};
use std::{cell::RefCell, collections::VecDeque, rc::Rc};

const FIFO_BYTES: usize = 64;
/// Sequences of 11 recessive bits that bring a controller back from bus-off.
pub const RECOVERY: u32 = 128;

/// The registers, and what stands behind them.
pub struct Chip {
    pub mode: u8,
    pub enabled: u8,
    latched: u8,
    /// BTR0, BTR1, OCR, CDR, EWLR, acceptance code and mask, by their addresses.
    pub settings: [u8; 32],
    transmit_buffer: [u8; 13],
    pub fifo: VecDeque<Vec<u8>>,
    overrun: bool,
    pub bus_off: bool,
    error_status: bool,
    passive: bool,
    /// RXERR and TXERR.
    pub receive_errors: u32,
    pub transmit_errors: u32,
    /// The sequences of recessive bits that are still to come before it takes part in traffic again.
    recovery: Option<u32>,
    arbitration_lost: u8,
    /// The frame whose transmission was requested.
    requested: Option<Vec<u8>>,
    /// What was sent.
    pub sent: Vec<Vec<u8>>,
    /// The bus is never free: a requested frame waits until [`Chip::frame_ends`].
    pub busy: bool,
    /// The transmit buffer is never free.
    pub full: bool,
    /// Each access takes as long as 11 recessive bits.
    pub passing: bool,
    pub accesses: usize,
    /// The accesses after which a frame arrives, and the frame.
    pub arrival: Option<(usize, Vec<u8>)>,
    /// Keeps the FIFO through a reset, as QEMU does.
    pub keeps_fifo: bool,
    /// The card has been removed: every register reads 0xff.
    pub gone: bool,
    /// What a driver must not do.
    pub mistakes: Vec<String>,
}

impl Default for Chip {
    fn default() -> Self {
        let mut settings = [0x55; 32];
        settings[usize::from(r::EWLR)] = 96;
        Self {
            mode: r::MOD_RESET,
            enabled: 0,
            latched: 0,
            settings,
            transmit_buffer: [0; 13],
            fifo: VecDeque::new(),
            overrun: false,
            bus_off: false,
            error_status: false,
            passive: false,
            receive_errors: 0,
            transmit_errors: 0,
            recovery: None,
            arbitration_lost: 0,
            requested: None,
            sent: Vec::new(),
            busy: false,
            full: false,
            passing: false,
            accesses: 0,
            arrival: None,
            keeps_fifo: false,
            gone: false,
            mistakes: Vec::new(),
        }
    }
}

/// The bus.
impl Chip {
    /// A frame comes from the bus, as bytes of the receive buffer.
    pub fn arrive(&mut self, bytes: &[u8]) {
        if !self.keeps_fifo && !self.takes_part() {
            return;
        }
        let used: usize = self.fifo.iter().map(Vec::len).sum();
        if used + bytes.len() <= FIFO_BYTES {
            self.fifo.push_back(bytes.to_vec());
            return;
        }
        if !self.overrun {
            self.latch(r::IR_OVERRUN);
        }
        self.overrun = true;
    }

    /// The requested frame was on the bus and was acknowledged.
    pub fn frame_ends(&mut self) {
        if let Some(frame) = self.requested.take() {
            self.sent.push(frame);
            self.transmit_errors = self.transmit_errors.saturating_sub(1);
            self.latch(r::IR_SENT);
            self.judge_errors();
        }
    }

    /// `attempts` to send the requested frame fail.
    pub fn attempts_fail(&mut self, attempts: u32) {
        for _ in 0..attempts {
            if self.requested.is_some() && self.takes_part() {
                self.transmit_errors += 8;
                self.latch(r::IR_BUS_ERROR);
                self.judge_errors();
            }
        }
    }

    /// `frames` of others arrive damaged.
    pub fn frames_are_damaged(&mut self, frames: u32) {
        if self.takes_part() {
            self.receive_errors = (self.receive_errors + frames).min(255);
            self.latch(r::IR_BUS_ERROR);
            self.judge_errors();
        }
    }

    /// `frames` of others arrive whole, and are not for this controller.
    pub fn frames_are_whole(&mut self, frames: u32) {
        for _ in 0..frames {
            self.receive_errors = self.receive_errors.min(120).saturating_sub(1); // ISO 11898-1: to 119…127
        }
        self.judge_errors();
    }

    /// The requested frame meets a stronger one at this bit of its identifier, and will be repeated.
    pub fn arbitration_is_lost(&mut self, bit: u8) {
        if self.requested.is_some() {
            self.arbitration_lost = bit;
            self.latch(r::IR_ARBITRATION);
        }
    }

    /// `sequences` of 11 recessive bits pass.
    pub fn recessive(&mut self, sequences: u32) {
        if self.in_reset() {
            return;
        }
        let Some(left) = self.recovery else { return };
        let left = left.saturating_sub(sequences);
        self.transmit_errors = left.min(127);
        self.recovery = (left > 0).then_some(left);
        if left == 0 {
            self.receive_errors = 0;
            let changed = self.bus_off || self.error_status;
            (self.bus_off, self.error_status) = (false, false);
            if changed {
                self.latch(r::IR_WARNING);
            }
            self.send_if_free();
        }
    }

    /// Whether the interrupt line is active.
    pub fn interrupts(&self) -> bool {
        !self.gone && self.causes() != 0
    }

    /// On the bus: neither in reset mode nor waiting for recessive bits.
    fn takes_part(&self) -> bool {
        !self.in_reset() && self.recovery.is_none()
    }
}

/// What the registers do.
impl Chip {
    fn in_reset(&self) -> bool {
        self.mode & r::MOD_RESET != 0
    }

    /// IR keeps a cause only if its interrupt is enabled at that moment (6.4.6).
    fn latch(&mut self, cause: u8) {
        self.latched |= cause & self.enabled;
    }

    fn causes(&self) -> u8 {
        let waits = if self.fifo.is_empty() { 0 } else { r::IR_RECEIVED & self.enabled };
        self.latched | waits
    }

    /// Error status, error-passive and bus-off follow from the counters; not in reset mode.
    fn judge_errors(&mut self) {
        if self.in_reset() {
            return;
        }
        let limit = u32::from(self.settings[usize::from(r::EWLR)]);
        let most = self.receive_errors.max(self.transmit_errors);
        if (most >= limit) != self.error_status {
            self.error_status = most >= limit;
            self.latch(r::IR_WARNING);
        }
        if (most > 127) != self.passive {
            self.passive = most > 127;
            self.latch(r::IR_PASSIVE);
        }
        if self.transmit_errors > 255 {
            (self.bus_off, self.passive) = (true, false);
            self.enter_reset();
            (self.receive_errors, self.transmit_errors) = (0, 127);
            self.latch(r::IR_WARNING);
        }
    }

    fn enter_reset(&mut self) {
        self.mode |= r::MOD_RESET;
        self.latched = 0;
        self.requested = None;
        if !self.keeps_fifo {
            self.fifo.clear();
        }
        self.overrun = false;
    }

    fn leave_reset(&mut self) {
        self.mode &= !r::MOD_RESET;
        if self.bus_off {
            self.recovery = Some(RECOVERY);
        }
        self.judge_errors();
    }

    /// Bits 1 to 3 are written in reset mode only (6.4.3).
    fn set_mode(&mut self, value: u8) {
        let free = r::MOD_LISTEN_ONLY | r::MOD_SELF_TEST | r::MOD_SINGLE_FILTER;
        let was_reset = self.in_reset();
        if was_reset {
            self.mode = self.mode & !free | value & free;
        }
        match (was_reset, value & r::MOD_RESET != 0) {
            (false, true) => self.enter_reset(),
            (true, false) => self.leave_reset(),
            _ => {}
        }
    }

    /// What happens on the bus during an access.
    fn pass_time(&mut self) {
        self.accesses += 1;
        if self.passing {
            self.recessive(1);
        }
        if let Some((after, frame)) = self.arrival.take() {
            match after {
                0 => self.arrive(&frame),
                _ => self.arrival = Some((after - 1, frame)),
            }
        }
    }

    fn status(&self) -> u8 {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        bit(!self.fifo.is_empty(), r::SR_RECEIVED)
            | bit(self.overrun, r::SR_OVERRUN)
            | bit(self.in_reset() || !self.waits(), r::SR_BUFFER_FREE | r::SR_SENT)
            | bit(self.error_status, r::SR_ERROR)
            | bit(self.bus_off, r::SR_BUS_OFF)
    }

    fn waits(&self) -> bool {
        self.full || self.requested.is_some()
    }

    fn command(&mut self, value: u8) {
        if value & r::CMR_SEND != 0 {
            self.request();
        }
        if value & r::CMR_RELEASE != 0 {
            self.fifo.pop_front();
        }
        if value & r::CMR_CLEAR_OVERRUN != 0 {
            self.overrun = false;
        }
    }

    fn request(&mut self) {
        if self.in_reset() || self.requested.is_some() {
            self.mistakes.push("requested a transmission without a free buffer".to_owned());
            return;
        }
        let info = self.transmit_buffer[0];
        let identifier = if info & r::FRAME_EXTENDED != 0 { 4 } else { 2 };
        let data = if info & r::FRAME_REMOTE != 0 { 0 } else { usize::from(info & r::FRAME_DLC) };
        self.requested = Some(self.transmit_buffer[..1 + identifier + data].to_vec());
        self.send_if_free();
    }

    fn send_if_free(&mut self) {
        if !self.busy && self.takes_part() {
            self.frame_ends();
        }
    }

    /// Writing TXERR in bus-off ends it after one sequence of recessive bits instead of 128 (6.4.12).
    fn set_transmit_errors(&mut self, value: u8) {
        if self.bus_off {
            self.mistakes.push("cut the recovery from bus-off short".to_owned());
            self.bus_off = false;
            self.recovery = Some(1);
        }
        self.transmit_errors = value.into();
    }

    fn read_quietly(&mut self, register: u8) -> u8 {
        match register {
            r::MOD => self.mode,
            r::CMR => 0,
            r::SR => self.status(),
            r::IR => {
                let causes = self.causes();
                self.latched = 0;
                causes
            }
            r::IER => self.enabled,
            r::ALC => std::mem::take(&mut self.arbitration_lost),
            r::RXERR => self.receive_errors as u8,
            r::TXERR => self.transmit_errors as u8,
            r::RMC => self.fifo.len() as u8,
            16..29 if !self.in_reset() => {
                let front = self.fifo.front();
                front.and_then(|frame| frame.get(usize::from(register) - 16)).copied().unwrap_or(0)
            }
            other => self.settings[usize::from(other)],
        }
    }

    fn write_quietly(&mut self, register: u8, value: u8) {
        match register {
            r::MOD => self.set_mode(value),
            r::CMR => self.command(value),
            r::IER => self.enabled = value,
            16..29 if !self.in_reset() => {
                if self.waits() {
                    self.mistakes.push(format!("wrote register {register} over a frame that waits"));
                }
                self.transmit_buffer[usize::from(register) - 16] = value;
            }
            r::RXERR | r::TXERR | r::BTR0 | r::BTR1 | r::OCR | r::CDR | 16..24 if self.in_reset() => {
                match register {
                    r::RXERR if !self.bus_off => self.receive_errors = value.into(),
                    r::RXERR => {} // without effect in bus-off (6.4.11)
                    r::TXERR => self.set_transmit_errors(value),
                    other => self.settings[usize::from(other)] = value,
                }
            }
            other => self.mistakes.push(format!("wrote register {other}, mode {:#x}", self.mode)),
        }
    }
}

impl Registers for Chip {
    fn read(&mut self, register: u8) -> u8 {
        self.pass_time();
        if self.gone { 0xff } else { self.read_quietly(register) }
    }

    fn write(&mut self, register: u8, value: u8) {
        self.pass_time();
        if !self.gone {
            self.write_quietly(register, value);
        }
    }
}

/// A chip that a driver drives and the test looks into meanwhile.
#[derive(Clone, Default)]
pub struct Shared(pub Rc<RefCell<Chip>>);

impl Registers for Shared {
    fn read(&mut self, register: u8) -> u8 {
        self.0.borrow_mut().read(register)
    }

    fn write(&mut self, register: u8, value: u8) {
        self.0.borrow_mut().write(register, value);
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
