//! The papers' instrument: sends by a socket or a device file; the kernel stamps frames when it gets them from the
//! driver. It works on every interface. The delay from a controller to the stamp is in both stamps, so that it nearly
//! cancels. As the instrument `hardware`, controllers stamp.

use super::{
    controllers::{Controller, refuse_two_clocks},
    experiment::{Experiment, Machine, Outcome, Port, Sending, Surroundings},
    instrument::{Instrument, InstrumentName, Setup, Silence},
};
use canter_cli::{
    failure::{self, Exit, Failure},
    trouble::{explain, refuse_classic, refuse_down},
};
use canter_io::{
    Frame, Interface,
    frame::BitRate,
    interface::Kind,
    method::{Echo, Receive, ReceiveMethod, ReceiveOptions, TransmitMethod, TransmitOptions},
};
use canter_measure::{
    environment,
    result::{Condition, Series},
};
use canter_route::traffic::template;
use std::io;

/// What a frame in a socket's queue takes at most, as the kernel counts bytes.
const QUEUED_BYTES: u32 = 1024;

/// The interfaces of a measurement.
pub struct Interfaces {
    send: Interface,
    /// The interface of the first stamp; `None`: the sender's echo gives it.
    direct: Option<Interface>,
    routed: Interface,
    /// Whether controllers stamp, not the kernel.
    by_controllers: bool,
}

impl Interfaces {
    pub fn find(setup: &Setup) -> failure::Result<Self> {
        let find = |name: &str| {
            let interface = Interface::find(name)?;
            refuse_down(&interface)?;
            Ok::<_, Failure>(interface)
        };
        let direct = setup.direct.as_deref().map(find).transpose()?;
        let by_controllers = setup.instrument == InstrumentName::Hardware;
        let found = Self { send: find(&setup.send)?, direct, routed: find(&setup.routed)?, by_controllers };
        if by_controllers {
            refuse_two_clocks(found.reference(), &found.routed)?;
        }
        if !setup.null && [&found.send.name, &found.reference().name].contains(&&found.routed.name) {
            let name = &found.routed.name;
            let way_out = "--null measures the meter's own floor";
            let why = format!("{name}: is on both sides, so there is no gateway between them ({way_out})");
            return Err(Failure::new(Exit::Usage, why));
        }
        Ok(found)
    }

    fn reference(&self) -> &Interface {
        self.direct.as_ref().unwrap_or(&self.send)
    }

    fn receiver(&self, on: &Interface, count: u64) -> failure::Result<Box<dyn Receive>> {
        match self.by_controllers {
            true => Ok(Box::new(Controller::open(on, queue_frames(count).saturating_mul(QUEUED_BYTES))?)),
            false => receiver(on, count),
        }
    }

    fn refuse_classic(&self) -> failure::Result<()> {
        self.interfaces().into_iter().try_for_each(refuse_classic)
    }
}

impl Instrument for Interfaces {
    fn interfaces(&self) -> Vec<&Interface> {
        [Some(&self.send), self.direct.as_ref(), Some(&self.routed)].into_iter().flatten().collect()
    }

    fn experiment(&self, setup: &Setup, frame: Frame) -> failure::Result<(Experiment, Sending, Condition)> {
        if frame.is_fd() {
            self.refuse_classic()?;
        }
        let sender: TransmitMethod = self.send.carrier.usual.transmit.parse()?;
        let echo = if self.direct.is_none() { Echo::On } else { Echo::Auto };
        let wire = wire(setup, &self.routed);
        let frame_ns = template::mean_ns(&frame, setup.count, rates(&self.send));
        let to = TransmitOptions { echo, ..TransmitOptions::default() }.without_waiting();
        let sending = Sending::Frames(sender.open(&self.send, &to)?);
        let experiment = Experiment {
            direct: self.receiver(self.reference(), setup.count)?,
            routed: self.receiver(&self.routed, setup.count)?,
            traffic: setup.traffic,
            frame_ns,
            gap_ns: setup.gap,
            jitter_ns: setup.jitter,
            seed: setup.seed,
            frame,
            count: setup.count,
            wire,
        };
        let names = self.interfaces().iter().map(|interface| interface.name.clone()).collect();
        let mut condition = setup.condition(&frame, frame_ns, names);
        if self.by_controllers {
            condition.instrument = "hardware".to_owned();
        }
        Ok((experiment, sending, condition))
    }

