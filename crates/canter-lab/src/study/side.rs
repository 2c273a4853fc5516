//! The gateway's side of a testbed: starts a gateway with its rules, load and priorities on the gateway's machine,
//! which is this one or another one (`remote`), and ends it with an account.

use super::{
    cards::{self, Fitted},
    ethernet::{self, Ethernet},
    load::{self, Load, Part, Running},
    plan::has_no_gateway,
    preparation::{Rate, SENDER_CPU, place_interrupts, set_up},
    rules::Rules,
    tuning::{Tuned, Tuning},
};
use canter_cli::{
    failure::{self, Failure},
    interrupt::interrupt_flag,
};
use canter_io::{
    Interface,
    netlink::can_gw::{self, Job},
};
use canter_route::{
    gateway::{child, kind::Method},
    rules::{
        counts::Counts,
        install::{self, Step},
    },
};
use serde::{Deserialize, Serialize};
use std::{
    fs,
    path::Path,
    process::Command,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

/// A gateway to start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    pub method: String,
    /// The rules, as in a study file.
    pub rules: String,
    pub load: Load,
    /// The priority of user-space gateways under SCHED_FIFO; 0: none.
    pub realtime: u8,
    /// The kernel's setting for the gateway's interfaces.
    pub tuning: Tuning,
    /// Whether the gateway forwards FD frames.
    pub fd: bool,
}

pub trait Side {
    /// Starts the gateway and the load.
    ///
    /// # Errors
    /// With [`Exit::Unable`](failure::Exit::Unable) the reason why the gateway's machine cannot.
    fn begin(&mut self, order: &Order) -> failure::Result<()>;
    /// Ends the gateway.
    fn end(&mut self) -> failure::Result<Counts>;
    /// The gateway's interfaces, if they are on this machine.
    fn interfaces(&self) -> failure::Result<Vec<Interface>>;
    /// The process of the gateway, if there is one on this machine.
    fn process(&self) -> Option<u32> {
        None
    }
    /// The flag that ends a measurement, set by Ctrl-C and when the gateway's machine is lost.
    fn stop(&self) -> &AtomicBool;
    /// Whether no order reaches the gateway's machine any more.
    fn is_lost(&self) -> bool {
        false
    }
}

/// The interfaces and processors of the gateway's machine.
#[derive(Clone, Debug, Default)]
pub struct Place {
    pub input: String,
    pub output: String,
    /// The cards' PCI addresses, if each method gets them with the driver that it needs; sets `input` and `output`.
    pub cards: Option<[String; 2]>,
    /// An interface that is up while a gateway starts: it acknowledges a frame that the gateway sends on its input bus.
    pub witness: Option<String>,
    /// The processor of the gateway and its interrupts.
    pub processor: Option<usize>,
    /// The part of a load that runs here.
    pub part: Part,
    /// This machine's address and the other one's, for an Ethernet load between two.
    pub addresses: Option<[String; 2]>,
}

/// The side of the gateway on this machine.
pub struct Local {
    place: Place,
    ethernet: Option<Ethernet>,
    running: Option<Started>,
    /// The cards of the running gateway.
    fitted: Vec<Fitted>,
    stop: Arc<AtomicBool>,
}

struct Started {
    gateway: Gateway,
    via: Vec<Interface>,
    _tuned: Tuned,
    _load: Running,
    /// The rule file, kept because the gateway may read it again.
    _rules: Option<tempfile::NamedTempFile>,
}

/// The running gateway.
enum Gateway {
    Process(child::Gateway),
    /// There is no gateway.
    Nothing,
    /// The jobs of can-gw that `canter rules apply --keep` has made, without earlier ones.
    Jobs(Vec<Job>),
}

impl Local {
    /// The side with these interfaces, none of which is brought up.
    pub fn new(place: Place) -> failure::Result<Self> {
        Ok(Self { place, ethernet: None, running: None, fitted: Vec::new(), stop: interrupt_flag()? })
    }

    /// Brings the side's two interfaces up.
    pub fn set_up(&self, rate: Rate) -> failure::Result<()> {
        [&self.place.input, &self.place.output].into_iter().try_for_each(|name| set_up(name, rate).map(drop))
    }

