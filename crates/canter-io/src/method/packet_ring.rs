//! `ring`: PF_PACKET rings (TPACKET_V2) shared with the kernel. Receiving takes no system call per frame, sending
//! takes one for many.
//!
//! A slot belongs to whoever its status word says; the kernel sets it last and so do we. What is particular to CAN:
//! - There is no link-layer header: a slot holds `struct can_frame` (16 bytes) or `struct canfd_frame` (72).
//! - The socket must say `ETH_P_CAN` or `ETH_P_CANFD` for what it sends, or drivers drop it without a word; one
//!   system call says it once, so a batch is split where classic and FD meet.
//! - On drivers that echo, a sent frame comes back to every packet socket as if received. Ours mark what they send
//!   (`SO_MARK`) and drop what is marked, in the kernel.
//! - Version 3 hands frames over only when a block is full or a timer of at least a jiffy has run: capture only.
#![allow(unsafe_code)]

use super::{
    Receive, ReceiveOptions, Transmit, TransmitOptions, Wait,
    read_write::{refuse_without_sockets, short_count, when_gone},
};
use crate::{
    Batch, Error, Frame, Interface, Meta, Result,
    batch::Clock,
    frame::{CAN_MTU, CANFD_MTU, EFF_MASK, ERR_FLAG},
    interface::Kind,
    packet_filter,
    sys::{
        self, can_raw,
        map::Map,
        poll,
        socket::{self, Socket},
    },
};
use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    sync::atomic::{AtomicU32, Ordering},
};

/// Bytes of a ring block: a page.
const BLOCK: usize = 4096;
/// Bytes of a slot: the header, padding to 80, and the frame. The kernel accepts 64 and truncates.
const SLOT_CLASSIC: usize = 128;
const SLOT_FD: usize = 256;
/// Slots of a receive ring unless asked otherwise: 256 KiB classic.
const RECEIVE_SLOTS: usize = 2048;
/// Slots of a transmit ring: more than any interface's queue is worth filling at once.
const TRANSMIT_SLOTS: usize = 512;
/// Where the frame begins in a transmit slot: `TPACKET_ALIGN(sizeof(struct tpacket2_hdr))`.
const TRANSMIT_OFFSET: usize = 32;
/// How many empty looks a spinning receiver takes before it asks the socket for an error: nothing else would tell it
/// that the interface is gone.
const LOOKS_PER_ERROR_CHECK: u32 = 1 << 12;

// linux/if_packet.h
const _: () = assert!(size_of::<libc::tpacket2_hdr>() == TRANSMIT_OFFSET);
const _: () = assert!(std::mem::offset_of!(libc::tpacket2_hdr, tp_status) == 0);

pub(super) fn check_receiver(interface: &Interface, _wait: Wait) -> Result<()> {
    refuse_without_sockets(interface, "ring")?;
    open_socket(interface).map(drop)
}

pub(super) fn check_transmitter(interface: &Interface) -> Result<()> {
    refuse_without_sockets(interface, "ring")?;
    if matches!(interface.kind, Kind::Vcan) {
        let why = "what a packet socket sends reaches nobody on a vcan";
        return Err(Error::unsupported(&interface.name, "ring", why).hint("use write, or a vxcan pair"));
    }
    open_socket(interface).map(drop)
}

fn open_socket(interface: &Interface) -> Result<Socket> {
    Socket::packet().map_err(|error| {
        let error = Error::new(&interface.name, "PF_PACKET socket", error);
        match error.kind() {
            io::ErrorKind::PermissionDenied => {
                error.hint("needs CAP_NET_RAW: run as root, or use read and write")
            }
            _ => error,
        }
    })
}

/// Slots shared with the kernel.
struct Slots {
    map: Map,
    slot_bytes: usize,
    count: usize,
}

