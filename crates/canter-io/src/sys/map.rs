//! Memory shared with the kernel.

use std::{
    io,
    os::fd::BorrowedFd,
    ptr::NonNull,
    sync::atomic::{AtomicU32, AtomicU64, Ordering, fence},
};

/// A mapping of a socket's or device's memory; unmapped when dropped.
#[derive(Debug)]
pub struct Map {
    start: NonNull<u8>,
    bytes: usize,
    #[cfg(test)]
    plain: Option<std::sync::Arc<Plain>>,
}

// SAFETY: the mapping belongs to this value alone; whoever shares it with the kernel orders the accesses.
unsafe impl Send for Map {}

impl Map {
    /// Maps `bytes` of `descriptor` from its start, readable, writable and shared, and faults all pages in.
    ///
    /// # Errors
    /// The error of mmap(2).
    pub fn read_write(descriptor: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        Self::new(descriptor, bytes, libc::PROT_READ | libc::PROT_WRITE)
    }

    /// Maps `bytes` of `descriptor` from its start, only to be read, by [`word`](Self::word).
    ///
    /// # Errors
    /// The error of mmap(2).
    pub fn read_only(descriptor: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        Self::new(descriptor, bytes, libc::PROT_READ)
    }

    fn new(descriptor: BorrowedFd<'_>, bytes: usize, protection: libc::c_int) -> io::Result<Self> {
        use std::os::fd::AsRawFd;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours. mmap(2).
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, descriptor.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mmap answered address 0"))?;
        Ok(Self {
            start,
            bytes,
            #[cfg(test)]
            plain: None,
        })
    }

    /// The mapping's first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The eight bytes at byte `at` as a number, which the kernel may be writing at the same time: read as a whole, and
    /// relaxed. What has to be read before or after is kept there by a fence of the caller's.
    ///
    /// # Panics
    /// When they are not in the mapping, or `at` is no multiple of 8.
    pub fn word(&self, at: usize) -> u64 {
        assert!(
            at.is_multiple_of(8) && at < self.bytes && self.bytes - at >= 8,
            "byte {at} of {}",
            self.bytes
        );
        // SAFETY: inside of the mapping, as asserted, and a mapping begins at a page.
        let place = unsafe { self.start.add(at) };
        // SAFETY: aligned and readable as long as `self` lives; nobody but the kernel writes there, as to an atomic.
        unsafe { load(place.cast()) }
    }
}

/// Loads a number from memory that may be read-only. There the standard library promises relaxed loads alone, and of
/// eight bytes only on processors of 64 bits (std::sync::atomic, "Atomic accesses to read-only memory").
///
/// # Safety
/// The place is 8-aligned and readable, and changes only as an atomic does.
unsafe fn load(place: NonNull<u64>) -> u64 {
    if cfg!(target_pointer_width = "64") {
        // SAFETY: the caller's promise.
        unsafe { AtomicU64::from_ptr(place.as_ptr()) }.load(Ordering::Relaxed)
    } else {
        // SAFETY: the caller's promise.
        unsafe { load_halves(place) }
    }
}

/// Loads a number on a processor of 32 bits: the upper half is read before and after the lower, until both are of one
/// number. The kernel beside a 32-bit program has 64 bits and writes the whole number at once.
///
/// # Safety
/// As [`load`].
unsafe fn load_halves(place: NonNull<u64>) -> u64 {
    let (lower, upper) = if cfg!(target_endian = "little") { (0, 1) } else { (1, 0) };
    let half = |at: usize| {
        // SAFETY: one of the two halves.
        let half = unsafe { place.cast::<u32>().add(at) };
        // SAFETY: 4-aligned; the rest is the caller's promise.
        unsafe { AtomicU32::from_ptr(half.as_ptr()) }.load(Ordering::Relaxed)
    };
    loop {
        let before = half(upper);
        fence(Ordering::Acquire); // the upper half is read before the lower
        let low = half(lower);
        fence(Ordering::Acquire); // and once more after it
        if half(upper) == before {
            return u64::from(before) << 32 | u64::from(low);
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        #[cfg(test)]
        if self.plain.is_some() {
            return;
        }
        // SAFETY: `start` and `bytes` are what mmap answered, and no reference into it outlives this value. munmap(2).
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Memory of this process in place of a mapping, for tests without system calls.
#[cfg(test)]
#[derive(Debug)]
struct Plain(NonNull<u8>, std::alloc::Layout);

// SAFETY: only its address is used, and to free it.
#[cfg(test)]
unsafe impl Send for Plain {}
// SAFETY: as above.
#[cfg(test)]
unsafe impl Sync for Plain {}

#[cfg(test)]
impl Drop for Plain {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { std::alloc::dealloc(self.0.as_ptr(), self.1) };
    }
}

#[cfg(test)]
impl Map {
    /// Zeroed memory.
    pub(crate) fn plain(bytes: usize) -> Self {
        assert!(bytes > 0);
        let layout = std::alloc::Layout::from_size_align(bytes, 4096).unwrap();
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).unwrap();
        Self { start, bytes, plain: Some(std::sync::Arc::new(Plain(start, layout))) }
    }

    /// This memory once more, for the other end.
    pub(crate) fn other_end(&self) -> Self {
        assert!(self.plain.is_some());
        Self { start: self.start, bytes: self.bytes, plain: self.plain.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_as_a_whole_and_by_halves() {
        let mut number = 0x0123_4567_89ab_cdef_u64;
        let place = NonNull::from(&mut number);
        // SAFETY: aligned, and nobody writes it.
        assert_eq!(unsafe { load(place) }, 0x0123_4567_89ab_cdef);
        // SAFETY: as above.
        assert_eq!(unsafe { load_halves(place) }, 0x0123_4567_89ab_cdef);
    }

    #[test]
    fn a_word_behind_the_end_or_between_two_is_refused() {
        let map = Map::plain(64);
        assert_eq!(map.word(56), 0);
        for at in [57, 60, 64, usize::MAX & !7] {
            assert!(std::panic::catch_unwind(|| map.word(at)).is_err(), "{at}");
        }
    }

    /// Numbers with equal halves, so that a torn read is visible.
    #[test]
    #[cfg_attr(
        miri,
        ignore = "mixes sizes of atomic accesses, which the memory model leaves open; the kernel does so"
    )]
    fn halves_of_a_number_that_changes_are_of_one_number() {
        let map = Map::plain(8);
        let place = map.start().cast::<u64>();
        let writer = {
            // SAFETY: aligned, and lives until the thread has ended.
            let number = unsafe { AtomicU64::from_ptr(place.as_ptr()) };
            move || (0..200_000u64).for_each(|n| number.store(n << 32 | n, Ordering::Release))
        };
        std::thread::scope(|scope| {
            let writer = scope.spawn(writer);
            while !writer.is_finished() {
                // SAFETY: aligned, and written as an atomic.
                let read = unsafe { load_halves(place) };
                assert_eq!(read >> 32, read & u64::from(u32::MAX));
            }
        });
    }
}
