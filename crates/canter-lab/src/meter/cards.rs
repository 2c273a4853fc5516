//! The exact instrument, on two SJA1000 cards (the module canprobe): a timer's interrupt writes a frame to one card,
//! and the other card's interrupt stamps it. The gateway's process is the only one involved; each result has the
//! instrument's floor. The cards are unbound from their drivers for the measurement and bound again afterwards.

use super::{
    experiment::{Experiment, Kept, Outcome, Port, Schedule, Sending, Surroundings},
    instrument::{Instrument, Setup, Silence},
    wires::{AHEAD_NS, Asleep, source_ns},
};
use canter_cli::failure::{self, Exit, Failure};
use canter_io::{
    Batch, Frame, Interface, Meta,
    batch::{Clock, Origin},
    canprobe::{self, HANDLER, Plan, Record, SENT},
    frame::BitRate,
    method::{Receive, Transmit},
    netlink::wire::Pace,
    pci::{self, Lent},
    thread,
};
use canter_measure::{
    environment,
    histogram::Histogram,
    result::{Condition, HANDLER_TIME, Series},
};
use canter_route::{
    canwire,
    traffic::{pattern::Traffic, template},
};
use std::{
    collections::VecDeque,
    io,
    os::fd::BorrowedFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The bit rate of a card whose interface has none, in bit/s.
const BIT_RATE: u32 = 500_000;
/// The number of records that one call reads.
const READ_RECORDS: usize = 256;
/// One at a time: the meter reads the stamps this long after the frame should have arrived, so that it does not wake up
/// beside the gateway.
const SETTLE_NS: u64 = 20_000;
/// The number of records that the instrument keeps of each side (CANPROBE_RECORDS).
const KEPT_RECORDS: u64 = 16_384;
/// The shortest period of the instrument.
const PERIOD_NS_MIN: u64 = 1_000;

/// The cards of a measurement, and the instrument on them.
pub struct Cards {
    shared: Shared,
    bitrate: u32,
    names: [String; 2],
    // Dropped after the instrument, in this order.
    _lent: [Lent; 2],
}

/// The instrument, shared by its sender and both receivers.
type Shared = Arc<Mutex<Open>>;

struct Open {
    instrument: canprobe::Instrument,
    /// Records of sent and of received frames that have not been read yet.
    waiting: [VecDeque<Record>; 2],
    records: Box<[Record]>,
    /// The run times of the watched handler.
    handler: Option<Histogram>,
}

fn locked(shared: &Shared) -> MutexGuard<'_, Open> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cards {
    pub fn find(setup: &Setup) -> failure::Result<Self> {
        if let Some(direct) = &setup.direct {
            let why = format!(
                "--direct {direct}: not with --instrument probe, which stamps the frame when it is sent"
            );
            return Err(Failure::new(Exit::Usage, why));
        }
        let [send, routed] = [pci::address(&setup.send)?, pci::address(&setup.routed)?];
        if send == routed {
            let why = format!("{}: is also the sender's card (name two cards)", setup.routed);
            return Err(Failure::new(Exit::Usage, why));
        }
        if !std::path::Path::new("/sys/bus/pci/drivers").join(canprobe::DRIVER).exists() {
            let way_out = "modprobe canprobe, or canter lab --bus probe";
            return Err(Failure::unable(format!("probe: the module canprobe is not loaded ({way_out})")));
        }
        let line = setup.handler.as_deref().map(|card| line(card, [&send, &routed])).transpose()?;
        let bitrate = Interface::find(&setup.send).ok().and_then(|interface| interface.bitrate());
        let lent = [Lent::bind(Some(canprobe::DRIVER), &send)?, Lent::bind(Some(canprobe::DRIVER), &routed)?];
        let instrument = canprobe::Instrument::open()
            .map_err(|error| Failure::failed(format!("{}: open: {error}", canprobe::PATH)))?;
        if let Some((card, line)) = setup.handler.as_ref().zip(line) {
            let failed = |error| Failure::failed(format!("{card}: watch its interrupt handler: {error}"));
            instrument.watch(line).map_err(failed)?;
        }
        let open = Open {
            instrument,
            handler: line.map(|_| Histogram::new()),
            waiting: Default::default(),
            records: vec![Record::default(); READ_RECORDS].into_boxed_slice(),
        };
        Ok(Self {
            shared: Arc::new(Mutex::new(open)),
            bitrate: bitrate.unwrap_or(BIT_RATE),
            names: [setup.send.clone(), setup.routed.clone()],
            _lent: lent,
        })
    }

    fn rate(&self) -> BitRate {
        BitRate { nominal: self.bitrate, data: self.bitrate }
    }

    /// A frame passes both buses between the command and the interrupt: half the rate gives twice the time. On the
    /// lab's emulated cards a frame takes no time.
    fn wire(&self, setup: &Setup) -> Option<BitRate> {
        let takes_time = setup.wire_time.is_taken(|| !environment::in_lab());
        let rate = if setup.null { self.bitrate } else { self.bitrate / 2 };
        takes_time.then_some(BitRate { nominal: rate, data: rate })
    }

    fn plan(&self, setup: &Setup, frame: &Frame, frame_ns: u64) -> failure::Result<Option<Plan>> {
        let count = u32::try_from(setup.count).map_err(|_| {
            Failure::new(Exit::Usage, format!("--count {}: at most {}", setup.count, u32::MAX))
        })?;
        let Some((pace, burst)) = canwire::pace(setup.traffic)? else { return Ok(None) };
        if setup.count > KEPT_RECORDS {
            return Err(Failure::unable(format!(
                "{}: keeps {KEPT_RECORDS} frames, and is read after the last one (--count {KEPT_RECORDS})",
                canprobe::PATH
            )));
        }
        let period_ns = match pace {
            Pace::Period(ns) => ns,
            Pace::Load(permille) => frame_ns * 1000 / u64::from(permille).max(1),
            Pace::Always => frame_ns,
        };
        let period_ns = period_ns.max(PERIOD_NS_MIN);
        Ok(Some(Plan { period_ns, burst, count, numbered: 1, ..one(frame, self.bitrate) }))
    }
}

