//! Rings for recording: PF_PACKET receive rings (TPACKET_V3). The kernel hands over blocks of many frames, so that
//! there is no system call or wake-up per frame. They are not in the method tables, because a frame waits for its
//! block.
//!
//! - There are two rings, *lanes*: one bound to `ETH_P_CAN`, one to `ETH_P_CANFD`. A packet socket bound to a protocol
//!   sees no copies of what is sent and no Ethernet; one of `ETH_P_ALL` gets both and would sort them out at a cost.
//! - Blocks of both lanes are handed out in the order in which the kernel opened them. Inside a block, and between
//!   blocks, stamps may step back by as long as a block stays open, about [`BLOCK_SPAN_NS`]: the caller merges, and
//!   [`CaptureRing::complete_until_ns`] returns how far it may.
//! - Small blocks: one that is retired half-filled wastes the rest of its space while the reader is stalled.
//! - The kernel's layout: linux/if_packet.h; its behaviour: Documentation/networking/packet_mmap.rst and
//!   net/packet/af_packet.c.
#![allow(unsafe_code)]

use crate::{
    Error, Result,
    captured::Captured,
    frame::{CAN_MTU, CANFD_MTU},
    packet_filter::{self, Instruction},
    sys::{
        clock,
        map::Map,
        poll,
        socket::{self, Socket},
    },
};
use std::{
    io,
    mem::offset_of,
    os::fd::{AsFd, BorrowedFd},
    slice,
    sync::atomic::{AtomicU32, Ordering},
};

/// Bytes of a block. 585 classic frames (112 bytes each) or 390 FD frames (168) fit.
pub const BLOCK_BYTES: usize = 64 << 10;
/// The default size of both lanes together, in bytes: 0.7 s of 20 buses at full load (425 540 frames/s).
pub const RING_BYTES: usize = 64 << 20;
/// Without FD interfaces, the lane for FD frames has this share of the ring's size on top: FD may be switched on later.
const FD_RESERVE: usize = 16;
/// The fewest blocks of a lane: the kernel fills one while this program reads the other.
const LANE_BLOCKS_MIN: usize = 2;
/// The time in ms after which the kernel hands over a block that is not full.
const RETIRE_MS: u32 = 20;
/// The longest time that a block stays open, in ns: the kernel's timer runs every 20 ms and leaves a block open
/// that was opened since its last run; a jiffy is up to 10 ms.
pub const BLOCK_SPAN_NS: u64 = (2 * RETIRE_MS as u64 + 20) * 1_000_000;
/// The most blocks per call, so that the caller can check its flags in between.
const BLOCKS_A_CALL: usize = 64;

/// `struct tpacket3_hdr`, which begins a frame's place, and the `struct sockaddr_ll` behind it.
const HEADER_BYTES: usize = size_of::<libc::tpacket3_hdr>() + size_of::<libc::sockaddr_ll>();
const INTERFACE_AT: usize = size_of::<libc::tpacket3_hdr>() + offset_of!(libc::sockaddr_ll, sll_ifindex);

// linux/if_packet.h, as the code below reads it.
const _: () = assert!(size_of::<libc::tpacket3_hdr>() == 48 && INTERFACE_AT == 52);
const _: () = assert!(offset_of!(libc::tpacket3_hdr, tp_next_offset) == 0);
const _: () = assert!(offset_of!(libc::tpacket3_hdr, tp_sec) == 4);
const _: () = assert!(offset_of!(libc::tpacket3_hdr, tp_nsec) == 8);
const _: () = assert!(offset_of!(libc::tpacket3_hdr, tp_snaplen) == 12);
const _: () = assert!(offset_of!(libc::tpacket3_hdr, tp_mac) == 24);
const _: () = assert!(offset_of!(libc::tpacket_block_desc, hdr) == STATUS_AT);
const _: () = assert!(offset_of!(libc::tpacket_hdr_v1, block_status) == 0);
const _: () = assert!(offset_of!(libc::tpacket_hdr_v1, num_pkts) == COUNT_AT - STATUS_AT);
const _: () = assert!(offset_of!(libc::tpacket_hdr_v1, offset_to_first_pkt) == FIRST_AT - STATUS_AT);
const _: () = assert!(offset_of!(libc::tpacket_hdr_v1, ts_first_pkt) == OPENED_AT - STATUS_AT);

