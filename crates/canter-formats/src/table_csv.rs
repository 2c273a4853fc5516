//! Tables of frames by other programs: python-can's CSV, and what SavvyCAN saves as GVRET CSV.

use crate::{
    channels::BusOfChannel,
    fields::{Fields, error_frame, fd_length},
    format::{Context, Format},
    lines::{Lines, ReadLine, bad, decimal_ns, hex_bytes, hex_number, separated_hex_bytes},
    trouble::Trouble,
};
use canter_frame::{
    Direction, Frame, Record,
    frame::{EFF_MASK, SFF_MASK, dlc_of_len},
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

/// Reads data of base64, as RFC 4648 has it; how many bytes.
fn base64(text: &str, data: &mut [u8; 64]) -> Option<usize> {
    let letters = text.trim_end_matches('=').as_bytes();
    let mut count = 0;
    for four in letters.chunks(4) {
        let (mut bits, mut all) = (0u32, 0);
        for &letter in four {
            let value = BASE64[usize::from(letter)];
            bits = bits << 6 | u32::from(value);
            all |= value;
        }
        if all > BASE64_MAX {
            return None;
        }
        // Four letters are three bytes, three are two, two are one.
        let [_, bytes @ ..] = (bits << (6 * (4 - four.len()))).to_be_bytes();
        for byte in &bytes[..four.len() - 1] {
            *data.get_mut(count)? = *byte;
            count += 1;
        }
    }
    Some(count)
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

fn identifier(text: &str) -> Result<u32, Trouble> {
    let id = hex_number(text.strip_prefix("0x").unwrap_or(text)).filter(|&id| id <= EFF_MASK);
    id.ok_or_else(|| bad("an identifier that is no hex number of 29 bits"))
}

/// The columns of a line that has `COUNT` of them.
fn columns<const COUNT: usize>(line: &str) -> Option<[&str; COUNT]> {
    let mut columns = [""; COUNT];
    let (mut column, mut begin) = (0, 0);
    for at in memchr::memchr_iter(b',', line.as_bytes()) {
        *columns.get_mut(column)? = &line[begin..at];
        (column, begin) = (column + 1, at + 1);
    }
    *columns.get_mut(column)? = &line[begin..];
    (column + 1 == COUNT).then_some(columns)
}

/// The reader of python-can's CSV, which has no bus and no direction.
#[derive(Default)]
struct PythonCan {
    channels: BusOfChannel,
    /// The line of column names has passed.
    begun: bool,
}

impl ReadLine for PythonCan {
    fn read(&mut self, line: &str, context: &mut Context, entry: &mut Record) -> Result<bool, Trouble> {
        if !std::mem::replace(&mut self.begun, true) {
            let is_head = line.trim_start_matches('\u{feff}') == PYTHON_CAN_HEAD;
            return if is_head { Ok(false) } else { Err(bad("other columns than python-can's")) };
        }
        let [stamp, id, extended, remote, error, dlc, data] =
            columns(line).ok_or_else(|| bad("not the 7 columns that the header has"))?;
        // Python writes small and large floats with an exponent.
        let float_ns = || {
            stamp
                .parse::<f64>()
                .ok()
                .filter(|&s| (0.0..1.8e10).contains(&s))
                .map(|s| (s * 1e9).round() as u64)
        };
        let stamp_ns =
            decimal_ns(stamp, 1_000_000_000).or_else(float_ns).ok_or_else(|| bad("no stamp of seconds"))?;
        let flag = |text: &str| match text {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(bad("a flag that is not 0 or 1")),
        };
        let (extended, remote, error) = (flag(extended)?, flag(remote)?, flag(error)?);
        let mut bytes = [0; 64];
        let count = base64(data.trim(), &mut bytes).ok_or_else(|| bad("data that is not base64"))?;
        let frame = if error {
            error_frame()
        } else if remote {
            let dlc = dlc.parse().ok().filter(|dlc| *dlc <= 8).ok_or_else(|| bad("no DLC of 0…8"))?;
            let (id, len) = (identifier(id)?, 0);
            Fields { id, extended, rtr: true, fd: false, brs: false, esi: false, error, dlc, len }
                .frame(&[])
                .map_err(bad)?
        } else if dlc.parse() == Ok(count) {
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
fn gvret_data(columns: &str, length: usize, data: &mut [u8; 64]) -> Result<(), Trouble> {
    let (bytes, behind) = columns.split_at_checked((3 * length).saturating_sub(1)).unwrap_or((columns, ""));
    let is_plain =
        behind.bytes().all(|byte| byte == b',') && separated_hex_bytes(bytes, b',', data) == Some(length);
    if is_plain {
        return Ok(());
    }
    let mut words = columns.split(',').map(str::trim);
    if hex_bytes(words.by_ref().take(length), data) != Some(length) {
        return Err(bad("not as many data bytes as its length"));
    }
    match words.all(str::is_empty) {
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

impl ReadLine for Gvret {
    fn read(&mut self, line: &str, context: &mut Context, entry: &mut Record) -> Result<bool, Trouble> {
        let Some(has_direction) = self.has_direction else {
            let columns = line.trim_start_matches('\u{feff}').strip_prefix(GVRET_HEAD).unwrap_or(line);
            let behind_direction = columns.strip_prefix("Dir,");
            self.has_direction = Some(behind_direction.is_some());
            return match is_tail_of_head(behind_direction.unwrap_or(columns)) {
                true => Ok(false),
                false => Err(bad("other columns than SavvyCAN's")),
            };
        };
        let columns_before_data = if has_direction { 6 } else { 5 };
        let mut words = line.splitn(columns_before_data + 1, ',');
        let mut word =
            || words.next().map(str::trim).ok_or_else(|| bad("not as many columns as the header has"));
        let (stamp, id, extended) = (word()?, word()?, word()?);
        let direction = match has_direction {
            false => None,
            true => match word()? {
                "Rx" => Some(Direction::Received),
                "Tx" => Some(Direction::Sent),
                _ => return Err(bad("a direction that is not Rx or Tx")),
            },
        };
        let (bus, length) = (word()?, word()?);
        let stamp_ns = decimal_ns(stamp, 1000).ok_or_else(|| bad("no stamp in µs"))?;
        let extended = match extended {
            "1" => true,
            "0" => false,
            _ if extended.eq_ignore_ascii_case("true") => true,
            _ if extended.eq_ignore_ascii_case("false") => false,
            _ => return Err(bad("a column Extended that is not true or false")),
        };
        let length = length
            .parse::<usize>()
            .ok()
            .filter(|&length| length <= 64)
            .ok_or_else(|| bad("no length of 0…64"))?;
        let mut data = [0; 64];
        gvret_data(words.next().unwrap_or_default(), length, &mut data)?;
        let frame = data_frame(identifier(id)?, extended, &data, length)?;
        let channel =
            bus.parse::<u32>().ok().and_then(|bus| bus.checked_add(1)).ok_or_else(|| bad("no bus number"))?;
        let bus = self.channels.number(channel, &mut context.names)?;
        *entry = Record { stamp_ns, bus, frame, direction };
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_exactly_as_many_columns_as_are_asked_for() {
        assert_eq!(columns("a,,\u{e9}"), Some(["a", "", "\u{e9}"]));
        assert_eq!(columns(""), Some([""]));
        assert_eq!(columns::<2>("a"), None);
        assert_eq!(columns::<2>("a,b,c"), None);
    }

    #[test]
    fn base64_is_read_as_python_writes_it() {
        let read = |text| {
            let mut data = [0; 64];
            base64(text, &mut data).map(|count| data[..count].to_vec())
        };
        assert_eq!(read("WzQyLCA5XQ=="), Some(b"[42, 9]".to_vec()));
        assert_eq!(read(""), Some(Vec::new()));
        assert_eq!(read("AP+/"), Some(vec![0, 0xFF, 0xBF]));
        assert_eq!(read("A-"), None);
        assert_eq!(read(&"A".repeat(100)), None);
    }
}