    fn surroundings(&self, _setup: &Setup) -> Box<dyn Surroundings> {
        Box::new(Machine)
    }

    fn failed(&self, port: Port, error: io::Error) -> Failure {
        let (interface, step) = match port {
            Port::Send => (&self.send, "send"),
            Port::Direct => (self.reference(), "receive"),
            Port::Routed => (&self.routed, "receive"),
        };
        explain(&interface.name, step, error).into()
    }

    /// Fails when no frame arrived; the error names the silent side.
    fn silence(&self, outcome: &Outcome) -> Option<Silence> {
        let tally = &outcome.tally;
        if tally.received > 0 || tally.lost == 0 {
            return None;
        }
        let (routed, reference) = (&self.routed.name, &self.reference().name);
        let what = |why: String| format!("{why}; {} frames sent, none received", tally.sent);
        Some(if tally.lost_after_direct == 0 && self.direct.is_some() {
            Silence::Sender(what(format!(
                "{reference}: receives no frame (is it on the bus of {}?)",
                self.send.name
            )))
        } else {
            Silence::Gateway(what(format!(
                "{routed}: receives no frame (is a gateway running between {reference} and {routed}?)"
            )))
        })
    }

    /// Adds nothing: a run without a gateway shows the floor (`--null`).
    fn complete(&self, setup: &Setup, series: &mut Series) -> failure::Result<()> {
        series.floor_ns = series.latency_ns.as_ref().filter(|_| setup.null).map(|latency| latency.p50);
        Ok(())
    }
}

/// The room for all frames that can be on their way.
fn queue_frames(count: u64) -> u32 {
    count.clamp(256, 1 << 16) as u32
}

/// What receives frames with the kernel's stamps.
pub(super) fn receiver(on: &Interface, count: u64) -> failure::Result<Box<dyn Receive>> {
    let options = ReceiveOptions {
        stamps: true,
        queue_frames: Some(queue_frames(count)),
        whole_queue: true,
        ..ReceiveOptions::default()
    };
    Ok(on.carrier.usual.receive_spinning.parse::<ReceiveMethod>()?.open(on, &options)?)
}

/// The bit rates of the routed bus, if a frame takes time there.
pub(super) fn wire(setup: &Setup, routed: &Interface) -> Option<BitRate> {
    let takes_time = setup.wire_time.is_taken(|| takes_time(routed));
    (takes_time && !setup.null).then(|| rates(routed))
}

/// Whether a frame takes time on the interface's bus.
pub(super) fn takes_time(interface: &Interface) -> bool {
    is_controller(interface) && !emulated_without_time(interface)
}

/// Whether the interface has a bus with a bit rate.
fn is_controller(interface: &Interface) -> bool {
    interface.kind == Kind::Can || interface.bitrate().is_some()
}

/// Whether the interface is one of QEMU's cards, which deliver a frame at once, without bit timing.
fn emulated_without_time(interface: &Interface) -> bool {
    let chip = interface.controller.as_ref().map(|controller| controller.chip.as_str());
    let emulated = chip == Some("sja1000")
        || matches!(interface.driver.as_deref(), Some("kvaser_pci" | "kvaser-pci" | "ctucanfd"));
    environment::in_lab() && emulated
}

/// The bit rates of an interface; 1 Mbit/s if it has none, so that a load in per cent is defined.
pub(super) fn rates(interface: &Interface) -> BitRate {
    let nominal = interface.bitrate().unwrap_or(1_000_000);
    BitRate { nominal, data: interface.data_bitrate().unwrap_or(nominal) }
}
