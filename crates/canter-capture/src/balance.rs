//! Fills the account of a recording from the receiver's counts and the writer's.

use crate::{
    account::{Account, Alignment, Bus, Drops, SCHEMA, SystemClock},
    aligner::{Aligner, KERNEL_BOUND_NS},
    bus,
    judge::{Counts, judge},
    live::Progress,
    receiver::Report,
    verdict::{Fault, Verdict},
};
use canter_io::{clock, interface::Kind};
use std::collections::BTreeSet;

impl Account {
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

    /// The account when the receiver has ended with its counts: what is in the files, and nothing of what is not.
    pub(super) fn of_written(written: &Progress, failure: &str) -> Self {
        let names = written.names.iter().map(|name| Bus { name: name.clone(), ..Bus::default() });
        let mut account = Self { schema: SCHEMA.to_owned(), buses: names.collect(), ..Self::default() };
        account.add_written(written);
        account.failure = failure.to_owned();
        let faults = vec![Fault::Failed(failure.to_owned())];
        account.verdict = Verdict::Incomplete { faults, more: 0, causes: BTreeSet::new() };
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
            system_clock: clock::discipline().map(|said| SystemClock {
                synchronized: said.is_synchronized,
                error_ns: said.error_ns,
                error_max_ns: said.error_max_ns,
                programs: clock_programs(),
            }),
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
            bus.outside = written.outside.get(at).copied().unwrap_or_default();
            bus.window_lost = written.window_lost.get(at).copied().unwrap_or_default();
        }
        self.frames = self.buses.iter().map(|bus| bus.in_file).sum();
        (self.bytes, self.late) = (written.bytes, written.late);
        (self.files, self.deleted) = (written.files.clone(), written.deleted);
        self.triggered.clone_from(&written.triggered);
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
            unnamed: received.unnamed,
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
        alignment: bus.aligner.as_ref().map(|aligner| alignment_of(aligner, bus)),
        own_lost: has_own_queue.then_some(tally.own_lost),
        is_device: bus.is_device(),
        is_mixed: bus.is_mixed,
        drops: match bus.interface.kind {
            Kind::Vcan => Drops::Counted,
            Kind::Vxcan | Kind::Canchar => Drops::Uncounted,
            _ => Drops::Unknown,
        },
        counts_errors: !bus.has_uncounted_echo(),
        ..Bus::default()
    }
}

/// Programs that keep clocks; the kernel has at most 15 characters of a name (`comm` in proc(5)).
const CLOCK_PROGRAMS: [(&str, &str); 6] = [
    ("chronyd", "chronyd"),
    ("ntpd", "ntpd"),
    ("phc2sys", "phc2sys"),
    ("ptp4l", "ptp4l"),
    ("systemd-timesyn", "systemd-timesyncd"),
    ("timemaster", "timemaster"),
];

/// The programs that keep clocks and run now.
fn clock_programs() -> Vec<String> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = processes.filter_map(|process| std::fs::read_to_string(process.path().join("comm")).ok());
    let running: BTreeSet<String> = names.map(|name| name.trim_end().to_owned()).collect();
    let is_running = |(comm, _): &(&str, &str)| running.contains(*comm);
    CLOCK_PROGRAMS.into_iter().filter(is_running).map(|(_, name)| name.to_owned()).collect()
}

fn alignment_of(aligner: &Aligner, bus: &bus::Bus) -> Alignment {
    let (bound_ns, bound_max_ns) = aligner.bounds_ns();
    Alignment {
        frames: aligner.frames(),
        drift_ppb: aligner.drift_ppb(),
        bound_ns,
        bound_max_ns,
        bounds: bus.bounds.spans(),
        kernel_bound_ns: KERNEL_BOUND_NS,
        restarts: aligner.restarts(),
    }
}
