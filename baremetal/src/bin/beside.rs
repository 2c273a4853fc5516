//! The gateway on a processor that Linux does not use, started by the module canbare.
#![no_std]
#![no_main]

use canter_bare::{
    card,
    ports::halt,
    shared::{PAGE, State},
};
use core::arch::global_asm;
use sja1000::{
    boards::kvaser,
    gateway::{Counts, Gateway},
};

global_asm!(
    include_str!("../start_beside.s"),
    include_str!("../start.s"),
    include_str!("../memory.s"),
    options(att_syntax)
);

/// Called by `start64`.
#[unsafe(no_mangle)]
extern "C" fn rust_main() -> ! {
    PAGE.set_state(State::Begun);
    PAGE.set_state(work());
    halt()
}

/// From the start of the controllers to their stop.
fn work() -> State {
    let start = |number| {
        let (first_port, bitrate) = PAGE.channel(number);
        card::start(&kvaser::PCICAN, first_port, bitrate) // canbare accepts no other card
    };
    let Ok(from) = start(0) else { return State::NoInput };
    let Ok(to) = start(1) else { return State::NoOutput };
    let mut gateway = Gateway::new(from, to);
    PAGE.set_state(State::Routing);
    let mut published = 0;
    let ended = gateway.run(&mut |counts: &Counts| {
        core::hint::spin_loop(); // first, because in QEMU's virtual clock this lets Linux run
        if published != counts.received {
            published = counts.received;
            PAGE.set_counts(counts);
        }
        !PAGE.stop()
    });
    gateway.stop();
    PAGE.set_counts(&gateway.counts);
    if ended.is_ok() { State::Stopped } else { State::Gone }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    PAGE.set_state(State::Panicked);
    halt()
}