impl Slots {
    /// Gives `socket` a ring of `count` slots or a little more; `option` says in which direction.
    fn new(socket: &Socket, option: libc::c_int, slot_bytes: usize, count: usize) -> io::Result<Self> {
        let blocks = (count * slot_bytes).div_ceil(BLOCK);
        let count = blocks * (BLOCK / slot_bytes);
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: count as u32,
        };
        socket.set(libc::SOL_PACKET, libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as i32)?;
        socket.set(libc::SOL_PACKET, option, request)?;
        Ok(Self { map: Map::of(socket.as_fd(), blocks * BLOCK)?, slot_bytes, count })
    }

    /// The header of slot `at`. Slots do not cross blocks because their size divides a block's.
    fn header(&self, at: usize) -> *mut libc::tpacket2_hdr {
        assert!(at < self.count, "no such slot");
        // SAFETY: the map has `count` slots of `slot_bytes`.
        unsafe { self.map.start().as_ptr().add(at * self.slot_bytes) }.cast()
    }

    /// The word that says whose slot `at` is.
    fn status(&self, at: usize) -> &AtomicU32 {
        // SAFETY: the header begins with its status, which is 4-aligned and lives as long as the map; the kernel
        // changes it as one word.
        unsafe { AtomicU32::from_ptr(self.header(at).cast()) }
    }

    fn after(&self, at: usize) -> usize {
        if at + 1 == self.count { 0 } else { at + 1 }
    }
}

pub(super) fn receiver(interface: &Interface, options: &ReceiveOptions) -> Result<Box<dyn Receive>> {
    let socket = open_socket(interface)?;
    let step = |step: &'static str| move |error| Error::new(&interface.name, step, error);
    let fd = interface.supports_fd();
    attach(&socket, interface, options)?;
    let slots = options.queue_frames.map_or(RECEIVE_SLOTS, |frames| frames.max(1) as usize);
    let slot_bytes = if fd { SLOT_FD } else { SLOT_CLASSIC };
    let slots =
        Slots::new(&socket, libc::PACKET_RX_RING, slot_bytes, slots).map_err(step("PACKET_RX_RING"))?;
    if options.stamps {
        // The stamp in a slot is that of the driver's hand-over only while some socket asks for such stamps; else it
        // is that of the copy into the ring.
        socket.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1i32).map_err(step("SO_TIMESTAMPNS"))?;
    }
    // A socket of ETH_P_CAN does not see FD frames, and two sockets would lose the order between the two kinds.
    let protocol = if fd { socket::ETH_P_ALL } else { socket::ETH_P_CAN };
    if fd {
        socket
            .set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1i32)
            .map_err(step("PACKET_IGNORE_OUTGOING"))?;
    }
    socket
        .bind_packet(interface.index, protocol)
        .map_err(|error| Error::moving(&interface.name, "bind", error))?;
    let wait = options.wait.unwrap_or(Wait::Poll);
    let (index, error_mask) = (interface.index, options.filters.error_mask);
    Ok(Box::new(RingReceiver { slots, socket, wait, index, error_mask, next: 0, looks: 0, lost: 0 }))
}

/// Gives the kernel what it must sort out itself, and nothing when that is nothing: a program costs every frame about
/// as much as the copy into the ring.
fn attach(socket: &Socket, interface: &Interface, options: &ReceiveOptions) -> Result<()> {
    let step = |error| Error::new(&interface.name, "SO_ATTACH_FILTER", error);
    // Without echo a frame with our mark comes from the other end of a vxcan, and is wanted.
    let vcan = options.deaf_to_marked && matches!(interface.kind, Kind::Vcan);
    let mark = (vcan || interface.echo && !options.echoes).then(|| can_raw::mark(interface));
    let program = match mark {
        _ if !options.filters.list.is_empty() => {
            let program = packet_filter::program(
                &options.filters,
                packet_filter::Options { drop_mark: mark, check_protocol: false },
            );
            program.map_err(|long| step(io::Error::new(io::ErrorKind::InvalidInput, long.to_string())))?
        }
        Some(mark) => packet_filter::drop_mark(mark),
        None => return Ok(()),
    };
    socket.attach_filter(&program).map_err(step)
}

struct RingReceiver {
    // Before the socket, so that the memory goes first.
    slots: Slots,
    socket: Socket,
    wait: Wait,
    index: u32,
    /// Error frames wanted; all others are passed over here, which costs less than a program in the kernel.
    error_mask: u32,
    next: usize,
    looks: u32,
    /// Frames dropped so far; the kernel's own count starts anew with each reading.
    lost: u64,
}

