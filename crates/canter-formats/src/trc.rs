//! PEAK's trace files (PCAN-View, PCAN-Explorer, PEAK-Converter), versions 1.0 to 2.1: text with comments in front, one line
//! per frame. Stamps count in ms from a date that names no time zone. The facts are those of PEAK's description of the
//! format.

use crate::{
    channels::BusOfChannel,
    cursor::Cursor,
    fields::{Fields, error_frame, fd_length},
    format::{Context, Format},
    lines::{
        Lines, ReadLine, Words, bad, decimal, decimal_ns, hex_number, separated_hex_bytes, spaced_hex_bytes,
        text, without_byte_order_marks,
    },
    trouble::Trouble,
};
use canter_frame::{
    Direction, Frame, Record,
    frame::{EFF_FLAG, EFF_MASK, SFF_MASK, dlc_of_len, len_of_dlc},
};
use jiff::civil;

/// The row of this format.
pub(crate) const ROW: Format = Format {
    name: "trc",
    title: "TRC",
    about: "PEAK's trace files, versions 1.0 to 2.1",
    extensions: &["trc"],
    recognise: Some(looks_like),
    read: Some(|_| Box::new(Lines::new(Trc::default()))),
    ..Format::PLAIN
};

/// ms are 10^6 ns.
const MS: usize = 6;
const NS_OF_DAY: i128 = 86_400_000_000_000;

fn looks_like(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    head.starts_with(b";$FILEVERSION=")
        || head.starts_with(b";###") && head.windows(9).any(|text| text == b"PCAN-Net:")
        || head.starts_with(b";###") && head.windows(11).any(|text| text == b"Start time:")
}

/// A column of a line, by PEAK's letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    /// `N`: the number, which nothing depends on.
    Number,
    /// `O`: ms since the beginning.
    Offset,
    /// `T`, or the word before version 2: what the line is.
    Type,
    /// `B`.
    Bus,
    /// `I`.
    Identifier,
    /// `d`.
    Direction,
    /// `R`, and what later versions add.
    Other,
    /// `l`.
    Length,
    /// `L`.
    Dlc,
    /// `D`: the rest of the line.
    Data,
}

use Column as C;

/// Columns before version 2, which does not list them.
const V1_0: &[Column] = &[C::Number, C::Offset, C::Identifier, C::Dlc, C::Data];
const V1_1: &[Column] = &[C::Number, C::Offset, C::Type, C::Identifier, C::Dlc, C::Data];
const V1_2: &[Column] = &[C::Number, C::Offset, C::Bus, C::Type, C::Identifier, C::Dlc, C::Data];
const V1_3: &[Column] = &[C::Number, C::Offset, C::Bus, C::Type, C::Identifier, C::Other, C::Dlc, C::Data];

struct Trc {
    columns: Vec<Column>,
    start: Start,
    channels: BusOfChannel,
}

/// When the trace begins.
#[derive(Default)]
struct Start {
    date: Option<civil::DateTime>,
    /// `$STARTTIME`, which is more exact than the date in the comment.
    is_exact: bool,
    /// ns since 1970, once a frame needed them.
    ns: Option<u64>,
}

impl Default for Trc {
    fn default() -> Self {
        Self { columns: V1_0.to_vec(), start: Start::default(), channels: BusOfChannel::default() }
    }
}

/// Days since the end of 1899, as spreadsheets count: `44548.6028595139`.
fn date_of_days(text: &str) -> Option<civil::DateTime> {
    let (days, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = fraction.get(..fraction.len().min(18))?;
    let ns = digits.parse::<i128>().ok()? * NS_OF_DAY / 10i128.pow(digits.len() as u32);
    let ns = days.parse::<i128>().ok()?.checked_mul(NS_OF_DAY)?.checked_add(ns)?;
    let span = jiff::SignedDuration::from_nanos(i64::try_from(ns).ok()?);
    civil::date(1899, 12, 30).at(0, 0, 0, 0).checked_add(span).ok()
}

/// The date of `Start time: 18.12.2021 14:28:07.062.1`; the digits of ms and µs stand behind points of their own.
fn date_of_comment(text: &str) -> Option<civil::DateTime> {
    let (date, time) = text.trim().split_once(' ')?;
    let mut date = date.split('.').map(|part| part.parse::<i16>().ok());
    let (day, month, year) = (date.next()??, date.next()??, date.next()??);
    let mut parts = time.trim().split([':', '.']);
    let mut number = || parts.next().and_then(|part| part.parse::<i8>().ok());
    let (hour, minute, second) = (number()?, number()?, number()?);
    let fraction: String = parts.collect();
    let ns = decimal_ns(format!("0.{fraction}0").as_bytes(), 9)?;
    civil::DateTime::new(year, month.try_into().ok()?, day.try_into().ok()?, hour, minute, second, ns as i32)
        .ok()
}

impl Start {
    fn ns(&mut self, context: &mut Context) -> u64 {
        if let Some(ns) = self.ns {
            return ns;
        }
        let ns = self.date.and_then(|date| context.zone.ns(date)).and_then(|ns| u64::try_from(ns).ok());
        context.zone_used |= ns.is_some();
        *self.ns.insert(ns.unwrap_or(0))
    }
}

/// What a line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kind {
    rtr: bool,
    fd: bool,
    brs: bool,
    esi: bool,
    direction: Option<Direction>,
}