    fn prepare_ethernet(&mut self) -> failure::Result<()> {
        if self.ethernet.is_some() {
            return Ok(());
        }
        self.ethernet = match (self.place.part, &self.place.addresses) {
            (Part::Both, _) => Ethernet::of_lab()?,
            (_, addresses) => addresses.as_ref().map(|[own, other]| Ethernet::between(own, other)),
        };
        if let (Some(processor), Part::Both, Some(_)) =
            (self.place.processor, self.place.part, &self.ethernet)
        {
            let [gateways, other] = Ethernet::CARDS;
            place_interrupts(&[gateways], processor)?;
            place_interrupts(&[other], SENDER_CPU)?;
        }
        Ok(())
    }

    /// Binds the cards to the driver that the method needs and brings them up.
    fn fit(&mut self, order: &Order) -> failure::Result<()> {
        let Some(addresses) = self.place.cards.as_ref().filter(|_| !has_no_gateway(&order.method)) else {
            return Ok(());
        };
        self.fitted.clear(); // restores the cards of a method that failed to start
        self.fitted = cards::fit(addresses, &order.method)?;
        for (card, end) in self.fitted.iter().zip([&mut self.place.input, &mut self.place.output]) {
            end.clone_from(&card.name);
            set_up(end, Rate::of(order.fd))?;
        }
        Ok(())
    }

    /// Starts a gateway while another node on its bus acknowledges frames.
    fn start_acknowledged<T>(
        &self,
        rate: Rate,
        start: impl FnOnce() -> failure::Result<T>,
    ) -> failure::Result<T> {
        const SETTLED: Duration = Duration::from_millis(20);
        let Some(name) = &self.place.witness else { return start() };
        let mut witness = set_up(name, rate)?;
        let started = start();
        std::thread::sleep(SETTLED);
        witness.down()?;
        started
    }
}

impl Side for Local {
    fn begin(&mut self, order: &Order) -> failure::Result<()> {
        let rules: Rules =
            order.rules.parse().map_err(|error| Failure::failed(format!("study: rules: {error}")))?;
        if order.load.is_ethernet() {
            self.prepare_ethernet()?;
        }
        self.fit(order)?;
        let tuned = order.tuning.apply(&[&self.place.input, &self.place.output])?;
        let via = make_hops(&rules)?;
        let file = rule_file(&rules, &self.place)?;
        let start = || start(&self.place, order, &rules, file.as_ref().map(tempfile::NamedTempFile::path));
        let gateway = match self.start_acknowledged(Rate::of(order.fd), start) {
            Ok(gateway) => gateway,
            Err(failure) => {
                delete_all(via)?;
                return Err(failure);
            }
        };
        let mut started = Started { gateway, via, _tuned: tuned, _load: Running::default(), _rules: file };
        match load::start(order.load, self.place.processor, self.ethernet.as_ref(), self.place.part) {
            Ok(load) => started._load = load,
            Err(failure) => {
                finish(started)?;
                return Err(failure);
            }
        }
        self.running = Some(started);
        Ok(())
    }

    fn end(&mut self) -> failure::Result<Counts> {
        let Some(started) = self.running.take() else { return Ok(Counts::default()) };
        let counts = finish(started);
        self.fitted.clear();
        counts
    }

    fn interfaces(&self) -> failure::Result<Vec<Interface>> {
        if self.place.cards.is_some() && self.fitted.is_empty() {
            return Ok(Vec::new()); // nothing routes
        }
        Ok(vec![Interface::find(&self.place.input)?, Interface::find(&self.place.output)?])
    }

    fn process(&self) -> Option<u32> {
        match &self.running.as_ref()?.gateway {
            Gateway::Process(gateway) => Some(gateway.process_id()),
            Gateway::Nothing | Gateway::Jobs(_) => None,
        }
    }

    fn stop(&self) -> &AtomicBool {
        &self.stop
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let _ = self.end(); // anything is left only after an error
    }
}

/// Ends the load, then the gateway, and restores all settings.
fn finish(started: Started) -> failure::Result<Counts> {
    let Started { gateway, via, _tuned, _load, _rules } = started;
    drop(_load);
    let counts = gateway.stop();
    delete_all(via)?;
    counts
}

fn delete_all(via: Vec<Interface>) -> failure::Result<()> {
    Ok(via.into_iter().try_for_each(Interface::delete)?)
}

