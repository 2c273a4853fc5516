//! The instrument outside the machine: frames are sent by a socket or a device file, and the lab's analyzer sees when a driver
//! begins to send each, first the sender's and then the gateway's. Nothing is received or stamped in the machine, the meter
//! sleeps while a frame is on its way, and there is no floor: what the meter executes on a frame's way is taken off its latency.
//! The stamps are read when all frames are through.

use super::{
    beside_sockets::BesideSockets,
    experiment::{Experiment, Outcome, Port, Schedule, Sending, Surroundings},
    instrument::{Instrument, Setup, Silence},
    sockets,
};
use crate::analyzer::{
    account::{self, End, Way},
    session::{Program, Request, Session},
    stage::{ALL, Stage},
};
use canter_cli::{
    failure::{self, Exit, Failure},
    trouble::{explain, refuse_classic, refuse_down},
};
use canter_io::{
    Batch, Frame, Interface, Meta,
    batch::{Clock, Origin},
    clock,
    method::{Echo, Receive, Transmit, TransmitMethod, TransmitOptions},
    thread,
};
use canter_measure::{
    histogram::Histogram,
    result::{self, BESIDE_SOCKETS, Condition, Series, Stages},
};
use canter_route::traffic::{pattern::Traffic, random::Random, template};
use std::{
    collections::VecDeque,
    io,
    os::fd::BorrowedFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The largest number of frames: their events fit the analyzer's memory, and their numbers are unambiguous.
const FRAMES_MAX: u64 = 20_000;

/// The interfaces of a measurement, and what the analyzer has seen.
pub struct Analyzed {
    send: Interface,
    /// What stamps on the sender's bus, where sockets stamp too; `None`: the sender's echo does.
    direct: Option<Interface>,
    routed: Interface,
    shared: Shared,
}

type Shared = Arc<Mutex<Seen>>;

/// Shared by the sender, which asks the analyzer, and by both receivers.
struct Seen {
    session: Session,
    frame: Frame,
    /// Stamps that have not been read yet: number and time, at the sender and at the gateway.
    stamps: [VecDeque<(usize, u64)>; 2],
    ways: Vec<Way>,
    /// How far sockets are from the analyzer, in ns, of each frame; `None`: none stamped.
    apart_ns: Option<Vec<u64>>,
    /// The reason why the ways decide nothing.
    invalid: Option<String>,
}

fn locked(shared: &Shared) -> MutexGuard<'_, Seen> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Analyzed {
    pub fn find(setup: &Setup) -> failure::Result<Self> {
        Session::require()?;
        refuse(setup)?;
        let find = |name: &str| {
            let interface = Interface::find(name)?;
            refuse_down(&interface)?;
            Ok::<_, Failure>(interface)
        };
        let (send, routed) = (find(&setup.send)?, find(&setup.routed)?);
        let direct = setup.direct.as_deref().map(find).transpose()?;
        if send.name == routed.name {
            let why = format!("{}: is on both sides, so there is no gateway between them", send.name);
            return Err(Failure::new(Exit::Usage, why));
        }
        let meter = Program::of_process(Stage::Instrument, std::process::id())?;
        let gateway = setup.gateway.map(|pid| Program::of_process(Stage::Gateway, pid)).transpose()?;
        let others = if gateway.is_some() { Stage::Load } else { Stage::Gateway };
        let programs = [Some(meter), gateway].into_iter().flatten().collect();
        let session = Session::load(&Request { programs, others, marks: true })?;
        let frame = setup.template.frame()?;
        let stamps = Default::default();
        let seen = Seen { session, frame, stamps, ways: Vec::new(), apart_ns: None, invalid: None };
        Ok(Self { send, direct, routed, shared: Arc::new(Mutex::new(seen)) })
    }
}

/// Refuses what the analyzer cannot measure.
fn refuse(setup: &Setup) -> failure::Result<()> {
    let wrong = if setup.traffic != Traffic::OneAtATime {
        "--traffic: the analyzer measures frames one at a time"
    } else if setup.count > FRAMES_MAX {
        "--count: at most 20000 with --instrument analyzer, which keeps them all until the end"
    } else if setup.null {
        "--null: the instrument analyzer has no floor"
    } else if setup.direct.is_some() && !setup.beside_sockets {
        "--direct: only for --beside-sockets with --instrument analyzer, which stamps the frame when it is sent"
    } else {
        return Ok(());
    };
    Err(Failure::new(Exit::Usage, wrong))
}

impl Instrument for Analyzed {
    fn interfaces(&self) -> Vec<&Interface> {
        [Some(&self.send), self.direct.as_ref(), Some(&self.routed)].into_iter().flatten().collect()
    }

