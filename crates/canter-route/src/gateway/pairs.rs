//! Gateways in user space, by any pair of methods: a thread for each direction, or one for all; the main thread handles
//! signals, new rules and counts.

use super::{
    account::{RouteAccount, RuleAccount},
    backlog::{self, Backlog},
    control::Control,
    kind::{Ended, Kind, Outcome, Place, Request},
    plan::{self, Direction},
    route::{ROOM_WAIT, Route, Side, together},
    watch,
};
use crate::rules::{counts::Counts, engine::Engine};
use canter_cli::{
    failure::{self, Exit, Failure},
    reminder::Reminder,
    supervisor::Supervisor,
    trouble::{explain, refuse_down},
};
use canter_io::{
    Interface, clock,
    method::{
        Capabilities, Pair, ReceiveMethod, ReceiveOptions, Receiver, TransmitOptions, Wait, table::RECEIVERS,
    },
    thread::{self, Worker},
};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::{Handle, Signals},
};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Period at which a route tries to open interfaces that it waits for.
const REOPEN_PERIOD_NS: u64 = 100_000_000;

/// Period at which a blocked receiver is interrupted until its route answers a liveness check.
const ANSWER_PERIOD_NS: u64 = 20_000_000;

/// A thread, with the label of its directions and the account of each.
type Thread = (String, Worker<Vec<(RouteAccount, Ended)>>);
type Workers = Arc<Vec<Thread>>;

/// The settings of a direction's thread.
struct Job {
    direction: Direction,
    pair: Pair,
    options: ReceiveOptions,
    batch: usize,
    backlog: backlog::Limits,
    waits_for_interface: bool,
    /// Whether other directions share its thread, so that neither of its sides may wait.
    shares_thread: bool,
    quiet: bool,
    control: Control,
}

pub const PAIRS: Kind = Kind {
    name: "RECEIVER+TRANSMITTER",
    paper_name: "", // PAPER_PAIRS has those of the pairs
    about: "in user space, by any receiver and any transmitter",
    example: "in user space",
    pairs: true,
    place: Place::UserSpace,
    capabilities: Capabilities { fd: true, batch: true, origin: true },
    devices: false, // depends on the methods
    rules_apply: false,
    waits_for_interfaces: true,
    takes_hops: false,
    right: None, // the methods' rows have theirs
    check: || Ok(()),
    check_between: |_, _| Ok(()),
    refuses: &[],
    run,
};

/// Routes until stopped, or until a direction fails; with the requested pair, or the default pairs of the interfaces.
fn run(request: &Request<'_>) -> failure::Result<Outcome> {
    let jobs: Vec<Job> =
        request.directions.iter().map(|one| Job::new(request, one)).collect::<failure::Result<_>>()?;
    let mut routes = Vec::new();
    for job in &jobs {
        let route = if request.settings.wait_for_interface { None } else { Some(job.open()?) };
        routes.push(route);
    }
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| Failure::failed(format!("gateway: signals: {error}")))?;
    let controls: Vec<_> = jobs.iter().map(|job| (job.direction.label(), job.control.clone())).collect();
    let workers = match request.settings.one_thread {
        true => vec![start_together(jobs, routes.into_iter().flatten().collect(), signals.handle())?],
        false => start_each(jobs, routes, &signals.handle())?,
    };
    let _ = thread::stand_back(); // after an error this thread may delay frames a little
    request.announce();
    let workers = Arc::new(workers);
    let routes: Vec<_> = controls.iter().map(|(_, control)| control.clone()).collect();
    let watch = watch::start(request.directions, &routes)?;
    let supervised = supervise(&workers, routes)?;
    let stats = request.settings.stats.map(|every_ns| print_stats(every_ns, controls.clone())).transpose()?;
    // SIGHUP renews the rules; any other signal, or the end of a worker, ends the gateway.
    while signals.forever().next() == Some(SIGHUP) {
        renew(request, &controls);
    }
    Supervisor::find().notify_stopping("sending the received frames");
    for worker in [supervised, stats, watch].into_iter().flatten() {
        worker.stop();
    }
    Ok(collect(Arc::into_inner(workers).unwrap_or_default()))
}

