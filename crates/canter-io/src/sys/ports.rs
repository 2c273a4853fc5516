//! I/O ports of a device from user space: ioperm(2), then `in` and `out`. Of x86 PCs only.

use std::{cell::Cell, io};

/// How many ranges of ports a process can have.
pub const RANGES_MAX: u32 = 64;

thread_local! {
    /// The ranges that this thread may touch, one bit each. Permission is a thread's, not a process's.
    static PERMITTED: Cell<u64> = const { Cell::new(0) };
}

/// A range of I/O ports. A thread has to call [`permit`](Self::permit) before it touches one: without permission the
/// processor raises a fault, which becomes SIGSEGV.
#[derive(Clone, Copy, Debug)]
pub struct Ports<const COUNT: u16> {
    first: u16,
    number: u32,
}

impl<const COUNT: u16> Ports<COUNT> {
    /// The range of `COUNT` ports that begins at port `first`. Ranges of one process have different numbers, below
    /// [`RANGES_MAX`].
    ///
    /// # Safety
    /// For as long as this or a copy of it is used, the ports are those of a device that no driver has, and nothing
    /// that is written there makes the device write to memory.
    ///
    /// # Panics
    /// When the number is too large.
    pub unsafe fn new(first: u16, number: u32) -> Self {
        assert!(number < RANGES_MAX, "a process has {RANGES_MAX} ranges of ports");
        Self { first, number }
    }

    /// Lets this thread touch them.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_RAWIO` or in a locked-down kernel; `ENOSYS` where there are no such ports.
    #[inline]
    pub fn permit(&self) -> io::Result<()> {
        let bit = 1 << self.number;
        if PERMITTED.get() & bit != 0 {
            return Ok(());
        }
        self.ask_once()?;
        PERMITTED.set(PERMITTED.get() | bit);
        Ok(())
    }

    /// Lets this thread touch ports that no other thread touches, now and not later.
    ///
    /// # Errors
    /// As [`permit`](Self::permit).
    #[cold]
    pub fn ask_once(&self) -> io::Result<()> {
        ioperm(self.first, COUNT)
    }

    /// Reads the port `at` places behind the first.
    ///
    /// # Panics
    /// When it lies behind the range.
    #[inline]
    pub fn read(&self, at: u8) -> u8 {
        assert!(u16::from(at) < COUNT, "a port of another device");
        read(self.first + u16::from(at))
    }

    /// Writes the port `at` places behind the first.
    ///
    /// # Panics
    /// When it lies behind the range.
    #[inline]
    pub fn write(&self, at: u8, value: u8) {
        assert!(u16::from(at) < COUNT, "a port of another device");
        write(self.first + u16::from(at), value);
    }

    /// Writes the four bytes from `at`, which must be a register of four bytes, at once.
    ///
    /// # Panics
    /// When they lie behind the range.
    pub fn write_long(&self, at: u8, value: u32) {
        assert!(u16::from(at) + 4 <= COUNT, "a port of another device");
        write_long(self.first + u16::from(at), value);
    }
}

#[cfg(target_arch = "x86_64")]
fn ioperm(first: u16, count: u16) -> io::Result<()> {
    // SAFETY: no memory is passed. ioperm(2): "sets the port access permission bits for the calling thread".
    super::check(unsafe { libc::ioperm(first.into(), count.into(), 1) }).map(drop)
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn read(port: u16) -> u8 {
    let value: u8;
    // SAFETY: it touches no memory, and the device does not either (`Ports::new`); a thread without permission ends by
    // SIGSEGV.
    unsafe {
        std::arch::asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags));
    }
    value
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn write(port: u16, value: u8) {
    // SAFETY: as for `read`.
    unsafe {
        std::arch::asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags));
    }
}

#[cfg(target_arch = "x86_64")]
fn write_long(port: u16, value: u32) {
    // SAFETY: as for `read`.
    unsafe {
        std::arch::asm!("out dx, eax", in("dx") port, in("eax") value, options(nomem, nostack, preserves_flags));
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn ioperm(_: u16, _: u16) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(libc::ENOSYS))
}

#[cfg(not(target_arch = "x86_64"))]
fn read(_: u16) -> u8 {
    unreachable!("ioperm is refused first")
}

#[cfg(not(target_arch = "x86_64"))]
fn write(_: u16, _: u8) {
    unreachable!("ioperm is refused first")
}

#[cfg(not(target_arch = "x86_64"))]
fn write_long(_: u16, _: u32) {
    unreachable!("ioperm is refused first")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "a port of another device")]
    fn a_port_behind_the_range_is_never_touched() {
        // SAFETY: no port is touched.
        let ports = unsafe { Ports::<32>::new(0x300, 0) };
        ports.read(32);
    }
}
