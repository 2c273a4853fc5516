//! `read` and `write`: one frame per system call. Most programs work this way; the other methods are compared with it.
//!
//! They call recv(2) and send(2), which save about 300 instructions a frame over read(2) and write(2) and do the
//! same. With stamps, recvmsg(2).
//!
//! `read/busy-poll` polls the driver while nothing is there (`SO_BUSY_POLL`), if the kernel knows which: it does on
//! canwire's nodes, once the socket has sent a frame there. Where the interface defers its interrupts
//! (`napi_defer_hard_irqs`), the socket asks for more (`SO_PREFER_BUSY_POLL`): while it polls, frames raise none.
#![allow(unsafe_code)]

use super::{Receive, ReceiveOptions, Room, Transmit, TransmitOptions, Wait, can_raw};
use crate::{
    Batch, Error, Frame, Interface, Meta, Result,
    frame::{EFF_FLAG, EFF_MASK},
    netlink::wire,
    sys::{self, control::Control, poll, socket::Socket},
};
use std::{
    fs, io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    time::{Duration, Instant},
};

/// How long `SO_BUSY_POLL` polls the driver before it blocks; the 2014 paper's figure.
const BUSY_POLL_US: i32 = 300;

/// Why this family cannot receive from `interface`.
pub(super) fn check_receiver(interface: &Interface, wait: Wait) -> Result<()> {
    check_socket(interface)?;
    if wait == Wait::BusyPoll {
        let socket = can_raw::receiving(interface, &ReceiveOptions::default())?;
        set_busy_poll(&socket, interface)?;
        let known = socket.get::<1>(libc::SOL_SOCKET, libc::SO_INCOMING_NAPI_ID).is_ok_and(|[id]| id != 0);
        if !known && !marks_senders(interface) {
            return Err(Error::unsupported(&interface.name, "SO_BUSY_POLL", no_busy_poll(interface)));
        }
    }
    Ok(())
}

/// Whether its driver gives a socket that sends its NAPI context: canwire's nodes do, on kernels with busy polling.
fn marks_senders(interface: &Interface) -> bool {
    let is_node = interface.controller.as_ref().is_some_and(|controller| controller.chip == CANWIRE);
    is_node && wire::node(&interface.name).is_ok_and(|node| node.napi_id != 0)
}

/// The name by which canwire's nodes are known among controllers.
const CANWIRE: &str = "canwire";

/// What a receiver sends once to be marked: the frame that loses every arbitration, without data.
const MARKING_FRAME: Frame = {
    let mut frame = Frame::EMPTY;
    frame.can_id = EFF_FLAG | EFF_MASK;
    frame
};

/// How long to wait for room for it.
const ROOM_WITHIN: Duration = Duration::from_millis(500);

/// The kernel does not give a CAN socket the NAPI context of its device. On canwire's nodes a socket gets it when it
/// sends a frame; local receivers do not see that frame.
fn send_marking_frame(socket: &Socket, interface: &Interface) -> Result<()> {
    let step = |step: &'static str| move |error| Error::moving(&interface.name, step, error);
    let loopback =
        |on: i32| socket.set(libc::SOL_CAN_RAW, libc::CAN_RAW_LOOPBACK, on).map_err(step("CAN_RAW_LOOPBACK"));
    loopback(0)?;
    let send = || {
        let frame = MARKING_FRAME;
        // SAFETY: a Frame is at least CAN_MTU bytes and outlives the call. send(2).
        sys::check_size(unsafe {
            libc::send(socket.as_raw_fd(), std::ptr::from_ref(&frame).cast(), frame.mtu(), libc::MSG_DONTWAIT)
        })
    };
    // A queue that is full of others' frames soon has room, except on a bus where no node acknowledges.
    let until = Instant::now() + ROOM_WITHIN;
    let mut sent = send();
    while sent.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ENOBUFS))
        && Instant::now() < until
    {
        std::thread::sleep(Duration::from_millis(1));
        sent = send();
    }
    sent.map_err(step("send once, for SO_BUSY_POLL"))?;
    loopback(1)
}

fn no_busy_poll(interface: &Interface) -> String {
    format!(
        "has no effect on {}: its driver gives CAN sockets no NAPI context (SO_INCOMING_NAPI_ID is 0)",
        &interface.name
    )
}

/// Why this family cannot send to `interface`.
pub(super) fn check_transmitter(interface: &Interface) -> Result<()> {
    check_socket(interface)
}

/// What sockets do not reach.
pub(super) fn refuse_without_sockets(interface: &Interface, step: &'static str) -> Result<()> {
    if interface.has_sockets() {
        return Ok(());
    }
    let carrier = interface.carrier;
    let why = format!("{} has no sockets", carrier.about);
    Err(Error::unsupported(&interface.name, step, why).hint(format!("use {}", carrier.usual.receive)))
}

