//! Opening `CAN_RAW` sockets, which `read`, `recvmmsg` and their senders share.

use super::{Echo, ReceiveOptions, TransmitOptions};
use crate::{Error, Filter, Filters, Interface, Result, interface::Kind, packet_filter, sys::socket::Socket};
use std::io;

/// What the kernel accounts for one frame in a send buffer, in bytes: an skb with its data. Measured on 6.1 and 6.12
/// (x86-64).
pub const SENT_FRAME_BYTES: u32 = 960;

/// What a received frame takes of a socket's buffer, at most: one that a packet ring sent counts its payload on top, 72
/// bytes for FD.
pub const RECEIVED_FRAME_BYTES: u32 = SENT_FRAME_BYTES + 128;

/// The smallest send buffer the kernel accepts (`SOCK_MIN_SNDBUF`).
const SEND_BUFFER_MIN: u32 = 4608;

/// A socket that receives from `interface`.
///
/// # Errors
/// The error of the kernel, with the step.
pub fn receiving(interface: &Interface, options: &ReceiveOptions) -> Result<Socket> {
    let socket = open(&interface.name)?;
    let step = |step: &'static str| move |error| Error::new(&interface.name, step, error);
    set_filters(&socket, &options.filters).map_err(step("CAN_RAW_FILTER"))?;
    if interface.supports_fd() {
        set(&socket, libc::CAN_RAW_FD_FRAMES, true).map_err(step("CAN_RAW_FD_FRAMES"))?;
    }
    if options.own_frames {
        set(&socket, libc::CAN_RAW_RECV_OWN_MSGS, true).map_err(step("CAN_RAW_RECV_OWN_MSGS"))?;
    }
    if options.deaf_to_marked && (interface.echo || matches!(interface.kind, Kind::Vcan)) {
        socket.attach_filter(&packet_filter::drop_mark(mark(interface))).map_err(step("SO_ATTACH_FILTER"))?;
    }
    if let Some(frames) = options.queue_frames {
        set_queue(&socket, frames, options.whole_queue).map_err(step("SO_RCVBUF"))?;
    }
    if options.stamps {
        socket.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1i32).map_err(step("SO_TIMESTAMPNS"))?;
        socket.set(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1i32).map_err(step("SO_RXQ_OVFL"))?;
    }
    bind(&socket, interface)?;
    Ok(socket)
}

/// Makes the receive queue hold `frames`, or as many as it may; an error says how many those are, if it must be the `whole`.
fn set_queue(socket: &Socket, frames: u32, whole: bool) -> io::Result<()> {
    let bytes = frames.saturating_mul(RECEIVED_FRAME_BYTES);
    socket.set_receive_buffer(bytes)?;
    let [granted] = socket.get(libc::SOL_SOCKET, libc::SO_RCVBUF)?;
    if granted >= bytes || !whole {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "the queue may hold {} of {frames} frames (sysctl net.core.rmem_max={}, or the capability \
             CAP_NET_ADMIN)",
            granted / RECEIVED_FRAME_BYTES,
            bytes / 2
        ),
    ))
}

/// A socket that sends to `interface` and receives nothing.
///
/// # Errors
/// The error of the kernel, with the step.
pub fn sending(interface: &Interface, options: &TransmitOptions) -> Result<Socket> {
    let socket = open(&interface.name)?;
    let step = |step: &'static str| move |error| Error::new(&interface.name, step, error);
    socket
        .set_slice::<Filter>(libc::SOL_CAN_RAW, libc::CAN_RAW_FILTER, &[])
        .map_err(step("CAN_RAW_FILTER"))?;
    if interface.supports_fd() {
        set(&socket, libc::CAN_RAW_FD_FRAMES, true).map_err(step("CAN_RAW_FD_FRAMES"))?;
    }
    let echo = match options.echo {
        Echo::Auto => matches!(interface.kind, Kind::Vcan),
        Echo::On => true,
        Echo::Off => false,
    };
    set(&socket, libc::CAN_RAW_LOOPBACK, echo).map_err(step("CAN_RAW_LOOPBACK"))?;
    if options.marked && echo {
        socket.set(libc::SOL_SOCKET, libc::SO_MARK, mark(interface)).map_err(step("SO_MARK"))?;
    }
    set_send_buffer(&socket, interface).map_err(step("SO_SNDBUF"))?;
    if let Some(patience) = options.patience {
        socket.set_send_timeout(patience).map_err(step("SO_SNDTIMEO"))?;
    }
    bind(&socket, interface)?;
    Ok(socket)
}

/// The mark (`SO_MARK`) of frames whose echo this program's receivers on `interface` must ignore. Each interface has
/// its own, since can-gw keeps the mark of a frame that it forwards. Never 0, the mark of all other frames.
pub fn mark(interface: &Interface) -> u32 {
    interface.index
}

/// Makes a full queue something that can be waited for. A blocking send waits for room in the socket's send buffer,
/// but answers `ENOBUFS` at once when the interface's queue is full; so the buffer must hold fewer frames than that
/// queue. (A qdisc that orphans its frames, as netem does, defeats this: `ENOBUFS` then comes back as a short count.)
pub fn set_send_buffer(socket: &Socket, interface: &Interface) -> io::Result<()> {
    let queue = interface.tx_queue_len;
    let bytes = queue.saturating_mul(SENT_FRAME_BYTES) / 4 * 3;
    let [default] = socket.get(libc::SOL_SOCKET, libc::SO_SNDBUF)?;
    if queue == 0 || bytes >= default {
        return Ok(()); // no queue to overflow, or one longer than the buffer
    }
    // The kernel doubles the value.
    socket.set(libc::SOL_SOCKET, libc::SO_SNDBUF, (bytes.max(SEND_BUFFER_MIN) / 2) as i32)
}

/// A socket that is not bound yet, for `thing`.
///
/// # Errors
/// The error of the kernel, with the way out where a module is missing.
pub fn open(thing: &str) -> Result<Socket> {
    Socket::can_raw().map_err(|error| {
        let way_out = match error.raw_os_error() {
            Some(libc::EAFNOSUPPORT) => "this kernel has no CAN: modprobe can, or run in canter lab",
            Some(libc::EPROTONOSUPPORT) => "modprobe can_raw",
            _ => "",
        };
        let kind = io::Error::new(io::ErrorKind::Unsupported, error.to_string());
        let source = if way_out.is_empty() { error } else { kind };
        Error::new(thing, "socket", source).hint(way_out)
    })
}

fn bind(socket: &Socket, interface: &Interface) -> Result<()> {
    socket.bind_can(interface.index).map_err(|error| Error::moving(&interface.name, "bind", error))
}

fn set(socket: &Socket, option: libc::c_int, on: bool) -> io::Result<()> {
    socket.set(libc::SOL_CAN_RAW, option, libc::c_int::from(on))
}

/// Sets the filters. An empty list means all frames in this crate, and no frames in the kernel.
fn set_filters(socket: &Socket, filters: &Filters) -> io::Result<()> {
    if !filters.list.is_empty() {
        socket.set_slice(libc::SOL_CAN_RAW, libc::CAN_RAW_FILTER, &filters.list)?;
    }
    if filters.join {
        set(socket, libc::CAN_RAW_JOIN_FILTERS, true)?;
    }
    if filters.error_mask != 0 {
        socket.set(libc::SOL_CAN_RAW, libc::CAN_RAW_ERR_FILTER, filters.error_mask)?;
    }
    Ok(())
}
