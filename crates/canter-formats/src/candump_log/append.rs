//! candump's log: `(1700000000.123456) can0 123#DEADBEEF`, byte for byte what `candump -l` writes; a frame with a known
//! direction is followed by ` R` or ` T`, as `candump -L -x` prints it. Formatted with a table of hex pairs and a copy
//! of the last second's digits, because `std::fmt` would cost more than receiving the frame.

use crate::format::{Append, Closing};
use canter_frame::{
    Direction, RawRecord,
    frame::{BRS, CAN_MTU, CANFD_MTU, EFF_FLAG, EFF_MASK, ERR_FLAG, ESI, FDF, RTR_FLAG, SFF_MASK},
};

/// Both digits of every byte.
static HEX: [[u8; 2]; 256] = pairs(b"0123456789ABCDEF", 16);
/// Both digits of every number below 100.
static DECIMAL: [[u8; 2]; 256] = pairs(b"0123456789......", 10);

const fn pairs(digits: &[u8; 16], base: usize) -> [[u8; 2]; 256] {
    let mut pairs = [[0; 2]; 256];
    let mut n = 0;
    while n < base * base {
        pairs[n] = [digits[n / base], digits[n % base]];
        n += 1;
    }
    pairs
}

/// The longest line: stamp 23, two spaces, name, a frame of 8 + 2 + 1 + 128, line break; and room for a [`Piece`].
const LINE_BYTES_MAX: usize = 224;

/// A repeated text in an array of fixed size, so that copying it takes a fixed number of instructions.
#[derive(Default)]
struct Piece {
    bytes: [u8; Self::ROOM],
    text: Vec<u8>,
}

impl Piece {
    /// Fits the name of a Linux interface, at most 15 characters; names in other recordings may be longer.
    const ROOM: usize = 24;

    fn new(text: String) -> Self {
        let text = text.into_bytes();
        let mut bytes = [0; Self::ROOM];
        let len = text.len().min(Self::ROOM);
        bytes[..len].copy_from_slice(&text[..len]);
        Self { bytes, text }
    }
}

/// The appender.
#[derive(Default)]
pub struct CandumpLog {
    ns: bool,
    names: Vec<String>,
    /// `) can0 ` for each interface; names are padded to the longest so far, as candump does.
    labels: Vec<Piece>,
    /// The second whose digits are in `second_text`.
    second: u64,
    second_text: Piece,
    line: Line,
    /// The buffer of [`CandumpLog::usual`]; its old content does not matter.
    usual_line: UsualLine,
}

impl CandumpLog {
    /// With `ns`, stamps have 9 digits instead of 6.
    pub fn new(ns: bool) -> Self {
        Self { ns, second: u64::MAX, ..Self::default() }
    }

    fn stamp(&mut self, stamp_ns: u64) {
        let ns = self.second(stamp_ns);
        let line = &mut self.line;
        line.piece(&self.second_text);
        line.slice(&micros(ns));
        if self.ns {
            let rest = ns % 1000;
            line.byte(b'0' + (rest / 100) as u8);
            line.pair(&DECIMAL, rest % 100);
        }
    }

    /// Updates `second_text` to the second of a stamp, and returns the rest in ns.
    #[inline]
    fn second(&mut self, stamp_ns: u64) -> u32 {
        let (second, ns) = (stamp_ns / 1_000_000_000, (stamp_ns % 1_000_000_000) as u32);
        if second != self.second {
            self.second = second;
            self.second_text = Piece::new(format!("({second:010}."));
        }
        ns
    }

    /// Appends the most common line, a classic data frame without direction, with few branches: all parts up to the
    /// interface's name have fixed offsets. `false`: the frame needs another line, and nothing was appended.
    #[inline]
    fn usual(&mut self, out: &mut Vec<u8>, record: &RawRecord<'_>) -> bool {
        let Ok(&[a, b, c, d, len, _, _, len8_dlc, ref data @ ..]) = <&[u8; CAN_MTU]>::try_from(record.bytes)
        else {
            return false;
        };
        let can_id = u32::from_ne_bytes([a, b, c, d]);
        let Some(&Piece { bytes: label, ref text }) = self.labels.get(record.bus.index()) else {
            return false;
        };
        let label_len = text.len();
        let plain = can_id & (RTR_FLAG | ERR_FLAG) == 0 && len <= 8 && len8_dlc == 0;
        if !plain || record.direction.is_some() || self.ns || label_len > Piece::ROOM {
            return false;
        }
        let ns = self.second(record.stamp_ns);
        if self.second_text.text.len() != SECOND_BYTES {
            return false; // a stamp after the year 2286
        }
        let line = &mut self.usual_line.0;
        line[..Piece::ROOM].copy_from_slice(&self.second_text.bytes);
        line[SECOND_BYTES..LABEL_AT].copy_from_slice(&micros(ns));
        line[LABEL_AT..LABEL_AT + Piece::ROOM].copy_from_slice(&label);
        let frame_at = LABEL_AT + label_len;
        let Some(place) = line[frame_at..].first_chunk_mut() else { return false };
        let end = frame_at + usual_frame(place, can_id, data) + 2 * usize::from(len);
        line[end] = b'\n';
        let begun = out.len();
        out.extend_from_slice(line);
        out.truncate(begun + end + 1);
        true
    }
}