/// Offsets in a block.
const STATUS_AT: usize = 8;
const COUNT_AT: usize = 12;
const FIRST_AT: usize = 16;
const OPENED_AT: usize = 32;

/// The native word at `at`; 0 where there is none.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|word| word.first_chunk()).map_or(0, |word| u32::from_ne_bytes(*word))
}

/// A block of frames. The kernel does not write to it until this program gives it back.
#[derive(Clone, Copy)]
pub struct Block<'a> {
    bytes: &'a [u8],
    mtu: usize,
}

impl<'a> Block<'a> {
    /// A block that lies in the program's own memory as the kernel would have filled it.
    pub fn in_memory(bytes: &'a [u8], fd: bool) -> Self {
        Self { bytes, mtu: if fd { CANFD_MTU } else { CAN_MTU } }
    }

    /// How many frames are in it.
    pub fn len(&self) -> usize {
        word(self.bytes, COUNT_AT) as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it holds FD frames; all of a block are of one kind.
    pub fn is_fd(&self) -> bool {
        self.mtu == CANFD_MTU
    }

    /// The block's frames in order of arrival; packets that do not have the size of a frame are skipped.
    pub fn records(&self) -> Records<'a> {
        Records {
            bytes: self.bytes,
            mtu: self.mtu,
            at: word(self.bytes, FIRST_AT) as usize,
            left: self.len(),
        }
    }
}

/// The frames of a [`Block`].
pub struct Records<'a> {
    bytes: &'a [u8],
    mtu: usize,
    at: usize,
    left: usize,
}

impl<'a> Iterator for Records<'a> {
    type Item = Captured<'a>;

    #[inline]
    fn next(&mut self) -> Option<Captured<'a>> {
        loop {
            self.left = self.left.checked_sub(1)?;
            let place = self.bytes.get(self.at..)?;
            let header: &[u8; HEADER_BYTES] = place.first_chunk()?;
            let field =
                |at: usize| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
            self.at += field(0) as usize;
            if field(12) as usize != self.mtu {
                continue;
            }
            let start = usize::from(u16::from_ne_bytes([header[24], header[25]]));
            let bytes = place.get(start..start + self.mtu)?;
            let stamp_ns = u64::from(field(4)) * 1_000_000_000 + u64::from(field(8));
            return Some(Captured::new(stamp_ns, field(INTERFACE_AT), bytes));
        }
    }
}

/// A ring with its socket.
struct Lane {
    // Before the socket, so that the memory goes first.
    map: Map,
    socket: Socket,
    blocks: usize,
    next: usize,
    mtu: usize,
    lost: u64,
}

