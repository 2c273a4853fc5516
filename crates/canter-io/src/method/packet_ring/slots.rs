//! The slots of a TPACKET_V2 ring and our cursors in them: memory that the kernel shares, without any system call.
//!
//! A slot's status word names its owner. The side that hands a slot over sets the word last (release), the side that takes it
//! reads the word first (acquire).

use super::{SLOT_CLASSIC, TRANSMIT_OFFSET};
use crate::{
    Batch, Frame, Meta,
    batch::Clock,
    frame::{CAN_MTU, CANFD_MTU, EFF_MASK, ERR_FLAG},
    sys::{map::Map, socket},
};
use std::sync::atomic::{AtomicU32, Ordering};

// linux/if_packet.h
const _: () = assert!(size_of::<libc::tpacket2_hdr>() == TRANSMIT_OFFSET);
const _: () = assert!(std::mem::offset_of!(libc::tpacket2_hdr, tp_status) == 0);
// What stands in any slot: a header and an address, or a header and a frame.
const _: () = assert!(TRANSMIT_OFFSET + size_of::<libc::sockaddr_ll>() <= SLOT_CLASSIC);
const _: () = assert!(TRANSMIT_OFFSET + CANFD_MTU <= SLOT_CLASSIC);

/// Slots shared with the kernel.
pub(super) struct Slots {
    map: Map,
    slot_bytes: usize,
    /// The bytes that the slots take of the map.
    bytes: usize,
}

/// The byte at which a slot begins. Only [`Slots`] makes one, so no access has to check its bound again: that check and a
/// multiplication would cost 5 instructions a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place(usize);

impl Slots {
    /// The slots of `slot_bytes` that this memory holds; the size divides a block's, so that none crosses two.
    pub fn new(map: Map, slot_bytes: usize) -> Self {
        assert!(slot_bytes >= SLOT_CLASSIC && slot_bytes.is_multiple_of(16), "a slot of {slot_bytes} bytes");
        let count = map.bytes() / slot_bytes;
        assert!(count > 0, "a ring without slots");
        Self { map, slot_bytes, bytes: count * slot_bytes }
    }

    /// The first slot.
    fn first(&self) -> Place {
        Place(0)
    }

    /// The slot after `at`; after the last one comes the first.
    fn after(&self, at: Place) -> Place {
        let next = at.0 + self.slot_bytes;
        Place(if next == self.bytes { 0 } else { next })
    }

    /// The header of slot `at`.
    fn header(&self, at: Place) -> *mut libc::tpacket2_hdr {
        // SAFETY: a Place is the start of a slot of this map: `first` and `after` give no other.
        unsafe { self.map.start().as_ptr().add(at.0) }.cast()
    }

    /// The status word of slot `at`, which names its owner.
    fn status(&self, at: Place) -> &AtomicU32 {
        // SAFETY: the header begins with its status, which is 4-aligned and lives as long as the map; the kernel
        // changes it as one word.
        unsafe { AtomicU32::from_ptr(self.header(at).cast()) }
    }
}

/// Our cursor in a receive ring.
pub(super) struct Incoming {
    slots: Slots,
    next: Place,
    index: u32,
    /// Error frames wanted; all others are passed over here, which costs less than a program in the kernel.
    error_mask: u32,
}

impl Incoming {
    pub fn new(slots: Slots, index: u32, error_mask: u32) -> Self {
        Self { next: slots.first(), slots, index, error_mask }
    }

