//! The controller against a chip in memory, which keeps the data sheet's rules and counts accesses.
#![allow(clippy::unwrap_used, reason = "a test may")]

use sja1000::{Bus, Controller, Error, Frame, Identifier, Interrupts, Registers, Timing, register as r};
use std::collections::VecDeque;

const FIFO_BYTES: usize = 64;

/// The registers, and what stands behind them.
struct Chip {
    mode: u8,
    enabled: u8,
    latched: u8,
    /// BTR0, BTR1, OCR, CDR, RXERR, TXERR, acceptance code and mask, by their addresses.
    settings: [u8; 32],
    transmit_buffer: [u8; 13],
    fifo: VecDeque<Vec<u8>>,
    overrun: bool,
    bus_off: bool,
    /// What was sent; while `busy` the last one still waits.
    sent: Vec<Vec<u8>>,
    busy: bool,
    accesses: usize,
    /// Keeps the FIFO through a reset, as QEMU does.
    keeps_fifo: bool,
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
        }
    }
}

impl Chip {
    fn in_reset(&self) -> bool {
        self.mode & r::MOD_RESET != 0
    }

    /// A frame comes from the bus, as bytes of the receive buffer.
    fn arrive(&mut self, bytes: &[u8]) {
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
struct Nothing;

impl Registers for Nothing {
    fn read(&mut self, _: u8) -> u8 {
        0xff
    }

    fn write(&mut self, _: u8, _: u8) {}
}

fn bus() -> Bus {
    let timing = Timing::of(16_000_000, 500_000).unwrap();
    Bus { timing, output: 0xda, clock: 0x47, listen_only: false }
}

fn started(chip: &mut Chip) -> Controller<&mut Chip> {
    let mut controller = Controller::new(chip);
    controller.start(&bus()).unwrap();
    controller
}

/// Frames and the bytes that the data sheet's layouts make of them.
fn shapes() -> Vec<(Frame, Vec<u8>)> {
    vec![
        (Frame::data(Identifier::Standard(0x123), &[1, 2, 3]), vec![0x03, 0x24, 0x60, 1, 2, 3]),
        (Frame::data(Identifier::Standard(0x7ff), &[]), vec![0x00, 0xff, 0xe0]),
        (Frame::data(Identifier::Extended(0x1234_5678), &[9; 8]), {
            let mut bytes = vec![0x88, 0x91, 0xa2, 0xb3, 0xc0];
            bytes.extend([9; 8]);
            bytes
        }),
        (Frame::remote(Identifier::Standard(0x321), 4), vec![0x44, 0x64, 0x20]),
        (Frame::remote(Identifier::Extended(1), 0), vec![0xc0, 0x00, 0x00, 0x00, 0x08]),
    ]
}

#[test]
fn it_starts_with_the_registers_that_it_was_told() {
    let mut chip = Chip::default();
    let mut controller = started(&mut chip);
    assert!(controller.answers());
    assert_eq!(controller.error_counters(), sja1000::ErrorCounters::default());
    assert_eq!((chip.mode, chip.enabled), (0, 0));
    let setting = |register: u8| chip.settings[usize::from(register)];
    assert_eq!((setting(r::BTR0), setting(r::BTR1)), (0x00, 0x1c));
    assert_eq!((setting(r::OCR), setting(r::CDR)), (0xda, 0xc7));
    assert_eq!(chip.settings[16..24], [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
}

#[test]
fn listening_only_is_a_mode() {
    let mut chip = Chip::default();
    Controller::new(&mut chip).start(&Bus { listen_only: true, ..bus() }).unwrap();
    assert_eq!(chip.mode, r::MOD_LISTEN_ONLY);
}

#[test]
fn frames_of_every_shape_are_sent_as_the_data_sheet_lays_them_out() {
    for (frame, bytes) in shapes() {
        let mut chip = Chip::default();
        assert!(started(&mut chip).transmit(&frame));
        assert_eq!(chip.sent, [bytes], "{frame:?}");
    }
}

#[test]
fn frames_of_every_shape_are_received_in_order() {
    let mut chip = Chip::default();
    started(&mut chip);
    for (_, bytes) in shapes() {
        chip.arrive(&bytes);
    }
    let mut controller = Controller::new(&mut chip);
    for (frame, _) in shapes() {
        assert_eq!(controller.receive(), Some(frame));
    }
    assert_eq!(controller.receive(), None);
}

#[test]
fn a_dlc_above_eight_stands_for_eight_bytes() {
    let mut chip = Chip::default();
    started(&mut chip);
    chip.arrive(&[0x0f, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let frame = Controller::new(&mut chip).receive().unwrap();
    assert_eq!((frame.len, frame.data), (8, [1, 2, 3, 4, 5, 6, 7, 8]));
}

#[test]
fn a_frame_of_eight_bytes_is_thirteen_accesses_each_way() {
    let mut chip = Chip::default();
    started(&mut chip);
    chip.arrive(&[0x08, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    chip.accesses = 0;
    let frame = Controller::new(&mut chip).receive().unwrap();
    assert_eq!(std::mem::take(&mut chip.accesses), 13);
    assert!(Controller::new(&mut chip).transmit(&frame));
    assert_eq!(std::mem::take(&mut chip.accesses), 13);
    assert_eq!(Controller::new(&mut chip).receive(), None);
    assert_eq!(chip.accesses, 1);
}

#[test]
fn a_full_buffer_takes_nothing_and_loses_nothing() {
    let mut chip = Chip::default();
    started(&mut chip);
    chip.busy = true;
    let frame = Frame::data(Identifier::Standard(1), &[1]);
    assert!(!Controller::new(&mut chip).transmit(&frame));
    assert!(chip.sent.is_empty());
    chip.busy = false;
    assert!(Controller::new(&mut chip).transmit(&frame));
}

#[test]
fn an_overrun_is_told_until_it_is_cleared() {
    let mut chip = Chip::default();
    started(&mut chip);
    for _ in 0..6 {
        chip.arrive(&[0x08, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]); // 11 bytes: the sixth does not fit
    }
    let mut controller = Controller::new(&mut chip);
    assert!(controller.status().overrun() && controller.status().trouble());
    assert!(controller.interrupts().has(Interrupts(r::IR_OVERRUN)));
    controller.clear_overrun();
    assert!(!controller.status().trouble());
    assert_eq!(std::iter::from_fn(|| controller.receive()).count(), 5);
}

#[test]
fn what_a_fifo_keeps_through_a_reset_is_thrown_away() {
    let mut chip = Chip { keeps_fifo: true, ..Chip::default() };
    chip.arrive(&[0, 0, 0]);
    assert_eq!(started(&mut chip).receive(), None);
}

#[test]
fn it_comes_back_from_bus_off_in_the_mode_that_it_had() {
    let mut chip = Chip::default();
    Controller::new(&mut chip).start(&Bus { listen_only: true, ..bus() }).unwrap();
    (chip.bus_off, chip.mode) = (true, chip.mode | r::MOD_RESET);
    let mut controller = Controller::new(&mut chip);
    assert!(controller.status().bus_off());
    controller.recover().unwrap();
    assert!(!controller.status().bus_off());
    assert_eq!(chip.mode, r::MOD_LISTEN_ONLY);
}

#[test]
fn stopping_disables_interrupts_and_sets_reset_mode() {
    let mut chip = Chip::default();
    let mut controller = started(&mut chip);
    controller.enable_interrupts(Interrupts::RECEIVED);
    controller.stop().unwrap();
    assert_eq!((chip.mode, chip.enabled), (r::MOD_RESET, 0));
}

#[test]
fn where_no_chip_is_nothing_starts() {
    let mut controller = Controller::new(Nothing);
    assert_eq!(controller.start(&bus()), Err(Error::NoAnswer));
    assert!(!controller.answers());
}

#[test]
fn a_timing_that_registers_cannot_hold_is_refused_before_the_chip_is_touched() {
    let mut chip = Chip::default();
    let timing = Timing { prescaler: 65, ..bus().timing };
    assert_eq!(Controller::new(&mut chip).start(&Bus { timing, ..bus() }), Err(Error::Timing));
    assert_eq!(chip.accesses, 0);
}
