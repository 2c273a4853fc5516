//! Faults: errors on a bus, a disconnected node, a babbling node.

use super::command;
use crate::uapi::canwire::{
    CANWIRE_A_BUS, CANWIRE_A_CONNECTED, CANWIRE_A_COUNT, CANWIRE_A_ERROR, CANWIRE_A_FRAME, CANWIRE_A_NODE,
    CANWIRE_A_PROBABILITY, CANWIRE_CMD_BABBLE, CANWIRE_CMD_CONNECT, CANWIRE_CMD_INJECT,
};
use crate::{Frame, Result};

/// Errors of a frame (`enum canwire_error`), and the ones that can be injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The sender read back another bit than it sent.
    Bit = 1,
    /// Receivers saw six equal bits.
    Stuff = 2,
    /// Receivers saw a fixed bit that was wrong.
    Form = 3,
    /// Receivers computed another CRC.
    Crc = 4,
    /// Nobody acknowledged.
    Ack = 5,
    /// Nodes have other bit rates, or no FD.
    Rate = 6,
    /// The sender was removed during the frame.
    Aborted = 7,
}

impl Fault {
    /// In the order of `enum canwire_error`, whose first is no error; the first five can be injected.
    const ALL: [Self; 7] =
        [Self::Bit, Self::Stuff, Self::Form, Self::Crc, Self::Ack, Self::Rate, Self::Aborted];

    /// The faults that can be injected, with their names.
    pub fn injectable() -> impl Iterator<Item = (Self, &'static str)> {
        Self::ALL.into_iter().take(5).map(|fault| (fault, fault.name()))
    }

    /// From `enum canwire_error`; `None` for no error and for those of later versions.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }

    /// The fault's name in lists: `crc`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bit => "bit",
            Self::Stuff => "stuff",
            Self::Form => "form",
            Self::Crc => "crc",
            Self::Ack => "ack",
            Self::Rate => "rate",
            Self::Aborted => "aborted",
        }
    }
}

/// Errors to be made on a bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injection {
    /// Which; see [`Fault::injectable`].
    pub fault: Fault,
    /// How many of 1 000 000 000 frames have the error; `None`: every frame.
    pub probability: Option<u32>,
    /// How many errors at most; `None`: no end.
    pub count: Option<u32>,
    /// Bit and acknowledgement errors: only of this node's frames. Others: this node alone sees it first.
    pub node: Option<String>,
}

/// Destroys frames on a bus; replaces an earlier injection.
///
/// # Errors
/// `ENOENT` when there is no such bus; `EPERM`; `EINVAL`.
pub fn inject(bus: &str, injection: &Injection) -> Result<()> {
    command(&format!("bus {bus}"), "inject", CANWIRE_CMD_INJECT, |request| {
        request.put_text(CANWIRE_A_BUS, bus);
        request.put(CANWIRE_A_ERROR, &[injection.fault as u8]);
        if let Some(probability) = injection.probability {
            request.put_u32(CANWIRE_A_PROBABILITY, probability);
        }
        if let Some(count) = injection.count {
            request.put_u32(CANWIRE_A_COUNT, count);
        }
        if let Some(node) = &injection.node {
            request.put_text(CANWIRE_A_NODE, node);
        }
    })
}

/// Ends [`inject`].
///
/// # Errors
/// As [`inject`].
pub fn stop_injecting(bus: &str) -> Result<()> {
    command(&format!("bus {bus}"), "stop injecting", CANWIRE_CMD_INJECT, |request| {
        request.put_text(CANWIRE_A_BUS, bus);
        request.put_u32(CANWIRE_A_COUNT, 0);
    })
}

/// Cuts a node's wire, or joins it again.
///
/// # Errors
/// `ENODEV` when there is no such node; `EPERM`.
pub fn connect(node: &str, connected: bool) -> Result<()> {
    let step = if connected { "connect" } else { "disconnect" };
    command(node, step, CANWIRE_CMD_CONNECT, |request| {
        request.put_text(CANWIRE_A_NODE, node);
        request.put(CANWIRE_A_CONNECTED, &[u8::from(connected)]);
    })
}

/// Lets a node send a frame again and again without a pause, `count` times or (`None`) until [`stop_babbling`].
///
/// # Errors
/// As [`connect`]; `EINVAL` for an FD frame of a node without FD.
pub fn babble(node: &str, frame: &Frame, count: Option<u32>) -> Result<()> {
    command(node, "babble", CANWIRE_CMD_BABBLE, |request| {
        request.put_text(CANWIRE_A_NODE, node);
        request.put(CANWIRE_A_FRAME, &frame.kernel_bytes());
        if let Some(count) = count {
            request.put_u32(CANWIRE_A_COUNT, count);
        }
    })
}

/// Ends [`babble`].
///
/// # Errors
/// As [`connect`].
pub fn stop_babbling(node: &str) -> Result<()> {
    command(node, "stop babbling", CANWIRE_CMD_BABBLE, |request| {
        request.put_text(CANWIRE_A_NODE, node);
        request.put_u32(CANWIRE_A_COUNT, 0);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_has_the_number_of_the_header() {
        for (at, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, at + 1);
            assert_eq!(Fault::from_code(at as u8 + 1), Some(fault));
        }
        assert_eq!((Fault::from_code(0), Fault::from_code(8)), (None, None));
        assert_eq!(Fault::injectable().last(), Some((Fault::Ack, "ack")));
    }
}
