//! Whether this process opened a bus, or was forked from the one that did. The two would share queues and descriptors, and
//! each would lose what the other receives.

use canter_io::Error;
use std::{
    io,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

/// How many forks lie between the first process and this one. Cheaper to read than the process's number.
static FORKS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The process that opened a bus.
pub struct Process(u32);

impl Process {
    /// This one.
    pub fn this() -> io::Result<Self> {
        static REGISTERED: OnceLock<i32> = OnceLock::new();
        // SAFETY: the handler touches one atomic number. pthread_atfork(3).
        match REGISTERED.get_or_init(|| unsafe { libc::pthread_atfork(None, None, Some(count_fork)) }) {
            0 => Ok(Self(FORKS.load(Ordering::Relaxed))),
            errno => Err(io::Error::from_raw_os_error(*errno)),
        }
    }

    /// An error in a process that was forked since.
    pub fn check(&self) -> Result<(), Error> {
        if FORKS.load(Ordering::Relaxed) == self.0 {
            return Ok(());
        }
        let reason = io::Error::other("it was opened before this process was forked");
        Err(Error::new("bus", "use", reason).hint("open it in this process"))
    }
}
