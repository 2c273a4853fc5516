//! Tables of frames by other programs: python-can's CSV, and what SavvyCAN saves as GVRET CSV.

use crate::{
    channels::BusOfChannel,
    cursor::Cursor,
    fields::{Fields, error_frame, fd_length},
    format::{Context, Format},
    lines::{
        Lines, ReadLine, bad, decimal, decimal_ns, hex_bytes, hex_number, separated_hex_bytes, text, trimmed,
        without_byte_order_marks,
    },
    trouble::Trouble,
};
use canter_frame::{
    Direction, Frame, Record,
    frame::{EFF_FLAG, EFF_MASK, SFF_MASK, dlc_of_len},
};

/// The row of python-can's CSV.
pub(crate) const PYTHON_CAN: Format = Format {
    name: "python-can-csv",
    title: "python-can's CSV",
    about: "What python-can's CSVWriter writes",
    recognise: Some(|head| begins(head, PYTHON_CAN_HEAD)),
    read: Some(|_| Box::new(Lines::new(PythonCan::default()))),
    ..Format::PLAIN
};

/// The row of GVRET CSV.
pub(crate) const GVRET: Format = Format {
    name: "gvret",
    title: "GVRET CSV",
    about: "What SavvyCAN saves as GVRET CSV",
    recognise: Some(|head| begins(head, GVRET_HEAD)),
    read: Some(|_| Box::new(Lines::new(Gvret::default()))),
    ..Format::PLAIN
};

const PYTHON_CAN_HEAD: &str = "timestamp,arbitration_id,extended,remote,error,dlc,data";
const GVRET_HEAD: &str = "Time Stamp,ID,Extended,";

fn begins(head: &[u8], line: &str) -> bool {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).starts_with(line.as_bytes())
}

/// Whether these are GVRET's columns behind the direction: `Bus,LEN,D1,D2…`, of which writers have 8 or 64.
fn is_tail_of_head(columns: &str) -> bool {
    let Some(bytes) = columns.strip_prefix("Bus,LEN") else { return false };
    let named = bytes.split(',').skip(1).filter(|name| !name.trim().is_empty());
    bytes.is_empty()
        || bytes.starts_with(',')
            && named.enumerate().all(|(at, name)| name.strip_prefix('D') == Some(&(at + 1).to_string()))
}

/// The value of each letter of base64 (RFC 4648); others have a bit above [`BASE64_MAX`].
const BASE64: [u8; 256] = base64_values();
const BASE64_MAX: u8 = 63;

const fn base64_values() -> [u8; 256] {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut values = [0xFF; 256];
    let mut value = 0;
    while value < letters.len() {
        values[letters[value] as usize] = value as u8;
        value += 1;
    }
    values
}

/// The bytes of up to four letters, in the upper ones of three; `None`: one is no letter of base64.
#[inline]
fn three_bytes(letters: &[u8]) -> Option<[u8; 3]> {
    let (mut bits, mut all) = (0u32, 0);
    for &letter in letters {
        let value = BASE64[usize::from(letter)];
        bits = bits << 6 | u32::from(value);
        all |= value;
    }
    let [_, bytes @ ..] = (bits << (6 * (4 - letters.len()))).to_be_bytes();
    (all <= BASE64_MAX).then_some(bytes)
}

/// Reads data of base64, as RFC 4648 has it; how many bytes.
#[inline]
fn base64(text: &[u8], data: &mut [u8; 64]) -> Option<usize> {
    let mut letters = text;
    while let [before @ .., b'='] = letters {
        letters = before;
    }
    let (fours, rest) = letters.as_chunks::<4>();
    // Four letters are three bytes, three are two, two are one.
    let (whole, behind) = data.split_at_mut_checked(3 * fours.len())?;
    for (bytes, four) in whole.as_chunks_mut().0.iter_mut().zip(fours) {
        *bytes = three_bytes(four)?;
    }
    let count = rest.len().saturating_sub(1);
    behind.get_mut(..count)?.copy_from_slice(&three_bytes(rest)?[..count]);
    Some(whole.len() + count)
}