impl Receive for RingReceiver {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
        loop {
            let count = self.take(batch);
            if count > 0 || batch.room() == 0 {
                return Ok(count);
            }
            if self.wait == Wait::Spin {
                self.looks = self.looks.wrapping_add(1);
                if self.looks.is_multiple_of(LOOKS_PER_ERROR_CHECK) {
                    self.socket.take_error()?;
                }
                std::hint::spin_loop(); // lets a sibling thread, or in a virtual clock the other processor, run
                return Ok(0);
            }
            if poll::readable(&[self.socket.as_fd()], None)? == 0 {
                return Ok(0); // a signal
            }
            if self.slots.status(self.next).load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                self.socket.take_error()?; // POLLERR and nothing received
            }
        }
    }

    fn drops(&mut self) -> io::Result<u64> {
        // struct tpacket_stats: packets, which include the drops, and drops.
        let [_, drops] = self.socket.get(libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
        self.lost += u64::from(drops);
        Ok(self.lost)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}

impl RingReceiver {
    /// Copies what the kernel has put into the ring, and gives the slots back.
    fn take(&mut self, batch: &mut Batch) -> usize {
        let (frames, meta) = batch.spare();
        let mut count = 0;
        while let (Some(frame), Some(meta)) = (frames.get_mut(count), meta.get_mut(count)) {
            let slot = self.slots.header(self.next);
            // SAFETY: a slot begins with its status, 4-aligned, which lives as long as the map; the kernel changes it
            // as one word.
            let status = unsafe { AtomicU32::from_ptr(slot.cast()) };
            // Pairs with the kernel's barrier before it sets TP_STATUS_USER: the slot's content comes after this.
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                break;
            }
            let wanted = copy(slot, frame, meta)
                && (frame.can_id & ERR_FLAG == 0 || frame.can_id & EFF_MASK & self.error_mask != 0);
            meta.interface = self.index;
            count += usize::from(wanted);
            // Pairs with the kernel's reading of the status before it writes the slot again.
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = self.slots.after(self.next);
        }
        batch.commit(count);
        count
    }
}

