//@ machine: host
//! What happens to a controller on a bus, and what its driver has to make of it: the same table for every driver. QEMU's
//! SJA1000 has none of these errors.

use crate::{
    double::{Chip, RECOVERY, Shared},
    drivers::{Canchar, Counts, Crate, Driver, State, build_canchar},
};
use sja1000::{Frame, Identifier, register as r};
use std::cell::RefMut;

/// A chip, and the driver that is tried on it.
struct Bench<D: Driver + ?Sized> {
    chip: Shared,
    driver: Box<D>,
}

impl<D: Driver + ?Sized> Bench<D> {
    fn chip(&self) -> RefMut<'_, Chip> {
        self.chip.0.borrow_mut()
    }

    fn started(mut self) -> Self {
        assert!(self.driver.start(), "it starts");
        assert_eq!(self.driver.state(), State::Active);
        self
    }

    /// Lets the chip interrupt as long as its line is active.
    fn settle(&mut self) {
        for _ in 0..32 {
            if !self.chip().interrupts() {
                return;
            }
            assert!(self.driver.interrupt(), "the driver does not know its interrupt");
        }
        panic!("the interrupt does not end");
    }

    /// The state of the chip and the driver after a step, and what a driver that is polled sees then.
    fn state(&mut self, polled: bool) -> State {
        self.settle();
        if polled {
            self.driver.poll();
        }
        self.driver.state()
    }

    /// With one frame on its way, 32 failed attempts in a row.
    fn goes_bus_off(&mut self) {
        self.chip().busy = true;
        assert!(self.driver.send(&frame(1)));
        self.chip().attempts_fail(32);
        assert!(self.chip().bus_off);
    }

    /// 128 sequences of 11 recessive bits bring it back, and no fewer.
    fn comes_back(&mut self) {
        self.chip().recessive(RECOVERY - 1);
        assert_eq!(self.state(false), State::BusOff, "before the last of 128 sequences");
        assert!(self.chip().bus_off, "the controller was made to come back early");
        self.chip().recessive(1);
        assert_eq!(self.state(false), State::Active);
    }
}

fn frame(number: u8) -> Frame {
    Frame::data(Identifier::Standard(0x123), &[number])
}

/// [`frame`] as the buffers hold it.
fn bytes(number: u8) -> Vec<u8> {
    vec![0x01, 0x24, 0x60, number]
}

type Scenario = fn(Bench<dyn Driver>);

const SCENARIOS: &[(&str, Scenario)] = &[
    ("frames pass both ways", frames_pass_both_ways),
    ("error states by interrupts", |bench| error_states(bench, false)),
    ("error states while polled", |bench| error_states(bench, true)),
    ("a change of state just before polling begins", a_change_just_before_polling),
    ("bus-off and back", bus_off_and_back),
    ("bus-off while polled", bus_off_while_polled),
    ("frames of before bus-off stay unsent", frames_of_before_bus_off),
    ("a frame for a chip that is bus-off already", a_frame_for_a_chip_in_bus_off),
    ("a chip that an earlier driver left in bus-off", a_chip_left_in_bus_off),
    ("stopped and started in bus-off", stopped_and_started_in_bus_off),
    ("overruns by interrupts", |bench| overruns(bench, false)),
    ("overruns while polled", |bench| overruns(bench, true)),
    ("frames of the time when it was polled", frames_of_the_polled_time),
    ("arbitration is lost", arbitration_is_lost),
    ("a card that is removed, by interrupts", |bench| a_removed_card(bench, false)),
    ("a card that is removed, while polled", |bench| a_removed_card(bench, true)),
    ("an interrupt of another chip", an_interrupt_of_another_chip),
    ("a stopped chip is quiet", a_stopped_chip_is_quiet),
];

fn frames_pass_both_ways(bench: Bench<dyn Driver>) {
    let mut bench = bench.started();
    assert!(bench.driver.send(&frame(1)));
    assert_eq!(bench.chip().sent, [bytes(1)]);
    for number in 2..5 {
        bench.chip().arrive(&bytes(number));
    }
    bench.settle();
    assert_eq!(bench.driver.received(), [frame(2), frame(3), frame(4)]);
}

