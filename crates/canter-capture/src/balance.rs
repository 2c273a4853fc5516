//! Computes the account of a recording from the receiver's counts and the writer's.

use crate::{
    account::{Account, Bus, SCHEMA},
    bus,
    live::Progress,
    receiver::Report,
};

impl Account {
    /// Creates an account from the receiver's counts; [`add_written`](Self::add_written) adds the writer's part.
    pub(super) fn new(received: &Report) -> Self {
        let buses: Vec<Bus> = received.buses.iter().map(bus).collect();
        let mut account = Self {
            schema: SCHEMA.to_owned(),
            method: received.method.clone(),
            ring_bytes: received.ring_bytes,
            started_ns: received.started_ns,
            ended_ns: received.ended_ns,
            clock_steps: received.clock_steps,
            failure: received.error.clone().unwrap_or_default(),
            buses,
            ..Self::default()
        };
        let own = |of_device: bool| {
            let buses = received.buses.iter().filter(|bus| bus.is_device() == of_device);
            buses.map(|bus| bus.tally.own_lost).sum::<u64>()
        };
        account.lost.device = own(true);
        account.lost.ring = own(false) + account.of_recorded_buses(received);
        account.lost.backlog = received.backlog_lost;
        account.close();
        account
    }

    /// The frames of recorded interfaces that the ring has lost. It also loses frames of other interfaces, and after the
    /// end of the counting; no more than the interfaces miss can be theirs.
    fn of_recorded_buses(&self, received: &Report) -> u64 {
        let Report { ring_lost, ring_lost_before_end, others, .. } = *received;
        if ring_lost == 0 || self.buses.iter().any(|bus| bus.counted.is_none()) {
            return ring_lost;
        }
        let possible: u64 = self.buses.iter().filter(|bus| !bus.own_queue).map(Bus::possibly_missing).sum();
        let least = if others { 0 } else { ring_lost_before_end };
        ring_lost.min(possible.max(least))
    }

    /// Adds the frames that the writer wrote and lost, and computes the verdict.
    pub(super) fn add_written(&mut self, written: &Progress) {
        for (at, bus) in self.buses.iter_mut().enumerate() {
            bus.in_file = written.in_file.get(at).copied().unwrap_or_default();
            bus.beyond = written.beyond.get(at).copied().unwrap_or_default();
            bus.disk_lost = written.lost.get(at).copied().unwrap_or_default();
        }
        (self.bytes, self.late) = (written.bytes, written.late);
        (self.files, self.deleted) = (written.files.clone(), written.deleted);
        if let Some(error) = &written.error {
            self.failure.clone_from(error);
        }
        self.close();
    }

    /// Ends the account while the disk still stalls: frames not known to be in a file count as lost.
    pub(super) fn give_up(&mut self, written: &Progress) {
        self.add_written(written);
        for bus in &mut self.buses {
            let left = bus.seen.saturating_sub(bus.filtered + bus.queue_lost + bus.beyond + bus.in_file);
            bus.disk_lost = bus.disk_lost.max(left);
        }
        if self.failure.is_empty() {
            self.failure = "ended before the disk had all frames".to_owned();
        }
        self.close();
    }
}

fn bus(bus: &bus::Bus) -> Bus {
    let tally = &bus.tally;
    let counters = tally.counted.unwrap_or_default();
    let counted = tally.counted.map(|counters| counters.rx_frames);
    Bus {
        name: bus.name.clone(),
        in_file: 0,
        seen: tally.seen,
        error_frames: tally.errors,
        errors: bus.errors.iter().map(|(&kind, &count)| (kind.to_owned(), count)).collect(),
        filtered: tally.filtered,
        beyond: 0,
        counted,
        uncounted: tally.seen.saturating_sub(counted.unwrap_or(tally.seen)),
        ambiguous: tally.ambiguous,
        sent: if bus.has_uncounted_echo() { counters.tx_frames } else { 0 },
        doubtful: 0,
        overrun_events: counters.rx_over_errors + counters.rx_fifo_errors + counters.rx_missed,
        driver_lost: counters.rx_dropped,
        ring_lost: Some(tally.own_lost),
        queue_lost: tally.queue_lost,
        disk_lost: 0,
        own_queue: bus.is_device(),
    }
}