/// The kind of a line's type; an error is what else it is.
fn kind(word: &[u8]) -> Result<Kind, &'static str> {
    let plain = Kind::default();
    Ok(match word {
        b"DT" => plain,
        b"Rx" => Kind { direction: Some(Direction::Received), ..plain },
        b"Tx" => Kind { direction: Some(Direction::Sent), ..plain },
        b"RR" => Kind { rtr: true, ..plain },
        b"FD" => Kind { fd: true, ..plain },
        b"FB" => Kind { fd: true, brs: true, ..plain },
        b"FE" => Kind { fd: true, brs: true, esi: true, ..plain },
        b"BI" => Kind { fd: true, esi: true, ..plain },
        b"ST" | b"Warng" => return Err("status messages"),
        b"EC" => return Err("error counters"),
        b"EV" | b"Event" => return Err("events"),
        _ => return Err("lines of other types"),
    })
}

impl Trc {
    fn comment(&mut self, text: &str) -> Result<(), Trouble> {
        if let Some(version) = text.strip_prefix("$FILEVERSION=") {
            match version.trim() {
                "1.0" => self.columns = V1_0.to_vec(),
                "1.1" => self.columns = V1_1.to_vec(),
                "1.2" => self.columns = V1_2.to_vec(),
                "1.3" => self.columns = V1_3.to_vec(),
                version if version.starts_with("2.") => self.columns.clear(),
                version => return Err(Trouble::Wrong(format!("is TRC {version}, not 1.0…1.3 or 2.x"))),
            }
        } else if let Some(columns) = text.strip_prefix("$COLUMNS=") {
            let column = |letter: &str| match letter {
                "N" => C::Number,
                "O" => C::Offset,
                "T" => C::Type,
                "B" => C::Bus,
                "I" => C::Identifier,
                "d" => C::Direction,
                "l" => C::Length,
                "L" => C::Dlc,
                "D" => C::Data,
                _ => C::Other,
            };
            self.columns = columns.trim().split(',').map(column).collect();
        } else if let Some(days) = text.strip_prefix("$STARTTIME=") {
            let days = days.trim().replace(',', ".");
            let date =
                date_of_days(&days).ok_or_else(|| Trouble::Wrong("$STARTTIME is no date".to_owned()))?;
            (self.start.date, self.start.is_exact) = (Some(date), true);
        } else if let Some(date) = text.trim().strip_prefix("Start time:").filter(|_| !self.start.is_exact) {
            // Older writers use the order of the country's own dates; what does not read is left alone.
            self.start.date = date_of_comment(date);
        }
        Ok(())
    }

