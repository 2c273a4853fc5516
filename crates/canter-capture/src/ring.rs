//! The packet ring of a recording. Its count of losses does not say of which interface they are, so it receives from the
//! recorded interfaces only: bound to the one, or from all of the machine except those that are left out.

use crate::{Result, buses::News, live::Live};
use canter_io::{
    capture_ring::{Block, CaptureRing},
    clock,
};
use std::io;

pub struct Ring {
    pub packets: CaptureRing,
    /// The only interface from which it receives.
    bound: Option<u32>,
    /// CAN interfaces that are up and not to be recorded, and those that came or changed since.
    left_out: Vec<u32>,
    /// Whether a filter is attached.
    is_filtered: bool,
    /// Whether interfaces that are not recorded took room, so that some of the losses may be theirs.
    pub is_shared: bool,
}

impl Ring {
    /// Opens a ring of `bytes`, which receives from the interface `bound`, or from all but those in `left_out`. Errors name
    /// it `thing`.
    pub fn open(thing: &str, bound: Option<u32>, left_out: &[u32], fd: bool, bytes: usize) -> Result<Self> {
        let packets = CaptureRing::open(thing, bound.unwrap_or(0), fd, bytes)?;
        let mut ring =
            Self { packets, bound, left_out: left_out.to_vec(), is_filtered: false, is_shared: false };
        ring.update_filter();
        // Between the opening and the filter it was open to all.
        ring.is_shared |=
            bound.is_none() && !left_out.is_empty() && ring.packets.drops().is_ok_and(|lost| lost > 0);
        Ok(ring)
    }

    /// Follows an interface that appeared or disappeared.
    pub fn follow(&mut self, news: &News, live: &Live) {
        match news {
            // Until now it could take room in the ring.
            News::Unwanted { index } if !self.left_out.contains(index) => {
                self.is_shared |= self.bound.is_none();
                self.left_out.push(*index);
                self.update_filter();
            }
            News::Found { interface, .. } if self.left_out.contains(&interface.index) => {
                self.left_out.retain(|index| *index != interface.index);
                self.update_filter();
            }
            _ => {}
        }
        let is_second = |index| matches!(news, News::Found { interface, .. } if interface.index != index);
        let is_removed = |index| self.packets.bound_interface().ok() != Some(Some(index));
        if self.bound.is_some_and(|index| is_second(index) || is_removed(index))
            && let Err(error) = self.receive_from_all()
        {
            live.alarm(format!("capture: receive from all interfaces: {error}"));
        }
    }

    /// Receives from all interfaces when the one has been removed, since the next may come up before its report is read, and
    /// when there is a second one.
    fn receive_from_all(&mut self) -> io::Result<()> {
        self.bound = None;
        self.update_filter();
        self.packets.bind_to_all()
    }

    /// Passes on the blocks that come in the next `ns`.
    pub fn receive_for(&mut self, ns: u64, mut take: impl FnMut(Block<'_>)) -> io::Result<()> {
        let until_ns = clock::monotonic_ns() + ns;
        loop {
            let left_ns = until_ns.saturating_sub(clock::monotonic_ns());
            match self.packets.next(left_ns, &mut take) {
                Err(error) if error.kind() != io::ErrorKind::NetworkDown => return Err(error),
                _ if left_ns == 0 => return Ok(()),
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Leaves out the interfaces that are not recorded. Without any there is no filter, which costs each frame's sender up to a
    /// hundred instructions.
    fn update_filter(&mut self) {
        let is_needed = self.is_filtered || !self.left_out.is_empty();
        if self.bound.is_some() || !is_needed {
            return;
        }
        self.is_filtered = true;
        if self.packets.leave_out(&self.left_out).is_err() {
            self.is_shared = true;
        }
    }
}
