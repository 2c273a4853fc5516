//! `bare-metal`: the gateway without an operating system (baremetal/), on a processor that Linux leaves alone. The module
//! canbare starts it, between two SJA1000 cards that have no interface meanwhile. This process only waits for its end.

use super::{
    detached::{self, Detached},
    kind::{Ended, Kind, Place, Refusal, Request},
    plan::Direction,
    refusal,
};
use crate::{
    failure::{self, Failure},
    rules::counts::Counts,
};
use canter_io::{
    Interface,
    canbare::{self, Launcher, Status},
    interface::BitTiming,
    method::Capabilities,
    pci::{self, Lent},
};
use std::{io, path::Path};

pub const BARE_METAL: Kind = Kind {
    name: "bare-metal",
    paper_name: "rtems",
    about: "without an operating system, on a processor and two SJA1000 cards of its own",
    example: "without an operating system, on a processor of its own",
    pairs: false,
    place: Place::BareMetal,
    capabilities: Capabilities { fd: false, batch: false, origin: false },
    devices: false, // the module takes the cards from the driver of their interfaces
    rules_apply: false,
    waits_for_interfaces: false,
    takes_hops: true, // it refuses every rule
    check: || ready().map(drop),
    check_between: |_, _| ready().map(drop),
    refuses: &[
        Refusal { when: refusal::several_directions, why: "it has one direction (take a user-space pair)" },
        Refusal {
            when: refusal::rules_or_filters,
            why: "it hands on every frame as it is (without --rules and --filter, or take a user-space pair)",
        },
        Refusal { when: refusal::backlog, why: "it has no backlog (take a user-space pair)" },
        Refusal {
            when: refusal::stats_or_waiting,
            why: "--stats and --wait-for-interface are of user-space pairs",
        },
    ],
    run: |request| detached::run(request, Processor::open),
};

/// What the processor executes; empty in a program for another machine.
#[cfg(has_bare_metal)]
const IMAGE: &[u8] = include_bytes!(env!("BARE_METAL_BESIDE"));
#[cfg(not(has_bare_metal))]
const IMAGE: &[u8] = &[];

/// The processor that routes, and its cards.
struct Processor {
    launcher: Launcher,
    cards: Cards,
}

impl Processor {
    fn open(request: &Request<'_>) -> failure::Result<Self> {
        let Direction { from, to, .. } = &request.directions[0];
        let launcher = ready()?;
        let cards = Cards::take([from, to])?;
        launcher.start(IMAGE, cards.bitrates()).map_err(|error| explain(&error, &launcher, [from, to]))?;
        Ok(Self { launcher, cards })
    }
}

impl Detached for Processor {
    type Seen = Counts;

    const ENDING: &'static str = "ending the gateway on its processor";

    fn look(&self, seen: &mut Counts) -> Result<(), String> {
        match self.launcher.status() {
            Ok(status) if status.state == canbare::ROUTING => {
                *seen = account(&status.counts);
                Ok(())
            }
            Ok(status) => Err(why_ended(status.state)),
            Err(error) => Err(format!("{}: look: {error}", canbare::PATH)),
        }
    }

    fn status(&self, seen: &Counts) -> String {
        seen.to_string()
    }

    fn end(self, _: Counts, _: usize) -> failure::Result<(Vec<Counts>, Ended)> {
        let Self { launcher, cards } = self;
        let failed = |error| Failure::failed(format!("{}: end: {error}", canbare::PATH));
        launcher.stop().map_err(failed)?;
        let counts = account(&launcher.status().map_err(failed)?.counts);
        drop(launcher); // the module lets the cards go only now
        cards.give_back();
        Ok((vec![counts], Ok(())))
    }
}

fn unable(why: impl std::fmt::Display) -> Failure {
    BARE_METAL.unable(why)
}

/// The module, if it has all that it needs but the cards.
fn ready() -> failure::Result<Launcher> {
    if IMAGE.is_empty() {
        return Err(unable("this canter was built for another machine than an x86-64 PC"));
    }
    let launcher = Launcher::open().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => unable(
            "the module canbare is not loaded (modprobe canbare; the lab does it: canter lab --bare-metal)",
        ),
        io::ErrorKind::ResourceBusy => unable("another process has it (/dev/canbare is open)"),
        io::ErrorKind::PermissionDenied => unable("/dev/canbare: open: permission denied (needs root)"),
        _ => unable(format!("{}: open: {error}", canbare::PATH)),
    })?;
    let status = launcher.status().map_err(|error| unable(format!("{}: look: {error}", canbare::PATH)))?;
    match missing(&status) {
        Some(why) => Err(unable(why)),
        None => Ok(launcher),
    }
}

