//! Which frames a receiver wants: identifier and mask, as the kernel's `struct can_filter`, with candump's notation
//! for them. [`Filters::matches`] decides as the kernel does, for methods that the kernel does not filter for.
//!
//! | text | passes |
//! | --- | --- |
//! | `123:7FF` | frames with `can_id & 7FF == 123 & 7FF` |
//! | `123~7FF` | all others ([`INVERSE`]) |
//! | `123`, `12345678` | the data frames of this identifier, standard (3 digits) or extended (8); candump lacks this |
//! | `12345678:DFFFFFFF` | an identifier of exactly 8 digits is extended: it gets the EFF flag, the mask stays as typed |
//! | `#FFFFFFFF` | also error frames of these classes (linux/can/error.h) |
//! | `j` | only frames that match every filter, not any |
//!
//! A mask without the EFF flag (80000000) compares low bits of either format: `123:7FF` also passes the extended
//! frame `00000123` and the RTR frame `123#R`. `123:C00007FF` passes only the standard data frames. To ask for RTR
//! alone, write the identifier with nine digits, which do not make it extended: `040000123:C00007FF`.

use std::fmt;
use std::str::FromStr;

use crate::frame::Frame;
use crate::frame::{EFF_FLAG, EFF_MASK, ERR_FLAG, RTR_FLAG, SFF_MASK};
use crate::notation::{Expected, TextError, expected, is_interface_name, nibble};

/// Set in `id`: the filter passes what does not match (`CAN_INV_FILTER`).
pub const INVERSE: u32 = 0x2000_0000;

/// Every class of error frames (`CAN_ERR_MASK`), for [`Filters::error_mask`].
pub const EVERY_ERROR: u32 = EFF_MASK;

/// A frame matches when `can_id & mask == id & mask`; with [`INVERSE`] in `id`, when it does not.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Filter {
    /// Identifier with EFF and RTR flags, and [`INVERSE`].
    pub id: u32,
    /// Which bits of it count. With the ERR flag it is not a filter of frames but, as in the kernel, an error mask:
    /// set [`Filters::error_mask`] instead. The notation never has it.
    pub mask: u32,
}

/// The filters of one receiver. The default passes every data and RTR frame, and no error frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// A frame passes when any of these matches (all of them with `join`). Empty: every frame passes.
    pub list: Vec<Filter>,
    /// Error classes wanted (linux/can/error.h); 0: no error frames.
    pub error_mask: u32,
    /// All filters must match (`CAN_RAW_JOIN_FILTERS`).
    pub join: bool,
}

/// Filters and the interface that they are for: `can0,123:7FF,j`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceFilters {
    /// The interface's name, or candump's `any` for all interfaces.
    pub interface: String,
    /// The frames to receive from it.
    pub filters: Filters,
}

/// A [`Filter`] as the kernel interprets it (net/can/af_can.c: `can_rcv_list_find`), for code that compiles filters, for
/// example for a packet socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subscription {
    /// Error frames of any of these classes.
    Error {
        /// The classes (linux/can/error.h).
        mask: u32,
    },
    /// Data and RTR frames whose masked identifier equals `id`.
    Equal {
        /// What the masked identifier equals.
        id: u32,
        /// Which bits count.
        mask: u32,
    },
    /// Data and RTR frames whose masked identifier differs from `id`.
    Different {
        /// What the masked identifier differs from.
        id: u32,
        /// Which bits count.
        mask: u32,
    },
}

impl Subscription {
    fn matches(self, can_id: u32) -> bool {
        match self {
            Self::Error { mask } => can_id & ERR_FLAG != 0 && can_id & mask != 0,
            Self::Equal { id, mask } => can_id & ERR_FLAG == 0 && can_id & mask == id,
            Self::Different { id, mask } => can_id & ERR_FLAG == 0 && can_id & mask != id,
        }
    }
}