/// Copies a received slot; false when it holds no CAN frame.
fn copy(slot: *const libc::tpacket2_hdr, frame: &mut Frame, meta: &mut Meta) -> bool {
    // SAFETY: the status says that the slot is ours; it is 16-aligned and holds a whole header.
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
    if header.tp_snaplen as usize != bytes {
        return false;
    }
    let to = std::ptr::from_mut(frame).cast::<u8>();
    // SAFETY: the kernel put `bytes` bytes at `tp_mac`, inside the slot because slots have room for the largest frame.
    let from = unsafe { slot.cast::<u8>().add(usize::from(header.tp_mac)) };
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

pub(super) fn transmitter(interface: &Interface, options: &TransmitOptions) -> Result<Box<dyn Transmit>> {
    check_transmitter(interface)?;
    let socket = open_socket(interface)?;
    let step = |step: &'static str| move |error| Error::new(&interface.name, step, error);
    let slot_bytes = if interface.supports_fd() { SLOT_FD } else { SLOT_CLASSIC };
    socket.set(libc::SOL_SOCKET, libc::SO_MARK, can_raw::mark(interface)).map_err(step("SO_MARK"))?;
    can_raw::set_send_buffer(&socket, interface).map_err(step("SO_SNDBUF"))?;
    let slots = Slots::new(&socket, libc::PACKET_TX_RING, slot_bytes, TRANSMIT_SLOTS)
        .map_err(step("PACKET_TX_RING"))?;
    // Protocol 0: the socket receives nothing, so receiving does not pay for it.
    socket.bind_packet(interface.index, 0).map_err(|error| Error::moving(&interface.name, "bind", error))?;
    let (index, fd) = (interface.index, interface.supports_fd());
    let wait = !options.no_wait;
    Ok(Box::new(RingTransmitter {
        slots,
        socket,
        index,
        fd,
        wait,
        next: 0,
        oldest: 0,
        waiting: 0,
        protocol: 0,
        lost: 0,
    }))
}

struct RingTransmitter {
    slots: Slots,
    socket: Socket,
    index: u32,
    fd: bool,
    wait: bool,
    /// The slot to fill next.
    next: usize,
    /// The first slot that the kernel may not have taken yet.
    oldest: usize,
    /// Slots filled and, when last looked at, not taken by the kernel.
    waiting: usize,
    /// Of the frames in those slots.
    protocol: u16,
    lost: u64,
}

impl Transmit for RingTransmitter {
    /// Puts frames into slots; [`flush`](Self::flush) gives them to the kernel.
    fn transmit(&mut self, frames: &[Frame]) -> io::Result<usize> {
        for (taken, frame) in frames.iter().enumerate() {
            if frame.is_fd() && !self.fd {
                return short_count(taken, io::Error::from_raw_os_error(libc::EINVAL));
            }
            match self.put(frame) {
                Ok(true) => {}
                Ok(false) => return Ok(taken),
                Err(error) => return short_count(taken, error),
            }
        }
        Ok(frames.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.waiting > 0 {
            let before = self.waiting;
            let answer = self.send();
            self.look();
            match answer {
                Ok(()) if self.waiting == 0 => break,
                Ok(()) if self.waiting < before => {}
                Ok(()) => break,
                // The slots that were not taken stay to be sent again: nothing is lost.
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) if self.wait => {
                        if poll::writable(self.socket.as_fd(), None)? == 0 {
                            break; // a signal
                        }
                    }
                    Some(libc::ENOBUFS | libc::EAGAIN | libc::EINTR) => break,
                    _ => return Err(when_gone(error)),
                },
            }
        }
        Ok(())
    }

    fn pending(&self) -> usize {
        self.waiting
    }

    fn lost(&self) -> u64 {
        self.lost
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}

impl RingTransmitter {
    /// Fills the next slot; false when it is still the kernel's.
    fn put(&mut self, frame: &Frame) -> io::Result<bool> {
        let protocol = if frame.is_fd() { socket::ETH_P_CANFD } else { socket::ETH_P_CAN };
        if self.protocol != protocol && self.waiting > 0 {
            self.flush()?;
            if self.waiting > 0 {
                return Ok(false);
            }
        }
        self.protocol = protocol;
        // Pairs with the kernel's setting of TP_STATUS_AVAILABLE once the frame has left.
        if self.slots.status(self.next).load(Ordering::Acquire) != libc::TP_STATUS_AVAILABLE {
            self.look(); // frees slots that the kernel refused
            if self.slots.status(self.next).load(Ordering::Acquire) != libc::TP_STATUS_AVAILABLE {
                return Ok(false);
            }
        }
        let slot = self.slots.header(self.next);
        let bytes = frame.mtu();
        // SAFETY: the status says that the slot is ours.
        unsafe { (*slot).tp_len = bytes as u32 };
        // SAFETY: a slot has room for the largest frame of this interface behind its header.
        let to = unsafe { slot.cast::<u8>().add(TRANSMIT_OFFSET) };
        // SAFETY: `to` has room for `bytes`, a Frame has at least so many, and they do not overlap.
        unsafe { to.copy_from_nonoverlapping(std::ptr::from_ref(frame).cast(), bytes) };
        // Pairs with the kernel's reading of the status: the frame is complete before it is offered.
        self.slots.status(self.next).store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.next = self.slots.after(self.next);
        self.waiting += 1;
        Ok(true)
    }

    /// Asks the kernel to take what is offered. It does not wait until the frames have left.
    fn send(&mut self) -> io::Result<()> {
        let address = socket::packet_address(self.index, self.protocol);
        let length = size_of_val(&address) as libc::socklen_t;
        // SAFETY: no data is passed, and the address outlives the call. packet_mmap.rst: sendto with no buffer sends
        // the slots whose status is TP_STATUS_SEND_REQUEST.
        let answer = unsafe {
            let address = std::ptr::from_ref(&address).cast();
            libc::sendto(self.socket.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, address, length)
        };
        sys::check_size(answer).map(drop)
    }

    /// Counts anew how many offered slots the kernel has not taken. It takes them in order.
    fn look(&mut self) {
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
