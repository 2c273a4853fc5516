//! The kernel's own gateway, `can-gw`: its jobs are there while this command runs.

use super::{Arguments, Ended, RouteAccount, announce, plan::Direction, watch};
use crate::{
    failure::{self, Failure},
    options::Common,
    rules::{
        Policy,
        counts::Counts,
        jobs::{self, Inexpressible},
    },
    supervisor::Supervisor,
};
use canter_io::{
    Filters, Interface,
    netlink::can_gw::{self, CanGateway, Job, JobCounters},
    sys::thread::Worker,
};
use signal_hook::iterator::Handle;
use std::sync::Arc;

/// Routes until stopped, or until the jobs have gone.
pub fn run(
    arguments: &Arguments,
    directions: &[Direction],
    common: &Common,
) -> failure::Result<(Vec<RouteAccount>, Ended)> {
    can_gw::available()?;
    let mut signals = watch::signals()?;
    // All that can be refused is refused before the first job works.
    let jobs = jobs(arguments, directions)?;
    let gateways = CanGateway::open_all(jobs.iter().map(|(_, job)| job.clone()).collect())?;
    let gateways = Arc::new(gateways);
    let looking = look_after(Arc::clone(&gateways), watch::interfaces(directions)?, signals.handle())?;
    announce(arguments, directions, common);
    let controllers = watch::start(directions, &[])?;
    signals.forever().next();
    Supervisor::find().stopping("deleting its jobs");
    if let Some(controllers) = controllers {
        controllers.stop();
    }
    let (mut ended, seen) = looking.stop();
    let mut counts = vec![Counts::default(); directions.len()];
    let last = CanGateway::counters_of(&gateways)?;
    let gone = gateways.iter().zip(&last).find_map(|(gateway, last)| last.is_none().then(|| gateway.gone()));
    let deleted = CanGateway::delete_all(Arc::into_inner(gateways).unwrap_or_default());
    if let Some(error) = gone.or(deleted.err()) {
        ended = ended.and(Err(error.to_string())); // the first reason is the one to tell
    }
    for ((last, seen), (direction, job)) in last.into_iter().zip(seen).zip(&jobs) {
        let counters = last.unwrap_or(seen); // the job has gone, and its counters with it
        // What its filter leaves out, can-gw never counts.
        let counts = &mut counts[*direction];
        counts.transmitted += u64::from(counters.handled);
        counts.drop_as(counters.dropped.into(), |drops| &mut drops.no_room);
        if only_hops_delete(job) {
            counts.filtered += u64::from(counters.deleted);
        } else {
            counts.drop_as(counters.deleted.into(), |drops| &mut drops.too_long);
        }
        counts.received = counts.transmitted + counts.filtered + counts.dropped;
    }
    let account = |(Direction { from, to, .. }, counts): (&Direction, Counts)| RouteAccount {
        from: from.clone(),
        to: to.clone(),
        counts,
        rules: Vec::new(),
    };
    Ok((directions.iter().zip(counts).map(account).collect(), ended))
}

/// Answers each job's counters as last seen, too.
fn look_after(
    gateways: Arc<Vec<CanGateway>>,
    mut interfaces: Vec<Interface>,
    ended: Handle,
) -> failure::Result<Worker<(Ended, Vec<JobCounters>)>> {
    let seen = vec![JobCounters::default(); gateways.len()];
    let look = move |seen: &mut Vec<JobCounters>| {
        look(&gateways, &mut interfaces, seen).map_err(|failure| failure.message)
    };
    let alive = |seen: &Vec<JobCounters>| {
        let handled = seen.iter().map(|counters| u64::from(counters.handled)).sum::<u64>();
        format!("{handled} frames handed on by can-gw")
    };
    watch::look_after("can-gw", ended, seen, look, alive)
}

/// Whether the jobs still work: the kernel deletes them with their interfaces, and leaves them alone when one goes down.
fn look(
    gateways: &[CanGateway],
    interfaces: &mut [Interface],
    seen: &mut [JobCounters],
) -> failure::Result<()> {
    watch::look(interfaces)?;
    let now = CanGateway::counters_of(gateways)?;
    for ((gateway, seen), now) in gateways.iter().zip(seen).zip(now) {
        *seen = now.ok_or_else(|| gateway.gone())?;
    }
    Ok(())
}

/// What a job deletes has too many bytes or has been forwarded often enough. The latter is what a hop limit is for:
/// in two directions over a vcan each job hears what the other has sent.
fn only_hops_delete(job: &Job) -> bool {
    let changes_len = [&job.and, &job.or, &job.xor, &job.set].iter().any(|change| change.len.is_some());
    job.hops_max.is_some() && !changes_len
}

/// The jobs of all directions, each with its direction's number.
fn jobs(arguments: &Arguments, directions: &[Direction]) -> failure::Result<Vec<(usize, Job)>> {
    let filters = arguments.filter.clone().unwrap_or_default();
    if let Some(why) = refused(arguments, &filters) {
        return Err(Failure::unable(format!("can-gw: {why}")));
    }
    let mut all = Vec::new();
    for (at, direction) in directions.iter().enumerate() {
        let (from, to) = (Interface::find(&direction.from)?, Interface::find(&direction.to)?);
        if let Some(other) = [&from, &to].into_iter().find(|one| !one.has_sockets()) {
            let why = "the kernel's gateway reaches interfaces of the network only (take a user-space pair)";
            return Err(Failure::unable(format!("can-gw: {}: {why}", other.name)));
        }
        let mut route = direction.rules();
        if direction.policy.is_none() {
            route.policy.rules[0].filters = filters.list.clone();
        }
        let jobs = jobs::of_route(&route, &from, &to)
            .map_err(|faults| inexpressible("can-gw", direction, &route.policy, &faults))?;
        all.extend(jobs.into_iter().map(|(_, job)| (at, job)));
    }
    Ok(all)
}

/// The rules that a gateway in the kernel cannot express.
pub fn inexpressible(
    method: &str,
    direction: &Direction,
    policy: &Policy,
    faults: &[Inexpressible],
) -> Failure {
    let line = |fault: &Inexpressible| {
        format!("{}: {}: {}", direction.label(), policy.rules[fault.rule].label(fault.rule), fault.why)
    };
    let lines: Vec<_> = faults.iter().map(line).collect();
    Failure::unable(format!("{method}: {}", lines.join("; ")))
}

/// What belongs to user space.
fn refused(arguments: &Arguments, filters: &Filters) -> Option<&'static str> {
    if filters.list.len() > 1 || filters.error_mask != 0 {
        Some("a job has one filter and forwards no error frames (give one filter, or take a user-space pair)")
    } else if arguments.rules.is_some() && !filters.list.is_empty() {
        Some("--filter beside --rules (write it into the file, or take a user-space pair)")
    } else if arguments.when_full != super::WhenFull::Wait || arguments.priority {
        Some("it cannot wait for room, and drops what finds none (take a user-space pair)")
    } else if arguments.stats.is_some() || arguments.wait_for_interface {
        Some("--stats and --wait-for-interface are of user-space pairs (canter rules list has the counters)")
    } else {
        None
    }
}