impl Filter {
    /// The filter as the kernel interprets it.
    pub fn subscription(self) -> Subscription {
        if self.mask & ERR_FLAG != 0 {
            return Subscription::Error { mask: self.mask & EFF_MASK };
        }
        let mut mask = self.mask;
        if mask & EFF_FLAG != 0 && self.id & EFF_FLAG == 0 {
            mask &= SFF_MASK | EFF_FLAG | RTR_FLAG; // standard frames only: the upper 18 bits do not exist
        }
        let id = self.id & mask;
        if self.id & INVERSE != 0 {
            Subscription::Different { id, mask }
        } else {
            Subscription::Equal { id, mask }
        }
    }

    /// Whether this filter alone passes a frame.
    pub fn matches(&self, frame: &Frame) -> bool {
        self.subscription().matches(frame.can_id)
    }
}

impl Filter {
    /// Reads an identifier without a mask: its data frames only.
    fn data_frames(text: &str) -> Result<Self, TextError> {
        match (text.len(), word(text, 0)) {
            (3, Ok(id @ ..=SFF_MASK)) => Ok(Self { id, mask: SFF_MASK | EFF_FLAG | RTR_FLAG }),
            (8, Ok(id @ ..=EFF_MASK)) => Ok(Self { id: id | EFF_FLAG, mask: EFF_MASK | EFF_FLAG | RTR_FLAG }),
            _ => expected(0, Expected::Filter),
        }
    }
}

impl Filters {
    /// Whether a raw socket with these filters would receive the frame.
    ///
    /// An error frame passes when it has one of the classes in `error_mask`, regardless of `list`. With `join` and two
    /// or more filters the kernel delivers no error frame, because an error frame matches none of the other filters;
    /// this function does the same.
    pub fn matches(&self, frame: &Frame) -> bool {
        let error = self.error_subscription().is_some_and(|errors| errors.matches(frame.can_id));
        let mut hits = self.list.iter().filter(|filter| filter.matches(frame));
        match self.needed() {
            1 => error || hits.next().is_some() || (self.list.is_empty() && !frame.is_error()),
            needed => hits.count() + usize::from(error) >= needed,
        }
    }

    /// The [`error_mask`](Self::error_mask) as the kernel interprets it; `None`: no error frames are wanted.
    pub fn error_subscription(&self) -> Option<Subscription> {
        (self.error_mask != 0).then_some(Subscription::Error { mask: self.error_mask & EFF_MASK })
    }

    /// How many subscriptions a frame must match to pass (net/can/raw.c: `raw_rcv` counts them per frame).
    pub fn needed(&self) -> usize {
        if self.join { self.list.len().max(1) } else { 1 }
    }
}

impl FromStr for Filters {
    type Err = TextError;

    /// Reads the text after the interface name and its comma; empty: no filter.
    fn from_str(text: &str) -> Result<Self, TextError> {
        let mut filters = Self::default();
        let mut position = 0;
        for item in text.split(',').filter(|_| !text.is_empty()) {
            let here = |error: TextError| TextError { position: position + error.position, ..error };
            match item.strip_prefix('#') {
                Some(mask) => filters.error_mask = word(mask, 1).map_err(here)?,
                None if item.eq_ignore_ascii_case("j") => filters.join = true,
                None => filters.list.push(item.parse().map_err(here)?),
            }
            position += item.len() + 1;
        }
        Ok(filters)
    }
}

impl FromStr for Filter {
    type Err = TextError;

    /// Reads `ID:MASK`, `ID~MASK` or an identifier of 3 or 8 digits.
    fn from_str(text: &str) -> Result<Self, TextError> {
        let Some(middle) = text.find([':', '~']) else { return Self::data_frames(text) };
        let mut id = word(&text[..middle], 0)?;
        if middle == 8 {
            id |= EFF_FLAG;
        }
        if text[middle..].starts_with('~') {
            id |= INVERSE;
        }
        Ok(Self { id, mask: word(&text[middle + 1..], middle + 1)? & !ERR_FLAG })
    }
}

