//! Memory shared with the kernel.

use std::{io, os::fd::BorrowedFd, ptr::NonNull};

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
        use std::os::fd::AsRawFd;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
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
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: `start` and `bytes` are what mmap answered, and no reference into it outlives this value. munmap(2).
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
