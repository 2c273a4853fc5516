//! `apply`, `diff` and `clear`: installs the jobs of a file in can-gw, shows what would change, deletes all jobs.

use crate::rules::{
    RuleSet,
    install::{self, Step},
    jobs, write,
};
use canter_cli::{
    failure::{self, Exit},
    options::Common,
};
use canter_io::{
    Interface,
    netlink::can_gw::{self, Job},
};
use std::path::Path;

pub fn run(file: &Path, set: &RuleSet, keep: bool, common: &Common) -> failure::Result {
    let wanted = install::jobs(file, set)?;
    can_gw::available()?;
    let mut steps = install::steps(&wanted, &install::installed()?);
    if keep {
        steps.retain(|step| !matches!(step, Step::Delete(_)));
    }
    install::carry_out(&steps)?;
    if !common.quiet {
        eprintln!("rules: {}", install::summary(&steps, wanted.len()));
    }
    Ok(Exit::Done)
}

pub fn diff(file: &Path, set: &RuleSet, common: &Common) -> failure::Result {
    let wanted = install::jobs(file, set)?;
    can_gw::available()?;
    let steps = install::steps(&wanted, &install::installed()?);
    if common.shows_table() {
        for step in &steps {
            let (sign, job) = match step {
                Step::Add(job) => ('+', job),
                Step::Replace(job, _) => ('~', &**job),
                Step::Delete(job) => ('-', job),
            };
            println!("{sign} {}", describe(job));
        }
    }
    if !common.quiet {
        eprintln!("rules: {}", install::summary(&steps, wanted.len()));
    }
    Ok(if steps.is_empty() { Exit::Done } else { Exit::Failed })
}

/// A line that describes a job.
fn describe(job: &Job) -> String {
    let name = |index| {
        Interface::by_index(index).map_or_else(|_| format!("interface {index}"), |interface| interface.name)
    };
    let (set, _) = jobs::to_rules(std::slice::from_ref(job), name);
    let text = write::file(&set, |_, _| Vec::new());
    let route = &set.routes[0];
    let lines = text.lines().skip(4).collect::<Vec<_>>().join("; "); // without the lines of the route
    format!("{}: {lines}", route.label())
}

pub fn clear(common: &Common) -> failure::Result {
    can_gw::available()?;
    let count = can_gw::list()?.len();
    if count > 0 {
        can_gw::flush()?; // without jobs the kernel returns an error
    }
    if !common.quiet {
        eprintln!("rules: {count} jobs deleted");
    }
    Ok(Exit::Done)
}