    fn frame(&mut self, line: &[u8], context: &mut Context, entry: &mut Record) -> Result<bool, Trouble> {
        if self.columns.is_empty() {
            return Err(Trouble::Wrong("has no line $COLUMNS before its frames".to_owned()));
        }
        let mut words = Words { rest: line };
        let (mut offset_ns, mut kind_of_line, mut id, mut length, mut dlc) = (None, None, None, None, None);
        let (mut channel, mut direction) = (1, None);
        for column in &self.columns {
            if *column == C::Data {
                break;
            }
            // A status has no identifier: the columns behind its type are others.
            if kind_of_line.is_some_and(|found: Result<Kind, _>| found.is_err()) {
                break;
            }
            let Some(word) = words.next() else { return Err(bad("not as many columns as the header has")) };
            match column {
                C::Number | C::Other | C::Data => {}
                C::Offset => offset_ns = decimal_ns(word, MS),
                C::Type if matches!(word, b"ER" | b"Error") => {
                    let ns = offset_ns.ok_or_else(|| bad("no time in ms"))?;
                    single_line(words)?;
                    return self.entry(ns, channel, error_frame(), None, context, entry);
                }
                C::Type => kind_of_line = Some(kind(word)),
                C::Bus => channel = decimal(word).ok_or_else(|| bad("no bus number"))?,
                C::Identifier => id = Some(word),
                C::Direction => {
                    direction = match word {
                        b"Rx" => Some(Direction::Received),
                        b"Tx" => Some(Direction::Sent),
                        _ => return Err(bad("a direction that is not Rx or Tx")),
                    }
                }
                C::Length => length = decimal::<u8>(word),
                C::Dlc => dlc = decimal::<u8>(word),
            }
        }
        let mut kind = match kind_of_line {
            Some(Err(what)) => {
                single_line(words)?;
                context.skipped.count(what);
                return Ok(false);
            }
            Some(Ok(kind)) => kind,
            None => Kind::default(),
        };
        let id = id.ok_or_else(|| bad("no identifier"))?;
        if id == b"FFFFFFFF" {
            context.skipped.count("status messages");
            return Ok(false);
        }
        if words.clone().next() == Some(b"RTR".as_slice()) {
            (kind.rtr, _) = (true, words.next());
        }
        let mut data = [0; 64];
        let count = spaced_hex_bytes(words.rest, &mut data).ok_or_else(|| bad("data that is not hex"))?;
        let number = hex_number(id).filter(|&number| number <= EFF_MASK);
        let number = number.ok_or_else(|| bad("an identifier that is no hex number of 29 bits"))?;
        let (length, dlc) = lengths(kind, length, dlc).ok_or_else(|| bad("no length"))?;
        let fields = Fields {
            id: number,
            extended: id.len() > 4 || number > SFF_MASK,
            rtr: kind.rtr,
            fd: kind.fd,
            brs: kind.brs,
            esi: kind.esi,
            error: false,
            dlc,
            len: if kind.rtr { 0 } else { length },
        };
        let frame = fields.frame(&data[..count]).map_err(bad)?;
        let offset_ns = offset_ns.ok_or_else(|| bad("no time in ms"))?;
        self.entry(offset_ns, channel, frame, direction.or(kind.direction), context, entry)
    }

    fn entry(
        &mut self,
        offset_ns: u64,
        channel: u32,
        frame: Frame,
        direction: Option<Direction>,
        context: &mut Context,
        entry: &mut Record,
    ) -> Result<bool, Trouble> {
        let stamp_ns = self.start.ns(context).saturating_add(offset_ns);
        let bus = self.channels.number(channel, &mut context.names)?;
        *entry = Record { stamp_ns, bus, frame, direction };
        Ok(true)
    }
}

/// Checks that only columns of a status follow its type. They differ between versions, and none is a time: that is the next
/// line's, when the break between both is damaged.
fn single_line<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Result<(), Trouble> {
    if words.any(|word| word.contains(&b'.')) { Err(bad("two lines in one")) } else { Ok(()) }
}

/// The length and the DLC, of which a line has one.
fn lengths(kind: Kind, length: Option<u8>, dlc: Option<u8>) -> Option<(u8, u8)> {
    match (kind.fd, length, dlc) {
        (true, _, Some(dlc @ 0..=15)) => Some((len_of_dlc(dlc) as u8, dlc)),
        (true, Some(length), _) => {
            let length = fd_length(length.into());
            Some((length, dlc_of_len(length.into())?))
        }
        (false, _, Some(dlc @ 0..=15)) => Some((dlc.min(8), dlc)),
        (false, Some(length @ 0..=8), _) => Some((length, length)),
        _ => None,
    }
}

fn take_direction(cursor: &mut Cursor) -> Option<Direction> {
    match cursor.take(b"Rx") {
        Some(()) => Some(Direction::Received),
        None => cursor.take(b"Tx").map(|()| Direction::Sent),
    }
}

