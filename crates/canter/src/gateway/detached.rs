//! How a gateway runs that works without this process, in the kernel or on a processor of its own: this process starts
//! it, looks after it, and ends it.

use super::{
    account::RouteAccount,
    kind::{Ended, Outcome, Request},
    watch,
};
use crate::{
    failure::{self, Failure},
    rules::counts::Counts,
    supervisor::Supervisor,
};
use canter_io::{clock, thread::Worker};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::{Handle, Signals},
};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// How often to look whether it still works.
const LOOK_NS: u64 = 1_000_000_000;

/// A gateway that works without this process.
pub trait Detached: Send + Sync + Sized + 'static {
    /// What was last seen of it.
    type Seen: Default + Send + 'static;

    /// What ends it, for the service manager.
    const ENDING: &'static str;

    /// Refuses a gateway that no longer works, or sees what it has done so far.
    fn look(&self, seen: &mut Self::Seen) -> Result<(), String>;

    /// How it goes, for the service manager.
    fn status(&self, seen: &Self::Seen) -> String;

    /// Ends it; answers the counts of each direction, and what went wrong.
    fn end(self, seen: Self::Seen, directions: usize) -> failure::Result<(Vec<Counts>, Ended)>;
}

/// Routes until stopped, or until the gateway no longer works. What can be refused, `open` refuses before a frame moves.
pub fn run<D: Detached>(
    request: &Request<'_>,
    open: impl FnOnce(&Request<'_>) -> failure::Result<D>,
) -> failure::Result<Outcome> {
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Failure::failed(format!("gateway: signals: {error}")))?;
    let gateway = Arc::new(open(request)?);
    let looking = look_after(request, Arc::clone(&gateway), signals.handle())?;
    request.announce();
    let watched = request.method.kind.keeps_interfaces();
    let controllers = if watched { watch::start(request.directions, &[])? } else { None };
    signals.forever().next();
    Supervisor::find().notify_stopping(D::ENDING);
    if let Some(controllers) = controllers {
        controllers.stop();
    }
    let (ended, seen) = looking.stop();
    let gateway =
        Arc::into_inner(gateway).ok_or_else(|| Failure::failed("gateway: is still looked after"))?;
    let (counts, end) = gateway.end(seen, request.directions.len())?;
    let account = |(direction, counts)| RouteAccount::of(direction, counts);
    let routes = request.directions.iter().zip(counts).map(account).collect();
    Ok(Outcome { routes, ended: ended.and(end) }) // the first reason is the one to report
}

/// Looks after the gateway and its interfaces, and reports to the service manager. Answers why the gateway ended by
/// itself, if it did, having closed `signals`; and what was seen last.
fn look_after<D: Detached>(
    request: &Request<'_>,
    gateway: Arc<D>,
    signals: Handle,
) -> failure::Result<Worker<(Ended, D::Seen)>> {
    let name = request.method.kind.name;
    let mut interfaces = match request.method.kind.keeps_interfaces() {
        true => watch::interfaces(request.directions)?,
        false => Vec::new(),
    };
    let mut supervisor = Supervisor::find();
    let work = move |stop: &AtomicBool| {
        let mut seen = D::Seen::default();
        while !stop.load(Ordering::Acquire) {
            let looked = watch::look(&mut interfaces).map_err(|failure| failure.message);
            if let Err(why) = looked.and_then(|()| gateway.look(&mut seen)) {
                signals.close();
                return (Err(why), seen);
            }
            if supervisor.is_due() {
                supervisor.notify_alive(&gateway.status(&seen));
            }
            clock::sleep_until_ns(clock::monotonic_ns() + LOOK_NS);
        }
        (Ok(()), seen)
    };
    Worker::start(name, work).map_err(|error| Failure::failed(format!("{name}: start: {error}")))
}
