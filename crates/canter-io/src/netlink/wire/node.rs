//! Nodes: CAN controllers on a virtual wire.

use super::{byte, command, each, get, list, long, word};
use crate::Result;
use crate::netlink::attribute::Attributes;
use crate::uapi::canwire::{
    CANWIRE_A_BUS, CANWIRE_A_CLOCK_DRIFT, CANWIRE_A_CONNECTED, CANWIRE_A_FD_TOLERANT, CANWIRE_A_FIFO_BYTES,
    CANWIRE_A_FIFO_FRAMES, CANWIRE_A_IFINDEX, CANWIRE_A_NAPI_ID, CANWIRE_A_NODE, CANWIRE_A_NODE_STATS,
    CANWIRE_A_SLOT, CANWIRE_A_TX_BUFFERS, CANWIRE_CMD_NODE_ADD, CANWIRE_CMD_NODE_DELETE,
    CANWIRE_CMD_NODE_GET,
};

/// The size of a receive FIFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fifo {
    /// Bytes, 16…4096. A frame takes 3 bytes (SFF) or 5 bytes (EFF) and its data. An SJA1000 has 64 bytes.
    Bytes(u32),
    /// Frames of any length, 1…512. An MPC5200 has 5.
    Frames(u32),
}

/// Options of a new node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeOptions {
    /// `None`: 64 bytes while FD is off, 32 frames while it is on.
    pub fifo: Option<Fifo>,
    /// 1…3; `None`: 2. With 1 a node never sends back to back.
    pub tx_buffers: Option<u8>,
    /// While FD is off, the node ignores FD frames instead of answering with error frames.
    pub fd_tolerant: bool,
    /// What the clock of its hardware stamps gains, in ppb, −1 000 000…1 000 000. 0: the stamps are of the real-time clock;
    /// otherwise of a clock that counts from the machine's start, as a controller's.
    pub clock_drift_ppb: i32,
}

/// The state of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The name of its interface.
    pub name: String,
    /// The index of its interface.
    pub index: u32,
    /// The bus it is on.
    pub bus: String,
    /// The node's place on the bus, 0…63: its bit in a record's [`pending`](crate::tap::Record::pending).
    pub slot: u8,
    /// `None` when it is the default of a controller that is down.
    pub fifo: Option<Fifo>,
    /// How many frames it can have ready for arbitration.
    pub tx_buffers: u8,
    /// See [`NodeOptions::fd_tolerant`].
    pub fd_tolerant: bool,
    /// See [`NodeOptions::clock_drift_ppb`].
    pub clock_drift_ppb: i32,
    /// Whether the node's wire is not cut.
    pub connected: bool,
    /// The NAPI id that `SO_BUSY_POLL` uses; 0 on kernels without busy polling.
    pub napi_id: u32,
    /// The counters of the node.
    pub stats: NodeStats,
}

/// The counters of a node since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeStats {
    /// Frames sent and acknowledged without error.
    pub sent: u64,
    /// Frames taken into the FIFO.
    pub received: u64,
    /// Frames lost because the FIFO was full.
    pub overruns: u64,
    /// How often it lost arbitration to another node.
    pub arbitration_lost: u64,
    /// Errors while it was the sender.
    pub errors_sent: u64,
    /// Errors while it was a receiver.
    pub errors_received: u64,
    /// How often it went bus-off.
    pub bus_offs: u64,
    /// Transmit error counter.
    pub tx_errors: u32,
    /// Receive error counter.
    pub rx_errors: u32,
    /// The fill level of the FIFO now, in the unit of its size.
    pub fifo_used: u32,
    /// The highest fill level of the FIFO.
    pub fifo_used_max: u32,
    /// Frames passed to the network stack.
    pub handed_over: u64,
    /// Frames dropped because no memory was available.
    pub dropped: u64,
    /// Errors that made no error frame.
    pub error_events_limited: u64,
}

impl NodeStats {
    fn decode(bytes: &[u8]) -> Self {
        Self {
            sent: long(bytes, 0),
            received: long(bytes, 8),
            overruns: long(bytes, 16),
            arbitration_lost: long(bytes, 24),
            errors_sent: long(bytes, 32),
            errors_received: long(bytes, 40),
            bus_offs: long(bytes, 48),
            tx_errors: word(bytes, 56),
            rx_errors: word(bytes, 60),
            fifo_used: word(bytes, 64),
            fifo_used_max: word(bytes, 68),
            handed_over: long(bytes, 72),
            dropped: long(bytes, 80),
            error_events_limited: long(bytes, 88),
        }
    }
}

