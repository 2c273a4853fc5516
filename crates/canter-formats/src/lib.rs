//! What a recording is written as. Only formats that are whole up to their last complete entry wherever they are cut
//! off, so that neither a crash nor a full disk costs more than what was not written yet.

#![forbid(unsafe_code)]

mod candump_log;
mod error;
mod fields;
mod hex;
mod pcapng;
pub mod read;
mod systemtime;
pub mod write;

pub use candump_log::CandumpLog;
pub use error::{Error, Result};
pub use pcapng::Pcapng;

use canter_frame::RawRecord;
use std::path::Path;

/// A format by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What `candump -l` writes, a line a frame
    Log,
    /// What Wireshark reads: stamps in ns, the drop counters inside
    Pcapng,
}

impl Kind {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::Log, Self::Pcapng];

    /// What it is, in a sentence.
    pub fn about(self) -> &'static str {
        match self {
            Self::Log => "What `candump -l` writes, a line a frame",
            Self::Pcapng => "What Wireshark reads: stamps in ns, the drop counters inside",
        }
    }

    /// By a file's extension.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "log" => Some(Self::Log),
            "pcapng" => Some(Self::Pcapng),
            _ => None,
        }
    }

    /// As `--format` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Pcapng => "pcapng",
        }
    }

    /// A writer of this format; `ns`: a log's stamps have 9 digits.
    pub fn writer(self, ns: bool) -> Box<dyn Format> {
        match self {
            Self::Log => Box::new(CandumpLog::new(ns)),
            Self::Pcapng => Box::new(Pcapng::default()),
        }
    }
}

/// What is said of an interface at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Closing {
    /// ns of the real-time clock.
    pub started_ns: u64,
    pub ended_ns: u64,
    /// Frames that the interface has received, by its own count; `None` when it is gone.
    pub received: Option<u64>,
    /// Frames lost before the file, as far as they are known to be this interface's; `None` before the end.
    pub lost: Option<u64>,
}

/// Appends entries to a buffer. A record's `interface` is here the place of its interface in the order of
/// [`interface`](Self::interface) calls, from 0.
pub trait Format: Send {
    /// A writer; `ns`: a log's stamps have 9 digits.
    fn new(ns: bool) -> Self
    where
        Self: Sized;
    /// The file's head.
    fn begin(&mut self, out: &mut Vec<u8>);
    /// A new interface.
    fn interface(&mut self, out: &mut Vec<u8>, name: &str);
    /// A frame; `late`: it comes behind younger ones.
    fn frame(&mut self, out: &mut Vec<u8>, record: &RawRecord<'_>, late: bool);
    /// Something to be said with the next frame, where the format has a place for it.
    fn remark(&mut self, _text: &str) {}
    /// What is known of each interface at the end, and the verdict.
    fn finish(&mut self, out: &mut Vec<u8>, interfaces: &[Closing], verdict: &str);
}

#[cfg(test)]
pub mod examples {
    use canter_frame::{BusId, Frame, RawRecord};

    /// A frame as the kernel lays it out.
    pub fn bytes(frame: &Frame) -> Vec<u8> {
        frame.kernel_bytes()[..frame.mtu()].to_vec()
    }

    pub fn record(bytes: &[u8], interface: u32, stamp_ns: u64) -> RawRecord<'_> {
        RawRecord::new(stamp_ns, BusId(interface), bytes)
    }
}

#[cfg(test)]
mod tests;
