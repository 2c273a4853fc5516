//! A record of the tap as a line: start, end, bits, sender, frame, remarks.

use canter_cli::failure;
use canter_io::{
    netlink::wire::{self, Bus},
    tap::{Marks, Record},
};
use std::fmt::Write;

/// The names of a bus's nodes.
pub struct Names {
    bus: String,
    nodes: Vec<(u32, String)>,
}

impl Names {
    /// Reads the names from the kernel.
    pub fn read(bus: &str) -> failure::Result<Self> {
        let mut names = Self { bus: bus.to_owned(), nodes: Vec::new() };
        names.refresh()?;
        Ok(names)
    }

    fn refresh(&mut self) -> failure::Result<()> {
        self.nodes = wire::nodes_of(&self.bus)?.into_iter().map(|node| (node.index, node.name)).collect();
        Ok(())
    }

    /// The name of the sender. The first frame of an unknown node refreshes the names; a node that was deleted or is in
    /// another network namespace gets a number instead.
    pub fn sender(&mut self, record: &Record) -> String {
        let Some(index) = record.sender else { return "source".to_owned() };
        if !self.nodes.iter().any(|(known, _)| *known == index) {
            let _ = self.refresh(); // after an error, the node gets a number
            if !self.nodes.iter().any(|(known, _)| *known == index) {
                self.nodes.push((index, format!("node{}", record.slot.unwrap_or_default())));
            }
        }
        let name = self.nodes.iter().find(|(known, _)| *known == index);
        name.map_or_else(String::new, |(_, name)| name.clone())
    }
}

/// The bit rates of a bus as text: `500000 bit/s, data 2000000 bit/s`.
pub fn rates(bus: &Bus) -> String {
    match (bus.bitrate, bus.data_bitrate) {
        (None, _) => "no node is up".to_owned(),
        (Some(rate), Some(data)) if data != rate => format!("{rate} bit/s, data {data} bit/s"),
        (Some(rate), _) => format!("{rate} bit/s"),
    }
}

/// Appends the line of a record.
pub fn print(record: &Record, sender: &str, out: &mut String) {
    let second = |ns: u64| format!("{:>6}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let bits = match record.data_bits {
        0 => record.nominal_bits.to_string(),
        data => format!("{}+{data}", record.nominal_bits),
    };
    let _ = write!(
        out,
        "{} {} {bits:>8} bits  {sender:>8}  {}",
        second(record.sof_ns),
        second(record.end_ns),
        record.frame
    );
    for remark in remarks(record) {
        let _ = write!(out, "  {remark}");
    }
    out.push('\n');
}

/// The comment of a packet: the frame that an error destroyed, the error, overruns, marks. Empty without any.
pub fn comment(record: &Record) -> String {
    let remarks = remarks(record).collect::<Vec<_>>().join(", ");
    match record.error {
        Some(_) => format!("{} {remarks}", record.frame),
        None => remarks,
    }
}

fn remarks(record: &Record) -> impl Iterator<Item = String> {
    let injected = if record.marks.contains(Marks::INJECTED) { ", injected" } else { "" };
    let error =
        record.error.map(|fault| format!("ERROR {} after bit {}{injected}", fault.name(), record.error_bit));
    let overruns =
        (record.overrun != 0).then(|| format!("{} receivers overrun", record.overrun.count_ones()));
    let names = [(Marks::SLIPPED, "slipped"), (Marks::BABBLE, "babble"), (Marks::PASSIVE, "error-passive")];
    let marks = record.marks;
    let names =
        names.into_iter().filter(move |(mark, _)| marks.contains(*mark)).map(|(_, name)| name.to_owned());
    error.into_iter().chain(overruns).chain(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_io::netlink::wire::Fault;

    fn record() -> Record {
        Record {
            frame: "123#1122".parse().unwrap(),
            sof_ns: 12_345_678_901,
            end_ns: 12_345_743_901,
            nominal_bits: 65,
            data_bits: 0,
            error: None,
            error_bit: 0,
            sender: Some(3),
            slot: Some(0),
            pending: 1,
            received: 2,
            overrun: 0,
            late_ns: 600,
            marks: Marks::default(),
        }
    }

    #[test]
    fn a_line_has_start_end_bits_sender_and_frame() {
        let mut text = String::new();
        print(&record(), "wcan0", &mut text);
        assert_eq!(text, "    12.345678901     12.345743901       65 bits     wcan0  123#1122\n");
    }

    #[test]
    fn errors_and_overruns_are_printed_after_the_frame() {
        let record = Record {
            error: Some(Fault::Crc),
            error_bit: 40,
            marks: Marks(Marks::INJECTED.0 | Marks::SLIPPED.0),
            overrun: 5,
            data_bits: 12,
            ..record()
        };
        let mut text = String::new();
        print(&record, "source", &mut text);
        let expected = "   65+12 bits    source  123#1122  ERROR crc after bit 40, injected  2 receivers overrun  slipped\n";
        assert!(text.ends_with(expected), "{text}");
    }
}