/// Reads a hex number of 32 bits; `position` is its position in the whole text, for errors.
fn word(text: &str, position: usize) -> Result<u32, TextError> {
    let mut value = 0u32;
    for (index, byte) in text.bytes().enumerate() {
        let Some(digit) = nibble(byte) else { return expected(position + index, Expected::Word) };
        if value >> 28 != 0 {
            return expected(position, Expected::Word);
        }
        value = value << 4 | u32::from(digit);
    }
    if text.is_empty() { expected(position, Expected::Word) } else { Ok(value) }
}

impl FromStr for InterfaceFilters {
    type Err = TextError;

    /// Reads candump's argument: an interface name, then its filters, each after a comma.
    fn from_str(text: &str) -> Result<Self, TextError> {
        let (interface, filters) = match text.split_once(',') {
            None => (text, Filters::default()),
            Some((_, "")) => return expected(text.len(), Expected::Filter),
            Some((interface, list)) => {
                let start = interface.len() + 1;
                let here = |error: TextError| TextError { position: start + error.position, ..error };
                (interface, list.parse().map_err(here)?)
            }
        };
        if !is_interface_name(interface) && !interface.starts_with("/dev/") {
            let wrong = |letter: char| letter == '/' || letter.is_ascii_whitespace();
            return expected(interface.find(wrong).unwrap_or(interface.len().min(15)), Expected::Interface);
        }
        Ok(Self { interface: interface.to_owned(), filters })
    }
}

impl InterfaceFilters {
    /// Reads candump's argument: `can0`, `can0,123:7FF`, `any,0~0,#FFFFFFFF`.
    ///
    /// # Errors
    /// The position of the first byte that does not fit, and what was expected there.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        text.parse()
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.id & INVERSE != 0 { '~' } else { ':' };
        match self.id & !INVERSE {
            id if id & EFF_FLAG != 0 => write!(f, "{:08X}", id & !EFF_FLAG)?,
            id if id > 0x0fff_ffff => write!(f, "{id:09X}")?, // 8 digits would make it extended
            id => write!(f, "{id:03X}")?,
        }
        write!(f, "{sign}{:03X}", self.mask)
    }
}

impl fmt::Display for Filters {
    /// Writes the notation that [`Filters::from_str`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for filter in &self.list {
            write!(f, "{comma}{filter}")?;
            comma = ",";
        }
        if self.error_mask != 0 {
            write!(f, "{comma}#{:08X}", self.error_mask)?;
            comma = ",";
        }
        if self.join {
            write!(f, "{comma}j")?;
        }
        Ok(())
    }
}