    /// Whether a slot waits for us.
    pub fn is_ready(&self) -> bool {
        self.slots.status(self.next).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Copies what the kernel has put into the ring, and gives the slots back.
    #[inline]
    pub fn take(&mut self, batch: &mut Batch) -> usize {
        let (frames, meta) = batch.spare();
        let (mut count, mut next) = (0, self.next);
        while let (Some(frame), Some(meta)) = (frames.get_mut(count), meta.get_mut(count)) {
            let slot = self.slots.header(next);
            // SAFETY: a slot begins with its status, 4-aligned, which lives as long as the map; the kernel changes it
            // as one word.
            let status = unsafe { AtomicU32::from_ptr(slot.cast()) };
            // Pairs with the kernel's barrier before it sets TP_STATUS_USER: the slot's content comes after this.
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                break;
            }
            // SAFETY: the status says that the slot is ours.
            let wanted = unsafe { copy(slot, self.slots.slot_bytes, frame, meta) }
                && (frame.can_id & ERR_FLAG == 0 || frame.can_id & EFF_MASK & self.error_mask != 0);
            meta.interface = self.index;
            count += usize::from(wanted);
            // Pairs with the kernel's reading of the status before it writes the slot again.
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            next = self.slots.after(next);
        }
        self.next = next;
        batch.commit(count);
        count
    }
}

/// Copies a received slot of `slot_bytes`; false when it holds no CAN frame.
///
/// # Safety
/// It is a slot of a map, and ours.
#[inline]
unsafe fn copy(
    slot: *const libc::tpacket2_hdr,
    slot_bytes: usize,
    frame: &mut Frame,
    meta: &mut Meta,
) -> bool {
    // SAFETY: the slot is ours, 16-aligned, and holds a whole header.
    let header = unsafe { &*slot };
    // SAFETY: packet_mmap.rst: a sockaddr_ll follows the header, aligned to TPACKET_ALIGNMENT.
    let address = unsafe { slot.add(1) }.cast::<libc::sockaddr_ll>();
    // SAFETY: as above, and the slot is ours.
    let address = unsafe { &*address };
    let bytes = match u16::from_be(address.sll_protocol) {
        socket::ETH_P_CAN => CAN_MTU,
        socket::ETH_P_CANFD => CANFD_MTU,
        _ => return false,
    };
    // The frame's place is the kernel's to name: none that reaches behind the slot is followed.
    let at = usize::from(header.tp_mac);
    if header.tp_snaplen as usize != bytes || at + bytes > slot_bytes {
        return false;
    }
    let to = std::ptr::from_mut(frame).cast::<u8>();
    // SAFETY: the kernel put `bytes` bytes there, inside of the slot.
    let from = unsafe { slot.cast::<u8>().add(at) };
    if bytes == CAN_MTU {
        // SAFETY: both places have 16 bytes and do not overlap; any bytes make a valid Frame.
        unsafe { to.copy_from_nonoverlapping(from, CAN_MTU) };
    } else {
        // SAFETY: both places have 72 bytes and do not overlap; any bytes make a valid Frame.
        unsafe { to.copy_from_nonoverlapping(from, CANFD_MTU) };
    }
    frame.received_as(bytes);
    let stamp_ns = u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec);
    *meta = Meta { stamp_ns, clock: Clock::Software, ..Meta::default() };
    true
}

/// Our cursors in a transmit ring. The kernel takes slots in order.
pub(super) struct Outgoing {
    slots: Slots,
    /// The slot to fill next.
    next: Place,
    /// The first slot that the kernel may not have taken yet.
    oldest: Place,
    /// Slots filled and, when last looked at, not taken by the kernel.
    waiting: usize,
    lost: u64,
}

impl Outgoing {
    pub fn new(slots: Slots) -> Self {
        Self { next: slots.first(), oldest: slots.first(), slots, waiting: 0, lost: 0 }
    }

