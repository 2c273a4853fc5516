//@ machine: host
//! What another program may add without touching this crate: a method and a carrier, each one row of its own beside the
//! built-in ones.

use canter_io::{
    Batch, Error, Frame, Interface, Meta, Result,
    carrier::{
        Carrier, UsualMethods,
        table::{CARRIERS, SIM},
    },
    interface::{Counters, Kind},
    method::{
        Capabilities, Pair, Receive, ReceiveMethod, ReceiveOptions, Receiver, Transmit, TransmitMethod,
        TransmitOptions, Transmitter, Wait,
        table::{PAPER_PAIRS, RECEIVERS, TRANSMITTERS},
    },
};
use std::{
    io,
    os::fd::BorrowedFd,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// A toy bus: one tube for the whole process.
static TUBE: Mutex<Vec<Frame>> = Mutex::new(Vec::new());

fn tube() -> MutexGuard<'static, Vec<Frame>> {
    TUBE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Names that begin with `toy:`.
static TOY: Carrier = Carrier {
    name: "toy",
    about: "a toy",
    prefix: "toy:",
    usual: UsualMethods { receive: "tube", receive_spinning: "tube", transmit: "tube" },
    find: |name, carrier| {
        Ok(Interface {
            name: name.to_owned(),
            kind: Kind::Other("toy".into()),
            carrier,
            ..Interface::find("sim:rows/toy")?
        })
    },
    counters: |_| Ok(Counters { tx_frames: tube().len() as u64, ..Counters::default() }),
    ..Carrier::PLAIN
};

struct Tube;

impl Receive for Tube {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
        let count = tube().len().min(batch.room());
        tube().drain(..count).for_each(|frame| batch.push(&frame, Meta::default()));
        Ok(count)
    }

    fn drops(&mut self) -> io::Result<u64> {
        Ok(0)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Transmit for Tube {
    fn transmit(&mut self, frames: &[Frame]) -> io::Result<usize> {
        tube().extend(frames);
        Ok(frames.len())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

fn check(interface: &Interface) -> Result<()> {
    if interface.carrier == &TOY {
        return Ok(());
    }
    Err(Error::unsupported(&interface.name, "tube", "only toys have a tube"))
}

const CAPABILITIES: Capabilities = Capabilities { fd: true, batch: true, origin: false };

static TUBE_RECEIVER: Receiver = Receiver {
    name: "tube",
    about: "out of a tube",
    waits: &[Wait::Spin],
    capabilities: CAPABILITIES,
    carriers: &[&TOY],
    right: None,
    syscalls: Err("a tube makes no system call"),
    check: |interface, _| check(interface),
    open: |interface, _| check(interface).map(|()| Box::new(Tube) as Box<dyn Receive>),
};

static TUBE_TRANSMITTER: Transmitter = Transmitter {
    name: "tube",
    about: "into a tube",
    capabilities: CAPABILITIES,
    carriers: &[&TOY],
    right: None,
    syscalls: Err("a tube makes no system call"),
    check,
    open: |interface, _| check(interface).map(|()| Box::new(Tube) as Box<dyn Transmit>),
};

#[test]
fn a_toy_method_on_a_toy_carrier_is_found_and_opened_by_name() {
    let carriers = [&[&TOY], CARRIERS].concat();
    let receivers = [RECEIVERS, &[&TUBE_RECEIVER]].concat();
    let transmitters = [TRANSMITTERS, &[&TUBE_TRANSMITTER]].concat();

    let interface = Interface::find_among("toy:1", &carriers).unwrap();
    assert_eq!(format!("{} {:?}", interface.kind, interface.carrier), "toy toy");
    let usual = interface.carrier.usual;
    let name = format!("{}+{}", usual.receive, usual.transmit);
    let pair = Pair::parse(&name, &receivers, &transmitters, PAPER_PAIRS).unwrap();
    assert_eq!(pair.to_string(), "tube+tube");
    let mut receiver = pair.receive.open(&interface, &ReceiveOptions::default()).unwrap();
    let mut sender = pair.transmit.open(&interface, &TransmitOptions::default()).unwrap();

    let frame: Frame = "123#DEADBEEF".parse().unwrap();
    assert_eq!(sender.transmit(&[frame]).unwrap(), 1);
    assert_eq!(interface.counters().unwrap().tx_frames, 1, "the row's own column");
    let mut batch = Batch::new(8);
    assert_eq!((receiver.receive(&mut batch).unwrap(), batch.frames()), (1, &[frame][..]));

    // Its rows stand beside the built-in ones, and each refuses what only the other carries.
    assert_eq!(
        ReceiveMethod::all_in(&receivers).last().map(|method| method.to_string()).as_deref(),
        Some("tube")
    );
    let simulated = Interface::find_among("sim:rows/bus", &carriers).unwrap();
    assert_eq!(simulated.carrier, &SIM);
    assert!(pair.receive.check(&simulated).unwrap_err().to_string().contains("only toys"));
    let read = ReceiveMethod::parse("read", &receivers).unwrap();
    let refusal = read.check(&interface).unwrap_err().to_string();
    assert_eq!(refusal, "toy:1: open: a toy has no sockets (use tube)");
}

#[test]
fn a_toy_is_unknown_to_who_does_not_pass_its_row() {
    let error = "tube".parse::<TransmitMethod>().err().unwrap().to_string();
    assert!(error.starts_with("tube: method: no such transmitter (there are write, "), "{error}");
    assert!("tube+write".parse::<Pair>().is_err());
    assert!(Interface::find("toy:1").is_err());
    let error = Interface::find_among("can0", &[&TOY]).unwrap_err().to_string();
    assert_eq!(error, "can0: find: no carrier's prefix fits this name (names begin with toy:)");
}

#[test]
fn a_carrier_without_settings_refuses_them_by_its_name() {
    let mut toy = Interface::find_among("toy:2", &[&TOY]).unwrap();
    toy.up().unwrap();
    toy.refresh().unwrap();
    let error = toy.set_mtu(16).unwrap_err();
    assert_eq!(error.to_string(), "toy:2: set mtu: a toy interface does not have this setting");
}

#[test]
fn every_usual_method_of_a_carrier_is_a_row_that_works_on_it() {
    for carrier in CARRIERS {
        let usual = carrier.usual;
        for name in [usual.receive, usual.receive_spinning] {
            let method = ReceiveMethod::parse(name, RECEIVERS).unwrap();
            assert!(method.row.carriers.contains(carrier), "{name} on {carrier:?}");
        }
        let spinning = ReceiveMethod::parse(usual.receive_spinning, RECEIVERS).unwrap();
        assert_eq!(spinning.wait, Wait::Spin, "{carrier:?}");
        let transmit = TransmitMethod::parse(usual.transmit, TRANSMITTERS).unwrap();
        assert!(transmit.row.carriers.contains(carrier), "{} on {carrier:?}", usual.transmit);
    }
}
