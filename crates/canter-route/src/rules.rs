//! Rules: which frames a route forwards, and how it changes them. One description for two engines: canter's in user space
//! ([`engine`]) and the kernel's can-gw ([`jobs`]). If can-gw defines the meaning of a property, that meaning applies.
//!
//! Names of messages and signals ([`signals`]) become filters and bits when a file is read, so no frame costs more for them.
//!
//! A file ([`read`], [`write`]) has routes, a route has rules, a rule has filters, a change and limits.

mod checksum;
pub mod command;
pub mod counts;
pub mod edit;
pub mod engine;
pub mod graph;
pub mod install;
pub mod jobs;
pub mod limit;
pub mod lookup;
pub mod read;
pub mod select;
mod signals;
pub mod write;

use canter_cli::document::Place;
use canter_io::{
    Filter,
    netlink::can_gw::{Crc8, Modification, Xor},
};

/// A rule file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleSet {
    pub routes: Vec<RouteRules>,
    /// Rules that belong to no route of the file: for the route that the command line names.
    pub loose: Option<Policy>,
}

/// One direction from an interface to another.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteRules {
    pub from: String,
    pub to: String,
    pub policy: Policy,
    /// The route's position in the file.
    pub place: Place,
}

/// The rules of a route.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    pub matching: Matching,
    pub rules: Vec<Rule>,
}

/// Which rules apply to a frame that several rules match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Matching {
    /// The first one in the file, as in a firewall.
    #[default]
    First,
    /// All: each rule forwards a copy, as can-gw's jobs do.
    All,
}

/// Selects frames, and drops, changes, limits or converts them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// For reports; may be empty.
    pub name: String,
    pub kinds: Kinds,
    /// A frame matches when any filter matches; empty: every frame of these kinds.
    pub filters: Vec<Filter>,
    /// Drop the frame.
    pub drop: bool,
    pub change: Change,
    pub limit: Option<Limit>,
    pub convert: Option<Convert>,
    /// How many more times gateways of this machine may forward the frame.
    pub hops: Option<u8>,
    /// Whether local sockets on the destination receive the frame; `None`: only on a vcan, which has no other receivers.
    pub echo: Option<bool>,
    /// can-gw: the frame keeps the stamp of its reception.
    pub keep_stamp: bool,
    /// can-gw: the frame may go back to the interface that received it.
    pub same_interface: bool,
    /// The rule's position in the file.
    pub place: Place,
}

/// Classic frames, FD frames, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds {
    pub classic: bool,
    pub fd: bool,
}

impl Default for Kinds {
    fn default() -> Self {
        Self { classic: true, fd: true }
    }
}

/// The changes of a frame, in this order: and, or, xor, set, then the checksums, CRC8 before XOR.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    pub and: Modification,
    pub or: Modification,
    pub xor: Modification,
    pub set: Modification,
    pub crc8: Option<Crc8>,
    pub xor_checksum: Option<Xor>,
}

impl Change {
    /// Whether frames stay unchanged.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A rate limit of each identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The mean time between two frames of the same identifier.
    pub period_ns: u64,
    /// Number of frames that may arrive at once.
    pub burst: u32,
}

/// The kind of frame to which a rule converts, as its last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convert {
    /// An FD frame without bit rate switch.
    Fd,
    /// An FD frame with bit rate switch.
    FdBrs,
    /// A classic frame; a frame of more than 8 bytes is dropped.
    Classic,
}

impl Rule {
    /// The rule's name, or `rule 3` by its index.
    pub fn label(&self, at: usize) -> String {
        if self.name.is_empty() { format!("rule {}", at + 1) } else { self.name.clone() }
    }
}

impl RouteRules {
    /// `can3 → can4`, for messages.
    pub fn label(&self) -> String {
        format!("{} → {}", self.from, self.to)
    }
}
