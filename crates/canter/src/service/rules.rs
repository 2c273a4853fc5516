//! The kernel's gateway kept as a rule file says. The kernel deletes jobs with their interfaces, and knows interfaces by
//! numbers that are new each time they come: so somebody has to put the jobs back.

use super::configuration;
use crate::{
    failure::{self, Failure},
    options::Common,
    reminder::Reminder,
    rules::{
        RuleSet,
        install::{self, Step},
        read::routes,
    },
    supervisor::Supervisor,
    trouble,
};
use canter_io::{
    Interface,
    netlink::can_gw::{self, Job},
};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};
use std::{
    path::Path,
    time::{Duration, Instant},
};

/// How often it looks at interfaces and jobs.
const LOOK: Duration = Duration::from_secs(1);
/// How soon it hears a signal.
const HEAR: Duration = Duration::from_millis(50);

/// Until it is told to end; then its jobs are deleted.
pub fn run(wanted: &configuration::Rules, common: &Common) -> failure::Result {
    can_gw::available()?;
    common.apply()?;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| Failure::failed(format!("rules: signals: {error}")))?;
    let mut keeper = Keeper { set: routes(wanted.file.as_ref())?, ours: Vec::new(), reminders: Vec::new() };
    let mut supervisor = Supervisor::find();
    supervisor.ready(&keeper.look(wanted.file.as_ref(), !wanted.keep)?);
    loop {
        match hear(&mut signals) {
            Some(SIGHUP) => keeper.read_again(wanted.file.as_ref()),
            Some(_) => break,
            None => {}
        }
        let status = keeper.look(wanted.file.as_ref(), false)?;
        if supervisor.is_due() {
            supervisor.alive(&status);
        }
    }
    supervisor.stopping("deleting its jobs");
    let deleted = keeper.clear()?;
    eprintln!("rules: {deleted} jobs deleted");
    Ok(failure::Exit::Done)
}

/// A signal, or none for a while.
fn hear(signals: &mut Signals) -> Option<i32> {
    let began = Instant::now();
    while began.elapsed() < LOOK {
        if let Some(signal) = signals.pending().next() {
            return Some(signal);
        }
        std::thread::sleep(HEAR);
    }
    None
}

struct Keeper {
    set: RuleSet,
    /// What this service has put there, or found there as it is wanted.
    ours: Vec<Job>,
    /// One for each route.
    reminders: Vec<Reminder>,
}

impl Keeper {
    /// Makes the kernel's jobs those of all routes whose interfaces are there; says what that changed, and answers how
    /// it stands. What others have put there is deleted only with `others_too`.
    fn look(&mut self, file: &Path, others_too: bool) -> failure::Result<String> {
        self.reminders.resize_with(self.set.routes.len(), Reminder::default);
        let mut there = RuleSet::default();
        let mut waiting = Vec::new();
        for (route, reminder) in self.set.routes.iter().zip(&mut self.reminders) {
            match usable(&route.from).and_then(|()| Ok(Interface::find(&route.to).map(drop)?)) {
                Ok(()) => there.routes.push(route.clone()),
                Err(failure) => {
                    if reminder.is_due(&failure.message) {
                        eprintln!("rules: {} → {}: {failure}; waiting for it", route.from, route.to);
                    }
                    waiting.push(format!("{} → {}", route.from, route.to));
                }
            }
        }
        let wanted = install::jobs(file, &there)?;
        let mut steps = install::steps(&wanted, &install::installed()?);
        steps.retain(|step| match step {
            Step::Delete(job) => others_too || self.ours.contains(job),
            Step::Add(_) | Step::Replace(..) => true,
        });
        if !steps.is_empty() || others_too {
            install::carry_out(&steps)?;
            eprintln!("rules: {}", install::summary(&steps, wanted.len()));
        }
        self.ours = install::installed()?.into_iter().filter(|job| is_among(job, &wanted)).collect();
        let waits =
            if waiting.is_empty() { String::new() } else { format!("; waiting for {}", waiting.join(", ")) };
        Ok(format!("{} jobs in can-gw{waits}", wanted.len()))
    }

    /// SIGHUP. What is wrong with the file is said, and the old rules stay.
    fn read_again(&mut self, file: &Path) {
        match routes(file) {
            Ok(set) => {
                self.set = set;
                eprintln!("rules: {}: read again", file.display());
            }
            Err(failure) => eprintln!("rules: {failure}; the rules stay as they were"),
        }
    }

    fn clear(&self) -> failure::Result<usize> {
        let there = install::installed()?;
        let ours: Vec<Step> =
            there.into_iter().filter(|job| self.ours.contains(job)).map(Step::Delete).collect();
        install::carry_out(&ours)?;
        Ok(ours.len())
    }
}

fn usable(name: &str) -> failure::Result<()> {
    trouble::refuse_down(&Interface::find(name)?)
}

fn is_among(job: &Job, wanted: &[Job]) -> bool {
    wanted.iter().any(|one| install::same(job, one))
}