/// A thread for each direction.
fn start_each(jobs: Vec<Job>, routes: Vec<Option<Route>>, ended: &Handle) -> failure::Result<Vec<Thread>> {
    let start = |(job, route): (Job, Option<Route>)| {
        let (name, ended) = (job.direction.label(), ended.clone());
        let worker = Worker::start("gateway", move |stop| vec![job.work(route, stop, &ended)]);
        Ok((name, worker.map_err(not_started)?))
    };
    jobs.into_iter().zip(routes).map(start).collect()
}

/// One thread for all directions.
fn start_together(jobs: Vec<Job>, mut routes: Vec<Route>, ended: Handle) -> failure::Result<Thread> {
    let name = jobs.iter().map(|job| job.direction.label()).collect::<Vec<_>>().join(", ");
    let spins = jobs.iter().any(|job| job.pair.receive.wait == Wait::Spin);
    let work = move |stop: &AtomicBool| {
        thread::leave_restartable_sequences();
        let reason = |(job, end): (&Job, Result<(), (Side, io::Error)>)| {
            end.map_err(|(side, error)| job.reason(side, error))
        };
        let ends = match together::run(&mut routes, spins, stop, || ended.close()) {
            Ok(ends) => jobs.iter().zip(ends).map(reason).collect(),
            Err(error) => {
                ended.close();
                vec![Err(format!("gateway: wait for all inputs: {error}")); jobs.len()]
            }
        };
        let account = |(job, route): (&Job, &Route)| job.account(route.counts, route.engine.as_ref());
        jobs.iter().zip(&routes).map(account).zip(ends).collect()
    };
    Ok((name, Worker::start("gateway", work).map_err(not_started)?))
}

fn not_started(error: io::Error) -> Failure {
    Failure::failed(format!("gateway: start: {error}"))
}

/// Reports to the service manager. Resets the watchdog only when every route has answered a liveness check; interrupts
/// receivers that block, so that they answer.
fn supervise(workers: &Workers, controls: Vec<Control>) -> failure::Result<Option<Worker<()>>> {
    let mut supervisor = Supervisor::find();
    if !supervisor.is_present() {
        return Ok(None);
    }
    let workers = Arc::clone(workers);
    let work = move |stop: &AtomicBool| {
        while !stop.load(Ordering::Acquire) {
            controls.iter().for_each(Control::ask);
            while !controls.iter().all(Control::has_answered) && !stop.load(Ordering::Acquire) {
                workers.iter().for_each(|(_, worker)| worker.interrupt());
                clock::sleep_until_ns(clock::monotonic_ns() + ANSWER_PERIOD_NS);
            }
            let counts: Vec<Counts> = controls.iter().map(Control::counts).collect();
            let sum = counts.iter().fold(Counts::default(), |sum, counts| sum.and(counts));
            supervisor.notify_alive(&sum.to_string());
            clock::sleep_until_ns(clock::monotonic_ns() + supervisor.period().as_nanos() as u64);
        }
    };
    let started = Worker::start("supervise", work);
    started.map(Some).map_err(not_started)
}

/// Stops all workers; returns their accounts and the first error.
fn collect(workers: Vec<Thread>) -> Outcome {
    let mut ended = Ok(());
    let accounts = workers.into_iter().flat_map(|(_, worker)| worker.stop()).map(|(account, outcome)| {
        ended = std::mem::replace(&mut ended, Ok(())).and(outcome);
        account
    });
    Outcome { routes: accounts.collect(), ended }
}

/// Prints the counts of every direction periodically.
fn print_stats(every_ns: u64, controls: Vec<(String, Control)>) -> failure::Result<Worker<()>> {
    let work = move |stop: &AtomicBool| {
        let mut due_ns = clock::monotonic_ns();
        while !stop.load(Ordering::Acquire) {
            due_ns += every_ns;
            clock::sleep_until_ns(due_ns);
            if !stop.load(Ordering::Acquire) {
                controls
                    .iter()
                    .for_each(|(label, control)| eprintln!("gateway: {label}: {}", control.counts()));
            }
        }
    };
    Worker::start("stats", work).map_err(not_started)
}

