//! The papers' testbed: a sender with can0 and can1 on bus A and can2 on bus B, and a gateway with can3 on A and can4
//! on B. In the lab both are one machine; with two processors each side has its own, interrupts included.
//!
//! On virtual wires the sender needs only one interface, which acknowledges the gateway's frames: the wires send and
//! stamp, so that no code of the sender runs beside the gateway. The analyzer stamps outside of the machine, and a socket
//! sends. With the exact instrument (`bus = "probe"`) can0 and
//! can2 are its cards, and the gateway's cards have the driver that its method needs.

use super::{
    definition::{Bus, Kind, Study},
    load::Load,
    plan::{Case, DIRECT, INTERRUPT, LatencyPlan, has_no_gateway},
    preparation::{Rate, SENDER_CPU, place_interrupts, set_up},
    rules::Rules,
    side::{Order, Place, Side},
};
use crate::{
    lab::topology,
    meter::{
        instrument::{InstrumentName, Setup, WireTime},
        measurement::{self, Account, Measured},
    },
};
use canter_cli::{
    failure::{self, Exit, Failure},
    options::Common,
};
use canter_io::Interface;
use canter_measure::result::{RECEIVING, Series};
use canter_route::{
    gateway::{kind::Method, table::paper_name},
    rules::counts::Counts,
    traffic::template::Template,
};
use std::{collections::BTreeSet, sync::atomic::AtomicBool};

/// The interfaces and processor of the sender's side.
#[derive(Clone, Debug, Default)]
pub struct Bed {
    pub send: String,
    pub direct: Option<String>,
    pub routed: String,
    /// The interfaces that must be up.
    pub up: Vec<String>,
    /// An interface on the sender's bus, to measure the meter's floor.
    pub null: Option<String>,
    pub instrument: InstrumentName,
    /// The addresses of the gateway's cards, if each method gets them with the driver that it needs.
    pub gateways: Option<[String; 2]>,
    /// The sender's processor.
    pub processor: Option<usize>,
    /// The processors of both sides, in words for the result.
    pub bound: &'static str,
}

/// The gateway's processor, if each side has one.
const GATEWAY_CPU: usize = 1;
/// What two processors are for.
const APART: &str =
    "sender, meter and their interrupts on processor 0, gateway and its interrupts on processor 1";
/// What a machine with one processor leaves no choice of.
pub const TOGETHER: &str = "everything on the only processor";
/// The quantity of what lies between the meter's stamps without a gateway.
const OWN_TIME: &str = "time without a gateway";
/// Another interface on the sender's bus: acknowledges what the exact instrument sends, and stamps beside the analyzer.
const WITNESS: &str = "can1";

/// The testbed of the lab, for a study.
pub fn of_lab(study: &Study) -> (Bed, Place) {
    let (bed, place) = sides(study);
    let bound = match (study.lab.cpus, bed.processor) {
        (1, _) => TOGETHER,
        (_, Some(_)) => APART,
        (_, None) => "",
    };
    (Bed { bound, ..bed }, place)
}

fn sides(study: &Study) -> (Bed, Place) {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let apart = study.lab.cpus > 1;
    // canchar's first two devices are those of the lab's option.
    let devices = ["/dev/canchar0", "/dev/canchar1"];
    let place = |input: &str, output: &str| Place {
        input: input.to_owned(),
        output: output.to_owned(),
        processor: apart.then_some(GATEWAY_CPU),
        ..Place::default()
    };
    if study.lab.bus == Bus::Probe {
        let cards = Some([topology::card_address(3), topology::card_address(4)]);
        let bed = Bed { gateways: cards.clone(), ..exact() };
        return (bed, Place { cards, processor: None, ..place("can3", "can4") });
    }
    if study.lab.analyzer {
        let interfaces = match (study.lab.bus, &study.lab.canchar) {
            (Bus::Wire, _) => ["wcan0", "wcan2", "wcan3", "wcan4"],
            (Bus::Fd, _) => ["can5", "can2", "can7", "can8"],
            (_, None) => ["can0", "can2", "can3", "can4"],
            (_, Some(_)) => ["can0", "can2", devices[0], devices[1]],
        };
        let [send, routed, input, output] = interfaces;
        let beside_sockets = matches!(&study.kind, Kind::Latency(plan) if plan.beside_sockets);
        let direct = beside_sockets.then_some(WITNESS);
        let up: Vec<&str> = interfaces.into_iter().chain(direct).collect();
        let bed = Bed {
            send: send.to_owned(),
            direct: direct.map(str::to_owned),
            routed: routed.to_owned(),
            up: names(&up),
            instrument: InstrumentName::Analyzer,
            processor: apart.then_some(SENDER_CPU),
            ..Bed::default()
        };
        return (bed, place(input, output));
    }
    if study.lab.bus == Bus::Wire {
        let [input, output] = if study.lab.canchar.is_some() { devices } else { ["wcan3", "wcan4"] };
        let bed = Bed {
            send: "A".to_owned(),
            routed: "B".to_owned(),
            up: names(&["wcan2", input, output]),
            instrument: InstrumentName::Wire,
            ..Bed::default()
        };
        let witness = Some("wcan1".to_owned());
        return (bed, Place { witness, processor: None, ..place(input, output) });
    }
    let interfaces = match (study.lab.bus, &study.lab.canchar) {
        (Bus::Fd, _) => ["can5", "can6", "can2", "can7", "can8"],
        (_, None) => ["can0", "can1", "can2", "can3", "can4"],
        (_, Some(_)) => ["can0", "can1", "can2", devices[0], devices[1]],
    };
    let [send, direct, routed, input, output] = interfaces;
    let bed = Bed {
        send: send.to_owned(),
        direct: Some(direct.to_owned()),
        routed: routed.to_owned(),
        up: names(&interfaces),
        null: study.lab.canchar.is_none().then(|| input.to_owned()),
        processor: apart.then_some(SENDER_CPU),
        ..Bed::default()
    };
    (bed, place(input, output))
}

