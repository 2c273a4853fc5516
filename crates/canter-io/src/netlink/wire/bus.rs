//! Buses of virtual wires, with their counters.

use super::{SourceStats, command, each, get, list, long};
use crate::Result;
use crate::netlink::attribute::{Attributes, u64_at};
use crate::uapi::canwire::{
    CANWIRE_A_BITRATE, CANWIRE_A_BUS, CANWIRE_A_BUS_STATS, CANWIRE_A_DATA_BITRATE, CANWIRE_A_NODES,
    CANWIRE_A_SEED, CANWIRE_A_SLIP_NS, CANWIRE_A_SOURCE_STATS, CANWIRE_A_TAP_SIZE, CANWIRE_CMD_BUS_GET,
    CANWIRE_CMD_BUS_SET,
};

/// The state of a bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bus {
    /// The bus's name, 1…15 letters, digits, `-` or `_`.
    pub name: String,
    /// How many nodes it has.
    pub nodes: u32,
    /// The lateness of its timer, in ns, above which the wire waits instead of catching up; see [`set_slip`].
    pub slip_ns: u64,
    /// The bit rate of its source, in bit/s; `None` while no node is up.
    pub bitrate: Option<u32>,
    /// The bit rate of the data phase, in bit/s; `None` while no node is up.
    pub data_bitrate: Option<u32>,
    /// The counters of the bus.
    pub stats: BusStats,
    /// The counters of its source.
    pub source: SourceStats,
    /// The size of its tap's mapping in bytes.
    pub tap_bytes: u32,
}

/// The counters of a bus since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusStats {
    /// Frames sent and acknowledged without error.
    pub frames: u64,
    /// Frames that were destroyed or not acknowledged.
    pub errors: u64,
    /// The sum of the times from SOF to the end of EOF or of the error delimiter, in ns.
    pub busy_ns: u64,
    /// Bits of either rate in that time.
    pub bits: u64,
    /// How often the wire waited because its timer was late: the machine was too slow.
    pub slips: u64,
    /// The total time of these waits, in ns.
    pub slip_ns: u64,
    /// The greatest lateness of its timer, in ns.
    pub late_ns_max: u64,
    /// The sum of the lateness of its timer over all frames and errors, in ns.
    pub late_ns_sum: u64,
    /// Frames that nodes lost because their FIFO was full; sum over all nodes.
    pub overruns: u64,
    /// Runs of its timer.
    pub callbacks: u64,
    /// The time spent in the timer, in ns.
    pub callback_ns: u64,
    /// When its first frame started, in ns of `CLOCK_MONOTONIC`; 0: there was none.
    pub first_sof_ns: u64,
}

impl BusStats {
    /// From the numbers of `struct canwire_bus_stats`, in order.
    pub(crate) fn from_words(word: impl Fn(usize) -> u64) -> Self {
        Self {
            frames: word(0),
            errors: word(1),
            busy_ns: word(2),
            bits: word(3),
            slips: word(4),
            slip_ns: word(5),
            late_ns_max: word(6),
            late_ns_sum: word(7),
            overruns: word(8),
            callbacks: word(9),
            callback_ns: word(10),
            first_sof_ns: word(11),
        }
    }
}

impl Bus {
    pub(super) fn decode(attributes: Attributes<'_>) -> Option<Self> {
        let rate = |kind| attributes.get_u32(kind).filter(|&rate| rate != 0);
        let stats = attributes.get(CANWIRE_A_BUS_STATS).unwrap_or_default();
        Some(Self {
            name: attributes.get_text(CANWIRE_A_BUS)?,
            nodes: attributes.get_u32(CANWIRE_A_NODES).unwrap_or_default(),
            slip_ns: attributes.get(CANWIRE_A_SLIP_NS).and_then(|bytes| u64_at(bytes, 0)).unwrap_or_default(),
            bitrate: rate(CANWIRE_A_BITRATE),
            data_bitrate: rate(CANWIRE_A_DATA_BITRATE),
            stats: BusStats::from_words(|at| long(stats, 8 * at)),
            source: SourceStats::decode(attributes.get(CANWIRE_A_SOURCE_STATS).unwrap_or_default()),
            tap_bytes: attributes.get_u32(CANWIRE_A_TAP_SIZE).unwrap_or_default(),
        })
    }
}

/// All buses that have a node.
///
/// # Errors
/// `Unsupported` without the module.
pub fn buses() -> Result<Vec<Bus>> {
    let answers = list("buses", CANWIRE_CMD_BUS_GET, |_| {})?;
    Ok(each(&answers).filter_map(Bus::decode).collect())
}

/// The bus of this name.
///
/// # Errors
/// `ENOENT` when no node is on it; `Unsupported` without the module.
pub fn bus(name: &str) -> Result<Bus> {
    let thing = format!("bus {name}");
    let answers = get(&thing, CANWIRE_CMD_BUS_GET, |request| request.put_text(CANWIRE_A_BUS, name))?;
    let bus = each(&answers).find_map(Bus::decode);
    bus.ok_or_else(|| super::nothing(&thing))
}

/// Sets how late a bus's timer may be before the wire waits instead of catching up: 0: three times the frame that was
/// late, `u64::MAX`: it never waits.
///
/// # Errors
/// `ENOENT` when there is no such bus; `EPERM`.
pub fn set_slip(bus: &str, ns: u64) -> Result<()> {
    set(bus, |request| request.put_u64(CANWIRE_A_SLIP_NS, ns))
}

/// Sets where a bus's random errors begin; not 0.
///
/// # Errors
/// As [`set_slip`].
pub fn set_seed(bus: &str, seed: u64) -> Result<()> {
    set(bus, |request| request.put_u64(CANWIRE_A_SEED, seed))
}

fn set(bus: &str, fill: impl FnOnce(&mut crate::netlink::request::Request)) -> Result<()> {
    command(&format!("bus {bus}"), "set", CANWIRE_CMD_BUS_SET, |request| {
        request.put_text(CANWIRE_A_BUS, bus);
        fill(request);
    })
}