    /// Slots filled and, when last looked at, not taken by the kernel.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Frames that the kernel refused.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Fills the next slot; false when it is still the kernel's.
    #[inline]
    pub fn put(&mut self, frame: &Frame) -> bool {
        // Pairs with the kernel's setting of TP_STATUS_AVAILABLE once the frame has left.
        if self.slots.status(self.next).load(Ordering::Acquire) != libc::TP_STATUS_AVAILABLE {
            self.look(); // frees slots that the kernel refused
            if self.slots.status(self.next).load(Ordering::Acquire) != libc::TP_STATUS_AVAILABLE {
                return false;
            }
        }
        let slot = self.slots.header(self.next);
        let bytes = frame.mtu();
        // SAFETY: the status says that the slot is ours.
        unsafe { (*slot).tp_len = bytes as u32 };
        // SAFETY: every slot has room for a frame behind its header.
        let to = unsafe { slot.cast::<u8>().add(TRANSMIT_OFFSET) };
        // SAFETY: `to` has room for `bytes`, a Frame has at least as many, and they do not overlap.
        unsafe { to.copy_from_nonoverlapping(std::ptr::from_ref(frame).cast(), bytes) };
        // Pairs with the kernel's reading of the status: the frame is complete before it is offered.
        self.slots.status(self.next).store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.next = self.slots.after(self.next);
        self.waiting += 1;
        true
    }

    /// Takes back the slots that the kernel has not taken, and returns how many. The kernel takes slots only in a call of
    /// sendto(2), and none is under way.
    pub fn abandon(&mut self) -> usize {
        self.look();
        let abandoned = self.waiting;
        for at in std::iter::successors(Some(self.oldest), |at| Some(self.slots.after(*at))).take(abandoned) {
            self.slots.status(at).store(libc::TP_STATUS_AVAILABLE, Ordering::Release);
        }
        (self.next, self.waiting) = (self.oldest, 0);
        abandoned
    }

