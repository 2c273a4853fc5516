//@ machine: host
//! The controller against the chip in memory.

use crate::double::{Chip, Nothing, RECOVERY};
use sja1000::{Bus, Controller, Error, Frame, Identifier, Interrupts, Timing, boards::kvaser, register as r};

fn bus() -> Bus {
    kvaser::PCICAN.bus(500_000).unwrap()
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
    chip.full = true;
    let frame = Frame::data(Identifier::Standard(1), &[1]);
    assert!(!Controller::new(&mut chip).transmit(&frame));
    assert!(chip.sent.is_empty());
    chip.full = false;
    assert!(Controller::new(&mut chip).transmit(&frame));
}

#[test]
fn an_overrun_is_told_until_it_is_cleared() {
    let mut chip = Chip::default();
    started(&mut chip).enable_interrupts(Interrupts(r::IR_OVERRUN));
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
    let mut chip = Chip::default();
    chip.keeps_fifo = true;
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
    assert!(controller.status().bus_off(), "128 times 11 recessive bits are still to come");
    chip.recessive(RECOVERY);
    assert!(!Controller::new(&mut chip).status().bus_off());
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
