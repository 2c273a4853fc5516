//! The source: a controller on each bus from which the kernel sends by a hard timer, so that traffic starts within
//! instructions of its time and costs no process anything.

use super::{command, long, word};
use crate::uapi::canwire::{
    CANWIRE_A_BITRATE, CANWIRE_A_BURST, CANWIRE_A_BUS, CANWIRE_A_COUNT, CANWIRE_A_DATA_BITRATE,
    CANWIRE_A_FRAME, CANWIRE_A_JITTER_NS, CANWIRE_A_LOAD, CANWIRE_A_PERIOD_NS, CANWIRE_A_RESET,
    CANWIRE_A_SCHEDULE, CANWIRE_A_SEED, CANWIRE_A_SOURCE_FLAGS, CANWIRE_A_START_NS, CANWIRE_CMD_SOURCE_LOAD,
    CANWIRE_CMD_SOURCE_START, CANWIRE_CMD_SOURCE_STOP, CANWIRE_SCHEDULE_MAX, CANWIRE_SCHEDULE_MESSAGE_MAX,
    CANWIRE_SOURCE_NUMBER, CANWIRE_SOURCE_RANDOM_DATA, CANWIRE_SOURCE_RANDOM_FORMAT,
    CANWIRE_SOURCE_RANDOM_ID, CANWIRE_SOURCE_RANDOM_LEN, CANWIRE_SOURCE_SCHEDULE, canwire_schedule_entry,
};
use crate::{Error, Frame, Result, frame::BitRate, sys::clock};
use std::io;

/// When frames start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// A frame is always ready: it uses the time that other nodes leave.
    #[default]
    Always,
    /// From one start to the next, in ns; at least 1000.
    Period(u64),
    /// The share of the bus's time in thousandths, 1…1000.
    Load(u32),
}

/// The parts of each frame that are random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Random {
    /// The identifier, of the frame's format.
    pub id: bool,
    /// SFF or EFF, RTR or not, BRS and ESI or not.
    pub format: bool,
    /// The length.
    pub len: bool,
    /// The data, with more runs of equal bits than chance gives.
    pub data: bool,
    /// Where the numbers begin; not 0. `None`: where the kernel lets them.
    pub seed: Option<u64>,
}

/// Frames that a source sends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The frame; random parts replace its own.
    pub frame: Frame,
    /// When.
    pub pace: Pace,
    /// Each start is delayed by a random time of at most this, in ns; the time base does not move.
    pub jitter_ns: u64,
    /// Frames at each start; 0 and 1: one.
    pub burst: u32,
    /// The total number of frames; `None`: until it is stopped.
    pub count: Option<u32>,
    /// Frames are numbered in their first two bytes, low byte first, from 0.
    pub number: bool,
    /// What is not fixed.
    pub random: Random,
    /// The first start, in ns after the command is sent; 1 ms after its arrival if `None` or past.
    pub delay_ns: Option<u64>,
    /// The source's bit rate; `None`: that of the first node that is up.
    pub rate: Option<BitRate>,
}

/// The counters of a source since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceStats {
    /// Whether the source has not ended yet.
    pub running: bool,
    /// Frames that became due.
    pub due: u64,
    /// Frames of those sent and acknowledged without error.
    pub sent: u64,
    /// Attempts that failed.
    pub errors: u64,
    /// Frames that had to wait for the wire.
    pub waited: u64,
    /// The longest wait of a frame, in ns.
    pub waited_ns_max: u64,
    /// The greatest delay of its timer, in ns.
    pub late_ns_max: u64,
    /// Frames loaded by [`load`].
    pub schedule_entries: u32,
}

impl SourceStats {
    pub(super) fn decode(bytes: &[u8]) -> Self {
        Self {
            running: word(bytes, 0) != 0,
            due: long(bytes, 8),
            sent: long(bytes, 16),
            errors: long(bytes, 24),
            waited: long(bytes, 32),
            waited_ns_max: long(bytes, 40),
            late_ns_max: long(bytes, 48),
            schedule_entries: word(bytes, 56),
        }
    }
}

impl Source {
    fn flags(&self) -> u32 {
        let Random { id, format, len, data, .. } = self.random;
        [
            (self.number, CANWIRE_SOURCE_NUMBER),
            (id, CANWIRE_SOURCE_RANDOM_ID),
            (format, CANWIRE_SOURCE_RANDOM_FORMAT),
            (len, CANWIRE_SOURCE_RANDOM_LEN),
            (data, CANWIRE_SOURCE_RANDOM_DATA),
        ]
        .into_iter()
        .filter(|(wanted, _)| *wanted)
        .fold(0, |all, (_, flag)| all | flag)
    }
}

