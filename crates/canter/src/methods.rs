//! `canter methods`: every way to receive and to send, and whether this machine can do it.

use crate::{
    failure::{self, Exit},
    gateway::bare_metal,
    options::Common,
};
use canter_io::{
    Error, Interface,
    method::{Capabilities, ReceiveMethod, TransmitMethod, table::PAPER_PAIRS},
    netlink::can_gw,
    redirect,
};
use clap::Args;
use serde::Serialize;

/// List every way to receive and to send frames, and what this machine can do
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter methods              whether this kernel has what each method needs
  canter methods -i can3      whether it works on can3, and why not")]
pub struct Arguments {
    /// On this interface; else on a CAN interface that is there
    #[arg(long, short, value_name = "INTERFACE")]
    interface: Option<String>,
}

#[derive(Serialize)]
struct Row {
    kind: &'static str,
    name: String,
    about: &'static str,
    /// Empty when it works.
    unavailable: String,
    fd: bool,
    batch: bool,
    origin: bool,
}

impl Row {
    fn new(
        kind: &'static str,
        name: String,
        about: &'static str,
        can: Capabilities,
        check: Result<(), Error>,
    ) -> Self {
        let unavailable = check.err().map_or(String::new(), |error| error.to_string());
        Self { kind, name, about, unavailable, fd: can.fd, batch: can.batch, origin: can.origin }
    }
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    let interface = match &arguments.interface {
        Some(name) => Some(Interface::find(name)?),
        None => Interface::list()?.into_iter().next(),
    };
    let rows = rows(interface.as_ref());
    common.write_json(&rows)?;
    if common.shows_table() {
        print!("{}", table(&rows, interface.as_ref()));
    }
    Ok(Exit::Done)
}

/// Why no method can be tried on a machine without a CAN interface.
fn nowhere() -> Error {
    let why = "this machine has no CAN interface to try it on";
    Error::unsupported("CAN", "find", why).hint("ip link add vcan0 type vcan, or run in canter lab")
}

fn rows(interface: Option<&Interface>) -> Vec<Row> {
    let receivers = ReceiveMethod::all().map(|method| {
        let check = interface.map_or_else(|| Err(nowhere()), |interface| method.check(interface));
        Row::new("receive", method.to_string(), method.row.about, method.row.capabilities, check)
    });
    let transmitters = TransmitMethod::all().map(|method| {
        let check = interface.map_or_else(|| Err(nowhere()), |interface| method.check(interface));
        Row::new("send", method.to_string(), method.row.about, method.row.capabilities, check)
    });
    let kernel = Row::new(
        "gateway",
        "can-gw".to_owned(),
        "the kernel's own gateway: no process takes part",
        Capabilities { fd: true, batch: false, origin: false },
        can_gw::available(),
    );
    let bpf = Row::new(
        "gateway",
        "bpf".to_owned(),
        "a program in the kernel, from controllers only: frames as they are, by identifier",
        Capabilities { fd: true, batch: false, origin: false },
        redirect::available(),
    );
    let bare_metal = Row {
        kind: "gateway",
        name: "bare-metal".to_owned(),
        about: "without an operating system, on a processor and two SJA1000 cards of its own",
        unavailable: bare_metal::available().err().map_or(String::new(), |failure| failure.message),
        fd: false,
        batch: false,
        origin: false,
    };
    receivers.chain(transmitters).chain([kernel, bpf, bare_metal]).collect()
}

fn table(rows: &[Row], interface: Option<&Interface>) -> String {
    let nowhere = nowhere().to_string();
    let mut text = match interface {
        Some(interface) => format!("On {} ({}):\n", interface.name, interface.kind),
        None => format!("{nowhere}\n"),
    };
    for kind in ["receive", "send", "gateway"] {
        text += &format!("\n{kind}\n");
        for row in rows.iter().filter(|row| row.kind == kind) {
            let mark = if row.unavailable.is_empty() { "yes" } else { "no " };
            text += &format!("  {mark}  {:<15} {}\n", row.name, row.about);
            if !row.unavailable.is_empty() && row.unavailable != nowhere {
                text += &format!("       {:<15} {}\n", "", row.unavailable);
            }
        }
    }
    text += "\nA gateway is a pair, RECEIVER+TRANSMITTER. Pairs of the 2014 paper:\n";
    for (paper, ours) in PAPER_PAIRS {
        text += &format!("  {paper:<16} {ours}\n");
    }
    text + "  kernel           can-gw\n  rtems            bare-metal\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_can_interface_the_reason_is_printed_once() {
        let rows = rows(None);
        let reason = nowhere().to_string();
        let without = rows.iter().filter(|row| row.unavailable == reason).count();
        assert_eq!(without, ReceiveMethod::all().count() + TransmitMethod::all().count());
        let table = table(&rows, None);
        assert!(table.starts_with(&format!("{reason}\n\nreceive\n  no   read ")), "{table}");
        assert_eq!(table.matches("no CAN interface").count(), 1, "{table}");
    }

    #[test]
    fn on_an_interface_each_method_that_cannot_work_has_its_own_reason() {
        let interface = Interface::find("sim:methods/bus").unwrap();
        let table = table(&rows(Some(&interface)), Some(&interface));
        assert!(table.starts_with("On sim:methods/bus (sim):\n\nreceive\n  no   read "), "{table}");
        assert!(table.contains("sim:methods/bus: open: a simulated bus has no sockets (use sim)"), "{table}");
        assert!(table.contains("  yes  sim "), "{table}");
    }
}