/// A data frame of `count` bytes: FD where a classic frame has no room.
fn data_frame(id: u32, extended: bool, data: &[u8; 64], count: usize) -> Result<Frame, Trouble> {
    let fd = count > 8;
    let length = if fd { fd_length(count) } else { count as u8 };
    let dlc = dlc_of_len(length.into()).unwrap_or(0);
    let extended = extended || id > SFF_MASK;
    let fields =
        Fields { id, extended, rtr: false, fd, brs: false, esi: false, error: false, dlc, len: length };
    fields.frame(&data[..length.into()]).map_err(bad)
}

fn identifier(text: &[u8]) -> Result<u32, Trouble> {
    let id = hex_number(text.strip_prefix(b"0x").unwrap_or(text)).filter(|&id| id <= EFF_MASK);
    id.ok_or_else(|| bad("an identifier that is no hex number of 29 bits"))
}

/// The columns of a line that has `COUNT` of them.
fn columns<const COUNT: usize>(line: &[u8]) -> Option<[&[u8]; COUNT]> {
    let mut columns = [&[][..]; COUNT];
    let (mut column, mut begin) = (0, 0);
    for at in memchr::memchr_iter(b',', line) {
        *columns.get_mut(column)? = &line[begin..at];
        (column, begin) = (column + 1, at + 1);
    }
    *columns.get_mut(column)? = &line[begin..];
    (column + 1 == COUNT).then_some(columns)
}

/// A second has 10^9 ns.
const SECOND: usize = 9;

/// The ns of seconds with an exponent, as Python writes small and large floats.
fn float_ns(text: &[u8]) -> Option<u64> {
    let seconds = str::from_utf8(text).ok()?.parse::<f64>().ok()?;
    (0.0..1.8e10).contains(&seconds).then(|| (seconds * 1e9).round() as u64)
}

/// The reader of python-can's CSV, which has no bus and no direction.
#[derive(Default)]
struct PythonCan {
    channels: BusOfChannel,
    /// The line of column names has passed.
    begun: bool,
}

impl ReadLine for PythonCan {
    /// Reads `1700000000.002114,0x3e5,0,0,0,8,CVddcv7UVsA=`: a classic data frame.
    #[inline]
    fn quick(&mut self, line: &[u8], context: &mut Context, entry: &mut Record) -> Option<()> {
        let mut cursor = Cursor { rest: line };
        let (stamp_ns, _) = cursor.decimal_ns(SECOND)?;
        cursor.take(b",0x")?;
        let (id, _) = cursor.hex()?;
        let [
            b',',
            extended @ (b'0' | b'1'),
            b',',
            b'0',
            b',',
            b'0',
            b',',
            len @ b'0'..=b'8',
            b',',
            data @ ..,
        ] = cursor.rest
        else {
            return None;
        };
        let len = len - b'0';
        entry.frame = Frame::default();
        if base64(data, &mut entry.frame.data)? != usize::from(len) || id > EFF_MASK || !self.begun {
            return None;
        }
        let is_extended = *extended == b'1' || id > SFF_MASK;
        (entry.frame.can_id, entry.frame.len) = (if is_extended { id | EFF_FLAG } else { id }, len);
        (entry.stamp_ns, entry.direction) = (stamp_ns, None);
        entry.bus = self.channels.number(1, &mut context.names).ok()?;
        Some(())
    }

