//! Tables of frames by other programs: python-can's CSV, and what SavvyCAN saves as GVRET CSV.

use crate::{
    channels::BusOfChannel,
    fields::{Fields, error_frame, fd_length},
    format::{Context, Format},
    lines::{Lines, ReadLine, bad, decimal_ns, hex_bytes},
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

/// Reads data of base64, as RFC 4648 has it; how many bytes.
fn base64(text: &str, data: &mut [u8; 64]) -> Option<usize> {
    let text = text.trim_end_matches('=');
    let (mut bits, mut held, mut count) = (0u32, 0, 0);
    for letter in text.bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            *data.get_mut(count)? = (bits >> held) as u8;
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
    let id = u32::from_str_radix(text.trim_start_matches("0x"), 16).ok().filter(|&id| id <= EFF_MASK);
    id.ok_or_else(|| bad("an identifier that is no hex number of 29 bits"))
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
            return Ok(false);
        }
        let [stamp, id, extended, remote, error, dlc, data] = line.split(',').collect::<Vec<_>>()[..] else {
            return Err(bad("not the 7 columns that the header has"));
        };
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
            self.has_direction = Some(line.contains(",Dir,"));
            return Ok(false);
        };
        let mut words = line.split(',');
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
        let extended = match extended.to_ascii_lowercase().as_str() {
            "true" | "1" => true,
            "false" | "0" => false,
            _ => return Err(bad("a column Extended that is not true or false")),
        };
        let length = length
            .parse::<usize>()
            .ok()
            .filter(|&length| length <= 64)
            .ok_or_else(|| bad("no length of 0…64"))?;
        let mut data = [0; 64];
        let count = hex_bytes(words.by_ref().take(length).map(str::trim), &mut data);
        if count != Some(length) {
            return Err(bad("not as many data bytes as its length"));
        }
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
