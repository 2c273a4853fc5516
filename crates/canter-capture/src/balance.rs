//! Fills the account of a recording from the receiver's counts and the writer's.

use crate::{
    account::{Account, Bus, SCHEMA},
    bus,
    judge::{Counts, judge},
    live::Progress,
    receiver::Report,
};

impl Account {
    /// The account of what was received, before anything is known of the files.
    pub(super) fn of_received(received: &Report) -> Self {
        let mut account = Self::without_verdict(received);
        account.judge(received, 0);
        account
    }

    /// The account of what was received and written.
    pub(super) fn new(received: &Report, written: &Progress) -> Self {
        let mut account = Self::without_verdict(received);
        account.add_written(written);
        let inside = account.buses.iter().map(|bus| bus.seen.abs_diff(bus.placed())).sum();
        account.judge(received, inside);
        account
    }

    /// The account when the disk still stalls: frames that are not known to be in a file count as lost.
    pub(super) fn given_up(received: &Report, written: &Progress) -> Self {
        let mut account = Self::without_verdict(received);
        account.add_written(written);
        let inside = account.buses.iter().map(|bus| bus.placed().saturating_sub(bus.seen)).sum();
        for bus in &mut account.buses {
            bus.disk_lost += bus.seen.saturating_sub(bus.placed());
        }
        account.judge(received, inside);
        account
    }

    fn without_verdict(received: &Report) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            method: Some(received.method),
            ring_bytes: received.ring_bytes,
            started_ns: received.started_ns,
            ended_ns: received.ended_ns,
            clock_steps: received.clock_steps,
            failure: received.error.clone().unwrap_or_default(),
            buses: received.buses.iter().map(|bus| account_of(bus, received)).collect(),
            ..Self::default()
        }
    }

    fn add_written(&mut self, written: &Progress) {
        for (at, bus) in self.buses.iter_mut().enumerate() {
            bus.in_file = written.in_file.get(at).copied().unwrap_or_default();
            bus.beyond = written.beyond.get(at).copied().unwrap_or_default();
            bus.disk_lost = written.lost.get(at).copied().unwrap_or_default();
        }
        self.frames = self.buses.iter().map(|bus| bus.in_file).sum();
        (self.bytes, self.late) = (written.bytes, written.late);
        (self.files, self.deleted) = (written.files.clone(), written.deleted);
        if let Some(error) = &written.error {
            self.failure.clone_from(error);
        }
    }

    fn judge(&mut self, received: &Report, inside: u64) {
        let judgement = judge(&Counts {
            method: received.method,
            buses: &self.buses,
            ring: received.ring,
            backlog_lost: received.backlog_lost,
            inside,
            failure: &self.failure,
        });
        for (bus, judged) in self.buses.iter_mut().zip(&judgement.buses) {
            (bus.ring_lost, bus.doubtful) = (judged.ring_lost, judged.doubtful);
        }
        (self.lost, self.doubtful) = (judgement.lost, judgement.doubtful);
        self.verdict = judgement.verdict;
    }
}

fn account_of(bus: &bus::Bus, received: &Report) -> Bus {
    let tally = &bus.tally;
    let counters = tally.counted.unwrap_or_default();
    let counted = tally.counted.map(|counters| counters.rx_frames);
    let has_own_queue = bus.is_device() || received.method.has_sockets();
    Bus {
        name: bus.name.clone(),
        seen: tally.seen,
        error_frames: tally.errors,
        errors: bus.errors.iter().map(|(&kind, &count)| (kind.to_owned(), count)).collect(),
        filtered: tally.filtered,
        counted,
        uncounted: tally.seen.saturating_sub(counted.unwrap_or(tally.seen)),
        ambiguous: tally.ambiguous,
        sent: if bus.has_uncounted_echo() { counters.tx_frames } else { 0 },
        overrun_events: counters.overruns,
        driver_lost: counters.dropped,
        queue_lost: tally.queue_lost,
        own_lost: has_own_queue.then_some(tally.own_lost),
        is_device: bus.is_device(),
        ..Bus::default()
    }
}