/// Starts the source of a bus.
///
/// # Errors
/// `EBUSY` when it runs; `ENETDOWN` when no node is up and no rate is given; `ENOENT` when there is no such bus.
pub fn start(bus: &str, source: &Source) -> Result<()> {
    start_with(bus, |request| {
        request.put(CANWIRE_A_FRAME, &source.frame.kernel_bytes());
        match source.pace {
            Pace::Always => {}
            Pace::Period(ns) => request.put_u64(CANWIRE_A_PERIOD_NS, ns),
            Pace::Load(per_mille) => request.put_u32(CANWIRE_A_LOAD, per_mille),
        }
        if source.jitter_ns > 0 {
            request.put_u64(CANWIRE_A_JITTER_NS, source.jitter_ns);
        }
        if source.burst > 1 {
            request.put_u32(CANWIRE_A_BURST, source.burst);
        }
        if let Some(count) = source.count {
            request.put_u32(CANWIRE_A_COUNT, count);
        }
        request.put_u32(CANWIRE_A_SOURCE_FLAGS, source.flags());
        if let Some(seed) = source.random.seed {
            request.put_u64(CANWIRE_A_SEED, seed);
        }
        if let Some(delay_ns) = source.delay_ns {
            request.put_u64(CANWIRE_A_START_NS, clock::monotonic_ns().saturating_add(delay_ns));
        }
        if let Some(rate) = source.rate {
            request.put_u32(CANWIRE_A_BITRATE, rate.nominal);
            request.put_u32(CANWIRE_A_DATA_BITRATE, rate.data);
        }
    })
}

/// Starts the source of a bus with the frames of [`load`]: `rounds` times (`None`: forever), each round as long as
/// `round_ns` (0: as long as its frames).
///
/// # Errors
/// As [`start`].
pub fn start_schedule(bus: &str, rounds: Option<u32>, round_ns: u64) -> Result<()> {
    start_with(bus, |request| {
        request.put_u32(CANWIRE_A_SOURCE_FLAGS, CANWIRE_SOURCE_SCHEDULE);
        request.put_u32(CANWIRE_A_COUNT, rounds.unwrap_or(0));
        if round_ns > 0 {
            request.put_u64(CANWIRE_A_PERIOD_NS, round_ns);
        }
    })
}

fn start_with(bus: &str, fill: impl FnOnce(&mut crate::netlink::request::Request)) -> Result<()> {
    command(&format!("bus {bus}"), "start the source", CANWIRE_CMD_SOURCE_START, |request| {
        request.put_text(CANWIRE_A_BUS, bus);
        fill(request);
    })
}

/// Stops the source of a bus: a frame that is on the wire ends, one that waits does not start.
///
/// # Errors
/// `ENOENT` when there is no such bus; `EPERM`.
pub fn stop(bus: &str) -> Result<()> {
    command(&format!("bus {bus}"), "stop the source", CANWIRE_CMD_SOURCE_STOP, |request| {
        request.put_text(CANWIRE_A_BUS, bus);
    })
}

/// Gives the source of a bus a schedule, instead of the one it had: frames with the ns after the start of the round at
/// which each starts, ascending.
///
/// # Errors
/// `InvalidInput` for more than 1 000 000 frames; `EBUSY` when it runs; `EINVAL` when times go backwards; `ERANGE`
/// for a time of 2^61 ns or more.
pub fn load(bus: &str, schedule: &[(u64, Frame)]) -> Result<()> {
    const STEP: &str = "load a schedule";
    let thing = format!("bus {bus}");
    if schedule.is_empty() || schedule.len() > CANWIRE_SCHEDULE_MAX {
        let why = format!("{} frames: there must be 1…{CANWIRE_SCHEDULE_MAX}", schedule.len());
        return Err(Error::new(thing, STEP, io::Error::new(io::ErrorKind::InvalidInput, why)));
    }
    for (at, part) in schedule.chunks(CANWIRE_SCHEDULE_MESSAGE_MAX).enumerate() {
        command(&thing, STEP, CANWIRE_CMD_SOURCE_LOAD, |request| {
            request.put_text(CANWIRE_A_BUS, bus);
            if at == 0 {
                request.put(CANWIRE_A_RESET, &[]);
            }
            request.put(CANWIRE_A_SCHEDULE, &entries(part));
        })?;
    }
    Ok(())
}

fn entries(part: &[(u64, Frame)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(part.len() * size_of::<canwire_schedule_entry>());
    for (at_ns, frame) in part {
        bytes.extend(at_ns.to_ne_bytes());
        bytes.extend(frame.kernel_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_an_array_of_times_and_frames() {
        let frame: Frame = "123#AA".parse().unwrap();
        let bytes = entries(&[(5, frame), (7, frame)]);
        assert_eq!(bytes.len(), 160);
        assert_eq!((bytes[0], bytes[80], bytes[92], bytes[96]), (5, 7, 1, 0xaa));
    }

    #[test]
    fn an_empty_schedule_and_one_that_is_too_long_are_refused_before_the_kernel_is_asked() {
        assert_eq!(load("A", &[]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let long = vec![(0, Frame::default()); CANWIRE_SCHEDULE_MAX + 1];
        assert_eq!(load("A", &long).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
