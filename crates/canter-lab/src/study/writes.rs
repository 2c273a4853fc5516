//! What a write of frames takes on a virtual wire ("Wapice Custom CAN Driver", table 2): the time of the call, the time from its
//! start to the first frame's first bit, and the time from its start to the last frame's last bit. The wire's tap has the
//! bits' times, read when all writes are done.

use crate::meter::syscalls;
use canter_cli::failure::{self, Exit, Failure};
use canter_io::{
    BitRate, Frame, Interface, clock,
    interface::BitTiming,
    method::{Transmit, TransmitMethod, TransmitOptions},
    netlink::wire,
    tap::Tap,
};
use canter_measure::{
    histogram::Histogram,
    result::{Condition, Ledger, Lost, Series},
};
use serde::Deserialize;
use std::collections::BTreeSet;

/// The times of a write, in the order of the paper's columns.
const QUANTITIES: [&str; 3] = ["write time", "start delay", "total time"];
/// The pause between two writes, without the bits of the frames.
const PAUSE_NS: u64 = 1_000_000;

/// The plan: every method at every bit rate with every number of frames.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WritesPlan {
    /// The wire whose tap has the times.
    bus: String,
    writers: Vec<Writer>,
    /// Other nodes of the bus, which acknowledge.
    others: Vec<String>,
    /// In bit/s.
    bitrates: Vec<u32>,
    /// The numbers of frames of a write.
    batch: Vec<usize>,
    len: u8,
    pub count: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Writer {
    method: String,
    interface: String,
}

/// A method at a bit rate, with a number of frames.
struct Case<'a> {
    writer: &'a Writer,
    bitrate: u32,
    batch: usize,
}

/// The times of a write, as in [`QUANTITIES`].
type Times = [u64; 3];

impl WritesPlan {
    pub fn checked(self) -> Result<Self, String> {
        let within = self.len <= 8 && self.count > 0 && !self.bitrates.contains(&0);
        if !within || self.batch.iter().any(|batch| !(1..=BATCH_MAX).contains(batch)) {
            return Err(format!(
                "[writes]: at most 8 bytes, at least one write, bit rates above 0, 1…{BATCH_MAX} frames"
            ));
        }
        Ok(self)
    }

    /// The number of cases, each of three series.
    pub fn cases(&self) -> usize {
        self.all().count()
    }

    fn all(&self) -> impl Iterator<Item = Case<'_>> {
        self.bitrates.iter().flat_map(move |&bitrate| {
            self.writers
                .iter()
                .flat_map(move |writer| self.batch.iter().map(move |&batch| Case { writer, bitrate, batch }))
        })
    }
}

/// More frames than the queue of an interface takes would make a write wait.
const BATCH_MAX: usize = 8;

/// The interfaces at the first bit rate.
pub fn interfaces(plan: &WritesPlan) -> failure::Result<Vec<Interface>> {
    set_up(plan, plan.bitrates.first().copied().unwrap_or_default())
}

/// Takes down all nodes of the bus: one of another bit rate would destroy the frames, and the next study has its own.
fn take_down(bus: &str) -> failure::Result<()> {
    for node in wire::nodes_of(bus)? {
        if let Ok(mut interface) = Interface::find(&node.name) {
            interface.down()?;
        }
    }
    Ok(())
}

fn set_up(plan: &WritesPlan, bitrate: u32) -> failure::Result<Vec<Interface>> {
    take_down(&plan.bus)?;
    let writers = plan.writers.iter().map(|writer| &writer.interface);
    let mut interfaces = Vec::new();
    for name in writers.chain(&plan.others) {
        let mut interface = Interface::find(name)?;
        interface.down()?;
        interface.set_bit_timing(&BitTiming::classic(bitrate))?;
        interface.up()?;
        interfaces.push(interface);
    }
    Ok(interfaces)
}

/// Every case but those whose number is `known`.
pub fn measure(
    plan: &WritesPlan,
    known: &BTreeSet<usize>,
    done: &mut dyn FnMut(usize, &str, Vec<Series>),
) -> failure::Result<()> {
    for (number, case) in plan.all().enumerate().filter(|(number, _)| !known.contains(number)) {
        let series = match write_all(plan, &case) {
            Err(Failure { exit: Exit::Unable, message }) => {
                vec![Series::unavailable(&case.writer.method, condition(plan, &case), message)]
            }
            times => series(plan, &case, &times?),
        };
        done(number, &format!("{} {}", case.writer.method, variant(&case)), series);
    }
    take_down(&plan.bus)
}

fn variant(case: &Case<'_>) -> String {
    let frames = if case.batch == 1 { "frame" } else { "frames" };
    format!("{} {frames} at {} kbit/s", case.batch, case.bitrate / 1000)
}

