//! Vector ASC, as CANoe and python-can write it. The date is that of the first frame, to the ms, in UTC; stamps count
//! from it.

use crate::{
    channels::{self, ChannelOfBus},
    fields::{BUS_ERROR, Fields},
    format::{Detail, NotKept, Output, Sink, Written},
    hex,
};
use canter_frame::{BusId, Direction, Record};
use jiff::{Timestamp, tz::TimeZone};
use std::io;

/// Flags of a `CANFD` line.
const EDL: u32 = 1 << 12;
const BRS: u32 = 1 << 13;
const ESI: u32 = 1 << 14;

/// The encoder.
pub struct Asc {
    output: Output,
    ns: bool,
    channels: ChannelOfBus,
    /// Notes of interfaces that were added before the header was written.
    waiting: Vec<String>,
    /// The date in the header; `None` before the first frame.
    start_ns: Option<u64>,
    not_kept: NotKept,
}

fn date(ns: u64) -> String {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let date = Timestamp::from_nanosecond(ns.into()).unwrap_or_default().to_zoned(TimeZone::UTC);
    let day = DAYS[date.weekday().to_monday_zero_offset().unsigned_abs() as usize % 7];
    let month = MONTHS[(date.month().unsigned_abs() as usize + 11) % 12];
    let (hour, minute, second, ms) = (date.hour(), date.minute(), date.second(), date.millisecond());
    format!("{day} {month} {:02} {hour:02}:{minute:02}:{second:02}.{ms:03} {}", date.day(), date.year())
}

impl Asc {
    pub fn new(output: Output, ns: bool) -> Self {
        let (channels, waiting, not_kept) = (ChannelOfBus::default(), Vec::new(), NotKept::default());
        Self { output, ns, channels, waiting, start_ns: None, not_kept }
    }

    fn begin(&mut self, stamp_ns: u64) -> u64 {
        let start_ns = stamp_ns - stamp_ns % 1_000_000;
        self.start_ns = Some(start_ns);
        let date = date(start_ns);
        let head = format!(
            "date {date}\nbase hex  timestamps absolute\ninternal events logged\n// version 9.0.0\n// canter {}, dates in UTC\n",
            env!("CARGO_PKG_VERSION")
        );
        let out = self.output.buffer();
        out.extend_from_slice(head.as_bytes());
        self.waiting.drain(..).for_each(|note| out.extend_from_slice(note.as_bytes()));
        out.extend_from_slice(
            format!("Begin Triggerblock {date}\n   0.000000 Start of measurement\n").as_bytes(),
        );
        start_ns
    }

    fn stamp(&mut self, stamp_ns: u64, start_ns: u64) {
        let Some(since) = stamp_ns.checked_sub(start_ns) else {
            self.not_kept.count(Detail::BeforeStart);
            return self.stamp(start_ns, start_ns);
        };
        let out = self.output.buffer();
        let start = out.len();
        hex::decimal(out, since / 1_000_000_000, 1);
        let seconds = out.len() - start;
        out.splice(start..start, std::iter::repeat_n(b' ', 4usize.saturating_sub(seconds)));
        out.push(b'.');
        if self.ns {
            hex::decimal(out, since % 1_000_000_000, 9);
        } else {
            hex::decimal(out, since % 1_000_000_000 / 1000, 6);
            if !since.is_multiple_of(1000) {
                self.not_kept.count(Detail::SubMicrosecond);
            }
        }
    }
}

/// Appends the identifier, an extended one with `x`; returns its length.
fn identifier(out: &mut Vec<u8>, fields: &Fields) -> usize {
    let start = out.len();
    hex::number(out, fields.id, 1);
    if fields.extended {
        out.push(b'x');
    }
    out.len() - start
}

fn pad(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&[b' '; 40][..count.min(40)]);
}

fn data(out: &mut Vec<u8>, bytes: &[u8]) {
    for &byte in bytes {
        out.push(b' ');
        hex::byte(out, byte);
    }
}

