//! The packet ring of a recording. Its count of losses does not say of which interface they are, so it receives from the
//! recorded interfaces only: bound to the one, or from all of the machine except those that are left out.

use crate::{Result, buses::News, live::Live};
use canter_io::capture_ring::CaptureRing;
use std::io;

pub struct Ring {
    pub packets: CaptureRing,
    /// The only interface from which it receives.
    bound: Option<u32>,
    /// CAN interfaces that exist and are not to be recorded.
    left_out: Vec<u32>,
    /// Whether interfaces that are not recorded took room, so that some of the losses may be theirs.
    pub is_shared: bool,
}

impl Ring {
    /// Opens a ring of `bytes`, which receives from the interface `bound`, or from all but those in `left_out`. Errors name
    /// it `thing`.
    pub fn open(thing: &str, bound: Option<u32>, left_out: &[u32], fd: bool, bytes: usize) -> Result<Self> {
        let packets = CaptureRing::open(thing, bound.unwrap_or(0), fd, bytes)?;
        let mut ring = Self { packets, bound, left_out: left_out.to_vec(), is_shared: false };
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
            News::Found(interface) if self.left_out.contains(&interface.index) => {
                self.left_out.retain(|index| *index != interface.index);
                self.update_filter();
            }
            _ => {}
        }
        let is_second = |index| matches!(news, News::Found(interface) if interface.index != index);
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

    fn update_filter(&mut self) {
        if self.bound.is_none() && self.packets.leave_out(&self.left_out).is_err() {
            self.is_shared = true;
        }
    }
}