impl Lane {
    fn open(thing: &str, index: u32, mtu: usize, bytes: usize) -> Result<Self> {
        let step = |step: &'static str| move |error| Error::new(thing, step, error);
        let socket = Socket::packet().map_err(|error| {
            let permitted = error.kind() != io::ErrorKind::PermissionDenied;
            let error = Error::new(thing, "PF_PACKET socket", error);
            if permitted { error } else { error.hint("needs CAP_NET_RAW: run as root") }
        })?;
        let blocks = (bytes / BLOCK_BYTES).max(LANE_BLOCKS_MIN);
        // SAFETY: an all-zero tpacket_req3 is a valid value.
        let mut request: libc::tpacket_req3 = unsafe { std::mem::zeroed() };
        request.tp_block_size = BLOCK_BYTES as u32;
        request.tp_block_nr = blocks as u32;
        request.tp_frame_size = BLOCK_BYTES as u32; // of no meaning in this version, but checked
        request.tp_frame_nr = blocks as u32;
        request.tp_retire_blk_tov = RETIRE_MS;
        let version = libc::tpacket_versions::TPACKET_V3 as i32;
        socket.set(libc::SOL_PACKET, libc::PACKET_VERSION, version).map_err(step("PACKET_VERSION"))?;
        socket
            .set(libc::SOL_PACKET, libc::PACKET_RX_RING, request)
            .map_err(|error| Error::new(thing, "PACKET_RX_RING", error).hint("try a smaller ring"))?;
        // The stamp is that of the driver's hand-over only while some socket asks for such stamps.
        socket.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1i32).map_err(step("SO_TIMESTAMPNS"))?;
        let map = Map::read_write(socket.as_fd(), blocks * BLOCK_BYTES).map_err(step("mmap"))?;
        let lane = Self { map, socket, blocks, next: 0, mtu, lost: 0 };
        lane.bind(index).map_err(step("bind"))?;
        Ok(lane)
    }

    fn bind(&self, index: u32) -> io::Result<()> {
        let protocol = if self.mtu == CANFD_MTU { socket::ETH_P_CANFD } else { socket::ETH_P_CAN };
        self.socket.bind_packet(index, protocol)
    }

    /// The protocol of the other lane, whose frames have another size: [`Block::records`] skips them.
    fn other_protocol(&self) -> u16 {
        if self.mtu == CANFD_MTU { socket::ETH_P_CAN } else { socket::ETH_P_CANFD }
    }

    fn status(&self) -> &AtomicU32 {
        assert!(self.next < self.blocks, "no such block");
        // SAFETY: the map has `blocks` blocks of BLOCK_BYTES.
        let start = unsafe { self.map.start().as_ptr().add(self.next * BLOCK_BYTES + STATUS_AT) };
        // SAFETY: a 4-aligned word that lives as long as the map; the kernel changes it as one word.
        unsafe { AtomicU32::from_ptr(start.cast()) }
    }

    /// The next block, if the kernel has handed it over.
    fn ready(&self) -> Option<Block<'_>> {
        // Pairs with the kernel's barrier before it sets TP_STATUS_USER: the block's content comes after this.
        if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the map has `blocks` blocks of BLOCK_BYTES, and `status` checked `next`.
        let start = unsafe { self.map.start().as_ptr().add(self.next * BLOCK_BYTES) };
        // SAFETY: packet_mmap.rst: a block of status TP_STATUS_USER is the user's; the kernel does not touch it until
        // `release`, which needs `self` mutably, so that no Block lives then.
        Some(Block { bytes: unsafe { slice::from_raw_parts(start, BLOCK_BYTES) }, mtu: self.mtu })
    }

    /// When the kernel opened the next block, if it has handed it over.
    fn opened(&self) -> Option<(u32, u32)> {
        self.ready().map(|block| (word(block.bytes, OPENED_AT), word(block.bytes, OPENED_AT + 4)))
    }

    /// When the next block was opened, unless it is the kernel's and still empty.
    fn pending_since_ns(&self) -> Option<u64> {
        let field = |at: usize| {
            // SAFETY: inside the block whose status word this is.
            let place = unsafe { self.status().as_ptr().byte_add(at - STATUS_AT) };
            // SAFETY: a 4-aligned word that lives as long as the map; the kernel changes it as one word.
            u64::from(unsafe { AtomicU32::from_ptr(place) }.load(Ordering::Acquire))
        };
        (field(COUNT_AT) > 0).then(|| field(OPENED_AT) * 1_000_000_000 + field(OPENED_AT + 4))
    }

    fn release(&mut self) {
        // Pairs with the kernel's reading of the status before it writes into the block again.
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = if self.next + 1 == self.blocks { 0 } else { self.next + 1 };
    }

    /// Stops receiving into the ring; its frames stay.
    fn close(&self) -> io::Result<()> {
        let nothing = Instruction { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 };
        self.socket.attach_filter(&[nothing])
    }

    /// Frames lost because no block was free; each reading resets the kernel's counter.
    fn drops(&mut self) -> io::Result<u64> {
        // struct tpacket_stats_v3: packets, which include the drops, drops, and how often the queue froze.
        let [_, drops, _]: [u32; 3] = self.socket.get(libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
        self.lost += u64::from(drops);
        Ok(self.lost)
    }
}