impl Node {
    pub(super) fn decode(attributes: Attributes<'_>) -> Option<Self> {
        let flag = |kind| byte(attributes, kind).unwrap_or_default() != 0;
        let bytes = attributes.get_u32(CANWIRE_A_FIFO_BYTES).map(Fifo::Bytes);
        Some(Self {
            name: attributes.get_text(CANWIRE_A_NODE)?,
            index: attributes.get_u32(CANWIRE_A_IFINDEX).unwrap_or_default(),
            bus: attributes.get_text(CANWIRE_A_BUS)?,
            slot: byte(attributes, CANWIRE_A_SLOT).unwrap_or_default(),
            fifo: bytes.or_else(|| attributes.get_u32(CANWIRE_A_FIFO_FRAMES).map(Fifo::Frames)),
            tx_buffers: byte(attributes, CANWIRE_A_TX_BUFFERS).unwrap_or_default(),
            fd_tolerant: flag(CANWIRE_A_FD_TOLERANT),
            clock_drift_ppb: attributes.get_u32(CANWIRE_A_CLOCK_DRIFT).unwrap_or_default().cast_signed(),
            connected: flag(CANWIRE_A_CONNECTED),
            napi_id: attributes.get_u32(CANWIRE_A_NAPI_ID).unwrap_or_default(),
            stats: NodeStats::decode(attributes.get(CANWIRE_A_NODE_STATS).unwrap_or_default()),
        })
    }
}

/// Makes a node, and its bus when it is the first one there. Its interface is down and has no bit rate.
///
/// # Errors
/// `Unsupported` without the module; `EEXIST` when there is such an interface; `ENOSPC` with 64 nodes on the bus;
/// `EPERM` without `CAP_NET_ADMIN`; `EINVAL` for names and figures out of their range.
pub fn add(name: &str, bus: &str, options: &NodeOptions) -> Result<()> {
    command(name, "add", CANWIRE_CMD_NODE_ADD, |request| {
        request.put_text(CANWIRE_A_NODE, name);
        request.put_text(CANWIRE_A_BUS, bus);
        match options.fifo {
            Some(Fifo::Bytes(bytes)) => request.put_u32(CANWIRE_A_FIFO_BYTES, bytes),
            Some(Fifo::Frames(frames)) => request.put_u32(CANWIRE_A_FIFO_FRAMES, frames),
            None => {}
        }
        if let Some(buffers) = options.tx_buffers {
            request.put(CANWIRE_A_TX_BUFFERS, &[buffers]);
        }
        if options.fd_tolerant {
            request.put(CANWIRE_A_FD_TOLERANT, &[1]);
        }
        if options.clock_drift_ppb != 0 {
            request.put_u32(CANWIRE_A_CLOCK_DRIFT, options.clock_drift_ppb.cast_unsigned());
        }
    })
}

/// Removes a node, up or down; removing the last node removes its bus.
///
/// # Errors
/// `ENODEV` when there is none of that name; `EPERM`.
pub fn delete(name: &str) -> Result<()> {
    command(name, "delete", CANWIRE_CMD_NODE_DELETE, |request| request.put_text(CANWIRE_A_NODE, name))
}

/// All nodes of this network namespace.
///
/// # Errors
/// `Unsupported` without the module.
pub fn nodes() -> Result<Vec<Node>> {
    let answers = list("nodes", CANWIRE_CMD_NODE_GET, |_| {})?;
    Ok(each(&answers).filter_map(Node::decode).collect())
}

/// The nodes of one bus.
///
/// # Errors
/// `Unsupported` without the module.
pub fn nodes_of(bus: &str) -> Result<Vec<Node>> {
    Ok(nodes()?.into_iter().filter(|node| node.bus == bus).collect())
}

/// The node whose interface has this name.
///
/// # Errors
/// `ENODEV` when there is none; `Unsupported` without the module.
pub fn node(name: &str) -> Result<Node> {
    let answers = get(name, CANWIRE_CMD_NODE_GET, |request| request.put_text(CANWIRE_A_NODE, name))?;
    let node = each(&answers).find_map(Node::decode);
    node.ok_or_else(|| super::nothing(name))
}
