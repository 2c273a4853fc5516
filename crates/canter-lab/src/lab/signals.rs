//! Signals that end the guest instead of this program, and the one that says that the terminal has another size.

use super::lab_failure;
use canter_cli::failure::Result;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// Until this is dropped, SIGINT, SIGTERM and SIGHUP end the guest instead of this process.
pub struct Signals {
    caught: Arc<AtomicUsize>,
    resized: Arc<AtomicBool>,
    registered: Vec<signal_hook::SigId>,
}

impl Signals {
    pub fn catch() -> Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};
        let (caught, resized) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let mut registered = Vec::new();
        let failed = |signal, e| lab_failure(format!("signal {signal}: {e}"));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let id = signal_hook::flag::register_usize(signal, Arc::clone(&caught), signal as usize)
                .map_err(|e| failed(signal, e))?;
            registered.push(id);
        }
        let id =
            signal_hook::flag::register(SIGWINCH, Arc::clone(&resized)).map_err(|e| failed(SIGWINCH, e))?;
        registered.push(id);
        Ok(Self { caught, resized, registered })
    }

    /// The state after this signal, for tests.
    #[cfg(test)]
    pub fn already(signal: i32) -> Self {
        let caught = Arc::new(AtomicUsize::new(signal as usize));
        Self { caught, resized: Arc::default(), registered: Vec::new() }
    }

    /// The number of the signal received.
    pub fn caught(&self) -> Option<i32> {
        match self.caught.load(Ordering::Relaxed) {
            0 => None,
            signal => i32::try_from(signal).ok(),
        }
    }

    /// Whether the terminal has got another size since the last call.
    pub fn resized(&self) -> bool {
        self.resized.swap(false, Ordering::Relaxed)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}
