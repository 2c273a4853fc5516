//! Restartable sequences (linux/rseq.h): the C library (glibc from 2.35 on) registers every thread with the kernel, which then
//! writes the thread's processor into its memory each time that it continues in user space after a switch or a signal. A
//! thread that moves frames sleeps for each of them, and uses none of it: it leaves, which saves 183
//! instructions a frame in canchar's gateways on Linux 6.12.

use std::ffi::CStr;

/// What the C library registers, at least, and the unit in which it registers more: `struct rseq` of linux/rseq.h.
const AREA_BYTES: usize = 32;
/// `RSEQ_FLAG_UNREGISTER` of linux/rseq.h.
const UNREGISTER: libc::c_int = 1;
/// `RSEQ_SIG` of the C library's sys/rseq.h, by architecture.
#[cfg(target_arch = "x86_64")]
const SIGNATURE: u32 = 0x5305_3053;
#[cfg(target_arch = "aarch64")]
const SIGNATURE: u32 = 0xd428_bc00;

/// Ends the calling thread's registration, if the C library has made one. sched_getcpu(3) then asks the kernel. After an
/// error the thread stays registered, which costs instructions and nothing else.
pub fn leave() {
    let (offset, bytes) = (variable::<isize>(c"__rseq_offset"), variable::<u32>(c"__rseq_size"));
    let Some((offset, bytes)) = offset.zip(bytes) else { return };
    if bytes == 0 {
        return; // switched off by GLIBC_TUNABLES
    }
    let area = thread_pointer().wrapping_add_signed(offset);
    let bytes = (bytes as usize).max(AREA_BYTES).next_multiple_of(AREA_BYTES);
    // SAFETY: the kernel compares the address, the size and the signature with what it has registered, answers EINVAL or
    // EPERM when they differ, and otherwise writes its initial values there. linux/rseq.h.
    unsafe { libc::syscall(libc::SYS_rseq, area, bytes, UNREGISTER, SIGNATURE) };
}

/// The value of a variable that the C library exports; `None`: an older or another library.
fn variable<T: Copy>(name: &CStr) -> Option<T> {
    // SAFETY: the name ends with a NUL. dlsym(3).
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if address.is_null() {
        return None;
    }
    // SAFETY: the library's sys/rseq.h declares the variable with this type, and it never changes after the start.
    Some(unsafe { address.cast::<T>().read() })
}

/// The address to which the C library's offsets of thread-local variables are added.
fn thread_pointer() -> usize {
    let pointer: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: System V ABI for x86-64: the first word of the thread control block is its address.
    unsafe {
        std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register that user space may read.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The processor that the kernel has written into the thread's area; negative: the thread is not registered.
    fn registered_processor() -> Option<i32> {
        let offset = variable::<isize>(c"__rseq_offset")?;
        let area = thread_pointer().wrapping_add_signed(offset);
        // SAFETY: `cpu_id`, the second word of the area, which the C library keeps as long as the thread.
        Some(unsafe { ((area + 4) as *const i32).read_volatile() })
    }

    #[test]
    #[cfg_attr(miri, ignore = "calls the C library")]
    fn a_thread_that_has_left_is_not_registered_and_another_one_is() {
        if registered_processor().is_none_or(|processor| processor < 0) {
            return; // a C library that registers nothing, or a kernel without restartable sequences
        }
        std::thread::spawn(|| {
            leave();
            assert!(registered_processor().unwrap() < 0);
            // SAFETY: no memory is passed. sched_getcpu(3).
            assert!(unsafe { libc::sched_getcpu() } >= 0);
            leave();
        })
        .join()
        .unwrap();
        assert!(registered_processor().unwrap() >= 0);
    }
}