/// The interrupt line of a card that is not one of the instrument's.
fn line(card: &str, own: [&String; 2]) -> failure::Result<u32> {
    let address = pci::address(card)?;
    if own.contains(&&address) {
        return Err(Failure::new(
            Exit::Usage,
            format!("--handler {card}: is a card of the instrument (name a card of the gateway)"),
        ));
    }
    Ok(pci::interrupt_line(&address)?)
}

/// The plan to send one frame.
fn one(frame: &Frame, bitrate: u32) -> Plan {
    let mut plan = Plan {
        can_id: frame.can_id,
        len: frame.len,
        delay_ns: AHEAD_NS,
        period_ns: PERIOD_NS_MIN,
        count: 1,
        burst: 1,
        bitrate,
        ..Plan::default()
    };
    plan.data.copy_from_slice(&frame.data[..8]);
    plan
}

impl Instrument for Cards {
    /// No interfaces: the cards have none during the measurement.
    fn interfaces(&self) -> Vec<&Interface> {
        Vec::new()
    }

    fn experiment(&self, setup: &Setup, frame: Frame) -> failure::Result<(Experiment, Sending, Condition)> {
        if frame.is_fd() || frame.len < 2 {
            let why = "--instrument probe: classic frames of 2…8 bytes";
            return Err(Failure::new(Exit::Usage, why));
        }
        let frame_ns = template::mean_ns(&frame, setup.count, self.rate());
        let shared = || Arc::clone(&self.shared);
        let sending = match self.plan(setup, &frame, frame_ns)? {
            None => Sending::Frames(Box::new(OneByOne { shared: shared(), bitrate: self.bitrate })),
            Some(plan) => {
                let lasts_ns = AHEAD_NS + source_ns(setup.traffic, setup.count, plan.period_ns);
                Sending::Schedule(Box::new(Scheduled { shared: shared(), plan, lasts_ns }))
            }
        };
        let experiment = Experiment {
            direct: Box::new(Side { shared: shared(), side: SENT }),
            routed: Box::new(Side { shared: shared(), side: 1 - SENT }),
            traffic: setup.traffic,
            frame_ns,
            gap_ns: setup.gap.saturating_sub(SETTLE_NS),
            jitter_ns: setup.jitter,
            seed: setup.seed,
            frame,
            count: setup.count,
            wire: self.wire(setup),
        };
        let condition = setup.condition(&frame, frame_ns, self.names.to_vec());
        Ok((experiment, sending, Condition { instrument: "probe".to_owned(), ..condition }))
    }

    fn surroundings(&self, setup: &Setup) -> Box<dyn Surroundings> {
        let _ = thread::wake_on_time(); // without it, frames are only less dense
        let frame_ns = if environment::in_lab() { 0 } else { 130 * 1_000_000_000 / u64::from(self.bitrate) };
        let one_by_one = setup.traffic == Traffic::OneAtATime;
        let through_ns = AHEAD_NS + 2 * frame_ns + SETTLE_NS;
        Box::new(Asleep { sleep_ns_max: if one_by_one { through_ns } else { u64::MAX } })
    }

    fn failed(&self, port: Port, error: io::Error) -> Failure {
        let step = if port == Port::Send { "send" } else { "read" };
        Failure::failed(format!("{}: {step}: {error}", canprobe::PATH))
    }

