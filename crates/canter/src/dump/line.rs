//! A line of `canter dump`, in candump's notation.

use canter_cli::terminal::{CYAN, GREEN, Ink, MAGENTA, PLAIN, RED, Style, YELLOW};
use canter_frame::{
    CandumpLine, Direction, Frame, LogLine,
    error_frame::ErrorFrame,
    frame::{BRS, EFF_MASK, ESI},
};
use clap::ValueEnum;
use jiff::Timestamp;
use std::{fmt::Write as _, io};

/// The stamp before a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stamps {
    /// None
    #[value(hide = true)]
    None,
    /// Seconds since 1970
    #[value(name = "a")]
    Absolute,
    /// Date and time in UTC
    #[value(name = "A")]
    Date,
    /// Seconds since the frame before
    #[value(name = "d")]
    Delta,
    /// Seconds since the first frame
    #[value(name = "z")]
    Zero,
}

/// What a line shows.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    pub stamps: Stamps,
    /// The data as text, behind the data.
    pub ascii: bool,
    /// Direction and flags.
    pub extra: bool,
    /// The line is one of candump's log.
    pub log: bool,
    /// Stamps have 9 digits instead of 6.
    pub ns: bool,
}

/// A frame to print.
pub struct Line<'a> {
    pub interface: &'a str,
    pub frame: &'a Frame,
    pub stamp_ns: u64,
    pub direction: Option<Direction>,
}

/// Prints lines; it knows the frames before.
pub struct Printer {
    shown: Shown,
    ink: Ink,
    indent_sff: bool,
    /// The width of the longest name of an interface so far.
    width: usize,
    first_ns: Option<u64>,
    last_ns: u64,
    text: String,
}

/// The colours of identifiers. Red is for errors.
const COLOURS: [Style; 7] = [GREEN, YELLOW, CYAN, MAGENTA, GREEN.bold(), CYAN.bold(), MAGENTA.bold()];

/// Neighbouring identifiers get different colours.
fn colour(frame: &Frame) -> Style {
    if frame.is_error() {
        return RED;
    }
    let id = frame.can_id & EFF_MASK;
    COLOURS.get((id % COLOURS.len() as u32) as usize).copied().unwrap_or(PLAIN)
}

impl Printer {
    pub fn new(shown: Shown, ink: Ink) -> Self {
        Self { shown, ink, indent_sff: false, width: 0, first_ns: None, last_ns: 0, text: String::new() }
    }

