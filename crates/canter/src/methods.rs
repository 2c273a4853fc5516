//! `canter methods`: every method to receive and to send, and whether it works on this machine.

use canter_cli::{
    failure::{self, Exit, Failure},
    options::Common,
    terminal::wrapped,
};
use canter_io::{
    Error, Interface,
    method::{Capabilities, ReceiveMethod, TransmitMethod, table::PAPER_PAIRS},
};
use canter_route::gateway::{kind::Kind, table::GATEWAYS};
use clap::Args;
use serde::Serialize;

/// List every method to receive and send frames, and which of them work on this machine
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter methods              whether this kernel has what each method needs
  canter methods -i can3      which methods work on can3, and why others do not")]
pub struct Arguments {
    /// Interface to try the methods on; any CAN interface unless given
    #[arg(long, short, value_name = "INTERFACE")]
    interface: Option<String>,
}

#[derive(Serialize)]
struct Row {
    kind: &'static str,
    name: String,
    about: &'static str,
    /// Why the method does not work here; empty when it works.
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
        capabilities: Capabilities,
        check: Result<(), impl Into<Failure>>,
    ) -> Self {
        let unavailable = check.err().map_or(String::new(), |error| error.into().message);
        let Capabilities { fd, batch, origin, .. } = capabilities;
        Self { kind, name, about, unavailable, fd, batch, origin }
    }
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    let interface = match &arguments.interface {
        Some(name) => Some(Interface::find(name)?),
        None => Interface::list()?.into_iter().next(),
    };
    let rows = rows(interface.as_ref(), GATEWAYS);
    common.write_json(&rows)?;
    if common.shows_table() {
        print!("{}", text(&rows, interface.as_ref(), GATEWAYS));
    }
    Ok(Exit::Done)
}

/// The reason against every method on a machine without a CAN interface.
fn no_interface() -> Error {
    let reason = "this machine has no CAN interface to try the methods on";
    Error::unsupported("CAN", "find", reason).hint("ip link add vcan0 type vcan, or run in canter lab")
}

fn rows(interface: Option<&Interface>, table: &[Kind]) -> Vec<Row> {
    let interface = || interface.ok_or_else(no_interface);
    let receivers = ReceiveMethod::all().map(|method| {
        let check = interface().and_then(|interface| method.check(interface));
        Row::new("receive", method.to_string(), method.row.about, method.row.capabilities, check)
    });
    let transmitters = TransmitMethod::all().map(|method| {
        let check = interface().and_then(|interface| method.check(interface));
        Row::new("send", method.to_string(), method.row.about, method.row.capabilities, check)
    });
    let gateways = gateways(table)
        .map(|kind| Row::new("gateway", kind.name.to_owned(), kind.about, kind.capabilities, (kind.check)()));
    receivers.chain(transmitters).chain(gateways).collect()
}

/// The gateways that are not pairs of the methods above.
fn gateways(table: &[Kind]) -> impl Iterator<Item = &Kind> {
    table.iter().filter(|kind| !kind.pairs)
}

fn text(rows: &[Row], interface: Option<&Interface>, table: &[Kind]) -> String {
    let no_interface = no_interface().to_string();
    let mut text = match interface {
        Some(interface) => format!("On {} ({}):\n", interface.name, interface.kind),
        None => format!("{no_interface}\n"),
    };
    for kind in ["receive", "send", "gateway"] {
        text += &format!("\n{kind}\n");
        let rows: Vec<&Row> = rows.iter().filter(|row| row.kind == kind).collect();
        for row in rows.iter().filter(|row| row.unavailable.is_empty()) {
            text += &format!("  yes  {:<15} {}\n", row.name, row.about);
        }
        for row in rows.iter().filter(|row| row.unavailable == no_interface) {
            text += &format!("  no   {:<15} {}\n", row.name, row.about);
        }
        let refused =
            rows.iter().filter(|row| !row.unavailable.is_empty() && row.unavailable != no_interface);
        text += &refusals(refused.copied().collect());
    }
    text += "\nA gateway is a pair, RECEIVER+TRANSMITTER. Pairs of the 2014 paper:\n";
    for (paper, name) in PAPER_PAIRS {
        text += &format!("  {paper:<16} {name}\n");
    }
    for kind in gateways(table).filter(|kind| !kind.paper_name.is_empty()) {
        text += &format!("  {:<16} {}\n", kind.paper_name, kind.name);
    }
    text
}

/// The methods that do not work, those with the same reason together: the reason is what counts.
fn refusals(mut rows: Vec<&Row>) -> String {
    let mut text = String::new();
    while let Some(first) = rows.first().copied() {
        let (same, others): (Vec<&Row>, Vec<&Row>) =
            rows.into_iter().partition(|row| row.unavailable == first.unavailable);
        rows = others;
        match &same[..] {
            [one] => text += &format!("  no   {:<15} {}\n", one.name, one.about),
            _ => {
                let names: Vec<&str> = same.iter().map(|row| row.name.as_str()).collect();
                text += &format!("  no   {}\n", wrapped(&names.join(", "), 7, 7));
            }
        }
        text += &format!("       {}\n", wrapped(&first.unavailable, 7, 7));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_route::gateway::toy;

    #[test]
    fn a_gateway_of_the_table_is_listed_with_what_it_needs() {
        let list = rows(None, toy::table());
        let text = text(&list, None, toy::table());
        assert!(text.contains("  no   toy             three frames and no bus\n"), "{text}");
        assert!(text.contains("toy: exists in tests only\n"), "{text}");
        assert!(text.contains("  toy-of-2014      toy\n"), "{text}");
    }

    #[test]
    fn without_a_can_interface_the_reason_is_printed_once() {
        let rows = rows(None, toy::table());
        let reason = no_interface().to_string();
        let without = rows.iter().filter(|row| row.unavailable == reason).count();
        assert_eq!(without, ReceiveMethod::all().count() + TransmitMethod::all().count());
        let text = text(&rows, None, toy::table());
        assert!(text.starts_with(&format!("{reason}\n\nreceive\n  no   read ")), "{text}");
        assert_eq!(text.matches("no CAN interface").count(), 1, "{text}");
    }

    #[test]
    fn methods_that_cannot_work_on_an_interface_are_listed_once_for_each_reason() {
        let interface = Interface::find("sim:methods/bus").unwrap();
        let text = text(&rows(Some(&interface), toy::table()), Some(&interface), toy::table());
        assert!(text.starts_with("On sim:methods/bus (sim):\n\nreceive\n  yes  sim "), "{text}");
        let reason = "\n       sim:methods/bus: open: a simulated bus has no sockets (use sim)\n";
        assert!(text.contains("  no   read, read/poll, read/spin, "), "{text}");
        assert_eq!(text.matches(reason).count(), 2, "once for receivers, once for transmitters: {text}");
    }
}