fn missing(status: &Status) -> Option<&'static str> {
    if status.memory == 0 {
        Some(
            "Linux has the memory at 64 KiB (boot it with memmap=64K$0x10000; the lab does it: canter lab --bare-metal)",
        )
    } else if status.processor < 0 {
        Some(
            "Linux has every processor (echo 0 > /sys/devices/system/cpu/cpu1/online, or boot it with maxcpus=)",
        )
    } else if status.cards > 0 {
        Some("the module has a card already (echo > …/driver_override, then unbind it)")
    } else {
        None
    }
}

/// Why it did not start.
fn explain(error: &io::Error, launcher: &Launcher, [from, to]: [&str; 2]) -> Failure {
    let state = launcher.status().map_or(0, |status| status.state);
    let chip = |name: &str| {
        Failure::failed(format!("{name}: start: its controller does not answer, or has no such bit rate"))
    };
    match (error.kind(), state) {
        (io::ErrorKind::PermissionDenied, _) => {
            unable("start: not permitted (needs CAP_SYS_RAWIO, and a kernel that is not locked down)")
        }
        (io::ErrorKind::TimedOut, _) => unable("start: the processor does not answer"),
        (_, canbare::NO_INPUT) => chip(from),
        (_, canbare::NO_OUTPUT) => chip(to),
        _ => unable(format!("start: {error}")),
    }
}

fn account(counted: &canbare::Counts) -> Counts {
    let mut counts = Counts {
        received: counted.received,
        transmitted: counted.transmitted,
        overrun: counted.overruns,
        ..Counts::default()
    };
    counts.drop_as(counted.dropped, |drops| &mut drops.no_room);
    counts.assert_balance();
    counts
}

fn why_ended(state: u32) -> String {
    match state {
        canbare::STOPPED => "bare-metal: a card was taken away from it".to_owned(),
        canbare::GONE => "bare-metal: a card no longer answers".to_owned(),
        state => format!("bare-metal: its program has failed (state {state})"),
    }
}

/// The cards of both interfaces, which the module has until they are given back.
struct Cards {
    lent: [Lent; 2],
    interfaces: [Interface; 2],
}

impl Cards {
    fn take([from, to]: [&str; 2]) -> failure::Result<Self> {
        let interfaces = [Interface::find(from)?, Interface::find(to)?];
        let address = |name| pci::address(name).map_err(unable);
        let [from, to] = [address(from)?, address(to)?];
        if from == to {
            return Err(unable(format!("{from}: both interfaces are of this card, and it takes two")));
        }
        if !Path::new("/sys/bus/pci/drivers").join(canbare::DRIVER).exists() {
            return Err(unable("the module canbare has no driver here"));
        }
        let lend = |address: &str| Lent::to(Some(canbare::DRIVER), address).map_err(unable);
        let from = lend(&from)?;
        Ok(Self { lent: [from, lend(&to)?], interfaces })
    }

    /// bit/s, as the interfaces had them.
    fn bitrates(&self) -> [u32; 2] {
        self.interfaces.each_ref().map(|interface| interface.bitrate().unwrap_or(0))
    }

    /// Their own driver has them again, and their interfaces are up as before.
    fn give_back(self) {
        let Self { lent, interfaces } = self;
        let addresses = lent.each_ref().map(|card| card.address().to_owned());
        drop(lent);
        for (address, before) in addresses.iter().zip(&interfaces) {
            if let Err(failure) = bring_up(address, before) {
                eprintln!("gateway: {}: is not up again: {failure}", before.name);
            }
        }
    }
}

fn bring_up(address: &str, before: &Interface) -> failure::Result<()> {
    if pci::address(&before.name)? != address {
        return Err(Failure::failed(format!("the card {address} has another name now")));
    }
    let mut now = Interface::find(&before.name)?;
    if let Some(bitrate) = before.bitrate() {
        now.set_bit_timing(&BitTiming::classic(bitrate))?;
    }
    now.set_tx_queue_len(before.tx_queue_len)?;
    Ok(now.up()?)
}
