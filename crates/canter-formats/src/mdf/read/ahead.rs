//! The next deflated block of a group, unpacked by a thread while the frames of this one are taken.

use super::data::unpack;
use crate::trouble::Trouble;
use std::{
    num::NonZero,
    thread::{self, JoinHandle},
};

/// The bytes of blocks that wait for their groups at most, packed and unpacked; a file may have hundreds of groups.
const BYTES_MAX: u64 = 32 << 20;

/// What a block unpacks to.
type Unpacked = Result<Vec<u8>, Trouble>;

/// How many bytes wait for their groups.
pub struct Ahead {
    /// On one processor a thread would take the time of this one.
    is_alone: bool,
    bytes: u64,
}

/// A block that a thread unpacks.
pub struct Pending {
    /// The block's offset.
    pub link: u64,
    bytes: u64,
    thread: JoinHandle<Unpacked>,
}

impl Default for Ahead {
    fn default() -> Self {
        Self { is_alone: thread::available_parallelism().map_or(1, NonZero::get) == 1, bytes: 0 }
    }
}

impl Ahead {
    /// Whether a block may be unpacked ahead: there is a second processor, and memory for its `bytes`, packed and unpacked.
    pub fn takes(&self, bytes: u64) -> bool {
        !self.is_alone && bytes <= BYTES_MAX - self.bytes
    }

    /// Starts to unpack a block; `None` if no thread can be started.
    pub fn unpack(&mut self, link: u64, block: Vec<u8>, bytes: u64) -> Option<Pending> {
        let thread = thread::Builder::new().name("unpack".to_owned()).spawn(move || unpack(&block)).ok()?;
        self.bytes += bytes;
        Some(Pending { link, bytes, thread })
    }

    /// Waits for a block; `None` if its thread has panicked.
    pub fn wait(&mut self, pending: Pending) -> Option<Unpacked> {
        self.bytes -= pending.bytes;
        pending.thread.join().ok()
    }
}
