//! How long a thread waits, and how many threads do.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

/// When waiting ends, if ever.
#[derive(Clone, Copy)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    pub fn after(timeout: Option<f64>) -> Self {
        Self(timeout.map(|timeout| Instant::now() + seconds(timeout)))
    }

    pub fn left(self) -> Option<Duration> {
        self.0.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }
}

/// Counts a thread that waits, for as long as it does.
pub struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    pub fn on(count: &'a AtomicUsize) -> Self {
        // Before the thread checks the queue, so that a thread that fills the queue afterwards sees the count.
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A timeout as a duration, limited to the clock's range; negative becomes 0.
pub fn seconds(timeout: f64) -> Duration {
    const LONGEST: Duration = Duration::from_secs(1 << 30);
    if timeout.is_nan() {
        return Duration::ZERO;
    }
    Duration::try_from_secs_f64(timeout.max(0.0)).unwrap_or(LONGEST).min(LONGEST)
}
