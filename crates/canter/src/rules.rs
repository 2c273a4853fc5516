//! Rules: which frames a route hands on, and what it changes in them. One description for two engines, ours in user
//! space ([`engine`]) and the kernel's can-gw ([`jobs`]); where can-gw has a meaning for something, it is the meaning.
//!
//! A file ([`read`], [`write`]) has routes, a route has rules, a rule has filters, a change and limits.

mod checksum;
pub mod command;
pub mod counts;
pub mod document;
pub mod edit;
pub mod engine;
pub mod graph;
pub mod install;
pub mod jobs;
pub mod limit;
pub mod lookup;
pub mod read;
pub mod redirect;
pub mod select;
pub mod write;

use canter_io::{
    Filter,
    netlink::can_gw::{Crc8, Modification, Xor},
};
use document::Place;

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
    /// Where the file has it.
    pub place: Place,
}

/// What a route does with each frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    pub matching: Matching,
    pub rules: Vec<Rule>,
}

/// What happens to a frame that several rules match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Matching {
    /// The first rule of the file has it, as in a firewall.
    #[default]
    First,
    /// Every rule hands on a copy of its own, as can-gw's jobs do.
    All,
}

/// Which frames, and what becomes of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// For reports; empty when it has none.
    pub name: String,
    pub kinds: Kinds,
    /// A frame matches when any of these does; empty: every frame of its kinds.
    pub filters: Vec<Filter>,
    /// It ends here.
    pub drop: bool,
    pub change: Change,
    pub limit: Option<Limit>,
    pub convert: Option<Convert>,
    /// How often gateways of this machine may hand a frame on, from here on.
    pub hops: Option<u8>,
    /// Whether local sockets on the destination hear it; `None`: on a vcan, where nobody else could.
    pub echo: Option<bool>,
    /// can-gw: the frame keeps the stamp of its reception.
    pub keep_stamp: bool,
    /// can-gw: it may go back to where it came from.
    pub same_interface: bool,
    /// Where the file has it.
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

/// What is done to a frame, in this order: and, or, xor, set, then the checksums, CRC8 before XOR.
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
    /// Whether a frame comes out as it went in.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// So many frames of one identifier in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The mean distance of frames of one identifier.
    pub period_ns: u64,
    /// How many may come at once.
    pub burst: u32,
}

/// The other kind of frame that a rule makes, as its last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convert {
    /// An FD frame without bit rate switch.
    Fd,
    /// An FD frame with bit rate switch.
    FdBrs,
    /// A classic frame; of 0…8 bytes, or it is dropped.
    Classic,
}

impl Rule {
    /// A rule as people call it.
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
