//! The kernel's gateway, `can-gw`: its jobs exist while this command runs.

use super::{
    detached::{self, Detached},
    kind::{Ended, Kind, Place, Refusal, Request},
    refusal,
};
use crate::rules::{counts::Counts, jobs};
use canter_cli::failure;
use canter_io::{
    Interface,
    method::Capabilities,
    netlink::can_gw::{self, CanGateway, Job, JobCounters},
};

pub const CAN_GW: Kind = Kind {
    name: "can-gw",
    paper_name: "kernel",
    about: "the kernel's gateway: works without a process",
    example: "in the kernel",
    pairs: false,
    place: Place::Kernel,
    capabilities: Capabilities { fd: true, batch: false, origin: false },
    devices: false,
    rules_apply: true,
    waits_for_interfaces: false, // canter-rules.service does
    takes_hops: true,
    right: None,
    check: || Ok(can_gw::available()?),
    check_between,
    refuses: &[
        Refusal {
            when: refusal::several_filters_or_error_frames,
            reason: "a job has one filter and forwards no error frames (give one filter, or use a user-space pair)",
        },
        Refusal {
            when: refusal::filter_beside_rules,
            reason: "--filter cannot be combined with --rules (add it to the file, or use a user-space pair)",
        },
        Refusal {
            when: refusal::backlog,
            reason: "it drops frames while the output is full (use a user-space pair)",
        },
        Refusal {
            when: refusal::stats_or_waiting,
            reason: "--stats and --wait-for-interface need a user-space pair (canter rules list prints the counters)",
        },
    ],
    run: |request| detached::run(request, Jobs::open),
};

fn check_between(from: &Interface, to: &Interface) -> failure::Result<()> {
    if let Some(other) = [from, to].into_iter().find(|one| !one.has_sockets()) {
        let reason = "the kernel's gateway supports network interfaces only (use a user-space pair)";
        return Err(CAN_GW.unable(format!("{}: {reason}", other.name)));
    }
    Ok(can_gw::available()?)
}

/// The jobs of all directions.
struct Jobs {
    gateways: Vec<CanGateway>,
    /// Each with its direction's number.
    jobs: Vec<(usize, Job)>,
}

impl Jobs {
    fn open(request: &Request<'_>) -> failure::Result<Self> {
        can_gw::available()?;
        // All rules are checked before the first job works.
        let jobs = jobs(request)?;
        let gateways = CanGateway::open_all(jobs.iter().map(|(_, job)| job.clone()).collect())?;
        Ok(Self { gateways, jobs })
    }
}

/// A job's counters since its start. The kernel's have 32 bits: on a full bus they wrap within three days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    handled: u64,
    dropped: u64,
    deleted: u64,
    last: JobCounters,
}

impl Progress {
    /// Adds what has been counted since the last call, at most 2³² − 1 of each.
    fn note(&mut self, now: JobCounters) {
        self.handled += u64::from(now.handled.wrapping_sub(self.last.handled));
        self.dropped += u64::from(now.dropped.wrapping_sub(self.last.dropped));
        self.deleted += u64::from(now.deleted.wrapping_sub(self.last.deleted));
        self.last = now;
    }
}

impl Detached for Jobs {
    /// The counters of each job.
    type Progress = Vec<Progress>;

    const ENDING: &'static str = "deleting its jobs";

    /// The kernel deletes jobs with their interfaces; it keeps them when an interface goes down.
    fn check(&self, progress: &mut Self::Progress) -> Result<(), String> {
        progress.resize(self.gateways.len(), Progress::default());
        let now = CanGateway::counters_of(&self.gateways).map_err(|error| error.to_string())?;
        for ((gateway, counters), now) in self.gateways.iter().zip(progress).zip(now) {
            counters.note(now.ok_or_else(|| gateway.gone().to_string())?);
        }
        Ok(())
    }

    fn status(&self, progress: &Self::Progress) -> String {
        let handled = progress.iter().map(|counters| counters.handled).sum::<u64>();
        format!("{handled} frames forwarded by can-gw")
    }

    fn end(self, mut progress: Self::Progress, directions: usize) -> failure::Result<(Vec<Counts>, Ended)> {
        progress.resize(self.gateways.len(), Progress::default());
        let mut counts = vec![Counts::default(); directions];
        let last = CanGateway::counters_of(&self.gateways)?;
        let gone = self.gateways.iter().zip(&last).find(|(_, last)| last.is_none());
        let gone = gone.map(|(gateway, _)| gateway.gone());
        let deleted = CanGateway::delete_all(self.gateways);
        for ((last, mut progress), (direction, job)) in last.into_iter().zip(progress).zip(&self.jobs) {
            // The kernel deletes a job's counters with the job.
            last.into_iter().for_each(|last| progress.note(last));
            add(&mut counts[*direction], job, progress);
        }
        let failed = gone.or(deleted.err());
        Ok((counts, failed.map_or(Ok(()), |error| Err(error.to_string()))))
    }
}

/// Adds a job's counters. can-gw does not count frames that its filter excludes.
fn add(counts: &mut Counts, job: &Job, counters: Progress) {
    counts.transmitted += counters.handled;
    counts.drop_as(counters.dropped, |drops| &mut drops.no_room);
    if only_hops_delete(job) {
        counts.filtered += counters.deleted;
    } else {
        counts.drop_as(counters.deleted, |drops| &mut drops.too_long);
    }
    counts.received = counts.transmitted + counts.filtered + counts.dropped;
}

/// Whether the frames that a job deletes have reached its hop limit; otherwise they are too long for the job's change.
/// Hop limits work as intended: in two directions over a vcan, each job receives the frames of the other.
fn only_hops_delete(job: &Job) -> bool {
    let changes_len = [&job.and, &job.or, &job.xor, &job.set].iter().any(|change| change.len.is_some());
    job.hops_max.is_some() && !changes_len
}

/// The jobs of all directions, each with its direction's number.
fn jobs(request: &Request<'_>) -> failure::Result<Vec<(usize, Job)>> {
    let filters = request.filters();
    let mut all = Vec::new();
    for (at, direction) in request.directions.iter().enumerate() {
        let (from, to) = (Interface::find(&direction.from)?, Interface::find(&direction.to)?);
        check_between(&from, &to)?;
        let mut route = direction.rules();
        if direction.policy.is_none() {
            route.policy.rules[0].filters = filters.list.clone();
        }
        let jobs = jobs::route_jobs(&route, &from, &to)
            .map_err(|faults| CAN_GW.inexpressible(direction, &route.policy, &faults))?;
        all.extend(jobs.into_iter().map(|(_, job)| (at, job)));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_go_on_where_the_kernels_wrap() {
        let mut progress = Progress::default();
        for (handled, dropped) in [(5, 0), (u32::MAX, 3), (4, 3), (4, 2)] {
            progress.note(JobCounters { handled, dropped, deleted: 7 });
        }
        let sum = 1 << 32;
        assert_eq!((progress.handled, progress.dropped, progress.deleted), (sum + 4, sum + 2, 7));
    }
}
