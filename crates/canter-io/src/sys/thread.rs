//! Where and how urgently a thread runs, and how it is interrupted.

use rustix::{
    mm::{MlockAllFlags, mlockall},
    thread::{CpuSet, sched_setaffinity, set_current_timer_slack},
};
use std::{
    io,
    num::NonZeroU64,
    os::unix::thread::JoinHandleExt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

/// Tells the processor that a loop waits: a sibling thread or, in a virtual clock, another processor may run.
///
/// On arm64 `yield`, as in Linux: `hint::spin_loop` is a barrier there, in which an emulator sees no hint.
#[inline(always)]
pub fn relax() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: Arm Architecture Reference Manual, YIELD: a hint, which changes no register.
    unsafe {
        std::arch::asm!("yield", options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "aarch64"))]
    std::hint::spin_loop();
}

/// Keeps the calling thread on one processor.
///
/// # Errors
/// `EINVAL` when there is no such processor.
pub fn pin(processor: usize) -> io::Result<()> {
    if processor >= CpuSet::MAX_CPU {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut set = CpuSet::new();
    set.set(processor);
    Ok(sched_setaffinity(None, &set)?)
}

/// Runs the calling thread, and threads it starts later, under SCHED_FIFO at `priority` (1…99).
///
/// # Errors
/// `EPERM` without CAP_SYS_NICE.
pub fn set_realtime(priority: u8) -> io::Result<()> {
    // struct sched_param of linux/sched/types.h. musl's has more members, and its sched_setscheduler() only answers ENOSYS.
    let parameter = libc::c_int::from(priority);
    // SAFETY: the parameter outlives the call. sched_setscheduler(2).
    let answer =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const parameter) };
    super::check(answer as libc::c_int).map(drop)
}

/// If the calling thread runs under SCHED_FIFO, gives it and the threads that it starts later the lowest priority of
/// SCHED_FIFO: it moves no frames, and must not delay threads that do.
///
/// # Errors
/// The error of the kernel.
pub fn stand_back() -> io::Result<()> {
    const LOWEST: u8 = 1;
    // SAFETY: no memory is passed; 0 is the calling thread. sched_getscheduler(2), which musl does not call.
    let policy = super::check(unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) } as libc::c_int)?;
    // Children may inherit the policy with this flag or without.
    if policy & !libc::SCHED_RESET_ON_FORK == libc::SCHED_FIFO { set_realtime(LOWEST) } else { Ok(()) }
}

/// Lets the calling thread's sleeps end on time: the kernel may otherwise add 50 µs to save wake-ups. No matter under
/// SCHED_FIFO, where they are never prolonged.
///
/// # Errors
/// The error of prctl(2).
pub fn wake_on_time() -> io::Result<()> {
    // prctl(2), PR_SET_TIMERSLACK: "Each thread has two associated timer slack values".
    Ok(set_current_timer_slack(Some(NonZeroU64::MIN))?) // 1 ns
}

/// Ends the calling thread's registration for restartable sequences, where the C library has made one: the kernel then
/// writes nothing into its memory each time that it continues after a sleep. For threads that sleep for each frame.
pub fn leave_restartable_sequences() {
    #[cfg(all(target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
    super::rseq::leave();
}

/// Locks all memory of the process, present and future, so that no page fault delays it.
///
/// # Errors
/// `EPERM` without CAP_IPC_LOCK, `ENOMEM` past RLIMIT_MEMLOCK.
pub fn lock_memory() -> io::Result<()> {
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)?)
}

/// The signal that interrupts a worker's blocking call; its handler does nothing.
const INTERRUPT: libc::c_int = libc::SIGUSR1;

/// How long a worker may take to notice before it is interrupted again: a signal that comes between its look at the
/// flag and its system call would otherwise be missed.
const INTERRUPT_AGAIN: Duration = Duration::from_millis(5);

/// A thread that moves frames until [`stop`](Self::stop), which also interrupts its blocking calls.
#[derive(Debug)]
pub struct Worker<T> {
    thread: JoinHandle<T>,
    stop: Arc<AtomicBool>,
}

impl<T: Send + 'static> Worker<T> {
    /// Starts `work`, which looks at the flag between system calls and returns soon after it is set.
    ///
    /// # Errors
    /// When the thread cannot be started or the signal handler cannot be installed.
    pub fn start(name: &str, work: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> io::Result<Self> {
        handle_interrupt()?;
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || work(&flag))?;
        Ok(Self { thread, stop })
    }

    /// Whether it has ended without [`stop`](Self::stop).
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Interrupts its blocking call once, so that its loop continues.
    pub fn interrupt(&self) {
        // SAFETY: the thread is not joined before `self` is gone, so its handle is valid. pthread_kill(3).
        unsafe { libc::pthread_kill(self.thread.as_pthread_t() as libc::pthread_t, INTERRUPT) };
    }

    /// Requests its end, interrupts its blocking call, waits for its end, and returns its result.
    ///
    /// # Panics
    /// With the worker's panic, if it had one.
    pub fn stop(self) -> T {
        self.stop.store(true, Ordering::Release); // pairs with the worker's Acquire load
        while !self.thread.is_finished() {
            self.interrupt();
            std::thread::sleep(INTERRUPT_AGAIN);
        }
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn handle_interrupt() -> io::Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: an all-zero sigaction is a valid value: no flags (so no SA_RESTART), an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler does nothing, so it is async-signal-safe. sigaction(2).
    super::check(unsafe { libc::sigaction(INTERRUPT, &action, std::ptr::null_mut()) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "system calls")]
    fn a_worker_that_blocks_for_ever_stops_when_told() {
        let (begin, begun) = std::sync::mpsc::channel();
        let worker = Worker::start("sleeper", move |stop| {
            begin.send(()).unwrap();
            while !stop.load(Ordering::Acquire) {
                super::super::clock::sleep_until_ns(u64::MAX / 4);
            }
        })
        .unwrap();
        begun.recv().unwrap();
        std::thread::sleep(Duration::from_millis(20)); // it is asleep by now, most likely
        assert!(!worker.is_finished());
        worker.stop();
    }
}