fn check_socket(interface: &Interface) -> Result<()> {
    refuse_without_sockets(interface, "open")?;
    can_raw::sending(interface, &TransmitOptions::default()).map(drop)
}

pub(super) fn receiver(interface: &Interface, options: &ReceiveOptions) -> Result<Box<dyn Receive>> {
    let socket = can_raw::receiving(interface, options)?;
    let wait = options.wait.unwrap_or(Wait::Block);
    if wait == Wait::BusyPoll {
        set_busy_poll(&socket, interface)?;
        prefer_busy_poll(&socket, interface)?;
        if marks_senders(interface) {
            send_marking_frame(&socket, interface)?;
        }
    }
    let source = Source::new(socket, wait, interface.index);
    if options.stamps {
        return Ok(Box::new(Stamping(source, Control::default())));
    }
    Ok(Box::new(Reader(source)))
}

fn set_busy_poll(socket: &Socket, interface: &Interface) -> Result<()> {
    socket.set(libc::SOL_SOCKET, libc::SO_BUSY_POLL, BUSY_POLL_US).map_err(|error| {
        let refused = error.raw_os_error() == Some(libc::ENOPROTOOPT);
        let error =
            if refused { io::Error::new(io::ErrorKind::Unsupported, "not in this kernel") } else { error };
        Error::new(&interface.name, "SO_BUSY_POLL", error)
    })
}

/// Only for CAP_NET_ADMIN; without it the frames still raise interrupts.
fn prefer_busy_poll(socket: &Socket, interface: &Interface) -> Result<()> {
    let path = format!("/sys/class/net/{}/napi_defer_hard_irqs", interface.name);
    if fs::read_to_string(path).map_or(true, |text| text.trim() == "0") {
        return Ok(());
    }
    match socket.set(libc::SOL_SOCKET, libc::SO_PREFER_BUSY_POLL, 1) {
        Err(error) if error.raw_os_error() != Some(libc::EPERM) => {
            Err(Error::new(&interface.name, "SO_PREFER_BUSY_POLL", error))
        }
        _ => Ok(()),
    }
}

/// What both receivers have.
struct Source {
    socket: Socket,
    wait: Wait,
    /// The flags of the receiving call: whether it blocks.
    flags: libc::c_int,
    index: u32,
    /// An error to return after the frames that precede it. The kernel reports it before them, and only once.
    delayed: Option<io::Error>,
}

/// Receives frames alone.
struct Reader(Source);

impl Receive for Reader {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
        self.0.receive(batch, |socket, frame, _, flags| {
            // SAFETY: a Frame is CANFD_MTU bytes, any of whose values are valid, and outlives the call. recv(2).
            sys::check_size(unsafe {
                libc::recv(socket.as_raw_fd(), std::ptr::from_mut(frame).cast(), size_of::<Frame>(), flags)
            })
        })
    }

    fn drops(&mut self) -> io::Result<u64> {
        self.0.socket.drops()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.socket.as_fd())
    }
}

/// Receives frames with stamp, origin and drop count.
struct Stamping(Source, Control);

impl Receive for Stamping {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
        let Self(source, control) = self;
        source.receive(batch, |socket, frame, meta, flags| control.receive(socket, frame, meta, flags))
    }

    fn drops(&mut self) -> io::Result<u64> {
        self.0.socket.drops()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.socket.as_fd())
    }
}

impl Source {
    fn new(socket: Socket, wait: Wait, index: u32) -> Self {
        Self { socket, wait, flags: Self::flags(wait), index, delayed: None }
    }

    fn flags(wait: Wait) -> libc::c_int {
        if matches!(wait, Wait::Block | Wait::BusyPoll) { 0 } else { libc::MSG_DONTWAIT }
    }

    /// Receives by the wait: blocking or spinning one frame, polling all waiting frames. This is the frame path; rare
    /// cases are in other functions.
    #[inline]
    fn receive(&mut self, batch: &mut Batch, mut call: impl Call) -> io::Result<usize> {
        if self.wait == Wait::Poll {
            return self.receive_all(batch, call, None);
        }
        let Some((frame, meta)) = batch.place() else { return Ok(0) };
        *meta = Meta { interface: self.index, ..Meta::default() };
        match call(&self.socket, frame, meta, self.flags) {
            Ok(bytes) => {
                frame.received_as(bytes);
                batch.commit(1);
                Ok(1)
            }
            Err(error) => self.receive_all(batch, call, Some(error)),
        }
    }

