//! `recvmmsg` and `sendmmsg`: many frames per system call. They are faster when frames queue up, and slower for single
//! frames, because of their longer headers.
//!
//! recvmmsg's own time-out is never used: it is looked at only after a frame has come, so it does not end a wait.

use super::{
    Receive, ReceiveOptions, Room, Transmit, TransmitOptions, Wait, can_raw, read_write::short_count,
};
use crate::{
    Batch, Frame, Interface, Meta, Result,
    batch::BATCH_FRAMES,
    sys::{
        inbox::{Headers, Wanted},
        poll,
        socket::Socket,
    },
};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
};

/// Frames per system call; larger batches take several. recvmmsg(2): the kernel caps it at UIO_MAXIOV (1024).
const CALL_FRAMES: usize = 4 * BATCH_FRAMES;

pub(super) fn receiver(interface: &Interface, options: &ReceiveOptions) -> Result<Box<dyn Receive>> {
    let socket = can_raw::receiving(interface, options)?;
    let wait = options.wait.unwrap_or(Wait::Block);
    let headers = Headers::new(CALL_FRAMES, Wanted { control: options.stamps, interface: false });
    Ok(Box::new(Receiver { socket, wait, index: interface.index, headers, delayed: None }))
}

struct Receiver {
    socket: Socket,
    wait: Wait,
    index: u32,
    headers: Headers,
    /// An error that waits behind frames. The kernel tells it before them and only once.
    delayed: Option<io::Error>,
}

impl Receive for Receiver {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
        loop {
            let blocks = self.wait == Wait::Block && self.delayed.is_none();
            let flags = if blocks { libc::MSG_WAITFORONE } else { libc::MSG_DONTWAIT };
            let error = match self.take(batch, flags) {
                Ok(count) => return Ok(count),
                Err(error) => error,
            };
            match (error.kind(), self.delayed.take()) {
                (io::ErrorKind::Interrupted, _) => return Ok(0),
                (io::ErrorKind::WouldBlock, Some(delayed)) => return Err(delayed),
                (io::ErrorKind::WouldBlock, None) if self.wait == Wait::Poll => {
                    if poll::readable(&[self.socket.as_fd()], None)? == 0 {
                        return Ok(0); // a signal
                    }
                }
                (io::ErrorKind::WouldBlock, None) => {
                    crate::sys::thread::relax();
                    return Ok(0);
                }
                (_, None) => self.delayed = Some(error),
                (_, Some(_)) => return Err(error), // a second one, with or without frames between
            }
        }
    }

    fn drops(&mut self) -> io::Result<u64> {
        self.socket.drops()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}

impl Receiver {
    /// One system call into the batch's spare places.
    fn take(&mut self, batch: &mut Batch, flags: libc::c_int) -> io::Result<usize> {
        let (frames, meta) = batch.spare();
        let count = self.headers.receive(&self.socket, frames, flags)?;
        for ((about, frame), meta) in self.headers.received(count).zip(frames).zip(meta) {
            frame.received_as(about.bytes());
            *meta = Meta { interface: self.index, ..Meta::default() };
            about.note(meta);
        }
        batch.commit(count);
        Ok(count)
    }
}

pub(super) fn transmitter(interface: &Interface, options: &TransmitOptions) -> Result<Box<dyn Transmit>> {
    let socket = can_raw::sending(interface, options)?;
    let headers = Headers::new(CALL_FRAMES, Wanted::default());
    Ok(Box::new(Sender { socket, room: Room::new(options), headers }))
}

struct Sender {
    socket: Socket,
    room: Room,
    headers: Headers,
}

impl Transmit for Sender {
    fn transmit(&mut self, frames: &[Frame]) -> io::Result<usize> {
        let mut sent = 0;
        while sent < frames.len() {
            match self.headers.send(&self.socket, &frames[sent..], self.room.flags()) {
                Ok(count) => sent += count,
                Err(error) => return short_count(sent, error),
            }
        }
        Ok(sent)
    }

    fn set_waiting(&mut self, waits: bool) {
        self.room.set_waiting(waits);
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}
