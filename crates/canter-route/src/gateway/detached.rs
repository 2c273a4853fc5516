//! Runs gateways that work without this process, in the kernel or on their own processor: this process starts, monitors
//! and ends them.

use super::{
    account::RouteAccount,
    kind::{Ended, Outcome, Request},
    watch,
};
use crate::rules::counts::Counts;
use canter_cli::{
    failure::{self, Failure},
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

/// Period at which the gateway is checked.
const CHECK_PERIOD_NS: u64 = 1_000_000_000;

/// A gateway that works without this process.
pub trait Detached: Send + Sync + Sized + 'static {
    /// Counters of its work so far.
    type Progress: Default + Send + 'static;

    /// The status for the service manager while it ends.
    const ENDING: &'static str;

    /// Updates the progress; an error when the gateway no longer works.
    fn check(&self, progress: &mut Self::Progress) -> Result<(), String>;

    /// The status for the service manager.
    fn status(&self, progress: &Self::Progress) -> String;

    /// Ends it; returns the counts of each direction, and an error.
    fn end(self, progress: Self::Progress, directions: usize) -> failure::Result<(Vec<Counts>, Ended)>;
}

/// Routes until stopped, or until the gateway no longer works. `open` must refuse a request before any frame moves.
pub fn run<D: Detached>(
    request: &Request<'_>,
    open: impl FnOnce(&Request<'_>) -> failure::Result<D>,
) -> failure::Result<Outcome> {
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Failure::failed(format!("gateway: signals: {error}")))?;
    let gateway = Arc::new(open(request)?);
    let monitor = monitor(request, Arc::clone(&gateway), signals.handle())?;
    request.announce();
    let watched = request.method.kind.keeps_interfaces();
    let controllers = if watched { watch::start(request.directions, &[])? } else { None };
    signals.forever().next();
    Supervisor::find().notify_stopping(D::ENDING);
    if let Some(controllers) = controllers {
        controllers.stop();
    }
    let (ended, progress) = monitor.stop();
    let gateway =
        Arc::into_inner(gateway).ok_or_else(|| Failure::failed("gateway: end: its monitor still runs"))?;
    let (counts, end) = gateway.end(progress, request.directions.len())?;
    let account = |(direction, counts)| RouteAccount::new(direction, counts);
    let routes = request.directions.iter().zip(counts).map(account).collect();
    Ok(Outcome { routes, ended: ended.and(end) }) // the first reason is the one to report
}

/// Monitors the gateway and its interfaces, and reports to the service manager. When the gateway no longer works, closes
/// `signals`. Returns the error, and the last progress.
fn monitor<D: Detached>(
    request: &Request<'_>,
    gateway: Arc<D>,
    signals: Handle,
) -> failure::Result<Worker<(Ended, D::Progress)>> {
    let name = request.method.kind.name;
    let mut interfaces = match request.method.kind.keeps_interfaces() {
        true => watch::interfaces(request.directions)?,
        false => Vec::new(),
    };
    let mut supervisor = Supervisor::find();
    let work = move |stop: &AtomicBool| {
        let mut progress = D::Progress::default();
        while !stop.load(Ordering::Acquire) {
            let usable = watch::refuse_unusable(&mut interfaces).map_err(|failure| failure.message);
            if let Err(reason) = usable.and_then(|()| gateway.check(&mut progress)) {
                signals.close();
                return (Err(reason), progress);
            }
            if supervisor.is_due() {
                supervisor.notify_alive(&gateway.status(&progress));
            }
            clock::sleep_until_ns(clock::monotonic_ns() + CHECK_PERIOD_NS);
        }
        (Ok(()), progress)
    };
    Worker::start(name, work).map_err(|error| Failure::failed(format!("{name}: start: {error}")))
}
