//! `recvmmsg` and `sendmmsg`: many frames per system call. They win when frames queue up; one frame at a time they
//! cost what their longer headers cost.
//!
//! recvmmsg's own time-out is never used: it is looked at only after a frame has come, so it does not end a wait.
#![allow(unsafe_code)]

use super::{Receive, ReceiveOptions, Transmit, TransmitOptions, Wait, can_raw, read_write::short_count};
use crate::{
    Batch, Frame, Interface, Meta, Result,
    batch::BATCH_FRAMES,
    sys::{
        self,
        control::{self, Control},
        poll,
        socket::Socket,
    },
};
use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
};

/// Frames per system call; larger batches take several. recvmmsg(2): the kernel caps it at UIO_MAXIOV (1024).
const CALL_FRAMES: usize = 4 * BATCH_FRAMES;

pub(super) fn receiver(interface: &Interface, options: &ReceiveOptions) -> Result<Box<dyn Receive>> {
    let socket = can_raw::receiving(interface, options)?;
    let wait = options.wait.unwrap_or(Wait::Block);
    let headers = Headers::new(if options.stamps { CALL_FRAMES } else { 0 });
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
            let error = match self.headers.receive(&self.socket, batch, self.index, flags) {
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
                    std::hint::spin_loop(); // lets a sibling thread, or in a virtual clock the other processor, run
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

/// Message headers of up to [`CALL_FRAMES`] frames, made once.
struct Headers {
    messages: Box<[libc::mmsghdr]>,
    vectors: Box<[libc::iovec]>,
    /// Empty when nothing but the frames is asked for.
    controls: Box<[Control]>,
}

// SAFETY: the pointers in the headers lead to this value's own boxes, or are set anew before each call.
unsafe impl Send for Headers {}

impl Headers {
    fn new(controls: usize) -> Self {
        let vector = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let mut vectors = vec![vector; CALL_FRAMES].into_boxed_slice();
        let mut controls = vec![Control::default(); controls].into_boxed_slice();
        let messages = vectors.iter_mut().enumerate().map(|(at, vector)| {
            // SAFETY: an all-zero msghdr is a valid value.
            let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
            header.msg_iov = vector;
            header.msg_iovlen = 1;
            if let Some(control) = controls.get_mut(at) {
                header = control.header(vector);
            }
            libc::mmsghdr { msg_hdr: header, msg_len: 0 }
        });
        Self { messages: messages.collect(), vectors, controls }
    }

    fn receive(&mut self, socket: &Socket, batch: &mut Batch, index: u32, flags: i32) -> io::Result<usize> {
        let (frames, meta) = batch.spare();
        let most = frames.len().min(CALL_FRAMES);
        for (vector, frame) in self.vectors.iter_mut().zip(&mut frames[..most]) {
            *vector = libc::iovec { iov_base: std::ptr::from_mut(frame).cast(), iov_len: size_of::<Frame>() };
        }
        // SAFETY: the headers point at our vectors and controls, the vectors at `most` places of the batch; all outlive
        // the call, and any bytes make a valid Frame. recvmmsg(2).
        let answer = unsafe {
            let messages = self.messages.as_mut_ptr();
            libc::recvmmsg(socket.as_raw_fd(), messages, most as u32, flags, std::ptr::null_mut())
        };
        let count = sys::check(answer)? as usize;
        for ((message, frame), meta) in self.messages[..count].iter_mut().zip(frames).zip(meta) {
            frame.received_as(message.msg_len as usize);
            *meta = Meta { interface: index, ..Meta::default() };
            if !self.controls.is_empty() {
                control::note(&message.msg_hdr, meta);
                message.msg_hdr.msg_controllen = size_of::<Control>() as _; // the kernel wrote what it used
            }
        }
        batch.commit(count);
        Ok(count)
    }
}

pub(super) fn transmitter(interface: &Interface, options: &TransmitOptions) -> Result<Box<dyn Transmit>> {
    let socket = can_raw::sending(interface, options)?;
    let flags = if options.no_wait { libc::MSG_DONTWAIT } else { 0 };
    Ok(Box::new(Sender { socket, flags, headers: Headers::new(0) }))
}

struct Sender {
    socket: Socket,
    flags: libc::c_int,
    headers: Headers,
}

impl Transmit for Sender {
    fn transmit(&mut self, frames: &[Frame]) -> io::Result<usize> {
        let mut sent = 0;
        while sent < frames.len() {
            match self.call(&frames[sent..]) {
                Ok(count) => sent += count,
                Err(error) => return short_count(sent, error),
            }
        }
        Ok(sent)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}

impl Sender {
    /// One system call; at least one frame is sent, or the reason comes back.
    fn call(&mut self, frames: &[Frame]) -> io::Result<usize> {
        let most = frames.len().min(CALL_FRAMES);
        for (vector, frame) in self.headers.vectors.iter_mut().zip(&frames[..most]) {
            *vector =
                libc::iovec { iov_base: std::ptr::from_ref(frame).cast_mut().cast(), iov_len: frame.mtu() };
        }
        // SAFETY: the headers point at our vectors, the vectors at `most` frames, which the kernel only reads; all
        // outlive the call. sendmmsg(2): "On success, sendmmsg() returns the number of messages sent".
        let answer = unsafe {
            let messages = self.headers.messages.as_mut_ptr();
            libc::sendmmsg(self.socket.as_raw_fd(), messages, most as u32, self.flags)
        };
        sys::check(answer).map(|count| count as usize)
    }
}
