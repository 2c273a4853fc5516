//! The kernel's own gateway, `can-gw`: its jobs are there while this command runs.

use super::{Arguments, Counts, Ended, announce, signals};
use crate::{
    failure::{self, Failure},
    options::Common,
    trouble::refuse_down,
};
use canter_io::{
    Error, Interface,
    interface::Kind,
    netlink::can_gw::{self, CanGateway, Job, JobCounters},
    sys::{clock, thread::Worker},
};
use signal_hook::iterator::Handle;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// How often to look whether the jobs still work: the kernel deletes them with their interfaces, and leaves them alone
/// when an interface goes down.
const LOOK_NS: u64 = 1_000_000_000;

/// Routes until stopped, or until the jobs have gone.
pub fn run(
    arguments: &Arguments,
    from: &Interface,
    to: &Interface,
    common: &Common,
) -> failure::Result<(Counts, Ended)> {
    can_gw::available()?;
    let mut signals = signals()?;
    let open = |job| CanGateway::open(job).map_err(Failure::from);
    let gateways: Arc<Vec<_>> =
        Arc::new(jobs(arguments, from, to)?.into_iter().map(open).collect::<Result<_, _>>()?);
    let watch = watch(Arc::clone(&gateways), [from.clone(), to.clone()], signals.handle())?;
    announce(arguments, common);
    signals.forever().next();
    let (mut ended, seen) = watch.stop();
    let mut counts = Counts::default();
    for (gateway, seen) in Arc::into_inner(gateways).into_iter().flatten().zip(seen) {
        let counters = gateway.close().unwrap_or_else(|error| {
            // The first reason is the one to tell.
            ended = std::mem::replace(&mut ended, Ok(())).and(Err(error.to_string()));
            seen // the job has gone, and its counters with it
        });
        // What its filter leaves out, can-gw never counts.
        counts.transmitted += u64::from(counters.handled);
        counts.dropped += u64::from(counters.dropped) + u64::from(counters.deleted);
    }
    counts.received = counts.transmitted + counts.dropped;
    Ok((counts, ended))
}

/// Answers why it ended by itself, if it did, and each job's counters as last seen.
fn watch(
    gateways: Arc<Vec<CanGateway>>,
    mut interfaces: [Interface; 2],
    ended: Handle,
) -> failure::Result<Worker<(Ended, Vec<JobCounters>)>> {
    let watch = move |stop: &AtomicBool| {
        let mut seen = vec![JobCounters::default(); gateways.len()];
        while !stop.load(Ordering::Acquire) {
            if let Err(failure) = look(&gateways, &mut interfaces, &mut seen) {
                ended.close();
                return (Err(failure.message), seen);
            }
            clock::sleep_until_ns(clock::monotonic_ns() + LOOK_NS);
        }
        (Ok(()), seen)
    };
    Worker::start("can-gw", watch).map_err(|error| Failure::failed(format!("can-gw: start: {error}")))
}

fn look(
    gateways: &[CanGateway],
    interfaces: &mut [Interface],
    seen: &mut [JobCounters],
) -> failure::Result<()> {
    for interface in interfaces {
        let name = interface.name.clone();
        interface.refresh().map_err(|error| Error::moving(&name, "look", error.source))?;
        refuse_down(interface)?;
    }
    for (gateway, seen) in gateways.iter().zip(seen) {
        *seen = gateway.counters()?;
    }
    Ok(())
}

/// A job forwards frames of one kind, so an FD route needs two.
fn jobs(arguments: &Arguments, from: &Interface, to: &Interface) -> failure::Result<Vec<Job>> {
    let filters = arguments.filter.clone().unwrap_or_default();
    if filters.list.len() > 1 || filters.error_mask != 0 {
        let way_out = "give one filter, or take a user-space pair";
        return Err(Failure::unable(format!(
            "can-gw: a job has one filter and forwards no error frames ({way_out})"
        )));
    }
    let classic = Job {
        // The kernel forgets a filter of zeros, which lets everything through, and would not find the job again by it.
        filter: filters.list.first().copied().filter(|filter| filter.id | filter.mask != 0),
        // Nobody but local sockets can hear a frame on a vcan, so let them.
        echo: to.kind == Kind::Vcan,
        ..Job::between(from.index, to.index)
    };
    let both_fd = from.supports_fd() && to.supports_fd();
    let fd = both_fd.then(|| Job { fd: true, ..classic.clone() });
    Ok([Some(classic), fd].into_iter().flatten().collect())
}