/// The exact instrument on cards: no interface of the sender is up, so no code of the sender runs beside the gateway.
fn exact() -> Bed {
    Bed {
        send: "can0".to_owned(),
        routed: "can2".to_owned(),
        instrument: InstrumentName::Probe,
        ..Bed::default()
    }
}

/// A step of a measurement.
pub enum Step<'a> {
    /// A step: all interfaces are up.
    Begun(&'a [Interface]),
    /// A step: the case of this number has its series, or the reason why it has none.
    Measured(usize, &'a Case, Box<Series>),
    /// A step: a case failed, for this reason; the others continue.
    Failed(&'a Case, String),
}

/// Measures every case of the plan that is not `known`, one after the other.
pub fn measure(
    study: &Study,
    plan: &LatencyPlan,
    bed: &Bed,
    side: &mut dyn Side,
    known: &BTreeSet<usize>,
    step: &mut dyn FnMut(Step<'_>),
) -> failure::Result<()> {
    let rate = Rate::of(plan.fd);
    let interfaces = bed.up.iter().map(|name| set_up(name, rate)).collect::<failure::Result<Vec<_>>>()?;
    bed.place_interrupts(side)?;
    step(Step::Begun(&interfaces));
    let cases = plan.cases();
    let mut floor_ns = None;
    for (number, case) in cases.iter().enumerate().filter(|(number, _)| !known.contains(number)) {
        if floor_ns.is_none() {
            floor_ns = bed.floor(&bed.setup(plan, case)?, bed.meter(Load::default(), 0), side.stop())?;
        }
        match bed.case(plan, case, side) {
            Ok(mut one) => {
                one.floor_ns = floor_ns.or(one.floor_ns);
                let first = number < plan.methods.len();
                one.paper = study.paper_of_case(case, first).filter(|_| one.unavailable.is_empty());
                step(Step::Measured(number, case, Box::new(one)));
            }
            Err(failure) if failure.exit == Exit::Interrupted || side.is_lost() => return Err(failure),
            Err(failure) => step(Step::Failed(case, failure.message)),
        }
    }
    Ok(())
}

impl Bed {
    fn place_interrupts(&self, side: &dyn Side) -> failure::Result<()> {
        let Some(processor) = self.processor else { return Ok(()) };
        let interfaces = [Some(&self.send), self.direct.as_ref(), Some(&self.routed)];
        let interfaces: Vec<&str> = interfaces.into_iter().flatten().map(String::as_str).collect();
        place_interrupts(&interfaces, processor)?;
        let gateways = side.interfaces()?;
        let names: Vec<&str> = gateways.iter().map(|interface| interface.name.as_str()).collect();
        place_interrupts(&names, GATEWAY_CPU)
    }

    /// The meter's options. With a load, the meter has the highest priority, as in the papers; also with a gateway under
    /// SCHED_FIFO, which
    /// may never sleep. No progress bar: nobody watches this process.
    fn meter(&self, load: Load, gateways: u8) -> Common {
        const PRIORITY: u8 = 95;
        let realtime = (!load.is_none() || gateways > 0).then_some(PRIORITY);
        Common { cpu: self.processor, realtime, quiet: true, ..Common::default() }
    }

    fn setup(&self, plan: &LatencyPlan, case: &Case) -> failure::Result<Setup> {
        let null = self.null.as_ref().filter(|_| case.method == DIRECT);
        let witness = (case.method == INTERRUPT).then_some(WITNESS);
        Ok(Setup {
            send: self.send.clone(),
            direct: self.direct.clone(),
            routed: witness.or(null.map(String::as_str)).unwrap_or(&self.routed).to_owned(),
            traffic: case.traffic,
            count: plan.count,
            gap: plan.gap_ns,
            jitter: plan.jitter_ns,
            seed: plan.seed,
            template: Template::new(case.rules.frame_id(), case.len, plan.fd),
            null: has_no_gateway(&case.method),
            wire_time: WireTime::Auto,
            instrument: self.instrument,
            beside_sockets: plan.beside_sockets,
            gateway: None,
            timeline: plan.timeline,
            handler: plan.handler.and_then(|end| Some(end.card(self.gateways.as_ref()?).to_owned())),
        })
    }

    /// The meter's floor: a measurement without a gateway, by another interface on the sender's bus. `None`: the
    /// instrument reports its floor with each result, or there is no such interface.
    fn floor(&self, setup: &Setup, meter: Common, stop: &AtomicBool) -> failure::Result<Option<u64>> {
        let Some(null) = &self.null else { return Ok(None) };
        let null = Setup { routed: null.clone(), null: true, timeline: false, ..setup.clone() };
        let measured = measure_in_thread(&null, &meter, &[], stop)?;
        Ok(Some(measured.series.latency_ns.map_or(0, |latency| latency.p50)))
    }

    /// Measures one gateway, from its start to its account.
    fn case(&self, plan: &LatencyPlan, case: &Case, side: &mut dyn Side) -> failure::Result<Series> {
        let setup = self.setup(plan, case)?;
        let frame = setup.template.frame()?;
        let unavailable = |reason: String| {
            let mut condition = setup.condition(&frame, 0, Vec::new());
            condition.frames = 0;
            case.mark(&mut condition);
            let paper_name = paper_name(&case.method).to_owned();
            Ok(Series { paper_name, ..Series::unavailable(&case.method, condition, reason) })
        };
        if case.method == DIRECT && self.null.is_none() {
            return unavailable(
                "needs bus = \"sja1000\" without canchar and without the analyzer".to_owned(),
            );
        }
        let needs_exact = case.method == INTERRUPT || plan.handler.is_some();
        if needs_exact && self.instrument != InstrumentName::Probe {
            return unavailable("needs bus = \"probe\" (the exact instrument)".to_owned());
        }
        let method = case.method.parse::<Method>();
        if !has_no_gateway(&case.method) && method.is_err() {
            return unavailable("not part of this version".to_owned());
        }
        let order = Order {
            method: case.method.clone(),
            rules: case.rules.to_string(),
            load: case.load,
            realtime: plan.realtime,
            tuning: case.tuning,
            fd: plan.fd,
        };
        match side.begin(&order) {
            Err(Failure { exit: Exit::Unable, message }) => return unavailable(message),
            begun => begun?,
        }
        let watched = match method {
            Ok(method) if !method.kind.keeps_interfaces() => Ok(Vec::new()),
            _ => side.interfaces(),
        };
        let meter = self.meter(case.load, plan.realtime);
        let measured = watched.and_then(|watched| {
            let setup = Setup { gateway: side.process(), ..setup.clone() };
            measure_in_thread(&setup, &meter, &watched.iter().collect::<Vec<_>>(), side.stop())
        });
        let counts = side.end()?; // also after an error: the next case begins anew
        let Measured { mut series, mut account, interrupted, silent, .. } = match measured {
            Ok(measured) => measured,
            Err(failure) if failure.exit == Exit::Lost => return unavailable(failure.message), // nothing was sent
            Err(failure) => return Err(failure),
        };
        if interrupted {
            return Err(Failure::new(Exit::Interrupted, "study: interrupted"));
        }
        match silent {
            Some(_) if case.rules == Rules::Drop => received_only(&mut series, &mut account, &counts),
            Some(why) if has_no_gateway(&case.method) => return unavailable(why),
            Some(_) | None => {} // a gateway that loses every frame is a result
        }
        if case.method == DIRECT {
            OWN_TIME.clone_into(&mut series.quantity);
        }
        series.ledger = account.ledger(&counts);
        series.method.clone_from(&case.method);
        series.paper_name = paper_name(&case.method).to_owned();
        case.mark(&mut series.condition);
        self.bound.clone_into(&mut series.condition.bound);
        Ok(series)
    }
}

/// The series of frames that end in the gateway: they have no latency, and none is lost that the gateway has received.
fn received_only(series: &mut Series, account: &mut Account, gateway: &Counts) {
    RECEIVING.clone_into(&mut series.quantity);
    series.latency_ns = None;
    if let Some(timeline) = &mut series.timeline {
        timeline.slots.clear();
    }
    account.tally.received = gateway.received;
    account.tally.lost = account.tally.sent.saturating_sub(gateway.received);
}

/// Measures in a separate thread, so that no other thread inherits its priority and processor.
fn measure_in_thread(
    setup: &Setup,
    meter: &Common,
    watched: &[&Interface],
    stop: &AtomicBool,
) -> failure::Result<Measured> {
    let measured =
        std::thread::scope(|scope| scope.spawn(|| measurement::measure(setup, meter, watched, stop)).join());
    measured.unwrap_or_else(|_| Err(Failure::failed("study: the meter panicked")))
}
