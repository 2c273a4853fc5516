//! I/O ports: the instructions, and a controller's registers behind 32 of them.

use core::arch::asm;
use sja1000::Registers;

/// Reads a byte.
#[inline]
pub fn read(port: u16) -> u8 {
    let value: u8;
    // SAFETY: it touches no memory of this program, and this program owns the machine with its devices.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags)) }
    value
}

/// Writes a byte.
#[inline]
pub fn write(port: u16, value: u8) {
    // SAFETY: as for `read`.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags)) }
}

/// Reads four bytes.
pub fn read_long(port: u16) -> u32 {
    let value: u32;
    // SAFETY: as for `read`.
    unsafe { asm!("in eax, dx", in("dx") port, out("eax") value, options(nomem, nostack, preserves_flags)) }
    value
}

/// Writes four bytes.
pub fn write_long(port: u16, value: u32) {
    // SAFETY: as for `read`.
    unsafe { asm!("out dx, eax", in("dx") port, in("eax") value, options(nomem, nostack, preserves_flags)) }
}

/// The processor's clock (TSC); in QEMU's virtual clock ns, which are instructions.
#[inline]
pub fn clock() -> u64 {
    // SAFETY: every 64-bit processor has the instruction, and this program does not disable it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Halts forever.
pub fn halt() -> ! {
    loop {
        // SAFETY: no other code waits for this processor.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) }
    }
}

/// A controller's registers.
#[derive(Clone, Copy, Debug)]
pub struct ChannelPorts {
    /// The port of register 0.
    pub first: u16,
}

impl Registers for ChannelPorts {
    #[inline]
    fn read(&mut self, register: u8) -> u8 {
        read(self.first + u16::from(register))
    }

    #[inline]
    fn write(&mut self, register: u8, value: u8) {
        write(self.first + u16::from(register), value);
    }

    /// Marks the moment for the lab's analyzer: canter-io's marker instruction, number 5.
    #[inline]
    fn sends(&mut self) {
        // SAFETY: a no-operation, which accesses no memory.
        unsafe { asm!("nop dword ptr [rax + 0x43414e05]", options(nostack, preserves_flags)) }
    }
}
