//! Error frames as text, in the words of `candump -e`. An error frame is a driver's report of an error on a bus, which the
//! kernel delivers like a frame.
//!
//! linux/can/error.h: classes are bits of the identifier, details are in the data.

use crate::frame::{EFF_MASK, ERR_FLAG, Frame};
use std::fmt;

/// The classes, by their bit in the identifier.
const CLASSES: [&str; 9] = [
    "tx-timeout",
    "lost-arbitration",
    CONTROLLER,
    PROTOCOL,
    "transceiver-status",
    "no-acknowledgement-on-tx",
    "bus-off",
    "bus-error",
    "restarted-after-bus-off",
];
const LOST_ARBITRATION: usize = 1;
const CONTROLLER_AT: usize = 2;
const PROTOCOL_AT: usize = 3;
const CONTROLLER: &str = "controller-problem";
const PROTOCOL: &str = "protocol-violation";

/// `data[1]`: the problems of the controller.
const CONTROLLER_PROBLEMS: [&str; 7] = [
    "rx-overflow",
    "tx-overflow",
    "rx-error-warning",
    "tx-error-warning",
    "rx-error-passive",
    "tx-error-passive",
    "back-to-error-active",
];

/// `data[2]`: how the protocol was violated.
const VIOLATIONS: [&str; 8] = [
    "single-bit-error",
    "frame-format-error",
    "bit-stuffing-error",
    "tx-dominant-bit-error",
    "tx-recessive-bit-error",
    "bus-overload",
    "active-error",
    "error-on-tx",
];

/// `data[3]`: the place in the frame; 0: unknown.
const PLACES: [&str; 29] = [
    "",
    "unspecified",
    "id.28-to-id.21",
    "start-of-frame",
    "bit-srtr",
    "bit-ide",
    "id.20-to-id.18",
    "id.17-to-id.13",
    "crc-sequence",
    "reserved-bit-0",
    "data-field",
    "data-length-code",
    "bit-rtr",
    "reserved-bit-1",
    "id.4-to-id.0",
    "id.12-to-id.5",
    "unspecified",
    "active-error-flag",
    "intermission",
    "tolerate-dominant-bits",
    "unspecified",
    "unspecified",
    "passive-error-flag",
    "error-delimiter",
    "crc-delimiter",
    "acknowledge-slot",
    "end-of-frame",
    "acknowledge-delimiter",
    "overload-flag",
];

/// An error frame. It prints as `candump -e` does, with commas between its classes.
///
/// ```
/// use canter_frame::{Frame, error_frame::ErrorFrame};
///
/// let frame: Frame = "20000204#0001000000000000".parse()?;
/// let error = ErrorFrame::from_frame(&frame).expect("the flag of error frames is set");
/// assert_eq!(error.to_string(), "controller-problem{rx-overflow}");
/// assert_eq!(error.kinds().collect::<Vec<_>>(), ["rx-overflow"]);
/// # Ok::<(), canter_frame::TextError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorFrame {
    classes: u32,
    data: [u8; 8],
}

impl ErrorFrame {
    /// `None` when the frame is not an error frame.
    pub fn from_frame(frame: &Frame) -> Option<Self> {
        let data = std::array::from_fn(|at| frame.data[at]);
        (frame.can_id & ERR_FLAG != 0).then_some(Self { classes: frame.can_id & EFF_MASK, data })
    }

    /// Returns the errors that it reports, one word each, for counting: its classes, with the kind of controller
    /// problem instead of the class `controller-problem` when one of them has a name.
    pub fn kinds(&self) -> impl Iterator<Item = &'static str> {
        let problems = bits(self.data[1].into(), &CONTROLLER_PROBLEMS);
        let detailed = self.has(CONTROLLER_AT) && problems.clone().next().is_some();
        let classes = bits(self.classes, &CLASSES).filter(move |&class| !detailed || class != CONTROLLER);
        classes.chain(problems.filter(move |_| detailed))
    }

    fn has(&self, class: usize) -> bool {
        self.classes >> class & 1 != 0
    }
}

/// Returns the words of the set bits.
fn bits<const N: usize>(
    value: u32,
    words: &'static [&'static str; N],
) -> impl Iterator<Item = &'static str> + Clone {
    words.iter().enumerate().filter(move |(bit, _)| value >> bit & 1 != 0).map(|(_, &word)| word)
}

fn list<const N: usize>(value: u8, words: &'static [&'static str; N]) -> String {
    bits(value.into(), words).collect::<Vec<_>>().join(",")
}

impl fmt::Display for ErrorFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data = &self.data;
        let mut separator = "";
        for (class, name) in CLASSES.iter().enumerate().filter(|&(class, _)| self.has(class)) {
            write!(f, "{separator}{name}")?;
            match class {
                LOST_ARBITRATION => write!(f, "{{at bit {}}}", data[0])?,
                CONTROLLER_AT => write!(f, "{{{}}}", list(data[1], &CONTROLLER_PROBLEMS))?,
                PROTOCOL_AT => {
                    let place = PLACES.get(usize::from(data[3])).copied().unwrap_or_default();
                    write!(f, "{{{{{}}}{{{place}}}}}", list(data[2], &VIOLATIONS))?;
                }
                _ => {}
            }
            separator = ", ";
        }
        if data[6] != 0 || data[7] != 0 {
            write!(f, "{separator}error-counter-tx-rx{{{{{}}}{{{}}}}}", data[6], data[7])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text_of(text: &str) -> String {
        ErrorFrame::from_frame(&text.parse().unwrap()).unwrap().to_string()
    }

    #[test]
    fn an_error_frame_reads_as_candump_prints_it() {
        assert_eq!(
            text_of("2000008C#0000041900000080"),
            concat!(
                "controller-problem{}, protocol-violation{{bit-stuffing-error}{acknowledge-slot}}, ",
                "bus-error, error-counter-tx-rx{{0}{128}}"
            )
        );
        assert_eq!(text_of("20000002#1000000000000000"), "lost-arbitration{at bit 16}");
        assert_eq!(text_of("20000140#0000000000000000"), "bus-off, restarted-after-bus-off");
        assert_eq!(ErrorFrame::from_frame(&"123#00".parse().unwrap()), None);
    }

    #[test]
    fn kinds_have_the_controller_problem_instead_of_its_class() {
        let error = ErrorFrame::from_frame(&"2000000C#0021000000000000".parse().unwrap()).unwrap();
        assert_eq!(error.kinds().collect::<Vec<_>>(), [PROTOCOL, "rx-overflow", "tx-error-passive"]);
        let bare = ErrorFrame::from_frame(&"20000004#0000000000000000".parse().unwrap()).unwrap();
        assert_eq!(bare.kinds().collect::<Vec<_>>(), [CONTROLLER]);
        let without_a_name = ErrorFrame::from_frame(&"20000004#0080000000000000".parse().unwrap()).unwrap();
        assert_eq!(without_a_name.kinds().collect::<Vec<_>>(), [CONTROLLER]);
    }

    proptest! {
        #[test]
        fn every_error_class_has_a_kind_and_prints(id in 0u32..0x2000_0000, data: [u8; 8]) {
            let mut frame = Frame::default();
            (frame.can_id, frame.len) = (id | ERR_FLAG, 8);
            frame.data[..8].copy_from_slice(&data);
            let error = ErrorFrame::from_frame(&frame).unwrap();
            prop_assert_eq!(error.kinds().count() > 0, id & 0x1ff != 0);
            let _ = error.to_string();
        }
    }
}
