//! What other threads say to a route while it works, and what it tells them: no lock on the way of a frame unless
//! there is something to say.

use crate::rules::{counts::Counts, engine::Engine};
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

/// One route's, shared between its thread and the others.
#[derive(Clone, Default)]
pub struct Control(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// New rules wait.
    renewing: AtomicBool,
    engine: Mutex<Option<Engine>>,
    /// Somebody reads the counts from time to time.
    watched: AtomicBool,
    /// Somebody wants to know whether it still works.
    asked: AtomicBool,
    counts: Mutex<Counts>,
    /// The output is off the bus.
    off_bus: AtomicBool,
}

impl Control {
    /// A control whose counts are kept fresh for others if they are `watched`.
    pub fn new(watched: bool) -> Self {
        let control = Self::default();
        control.0.watched.store(watched, Ordering::Relaxed);
        control
    }

    /// Hands over rules, which apply from the next batch on.
    pub fn hand_over(&self, engine: Engine) {
        *self.0.engine.lock().unwrap_or_else(PoisonError::into_inner) = Some(engine);
        self.0.renewing.store(true, Ordering::Release); // pairs with the Acquire in renew
    }

    /// The route: takes new rules if there are any; what the old ones counted stays in the counts.
    #[inline]
    pub fn renew(&self, engine: &mut Engine, counts: &mut Counts) {
        if !self.0.renewing.load(Ordering::Acquire) {
            return;
        }
        self.0.renewing.store(false, Ordering::Relaxed);
        if let Some(new) = self.0.engine.lock().unwrap_or_else(PoisonError::into_inner).take() {
            counts.take(&mut engine.outcome);
            *engine = new;
        }
    }

    /// The route: shows its counts to whoever watches. Skips it when they are being read at this moment.
    #[inline]
    pub fn publish(&self, counts: &Counts, engine: Option<&Engine>) {
        if !self.0.watched.load(Ordering::Relaxed) {
            return;
        }
        if let Ok(mut shared) = self.0.counts.try_lock() {
            *shared = engine.map_or(*counts, |engine| counts.with(&engine.outcome));
        }
    }

    /// Says whether the output is off the bus.
    pub fn set_off_bus(&self, off: bool) {
        self.0.off_bus.store(off, Ordering::Relaxed);
    }

    /// The route: whether what it sends would be thrown away.
    #[inline]
    pub fn is_off_bus(&self) -> bool {
        self.0.off_bus.load(Ordering::Relaxed)
    }

    /// Asks the route whether it still works.
    pub fn ask(&self) {
        self.0.asked.store(true, Ordering::Relaxed);
    }

    /// Whether it has come by since it was asked.
    pub fn has_answered(&self) -> bool {
        !self.0.asked.load(Ordering::Relaxed)
    }

    /// The route: it has come by, and shows its counts to whoever asked.
    #[inline]
    pub fn answer(&self, counts: &Counts, engine: Option<&Engine>) {
        if self.0.asked.load(Ordering::Relaxed) {
            *self.0.counts.lock().unwrap_or_else(PoisonError::into_inner) =
                engine.map_or(*counts, |engine| counts.with(&engine.outcome));
            self.0.asked.store(false, Ordering::Relaxed);
        }
    }

    /// What was last shown.
    pub fn counts(&self) -> Counts {
        *self.0.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
