//! The page that the gateway beside Linux shares with the module canbare: `struct canbare_shared` of
//! kernel/uapi/canbare.h, to the byte.
//!
//! Linux reads and writes the page on another processor at the same time, so every field is an atomic. Linux reads and
//! writes aligned fields whole (READ_ONCE, WRITE_ONCE); each number of the counts stands for itself.

use core::{
    mem::offset_of,
    sync::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{Relaxed, Release},
    },
};
use sja1000::gateway::Counts;

/// What the gateway is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// The processor runs the image.
    Begun = 1,
    /// Frames are handed over.
    Routing = 2,
    /// Linux has asked it to stop, and it has.
    Stopped = 3,
    /// The first controller does not start.
    NoInput = 4,
    /// The second controller does not start.
    NoOutput = 5,
    /// A card has gone.
    Gone = 6,
    /// The program has failed.
    Panicked = 7,
}

/// The page.
#[derive(Debug)]
#[repr(C)]
pub struct Page {
    stop: AtomicU32,
    state: AtomicU32,
    ports: [AtomicU32; 2],
    bitrates: [AtomicU32; 2],
    /// `struct canbare_counts`: the fields of [`Counts`] in their order.
    counts: [AtomicU64; 5],
}

// The numbers that kernel/canbare/main.c asserts.
const _: () = assert!(size_of::<Page>() == 64 && offset_of!(Page, counts) == 24);
const _: () = assert!(size_of::<Counts>() == size_of::<[AtomicU64; 5]>());

// SAFETY: beside.ld puts the symbol at 0x1f000, the last page of the memory that Linux leaves alone and that start.s maps;
// nothing else of the program is there. canbare has written the page before it starts this processor and keeps it until
// this processor has ended. Every bit pattern is a value of an atomic integer.
unsafe extern "C" {
    /// The page of the machine that the image `beside` runs on.
    #[link_name = "shared_page"]
    pub safe static PAGE: Page;
}

impl Page {
    /// Whether Linux asks it to stop.
    #[inline]
    pub fn stop(&self) -> bool {
        self.stop.load(Relaxed) != 0
    }

    /// Port of the first register, and bit/s, of the first (0) or second (1) controller.
    pub fn channel(&self, number: usize) -> (u16, u32) {
        (self.ports[number].load(Relaxed) as u16, self.bitrates[number].load(Relaxed))
    }

    /// Publishes what it is doing: whoever reads this state also finds the counts written before.
    pub fn set_state(&self, state: State) {
        self.state.store(state as u32, Release);
    }

    /// Publishes the counts.
    #[inline]
    pub fn set_counts(&self, counts: &Counts) {
        let Counts { received, transmitted, dropped, overruns, bus_offs } = *counts;
        for (place, count) in self.counts.iter().zip([received, transmitted, dropped, overruns, bus_offs]) {
            place.store(count, Relaxed);
        }
    }
}