    fn experiment(&self, setup: &Setup, frame: Frame) -> failure::Result<(Experiment, Sending, Condition)> {
        if frame.is_fd() {
            self.interfaces().into_iter().try_for_each(refuse_classic)?;
        }
        let sender: TransmitMethod = self.send.carrier.usual.transmit.parse()?;
        let direct = self.direct.as_ref().unwrap_or(&self.send);
        let open = || BesideSockets::open(setup, [direct, &self.routed]);
        let beside = setup.beside_sockets.then(open).transpose()?;
        let echo = if setup.beside_sockets && self.direct.is_none() { Echo::On } else { Echo::Auto };
        let to = TransmitOptions { echo, ..TransmitOptions::default() }.without_waiting();
        let sender = sender.open(&self.send, &to)?;
        let frame_ns = template::mean_ns(&frame, setup.count, sockets::rates(&self.send));
        let side = |side| Box::new(Side { shared: Arc::clone(&self.shared), side });
        let sending = OneByOne {
            shared: Arc::clone(&self.shared),
            sender,
            beside,
            frame,
            count: setup.count,
            sent: 0,
            since_ns: 0,
            closed: false,
        };
        let experiment = Experiment {
            direct: side(0),
            routed: side(1),
            traffic: setup.traffic,
            frame_ns,
            gap_ns: setup.gap,
            jitter_ns: setup.jitter,
            seed: setup.seed,
            frame,
            count: setup.count,
            wire: None, // on a bus where a frame takes time, its way begins at its end
        };
        let names = vec![setup.send.clone(), setup.routed.clone()];
        let condition = setup.condition(&frame, frame_ns, names);
        let condition = Condition { instrument: "analyzer".to_owned(), ..condition };
        Ok((experiment, Sending::Schedule(Box::new(sending)), condition))
    }

    fn surroundings(&self, setup: &Setup) -> Box<dyn Surroundings> {
        let _ = thread::wake_on_time(); // without it, frames are only less dense
        let rate = |interface| sockets::takes_time(interface).then(|| sockets::rates(interface));
        let frame = locked(&self.shared).frame;
        let on_buses = [&self.send, &self.routed]
            .map(|interface| rate(interface).map_or(0, |rate| frame.duration_ns(rate)));
        let pause_ns = setup.gap + on_buses.iter().sum::<u64>();
        Box::new(Paused { pause_ns, jitter_ns: setup.jitter, random: Random(setup.seed) })
    }

    fn failed(&self, port: Port, error: io::Error) -> Failure {
        match port {
            Port::Send => explain(&self.send.name, "send", error).into(),
            Port::Direct | Port::Routed => Failure::failed(format!("analyzer: {error}")),
        }
    }

    fn silence(&self, outcome: &Outcome) -> Option<Silence> {
        let tally = &outcome.tally;
        if tally.received > 0 || locked(&self.shared).invalid.is_some() {
            return None;
        }
        let (send, routed) = (&self.send.name, &self.routed.name);
        Some(if tally.sent == 0 {
            Silence::Sender(format!("{send}: the analyzer knows no transmit function of its driver that ran"))
        } else {
            Silence::Gateway(format!(
                "{routed}: no driver sends on after {send} (is a gateway running between their buses?); \
                 {} frames sent, none received",
                tally.sent
            ))
        })
    }

    fn complete(&self, _setup: &Setup, series: &mut Series) -> failure::Result<()> {
        let seen = locked(&self.shared);
        series.floor_ns = Some(0);
        match &seen.invalid {
            Some(why) => {
                series.latency_ns = None;
                series.unavailable = format!("analyzer: {why}");
            }
            None => match &seen.apart_ns {
                Some(apart_ns) => {
                    let mut histogram = Histogram::new();
                    apart_ns.iter().for_each(|&ns| histogram.record(ns as i64));
                    BESIDE_SOCKETS.clone_into(&mut series.quantity);
                    series.latency_ns = Some(histogram.to_latency());
                }
                None => series.stages = stages(&seen.ways),
            },
        }
        Ok(())
    }
}

/// The account of all frames that arrived; `None` when none did.
fn stages(ways: &[Way]) -> Option<Stages> {
    let mut ends: Vec<End> = ways.iter().filter_map(|way| way.end).collect();
    ends.sort_by_key(|end| end.stages.iter().sum::<u64>() - end.of_meter());
    let median = ends.get(ends.len().checked_sub(1)? / 2)?.stages;
    let total = |at: usize| ends.iter().map(|end| end.stages[at]).sum();
    let stages = ALL.iter().enumerate().map(|(at, stage)| result::Stage {
        name: stage.name().to_owned(),
        median_frame_ns: median[at],
        total_ns: total(at),
    });
    Some(Stages {
        frames: ends.len() as u64,
        median_frame_ns: median.iter().sum(),
        total_ns: ends.iter().flat_map(|end| end.stages).sum(),
        entries: ends.iter().map(|end| end.entries).sum(),
        reception: reception(&ends),
        stages: stages.collect(),
        model: Session::board().and_then(|board| board.model(&ends)),
    })
}

