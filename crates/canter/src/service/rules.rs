//! Keeps the jobs of a rule file in the kernel's gateway. The kernel deletes a job with its interfaces and identifies
//! interfaces by indices that change each time they appear, so this service installs the jobs again.

use super::configuration;
use canter_cli::{
    failure::{self, Failure},
    options::Common,
    reminder::Reminder,
    supervisor::Supervisor,
    trouble,
};
use canter_io::{
    Interface,
    netlink::can_gw::{self, Job},
};
use canter_route::rules::{
    RuleSet,
    install::{self, Step},
    read::routes,
};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};
use std::{
    path::Path,
    time::{Duration, Instant},
};

/// Period at which the service checks interfaces and jobs.
const CHECK_PERIOD: Duration = Duration::from_secs(1);
/// Period at which the service checks for signals.
const SIGNAL_PERIOD: Duration = Duration::from_millis(50);

/// Runs until SIGINT or SIGTERM, then deletes its jobs.
pub fn run(wanted: &configuration::Rules, common: &Common) -> failure::Result {
    can_gw::available()?;
    common.apply()?;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| Failure::failed(format!("rules: signals: {error}")))?;
    let mut keeper =
        Keeper { set: routes(wanted.file.as_ref())?, installed: Vec::new(), reminders: Vec::new() };
    let mut supervisor = Supervisor::find();
    supervisor.notify_ready(&keeper.synchronize(wanted.file.as_ref(), !wanted.keep)?);
    loop {
        match wait_for_signal(&mut signals) {
            Some(SIGHUP) => keeper.reload(wanted.file.as_ref()),
            Some(_) => break,
            None => {}
        }
        let status = keeper.synchronize(wanted.file.as_ref(), false)?;
        if supervisor.is_due() {
            supervisor.notify_alive(&status);
        }
    }
    supervisor.notify_stopping("deleting its jobs");
    let deleted = keeper.clear()?;
    eprintln!("rules: {deleted} jobs deleted");
    Ok(failure::Exit::Done)
}

/// Waits for a signal, for [`CHECK_PERIOD`] at most.
fn wait_for_signal(signals: &mut Signals) -> Option<i32> {
    let began = Instant::now();
    while began.elapsed() < CHECK_PERIOD {
        if let Some(signal) = signals.pending().next() {
            return Some(signal);
        }
        std::thread::sleep(SIGNAL_PERIOD);
    }
    None
}

struct Keeper {
    set: RuleSet,
    /// The file's jobs that are in the kernel, installed by this service or before it.
    installed: Vec<Job>,
    /// A reminder for each route.
    reminders: Vec<Reminder>,
}

impl Keeper {
    /// Installs the jobs of all routes whose interfaces exist, prints the changes, and returns the status. Deletes jobs
    /// of other programs only with `delete_others`.
    fn synchronize(&mut self, file: &Path, delete_others: bool) -> failure::Result<String> {
        self.reminders.resize_with(self.set.routes.len(), Reminder::default);
        let mut usable_routes = RuleSet::default();
        let mut waiting = Vec::new();
        for (route, reminder) in self.set.routes.iter().zip(&mut self.reminders) {
            match check_usable(&route.from).and_then(|()| Ok(Interface::find(&route.to).map(drop)?)) {
                Ok(()) => usable_routes.routes.push(route.clone()),
                Err(failure) => {
                    if reminder.is_due(&failure.message) {
                        eprintln!("rules: {} → {}: {failure}; waiting for it", route.from, route.to);
                    }
                    waiting.push(format!("{} → {}", route.from, route.to));
                }
            }
        }
        let wanted = install::jobs(file, &usable_routes)?;
        let mut steps = install::steps(&wanted, &install::installed()?);
        steps.retain(|step| match step {
            Step::Delete(job) => delete_others || self.installed.contains(job),
            Step::Add(_) | Step::Replace(..) => true,
        });
        if !steps.is_empty() || delete_others {
            install::carry_out(&steps)?;
            eprintln!("rules: {}", install::summary(&steps, wanted.len()));
        }
        self.installed = install::installed()?.into_iter().filter(|job| is_among(job, &wanted)).collect();
        let waits =
            if waiting.is_empty() { String::new() } else { format!("; waiting for {}", waiting.join(", ")) };
        Ok(format!("{} jobs in can-gw{waits}", wanted.len()))
    }

    /// Reads the file again on SIGHUP. When the file has an error, the old rules stay.
    fn reload(&mut self, file: &Path) {
        match routes(file) {
            Ok(set) => {
                self.set = set;
                eprintln!("rules: {}: read again", file.display());
            }
            Err(failure) => eprintln!("rules: {failure}; the rules stay unchanged"),
        }
    }

    /// Deletes this service's jobs; returns their number.
    fn clear(&self) -> failure::Result<usize> {
        let mut jobs = install::installed()?;
        jobs.retain(|job| self.installed.contains(job));
        let deletions: Vec<Step> = jobs.into_iter().map(Step::Delete).collect();
        install::carry_out(&deletions)?;
        Ok(deletions.len())
    }
}

fn check_usable(name: &str) -> failure::Result<()> {
    trouble::refuse_down(&Interface::find(name)?)
}

fn is_among(job: &Job, wanted: &[Job]) -> bool {
    wanted.iter().any(|one| install::same(job, one))
}
