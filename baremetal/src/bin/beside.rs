//! The gateway on a processor that Linux leaves alone, started by the module canbare.
#![no_std]
#![no_main]

use canter_bare::{
    card,
    gateway::{Counts, Gateway},
    ports::halt,
    shared::{Shared, State},
};
use core::arch::global_asm;

global_asm!(
    include_str!("../start_beside.s"),
    include_str!("../start.s"),
    include_str!("../memory.s"),
    options(att_syntax)
);

fn shared() -> Shared {
    // SAFETY: the module has put the page there before it started this processor, and keeps it until it has stopped it.
    unsafe { Shared::at_its_place() }
}

/// Called by `start64`.
#[unsafe(no_mangle)]
extern "C" fn rust_main() -> ! {
    let shared = shared();
    shared.set_state(State::Begun);
    shared.set_state(work(shared));
    halt()
}

/// From the start of the controllers to their stop.
fn work(shared: Shared) -> State {
    let [from, to] = [0, 1].map(|number| shared.channel(number));
    let Ok(from) = card::start(from.0, from.1) else { return State::NoInput };
    let Ok(to) = card::start(to.0, to.1) else { return State::NoOutput };
    let mut gateway = Gateway::new(from, to);
    shared.set_state(State::Routing);
    let mut told = 0;
    let ended = gateway.run(&mut |counts: &Counts| {
        core::hint::spin_loop(); // first: in QEMU's virtual clock it lets Linux go on
        if told != counts.received {
            told = counts.received;
            shared.set_counts(counts);
        }
        !shared.stop()
    });
    gateway.stop();
    shared.set_counts(&gateway.counts);
    if ended.is_ok() { State::Stopped } else { State::Gone }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    shared().set_state(State::Panicked);
    halt()
}