/// Makes the virtual interfaces on the way, and checks that can-gw forwards a frame often enough.
fn make_hops(rules: &Rules) -> failure::Result<Vec<Interface>> {
    const HOPS: &str = "/sys/module/can_gw/parameters/max_hops";
    if !matches!(rules, Rules::Hops(_)) {
        return Ok(Vec::new());
    }
    if fs::read_to_string(HOPS).is_ok_and(|hops| hops.trim() != "6") {
        ethernet::run(&["modprobe", "-r", "can-gw"])?;
        ethernet::run(&["modprobe", "can-gw", "max_hops=6"])?;
    }
    let mut via = Vec::new();
    for name in rules.via() {
        let mut interface = Interface::create_vcan(&name)?;
        interface.up()?;
        via.push(interface);
    }
    Ok(via)
}

fn rule_file(rules: &Rules, place: &Place) -> failure::Result<Option<tempfile::NamedTempFile>> {
    let failed = |error: std::io::Error| Failure::failed(format!("study: rule file: {error}"));
    let Some(text) = rules.file(&place.input, &place.output) else { return Ok(None) };
    let file = tempfile::Builder::new().suffix(".toml").tempfile().map_err(failed)?;
    fs::write(file.path(), text).map_err(failed)?;
    Ok(Some(file))
}

fn start(place: &Place, order: &Order, rules: &Rules, file: Option<&Path>) -> failure::Result<Gateway> {
    if has_no_gateway(&order.method) {
        return Ok(Gateway::Nothing);
    }
    let rules_apply = order.method.parse::<Method>().is_ok_and(|method| method.kind.rules_apply);
    if let (Some(file), true) = (file, rules_apply) {
        let before = install::installed()?;
        let output = Command::new(super::program()?)
            .args(["rules", "apply", "--keep", "--quiet"])
            .arg(file)
            .output()
            .map_err(|error| Failure::failed(format!("study: rules apply: {error}")))?;
        return match output.status.success() {
            true => Ok(Gateway::Jobs(added(install::installed()?, &before))),
            false => Err(super::unable(&String::from_utf8_lossy(&output.stderr))),
        };
    }
    let routes_in_file = matches!(rules, Rules::Hops(_)) && file.is_some();
    let gateway = child::Gateway::start(&child::Order {
        ends: (!routes_in_file).then_some([&place.input, &place.output]),
        method: &order.method,
        rules: file,
        cpu: place.processor,
        realtime: order.realtime,
        one_thread: false,
    })?;
    Ok(Gateway::Process(gateway))
}

impl Gateway {
    /// Ends the gateway and reads its account.
    fn stop(self) -> failure::Result<Counts> {
        match self {
            Self::Process(gateway) => gateway.stop().map(|account| account.counts),
            Self::Nothing => Ok(Counts::default()),
            Self::Jobs(jobs) => stop_jobs(jobs),
        }
    }
}

/// The jobs that did not exist before. A job may exist twice.
fn added(after: Vec<Job>, before: &[Job]) -> Vec<Job> {
    let mut before: Vec<&Job> = before.iter().collect();
    let mut is_new = |job: &Job| match before.iter().position(|old| *old == job) {
        Some(at) => {
            before.remove(at);
            false
        }
        None => true,
    };
    after.into_iter().filter(|job| is_new(job)).collect()
}

/// Deletes these jobs and sums up what they have counted.
fn stop_jobs(jobs: Vec<Job>) -> failure::Result<Counts> {
    let listed = can_gw::list()?;
    let counters = listed.iter().filter(|listed| jobs.contains(&listed.job)).map(|listed| listed.counters);
    let (transmitted, dropped) = counters.fold((0, 0), |(handled, dropped), counted| {
        let not_forwarded = u64::from(counted.dropped) + u64::from(counted.deleted);
        (handled + u64::from(counted.handled), dropped + not_forwarded)
    });
    let steps: Vec<Step> = jobs.into_iter().map(Step::Delete).collect();
    install::carry_out(&steps)?;
    Ok(Counts { received: transmitted + dropped, transmitted, dropped, ..Counts::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_were_there_before_are_not_the_study_s_own() {
        let job = |id| Job { user_id: Some(id), source: 3, destination: 4, ..Job::default() };
        assert_eq!(added(vec![job(1), job(2), job(1)], &[job(1)]), [job(2), job(1)]);
        assert_eq!(added(vec![job(1)], &[job(1), job(5)]), []);
    }
}