/// The length of `(1700000000.`, which six digits of µs follow.
const SECOND_BYTES: usize = 12;
const LABEL_AT: usize = SECOND_BYTES + 6;
/// `12345678#`, eight bytes of data and the line break.
const FRAME_BYTES: usize = 9 + 16 + 1;
const USUAL_BYTES: usize = 80;

struct UsualLine([u8; USUAL_BYTES]);

impl Default for UsualLine {
    fn default() -> Self {
        Self([0; USUAL_BYTES])
    }
}

const _: () = assert!(LABEL_AT + Piece::ROOM + FRAME_BYTES <= USUAL_BYTES);

/// Writes a classic frame's identifier and all eight bytes of its data; returns the offset of the data.
#[inline]
fn usual_frame(place: &mut [u8; FRAME_BYTES], can_id: u32, data: &[u8; 8]) -> usize {
    let mut pair = |at: usize, byte: u8| place[at..at + 2].copy_from_slice(&HEX[usize::from(byte)]);
    if can_id & EFF_FLAG == 0 {
        pair(0, (can_id >> 4) as u8 & 0x7f); // the next line overwrites the second digit
        pair(1, can_id as u8);
        data.iter().enumerate().for_each(|(n, &byte)| pair(4 + 2 * n, byte));
        place[3] = b'#';
        return 4;
    }
    let id = (can_id & EFF_MASK).to_be_bytes();
    id.iter().enumerate().for_each(|(n, &byte)| pair(2 * n, byte));
    data.iter().enumerate().for_each(|(n, &byte)| pair(9 + 2 * n, byte));
    place[8] = b'#';
    9
}

/// Returns the six digits of the µs.
#[inline]
fn micros(ns: u32) -> [u8; 6] {
    let us = ns / 1000;
    let (high, low) = (us / 10_000, us % 10_000);
    let pairs = [high, low / 100, low % 100].map(|pair| DECIMAL[pair as usize & 0xff]);
    let [[a, b], [c, d], [e, f]] = pairs;
    [a, b, c, d, e, f]
}

/// A line under construction.
struct Line {
    bytes: [u8; LINE_BYTES_MAX],
    len: usize,
}

impl Default for Line {
    fn default() -> Self {
        Self { bytes: [0; LINE_BYTES_MAX], len: 0 }
    }
}

