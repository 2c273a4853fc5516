//! The page that the gateway beside Linux shares with the module that started it: `struct canbare_shared` of
//! kernel/uapi/canbare.h, to the byte.

use crate::gateway::Counts;
use core::{
    mem::{offset_of, size_of},
    ptr,
};

/// Where it is: the last page of the memory that Linux leaves alone.
const ADDRESS: usize = 0x1_f000;

/// What the gateway is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// The processor runs the image.
    Begun = 1,
    /// Frames are handed over.
    Routing = 2,
    /// It was told to stop, and has.
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

#[repr(C)]
struct Page {
    stop: u32,
    state: u32,
    ports: [u32; 2],
    bitrates: [u32; 2],
    counts: Counts,
}

const _: () = assert!(offset_of!(Page, counts) == 24 && size_of::<Page>() == 64);

/// The page.
#[derive(Clone, Copy, Debug)]
pub struct Shared(*mut Page);

impl Shared {
    /// The page of the machine that the image `beside` runs on.
    ///
    /// # Safety
    /// The memory at 0x1f000 is kept for it.
    pub unsafe fn at_its_place() -> Self {
        Self(ptr::without_provenance_mut(ADDRESS))
    }

    /// Whether it is to stop.
    #[inline]
    pub fn stop(self) -> bool {
        // SAFETY: `at_its_place`. Linux writes it meanwhile, hence volatile.
        unsafe { (&raw const (*self.0).stop).read_volatile() != 0 }
    }

    /// Port of the first register and bit/s of the first (0) or second (1) controller.
    pub fn channel(self, number: usize) -> (u16, u32) {
        // SAFETY: `at_its_place`; nobody writes it any more.
        let (ports, bitrates) = unsafe { ((*self.0).ports, (*self.0).bitrates) };
        (ports[number] as u16, bitrates[number])
    }

    /// Tells what it is doing. What has been counted was told before.
    pub fn set_state(self, state: State) {
        core::sync::atomic::fence(core::sync::atomic::Ordering::Release);
        // SAFETY: `at_its_place`. Linux reads it meanwhile.
        unsafe { (&raw mut (*self.0).state).write_volatile(state as u32) }
    }

    /// Tells what has been counted.
    #[inline]
    pub fn set_counts(self, counts: &Counts) {
        // SAFETY: `at_its_place`. Linux reads it meanwhile, each number for itself.
        unsafe { (&raw mut (*self.0).counts).write_volatile(*counts) }
    }
}