/// Receives all frames of one interface or of all interfaces, in blocks.
pub struct CaptureRing {
    lanes: Vec<Lane>,
}

impl CaptureRing {
    /// Starts to receive on the interface with this index, 0 for all; `thing` names it in errors. `bytes` is the memory
    /// of all lanes, at least four blocks. Without `fd` it is the memory for classic frames, and a sixteenth of it on top
    /// is for FD frames, in case an interface is switched to FD.
    ///
    /// # Errors
    /// `EPERM` without CAP_NET_RAW, `ENOMEM`, `ENODEV`.
    pub fn open(thing: &str, index: u32, fd: bool, bytes: usize) -> Result<Self> {
        let (classic, with_fd) = if fd { (bytes / 2, bytes / 2) } else { (bytes, bytes / FD_RESERVE) };
        let lane = |mtu, bytes| Lane::open(thing, index, mtu, bytes);
        Ok(Self { lanes: vec![lane(CAN_MTU, classic)?, lane(CANFD_MTU, with_fd)?] })
    }

    /// Receives from all interfaces from now on: for an interface that was deleted or moved away, and may return.
    ///
    /// # Errors
    /// The error of bind(2).
    pub fn bind_to_all(&self) -> io::Result<()> {
        self.lanes.iter().try_for_each(|lane| {
            // packet_do_bind() does nothing for the protocol and the device that a socket had last, and the removal of
            // its device left it with none: only another protocol makes it receive again.
            lane.socket.bind_packet(0, lane.other_protocol())?;
            lane.bind(0)
        })
    }

    /// Receives nothing from the interfaces with these indexes from now on, and again from those of an earlier call: their
    /// frames take no room in the ring.
    ///
    /// # Errors
    /// `EINVAL` for more than 2047 indexes, `ENOMEM` for more than `net.core.optmem_max` takes.
    pub fn leave_out(&self, indexes: &[u32]) -> io::Result<()> {
        let program = packet_filter::leave_out(indexes);
        self.lanes.iter().try_for_each(|lane| lane.socket.attach_filter(&program))
    }

    /// The index of the only interface from which it receives; `None`: it receives from all, or that one has been removed.
    ///
    /// # Errors
    /// The error of getsockname(2).
    pub fn bound_interface(&self) -> io::Result<Option<u32>> {
        self.lanes[0].socket.bound_interface()
    }

    /// Passes the waiting blocks to `take` and gives them back to the kernel; waits up to `timeout_ns` for the first.
    /// Returns how many; their number per call is limited, so call it again.
    ///
    /// # Errors
    /// `ENETDOWN` once when the interface that it is bound to went down or was removed; reception continues when the
    /// interface comes up again.
    pub fn next(&mut self, timeout_ns: u64, mut take: impl FnMut(Block<'_>)) -> io::Result<usize> {
        if self.oldest().is_none() {
            let descriptors: Vec<BorrowedFd<'_>> =
                self.lanes.iter().map(|lane| lane.socket.as_fd()).collect();
            if poll::readable(&descriptors, Some(timeout_ns))? > 0 && self.oldest().is_none() {
                self.lanes.iter().try_for_each(|lane| lane.socket.take_error())?;
            }
        }
        for count in 0..BLOCKS_A_CALL {
            let Some(at) = self.oldest() else { return Ok(count) };
            self.lanes[at].ready().into_iter().for_each(&mut take);
            self.lanes[at].release();
        }
        Ok(BLOCKS_A_CALL)
    }

    /// Every frame with a stamp below this, in ns, has been handed out, except for a frame that is on its way into a
    /// block at this moment. The value may be too low, never too high: an open block that has frames may hold older
    /// ones.
    pub fn complete_until_ns(&self) -> u64 {
        let now_ns = clock::realtime_ns(); // read first: frames that enter a block after the check are younger
        self.lanes.iter().filter_map(Lane::pending_since_ns).fold(now_ns, u64::min)
    }

    /// The lane whose next block was opened first.
    fn oldest(&self) -> Option<usize> {
        let opened = |(at, lane): (usize, &Lane)| Some((lane.opened()?, at));
        self.lanes.iter().enumerate().filter_map(opened).min().map(|(_, at)| at)
    }

    /// What [`next`](Self::next) waits for.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.lanes.iter().map(|lane| lane.socket.as_fd())
    }

