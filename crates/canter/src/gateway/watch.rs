//! Looks after a gateway's controllers. One that goes off the bus is said, and the routes into it are told: the kernel
//! throws away what is sent there, without a word.

use super::{control::Control, plan::Direction};
use crate::{
    failure::{self, Failure},
    trouble::refuse_down,
};
use canter_io::{
    Error, Interface,
    interface::{State, remedy},
    monitor::{Change, Monitor},
    poll,
    thread::Worker,
};
use std::{
    os::fd::AsFd,
    sync::atomic::{AtomicBool, Ordering},
};

/// How often to look at what nobody tells of.
const LOOK_NS: u64 = 100_000_000;

/// A controller, and the routes into it.
struct Watched {
    name: String,
    /// It is a canchar device, of which nobody tells anything: it is looked at from time to time.
    device: bool,
    /// As it was found when it was looked at last.
    found: Option<Interface>,
    off: bool,
    into: Vec<Control>,
}

/// The interfaces of all directions.
pub fn interfaces(directions: &[Direction]) -> failure::Result<Vec<Interface>> {
    let names = directions.iter().flat_map(|direction| [&direction.from, &direction.to]);
    Ok(names.map(|name| Interface::find(name)).collect::<Result<_, _>>()?)
}

/// Refuses one that has gone or is down, for a gateway in the kernel is not told. One that is off the bus may come back.
pub fn look(interfaces: &mut [Interface]) -> failure::Result<()> {
    for interface in interfaces {
        let name = interface.name.clone();
        interface.refresh().map_err(|error| Error::moving(&name, "look", error.source))?;
        let state = interface.controller.as_ref().and_then(|controller| controller.state);
        if state != Some(State::BusOff) {
            refuse_down(interface)?;
        }
    }
    Ok(())
}

/// Watches until stopped; `controls` are those of the directions, in their order, or none. `None`: there are no
/// controllers.
pub fn start(directions: &[Direction], controls: &[Control]) -> failure::Result<Option<Worker<()>>> {
    let monitor = Monitor::open()?; // first: whatever changes from now on is told
    let mut names: Vec<_> = directions.iter().flat_map(|route| [&route.from, &route.to]).collect();
    names.sort();
    names.dedup();
    let mut watched = Vec::new();
    for name in names {
        let into = directions.iter().zip(controls).filter(|(route, _)| route.to == *name);
        let into = into.map(|(_, control)| control.clone()).collect();
        let mut one =
            Watched { name: name.clone(), device: name.starts_with("/dev/"), found: None, off: false, into };
        // One that is not there yet may be a controller; one that is there tells.
        match Interface::find(name) {
            Ok(interface) if interface.controller.is_none() => continue,
            Ok(interface) => one.look(&interface),
            Err(_) => {}
        }
        watched.push(one);
    }
    if watched.is_empty() {
        return Ok(None);
    }
    let work = move |stop: &AtomicBool| follow(monitor, &mut watched, stop);
    let started = Worker::start("watch", work);
    started.map(Some).map_err(|error| Failure::failed(format!("gateway: start: {error}")))
}

fn follow(mut monitor: Monitor, watched: &mut [Watched], stop: &AtomicBool) {
    let devices = watched.iter().any(|one| one.device);
    while !stop.load(Ordering::Acquire) {
        let heard = poll::readable(&[monitor.as_fd()], devices.then_some(LOOK_NS)).and_then(|_| {
            watched.iter_mut().filter(|one| one.device).for_each(Watched::look_anew);
            monitor.changes(|change| match change {
                Change::Is(interface, _) => {
                    let of = watched.iter_mut().filter(|one| one.name == interface.name);
                    of.for_each(|one| one.look(&interface));
                }
                Change::Missed => watched.iter_mut().for_each(Watched::look_anew),
                Change::Gone(..) => {} // its route says so
            })
        });
        if let Err(error) = heard {
            return eprintln!("gateway: watch the controllers: {error}");
        }
    }
}

impl Watched {
    fn look_anew(&mut self) {
        let refreshed = self.found.take().and_then(|mut found| found.refresh_state().ok().map(|()| found));
        if let Some(interface) = refreshed.or_else(|| Interface::find(&self.name).ok()) {
            self.look(&interface);
            self.found = Some(interface);
        }
    }

    fn look(&mut self, interface: &Interface) {
        let state = interface.controller.as_ref().and_then(|controller| controller.state);
        let off = state == Some(State::BusOff);
        if off != self.off {
            let name = &self.name;
            let way_out = format!("{}; restart-ms does it by itself", remedy::restart(name));
            let said = if off {
                format!("is off the bus: nothing is sent ({way_out})")
            } else {
                "is back on the bus".to_owned()
            };
            eprintln!("gateway: {name}: {said}");
        }
        self.off = off;
        self.into.iter().for_each(|control| control.set_off_bus(off));
    }
}
