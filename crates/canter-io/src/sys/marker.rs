//! Marker instructions for a program outside the machine, such as the lab's analyzer: no-operations with a number. A processor
//! ignores them, and an emulator's plugin sees them. Each is one instruction, on x86-64 and arm64 only.

/// A number that no other program is expected to use, with room for a byte.
#[cfg(target_arch = "x86_64")]
const MARKER: i32 = 0x4341_4e00;

/// The first of the highest numbers of `hint`, which Arm has not allocated: marker 1 is the one behind it.
#[cfg(target_arch = "aarch64")]
const HINT: i32 = 112;

/// The number by which a driver in a program says that it begins to send a frame.
pub const SEND: u8 = 5;

/// Whether programs on this machine have marker instructions.
pub const AVAILABLE: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Executes the marker instruction with this number, 1 to 15.
#[inline(always)]
pub fn mark<const NUMBER: u8>() {
    const { assert!(0 < NUMBER && NUMBER < 16) };
    #[cfg(target_arch = "x86_64")]
    // SAFETY: Intel's manual, NOP: "performs no operation"; "the multi-byte NOP does not alter the content of a register and will
    // not issue a memory operation".
    unsafe {
        std::arch::asm!(
            "nop dword ptr [rax + {number}]",
            number = const MARKER + NUMBER as i32,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: Arm Architecture Reference Manual, HINT: unallocated numbers "behave as a NOP".
    unsafe {
        std::arch::asm!("hint #{number}", number = const HINT + NUMBER as i32, options(nostack, preserves_flags));
    }
}
