//! Memory shared with the kernel.

use std::{
    io,
    os::fd::BorrowedFd,
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering},
};

/// A mapping of a socket's or device's memory; unmapped when dropped.
#[derive(Debug)]
pub struct Map {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone; whoever shares it with the kernel orders the accesses.
unsafe impl Send for Map {}

impl Map {
    /// Maps `bytes` of `descriptor` from its start, readable, writable and shared, and faults all pages in.
    ///
    /// # Errors
    /// What mmap(2) answers.
    pub fn of(descriptor: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        Self::with(descriptor, bytes, libc::PROT_READ | libc::PROT_WRITE)
    }

    /// The same, only to be read, by [`word`](Self::word).
    ///
    /// # Errors
    /// What mmap(2) answers.
    pub fn read_only(descriptor: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        Self::with(descriptor, bytes, libc::PROT_READ)
    }

    fn with(descriptor: BorrowedFd<'_>, bytes: usize, protection: libc::c_int) -> io::Result<Self> {
        use std::os::fd::AsRawFd;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours. mmap(2).
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, descriptor.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mmap answered address 0"))?;
        Ok(Self { start, bytes })
    }

    /// Its first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The eight bytes at byte `at` as a number, which the kernel may be writing at the same time.
    ///
    /// # Panics
    /// When they are not in the mapping, or `at` is no multiple of 8.
    pub fn word(&self, at: usize, order: Ordering) -> u64 {
        assert!(
            at.is_multiple_of(8) && at < self.bytes && self.bytes - at >= 8,
            "byte {at} of {}",
            self.bytes
        );
        // SAFETY: inside of the mapping, as asserted, and a mapping begins at a page.
        let place = unsafe { self.start.add(at) };
        // SAFETY: aligned and readable as long as `self` lives; nobody but the kernel writes there, as to an atomic.
        let word = unsafe { AtomicU64::from_ptr(place.as_ptr().cast()) };
        word.load(order)
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: `start` and `bytes` are what mmap answered, and no reference into it outlives this value. munmap(2).
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
