//! The instrument on virtual wires: the kernel's source sends, and the wires stamp. A latency is the start of the frame
//! on the routed wire minus its delivery on the direct one, which is its end and however late the wire's timer ran. No
//! process of the meter is involved, and the floor is 0. The meter sleeps while frames are on their way: of a schedule it
//! reads the stamps when all are through, and one at a time the routed frame's end wakes it.

use super::{
    deliveries::Deliveries,
    experiment::{Experiment, Kept, Outcome, Port, Schedule, Sending, Surroundings},
    instrument::{Instrument, Setup, Silence},
};
use canter_cli::failure::{self, Exit, Failure};
use canter_io::{
    Frame, Interface, clock,
    frame::BitRate,
    method::{Receive, Transmit},
    netlink::wire::{self, Bus, BusStats, Pace, Source},
    poll,
    tap::{Edge, Record, Tap, TapReceiver},
    thread,
};
use canter_measure::result::{Condition, Series, WireKept};
use canter_route::{
    canwire,
    traffic::{pattern::Traffic, random::Random, template},
};
use std::{
    io,
    os::fd::BorrowedFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The two wires of a measurement.
pub struct Buses {
    direct: Bus,
    routed: Bus,
    /// The interfaces of the named nodes; a named bus has none.
    named: Vec<Interface>,
    deliveries: Arc<Mutex<Deliveries>>,
}

fn locked(deliveries: &Mutex<Deliveries>) -> MutexGuard<'_, Deliveries> {
    deliveries.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Buses {
    pub fn find(setup: &Setup) -> failure::Result<Self> {
        let find = |name: &str| {
            let bus = wire::bus(&canwire::bus_of(name)?)?;
            if bus.bitrate.is_none() {
                let why =
                    format!("bus {}: no node is up (ip link set NODE up type can bitrate 500000)", bus.name);
                return Err(Failure::failed(why));
            }
            Ok(bus)
        };
        let (direct, routed) = (find(&setup.send)?, find(&setup.routed)?);
        if let Some(name) = setup.direct.as_deref()
            && find(name)?.name != direct.name
        {
            let why = format!("{name}: is not on bus {} of {}", direct.name, setup.send);
            return Err(Failure::new(Exit::Usage, why));
        }
        if direct.name == routed.name {
            let why = format!(
                "{}: is also on bus {}, so there is no gateway between them",
                setup.routed, direct.name
            );
            return Err(Failure::new(Exit::Usage, why));
        }
        if setup.null {
            let why = "--null: the instrument wire reports its floor with every result";
            return Err(Failure::new(Exit::Usage, why));
        }
        let names = [Some(&setup.send), setup.direct.as_ref(), Some(&setup.routed)];
        let named = names.into_iter().flatten().filter_map(|name| Interface::find(name).ok()).collect();
        let deliveries = Arc::new(Mutex::new(Deliveries::default()));
        Ok(Self { direct, routed, named, deliveries })
    }

    fn rate(bus: &Bus) -> BitRate {
        let nominal = bus.bitrate.unwrap_or(1_000_000);
        BitRate { nominal, data: bus.data_bitrate.unwrap_or(nominal) }
    }

    /// The direct wire's tap: the source's frames, as they are delivered.
    fn direct(&self) -> failure::Result<Box<dyn Receive>> {
        let deliveries = Arc::clone(&self.deliveries);
        let keep = move |record: &Record| {
            let ours = record.sender.is_none();
            if ours {
                locked(&deliveries).count(record.late_ns.into(), record.duration_ns());
            }
            ours
        };
        Ok(Box::new(TapReceiver::new(Tap::open(&self.direct.name)?, Edge::Delivery, keep)))
    }

    /// A tap that holds all frames of a schedule, because it is read after the last one.
    fn roomy_tap(&self, bus: &Bus, count: u64) -> failure::Result<Tap> {
        let tap = Tap::open(&bus.name)?;
        let records = tap.capacity();
        // A full ring may already overwrite its oldest record.
        if count >= records {
            let more = (count + 1).next_power_of_two();
            return Err(Failure::unable(format!(
                "bus {}: its tap keeps {records} frames, and is read after the last one (--count {}, or load canwire with \
                 tap_records={more})",
                bus.name,
                records - 1
            )));
        }
        Ok(tap)
    }

    /// The routed wire's tap: the nodes' frames, at their starts.
    fn routed(&self) -> failure::Result<Box<dyn Receive>> {
        let keep = |record: &Record| record.sender.is_some();
        Ok(Box::new(TapReceiver::new(Tap::open(&self.routed.name)?, Edge::Start, keep)))
    }
}

impl Instrument for Buses {
    fn interfaces(&self) -> Vec<&Interface> {
        self.named.iter().collect()
    }

    fn experiment(&self, setup: &Setup, frame: Frame) -> failure::Result<(Experiment, Sending, Condition)> {
        if frame.is_fd() {
            refuse_classic(&self.direct)?;
            refuse_classic(&self.routed)?;
        }
        let name = self.direct.name.clone();
        let count = u32::try_from(setup.count).map_err(|_| {
            Failure::new(Exit::Usage, format!("--count {}: at most {}", setup.count, u32::MAX))
        })?;
        let frame_ns = template::mean_ns(&frame, setup.count, Self::rate(&self.direct));
        let sending = match canwire::pace(setup.traffic)? {
            None => {
                let random = Random(setup.seed);
                Sending::Frames(Box::new(OneByOne { bus: name, jitter_ns: setup.jitter, random }))
            }
            Some((pace, burst)) => {
                // Boots with other seeds begin at another time relative to the kernel's timers.
                let delay_ns = (setup.jitter > 0).then(|| later(setup.jitter, &mut Random(setup.seed)));
                let source = Source {
                    frame,
                    pace,
                    burst,
                    count: Some(count),
                    delay_ns,
                    number: true,
                    ..Source::default()
                };
                self.roomy_tap(&self.direct, setup.count)?;
                let through = self.roomy_tap(&self.routed, setup.count)?;
                let lasts_ns = delay_ns.unwrap_or(0) + source_ns(setup.traffic, setup.count, frame_ns);
                let lasts_ns = lasts_ns + lasts_ns / MARGIN_PART + MARGIN_NS;
                Sending::Schedule(Box::new(Scheduled { bus: name, source, lasts_ns, through }))
            }
        };
        let experiment = Experiment {
            direct: self.direct()?,
            routed: self.routed()?,
            traffic: setup.traffic,
            frame_ns,
            gap_ns: setup.gap,
            jitter_ns: 0, // the source adds it by its timer
            seed: setup.seed,
            frame,
            count: setup.count,
            wire: None, // neither stamp includes the frame's duration
        };
        let names = vec![setup.send.clone(), setup.routed.clone()];
        let condition =
            Condition { instrument: "wire".to_owned(), ..setup.condition(&frame, frame_ns, names) };
        Ok((experiment, sending, condition))
    }

    fn surroundings(&self, setup: &Setup) -> Box<dyn Surroundings> {
        let _ = thread::wake_on_time(); // without it, frames are only less dense
        match setup.traffic {
            Traffic::OneAtATime => Box::new(WokenByArrival),
            _ => Box::new(Asleep { sleep_ns_max: u64::MAX }),
        }
    }

    fn failed(&self, port: Port, error: io::Error) -> Failure {
        let bus = if port == Port::Routed { &self.routed } else { &self.direct };
        let step = if port == Port::Send { "source" } else { "tap" };
        Failure::failed(format!("bus {}: {step}: {error}", bus.name))
    }

    fn silence(&self, outcome: &Outcome) -> Option<Silence> {
        let (tally, direct, routed) = (&outcome.tally, &self.direct.name, &self.routed.name);
        if tally.received > 0 || (tally.lost == 0 && tally.sent > 0) {
            return None;
        }
        let what = |why: String| format!("{why}; {} frames sent, none received", tally.sent);
        Some(if tally.sent == 0 || tally.lost_after_direct == 0 {
            Silence::Sender(what(format!(
                "bus {direct}: carries no frame (canter analyze {direct} shows why)"
            )))
        } else {
            Silence::Gateway(what(format!(
                "bus {routed}: carries no frame (is a gateway running from {direct} to {routed}, and is there \
                 a second node on {routed} that acknowledges?)"
            )))
        })
    }

    fn late(&self) -> u64 {
        locked(&self.deliveries).late()
    }

    fn invalid(&self, outcome: &Outcome) -> Option<String> {
        (outcome.queue_drops > 0).then(|| {
            let (direct, routed) = (&self.direct.name, &self.routed.name);
            let lost = outcome.queue_drops;
            format!("bus {direct}, {routed}: tap: {lost} records were overwritten before they were read")
        })
    }

    fn complete(&self, _setup: &Setup, series: &mut Series) -> failure::Result<()> {
        let since = |before: &Bus| wire::bus(&before.name).map(|now| [before.stats, now.stats]);
        let both = [since(&self.direct)?, since(&self.routed)?];
        let sum = |figure: fn(&BusStats) -> u64| {
            both.iter().map(|[before, now]| figure(now).saturating_sub(figure(before))).sum()
        };
        let behind = locked(&self.deliveries).behind_ns();
        series.floor_ns = Some(0);
        series.wire = Some(WireKept {
            late_ns_p50: behind.p50,
            late_ns_max: behind.max,
            slips: sum(|stats| stats.slips),
            slip_ns: sum(|stats| stats.slip_ns),
            overruns: sum(|stats| stats.overruns),
            errors: sum(|stats| stats.errors),
        });
        Ok(())
    }
}

/// Refuses FD frames on a bus with a node without FD, which would destroy them by error frames.
fn refuse_classic(bus: &Bus) -> failure::Result<()> {
    for node in wire::nodes_of(&bus.name)?.iter().filter(|node| !node.fd_tolerant) {
        let name = &node.name;
        if Interface::find(name).is_ok_and(|interface| interface.up && !interface.supports_fd()) {
            let way_out = "ip link set … type can … dbitrate 2000000 fd on";
            return Err(Failure::unable(format!(
                "{name}: destroys FD frames on bus {} ({way_out})",
                bus.name
            )));
        }
    }
    Ok(())
}

/// What the meter sleeps longer than a schedule should take: asking whether the source still sends would disturb it.
const MARGIN_PART: u64 = 50;
/// The least of what the meter sleeps longer.
const MARGIN_NS: u64 = 1_000_000;

/// The time that a schedule of `count` frames takes, in ns.
pub(super) fn source_ns(traffic: Traffic, count: u64, frame_ns: u64) -> u64 {
    let frames = count.saturating_sub(1);
    match traffic {
        Traffic::Burst { frames: burst, every_ns } => {
            (frames / u64::from(burst.max(1))).saturating_mul(every_ns)
        }
        other => frames.saturating_mul(other.period_ns(frame_ns).unwrap_or(frame_ns)),
    }
}

/// Surroundings in which the end of the routed frame wakes the meter: however late the frame is, no code of the meter
/// runs beside the gateway before.
struct WokenByArrival;

impl Surroundings for WokenByArrival {
    fn now_ns(&self) -> u64 {
        clock::monotonic_ns()
    }

    fn wait(&mut self, until_ns: u64, [_, routed]: [&dyn Receive; 2]) -> io::Result<()> {
        let left_ns = until_ns.saturating_sub(self.now_ns());
        poll::readable(routed.descriptor().as_slice(), Some(left_ns)).map(drop)
    }
}

/// Surroundings in which the meter sleeps while frames are on their way: no code of the meter runs beside the gateway.
pub(super) struct Asleep {
    pub sleep_ns_max: u64,
}

impl Surroundings for Asleep {
    fn now_ns(&self) -> u64 {
        clock::monotonic_ns()
    }

    fn wait(&mut self, until_ns: u64, _: [&dyn Receive; 2]) -> io::Result<()> {
        let now_ns = self.now_ns();
        clock::sleep_until_ns(until_ns.min(now_ns.saturating_add(self.sleep_ns_max)));
        Ok(())
    }
}

/// A sender whose source sends one frame per command.
struct OneByOne {
    bus: String,
    /// A random delay, up to this many ns.
    jitter_ns: u64,
    random: Random,
}

/// The time from the command to the start of the frame, by which the meter is asleep again.
pub(super) const AHEAD_NS: u64 = 30_000;

/// The time from a command to the start of its first frame.
fn later(jitter_ns: u64, random: &mut Random) -> u64 {
    AHEAD_NS.saturating_add(random.below(jitter_ns.saturating_add(1)))
}

impl Transmit for OneByOne {
    fn transmit(&mut self, frames: &[Frame]) -> io::Result<usize> {
        let Some(&frame) = frames.first() else { return Ok(0) };
        let source = Source {
            frame,
            pace: Pace::Always,
            count: Some(1),
            delay_ns: Some(later(self.jitter_ns, &mut self.random)),
            ..Source::default()
        };
        match wire::start(&self.bus, &source) {
            Ok(()) => Ok(1),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(0), // the previous frame is still being sent
            Err(error) => Err(io_error(error)),
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A sender whose source sends on a schedule.
struct Scheduled {
    bus: String,
    source: Source,
    /// The time that its frames take at least.
    lasts_ns: u64,
    /// The routed wire's tap, whose count of records is looked at.
    through: Tap,
}

fn io_error(error: canter_io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}

impl Schedule for Scheduled {
    fn start(&mut self) -> io::Result<()> {
        wire::start(&self.bus, &self.source).map_err(io_error)
    }

    fn is_running(&mut self) -> io::Result<bool> {
        wire::bus(&self.bus).map(|bus| bus.source.running).map_err(io_error)
    }

    fn stop(&mut self) -> io::Result<()> {
        wire::stop(&self.bus).map_err(io_error)
    }

    fn kept(&mut self) -> io::Result<Option<Kept>> {
        Ok(Some(Kept { lasts_ns: self.lasts_ns, through: self.through.written() }))
    }
}