/// Warning at 96, passive at 128 of one counter; SR shows nothing of the second.
fn error_states(bench: Bench<dyn Driver>, polled: bool) {
    let mut bench = bench.started();
    bench.driver.be_polled(polled);
    bench.chip().frames_are_damaged(95);
    assert_eq!(bench.state(polled), State::Active);
    bench.chip().frames_are_damaged(1);
    assert_eq!(bench.state(polled), State::Warning);
    bench.chip().frames_are_damaged(32);
    assert_eq!(bench.state(polled), State::Passive);
    bench.chip().frames_are_whole(1);
    assert_eq!(bench.state(polled), State::Warning, "119 errors");
    bench.chip().frames_are_whole(100);
    assert_eq!(bench.state(polled), State::Active);

    bench.chip().busy = true;
    assert!(bench.driver.send(&frame(1)));
    bench.chip().attempts_fail(12);
    assert_eq!(bench.state(polled), State::Warning, "of the transmit errors");
    bench.chip().attempts_fail(4);
    assert_eq!(bench.state(polled), State::Passive);
    bench.chip().frame_ends();
    assert_eq!(bench.state(polled), State::Warning, "a frame that is sent takes one error away");
    assert_eq!(bench.driver.counts(), Counts::default());
}

/// The cause is in IR, and masking reads IR.
fn a_change_just_before_polling(bench: Bench<dyn Driver>) {
    let mut bench = bench.started();
    bench.chip().frames_are_damaged(100);
    bench.driver.be_polled(true);
    assert_eq!(bench.state(true), State::Warning);
    bench.driver.be_polled(false);
    bench.chip().frames_are_damaged(30);
    bench.driver.be_polled(true);
    assert_eq!(bench.state(true), State::Passive);
}

fn bus_off_and_back(bench: Bench<dyn Driver>) {
    let mut bench = bench.started();
    bench.goes_bus_off();
    assert_eq!(bench.state(false), State::BusOff);
    bench.chip().recessive(1000);
    assert_eq!(bench.state(false), State::BusOff, "nobody has started it");
    assert!(bench.driver.start());
    assert_eq!(bench.driver.state(), State::BusOff);
    bench.comes_back();
    assert_eq!(bench.driver.counts(), Counts { bus_offs: 1, recoveries: 1, ..Counts::default() });
    bench.chip().busy = false;
    bench.chip().arrive(&bytes(7));
    bench.settle();
    assert_eq!(bench.driver.received(), [frame(7)]);
}

fn bus_off_while_polled(bench: Bench<dyn Driver>) {
    let mut bench = bench.started();
    bench.driver.be_polled(true);
    bench.goes_bus_off();
    assert_eq!(bench.state(true), State::BusOff);
    assert!(bench.driver.start());
    bench.chip().recessive(RECOVERY - 1);
    assert_eq!(bench.state(true), State::BusOff);
    bench.chip().recessive(1);
    assert_eq!(bench.state(true), State::Active);
    assert_eq!(bench.driver.counts(), Counts { bus_offs: 1, recoveries: 1, ..Counts::default() });
}

fn frames_of_before_bus_off(bench: Bench<dyn Driver>) {
    let mut bench = bench.started();
    bench.chip().busy = true;
    for number in 1..4 {
        bench.driver.send(&frame(number)); // without a queue there is no room for the second
    }
    bench.chip().attempts_fail(32);
    bench.settle();
    assert!(bench.driver.start());
    bench.chip().busy = false;
    bench.comes_back();
    assert_eq!(bench.chip().sent, [[0u8; 0]; 0], "sent when nobody expected it any more");
    assert!(bench.driver.send(&frame(9)));
    assert_eq!(bench.chip().sent, [bytes(9)]);
}

