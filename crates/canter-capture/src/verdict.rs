//! What the account of a recording says in the end, as types; the sentences are in [`Display`](fmt::Display) only.

use crate::lost::Lost;
use serde::{Serialize, Serializer, ser::SerializeStruct};
use std::{collections::BTreeSet, fmt};

/// How frames were received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Network interfaces by a packet ring that they share.
    Ring,
    /// Network interfaces by a socket each.
    Sockets,
    /// canchar devices by their files.
    Devices,
    /// Network interfaces by a ring, devices by their files.
    RingAndDevices,
    /// Network interfaces by sockets, devices by their files.
    SocketsAndDevices,
}

/// Whether a recording has every frame that passes its filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every frame is in the files, and the counts prove it.
    Complete,
    /// No frame is known to be missing, but the counts do not prove that none is.
    Ambiguous(Vec<Doubt>),
    /// Frames are missing, or nobody knows how many.
    Incomplete {
        /// What is wrong; at least one.
        faults: Vec<Fault>,
        /// Frames that may be missing beyond those that are known to be.
        more: u64,
        /// What may hide them.
        causes: BTreeSet<Cause>,
    },
}

/// Why a recording is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Overruns of controllers: events, each of at least one frame.
    Overruns(u64),
    /// These interfaces disappeared with their counters.
    Removed(Vec<String>),
    /// Frames were lost at these places; [`Method`] gives the first queue its name.
    Lost(Lost, Method),
    /// Frames that canter has received and then neither written nor counted at any place: a fault of canter.
    Inside(u64),
    /// The recording ended early or stopped writing, for this reason.
    Failed(String),
    /// The recording has not ended.
    Unfinished,
}

/// Frames of a bus that may be missing without a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The bus; `None`: one of those that share the ring.
    pub bus: Option<String>,
    /// The most frames that may be missing.
    pub frames: u64,
    /// What may hide them.
    pub cause: Cause,
}

/// What may hide the loss of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Frames close to the start or end, of which it is unknown whether the counters include them.
    CloseToLimit,
    /// Echoes and error frames, which a driver does not count.
    Uncounted,
    /// More frames were received than the interface's counters explain.
    Surplus,
    /// Frames were dropped, and the interface may have counted them as received before, or not.
    Dropped,
    /// Frames came from interfaces that no longer existed when the kernel was asked for their names.
    Unnamed,
    /// The index of an interface was given to another one, and their frames may be mixed.
    Reused,
    /// The ring has lost frames, of the recorded interfaces or of others.
    SharedRing,
}

impl Method {
    /// Whether network interfaces have a socket each, whose queue counts its own losses.
    pub(super) fn has_sockets(self) -> bool {
        matches!(self, Self::Sockets | Self::SocketsAndDevices)
    }

    /// The name of the queue between kernel and recorder.
    fn network_queue(self) -> &'static str {
        match self {
            Self::Ring | Self::Devices | Self::RingAndDevices => "the ring",
            Self::Sockets | Self::SocketsAndDevices => "the sockets",
        }
    }
}

impl Verdict {
    /// Whether every frame that passes the filters is in the files, as the counts prove.
    pub fn is_complete(&self) -> bool {
        *self == Self::Complete
    }

    /// Whether no frame is known to be lost, but it cannot be proved that none is.
    pub fn is_ambiguous(&self) -> bool {
        matches!(self, Self::Ambiguous(_))
    }
}

/// The verdict of a recording that runs or was killed.
impl Default for Verdict {
    fn default() -> Self {
        Self::Incomplete { faults: vec![Fault::Unfinished], more: 0, causes: BTreeSet::new() }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ring => "ring",
            Self::Sockets => "sockets",
            Self::Devices => "devices",
            Self::RingAndDevices => "ring+devices",
            Self::SocketsAndDevices => "sockets+devices",
        })
    }
}

impl Serialize for Method {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// Two fields of the account: `verdict`, the sentence, and `complete`.
impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut fields = to.serialize_struct("Verdict", 2)?;
        fields.serialize_field("verdict", &self.to_string())?;
        fields.serialize_field("complete", &self.is_complete())?;
        fields.end()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.write_str("complete"),
            Self::Ambiguous(doubts) => write!(f, "ambiguous: {}", joined(doubts, "; ")),
            Self::Incomplete { faults, more, causes } => {
                f.write_str(&joined(faults, "; "))?;
                match more {
                    0 => Ok(()),
                    _ => write!(f, "; up to {more} more may be missing: {}", joined(causes, ", or ")),
                }
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overruns(events) => {
                write!(f, "incomplete: at least {events} overrun events, number of frames unknown")
            }
            Self::Removed(names) => {
                write!(f, "incomplete: counters of {} unknown (removed, or not to be read)", names.join(", "))
            }
            Self::Lost(lost, method) => {
                let places =
                    lost.places(method.network_queue()).into_iter().filter(|&(_, frames)| frames > 0);
                let places: Vec<_> = places.map(|(place, frames)| format!("{place} ({frames})")).collect();
                write!(f, "{} frames lost at {}", lost.frames(), places.join(", "))
            }
            Self::Inside(frames) => write!(f, "incomplete: {frames} frames unaccounted inside canter"),
            Self::Failed(why) => write!(f, "incomplete: {why}"),
            Self::Unfinished => {
                f.write_str("incomplete: the recording has not ended, or its process was killed")
            }
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bus = self.bus.as_deref().unwrap_or("all interfaces");
        write!(f, "up to {} frames of {bus} may be missing: {}", self.frames, self.cause)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CloseToLimit => {
                "as many came too close to the start or end to be compared with its counters"
            }
            Self::Uncounted => {
                "as many echoes or error frames, which its driver does not count, would hide them"
            }
            Self::Surplus => "as many were received that its counters do not explain",
            Self::Dropped => "as many were dropped that its driver may have counted as received, or not",
            Self::Unnamed => "as many came from interfaces whose names the kernel did not tell in time",
            Self::Reused => "another interface got its index, and as many may be frames of that one",
            Self::SharedRing => "the ring has lost as many, of these or of interfaces that are not recorded",
        })
    }
}

fn joined<T: fmt::Display>(parts: impl IntoIterator<Item = T>, by: &str) -> String {
    parts.into_iter().map(|part| part.to_string()).collect::<Vec<_>>().join(by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_a_part_of_the_sentence() {
        let lost = Lost { disk: 2, ring: 1, ..Lost::default() };
        let faults = vec![
            Fault::Overruns(3),
            Fault::Removed(vec!["can7".to_owned(), "can8".to_owned()]),
            Fault::Lost(lost, Method::SocketsAndDevices),
            Fault::Inside(4),
        ];
        let causes = BTreeSet::from([Cause::Surplus, Cause::Uncounted]);
        assert_eq!(
            Verdict::Incomplete { faults, more: 5, causes }.to_string(),
            "incomplete: at least 3 overrun events, number of frames unknown; \
             incomplete: counters of can7, can8 unknown (removed, or not to be read); 3 frames lost at the sockets (1), the disk (2); \
             incomplete: 4 frames unaccounted inside canter; up to 5 more may be missing: \
             as many echoes or error frames, which its driver does not count, would hide them, or \
             as many were received that its counters do not explain"
        );
    }
}