/// Reads the rule file again. When the file has an error, the old rules stay.
fn renew(request: &Request<'_>, controls: &[(String, Control)]) {
    let Some(path) = &request.ends.rules else {
        eprintln!("gateway: SIGHUP: no --rules file to read again");
        return;
    };
    let path = path.display();
    let new = match plan::directions(request.ends, PAIRS.takes_hops) {
        Ok(new) => new,
        Err(failure) => return eprintln!("gateway: {failure}; the rules stay unchanged"),
    };
    let ends = |directions: &[Direction]| directions.iter().map(Direction::label).collect::<Vec<_>>();
    if ends(&new) != ends(request.directions) {
        return eprintln!(
            "gateway: {path}: its routes have changed; the rules stay unchanged (restart the gateway)"
        );
    }
    if new.iter().zip(request.directions).any(|(new, old)| new.ways() != old.ways()) {
        return eprintln!(
            "gateway: {path}: `hops` or `echo` has changed; the rules stay unchanged (restart the gateway)"
        );
    }
    for (new, old) in new.iter().zip(request.directions) {
        if new.has_limits() && !old.has_limits() {
            let label = new.label();
            eprintln!(
                "gateway: {path}: {label}: limits count by the time at which frames are read (by that of their reception after a restart)"
            );
        }
    }
    for (direction, (_, control)) in new.iter().zip(controls) {
        if let Some(policy) = &direction.policy {
            control.set_rules(Engine::new(policy, request.settings.batch));
        }
    }
    eprintln!("gateway: {path}: read again");
}

impl Job {
    fn new(request: &Request<'_>, direction: &Direction) -> failure::Result<Self> {
        let Request { settings, .. } = request;
        let options = ReceiveOptions {
            filters: request.filters(),
            queue_frames: settings.queue,
            deaf_to_marked: direction.deaf,
            stamps: direction.has_limits(),
            ..ReceiveOptions::default()
        };
        Ok(Self {
            direction: direction.clone(),
            pair: request.method.pair.map_or_else(|| direction.usual_pair(), Ok)?,
            options,
            batch: settings.batch,
            backlog: backlog::Limits {
                policy: settings.when_full,
                by_priority: settings.priority,
                frames_max: settings.backlog,
                age_ns_max: settings.backlog_age,
            },
            waits_for_interface: settings.wait_for_interface,
            shares_thread: settings.one_thread,
            quiet: request.common.quiet,
            control: Control::new(settings.stats.is_some()),
        })
    }

    /// Opens both sides.
    fn open(&self) -> failure::Result<Route> {
        let Direction { from, to, .. } = &self.direction;
        let (from, to) = (Interface::find(from)?, Interface::find(to)?);
        for interface in [&from, &to] {
            refuse_down(interface)?;
        }
        if self.options.filters.error_mask != 0 && to.controller.is_some() {
            // A controller would send an error frame as a data frame.
            let reason = "error frames cannot be sent on a bus (leave error frames out of --filter; a vcan or vxcan can carry them)";
            return Err(Failure::new(Exit::Usage, format!("{}: {reason}", to.name)));
        }
        self.pair.receive.check(&from)?;
        self.pair.transmit.check(&to)?;
        let receive = self.receiver()?.open(&from, &self.options)?;
        let backlog = Backlog::new(self.backlog);
        let options = TransmitOptions {
            echo: self.direction.echo(),
            marked: self.direction.marked,
            patience: Some(if backlog.is_some() || self.shares_thread { Duration::ZERO } else { ROOM_WAIT }),
        };
        let transmit = self.pair.transmit.open(&to, &options)?;
        let mut route = Route::new(receive, transmit, self.batch, self.pair.receive.wait == Wait::Spin);
        route.engine = self.direction.policy.as_ref().map(|policy| Engine::new(policy, self.batch));
        route.backlog = backlog;
        route.control = Some(self.control.clone());
        Ok(route)
    }

