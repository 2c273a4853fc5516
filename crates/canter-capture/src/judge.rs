//! From the counts of a recording to its losses and its verdict: one function, which touches nothing.

use crate::{
    account::{Bus, Drops},
    lost::Lost,
    verdict::{Cause, Doubt, Fault, Method, Verdict},
};
use std::collections::BTreeSet;

/// All that was counted.
pub struct Counts<'a> {
    pub method: Method,
    /// What each bus's interface, the receiver and the writer have counted.
    pub buses: &'a [Bus],
    pub ring: RingLoss,
    /// Frames lost because a processor's backlog was full, of all interfaces of the machine.
    pub backlog_lost: u64,
    /// Frames of interfaces that nobody could name.
    pub unnamed: u64,
    /// Frames that were received and that neither the writer nor any place of loss has counted.
    pub inside: u64,
    /// Why the recording ended early or stopped writing; empty when it ended on request.
    pub failure: &'a str,
}

/// The frames that a packet ring has lost, by its own count, which does not say of which interface.
#[derive(Clone, Copy, Debug, Default)]
pub struct RingLoss {
    pub frames: u64,
    /// Frames lost before the interfaces' counters were read at the end.
    pub before_end: u64,
    /// The ring also received frames of interfaces that are not recorded.
    pub is_shared: bool,
}

/// What follows from the counts.
pub struct Judgement {
    pub lost: Lost,
    /// How many frames more may be missing without a trace.
    pub doubtful: u64,
    /// What follows for each bus.
    pub buses: Vec<OfBus>,
    pub verdict: Verdict,
}

pub struct OfBus {
    /// Frames lost in the queue between kernel and recorder; `None`: the ring's losses cannot be assigned.
    pub ring_lost: Option<u64>,
    /// Frames that may be missing beyond those that are.
    pub doubtful: u64,
}

/// Computes what was lost where, and the verdict.
pub fn judge(counts: &Counts<'_>) -> Judgement {
    let ring = RingShare::new(counts);
    let unexplained = Unexplained::new(counts.buses, &ring);
    let lost = lost(counts, &ring, unexplained.frames);
    let doubts: Vec<Vec<Doubt>> = counts.buses.iter().map(doubts).collect();
    let doubtful_frames = |doubts: &Vec<Doubt>| doubts.iter().map(|doubt| doubt.frames).sum::<u64>();
    let buses = counts.buses.iter().zip(&doubts).map(|(bus, doubts)| OfBus {
        ring_lost: bus.own_lost.or(ring.lost_of(bus)),
        doubtful: doubtful_frames(doubts),
    });
    let mut buses: Vec<OfBus> = buses.collect();
    let (own, on_ring): (Vec<_>, Vec<_>) =
        counts.buses.iter().zip(&buses).partition(|(bus, _)| bus.own_lost.is_some());
    let sum = |buses: &[(&Bus, &OfBus)]| buses.iter().map(|(_, of_bus)| of_bus.doubtful).sum::<u64>();
    // What the ring has counted beyond what the counters show to be missing is no longer in doubt.
    let of_ring = (ring.missing + sum(&on_ring)).saturating_sub(ring.missing.max(ring.lost));
    let doubtful = sum(&own) + of_ring + ring.maybe_lost + unexplained.doubtful + counts.unnamed;
    for (bus, counted) in buses.iter_mut().zip(counts.buses).filter(|_| unexplained.doubtful > 0) {
        let is_in_doubt = counted.drops == Drops::Unknown;
        bus.doubtful += if is_in_doubt { counted.missing().min(counted.driver_lost) } else { 0 };
    }
    let shared = [(ring.maybe_lost, Cause::SharedRing), (counts.unnamed, Cause::Unnamed)]
        .map(|(frames, cause)| Doubt { bus: None, frames, cause })
        .into_iter()
        .filter(|doubt| doubt.frames > 0);
    let doubts: Vec<Doubt> = doubts.into_iter().flatten().chain(shared).collect();
    let verdict = match (faults(counts, &lost), doubts) {
        (faults, doubts) if faults.is_empty() && doubts.is_empty() => Verdict::Complete,
        (faults, doubts) if faults.is_empty() => Verdict::Ambiguous(doubts),
        (faults, doubts) => {
            let mut causes: BTreeSet<Cause> = doubts.iter().map(|doubt| doubt.cause).collect();
            causes.extend((unexplained.doubtful > 0).then_some(Cause::Dropped));
            Verdict::Incomplete { faults, more: doubtful, causes }
        }
    };
    Judgement { lost, doubtful, buses, verdict }
}

/// Which of the ring's losses are those of the recorded interfaces.
struct RingShare {
    /// Frames that they have counted and that did not come out of the ring.
    missing: u64,
    /// Their frames that the ring has lost.
    lost: u64,
    /// Frames more that the ring has lost, theirs or those of other interfaces.
    maybe_lost: u64,
}

impl RingShare {
    fn new(Counts { buses, ring, .. }: &Counts<'_>) -> Self {
        let on_ring = || buses.iter().filter(|bus| bus.own_lost.is_none());
        let missing = on_ring().map(Bus::missing).sum();
        let lost = match ring {
            _ if buses.iter().any(|bus| bus.counted.is_none()) => ring.frames,
            RingLoss { is_shared: true, .. } => ring.frames.min(missing),
            // After the counters were read it has lost frames that do not belong to the recording.
            _ => ring.frames.min(on_ring().map(Bus::possibly_missing).sum::<u64>().max(ring.before_end)),
        };
        let maybe_lost = if ring.is_shared { ring.frames - lost } else { 0 };
        Self { missing, lost, maybe_lost }
    }

