//! Ctrl-C, as a flag for loops.

use crate::failure::{self, Failure};
use std::sync::{Arc, atomic::AtomicBool};

/// A flag that SIGINT and SIGTERM set.
pub fn interrupt_flag() -> failure::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&flag))
            .map_err(|error| Failure::failed(format!("signals: {error}")))?;
    }
    Ok(flag)
}