/// `None`: no frame's was seen.
fn reception(ends: &[End]) -> Option<result::Reception> {
    let seen: Vec<_> = ends.iter().filter_map(|end| end.reception).collect();
    let reception = result::Reception {
        frames: seen.len() as u64,
        total_ns: seen.iter().map(|one| one.time_ns).sum(),
        aside_ns: seen.iter().map(|one| one.aside_ns).sum(),
    };
    (!seen.is_empty()).then_some(reception)
}

/// Surroundings in which the meter sleeps for the same time before each frame, plus a random one.
struct Paused {
    pause_ns: u64,
    jitter_ns: u64,
    random: Random,
}

impl Surroundings for Paused {
    fn now_ns(&self) -> u64 {
        clock::monotonic_ns()
    }

    fn wait(&mut self, until_ns: u64, _: [&dyn Receive; 2]) -> io::Result<()> {
        let jitter_ns = self.random.below(self.jitter_ns.saturating_add(1));
        let pause_ns = self.pause_ns.saturating_add(jitter_ns);
        clock::sleep_until_ns(until_ns.min(self.now_ns().saturating_add(pause_ns)));
        Ok(())
    }
}

/// The sender: one frame after each pause. After the last one's pause the analyzer tells what it has seen.
struct OneByOne {
    shared: Shared,
    sender: Box<dyn Transmit>,
    beside: Option<BesideSockets>,
    frame: Frame,
    count: u64,
    sent: u64,
    /// The time of the first frame's mark.
    since_ns: u64,
    closed: bool,
}

impl Schedule for OneByOne {
    fn start(&mut self) -> io::Result<()> {
        locked(&self.shared).session.open();
        Ok(())
    }

    fn is_running(&mut self) -> io::Result<bool> {
        if self.sent == self.count {
            self.stop()?;
            return Ok(false);
        }
        template::set_number(&mut self.frame, self.sent as u16);
        if self.sent == 0 {
            self.since_ns = clock::monotonic_ns();
        }
        Session::frame();
        let taken = self.sender.transmit(std::slice::from_ref(&self.frame))?;
        self.sender.flush()?;
        if taken == 0 {
            let stuck = "the queue is full: no frame leaves for the bus";
            return Err(io::Error::new(io::ErrorKind::TimedOut, stuck));
        }
        self.sent += 1;
        Ok(true)
    }

    fn stop(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.closed, true) {
            return Ok(());
        }
        self.count = self.sent;
        let mut seen = locked(&self.shared);
        let window = seen.session.close().map_err(|failure| io::Error::other(failure.message))?;
        match account::ways(&window) {
            Ok(ways) => {
                // The analyzer's clock and the machine's differ by a constant.
                let first_ns = ways.first().map_or(0, |way| way.begin_ns);
                let machine_ns = |ns: u64| (self.since_ns + ns).saturating_sub(first_ns);
                for way in &ways {
                    seen.stamps[0].push_back((way.number, machine_ns(way.begin_ns)));
                    let own_ns = way.end.map(|end| end.time_ns - end.of_meter());
                    seen.stamps[1].extend(own_ns.map(|own_ns| (way.number, machine_ns(own_ns))));
                }
                match self.beside.as_mut().map(|beside| beside.apart_ns(&ways, &self.frame)).transpose() {
                    Ok(apart_ns) => seen.apart_ns = apart_ns,
                    Err(why) => seen.invalid = Some(why),
                }
                seen.ways = ways;
            }
            Err(why) => seen.invalid = Some(why),
        }
        Ok(())
    }
}

/// One side of the analyzer as a receiver. It never waits.
struct Side {
    shared: Shared,
    side: usize,
}

impl Receive for Side {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
        let mut seen = locked(&self.shared);
        let mut frame = seen.frame;
        let mut count = 0;
        while batch.room() > 0 {
            let Some((number, stamp_ns)) = seen.stamps[self.side].pop_front() else { break };
            template::set_number(&mut frame, number as u16);
            let (clock, origin) = (Clock::Software, Origin::Bus);
            batch.push(&frame, Meta { stamp_ns, interface: 0, drops: 0, clock, origin });
            count += 1;
        }
        Ok(count)
    }

    fn drops(&mut self) -> io::Result<u64> {
        Ok(0)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
