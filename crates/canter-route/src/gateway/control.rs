//! Communication between a route's thread and other threads: new rules, bus-off, counts and a liveness check. The route
//! takes a lock only when there is new data.

use crate::rules::{counts::Counts, engine::Engine};
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

/// The control of one route, shared between its thread and others.
#[derive(Clone, Default)]
pub struct Control(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// `engine` has new rules.
    has_new_rules: AtomicBool,
    engine: Mutex<Option<Engine>>,
    /// The route publishes its counts after each batch.
    publishes: AtomicBool,
    /// A liveness check waits for the route's answer.
    asked: AtomicBool,
    counts: Mutex<Counts>,
    /// The output is bus-off.
    bus_off: AtomicBool,
}

impl Control {
    /// A control; with `publishes`, the route updates [`Self::counts`] after each batch.
    pub fn new(publishes: bool) -> Self {
        let control = Self::default();
        control.0.publishes.store(publishes, Ordering::Relaxed);
        control
    }

    /// Replaces the rules from the next batch on.
    pub fn set_rules(&self, engine: Engine) {
        *self.0.engine.lock().unwrap_or_else(PoisonError::into_inner) = Some(engine);
        self.0.has_new_rules.store(true, Ordering::Release); // pairs with the Acquire in renew
    }

    /// Called by the route: takes new rules, if any, which inherit from the old ones, and adds the outcome of the old rules
    /// to `counts`.
    #[inline]
    pub fn renew(&self, engine: &mut Engine, counts: &mut Counts) {
        if !self.0.has_new_rules.load(Ordering::Acquire) {
            return;
        }
        self.0.has_new_rules.store(false, Ordering::Relaxed);
        if let Some(new) = self.0.engine.lock().unwrap_or_else(PoisonError::into_inner).take() {
            counts.take(&mut engine.outcome);
            let mut old = std::mem::replace(engine, new);
            engine.inherit(&mut old);
        }
    }

    /// Called by the route: publishes its counts, unless another thread is reading them now.
    #[inline]
    pub fn publish(&self, counts: &Counts, engine: Option<&Engine>) {
        if !self.0.publishes.load(Ordering::Relaxed) {
            return;
        }
        if let Ok(mut shared) = self.0.counts.try_lock() {
            *shared = engine.map_or(*counts, |engine| counts.with_outcome(&engine.outcome));
        }
    }

    /// Sets whether the output is bus-off.
    pub fn set_bus_off(&self, bus_off: bool) {
        self.0.bus_off.store(bus_off, Ordering::Relaxed);
    }

    /// Called by the route: whether the output is bus-off, so that the kernel would discard frames.
    #[inline]
    pub fn is_bus_off(&self) -> bool {
        self.0.bus_off.load(Ordering::Relaxed)
    }

    /// Starts a liveness check of the route.
    pub fn ask(&self) {
        self.0.asked.store(true, Ordering::Relaxed);
    }

    /// Whether the route has answered the liveness check.
    pub fn has_answered(&self) -> bool {
        !self.0.asked.load(Ordering::Relaxed)
    }

    /// Called by the route: answers a liveness check with its counts.
    #[inline]
    pub fn answer(&self, counts: &Counts, engine: Option<&Engine>) {
        if self.0.asked.load(Ordering::Relaxed) {
            *self.0.counts.lock().unwrap_or_else(PoisonError::into_inner) =
                engine.map_or(*counts, |engine| counts.with_outcome(&engine.outcome));
            self.0.asked.store(false, Ordering::Relaxed);
        }
    }

    /// The counts that the route published last.
    pub fn counts(&self) -> Counts {
        *self.0.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