    /// Receives until no frame waits or the batch is full; `failed` is the error of an earlier call.
    #[cold]
    #[inline(never)]
    fn receive_all(
        &mut self,
        batch: &mut Batch,
        mut call: impl Call,
        mut failed: Option<io::Error>,
    ) -> io::Result<usize> {
        let mut count = 0;
        while let Some((frame, meta)) = batch.place() {
            *meta = Meta { interface: self.index, ..Meta::default() };
            let answer = match failed.take() {
                Some(error) => Err(error),
                None => call(&self.socket, frame, meta, self.flags),
            };
            match answer {
                Ok(bytes) => {
                    frame.received_as(bytes);
                    batch.commit(1);
                    count += 1;
                    if self.wait != Wait::Poll {
                        break;
                    }
                }
                Err(error) => match self.none_came(count, error)? {
                    Again::Yes => {}
                    Again::No => break,
                },
            }
        }
        Ok(count)
    }

    /// Whether to call again when a call returned no frame after `count` frames.
    fn none_came(&mut self, count: usize, error: io::Error) -> io::Result<Again> {
        match error.kind() {
            io::ErrorKind::Interrupted => Ok(Again::No),
            io::ErrorKind::WouldBlock if count > 0 => Ok(Again::No),
            io::ErrorKind::WouldBlock if self.delayed.is_some() => Err(self.reported(error)), // all frames before it have been received
            io::ErrorKind::WouldBlock if self.wait == Wait::Poll => {
                let ready = poll::readable(&[self.socket.as_fd()], None)?;
                Ok(if ready > 0 { Again::Yes } else { Again::No }) // not ready: a signal
            }
            io::ErrorKind::WouldBlock => {
                sys::thread::relax();
                Ok(Again::No)
            }
            _ if self.delayed.is_none() => {
                self.delayed = Some(error);
                self.flags = libc::MSG_DONTWAIT;
                Ok(Again::Yes)
            }
            _ => Err(self.reported(error)), // a second one, with or without frames between
        }
    }

    /// The delayed error, if there is one, otherwise this one. The next call waits again.
    fn reported(&mut self, error: io::Error) -> io::Error {
        self.flags = Self::flags(self.wait);
        self.delayed.take().unwrap_or(error)
    }
}

/// A receiving call: into a frame and its meta, with flags; returns the bytes of the frame.
trait Call: FnMut(&Socket, &mut Frame, &mut Meta, libc::c_int) -> io::Result<usize> {}
impl<T: FnMut(&Socket, &mut Frame, &mut Meta, libc::c_int) -> io::Result<usize>> Call for T {}

enum Again {
    Yes,
    No,
}

pub(super) fn transmitter(interface: &Interface, options: &TransmitOptions) -> Result<Box<dyn Transmit>> {
    let socket = can_raw::sending(interface, options)?;
    Ok(Box::new(Writer { socket, room: Room::new(options) }))
}

struct Writer {
    socket: Socket,
    room: Room,
}

impl Transmit for Writer {
    fn transmit(&mut self, frames: &[Frame]) -> io::Result<usize> {
        let flags = self.room.flags();
        for (sent, frame) in frames.iter().enumerate() {
            // SAFETY: a Frame is at least `mtu()` bytes and outlives the call. send(2).
            let answer = unsafe {
                libc::send(self.socket.as_raw_fd(), std::ptr::from_ref(frame).cast(), frame.mtu(), flags)
            };
            if let Err(error) = sys::check_size(answer) {
                return short_count(sent, error);
            }
        }
        Ok(frames.len())
    }

    fn set_waiting(&mut self, waits: bool) {
        self.room.set_waiting(waits);
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}

/// A sender's result after `sent` frames when the next one failed: a full queue and a signal are a short count.
/// Another error is returned only when nothing was sent; if it lasts, the next call returns it.
pub(super) fn short_count(sent: usize, error: io::Error) -> io::Result<usize> {
    match error.raw_os_error() {
        // netdevice queue full, even on a blocking socket; send buffer full; signal
        Some(libc::ENOBUFS | libc::EAGAIN | libc::EINTR) => Ok(sent),
        _ if sent > 0 => Ok(sent),
        _ => Err(when_gone(error)),
    }
}

/// Sending to an interface that has disappeared returns `ENXIO`, receiving from it `ENODEV`: maps both to one.
pub(super) fn when_gone(error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(libc::ENXIO) { io::Error::from_raw_os_error(libc::ENODEV) } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_is_a_short_count_and_never_an_error() {
        for errno in [libc::ENOBUFS, libc::EAGAIN, libc::EINTR] {
            assert_eq!(short_count(0, io::Error::from_raw_os_error(errno)).unwrap(), 0);
        }
    }

    #[test]
    fn an_error_is_answered_only_when_nothing_was_taken_over() {
        assert_eq!(short_count(3, io::Error::from_raw_os_error(libc::ENETDOWN)).unwrap(), 3);
        assert!(short_count(0, io::Error::from_raw_os_error(libc::ENETDOWN)).is_err());
    }
}
