//! The instrument on virtual wires: the kernel's source sends, and the wires stamp. A latency is the start of the frame
//! on the routed wire minus its delivery on the direct one, which is its end and however late the wire's timer ran. No
//! process of the meter is involved; the meter sleeps, and the floor is 0.

use super::{
    experiment::{Experiment, LATE_PART, Outcome, Port, Schedule, Sending, Surroundings},
    instrument::{Instrument, Setup, Silence},
};
use canter_cli::failure::{self, Exit, Failure};
use canter_io::{
    Frame, Interface, clock,
    frame::BitRate,
    method::{Receive, Transmit},
    netlink::wire::{self, Bus, BusStats, Pace, Source},
    tap::{Edge, Record, Tap, TapReceiver},
    thread,
};
use canter_measure::{
    histogram::Histogram,
    result::{Condition, Series, WireKept},
};
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

/// The direct wire's delivery of the source's frames.
struct Deliveries {
    /// The delays of deliveries after the ends of frames.
    behind: Histogram,
    /// The number of frames that were delivered more than [`LATE_PART`] of their duration after their end.
    late: u64,
}

impl Deliveries {
    fn count(&mut self, record: &Record) {
        self.behind.record(record.late_ns.into());
        self.late += u64::from(u64::from(record.late_ns) > record.duration_ns() / LATE_PART);
    }
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
        let deliveries = Arc::new(Mutex::new(Deliveries { behind: Histogram::new(), late: 0 }));
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
                locked(&deliveries).count(record);
            }
            ours
        };
        Ok(Box::new(TapReceiver::new(Tap::open(&self.direct.name)?, Edge::Delivery, keep)))
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
                Sending::Schedule(Box::new(Scheduled { bus: name, source }))
            }
        };
        let experiment = Experiment {
            direct: self.direct()?,
            routed: self.routed()?,
            traffic: setup.traffic,
            frame_ns,
            gap_ns: setup.gap.saturating_sub(SETTLE_NS),
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
        let frame_ns = |bus| {
            let frame = setup.template.frame().unwrap_or_default(); // it was made from the same template before
            template::mean_ns(&frame, setup.count, Self::rate(bus))
        };
        let _ = thread::wake_on_time(); // without it, frames are only less dense
        let frames_ns = frame_ns(&self.direct) + frame_ns(&self.routed);
        let through_ns = setup.jitter.saturating_add(AHEAD_NS + frames_ns + SETTLE_NS);
        let one_by_one = setup.traffic == Traffic::OneAtATime;
        Box::new(Asleep { sleep_ns_max: if one_by_one { through_ns } else { SLEEP_NS_MAX } })
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
        locked(&self.deliveries).late
    }

    fn complete(&self, _setup: &Setup, series: &mut Series) -> failure::Result<()> {
        let since = |before: &Bus| wire::bus(&before.name).map(|now| [before.stats, now.stats]);
        let both = [since(&self.direct)?, since(&self.routed)?];
        let sum = |figure: fn(&BusStats) -> u64| {
            both.iter().map(|[before, now]| figure(now).saturating_sub(figure(before))).sum()
        };
        let behind = locked(&self.deliveries).behind.to_latency();
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

/// The longest sleep: even with the shortest frames, a tap's ring is then less than half full.
pub(super) const SLEEP_NS_MAX: u64 = 100_000_000;

/// One at a time: the meter reads the stamps this long after the frame should have arrived, so that it does not wake up
/// beside the gateway.
pub(super) const SETTLE_NS: u64 = 20_000;

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
}