impl ReadLine for Trc {
    /// Reads a line of a classic data frame: numbers between spaces, one or more behind each.
    #[inline]
    fn quick(&mut self, line: &[u8], context: &mut Context, entry: &mut Record) -> Option<()> {
        let mut cursor = Cursor { rest: line };
        let (mut offset_ns, mut id, mut length, mut dlc) = (None, None, None, None);
        let (mut channel, mut direction) = (1, None);
        cursor.spaces();
        if !cursor.rest.first()?.is_ascii_digit() {
            return None;
        }
        for column in &self.columns {
            match column {
                C::Data => break,
                C::Number | C::Other => cursor.word()?,
                C::Offset => offset_ns = Some(cursor.decimal_ns(MS)?.0),
                C::Type if cursor.take(b"DT").is_some() => {}
                C::Type => direction = direction.or(Some(take_direction(&mut cursor)?)),
                C::Bus => channel = cursor.digit()?.into(),
                C::Identifier => id = Some(cursor.hex()?),
                C::Direction => direction = Some(take_direction(&mut cursor)?),
                C::Length => length = Some(cursor.digit()?),
                C::Dlc => dlc = Some(cursor.digit()?),
            }
            cursor.take(b" ")?;
            cursor.spaces();
        }
        let ((id, digits), len) = (id?, dlc.or(length)?);
        entry.frame = Frame::default();
        let count = separated_hex_bytes(cursor.rest, b' ', &mut entry.frame.data)?;
        if count != usize::from(len) || len > 8 || id > EFF_MASK {
            return None;
        }
        let is_extended = digits > 4 || id > SFF_MASK;
        (entry.frame.can_id, entry.frame.len) = (if is_extended { id | EFF_FLAG } else { id }, len);
        (entry.stamp_ns, entry.direction) = (self.start.ns(context).saturating_add(offset_ns?), direction);
        entry.bus = self.channels.number(channel, &mut context.names).ok()?;
        Some(())
    }

    fn read(&mut self, line: &[u8], context: &mut Context, entry: &mut Record) -> Result<bool, Trouble> {
        match without_byte_order_marks(line).strip_prefix(b";") {
            Some(comment) => self.comment(&text(comment)).map(|()| false),
            None => self.frame(line, context, entry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::tests::{any_changes, check_quick};
    use proptest::prelude::*;

    /// A reader behind these lines.
    fn reader<'a>(head: &'a [&str]) -> impl Fn(&mut Context) -> Trc + 'a {
        move |context| {
            let mut reader = Trc::default();
            for line in head {
                reader.read(line.as_bytes(), context, &mut Record::default()).unwrap();
            }
            reader
        }
    }

    const V2_1: &[&str] =
        &[";$FILEVERSION=2.1", ";$STARTTIME=44548.6028595139", ";$COLUMNS=N,O,T,B,I,d,R,L,D"];
    const LINE: &str = "      1     17535.400 DT 1  00000100 Tx -  2    00 01";
    const V1_1: &[&str] = &[";$FILEVERSION=1.1"];

    #[test]
    fn a_blank_that_is_no_space_is_one_all_the_same() {
        for blank in ["\r", "\t", "\x0c", "\x0b"] {
            for (at, _) in LINE.char_indices() {
                check_quick(reader(V2_1), &format!("{}{blank}{}", &LINE[..at], &LINE[at + 1..]), &[]);
            }
        }
        assert!(check_quick(reader(V2_1), LINE, &[]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn quick_reads_the_same_as_read_or_nothing(
            line in concat!(
                " {0,3}[0-9]{1,3}\\)? {1,3}[0-9]{1,9}\\.[0-9]{1,7} {1,2}(DT|DT|FD|RR|Tx) [0-9]{1,2} ",
                "{1,2}[0-9A-F]{3,8} (Rx|Tx) -  [0-9]( [0-9A-F]{2}){0,9} ?",
            ),
            old in concat!(
                " {0,3}[0-9]{1,3}\\) {1,3}[0-9]{1,9}\\.[0-9]{1,7} {1,2}(Rx|Tx|Warng) ",
                "{1,2}[0-9A-F]{3,8}  [0-9]( [0-9A-F]{2}){0,9}",
            ),
            changes in any_changes(),
        ) {
            check_quick(reader(V2_1), &line, &changes);
            check_quick(reader(V1_1), &old, &changes);
        }

        #[test]
        fn quick_reads_every_classic_data_frame_with_data_and_a_changed_one_as_read(
            number in 1..9_999_999, offset_us in 0..100_000_000_000u64, id in 0..0x2000_0000u32,
            data in prop::collection::vec(any::<u8>(), 1..9), changes in any_changes(),
        ) {
            let (ms, us, length) = (offset_us / 1000, offset_us % 1000, data.len());
            let data: Vec<_> = data.iter().map(|byte| format!("{byte:02X}")).collect();
            let data = data.join(" ");
            let line = format!("{number:7} {ms:9}.{us:03} DT  1 {id:08X} Rx -  {length}    {data}");
            prop_assert!(check_quick(reader(V2_1), &line, &[]), "{line}");
            check_quick(reader(V2_1), &line, &changes);
            let line = format!("{number:6})  {ms:9}.{us:03}  Rx     {:04X}  {length}  {data}", id & 0x7FF);
            prop_assert!(check_quick(reader(V1_1), &line, &[]), "{line}");
            check_quick(reader(V1_1), &line, &changes);
        }
    }
}