    /// Counts anew how many offered slots the kernel has not taken.
    pub fn look(&mut self) {
        while self.waiting > 0 {
            match self.slots.status(self.oldest).load(Ordering::Acquire) {
                libc::TP_STATUS_SEND_REQUEST => return,
                libc::TP_STATUS_WRONG_FORMAT => {
                    self.lost += 1;
                    self.slots.status(self.oldest).store(libc::TP_STATUS_AVAILABLE, Ordering::Release);
                }
                _ => {}
            }
            self.oldest = self.slots.after(self.oldest);
            self.waiting -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Identifier;

    const SLOTS: usize = 4;

    fn slots() -> Slots {
        Slots::new(Map::plain(SLOTS * SLOT_CLASSIC), SLOT_CLASSIC)
    }

    fn frame(number: u16) -> Frame {
        Frame::classic(Identifier::Sff(number), &number.to_be_bytes()).unwrap()
    }

    /// The slot with number `at`.
    fn place(slots: &Slots, at: usize) -> Place {
        (0..at).fold(slots.first(), |place, _| slots.after(place))
    }

    /// What the kernel does with a frame that it receives: it fills slot `at`, with the frame at byte `mac`.
    fn fill(slots: &Slots, at: usize, frame: &Frame, mac: usize) {
        let header = libc::tpacket2_hdr {
            tp_status: 0,
            tp_len: 16,
            tp_snaplen: frame.mtu() as u32,
            tp_mac: mac as u16,
            tp_net: mac as u16,
            tp_sec: 3,
            tp_nsec: 7,
            tp_vlan_tci: 0,
            tp_vlan_tpid: 0,
            tp_padding: [0; 4],
        };
        let at = place(slots, at);
        let slot = slots.header(at);
        assert_eq!(slots.status(at).load(Ordering::Acquire), libc::TP_STATUS_KERNEL);
        let protocol = if frame.is_fd() { socket::ETH_P_CANFD } else { socket::ETH_P_CAN };
        // SAFETY: the slot is the kernel's.
        unsafe { slot.write(header) };
        // SAFETY: a slot has room for the address behind the header.
        let address = unsafe { slot.add(1) }.cast::<libc::sockaddr_ll>();
        // SAFETY: as above, and the slot is the kernel's.
        unsafe { address.write(socket::packet_address(1, protocol)) };
        if mac + frame.mtu() <= slots.slot_bytes {
            // SAFETY: inside of the slot.
            let place = unsafe { slot.cast::<u8>().add(mac) };
            // SAFETY: a frame has as many bytes, and they do not overlap.
            unsafe { place.copy_from_nonoverlapping(std::ptr::from_ref(frame).cast(), frame.mtu()) };
        }
        slots.status(at).store(libc::TP_STATUS_USER, Ordering::Release);
    }

    #[test]
    fn frames_come_out_in_order_and_slots_go_back_round_after_round() {
        let mut ring = Incoming::new(slots(), 5, 0);
        let mut batch = Batch::new(8);
        for number in (0..20u16).step_by(2) {
            (number..number + 2).for_each(|n| fill(&ring.slots, usize::from(n) % SLOTS, &frame(n), 80));
            batch.clear();
            assert!(ring.is_ready());
            assert_eq!((ring.take(&mut batch), ring.is_ready()), (2, false));
            assert_eq!(batch.frames(), [frame(number), frame(number + 1)]);
            assert_eq!((batch.meta()[0].stamp_ns, batch.meta()[0].interface), (3_000_000_007, 5));
        }
    }

    #[test]
    fn a_batch_without_room_leaves_slots_where_they_are() {
        let mut ring = Incoming::new(slots(), 5, 0);
        (0..SLOTS).for_each(|at| fill(&ring.slots, at, &frame(at as u16), 80));
        let mut batch = Batch::new(3);
        assert_eq!((ring.take(&mut batch), ring.take(&mut batch)), (3, 0));
        batch.clear();
        assert_eq!((ring.take(&mut batch), batch.frames()), (1, &[frame(3)][..]));
    }

    #[test]
    fn a_frame_that_would_reach_behind_its_slot_is_passed_over() {
        let mut ring = Incoming::new(slots(), 5, 0);
        for (at, mac) in
            [SLOT_CLASSIC - CAN_MTU, SLOT_CLASSIC - CAN_MTU + 1, SLOT_CLASSIC, 0xffff].iter().enumerate()
        {
            fill(&ring.slots, at, &frame(at as u16), *mac);
        }
        let mut batch = Batch::new(8);
        assert_eq!((ring.take(&mut batch), batch.frames()), (1, &[frame(0)][..]));
        assert_eq!(ring.slots.status(place(&ring.slots, 3)).load(Ordering::Acquire), libc::TP_STATUS_KERNEL);
    }

    #[test]
    fn error_frames_are_passed_over_unless_their_class_is_wanted() {
        for (mask, expected) in [(0, 0), (2, 0), (4, 1)] {
            let mut ring = Incoming::new(slots(), 5, mask);
            let mut error = frame(0);
            error.can_id = ERR_FLAG | 4;
            fill(&ring.slots, 0, &error, 80);
            assert_eq!(ring.take(&mut Batch::new(8)), expected, "mask {mask}");
        }
    }

    #[test]
    fn a_full_transmit_ring_takes_no_more_until_the_kernel_has_sent() {
        let mut ring = Outgoing::new(slots());
        for round in 0..3 {
            (0..SLOTS).for_each(|n| assert!(ring.put(&frame(n as u16))));
            assert!(!ring.put(&frame(9)));
            assert_eq!((ring.waiting(), ring.lost()), (SLOTS, round));
            for number in 0..SLOTS {
                let at = place(&ring.slots, number);
                assert_eq!(ring.slots.status(at).load(Ordering::Acquire), libc::TP_STATUS_SEND_REQUEST);
                // SAFETY: offered, so it is the kernel's.
                assert_eq!(unsafe { (*ring.slots.header(at)).tp_len }, 16);
                let refused = number == 1;
                let status = if refused { libc::TP_STATUS_WRONG_FORMAT } else { libc::TP_STATUS_AVAILABLE };
                ring.slots.status(at).store(status, Ordering::Release);
            }
            ring.look();
            assert_eq!((ring.waiting(), ring.lost()), (0, round + 1));
        }
    }
}