    fn silence(&self, outcome: &Outcome) -> Option<Silence> {
        let tally = &outcome.tally;
        if tally.received > 0 || (tally.lost == 0 && tally.sent > 0) {
            return None;
        }
        let [send, routed] = &self.names;
        let what = |why: String| format!("{why}; {} frames sent, none received", tally.sent);
        Some(if tally.sent == 0 {
            Silence::Sender(what(format!(
                "{send}: sends no frame (is another controller on its bus, at {} bit/s?)",
                self.bitrate
            )))
        } else {
            Silence::Gateway(what(format!(
                "{routed}: receives no frame (is a gateway running from the bus of {send} to its bus?)"
            )))
        })
    }

    fn overruns(&self) -> failure::Result<u64> {
        let state = locked(&self.shared).instrument.state();
        let state = state.map_err(|error| self.failed(Port::Routed, error))?;
        Ok(u64::from(state.overruns))
    }

    fn invalid(&self, outcome: &Outcome) -> Option<String> {
        let lost = outcome.queue_drops;
        (lost > 0).then(|| format!("{}: {lost} stamps found no room: fewer frames", canprobe::PATH))
    }

    fn complete(&self, setup: &Setup, series: &mut Series) -> failure::Result<()> {
        let mut open = locked(&self.shared);
        if let Some(card) = &setup.handler {
            open.read().map_err(|error| self.failed(Port::Routed, error))?;
            HANDLER_TIME.clone_into(&mut series.quantity);
            series.latency_ns =
                open.handler.as_ref().filter(|ran| ran.count() > 0).map(Histogram::to_latency);
            if series.latency_ns.is_none() {
                series.unavailable = format!(
                    "{card}: its interrupt handler never ran in the interrupt itself (in a thread, as on PREEMPT_RT, it is not seen)"
                );
            }
            return Ok(());
        }
        let failed = |error| Failure::failed(format!("{}: floor: {error}", canprobe::PATH));
        open.instrument.measure_floor().map_err(failed)?;
        series.floor_ns = Some(open.instrument.state().map_err(failed)?.floor_ns);
        Ok(())
    }
}

impl Open {
    /// Reads the instrument's records.
    fn read(&mut self) -> io::Result<()> {
        loop {
            let count = self.instrument.read(&mut self.records)?;
            for record in &self.records[..count] {
                match (record.side, &mut self.handler) {
                    (HANDLER, Some(ran)) => ran.record(i64::from_ne_bytes(record.data)),
                    (HANDLER, None) => {}
                    (side, _) => self.waiting[usize::from(side != SENT)].push_back(*record),
                }
            }
            if count < self.records.len() {
                return Ok(());
            }
        }
    }
}

/// One side of the instrument as a receiver. It never waits.
struct Side {
    shared: Shared,
    side: u8,
}

impl Receive for Side {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
        let mut open = locked(&self.shared);
        open.read()?;
        let waiting = &mut open.waiting[usize::from(self.side)];
        let mut count = 0;
        while batch.room() > 0 {
            let Some(record) = waiting.pop_front() else { break };
            let mut frame = Frame::default();
            (frame.can_id, frame.len) = (record.can_id, record.len);
            frame.data[..8].copy_from_slice(&record.data);
            let (clock, origin) = (Clock::Software, Origin::Bus);
            batch.push(&frame, Meta { stamp_ns: record.stamp_ns, interface: 0, drops: 0, clock, origin });
            count += 1;
        }
        Ok(count)
    }

    fn drops(&mut self) -> io::Result<u64> {
        let state = locked(&self.shared).instrument.state()?;
        Ok(if self.side == SENT { 0 } else { u64::from(state.unread) })
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A sender that sends one frame per command.
struct OneByOne {
    shared: Shared,
    bitrate: u32,
}

impl Transmit for OneByOne {
    fn transmit(&mut self, frames: &[Frame]) -> io::Result<usize> {
        let Some(frame) = frames.first() else { return Ok(0) };
        match locked(&self.shared).instrument.start(&one(frame, self.bitrate)) {
            Ok(()) => Ok(1),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(0), // the previous frame still waits
            Err(error) => Err(error),
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A sender whose instrument sends on a schedule.
struct Scheduled {
    shared: Shared,
    plan: Plan,
    /// The time that its frames take.
    lasts_ns: u64,
}

impl Schedule for Scheduled {
    fn start(&mut self) -> io::Result<()> {
        locked(&self.shared).instrument.start(&self.plan)
    }

    fn is_running(&mut self) -> io::Result<bool> {
        locked(&self.shared).instrument.state().map(|state| state.running != 0)
    }

    fn stop(&mut self) -> io::Result<()> {
        locked(&self.shared).instrument.stop()
    }

    fn kept(&mut self) -> io::Result<Option<Kept>> {
        let through = locked(&self.shared).instrument.state()?.received;
        Ok(Some(Kept { lasts_ns: self.lasts_ns, through: through.into() }))
    }
}