    /// Ends the reception, waits until the timer of the blocks that are not full must have run, and passes on their
    /// frames. Without this, the last frames before a stop would be lost.
    ///
    /// # Errors
    /// As [`next`](Self::next), except for an interface that is down.
    pub fn drain(&mut self, mut take: impl FnMut(Block<'_>)) -> io::Result<()> {
        self.lanes.iter().try_for_each(Lane::close)?;
        let until = clock::monotonic_ns() + BLOCK_SPAN_NS;
        loop {
            let left = until.saturating_sub(clock::monotonic_ns());
            match self.next(left, &mut take) {
                Err(error) if error.raw_os_error() != Some(libc::ENETDOWN) => return Err(error),
                Ok(0) | Err(_) if left == 0 => return Ok(()),
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Frames lost because the ring was full since it was opened, of all its interfaces; up to date at each call.
    ///
    /// # Errors
    /// The error of getsockopt(2).
    pub fn drops(&mut self) -> io::Result<u64> {
        self.lanes.iter_mut().try_fold(0, |sum, lane| Ok(sum + lane.drops()?))
    }

    /// The size of the ring in bytes.
    pub fn bytes(&self) -> usize {
        self.lanes.iter().map(|lane| lane.blocks * BLOCK_BYTES).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A block as the kernel fills it.
    fn block(frames: &[(u64, u32, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK_BYTES];
        let mut put = |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        put(COUNT_AT, frames.len() as u32);
        put(FIRST_AT, 48);
        for (n, (stamp, interface, content)) in frames.iter().enumerate() {
            let at = 48 + n * 168;
            put(at, 168);
            put(at + 4, (stamp / 1_000_000_000) as u32);
            put(at + 8, (stamp % 1_000_000_000) as u32);
            put(at + 12, content.len() as u32);
            put(at + 24, 96);
            put(at + INTERFACE_AT, *interface);
            for (k, word) in content.chunks(4).enumerate() {
                put(at + 96 + 4 * k, u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
            }
        }
        bytes
    }

    #[test]
    fn a_block_hands_out_its_frames_in_order_and_passes_over_other_sizes() {
        let classic = |n: u8| [&[n, 1, 0, 0, 2, 0xaa, 0, 0, n, n][..], &[0; 6]].concat();
        let bytes = block(&[(5_000_000_007, 3, classic(1)), (6, 4, vec![0; 72]), (7, 5, classic(2))]);
        let block = Block::in_memory(&bytes, false);
        let records: Vec<_> = block.records().collect();
        assert_eq!((block.len(), block.is_fd(), records.len()), (3, false, 2));
        assert_eq!((records[0].stamp_ns, records[0].interface), (5_000_000_007, 3));
        assert_eq!(records[0].frame(), "101#0101".parse().unwrap()); // the byte behind the length is padding
        assert_eq!((records[1].interface, records[1].frame().to_string().as_str()), (5, "102#0202"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 256 }, ..ProptestConfig::default() })]
        #[test]
        fn no_content_of_a_block_makes_it_panic(
            head in prop::collection::vec(any::<u8>(), 48..400),
            fd in any::<bool>(),
        ) {
            let mut bytes = vec![0; BLOCK_BYTES];
            bytes[..head.len()].copy_from_slice(&head);
            bytes[COUNT_AT + 2] = 0;
            bytes[COUNT_AT + 3] = 0;
            let block = Block::in_memory(&bytes, fd);
            for record in block.records() {
                let _ = record.frame().to_string();
            }
        }
    }
}