fn classic(out: &mut Vec<u8>, channel: u32, direction: &[u8], fields: &Fields, bytes: &[u8]) {
    out.push(b' ');
    hex::decimal(out, channel.into(), 1);
    out.extend_from_slice(b"  ");
    let width = identifier(out, fields);
    pad(out, 16usize.saturating_sub(width));
    out.extend_from_slice(direction);
    out.extend_from_slice(if fields.rtr { b"   r " } else { b"   d " });
    hex::number(out, fields.dlc.min(8).into(), 1);
    data(out, bytes);
}

/// `CANFD   1 Rx        123                                   1 0 9 12 01 … duration length flags crc and timings`.
fn fd(out: &mut Vec<u8>, channel: u32, direction: &[u8], fields: &Fields, bytes: &[u8]) {
    out.extend_from_slice(b" CANFD ");
    let start = out.len();
    hex::decimal(out, channel.into(), 1);
    let width = out.len() - start;
    out.splice(start..start, std::iter::repeat_n(b' ', 3usize.saturating_sub(width)));
    out.push(b' ');
    out.extend_from_slice(direction);
    out.extend_from_slice(b"   ");
    let start = out.len();
    let width = identifier(out, fields);
    out.splice(start..start, std::iter::repeat_n(b' ', 8usize.saturating_sub(width)));
    pad(out, 35); // no message name from a database
    out.extend_from_slice(if fields.brs { b"1 " } else { b"0 " });
    out.extend_from_slice(if fields.esi { b"1 " } else { b"0 " });
    hex::number(out, fields.dlc.into(), 1);
    out.extend_from_slice(if bytes.len() < 10 { b"  " } else { b" " });
    hex::decimal(out, bytes.len() as u64, 1);
    data(out, bytes);
    out.extend_from_slice(b"        0    0     ");
    let flags = EDL | if fields.brs { BRS } else { 0 } | if fields.esi { ESI } else { 0 };
    hex::number(out, flags, 4);
    out.extend_from_slice(b"        0        0        0        0        0");
}

impl Sink for Asc {
    fn interface(&mut self, name: &str) -> io::Result<()> {
        let channel = self.channels.add(name);
        let note = format!("// {}\n", channels::note(channel, name));
        match self.start_ns {
            Some(_) => self.output.buffer().extend_from_slice(note.as_bytes()),
            None => self.waiting.push(note),
        }
        Ok(())
    }

    #[inline]
    fn frame(&mut self, entry: &Record) -> io::Result<()> {
        let start_ns = match self.start_ns {
            Some(start_ns) => start_ns,
            None => self.begin(entry.stamp_ns),
        };
        self.stamp(entry.stamp_ns, start_ns);
        let fields = Fields::from_frame(&entry.frame);
        let channel = self.channels.known(entry.bus);
        let direction: &[u8] = match entry.direction {
            Some(Direction::Sent) => b"Tx",
            Some(Direction::Received) => b"Rx",
            None => {
                if !fields.error {
                    self.not_kept.count(Detail::DirectionUnknown);
                }
                b"Rx"
            }
        };
        let out = self.output.buffer();
        match (fields.error, fields.fd) {
            (true, _) => {
                out.push(b' ');
                hex::decimal(out, channel.into(), 1);
                out.extend_from_slice(b"  ErrorFrame");
                if entry.frame.can_id != BUS_ERROR || entry.frame.data().iter().any(|&byte| byte != 0) {
                    self.not_kept.count(Detail::ErrorFrame);
                }
            }
            (_, true) => fd(out, channel, direction, &fields, entry.frame.data()),
            _ => {
                classic(out, channel, direction, &fields, entry.frame.data());
                if fields.dlc > 8 {
                    self.not_kept.count(Detail::DlcAbove8);
                }
            }
        }
        self.output.buffer().push(b'\n');
        self.output.ready()
    }

    fn channel(&self, bus: BusId) -> Option<u32> {
        self.channels.channel(bus)
    }

    fn finish(mut self: Box<Self>) -> io::Result<Written> {
        if self.start_ns.is_none() {
            self.begin(0);
        }
        self.output.buffer().extend_from_slice(b"End TriggerBlock\n");
        Ok(Written { bytes: self.output.finish()?, files: 1, not_kept: self.not_kept })
    }
}
