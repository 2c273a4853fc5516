//! Signals that end the guest instead of this program.

use super::lab_failure;
use canter_cli::failure::Result;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Until this is dropped, SIGINT, SIGTERM and SIGHUP end the guest instead of this process.
pub struct Signals {
    caught: Arc<AtomicUsize>,
    registered: Vec<signal_hook::SigId>,
}

impl Signals {
    pub fn catch() -> Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let caught = Arc::new(AtomicUsize::new(0));
        let mut registered = Vec::new();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let id = signal_hook::flag::register_usize(signal, Arc::clone(&caught), signal as usize)
                .map_err(|e| lab_failure(format!("signal {signal}: {e}")))?;
            registered.push(id);
        }
        Ok(Self { caught, registered })
    }

    /// The state after this signal, for tests.
    #[cfg(test)]
    pub fn already(signal: i32) -> Self {
        Self { caught: Arc::new(AtomicUsize::new(signal as usize)), registered: Vec::new() }
    }

    /// The number of the signal received.
    pub fn caught(&self) -> Option<i32> {
        match self.caught.load(Ordering::Relaxed) {
            0 => None,
            signal => i32::try_from(signal).ok(),
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}