fn condition(plan: &WritesPlan, case: &Case<'_>) -> Condition {
    Condition {
        traffic: "one-at-a-time".to_owned(),
        load: "none".to_owned(),
        frames: plan.count,
        len: plan.len.into(),
        variant: variant(case),
        interfaces: vec![plan.bus.clone()],
        instrument: "wire".to_owned(),
        ..Condition::default()
    }
}

/// Writes with a pause before each, and then reads when the bits were sent.
fn write_all(plan: &WritesPlan, case: &Case<'_>) -> failure::Result<Vec<Times>> {
    set_up(plan, case.bitrate)?;
    let interface = Interface::find(&case.writer.interface)?;
    let method: TransmitMethod = case.writer.method.parse()?;
    let mut writer = method.open(&interface, &TransmitOptions::default())?;
    let mut tap = Tap::open(&plan.bus)?;
    let frames = vec![syscalls::frame(plan.len)?; case.batch];
    let bits_ns = case.batch as u64 * frames[0].duration_ns(BitRate::classic(case.bitrate));
    let mut calls = Vec::new();
    for _ in 0..plan.count {
        clock::sleep_until_ns(clock::monotonic_ns() + PAUSE_NS + bits_ns);
        calls.push(
            write(&mut *writer, &frames).map_err(|error| {
                Failure::failed(format!("study: write by {}: {error}", case.writer.method))
            })?,
        );
    }
    clock::sleep_until_ns(clock::monotonic_ns() + PAUSE_NS + bits_ns);
    let mut times = Vec::new();
    for [begin_ns, end_ns] in calls {
        let records: Vec<_> = std::iter::from_fn(|| tap.next_record()).take(case.batch).collect();
        let (Some(first), Some(last)) = (records.first(), records.last()) else { break };
        if records.len() == case.batch && records.iter().all(|record| record.error.is_none()) {
            times.push([end_ns, first.sof_ns, last.end_ns].map(|ns| ns.saturating_sub(begin_ns)));
        }
    }
    Ok(times)
}

/// When the call began and when it ended.
fn write(writer: &mut dyn Transmit, frames: &[Frame]) -> std::io::Result<[u64; 2]> {
    let begin_ns = clock::monotonic_ns();
    let taken = writer.transmit(frames)?;
    writer.flush()?;
    let end_ns = clock::monotonic_ns();
    match taken == frames.len() {
        true => Ok([begin_ns, end_ns]),
        false => Err(std::io::Error::other("the queue is full")),
    }
}

fn series(plan: &WritesPlan, case: &Case<'_>, times: &[Times]) -> Vec<Series> {
    let of_quantity = |(at, quantity): (usize, &&str)| {
        let mut histogram = Histogram::new();
        times.iter().for_each(|times| histogram.record(times[at] as i64));
        let (sent, received) = (plan.count, times.len() as u64);
        Series {
            method: case.writer.method.clone(),
            quantity: (*quantity).to_owned(),
            condition: condition(plan, case),
            latency_ns: Some(histogram.to_latency()),
            floor_ns: Some(0),
            ledger: Ledger {
                sent,
                received,
                lost: Lost { unaccounted: sent - received, ..Lost::default() },
                ..Ledger::default()
            },
            ..Series::default()
        }
    };
    QUANTITIES.iter().enumerate().map(of_quantity).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(more: &str) -> Result<WritesPlan, String> {
        let text = format!(
            "bus = 'A'\nwriters = [{{ method = 'write', interface = 'wcan0' }}]\nothers = ['wcan3']\n\
             bitrates = [1000000, 250000]\nlen = 8\ncount = 3\n{more}"
        );
        toml::from_str::<WritesPlan>(&text).map_err(|error| error.to_string())?.checked()
    }

    #[test]
    fn a_case_has_three_times_and_what_was_not_sent_is_lost() {
        let plan = plan("batch = [1, 3]").unwrap();
        assert_eq!(plan.cases(), 4);
        let cases: Vec<_> = plan.all().collect();
        let words: Vec<_> = cases.iter().map(variant).collect();
        assert_eq!(words[1], "3 frames at 1000 kbit/s");
        assert_eq!(words[2], "1 frame at 250 kbit/s");
        let made = series(&plan, &cases[0], &[[5, 3, 115], [7, 3, 115]]);
        let medians: Vec<_> =
            made.iter().map(|one| (one.quantity.as_str(), one.latency_ns.as_ref().unwrap().p50)).collect();
        assert_eq!(medians, [("write time", 5), ("start delay", 3), ("total time", 115)]);
        assert!(made.iter().all(|one| one.ledger.lost.total() == 1 && one.fault().is_none()));
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        for more in ["batch = [0]", "batch = [9]", "batch = [1]\nlen = 9", ""] {
            assert!(plan(more).is_err(), "{more}");
        }
    }
}