/// In reset mode the transmit buffer's addresses are those of the acceptance filter.
fn a_frame_for_a_chip_in_bus_off(bench: Bench<dyn Driver>) {
    let mut bench = bench.started();
    bench.goes_bus_off();
    bench.driver.send(&frame(2)); // before it knows
    assert_eq!(bench.chip().settings[16..24], [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    bench.settle();
    assert!(!bench.driver.send(&frame(3)) || bench.driver.state() == State::BusOff);
    assert!(bench.driver.start());
    bench.driver.send(&frame(4)); // it may wait for the end of bus-off: somebody asked for it
    bench.chip().busy = false;
    bench.comes_back();
    let sent = bench.chip().sent.clone();
    assert!(sent.iter().all(|frame| *frame == bytes(3) || *frame == bytes(4)), "{sent:?}");
}

fn a_chip_left_in_bus_off(mut bench: Bench<dyn Driver>) {
    bench.chip().bus_off = true;
    bench.chip().transmit_errors = 127;
    assert!(bench.driver.start());
    assert_eq!(bench.state(false), State::BusOff);
    bench.comes_back();
}

fn stopped_and_started_in_bus_off(bench: Bench<dyn Driver>) {
    let mut bench = bench.started();
    bench.goes_bus_off();
    bench.settle();
    bench.driver.stop();
    assert_eq!(bench.driver.state(), State::Stopped);
    assert!(bench.driver.start());
    assert_eq!(bench.state(false), State::BusOff);
    bench.comes_back();
}

/// The FIFO of 64 bytes holds 5 frames of 8 bytes.
fn overruns(bench: Bench<dyn Driver>, polled: bool) {
    let mut bench = bench.started();
    bench.driver.be_polled(polled);
    for round in 1..3 {
        for _ in 0..7 {
            bench.chip().arrive(&[0x08, 0x24, 0x60, 1, 2, 3, 4, 5, 6, 7, 8]);
        }
        bench.state(polled);
        assert_eq!(bench.driver.received().len(), 5);
        assert_eq!(bench.driver.counts(), Counts { overruns: round, ..Counts::default() });
    }
    bench.chip().arrive(&bytes(1));
    bench.state(polled);
    assert_eq!(bench.driver.received(), [frame(1)]);
}

fn frames_of_the_polled_time(bench: Bench<dyn Driver>) {
    let mut bench = bench.started();
    bench.driver.be_polled(true);
    bench.chip().arrive(&bytes(1));
    assert!(!bench.chip().interrupts(), "frames interrupt nobody who polls");
    bench.driver.be_polled(false);
    bench.settle();
    assert_eq!(bench.driver.received(), [frame(1)]);
}

fn arbitration_is_lost(bench: Bench<dyn Driver>) {
    let mut bench = bench.started();
    bench.chip().busy = true;
    assert!(bench.driver.send(&frame(1)));
    for bit in [3, 10, 0] {
        bench.chip().arbitration_is_lost(bit);
        bench.settle();
    }
    assert_eq!(bench.driver.state(), State::Active);
    bench.chip().frame_ends();
    bench.settle();
    assert_eq!(bench.chip().sent, [bytes(1)], "the chip repeats it, not the driver");
}

fn a_removed_card(bench: Bench<dyn Driver>, polled: bool) {
    let mut bench = bench.started();
    bench.driver.be_polled(polled);
    bench.chip().gone = true;
    if polled {
        bench.driver.poll();
    } else {
        bench.driver.interrupt(); // of another device on the line
    }
    assert_eq!(bench.driver.state(), State::Stopped);
    assert_eq!(bench.driver.received(), [], "a removed card has no frames");
    assert!(!bench.driver.send(&frame(1)));
    assert!(!bench.driver.start());
    bench.driver.stop();
}

fn an_interrupt_of_another_chip(bench: Bench<dyn Driver>) {
    let mut bench = bench.started();
    assert!(!bench.driver.interrupt());
    bench.driver.be_polled(true);
    assert!(!bench.driver.interrupt());
}

fn a_stopped_chip_is_quiet(bench: Bench<dyn Driver>) {
    let mut bench = bench.started();
    bench.chip().arrive(&bytes(1));
    bench.driver.stop();
    assert!(!bench.chip().interrupts());
    assert_eq!(bench.chip().mode & r::MOD_RESET, r::MOD_RESET);
    assert_eq!(bench.chip().enabled, 0);
    assert_eq!(bench.driver.state(), State::Stopped);
    let mut bench = bench.started();
    assert!(bench.driver.send(&frame(2)));
    bench.settle();
    assert_eq!(bench.chip().sent, [bytes(2)]);
}

/// Runs all scenarios, each with a chip and a driver of its own, and names those that fail.
fn run_all(driver: impl Fn(&Shared) -> Box<dyn Driver>) {
    let mut failed = Vec::new();
    for (name, scenario) in SCENARIOS {
        let chip = Shared::default();
        let bench = Bench { chip: chip.clone(), driver: driver(&chip) };
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| scenario(bench)));
        let mistakes = std::mem::take(&mut chip.0.borrow_mut().mistakes);
        if ended.is_err() || !mistakes.is_empty() {
            failed.push(format!("{name} {mistakes:?}"));
        }
    }
    assert!(failed.is_empty(), "these scenarios failed: {failed:#?}");
}