    /// Reserves a column for the longest name of interfaces that are known before.
    pub fn reserve<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        for name in names {
            self.width = self.width.max(name.chars().count());
        }
    }

    /// Writes a frame with its signals behind it, and what an error frame means in a line of its own.
    pub fn print(&mut self, out: &mut impl io::Write, line: &Line<'_>, signals: &str) -> io::Result<()> {
        self.text.clear();
        if self.shown.log {
            self.log(line);
            return out.write_all(self.text.as_bytes());
        }
        self.reserve([line.interface]);
        self.stamp(line.stamp_ns);
        let mut body = String::new();
        self.body(&mut body, line);
        self.text += &self.ink.paint(colour(line.frame), &body);
        self.text.push_str(signals);
        self.text.push('\n');
        if let Some(error) = ErrorFrame::from_frame(line.frame) {
            let _ = writeln!(self.text, "\t{error}");
        }
        out.write_all(self.text.as_bytes())
    }

    fn log(&mut self, line: &Line<'_>) {
        let Line { interface, frame, stamp_ns, direction } = *line;
        let direction = direction.filter(|_| self.shown.extra);
        let line = LogLine { stamp_ns, interface, frame: *frame, direction };
        let _ = if self.shown.ns { writeln!(self.text, "{line:.9}") } else { writeln!(self.text, "{line}") };
    }

    fn stamp(&mut self, stamp_ns: u64) {
        // candump subtracts stamps as it prints them.
        let stamp_ns = if self.shown.ns { stamp_ns } else { stamp_ns / 1000 * 1000 };
        let first_ns = *self.first_ns.get_or_insert(stamp_ns);
        let last_ns = std::mem::replace(&mut self.last_ns, stamp_ns);
        let since = |ns: u64| stamp_ns.saturating_sub(if ns == 0 { stamp_ns } else { ns });
        match self.shown.stamps {
            Stamps::None => {}
            Stamps::Absolute => self.seconds(stamp_ns, 10),
            Stamps::Delta => self.seconds(since(last_ns), 3),
            Stamps::Zero => self.seconds(since(first_ns), 3),
            Stamps::Date => {
                let stamp = Timestamp::from_nanosecond(stamp_ns.into()).unwrap_or_default();
                let date = stamp.strftime("%F %T");
                let fraction = self.fraction(stamp_ns);
                let _ = write!(self.text, " ({date}.{fraction})");
            }
        }
    }

    fn seconds(&mut self, ns: u64, digits: usize) {
        let fraction = self.fraction(ns);
        let _ = write!(self.text, " ({:0digits$}.{fraction})", ns / 1_000_000_000);
    }

    /// The digits behind the point.
    fn fraction(&self, ns: u64) -> String {
        let ns = ns % 1_000_000_000;
        if self.shown.ns { format!("{ns:09}") } else { format!("{:06}", ns / 1000) }
    }

    fn body(&mut self, body: &mut String, line: &Line<'_>) {
        let Line { interface, frame, direction, .. } = *line;
        self.indent_sff |= frame.is_eff() && !frame.is_error();
        let _ = write!(body, "  {interface:>width$}", width = self.width);
        if self.shown.extra {
            let direction = match direction {
                Some(Direction::Received) => "RX",
                Some(Direction::Sent) => "TX",
                None => "--",
            };
            let flag = |bit: u8, letter| if frame.is_fd() && frame.flags & bit != 0 { letter } else { '-' };
            let _ = write!(body, "  {direction} {} {}", flag(BRS, 'B'), flag(ESI, 'E'));
        }
        let text = CandumpLine { interface: "", frame, indent_sff: self.indent_sff }.to_string();
        // The line begins with two blanks, the name and two blanks.
        body.push_str(text.get(2..).unwrap_or_default());
        // As candump, no text behind more than 8 bytes, whose line is long enough.
        if self.shown.ascii && !frame.is_error() && !frame.is_rtr() && frame.data().len() <= 8 {
            let missing = 3 * 8usize.saturating_sub(frame.data().len());
            let printable = |&byte: &u8| if (0x20..0x7f).contains(&byte) { char::from(byte) } else { '.' };
            let text: String = frame.data().iter().map(printable).collect();
            let _ = write!(body, "{:missing$}   '{text}'", "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(shown: Shown, lines: &[(&str, &str, u64)]) -> String {
        let mut printer = Printer::new(shown, Ink::none());
        let mut out = Vec::new();
        for &(interface, text, stamp_ns) in lines {
            let frame = text.parse().unwrap();
            let direction = Some(Direction::Sent);
            printer.print(&mut out, &Line { interface, frame: &frame, stamp_ns, direction }, "").unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    const PLAINLY: Shown = Shown { stamps: Stamps::None, ascii: false, extra: false, log: false, ns: false };

    #[test]
    fn lines_are_candumps() {
        // Lines of candump 2020.11 for the same frames, with -a and with -x.
        let frames = [("can0", "123#DEAD41", 0), ("can0", "12345678#", 0), ("can0", "123#R", 0)];
        let text = "  can0  123   [3]  DE AD 41                  '..A'\n  can0  12345678   [0]                            ''\n  can0       123   [0]  remote request\n";
        assert_eq!(printed(Shown { ascii: true, ..PLAINLY }, &frames), text);
        let fd = [("can10", "123##3001122", 0), ("can0", "123#1122334455667788", 0)];
        let text =
            "  can10  TX B E  123  [03]  00 11 22\n   can0  TX - -  123   [8]  11 22 33 44 55 66 77 88\n";
        assert_eq!(printed(Shown { extra: true, ..PLAINLY }, &fd), text);
        let error = [("can0", "20000204#0001000000000000", 0)];
        let text = "  can0  20000204   [8]  00 01 00 00 00 00 00 00   ERRORFRAME\n\tcontroller-problem{rx-overflow}, transceiver-status\n";
        let shown = printed(PLAINLY, &error);
        assert!(
            shown.starts_with(&text[..60]) && shown.contains("\n\tcontroller-problem{rx-overflow}"),
            "{shown}"
        );
    }

    #[test]
    fn stamps_are_candumps() {
        let frames = [
            ("can0", "001#", 1_700_000_000_123_456_789),
            ("can0", "001#", 1_700_000_001_000_000_000),
            ("can0", "001#", 1_700_000_002_500_000_000),
        ];
        for (stamps, ns, wanted) in [
            (Stamps::Absolute, false, "(1700000000.123456) (1700000001.000000) (1700000002.500000)"),
            (Stamps::Absolute, true, "(1700000000.123456789) (1700000001.000000000) (1700000002.500000000)"),
            (Stamps::Delta, false, "(000.000000) (000.876544) (001.500000)"),
            (Stamps::Zero, false, "(000.000000) (000.876544) (002.376544)"),
            (
                Stamps::Date,
                false,
                "(2023-11-14 22:13:20.123456) (2023-11-14 22:13:21.000000) (2023-11-14 22:13:22.500000)",
            ),
        ] {
            let text = printed(Shown { stamps, ns, ..PLAINLY }, &frames);
            let stamps: Vec<&str> =
                text.lines().map(|line| line.split("  can0").next().unwrap().trim()).collect();
            assert_eq!(stamps.join(" "), wanted);
        }
        let log = printed(Shown { log: true, ns: true, extra: true, ..PLAINLY }, &frames[..1]);
        assert_eq!(log, "(1700000000.123456789) can0 001# T\n");
    }

    #[test]
    fn an_identifier_keeps_its_colour_and_errors_are_red() {
        let frame = |text: &str| text.parse::<Frame>().unwrap();
        assert_eq!(colour(&frame("123#")), colour(&frame("123#11")));
        assert_ne!(colour(&frame("123#")), colour(&frame("124#")));
        assert_eq!(colour(&frame("20000004#0000000000000000")), RED);
        assert!((0..0x800).all(|id| colour(&frame(&format!("{id:03X}#"))) != RED));
    }
}