impl Line {
    #[inline]
    fn byte(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    /// Appends a piece that fits its room.
    #[inline]
    fn piece(&mut self, piece: &Piece) {
        if let Some(place) = self.bytes.get_mut(self.len..self.len + Piece::ROOM) {
            place.copy_from_slice(&piece.bytes);
        }
        self.len += piece.text.len();
    }

    #[inline]
    fn slice(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    #[inline]
    fn pair(&mut self, table: &[[u8; 2]; 256], value: u32) {
        self.slice(&table[(value & 0xff) as usize]);
    }

    #[inline]
    fn digit(&mut self, value: u8) {
        self.byte(HEX[usize::from(value & 15)][1]);
    }

    #[inline]
    fn identifier(&mut self, can_id: u32) {
        let id = match can_id {
            error if error & ERR_FLAG != 0 => error & (EFF_MASK | ERR_FLAG),
            extended if extended & EFF_FLAG != 0 => extended & EFF_MASK,
            standard => {
                self.digit((standard >> 8) as u8 & 7);
                return self.pair(&HEX, standard & SFF_MASK & 0xff);
            }
        };
        for shift in [24, 16, 8, 0] {
            self.pair(&HEX, id >> shift);
        }
    }

    /// Appends the frame, from its identifier on.
    #[inline]
    fn frame(&mut self, bytes: &[u8]) {
        let Some(&[a, b, c, d, len, flags, _, len8_dlc]) = bytes.first_chunk::<8>() else { return };
        let can_id = u32::from_ne_bytes([a, b, c, d]);
        self.identifier(can_id);
        self.byte(b'#');
        let fd = bytes.len() == CANFD_MTU;
        let error = can_id & ERR_FLAG != 0;
        if can_id & RTR_FLAG != 0 && !fd && !error {
            self.byte(b'R');
            if (1..=8).contains(&len) {
                self.digit(len);
            }
        } else {
            if fd && !error {
                self.byte(b'#');
                self.digit(flags & (BRS | ESI) | FDF);
            }
            let data = &bytes[8..];
            for &byte in &data[..data.len().min(len.into())] {
                self.slice(&HEX[usize::from(byte)]);
            }
        }
        if !fd && len == 8 && (9..=15).contains(&len8_dlc) {
            self.byte(b'_');
            self.digit(len8_dlc);
        }
    }
}

impl Append for CandumpLog {
    fn begin(&mut self, _out: &mut Vec<u8>) {}

    fn interface(&mut self, _out: &mut Vec<u8>, name: &str) {
        self.names.push(name.to_owned());
        let width = self.names.iter().map(String::len).max().unwrap_or_default();
        self.labels = self.names.iter().map(|name| Piece::new(format!(") {name:>width$} "))).collect();
    }

    #[inline]
    fn frame(&mut self, out: &mut Vec<u8>, record: &RawRecord<'_>, _late: bool) {
        if self.usual(out, record) {
            return;
        }
        self.line.len = 0;
        self.stamp(record.stamp_ns);
        let line = &mut self.line;
        match self.labels.get(record.bus.index()) {
            Some(label) if label.text.len() <= Piece::ROOM => line.piece(label),
            label => {
                out.extend_from_slice(&line.bytes[..line.len]);
                out.extend_from_slice(label.map_or(b") ? ", |label| &label.text));
                line.len = 0;
            }
        }
        line.frame(record.bytes);
        match record.direction {
            None => {}
            Some(Direction::Received) => line.slice(b" R"),
            Some(Direction::Sent) => line.slice(b" T"),
        }
        line.byte(b'\n');
        out.extend_from_slice(&line.bytes[..line.len]);
    }

    /// Appends nothing: readers of logs stop at lines that are not frames. The account is in a separate file.
    fn finish(&mut self, _out: &mut Vec<u8>, _interfaces: &[Closing], _verdict: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;
    use canter_frame::{BusId, Direction, Frame, LogLine};
    use proptest::prelude::*;

    fn line(ns: bool, names: &[&str], record: &RawRecord<'_>) -> String {
        let (mut log, mut out) = (CandumpLog::new(ns), Vec::new());
        log.begin(&mut out);
        names.iter().for_each(|name| log.interface(&mut out, name));
        log.frame(&mut out, record, false);
        log.finish(&mut out, &[], "complete");
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_is_what_candump_writes() {
        let bytes = examples::bytes(&"123#DEADBEEF".parse().unwrap());
        let record = examples::record(&bytes, 0, 1_700_000_000_123_456_789);
        assert_eq!(line(false, &["can0"], &record), "(1700000000.123456) can0 123#DEADBEEF\n");
        assert_eq!(line(true, &["can0"], &record), "(1700000000.123456789) can0 123#DEADBEEF\n");
        assert_eq!(line(false, &["can0", "vcan10"], &record), "(1700000000.123456)   can0 123#DEADBEEF\n");
    }

    proptest! {
        #[test]
        fn every_frame_is_printed_as_log_line_prints_it(
            can_id: u32, head: [u8; 4], data in prop::collection::vec(any::<u8>(), 64), fd: bool,
            stamp_ns in 0u64..4_000_000_000_000_000_000, ns: bool,
        ) {
            let mut bytes = [&can_id.to_ne_bytes()[..], &head, &data].concat();
            bytes[4] %= if fd { 65 } else { 9 };
            bytes.truncate(if fd { 72 } else { 16 });
            let record = examples::record(&bytes, 0, stamp_ns);
            let frame: Frame = record.frame();
            let want = LogLine { stamp_ns, interface: "can0", frame, direction: None };
            let want = if ns { format!("{want:.9}\n") } else { format!("{want}\n") };
            prop_assert_eq!(line(ns, &["can0"], &record), want);
        }

        #[test]
        fn the_direction_is_read_back_as_it_was_written(own: bool, id in 0u32..0x800) {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&id.to_ne_bytes());
            let direction = Some(if own { Direction::Sent } else { Direction::Received });
            let text = line(false, &["can0"], &RawRecord { direction, ..RawRecord::new(7_000, BusId(0), &bytes) });
            let read = LogLine::parse(&text).unwrap().unwrap();
            prop_assert_eq!(read.direction, direction);
            prop_assert_eq!(read.frame.can_id, id);
        }

        #[test]
        fn no_bytes_make_the_appender_panic(bytes in prop::collection::vec(any::<u8>(), 0..73), interface: u32, stamp_ns: u64) {
            line(true, &["can0"], &examples::record(&bytes, interface, stamp_ns));
        }
    }
}
