//! Batches: frames and the metadata of each, with a fixed capacity; nothing allocates after `new`.
//!
//! The frames are contiguous in memory, so that received frames can be transmitted without copying.

use crate::Frame;

/// The default capacity in frames. 8 frames already give about 90 % of the gain of batching, 256 give no more, and a
/// larger batch waits longer for its last frame.
pub const BATCH_FRAMES: usize = 64;

/// Which clock a stamp was read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Stamps were not requested.
    #[default]
    None,
    /// The kernel's real-time clock, read when the driver handed the frame over (`SO_TIMESTAMPNS`).
    Software,
    /// The controller's own clock.
    Hardware,
    /// The clock of a simulated bus.
    Simulated,
}

/// Whether this machine sent the frame itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// Unknown: the method cannot distinguish (packet rings, and `read` without stamps).
    #[default]
    Unknown,
    /// Received from the bus.
    Bus,
    /// An echo of a frame that a process of this machine sent (`MSG_DONTROUTE`).
    Local,
    /// An echo of a frame that this socket sent (`MSG_CONFIRM`).
    Own,
}

/// The metadata of a received frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// When it was received, in ns of `clock`; 0 when stamps were not requested.
    pub stamp_ns: u64,
    /// The index of the receiving interface.
    pub interface: u32,
    /// Frames that this receiver's queue had lost when this frame was queued (`SO_RXQ_OVFL`), if the method reports it;
    /// `Receive::drops` is exact.
    pub drops: u32,
    /// The clock of the stamp.
    pub clock: Clock,
    /// Whether this machine sent it.
    pub origin: Origin,
}

/// Received frames with their [`Meta`], up to a fixed capacity.
#[derive(Debug)]
pub struct Batch {
    frames: Box<[Frame]>,
    meta: Box<[Meta]>,
    len: usize,
}

impl Batch {
    /// An empty batch for up to `capacity` frames.
    ///
    /// # Panics
    /// When `capacity` is 0.
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a batch holds at least one frame");
        let frames = vec![Frame::default(); capacity].into_boxed_slice();
        Self { frames, meta: vec![Meta::default(); capacity].into_boxed_slice(), len: 0 }
    }

    /// The frames received so far, in order.
    #[inline]
    pub fn frames(&self) -> &[Frame] {
        &self.frames[..self.len]
    }

    /// The received frames, to be rewritten in place.
    #[inline]
    pub fn frames_mut(&mut self) -> &mut [Frame] {
        &mut self.frames[..self.len]
    }

    /// The received frames, to be rewritten in place, and what is known about each.
    #[inline]
    pub fn frames_mut_and_meta(&mut self) -> (&mut [Frame], &[Meta]) {
        (&mut self.frames[..self.len], &self.meta[..self.len])
    }

    /// What is known about each frame, in the same order.
    #[inline]
    pub fn meta(&self) -> &[Meta] {
        &self.meta[..self.len]
    }

    /// Frames with their meta.
    pub fn iter(&self) -> impl Iterator<Item = (&Frame, &Meta)> {
        self.frames().iter().zip(self.meta())
    }

    /// How many frames are in it.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many frames it can hold.
    pub fn capacity(&self) -> usize {
        self.frames.len()
    }

    /// How many more fit.
    #[inline]
    pub fn room(&self) -> usize {
        self.frames.len() - self.len
    }

    /// Forgets all frames; their memory stays.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds one frame.
    ///
    /// # Panics
    /// When the batch is full; a receiver looks at [`room`](Self::room) first.
    pub fn push(&mut self, frame: &Frame, meta: Meta) {
        self.frames[self.len] = *frame;
        self.meta[self.len] = meta;
        self.len += 1;
    }

    /// The next unused place, if there is one; [`commit`](Self::commit) counts it in.
    #[inline]
    pub fn place(&mut self) -> Option<(&mut Frame, &mut Meta)> {
        self.frames.get_mut(self.len).zip(self.meta.get_mut(self.len))
    }

    /// The unused places, for a method that lets the kernel write into them; [`commit`](Self::commit) counts them in.
    pub fn spare(&mut self) -> (&mut [Frame], &mut [Meta]) {
        (&mut self.frames[self.len..], &mut self.meta[self.len..])
    }

    /// Counts the first `count` spare places in.
    ///
    /// # Panics
    /// When there are fewer.
    #[inline]
    pub fn commit(&mut self, count: usize) {
        assert!(count <= self.room(), "a receiver filled more places than there were");
        self.len += count;
    }

    /// Keeps the frames for which `keep` returns true, in order.
    pub fn retain(&mut self, mut keep: impl FnMut(&Frame, &Meta) -> bool) {
        let mut kept = 0;
        for at in 0..self.len {
            if keep(&self.frames[at], &self.meta[at]) {
                self.frames[kept] = self.frames[at];
                self.meta[kept] = self.meta[at];
                kept += 1;
            }
        }
        self.len = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retain_keeps_frames_and_meta_together_and_in_order() {
        let mut batch = Batch::new(8);
        for n in 0..8u32 {
            let frame = Frame::classic(crate::Identifier::Sff(n as u16), &[n as u8]).unwrap();
            batch.push(&frame, Meta { stamp_ns: u64::from(n), ..Meta::default() });
        }
        batch.retain(|frame, _| frame.data()[0] % 3 == 0);
        let kept: Vec<_> = batch.iter().map(|(frame, meta)| (frame.data()[0], meta.stamp_ns)).collect();
        assert_eq!(kept, [(0, 0), (3, 3), (6, 6)]);
        assert_eq!(batch.room(), 5);
    }
}
