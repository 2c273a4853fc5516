//! `ring`: PF_PACKET rings (TPACKET_V2) shared with the kernel. Receiving takes no system call per frame, sending
//! takes one for many.
//!
//! The status word of a slot names its owner, the kernel or this program; each sets it last. Particular to CAN:
//! - There is no link-layer header: a slot holds `struct can_frame` (16 bytes) or `struct canfd_frame` (72).
//! - The socket must set the protocol `ETH_P_CAN` or `ETH_P_CANFD` for the frames it sends, or drivers drop them without
//!   an error. One system call sets it once, so a batch is split where classic and FD frames meet.
//! - On drivers that echo, every packet socket receives a sent frame as if it came from the bus. This program's senders
//!   mark their frames (`SO_MARK`), and its receivers drop marked frames in the kernel.
//! - Version 3 hands frames over only when a block is full or a timer of at least a jiffy has run: capture only.
#![allow(unsafe_code)]

mod slots;

use super::{
    Receive, ReceiveOptions, Room, Transmit, TransmitOptions, Wait, can_raw,
    read_write::{refuse_without_sockets, short_count, when_gone},
};
use crate::{
    Batch, Error, Frame, Interface, Result,
    interface::Kind,
    packet_filter,
    sys::{
        self,
        map::Map,
        poll,
        socket::{self, Socket},
    },
};
use slots::{Incoming, Outgoing, Slots};
use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
};

/// Bytes of a ring block: a page.
const BLOCK: usize = 4096;
/// Bytes of a slot: the header, padding to 80, and the frame. The kernel accepts 64 and truncates.
const SLOT_CLASSIC: usize = 128;
const SLOT_FD: usize = 256;
/// The default number of slots of a receive ring: 256 KiB for classic frames.
const RECEIVE_SLOTS: usize = 2048;
/// Slots of a transmit ring: more than any interface's queue is worth filling at once.
const TRANSMIT_SLOTS: usize = 512;
/// Where the frame begins in a transmit slot: `TPACKET_ALIGN(sizeof(struct tpacket2_hdr))`.
const TRANSMIT_OFFSET: usize = 32;
/// How often a spinning receiver finds no frame before it reads the socket's error: nothing else reports that the interface
/// no longer exists.
const LOOKS_PER_ERROR_CHECK: u32 = 1 << 12;

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

/// Gives `socket` a ring of `count` slots or a few more; `option` says in which direction.
fn map_slots(socket: &Socket, option: libc::c_int, slot_bytes: usize, count: usize) -> io::Result<Slots> {
    let blocks = (count * slot_bytes).div_ceil(BLOCK);
    let request = libc::tpacket_req {
        tp_block_size: BLOCK as u32,
        tp_block_nr: blocks as u32,
        tp_frame_size: slot_bytes as u32,
        tp_frame_nr: (blocks * (BLOCK / slot_bytes)) as u32,
    };
    socket.set(libc::SOL_PACKET, libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as i32)?;
    socket.set(libc::SOL_PACKET, option, request)?;
    Ok(Slots::new(Map::read_write(socket.as_fd(), blocks * BLOCK)?, slot_bytes))
}

pub(super) fn receiver(interface: &Interface, options: &ReceiveOptions) -> Result<Box<dyn Receive>> {
    let socket = open_socket(interface)?;
    let step = |step: &'static str| move |error| Error::new(&interface.name, step, error);
    let fd = interface.supports_fd();
    attach(&socket, interface, options)?;
    let slots = options.queue_frames.map_or(RECEIVE_SLOTS, |frames| frames.max(1) as usize);
    let slot_bytes = if fd { SLOT_FD } else { SLOT_CLASSIC };
    let slots =
        map_slots(&socket, libc::PACKET_RX_RING, slot_bytes, slots).map_err(step("PACKET_RX_RING"))?;
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
    let ring = Incoming::new(slots, interface.index, options.filters.error_mask);
    Ok(Box::new(RingReceiver { ring, socket, wait, looks: 0, lost: 0 }))
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
    ring: Incoming,
    socket: Socket,
    wait: Wait,
    looks: u32,
    /// Frames dropped so far; the kernel's own count starts anew with each reading.
    lost: u64,
}

impl Receive for RingReceiver {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
        loop {
            let count = self.ring.take(batch);
            if count > 0 || batch.room() == 0 {
                return Ok(count);
            }
            if self.wait == Wait::Spin {
                self.looks = self.looks.wrapping_add(1);
                if self.looks.is_multiple_of(LOOKS_PER_ERROR_CHECK) {
                    self.socket.take_error()?;
                }
                sys::thread::relax();
                return Ok(0);
            }
            if poll::readable(&[self.socket.as_fd()], None)? == 0 {
                return Ok(0); // a signal
            }
            if !self.ring.is_ready() {
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

pub(super) fn transmitter(interface: &Interface, options: &TransmitOptions) -> Result<Box<dyn Transmit>> {
    check_transmitter(interface)?;
    let socket = open_socket(interface)?;
    let step = |step: &'static str| move |error| Error::new(&interface.name, step, error);
    let slot_bytes = if interface.supports_fd() { SLOT_FD } else { SLOT_CLASSIC };
    socket.set(libc::SOL_SOCKET, libc::SO_MARK, can_raw::mark(interface)).map_err(step("SO_MARK"))?;
    can_raw::set_send_buffer(&socket, interface).map_err(step("SO_SNDBUF"))?;
    let slots = map_slots(&socket, libc::PACKET_TX_RING, slot_bytes, TRANSMIT_SLOTS)
        .map_err(step("PACKET_TX_RING"))?;
    // Protocol 0: the socket receives nothing, so receiving does not pay for it.
    socket.bind_packet(interface.index, 0).map_err(|error| Error::moving(&interface.name, "bind", error))?;
    let (index, fd) = (interface.index, interface.supports_fd());
    let (ring, room) = (Outgoing::new(slots), Room::new(options));
    Ok(Box::new(RingTransmitter { ring, socket, index, fd, room, protocol: 0 }))
}

struct RingTransmitter {
    ring: Outgoing,
    socket: Socket,
    index: u32,
    fd: bool,
    room: Room,
    /// The protocol of the frames in slots that wait.
    protocol: u16,
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
        while self.ring.waiting() > 0 {
            let before = self.ring.waiting();
            let answer = self.send();
            self.ring.look();
            match answer {
                Ok(()) if self.ring.waiting() == 0 => break,
                Ok(()) if self.ring.waiting() < before => {}
                Ok(()) => break,
                // The slots that were not taken stay to be sent again: nothing is lost.
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) if self.room.waits => {
                        if !self.room.wait(self.socket.as_fd())? {
                            break;
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
        self.ring.waiting()
    }

    fn lost(&self) -> u64 {
        self.ring.lost()
    }

    fn abandon(&mut self) -> usize {
        self.ring.abandon()
    }

    fn set_waiting(&mut self, waits: bool) {
        self.room.set_waiting(waits);
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}

impl RingTransmitter {
    /// Fills the next slot; false when it is still the kernel's.
    fn put(&mut self, frame: &Frame) -> io::Result<bool> {
        let protocol = if frame.is_fd() { socket::ETH_P_CANFD } else { socket::ETH_P_CAN };
        if self.protocol != protocol && self.ring.waiting() > 0 {
            self.flush()?;
            if self.ring.waiting() > 0 {
                return Ok(false);
            }
        }
        self.protocol = protocol;
        Ok(self.ring.put(frame))
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
}
