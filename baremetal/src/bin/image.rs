//! The gateway as a machine's only program, booted by QEMU's `-kernel` or another loader of PVH guests.
#![no_std]
#![no_main]

use canter_bare::{
    card::Channel,
    command_line::{self, Options},
    console::{End, end},
    measure::Pc,
    pci::{self, CARDS_MAX, Card},
    ports::ChannelPorts,
    say,
};
use core::{arch::global_asm, cell::Cell};
use sja1000::gateway::{Counts, Gateway, Gone};

global_asm!(
    include_str!("../start_pvh.s"),
    include_str!("../start.s"),
    include_str!("../memory.s"),
    options(att_syntax)
);

/// Called by `start64` with the address that the loader passed.
#[unsafe(no_mangle)]
extern "C" fn rust_main(start: u64) -> ! {
    // SAFETY: start.s has kept what the loader has passed, and maps the first GiB.
    let text = unsafe { command_line::from_loader(start) };
    let options = match Options::parse(text) {
        Ok(options) => options,
        Err(word) => fail(format_args!(
            "{word}: not bitrate=, from=, to=, frames=, measure=, send=, receive=, len= and a number"
        )),
    };
    let cards = Cards { all: pci::find(), bitrate: options.bitrate };
    let mut gateway = Gateway::new(cards.start(options.from), cards.start(options.to));
    let [from, to] = [options.from, options.to].map(|number| cards.card(number).slot);
    let count = cards.count();
    say!("{count} cards; frames from 00:{from:02x}.0 to 00:{to:02x}.0 at {} bit/s", options.bitrate);
    let ended = if options.measure > 0 {
        measure(&mut gateway, &cards, &options)
    } else {
        gateway.run(&mut |counts: &Counts| {
            core::hint::spin_loop();
            options.frames == 0 || counts.received < options.frames
        })
    };
    let Counts { received, transmitted, dropped, overruns, bus_offs } = gateway.counts;
    say!(
        "{received} received = {transmitted} transmitted + {dropped} dropped; {overruns} overruns, {bus_offs} times off the bus"
    );
    if let Err(gone) = ended {
        fail(format_args!("{gone}"));
    }
    end(End::Done)
}

fn measure(gateway: &mut Gateway<ChannelPorts>, cards: &Cards, options: &Options) -> Result<(), Gone> {
    let command = Cell::new(0);
    let (sender, receiver) = (cards.start(options.send), cards.start(options.receive));
    let mut pc = Pc::new(sender, receiver, &command, options.len, options.measure);
    gateway.run(&mut pc)?;
    let found = pc.latencies;
    if found.count == 0 {
        fail(format_args!("no frame came through: {} lost", found.lost));
    }
    say!(
        "{} frames of {} bytes, {} lost; ticks each: min {} mean {} max {}",
        found.count,
        options.len,
        found.lost,
        found.min,
        found.mean(),
        found.max
    );
    Ok(())
}

/// The cards of this machine.
struct Cards {
    all: [Option<Card>; CARDS_MAX],
    bitrate: u32,
}

impl Cards {
    fn count(&self) -> usize {
        self.all.iter().flatten().count()
    }

    fn card(&self, number: usize) -> &Card {
        let Some(Some(card)) = self.all.get(number) else {
            fail(format_args!("card {number}: there are {} Kvaser PCI cards", self.count()));
        };
        card
    }

    /// Puts a card's first controller on its bus.
    fn start(&self, number: usize) -> Channel {
        let card = self.card(number);
        card.start(self.bitrate)
            .unwrap_or_else(|error| fail(format_args!("card {number}, {} bit/s: {error}", self.bitrate)))
    }
}

fn fail(why: core::fmt::Arguments<'_>) -> ! {
    say!("{why}");
    end(End::Failed)
}

#[panic_handler]
fn panic(why: &core::panic::PanicInfo) -> ! {
    fail(format_args!("{why}"))
}
