//! `bare-metal`: the gateway without an operating system (baremetal/), on a processor that Linux does not use. The module
//! canbare starts it. It takes two SJA1000 cards, whose interfaces do not exist meanwhile. This process waits for its end.

use super::{
    detached::{self, Detached},
    kind::{Ended, Kind, Place, Refusal, Request},
    plan::Direction,
    refusal,
};
use crate::rules::counts::Counts;
use canter_cli::failure::{self, Failure};
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
    about: "without an operating system, on its own processor and two SJA1000 cards",
    example: "without an operating system, on its own processor",
    pairs: false,
    place: Place::BareMetal,
    capabilities: Capabilities { fd: false, batch: false, origin: false },
    devices: false, // the module takes the cards from the driver of their interfaces
    rules_apply: false,
    waits_for_interfaces: false,
    takes_hops: true, // it refuses every rule
    right: Some("CAP_SYS_RAWIO"),
    check: || ready().map(drop),
    check_between: |_, _| ready().map(drop),
    refuses: &[
        Refusal { when: refusal::several_directions, reason: "it has one direction (use a user-space pair)" },
        Refusal {
            when: refusal::rules_or_filters,
            reason: "it forwards every frame unchanged (leave out --rules and --filter, or use a user-space pair)",
        },
        Refusal { when: refusal::backlog, reason: "it has no backlog (use a user-space pair)" },
        Refusal {
            when: refusal::stats_or_waiting,
            reason: "--stats and --wait-for-interface need a user-space pair",
        },
    ],
    run: |request| detached::run(request, Processor::open),
};

/// The program of the processor; empty in a canter that was built for another machine.
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
    type Progress = Counts;

    const ENDING: &'static str = "ending the gateway on its processor";

    fn check(&self, progress: &mut Counts) -> Result<(), String> {
        match self.launcher.status() {
            Ok(status) if status.state == canbare::ROUTING => {
                *progress = account(&status.counts);
                Ok(())
            }
            Ok(status) => Err(end_reason(status.state)),
            Err(error) => Err(format!("{}: read status: {error}", canbare::PATH)),
        }
    }

    fn status(&self, progress: &Counts) -> String {
        progress.to_string()
    }

    fn end(self, _: Counts, _: usize) -> failure::Result<(Vec<Counts>, Ended)> {
        let Self { launcher, cards } = self;
        let failed = |error| Failure::failed(format!("{}: end: {error}", canbare::PATH));
        launcher.stop().map_err(failed)?;
        let counts = account(&launcher.status().map_err(failed)?.counts);
        drop(launcher); // only now the module releases the cards
        cards.give_back();
        Ok((vec![counts], Ok(())))
    }
}

fn unable(reason: impl std::fmt::Display) -> Failure {
    BARE_METAL.unable(reason)
}

/// The module, if the machine has all that it needs except the cards.
fn ready() -> failure::Result<Launcher> {
    if IMAGE.is_empty() {
        return Err(unable("this canter was not built for an x86-64 PC"));
    }
    let launcher = Launcher::open().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            unable("the module canbare is not loaded (modprobe canbare, or run in canter lab --bare-metal)")
        }
        io::ErrorKind::ResourceBusy => unable("another process uses it (/dev/canbare is open)"),
        io::ErrorKind::PermissionDenied => unable("/dev/canbare: open: permission denied (needs root)"),
        _ => unable(format!("{}: open: {error}", canbare::PATH)),
    })?;
    let status =
        launcher.status().map_err(|error| unable(format!("{}: read status: {error}", canbare::PATH)))?;
    match missing(&status) {
        Some(reason) => Err(unable(reason)),
        None => Ok(launcher),
    }
}

fn missing(status: &Status) -> Option<&'static str> {
    if status.memory == 0 {
        Some(
            "Linux uses the memory at 64 KiB (boot with memmap=64K$0x10000, or run in canter lab --bare-metal)",
        )
    } else if status.processor < 0 {
        Some(
            "Linux uses every processor (echo 0 > /sys/devices/system/cpu/cpu1/online, or boot with maxcpus=)",
        )
    } else if status.cards > 0 {
        Some("a card is already bound to the module (echo > …/driver_override, then unbind the card)")
    } else {
        None
    }
}

/// The error of a failed start.
fn explain(error: &io::Error, launcher: &Launcher, [from, to]: [&str; 2]) -> Failure {
    let state = launcher.status().map_or(0, |status| status.state);
    let chip = |name: &str| {
        Failure::failed(format!("{name}: start: its controller does not respond, or refuses the bit rate"))
    };
    match (error.kind(), state) {
        (io::ErrorKind::PermissionDenied, _) => {
            unable("start: not permitted (needs CAP_SYS_RAWIO, and a kernel that is not locked down)")
        }
        _ if error.raw_os_error() == Some(canbare::SIGNED_ONLY) => unable(
            "start: this kernel takes signed modules only (module.sig_enforce), and an image has no signature",
        ),
        (io::ErrorKind::TimedOut, _) => unable("start: the processor does not respond"),
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

fn end_reason(state: u32) -> String {
    match state {
        canbare::STOPPED => "bare-metal: a card was unbound from it".to_owned(),
        canbare::GONE => "bare-metal: a card no longer responds".to_owned(),
        state => format!("bare-metal: its program has failed (state {state})"),
    }
}

/// The cards of both interfaces, bound to the module until [`Cards::give_back`].
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
            return Err(unable(format!(
                "{from}: both interfaces belong to this card, but two cards are needed"
            )));
        }
        if !Path::new("/sys/bus/pci/drivers").join(canbare::DRIVER).exists() {
            return Err(unable("the module canbare has not registered its PCI driver"));
        }
        let lend = |address: &str| Lent::bind(Some(canbare::DRIVER), address).map_err(unable);
        let from = lend(&from)?;
        Ok(Self { lent: [from, lend(&to)?], interfaces })
    }

    /// The interfaces' bit rates, in bit/s.
    fn bitrates(&self) -> [u32; 2] {
        self.interfaces.each_ref().map(|interface| interface.bitrate().unwrap_or(0))
    }

    /// Binds the cards to their own driver again, and brings their interfaces up.
    fn give_back(self) {
        let Self { lent, interfaces } = self;
        let addresses = lent.each_ref().map(|card| card.address().to_owned());
        drop(lent);
        for (address, before) in addresses.iter().zip(&interfaces) {
            if let Err(failure) = bring_up(address, before) {
                eprintln!("gateway: {}: bring up again: {failure}", before.name);
            }
        }
    }
}

fn bring_up(address: &str, before: &Interface) -> failure::Result<()> {
    if pci::address(&before.name)? != address {
        return Err(Failure::failed(format!("the interface of card {address} has a different name now")));
    }
    let mut now = Interface::find(&before.name)?;
    if let Some(bitrate) = before.bitrate() {
        now.set_bit_timing(&BitTiming::classic(bitrate))?;
    }
    now.set_tx_queue_len(before.tx_queue_len)?;
    Ok(now.up()?)
}
