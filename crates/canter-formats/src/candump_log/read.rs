//! candump's log: one line per frame, read by `LogLine`. Lines that do not start with `(` are comments; candump's
//! DROPCOUNT comments are counted as frames that the recording has lost.

use crate::{
    cursor::Cursor,
    format::{Context, Decode, SNIFF_BYTES, Source},
    trouble::{Trouble, wrong},
};
use canter_frame::{Direction, Frame, LogLine, Record, notation::parse_frame};
use std::io;

/// The decoder.
#[derive(Default)]
pub struct CandumpLog {
    line: u64,
}

/// Whether the text begins with a frame, or with comments and then a frame. Comments alone are a log without frames;
/// blank lines alone are no log.
pub fn looks_like(head: &[u8]) -> bool {
    // The last of these lines may be incomplete.
    let end = memchr::memrchr(b'\n', head).filter(|_| head.len() >= SNIFF_BYTES);
    let head = end.map_or(head, |end| &head[..end]);
    let blank = head.trim_ascii().is_empty();
    let text = head.iter().all(|&byte| byte == b'\n' || byte == b'\r' || byte == b'\t' || byte >= b' ');
    let frame = |line: &[u8]| {
        let rest = line.strip_prefix(b"(").unwrap_or_default();
        rest.first().is_some_and(u8::is_ascii_digit)
    };
    let comment = |line: &&[u8]| line.is_empty() || line.starts_with(b"#") || line.starts_with(b"DROPCOUNT");
    !blank && text && head.split(|&byte| byte == b'\n').find(|line| !comment(line)).is_none_or(frame)
}

/// Reads the 12 of `DROPCOUNT: dropped 12 CAN frames on 'can0' socket (total drops 34)`.
fn dropped(line: &str) -> Option<u64> {
    line.strip_prefix("DROPCOUNT: dropped ")?.split(' ').next()?.parse().ok()
}

/// Whether a line that does not begin with a stamp has the end of one, an interface and a frame all the same.
fn has_frame(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    words.next().is_some_and(|stamp| stamp.ends_with(')'))
        && words.nth(1).is_some_and(|frame| frame.contains('#'))
}

/// Whether a comment has a line of a log in it: somebody's remark about a frame, or a line break is damaged.
fn has_line(comment: &str) -> bool {
    let starts = memchr::memchr_iter(b'(', comment.as_bytes());
    starts.take(LINES_TRIED_MAX).any(|at| matches!(LogLine::parse(&comment[at..]), Ok(Some(_))))
}

/// How many opening parentheses of a comment are looked at: of a long line the time would grow with its square.
const LINES_TRIED_MAX: usize = 16;

/// Whether a line has a CAN XL frame, whose identifier is `VVPPP#` and next field `FF:`.
fn is_xl(line: &str) -> bool {
    let frame = line.split_ascii_whitespace().nth(2).unwrap_or_default().as_bytes();
    frame.get(5) == Some(&b'#') && frame.get(8) == Some(&b':')
}

/// Reads a common line like `LogLine`, in a fraction of its time; `None`: `LogLine` has to read the line.
#[inline]
fn quick(line: &[u8]) -> Option<(u64, &str, Frame, Option<Direction>)> {
    let mut cursor = Cursor { rest: line };
    cursor.take(b"(")?;
    let (stamp_ns, places) = cursor.decimal_ns(9)?;
    cursor.take(b") ")?;
    if !matches!(places, 6 | 9) {
        return None;
    }
    let mut rest = cursor.rest;
    // candump pads names to the width of the longest.
    while let [b' ', more @ ..] = rest {
        rest = more;
    }
    let name = rest.iter().take(16).position(|&byte| byte == b' ')?;
    let (interface, frame) = (std::str::from_utf8(&rest[..name]).ok()?, &rest[name + 1..]);
    if interface.is_empty() || !interface.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let (frame, direction) = match frame {
        [frame @ .., b' ', b'R'] => (frame, Some(Direction::Received)),
        [frame @ .., b' ', b'T'] => (frame, Some(Direction::Sent)),
        frame => (frame, None),
    };
    Some((stamp_ns, interface, parse_frame(frame).ok()?, direction))
}

impl Decode for CandumpLog {
    fn next(
        &mut self,
        source: &mut Source,
        context: &mut Context,
        entry: &mut Record,
    ) -> Result<bool, Trouble> {
        loop {
            // A last line without line break may be the beginning of a longer frame, so it is not read.
            let Some(length) = source.whole_line(&mut self.line)? else { return Ok(false) };
            if let Some((stamp_ns, interface, frame, direction)) = quick(&source.buffered()[..length]) {
                let bus = context.names.number(interface)?;
                *entry = Record { stamp_ns, bus, frame, direction };
                source.consume(length + 1);
                return Ok(true);
            }
            let Ok(line) = std::str::from_utf8(&source.buffered()[..length]) else {
                return wrong("is not text (a damaged file? the lines before it can be kept with head -n)");
            };
            let found = match LogLine::parse(line) {
                Ok(Some(line)) => {
                    entry.bus = context.names.number(line.interface)?;
                    (entry.stamp_ns, entry.frame, entry.direction) =
                        (line.stamp_ns, line.frame, line.direction);
                    true
                }
                Ok(None) => {
                    match dropped(line) {
                        Some(count) => context.lost = context.lost.saturating_add(count),
                        None if line.trim_ascii().is_empty() => {}
                        None if has_frame(line) => {
                            return wrong("a frame without a stamp (delete the line to read the rest)");
                        }
                        None if has_line(line) => context.skipped.count("comments with a frame in them"),
                        None => context.skipped.count("comments"),
                    }
                    false
                }
                Err(_) if is_xl(line) => {
                    context.skipped.count("CAN XL frames");
                    false
                }
                Err(error) => return wrong(format!("{error} (delete the line to read the rest)")),
            };
            source.consume(length + 1);
            if found {
                return Ok(true);
            }
        }
    }

    fn place(&self, _source: &Source) -> String {
        format!("line {}", self.line)
    }

    fn resume(&mut self, source: &mut Source) -> io::Result<bool> {
        source.skip_line().map(|()| true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by_log_line(line: &str) -> Option<(u64, &str, Frame, Option<Direction>)> {
        let line = LogLine::parse(line).ok()??;
        Some((line.stamp_ns, line.interface, line.frame, line.direction))
    }

    proptest! {
        #[test]
        fn quick_reads_the_same_as_log_line_or_nothing(
            line in "\\([0-9]{1,12}\\.[0-9]{5,10}\\) {1,3}[a-z0-9_.]{0,17} [0-9A-F]{3}(#|##1|#R)([0-9A-F]{2}){0,9}( [RTX])?",
        ) {
            if let Some(found) = quick(line.as_bytes()) {
                prop_assert_eq!(Some(found), by_log_line(&line));
            }
        }

        #[test]
        fn quick_reads_every_line_that_candump_writes(stamp_ns in 0..4_000_000_000_000_000_000u64, data: [u8; 8], ns: bool) {
            let frame = Frame::classic(canter_frame::Identifier::Sff(0x123), &data).unwrap();
            let line = LogLine { stamp_ns, interface: "can0", frame, direction: None };
            let text = if ns { format!("{line:.9}") } else { line.to_string() };
            prop_assert!(quick(text.as_bytes()).is_some(), "{text}");
            prop_assert_eq!(quick(text.as_bytes()), by_log_line(&text));
        }
    }
}
