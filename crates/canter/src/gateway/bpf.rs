//! `bpf`: the gateway in the kernel by a program of our own, which works while this command runs (canter-io's redirect).

use super::{Arguments, Ended, RouteAccount, announce, kernel, plan::Direction, watch};
use crate::{
    failure::{self, Failure},
    options::Common,
    rules::{self, counts::Counts},
    supervisor::Supervisor,
};
use canter_io::{
    Filters, Interface,
    redirect::{self, Redirect, Rule},
    sys::thread::Worker,
};
use signal_hook::iterator::Handle;
use std::sync::Arc;

/// Routes until stopped, or until an interface breaks.
pub fn run(
    arguments: &Arguments,
    directions: &[Direction],
    common: &Common,
) -> failure::Result<(Vec<RouteAccount>, Ended)> {
    let filters = arguments.filter.clone().unwrap_or_default();
    if let Some(why) = refused(arguments, directions, &filters) {
        return Err(Failure::unable(format!("bpf: {why}")));
    }
    let mut signals = watch::signals()?;
    let programs = Arc::new(open(directions, &filters)?);
    let looking = look_after(Arc::clone(&programs), watch::interfaces(directions)?, signals.handle())?;
    announce(arguments, directions, common);
    let controllers = watch::start(directions, &[])?;
    signals.forever().next();
    Supervisor::find().stopping("ending its programs");
    if let Some(controllers) = controllers {
        controllers.stop();
    }
    let (ended, ()) = looking.stop();
    let mut routes = Vec::new();
    for (direction, program) in directions.iter().zip(Arc::into_inner(programs).unwrap_or_default()) {
        let counts = account(direction, program.close()?);
        let (from, to) = (direction.from.clone(), direction.to.clone());
        routes.push(RouteAccount { from, to, counts, rules: Vec::new() });
    }
    Ok((routes, ended))
}

/// What belongs to others.
fn refused(arguments: &Arguments, directions: &[Direction], filters: &Filters) -> Option<String> {
    let inputs: Vec<_> = directions.iter().map(|direction| &direction.from).collect();
    if let Some(from) = inputs.iter().enumerate().find(|(at, from)| inputs[..*at].contains(from)) {
        return Some(format!(
            "{} has several routes, and what is handed on by one is gone for the others (take can-gw)",
            from.1
        ));
    }
    let why = if filters.error_mask != 0 {
        "it forwards no error frames (take a user-space pair)"
    } else if arguments.rules.is_some() && !filters.list.is_empty() {
        "--filter beside --rules (write it into the file, or take a user-space pair)"
    } else if arguments.when_full != super::WhenFull::Wait || arguments.priority {
        "it cannot wait for room, and drops what finds none (take a user-space pair)"
    } else if arguments.stats.is_some() || arguments.wait_for_interface {
        "--stats and --wait-for-interface are of user-space pairs"
    } else {
        return None;
    };
    Some(why.to_owned())
}

/// The programs of all directions, or none.
fn open(directions: &[Direction], filters: &Filters) -> failure::Result<Vec<Redirect>> {
    let mut wanted = Vec::new();
    for direction in directions {
        let (from, to) = (Interface::find(&direction.from)?, Interface::find(&direction.to)?);
        redirect::check(&from, &to)?;
        let rules = match &direction.policy {
            None => vec![Rule::passing(filters.clone())],
            Some(policy) => rules::redirect::of_policy(policy)
                .map_err(|faults| kernel::inexpressible("bpf", direction, policy, &faults))?,
        };
        wanted.push((from, to, rules));
    }
    Ok(wanted.iter().map(|(from, to, rules)| Redirect::open(from, to, rules)).collect::<Result<_, _>>()?)
}

fn account(direction: &Direction, counted: redirect::Counts) -> Counts {
    let redirect::Counts { handed_on, filtered, refused, no_room } = counted;
    let mut counts = Counts { transmitted: handed_on - no_room, ..Counts::default() };
    counts.drop_as(no_room, |drops| &mut drops.no_room);
    counts.drop_as(refused, |drops| &mut drops.refused);
    if direction.policy.is_some() {
        counts.filtered = filtered; // what --filter leaves out, no method counts
    }
    counts.received = counts.transmitted + counts.filtered + counts.dropped;
    counts
}

fn look_after(
    programs: Arc<Vec<Redirect>>,
    mut interfaces: Vec<Interface>,
    ended: Handle,
) -> failure::Result<Worker<(Ended, ())>> {
    let look = move |(): &mut ()| watch::look(&mut interfaces).map_err(|failure| failure.message);
    let alive = move |(): &()| {
        let counts = programs.iter().filter_map(|program| program.counts().ok());
        let handed_on: u64 = counts.map(|counts| counts.handed_on).sum();
        format!("{handed_on} frames handed on by bpf")
    };
    watch::look_after("bpf", ended, (), look, alive)
}
