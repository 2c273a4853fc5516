//! Monitors a gateway's controllers: logs bus-off and recovery, and informs the routes into a controller, because the
//! kernel silently discards frames to a controller that is bus-off.

use super::{control::Control, plan::Direction};
use canter_cli::{
    failure::{self, Failure},
    trouble::refuse_down,
};
use canter_io::{
    Error, Interface, clock,
    interface::{State, remedy},
    monitor::{Change, Monitor},
    poll,
    thread::Worker,
};
use std::{
    io,
    os::fd::AsFd,
    sync::atomic::{AtomicBool, Ordering},
};

/// Period at which the states of canchar devices are read.
const DEVICE_PERIOD_NS: u64 = 100_000_000;

/// Period at which a monitor is opened again after an error.
const REOPEN_PERIOD_NS: u64 = 1_000_000_000;

/// A controller, and the routes into it.
struct Watched {
    name: String,
    /// Whether this is a canchar device: the kernel does not report its changes, so its state is read periodically.
    is_device: bool,
    /// The interface, as last read.
    found: Option<Interface>,
    bus_off: bool,
    routes: Vec<Control>,
}

/// The interfaces of all directions.
pub fn interfaces(directions: &[Direction]) -> failure::Result<Vec<Interface>> {
    let names = directions.iter().flat_map(|direction| [&direction.from, &direction.to]);
    Ok(names.map(|name| Interface::find(name)).collect::<Result<_, _>>()?)
}

/// Refuses interfaces that were deleted or are down, which a gateway in the kernel does not notice. A controller that is
/// bus-off is accepted, because it may recover.
pub fn refuse_unusable(interfaces: &mut [Interface]) -> failure::Result<()> {
    for interface in interfaces {
        let name = interface.name.clone();
        interface.refresh().map_err(|error| Error::moving(&name, "check", error.source))?;
        let state = interface.controller.as_ref().and_then(|controller| controller.state);
        if state != Some(State::BusOff) {
            refuse_down(interface)?;
        }
    }
    Ok(())
}

/// Monitors until stopped. `controls` are those of the directions, in the same order, or empty. `None`: there are no
/// controllers.
pub fn start(directions: &[Direction], controls: &[Control]) -> failure::Result<Option<Worker<()>>> {
    let monitor = Monitor::open()?; // first, so that no change is missed
    let mut names: Vec<_> = directions.iter().flat_map(|route| [&route.from, &route.to]).collect();
    names.sort();
    names.dedup();
    let mut watched = Vec::new();
    for name in names {
        let routes = directions.iter().zip(controls).filter(|(route, _)| route.to == *name);
        let routes = routes.map(|(_, control)| control.clone()).collect();
        let is_device = name.starts_with("/dev/");
        let mut one = Watched { name: name.clone(), is_device, found: None, bus_off: false, routes };
        // An interface that does not exist yet may become a controller.
        match Interface::find(name) {
            Ok(interface) if interface.controller.is_none() => continue,
            Ok(interface) => one.update(&interface),
            Err(_) => {}
        }
        watched.push(one);
    }
    if watched.is_empty() {
        return Ok(None);
    }
    let work =
        move |stop: &AtomicBool| follow_whatever_fails(monitor, Monitor::open, follow, &mut watched, stop);
    let started = Worker::start("watch", work);
    started.map(Some).map_err(|error| Failure::failed(format!("gateway: start: {error}")))
}

/// Follows the changes until stopped, with another monitor from `open` whenever one has failed. While there is none, no
/// route waits for a recovery that nobody would report.
fn follow_whatever_fails<M, E>(
    mut monitor: M,
    open: impl Fn() -> Result<M, E>,
    follow: impl Fn(&mut M, &mut [Watched], &AtomicBool) -> io::Result<()>,
    watched: &mut [Watched],
    stop: &AtomicBool,
) {
    while let Err(error) = follow(&mut monitor, watched, stop) {
        eprintln!("gateway: monitor the controllers: {error}; starting again");
        monitor = loop {
            if stop.load(Ordering::Acquire) {
                return;
            }
            if let Ok(opened) = open() {
                break opened;
            }
            watched.iter_mut().for_each(Watched::forget);
            clock::sleep_until_ns(clock::monotonic_ns() + REOPEN_PERIOD_NS);
        };
        watched.iter_mut().for_each(Watched::refresh);
    }
}

/// Follows the changes until stopped.
fn follow(monitor: &mut Monitor, watched: &mut [Watched], stop: &AtomicBool) -> io::Result<()> {
    let has_devices = watched.iter().any(|one| one.is_device);
    let timeout_ns = has_devices.then_some(DEVICE_PERIOD_NS);
    while !stop.load(Ordering::Acquire) {
        poll::readable(&[monitor.as_fd()], timeout_ns)?;
        watched.iter_mut().filter(|one| one.is_device).for_each(Watched::refresh);
        monitor.changes(|change| match change {
            Change::Is(interface, _) => {
                let changed = watched.iter_mut().filter(|one| one.name == interface.name);
                changed.for_each(|one| one.update(&interface));
            }
            Change::Missed => watched.iter_mut().for_each(Watched::refresh),
            Change::Gone(..) => {} // its route reports that
        })?;
    }
    Ok(())
}

impl Watched {
    /// Takes the controller for one that is not bus-off.
    fn forget(&mut self) {
        self.bus_off = false;
        self.routes.iter().for_each(|control| control.set_bus_off(false));
    }

    fn refresh(&mut self) {
        let refreshed = self.found.take().and_then(|mut found| found.refresh_state().ok().map(|()| found));
        if let Some(interface) = refreshed.or_else(|| Interface::find(&self.name).ok()) {
            self.update(&interface);
            self.found = Some(interface);
        }
    }

    fn update(&mut self, interface: &Interface) {
        let state = interface.controller.as_ref().and_then(|controller| controller.state);
        let bus_off = state == Some(State::BusOff);
        if bus_off != self.bus_off {
            let name = &self.name;
            let message = if bus_off {
                let way_out = format!("{}, or set restart-ms", remedy::restart(name));
                format!("bus-off: nothing is sent ({way_out})")
            } else {
                "recovered from bus-off".to_owned()
            };
            eprintln!("gateway: {name}: {message}");
        }
        self.bus_off = bus_off;
        self.routes.iter().for_each(|control| control.set_bus_off(bus_off));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn after_an_error_of_netlink_another_monitor_follows_and_meanwhile_no_route_waits() {
        let (control, stop) = (Control::default(), AtomicBool::new(false));
        let name = "no such interface".to_owned();
        let routes = vec![control.clone()];
        let mut watched = [Watched { name, is_device: false, found: None, bus_off: true, routes }];
        control.set_bus_off(true);
        let opened = Cell::new(0);
        let open = || {
            opened.set(opened.get() + 1);
            // The first attempt fails.
            if opened.get() == 1 { Err(()) } else { Ok("second") }
        };
        let follow = |monitor: &mut &str, watched: &mut [Watched], stop: &AtomicBool| match *monitor {
            "first" => Err(io::Error::from(io::ErrorKind::ConnectionReset)),
            _ => {
                assert!(!control.is_bus_off() && !watched[0].bus_off, "the route sends meanwhile");
                stop.store(true, Ordering::Release);
                Ok(())
            }
        };
        follow_whatever_fails("first", open, follow, &mut watched, &stop);
        assert!(stop.load(Ordering::Acquire) && opened.get() == 2, "{} monitors", opened.get());
        // Stopped without a monitor, it ends.
        follow_whatever_fails("first", || Err(()), follow, &mut watched, &stop);
    }
}