    fn read(&mut self, line: &[u8], context: &mut Context, entry: &mut Record) -> Result<bool, Trouble> {
        if !std::mem::replace(&mut self.begun, true) {
            let is_head = without_byte_order_marks(line) == PYTHON_CAN_HEAD.as_bytes();
            return if is_head { Ok(false) } else { Err(bad("other columns than python-can's")) };
        }
        let [stamp, id, extended, remote, error, dlc, data] =
            columns(line).ok_or_else(|| bad("not the 7 columns that the header has"))?;
        let stamp_ns = decimal_ns(stamp, SECOND)
            .or_else(|| float_ns(stamp))
            .ok_or_else(|| bad("no stamp of seconds"))?;
        let flag = |text: &[u8]| match text {
            b"0" => Ok(false),
            b"1" => Ok(true),
            _ => Err(bad("a flag that is not 0 or 1")),
        };
        let (extended, remote, error) = (flag(extended)?, flag(remote)?, flag(error)?);
        let mut bytes = [0; 64];
        let count = base64(trimmed(data), &mut bytes).ok_or_else(|| bad("data that is not base64"))?;
        let frame = if error {
            error_frame()
        } else if remote {
            let dlc = decimal(dlc).filter(|dlc| *dlc <= 8).ok_or_else(|| bad("no DLC of 0…8"))?;
            let (id, len) = (identifier(id)?, 0);
            Fields { id, extended, rtr: true, fd: false, brs: false, esi: false, error, dlc, len }
                .frame(&[])
                .map_err(bad)?
        } else if decimal(dlc) == Some(count) {
            data_frame(identifier(id)?, extended, &bytes, count)?
        } else {
            return Err(bad("a DLC that is not the number of data bytes"));
        };
        let bus = self.channels.number(1, &mut context.names)?;
        *entry = Record { stamp_ns, bus, frame, direction: None };
        Ok(true)
    }
}

/// Reads the columns of data, of which those behind the `length` first ones are empty.
fn gvret_data(columns: &[u8], length: usize, data: &mut [u8; 64]) -> Result<(), Trouble> {
    let (bytes, behind) = columns.split_at_checked((3 * length).saturating_sub(1)).unwrap_or((columns, b""));
    let is_plain =
        behind.iter().all(|&byte| byte == b',') && separated_hex_bytes(bytes, b',', data) == Some(length);
    if is_plain {
        return Ok(());
    }
    let mut words = columns.split(|&byte| byte == b',').map(trimmed);
    if hex_bytes(words.by_ref().take(length), data) != Some(length) {
        return Err(bad("not as many data bytes as its length"));
    }
    match words.all(<[u8]>::is_empty) {
        true => Ok(()),
        false => Err(bad("more data bytes than its length")),
    }
}

/// The reader of GVRET CSV.
#[derive(Default)]
struct Gvret {
    channels: BusOfChannel,
    /// Whether the line of column names has passed, and whether it has the direction.
    has_direction: Option<bool>,
}

impl Gvret {
    /// Reads the line of column names.
    fn head(&mut self, line: &[u8]) -> Result<bool, Trouble> {
        let line = text(line);
        let columns = line.trim_start_matches('\u{feff}').strip_prefix(GVRET_HEAD).unwrap_or(&line);
        let behind_direction = columns.strip_prefix("Dir,");
        self.has_direction = Some(behind_direction.is_some());
        match is_tail_of_head(behind_direction.unwrap_or(columns)) {
            true => Ok(false),
            false => Err(bad("other columns than SavvyCAN's")),
        }
    }
}