    /// The losses of a bus, if the frames missing on all of them add up to the ring's count.
    fn lost_of(&self, bus: &Bus) -> Option<u64> {
        match (self.lost, self.maybe_lost) {
            (0, 0) => Some(0),
            (lost, 0) if lost == self.missing => Some(bus.missing()),
            _ => None,
        }
    }
}

/// Frames that interfaces have counted, that were not received, and that no queue has counted as lost.
///
/// A full backlog counts a frame in the interface's `rx_dropped` and in the processor's count (`enqueue_to_backlog` in
/// net/core/dev.c). Whether the interface has counted the frame as received, too, depends on its driver. Such a frame is lost
/// once, and explains a missing frame of its own bus only.
#[derive(Debug, Default)]
struct Unexplained {
    /// Frames that no drop explains.
    frames: u64,
    /// Frames more, for which a drop need not be the explanation.
    doubtful: u64,
}

impl Unexplained {
    fn new(buses: &[Bus], ring: &RingShare) -> Self {
        let mut all = Self::default();
        for bus in buses {
            if let Some(own_lost) = bus.own_lost {
                let missing = bus.missing().saturating_sub(own_lost);
                all.add(missing, missing.min(bus.driver_lost), bus.drops);
            }
        }
        // The ring does not say of which bus its losses are.
        let mut left = ring.missing.saturating_sub(ring.lost);
        for drops in [Drops::Counted, Drops::Unknown] {
            let on_ring = buses.iter().filter(|bus| bus.own_lost.is_none() && bus.drops == drops);
            let dropped: u64 = on_ring.map(|bus| bus.missing().min(bus.driver_lost)).sum();
            let explained = left.min(dropped);
            left -= explained;
            all.add(explained, explained, drops);
        }
        all.frames += left;
        all
    }

    /// Adds missing frames of a bus; `dropped` is the greatest number of them that a drop may explain.
    fn add(&mut self, missing: u64, dropped: u64, drops: Drops) {
        self.frames += if drops == Drops::Uncounted { missing } else { missing - dropped };
        self.doubtful += if drops == Drops::Unknown { dropped } else { 0 };
    }
}

fn lost(Counts { buses, backlog_lost, .. }: &Counts<'_>, ring: &RingShare, unaccounted: u64) -> Lost {
    let sum = |count: fn(&Bus) -> u64| buses.iter().map(count).sum::<u64>();
    let own_lost = |of_devices| {
        let buses = buses.iter().filter(|bus| bus.is_device == of_devices);
        buses.filter_map(|bus| bus.own_lost).sum::<u64>()
    };
    let dropped = sum(|bus| bus.driver_lost);
    // A full backlog counts at the interface too; the rest are frames of other networks.
    let is_known = buses.iter().all(|bus| bus.counted.is_some());
    let backlog = if is_known { *backlog_lost.min(&dropped) } else { *backlog_lost };
    Lost {
        overrun_events: sum(|bus| bus.overrun_events),
        driver: dropped.saturating_sub(backlog),
        backlog,
        ring: ring.lost + own_lost(false),
        device: own_lost(true),
        queue: sum(|bus| bus.queue_lost),
        disk: sum(|bus| bus.disk_lost),
        window: sum(|bus| bus.window_lost),
        unaccounted,
    }
}

/// What may hide losses of a bus.
fn doubts(bus: &Bus) -> Vec<Doubt> {
    // Equal counts leave no doubt when no echo came out: all of them would have to make up for as many losses. But a bus that
    // destroys a frame has an error frame in its place.
    let has_uncounted_error = bus.error_frames > 0 && !bus.counts_errors;
    let is_equal = bus.ambiguous == 0 && bus.counted == Some(bus.seen) && !has_uncounted_error;
    let hidden = if is_equal { 0 } else { bus.possibly_missing() - bus.missing() };
    let cause = if bus.ambiguous > 0 { Cause::CloseToLimit } else { Cause::Uncounted };
    let surplus = if bus.is_mixed { (bus.seen, Cause::Reused) } else { (bus.surplus(), Cause::Surplus) };
    [(hidden, cause), surplus]
        .into_iter()
        .filter(|(frames, _)| *frames > 0)
        .map(|(frames, cause)| Doubt { bus: Some(bus.name.clone()), frames, cause })
        .collect()
}

fn faults(counts: &Counts<'_>, lost: &Lost) -> Vec<Fault> {
    let removed = counts.buses.iter().filter(|bus| bus.counted.is_none());
    let removed: Vec<String> = removed.map(|bus| bus.name.clone()).collect();
    let mut faults = Vec::new();
    if lost.overrun_events > 0 {
        faults.push(Fault::Overruns(lost.overrun_events));
    }
    if !removed.is_empty() {
        faults.push(Fault::Removed(removed));
    }
    if lost.frames() > 0 {
        faults.push(Fault::Lost(*lost, counts.method));
    }
    if counts.inside > 0 {
        faults.push(Fault::Inside(counts.inside));
    }
    if faults.is_empty() && !counts.failure.is_empty() {
        faults.push(Fault::Failed(counts.failure.to_owned()));
    }
    faults
}

#[cfg(test)]
#[path = "judge/tests.rs"]
mod tests;
