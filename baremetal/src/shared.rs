//! The page that the gateway beside Linux shares with the module canbare: `struct canbare_shared` of
//! kernel/uapi/canbare.h, to the byte.
//!
//! Linux accesses the page on another processor at the same time, so every field is an atomic. Linux reads and writes
//! aligned fields in one access (READ_ONCE, WRITE_ONCE); the counts are independent of each other.

use core::{
    mem::offset_of,
    sync::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{Relaxed, Release},
    },
};
use sja1000::gateway::Counts;

/// States of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// The processor runs the image.
    Begun = 1,
    /// Frames are forwarded.
    Routing = 2,
    /// Stopped on request of Linux.
    Stopped = 3,
    /// The first controller does not start.
    NoInput = 4,
    /// The second controller does not start.
    NoOutput = 5,
    /// A card was removed.
    Gone = 6,
    /// The program panicked.
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

// SAFETY: beside.ld puts the symbol at 0x1f000, the last page of the memory that Linux does not use and that start.s
// maps; nothing else of the program is there. canbare has written the page before it starts this processor and keeps it
// until this processor has ended. Every bit pattern is a value of an atomic integer.
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

    /// Publishes the state: a reader of this state also sees the counts written before.
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