impl fmt::Display for InterfaceFilters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.interface)?;
        if self.filters != Filters::default() {
            write!(f, ",{}", self.filters)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(filters: &str, frame: &str) -> bool {
        let filters: Filters = filters.parse().unwrap();
        filters.matches(&frame.parse().unwrap())
    }

    #[test]
    fn a_filter_passes_what_the_kernel_passes() {
        for (filters, frame, want) in [
            ("", "123#", true),
            ("", "12345678#R", true),
            ("", "20000004#0000000000000000", false),
            ("123:7FF", "123#", true),
            ("123:7FF", "123#R", true),
            ("123:7FF", "00000123#", true),
            ("123:7FF", "7FFFF123#".replace("7FFFF", "1FFFF").as_str(), true),
            ("123:7FF", "124#", false),
            ("123:C00007FF", "123#", true),
            ("123:C00007FF", "123#R", false),
            ("123:C00007FF", "00000123#", false),
            ("040000123:C00007FF", "123#R", true),
            ("040000123:C00007FF", "123#", false),
            ("12345678:DFFFFFFF", "12345678#", true),
            ("12345678:DFFFFFFF", "12345678#R", false),
            ("12345678:1FFFFFFF", "12345678#R", true),
            ("123~7FF", "123#", false),
            ("123~7FF", "124#", true),
            ("0~0", "124#", false),
            ("0:0", "124#", true),
            ("123:7FF,200:7FF", "200#", true),
            ("100:700,23:0FF", "123#", true),
            ("100:700,23:0FF", "124#", true),
            ("100:700,23:0FF,j", "124#", false),
            ("100:700,23:0FF,j", "123#", true),
            ("#00000004", "20000004#0000000000000000", true),
            ("#00000004", "20000002#0000000000000000", false),
            ("#00000004", "004#", true),
            ("0~0,#FFFFFFFF", "004#", false),
            ("0~0,#FFFFFFFF", "20000002#", true),
            ("0~0,#FFFFFFFF,j", "20000002#", true),
            ("100:700,23:0FF,j,#FFFFFFFF", "20000002#", false),
            ("0:0", "20000002#", false),
            ("2:7FF", "20000002#", false),
            // A standard filter drops mask bits that standard frames do not have.
            ("1FFFF123:80000000", "123#", false),
            ("123:9FFFFFFF", "123#", true),
        ] {
            assert_eq!(passes(filters, frame), want, "{filters} {frame}");
        }
    }

    #[test]
    fn filters_read_as_candump_reads_them() {
        // The values that candump 2020.11 passes to setsockopt.
        for (text, id, mask) in [
            ("123:7FF", 0x123, 0x7ff),
            ("12345678:DFFFFFFF", 0x9234_5678, 0xdfff_ffff),
            ("040000123:C00007FF", 0x4000_0123, 0xc000_07ff),
            ("20000123:FFFFFFFF", 0xa000_0123, 0xdfff_ffff),
            ("12345678~7FF", 0xb234_5678, 0x7ff),
            ("1234567:1", 0x0123_4567, 1),
        ] {
            assert_eq!(text.parse::<Filter>().unwrap(), Filter { id, mask }, "{text}");
        }
        // candump refuses an identifier without a mask.
        for (text, same) in [("123", "123:C00007FF"), ("12345678", "12345678:DFFFFFFF")] {
            assert_eq!(text.parse::<Filter>(), same.parse(), "{text}");
        }
        let all = InterfaceFilters::parse("can0,123:7FF,400~700,#000000FF,J").unwrap();
        assert_eq!((all.interface.as_str(), all.filters.list.len()), ("can0", 2));
        assert_eq!((all.filters.error_mask, all.filters.join), (0xff, true));
        assert_eq!(all.to_string(), "can0,123:7FF,400~700,#000000FF,j");
        assert_eq!(InterfaceFilters::parse("any").unwrap().filters, Filters::default());
    }

    #[test]
    fn an_invalid_filter_is_refused_with_the_position_of_the_error() {
        for (text, position) in [
            ("can0,", 5),
            ("can0,x", 5),
            ("can0,j,", 7),
            ("can0,12", 5),
            ("can0,800", 5),
            ("can0,1234567", 5),
            ("can0,20000000", 5),
            ("can0,123:", 9),
            ("can0,:7FF", 5),
            ("can0,123:7FG", 11),
            ("can0,1ffffffff:1", 5),
            ("can0,123:7FF,#", 14),
            ("can0,0x123:7FF", 6),
            (",123:7FF", 0),
            ("an/interface", 2),
            ("can0 can1", 4),
            ("an-interface-too-long", 15),
            ("", 0),
        ] {
            let error = InterfaceFilters::parse(text).expect_err(text);
            assert_eq!(error.position, position, "{text}: {error}");
        }
        let error = InterfaceFilters::parse("can0,x").unwrap_err();
        assert_eq!(
            error.to_string(),
            "position 5: expected a filter: 123, 12345678, ID:MASK, ID~MASK, #ERRORMASK or j"
        );
    }
}
