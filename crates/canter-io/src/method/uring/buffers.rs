//! The kernel's receive buffers, and the ring of entries that provides them to the kernel.
#![allow(unsafe_code)]

use super::Ring;
use crate::{
    frame::CANFD_MTU,
    sys::{array::Array, control::Control},
};
use io_uring::types::BufRingEntry;
use std::{
    io,
    sync::atomic::{AtomicU16, Ordering},
};

/// Frames that the kernel may receive before the receiver copies them; a power of two.
pub(super) const BUFFERS: u16 = 256;
/// Bytes of a buffer: with stamps a header of 16, a [`Control`], and the frame.
const BUFFER_BYTES: usize = 256;
/// The group of these buffers.
pub(super) const GROUP: u16 = 1;

const _: () = assert!(16 + size_of::<Control>() + CANFD_MTU <= BUFFER_BYTES);
// linux/io_uring.h: struct io_uring_buf.
const _: () = assert!(size_of::<BufRingEntry>() == 16 && align_of::<BufRingEntry>() == 8);

/// The alignment of the entries for io_uring_register_buf_ring(3).
#[derive(Clone, Copy)]
#[repr(C, align(4096))]
struct Page([u8; 4096]);

/// Bytes of the entries and of the buffers after them.
const ENTRIES_BYTES: usize = BUFFERS as usize * size_of::<BufRingEntry>();
const BYTES: usize = ENTRIES_BYTES + BUFFERS as usize * BUFFER_BYTES;

/// The buffers. Each is the kernel's from [`give`](Self::give) until a completion names it.
pub(super) struct Buffers {
    memory: Array<Page>,
    tail: u16,
}

impl Buffers {
    /// Provides all buffers to the kernel through `ring`, which must not outlive them.
    pub fn new(ring: &Ring) -> io::Result<Self> {
        let buffers = Self::given();
        // SAFETY: the memory begins with the entries, page-aligned. It outlives the ring, which is dropped first, or
        // its requests (see `Receiver::drop`).
        unsafe { ring.register(buffers.start() as u64, BUFFERS, GROUP) }?;
        Ok(buffers)
    }

    /// All buffers provided, not yet registered with a ring.
    fn given() -> Self {
        let memory = Array::new(Page([0; size_of::<Page>()]), BYTES.div_ceil(size_of::<Page>()));
        let mut buffers = Self { memory, tail: 0 };
        (0..BUFFERS).for_each(|number| buffers.give(number));
        buffers.publish();
        buffers
    }

    #[inline]
    fn start(&self) -> *mut u8 {
        self.memory.place(0).cast()
    }

    #[inline]
    fn buffer(&self, number: u16) -> *mut u8 {
        assert!(number < BUFFERS, "no such buffer");
        // SAFETY: inside of the memory, by its size.
        unsafe { self.start().add(ENTRIES_BYTES + usize::from(number) * BUFFER_BYTES) }
    }

    /// The content of a buffer that a completion named.
    #[inline]
    pub fn filled(&self, number: u16) -> &[u8] {
        // SAFETY: the kernel has completed this buffer and gets it back only by `give`, which takes `&mut self`.
        unsafe { std::slice::from_raw_parts(self.buffer(number), BUFFER_BYTES) }
    }

    /// Gives a buffer to the kernel, with the next [`publish`](Self::publish).
    #[inline]
    pub fn give(&mut self, number: u16) {
        let address = self.buffer(number) as u64;
        let at = usize::from(self.tail & (BUFFERS - 1));
        // SAFETY: inside of the entries, by the mask.
        let entry = unsafe { self.start().cast::<BufRingEntry>().add(at) };
        // SAFETY: aligned, zeroed or written before, and the kernel reads it only once the tail is published. Of the
        // first entry the last two bytes are the tail, which these three do not touch.
        let entry = unsafe { &mut *entry };
        entry.set_addr(address);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(number);
        self.tail = self.tail.wrapping_add(1);
    }

    /// Makes the given buffers visible to the kernel.
    #[inline]
    pub fn publish(&mut self) {
        // SAFETY: the tail is in the first entry.
        let tail = unsafe { BufRingEntry::tail(self.start().cast()) }.cast_mut();
        // SAFETY: 2-aligned, and lives as long as the memory.
        let tail = unsafe { AtomicU16::from_ptr(tail) };
        tail.store(self.tail, Ordering::Release); // pairs with the kernel's smp_load_acquire of the tail
    }

    /// Never frees the memory: the kernel may still write there. No buffer can be used afterwards.
    pub fn leak(&mut self) {
        self.memory.leak();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's side: the tail, and the buffer that entry `at` offers.
    fn offered(buffers: &Buffers, at: u16) -> (u16, u16, *mut u8) {
        let entries = buffers.start().cast::<BufRingEntry>();
        // SAFETY: the tail is in the first entry.
        let tail = unsafe { BufRingEntry::tail(entries) }.cast_mut();
        // SAFETY: 2-aligned, and lives as long as the memory.
        let tail = unsafe { AtomicU16::from_ptr(tail) }.load(Ordering::Acquire);
        // SAFETY: inside of the entries, by the mask.
        let entry = unsafe { entries.add(usize::from(at & (BUFFERS - 1))) };
        // SAFETY: published, so nobody writes it.
        let entry = unsafe { &*entry };
        let place = std::ptr::with_exposed_provenance_mut(entry.addr() as usize);
        assert_eq!(entry.len() as usize, BUFFER_BYTES);
        (tail, entry.bid(), place)
    }

    #[test]
    fn buffers_go_round_wherever_they_are_moved_and_each_is_the_kernels_once() {
        let mut buffers = Buffers::given();
        buffers.start().expose_provenance(); // as the address in an entry leaves our sight
        let rounds = 3 * BUFFERS;
        for at in 0..rounds {
            let (tail, number, place) = offered(&buffers, at);
            assert_eq!((tail.wrapping_sub(at), number), (BUFFERS, at % BUFFERS));
            // SAFETY: a buffer that was offered is the kernel's.
            unsafe { place.write_bytes(at as u8, BUFFER_BYTES) };
            assert_eq!(buffers.filled(number), [at as u8; BUFFER_BYTES]);
            buffers.give(number);
            buffers.publish();
            if at.is_multiple_of(64) {
                buffers = *Box::new(buffers);
            }
        }
    }
}