#[test]
fn the_crate_handles_every_scenario() {
    run_all(|chip| Box::new(Crate::new(chip)));
}

#[test]
fn canchar_handles_every_scenario() {
    let program = build_canchar();
    run_all(|chip| Box::new(Canchar::new(program, chip)));
}

// ------------------------------------------------------------ only canchar's

fn canchar() -> Bench<Canchar> {
    let chip = Shared::default();
    Bench { driver: Box::new(Canchar::new(build_canchar(), &chip)), chip }.started()
}

/// linux/can/error.h
const ERROR_CONTROLLER: u32 = 0x4;
const ERROR_BUS_OFF: u32 = 0x40;
const ERROR_RESTARTED: u32 = 0x100;

#[test]
fn canchar_accounts_for_each_frame_that_met_bus_off_and_says_what_happened() {
    let mut bench = canchar();
    bench.driver.set_restart();
    bench.goes_bus_off(); // with the first of four
    for number in 2..5 {
        assert!(bench.driver.send(&frame(number)));
    }
    bench.settle();
    assert_eq!(bench.driver.fates(), [0, 1, 3], "sent, aborted, lost");
    assert!(bench.driver.restart_time_is_over());
    bench.chip().busy = false;
    bench.comes_back();
    assert!(!bench.driver.restart_time_is_over());
    assert_eq!(bench.driver.error_classes(), [ERROR_BUS_OFF, ERROR_RESTARTED]);
    assert_eq!(bench.driver.fates(), [0, 1, 3]);
    assert_eq!(bench.chip().mistakes, [""; 0]);
}

#[test]
fn canchar_counts_no_frame_as_sent_by_a_card_that_is_removed() {
    let mut bench = canchar();
    bench.chip().busy = true;
    assert!(bench.driver.send(&frame(1)));
    bench.chip().gone = true;
    for number in 2..5 {
        bench.driver.send(&frame(number));
    }
    assert_eq!(bench.driver.fates()[0], 0);
    bench.driver.interrupt();
    assert_eq!(bench.driver.state(), State::Stopped);
    assert_eq!(bench.driver.fates(), [0, 1, 3], "sent, aborted, lost");
}

#[test]
fn canchar_reports_each_change_of_state_once() {
    let mut bench = canchar();
    bench.chip().frames_are_damaged(100);
    bench.settle();
    bench.driver.be_polled(true);
    bench.driver.poll();
    bench.driver.poll();
    assert_eq!(bench.driver.error_classes(), [ERROR_CONTROLLER]);
    bench.chip().frames_are_damaged(30);
    bench.settle();
    bench.driver.poll();
    assert_eq!(bench.driver.error_classes(), [ERROR_CONTROLLER]);
}

/// A driver's call, the calls before it, and whether a frame that arrives within it is lost: reset mode clears the FIFO.
type Call = (&'static str, fn(&mut Canchar), fn(&mut Canchar), bool);

const CALLS: &[Call] = &[
    ("start", |driver| driver.stop(), |driver| assert!(driver.start()), true),
    ("stop", |_| {}, |driver| driver.stop(), true),
    ("send", |_| {}, |driver| assert!(driver.send(&frame(1))), false),
    ("mask", |_| {}, |driver| driver.be_polled(true), false),
    ("poll", |driver| driver.be_polled(true), |driver| driver.poll(), false),
    ("unmask", |driver| driver.be_polled(true), |driver| driver.be_polled(false), false),
];

#[test]
fn canchar_knows_every_interrupt_within_its_calls() {
    for (name, before, call, loses) in CALLS {
        for access in 0.. {
            let mut bench = canchar();
            bench.driver.wire_line();
            before(&mut bench.driver);
            bench.chip().arrival = Some((access, bytes(7)));
            call(&mut bench.driver);
            assert_eq!(bench.chip().mistakes, [""; 0], "{name}, at access {access}");
            if bench.chip().arrival.take().is_some() {
                assert!(access > 0, "{name} makes no access");
                break;
            }
            bench.driver.be_polled(false);
            bench.settle();
            let received = bench.driver.received();
            assert!(
                received == [frame(7)] || *loses && received.is_empty(),
                "{name}, at access {access}: {received:?}"
            );
        }
    }
}
