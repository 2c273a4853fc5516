//@ machine: host
//! The gateway between two chips in memory: every frame accounted for, whatever happens to the chips.

use crate::double::{RECOVERY, Shared};
use sja1000::{
    Controller,
    boards::kvaser,
    gateway::{Counts, Gateway, Gone},
    register as r,
};

impl Shared {
    fn goes_bus_off(&self) {
        let mut chip = self.0.borrow_mut();
        chip.bus_off = true;
        chip.mode |= r::MOD_RESET;
    }
}

/// Runs a gateway, and `event(n)` when it is idle for the n-th time, until an event answers false.
fn run(mut event: impl FnMut(u32, &Shared, &Shared) -> bool) -> (Result<(), Gone>, Counts, Shared) {
    let (from, to) = (Shared::default(), Shared::default());
    let [input, output] = [&from, &to].map(|chip| {
        let mut controller = Controller::new(chip.clone());
        controller.start(&kvaser::PCICAN.bus(500_000).unwrap()).unwrap();
        controller
    });
    let mut gateway = Gateway::new(input, output);
    let mut times = 0;
    let ended = gateway.run(&mut |_: &Counts| {
        times += 1;
        event(times, &from, &to)
    });
    (ended, gateway.counts, to)
}

/// A frame of one byte, as the receive buffer holds it.
fn frame(byte: u8) -> [u8; 4] {
    [0x01, 0x24, 0x60, byte]
}

#[test]
fn frames_come_out_in_order_and_are_counted() {
    let (ended, counts, to) = run(|times, from, _| {
        for byte in 0..3 {
            from.0.borrow_mut().arrive(&frame(byte));
        }
        times < 5
    });
    assert_eq!(ended, Ok(()));
    assert_eq!(counts, Counts { received: 12, transmitted: 12, ..Counts::default() });
    let sent: Vec<Vec<u8>> = (0..12).map(|n| frame(n % 3).to_vec()).collect();
    assert_eq!(to.0.borrow().sent, sent);
}

#[test]
fn a_frame_without_room_is_dropped_and_counted_and_the_next_one_goes_out() {
    let (ended, counts, to) = run(|times, from, to| {
        to.0.borrow_mut().full = times == 1;
        from.0.borrow_mut().arrive(&frame(times as u8));
        times < 3
    });
    assert_eq!(ended, Ok(()));
    assert_eq!(counts, Counts { received: 2, transmitted: 1, dropped: 1, ..Counts::default() });
    assert_eq!(to.0.borrow().sent, [frame(2).to_vec()]);
}

#[test]
fn an_overrun_is_counted_once_and_what_the_fifo_held_goes_out() {
    let (ended, counts, _) = run(|times, from, _| {
        for byte in 0..if times == 1 { 20 } else { 0 } {
            from.0.borrow_mut().arrive(&frame(byte)); // 64 bytes hold 16 of 4
        }
        times < 3
    });
    assert_eq!(ended, Ok(()));
    assert_eq!(counts, Counts { received: 16, transmitted: 16, overruns: 1, ..Counts::default() });
}

#[test]
fn a_controller_that_stays_bus_off_for_a_while_is_counted_once() {
    let (ended, counts, _) = run(|times, from, _| {
        match times {
            1 => from.goes_bus_off(),
            2 | 3 => from.0.borrow_mut().recessive(63),
            4 => from.0.borrow_mut().recessive(RECOVERY - 2 * 63),
            5 => from.goes_bus_off(),
            6 => {
                from.0.borrow_mut().recessive(RECOVERY);
                from.0.borrow_mut().arrive(&frame(1));
            }
            _ => {}
        }
        times < 7
    });
    assert_eq!(ended, Ok(()));
    assert_eq!(counts, Counts { received: 1, transmitted: 1, bus_offs: 2, ..Counts::default() });
}

#[test]
fn an_output_that_is_bus_off_is_brought_back_and_sends_the_frame() {
    let (ended, counts, to) = run(|times, from, to| {
        if times == 1 {
            to.goes_bus_off();
            to.0.borrow_mut().passing = true;
            from.0.borrow_mut().arrive(&frame(1));
        }
        times < 2
    });
    assert_eq!(ended, Ok(()));
    assert_eq!(counts, Counts { received: 1, transmitted: 1, bus_offs: 1, ..Counts::default() });
    assert_eq!(to.0.borrow().sent, [frame(1).to_vec()]);
}

#[test]
fn a_card_that_is_removed_ends_it_with_the_counts_kept() {
    for input in [true, false] {
        let (ended, counts, _) = run(|times, from, to| {
            from.0.borrow_mut().arrive(&frame(1));
            if times == 2 {
                let gone = if input { from } else { to };
                gone.0.borrow_mut().gone = true;
            }
            assert!(times < 3, "it goes on without a card");
            true
        });
        assert_eq!(ended, Err(Gone));
        assert_eq!(counts.transmitted, 1);
        assert_eq!(counts.received, if input { 1 } else { 2 });
    }
}
