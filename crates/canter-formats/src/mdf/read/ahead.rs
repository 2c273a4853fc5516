//! The next deflated block of a group, unpacked by a thread while the frames of this one are taken.

use super::data::unpack;
use crate::trouble::Trouble;
use std::{
    num::NonZero,
    sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel},
    thread,
};

/// The bytes of blocks that wait for their groups at most, packed and unpacked; a file may have hundreds of groups.
const BYTES_MAX: u64 = 32 << 20;

/// What a block unpacks to.
type Unpacked = Result<Vec<u8>, Trouble>;

/// A block, and where its data goes to.
type Job = (Vec<u8>, SyncSender<Unpacked>);

/// The thread that unpacks, and how many bytes wait for their groups.
#[derive(Default)]
pub struct Ahead {
    /// `None` before the first block; then perhaps no thread.
    thread: Option<Option<Sender<Job>>>,
    bytes: u64,
}

/// A block that the thread unpacks.
pub struct Pending {
    /// The block's offset.
    pub link: u64,
    bytes: u64,
    unpacked: Receiver<Unpacked>,
}

/// Starts the thread, unless it would take the time of this one: on one processor. It ends with the sender.
fn start() -> Option<Sender<Job>> {
    let (thread, jobs) = channel::<Job>();
    let unpack_all = move || {
        for (block, to) in jobs {
            // Nobody waits for it any more if the reader has ended.
            let _ = to.send(unpack(&block));
        }
    };
    let is_alone = thread::available_parallelism().map_or(1, NonZero::get) == 1;
    let is_started = !is_alone && thread::Builder::new().name("unpack".to_owned()).spawn(unpack_all).is_ok();
    is_started.then_some(thread)
}

impl Ahead {
    /// Whether there is a thread, and room for a block of so many bytes, packed and unpacked.
    pub fn takes(&mut self, bytes: u64) -> bool {
        bytes <= BYTES_MAX - self.bytes && self.thread.get_or_insert_with(start).is_some()
    }

    /// Has a block unpacked that it takes.
    pub fn unpack(&mut self, link: u64, block: Vec<u8>, bytes: u64) -> Option<Pending> {
        let (to, unpacked) = sync_channel(1);
        self.thread.as_ref()?.as_ref()?.send((block, to)).ok()?;
        self.bytes += bytes;
        Some(Pending { link, bytes, unpacked })
    }

    /// Waits for a block; `None` if the thread has died of it.
    pub fn wait(&mut self, pending: Pending) -> Option<Unpacked> {
        self.bytes -= pending.bytes;
        pending.unpacked.recv().ok()
    }
}