impl ReadLine for Gvret {
    fn read(&mut self, line: &[u8], context: &mut Context, entry: &mut Record) -> Result<bool, Trouble> {
        let Some(has_direction) = self.has_direction else { return self.head(line) };
        let columns_before_data = if has_direction { 6 } else { 5 };
        let mut words = line.splitn(columns_before_data + 1, |&byte| byte == b',');
        let mut word =
            || words.next().map(trimmed).ok_or_else(|| bad("not as many columns as the header has"));
        let (stamp, id, extended) = (word()?, word()?, word()?);
        let direction = match has_direction {
            false => None,
            true => match word()? {
                b"Rx" => Some(Direction::Received),
                b"Tx" => Some(Direction::Sent),
                _ => return Err(bad("a direction that is not Rx or Tx")),
            },
        };
        let (bus, length) = (word()?, word()?);
        let stamp_ns = decimal_ns(stamp, 3).ok_or_else(|| bad("no stamp in µs"))?;
        let extended = match extended {
            b"1" => true,
            b"0" => false,
            _ if extended.eq_ignore_ascii_case(b"true") => true,
            _ if extended.eq_ignore_ascii_case(b"false") => false,
            _ => return Err(bad("a column Extended that is not true or false")),
        };
        let length = decimal::<usize>(length)
            .filter(|&length| length <= 64)
            .ok_or_else(|| bad("no length of 0…64"))?;
        let mut data = [0; 64];
        gvret_data(words.next().unwrap_or_default(), length, &mut data)?;
        let frame = data_frame(identifier(id)?, extended, &data, length)?;
        let channel =
            decimal::<u32>(bus).and_then(|bus| bus.checked_add(1)).ok_or_else(|| bad("no bus number"))?;
        let bus = self.channels.number(channel, &mut context.names)?;
        *entry = Record { stamp_ns, bus, frame, direction };
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::tests::{any_changes, check_quick};
    use proptest::prelude::*;

    fn begun(_context: &mut Context) -> PythonCan {
        PythonCan { begun: true, ..PythonCan::default() }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn quick_reads_the_same_as_read_or_nothing(
            line in concat!(
                "[0-9]{1,11}\\.[0-9]{1,10},0x[0-9a-f]{1,8},[01],[01]{0,1}0?,0,[0-9],",
                "([A-Za-z0-9+/]{4}){0,3}([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?",
            ),
            changes in any_changes(),
        ) {
            check_quick(begun, &line, &changes);
        }

        #[test]
        fn quick_reads_every_classic_data_frame_and_a_changed_one_as_read(
            stamp_us in 0..4_000_000_000_000_000u64, id in 0..0x2000_0000u32, extended in 0..2, length in 0..9usize,
            changes in any_changes(),
        ) {
            let data = ["", "KA==", "KKA=", "KKBJ", "KKBJkQ==", "KKBJkeA=", "KKBJkeAq", "KKBJkeAqvQ==", "KKBJkeAqvXc="];
            let data = data[length];
            let stamp = format!("{}.{:06}", stamp_us / 1_000_000, stamp_us % 1_000_000);
            let line = format!("{stamp},{id:#x},{extended},0,0,{length},{data}");
            prop_assert!(check_quick(begun, &line, &[]), "{line}");
            check_quick(begun, &line, &changes);
        }
    }

    #[test]
    fn a_frame_in_place_of_the_head_is_no_frame() {
        assert!(check_quick(begun, "1.5,0x1,0,0,0,1,KA==", &[]));
        assert!(!check_quick(|_| PythonCan::default(), "1.5,0x1,0,0,0,1,KA==", &[]));
    }

    #[test]
    fn a_line_has_exactly_as_many_columns_as_are_asked_for() {
        assert_eq!(columns(b"a,,\xe9"), Some([&b"a"[..], b"", b"\xe9"]));
        assert_eq!(columns(b""), Some([&b""[..]]));
        assert_eq!(columns::<2>(b"a"), None);
        assert_eq!(columns::<2>(b"a,b,c"), None);
    }

    #[test]
    fn base64_is_read_as_python_writes_it() {
        let read = |text: &str| {
            let mut data = [0; 64];
            base64(text.as_bytes(), &mut data).map(|count| data[..count].to_vec())
        };
        assert_eq!(read("WzQyLCA5XQ=="), Some(b"[42, 9]".to_vec()));
        assert_eq!(read(""), Some(Vec::new()));
        assert_eq!(read("AP+/"), Some(vec![0, 0xFF, 0xBF]));
        assert_eq!(read("A-"), None);
        assert_eq!(read(&"A".repeat(100)), None);
    }
}