    /// The method that receives: in a shared thread one that never waits, because the thread waits for all inputs.
    fn receiver(&self) -> failure::Result<ReceiveMethod> {
        let ReceiveMethod { row, wait } = self.pair.receive;
        if !self.shares_thread || wait == Wait::Spin {
            return Ok(self.pair.receive);
        }
        // Where poll(2) does not wait for frames, as on a socket whose frames io_uring takes, the thread cannot either.
        let waits = |row: &Receiver| row.waits.contains(&Wait::Poll) && row.waits.contains(&Wait::Spin);
        if ![Wait::Block, Wait::Poll].contains(&wait) || !waits(row) {
            let able: Vec<_> = RECEIVERS.iter().filter(|row| waits(row)).map(|row| row.name).collect();
            let why = format!(
                "one thread cannot wait so for several inputs ({}, or a receiver that spins)",
                able.join(", ")
            );
            return Err(Failure::new(Exit::Usage, format!("--one-thread: {}: {why}", self.pair.receive)));
        }
        Ok(ReceiveMethod { row, wait: Wait::Spin })
    }

    /// The reason why its route ended.
    fn reason(&self, side: Side, error: io::Error) -> String {
        let failure = match side {
            Side::In => explain(&self.direction.from, "receive", error),
            Side::Out => explain(&self.direction.to, "send", error),
        };
        failure.to_string()
    }

    /// Routes until stopped. With `waits_for_interface`, waits for interfaces that disappear and opens them again.
    fn work(self, route: Option<Route>, stop: &AtomicBool, ended: &Handle) -> (RouteAccount, Ended) {
        thread::leave_restartable_sequences();
        let mut counts = Counts::default();
        let mut route = route;
        let mut engine = None;
        loop {
            let mut working = match route.take() {
                Some(route) => route,
                None => match self.wait_for_interfaces(stop, &mut engine) {
                    Some(route) => route,
                    None => return (self.account(counts, engine.as_ref()), Ok(())),
                },
            };
            working.counts = counts;
            let outcome = working.run(stop);
            counts = working.counts;
            engine = working.engine.take();
            let Err((side, error)) = outcome else { return (self.account(counts, engine.as_ref()), Ok(())) };
            let reason = self.reason(side, error);
            if !self.waits_for_interface {
                ended.close();
                return (self.account(counts, engine.as_ref()), Err(reason));
            }
            self.print(&format!("{reason}; waiting for it"));
        }
    }

    /// Tries to open the route until both interfaces exist and are up.
    fn wait_for_interfaces(&self, stop: &AtomicBool, engine: &mut Option<Engine>) -> Option<Route> {
        let mut reminder = Reminder::default();
        while !stop.load(Ordering::Acquire) {
            self.control.answer(&Counts::default(), None);
            match self.open() {
                Ok(mut route) => {
                    route.engine = engine.take().or(route.engine);
                    self.print(&format!("{}: routing", self.direction.label()));
                    return Some(route);
                }
                Err(failure) => {
                    if reminder.is_due(&failure.message) {
                        self.print(&format!("{failure}; waiting"));
                    }
                }
            }
            clock::sleep_until_ns(clock::monotonic_ns() + REOPEN_PERIOD_NS);
        }
        None
    }

    fn print(&self, line: &str) {
        if !self.quiet {
            eprintln!("gateway: {line}");
        }
    }

    fn account(&self, counts: Counts, engine: Option<&Engine>) -> RouteAccount {
        let rules = engine.map(Engine::counts).unwrap_or_default();
        RouteAccount {
            from: self.direction.from.clone(),
            to: self.direction.to.clone(),
            counts,
            rules: rules.into_iter().map(|(name, counts)| RuleAccount { name, counts }).collect(),
        }
    }
}
