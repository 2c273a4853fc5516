//! Triggers: the conditions under which frames are kept, and how much before and after them.

use canter_frame::{
    Filter, Filters, Frame, Identifier,
    error_frame::ErrorFrame,
    frame::{ERR_FLAG, SFF_MASK},
};
use std::{fmt, sync::Arc, time::Duration};

/// A recording that keeps only the time around events: windows from `before` to `after` a condition that is met. Windows
/// that overlap are joined.
#[derive(Clone, Debug)]
pub struct Triggers {
    /// The conditions; any of them begins a window.
    pub conditions: Vec<Condition>,
    /// How much is kept before an event.
    pub before: Duration,
    /// How much is kept after an event.
    pub after: Duration,
    /// Memory for the frames before an event, in bytes; `None`: as much as `before` takes at the highest rate of the buses.
    pub buffer_bytes: Option<usize>,
}

/// The default of [`Triggers::before`].
pub const BEFORE: Duration = Duration::from_secs(30);
/// The default of [`Triggers::after`].
pub const AFTER: Duration = Duration::from_secs(5);

/// A condition that begins a window.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The condition as the user wrote it, for messages and the account.
    pub text: String,
    /// The interface whose frames count; `None`: all.
    pub interface: Option<String>,
    /// What must happen.
    pub when: When,
}

/// What must happen, on any bus that counts.
#[derive(Clone)]
pub enum When {
    /// A frame that passes these filters.
    Frame(Filters),
    /// A frame with this identifier and data.
    Data(Filter, Pattern),
    /// An error frame of this kind.
    Error(ErrorKind),
    /// No frame that passes these filters for longer than this, after there was one.
    Missing(Filters, Duration),
    /// A frame whose identifier the bus did not have in this time after its first frame, nor later.
    New(Duration),
    /// A test of the frames' content becomes true: the program's own condition.
    Content(Arc<dyn Content>),
    /// The program calls [`Recording::trigger`](crate::Recording::trigger).
    Request,
}

/// A program's own condition on the content of frames.
pub trait Content: Send + Sync {
    /// The test for the bus of this name; `None`: no frame of it can meet the condition.
    fn on_bus(&self, name: &str) -> Option<Box<dyn Test>>;
}

/// A condition on the frames of one bus. The event is that the answer changes to true.
pub trait Test: Send {
    /// Whether a frame with this identifier can say something.
    fn concerns(&self, id: Identifier) -> bool;
    /// Whether the condition is met, and what the frame says for people: `Speed = 120 km/h`. `None`: this frame does not
    /// tell.
    fn judge(&mut self, frame: &Frame) -> Option<(bool, String)>;
}

/// The kinds of error frames that a trigger can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Any error frame.
    Any,
    /// The controller went off the bus.
    BusOff,
    /// The controller became error-passive.
    Passive,
    /// The controller's FIFO overran.
    Overrun,
}

impl ErrorKind {
    /// Every kind with its word.
    pub const WORDS: [(&str, Self); 4] = [
        ("error", Self::Any),
        ("bus-off", Self::BusOff),
        ("error-passive", Self::Passive),
        ("overrun", Self::Overrun),
    ];

    pub(crate) fn matches(self, frame: &Frame) -> bool {
        let Some(error) = ErrorFrame::from_frame(frame) else { return false };
        let words: &[&str] = match self {
            Self::Any => return true,
            Self::BusOff => &["bus-off"],
            Self::Passive => &["rx-error-passive", "tx-error-passive"],
            Self::Overrun => &["rx-overflow"],
        };
        error.kinds().any(|kind| words.contains(&kind))
    }
}

/// Data with a mask: bytes from the first one on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The bytes of the data that are compared.
    pub data: Vec<u8>,
    /// Which bits of them count; as many bytes as `data`.
    pub mask: Vec<u8>,
    /// Whether the data must differ.
    pub inverse: bool,
}

impl Pattern {
    /// Whether a payload has this data. A shorter one neither has it nor differs.
    pub fn matches(&self, payload: &[u8]) -> bool {
        let Some(payload) = payload.get(..self.data.len()) else { return false };
        let compared = payload.iter().zip(&self.data).zip(&self.mask);
        let is_equal = compared.into_iter().all(|((byte, data), mask)| (byte ^ data) & mask == 0);
        is_equal != self.inverse
    }
}

impl fmt::Debug for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frame(filters) => write!(f, "Frame({filters})"),
            Self::Data(filter, pattern) => write!(f, "Data({filter}, {pattern:?})"),
            Self::Error(kind) => write!(f, "Error({kind:?})"),
            Self::Missing(filters, limit) => write!(f, "Missing({filters}, {limit:?})"),
            Self::New(learned) => write!(f, "New({learned:?})"),
            Self::Content(_) => f.write_str("Content"),
            Self::Request => f.write_str("Request"),
        }
    }
}

impl When {
    /// Whether it can only be met by error frames.
    pub(crate) fn needs_error_frames(&self) -> bool {
        match self {
            Self::Error(_) => true,
            Self::Frame(filters) => filters.list.is_empty() && filters.error_mask != 0,
            _ => false,
        }
    }

    /// Whether a standard data frame of this identifier can meet it, or postpone it.
    pub(crate) fn concerns_standard(&self, id: u32) -> bool {
        let mut frame = Frame::default();
        frame.can_id = id & SFF_MASK;
        match self {
            Self::Frame(filters) | Self::Missing(filters, _) => filters.matches(&frame),
            Self::Data(filter, _) => filter.matches(&frame),
            Self::New(_) => true,
            Self::Content(_) | Self::Error(_) | Self::Request => false,
        }
    }

    /// Whether other frames can: extended, remote and error frames.
    pub(crate) fn concerns_others(&self) -> bool {
        !matches!(self, Self::Request)
    }
}

/// Whether a frame's identifier, with its flags, is that of a standard data frame.
pub(crate) fn is_standard_data(can_id: u32) -> bool {
    can_id & !SFF_MASK == 0
}

/// Whether a frame is an error frame, by its identifier with flags.
pub(crate) fn is_error(can_id: u32) -> bool {
    can_id & ERR_FLAG != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_matches_under_its_mask_and_a_short_payload_neither_matches_nor_differs() {
        let pattern = |inverse| Pattern { data: vec![0x40, 0x0f], mask: vec![0xc0, 0xff], inverse };
        for (payload, equal, differs) in
            [(&[0x7f, 0x0f, 1][..], true, false), (&[0x40, 0x0e], false, true), (&[0x40], false, false)]
        {
            assert_eq!((pattern(false).matches(payload), pattern(true).matches(payload)), (equal, differs));
        }
    }

    #[test]
    fn error_kinds_are_those_of_error_frames() {
        let kinds = |text: &str| -> Vec<&str> {
            let frame = text.parse().unwrap();
            ErrorKind::WORDS.iter().filter(|(_, kind)| kind.matches(&frame)).map(|(word, _)| *word).collect()
        };
        assert_eq!(kinds("20000040#0000000000000000"), ["error", "bus-off"]);
        assert_eq!(kinds("20000004#0020000000000000"), ["error", "error-passive"]);
        assert_eq!(kinds("20000004#0001000000000000"), ["error", "overrun"]);
        assert_eq!(kinds("20000002#0000000000000000"), ["error"]);
        assert_eq!(kinds("040#00"), Vec::<&str>::new());
    }
}
