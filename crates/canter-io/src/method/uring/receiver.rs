//! The receiver: copies the frames of the completions of one multishot request.
#![allow(unsafe_code)]

use super::{Buffers, Ring, buffers::GROUP, refused};
use crate::{
    Batch, Frame, Interface, Meta, Result,
    frame::{CAN_MTU, CANFD_MTU},
    method::{Receive, ReceiveOptions, Wait, can_raw},
    sys::{
        array::Array,
        control::{self, Control},
        socket::Socket,
    },
};
use io_uring::{
    cqueue, opcode,
    types::{Fd, RecvMsgOut},
};
use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
};

pub(in crate::method) fn receiver(
    interface: &Interface,
    options: &ReceiveOptions,
) -> Result<Box<dyn Receive>> {
    let socket = can_raw::receiving(interface, options)?;
    let (ring, buffers) = Ring::new(8)
        .and_then(|ring| Buffers::new(&ring).map(|buffers| (ring, buffers)))
        .map_err(|error| refused(interface, error))?;
    let header = options.stamps.then(Header::new);
    let wait = options.wait.unwrap_or(Wait::Block);
    let index = interface.index;
    Ok(Box::new(Receiver { ring, buffers, socket, header, wait, index, armed: false, delayed: None }))
}

struct Receiver {
    ring: Ring,
    buffers: Buffers,
    socket: Socket,
    /// What recvmsg reports in addition to the frame; `None`: nothing.
    header: Option<Header>,
    wait: Wait,
    index: u32,
    /// The multishot request is active.
    armed: bool,
    /// An error to return after the frames that precede it. The kernel reports it before them, and only once.
    delayed: Option<io::Error>,
}

/// The sizes that a multishot recvmsg asks for; its pointers are null.
struct Header(Array<libc::msghdr>);

// SAFETY: there is nothing behind its pointers.
unsafe impl Send for Header {}

impl Header {
    fn new() -> Self {
        // SAFETY: an all-zero msghdr is a valid value.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_controllen = size_of::<Control>() as _;
        Self(Array::new(header, 1))
    }

    fn get(&self) -> &libc::msghdr {
        // SAFETY: nobody writes it.
        let headers = unsafe { self.0.slice() };
        &headers[0]
    }
}

impl Drop for Receiver {
    /// A request that cannot be ended, for example on another thread than the ring's, keeps its memory.
    fn drop(&mut self) {
        if !self.ring.end(|_| ()) {
            self.buffers.leak();
            self.header.iter_mut().for_each(|header| header.0.leak());
        }
    }
}

impl Receive for Receiver {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
        loop {
            let count = self.take(batch);
            if count > 0 || batch.room() == 0 {
                return Ok(count);
            }
            if !self.armed {
                self.arm()?;
                continue;
            }
            if let Some(error) = self.delayed.take() {
                return Err(error);
            }
            if self.wait == Wait::Block {
                match self.ring.enter(1) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(0),
                    done => done?,
                }
            } else if self.ring.has_deferred() {
                self.ring.enter(0)?;
            } else {
                crate::sys::thread::relax();
                return Ok(0);
            }
        }
    }

    fn drops(&mut self) -> io::Result<u64> {
        self.socket.drops()
    }

    /// The descriptor to wait for: the ring while it has completions; otherwise the socket, where frames wait.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(if self.ring.has_completed() { self.ring.as_fd() } else { self.socket.as_fd() })
    }
}

impl Receiver {
    /// Submits the multishot request, and copies the frames that wait already.
    fn arm(&mut self) -> io::Result<()> {
        self.ring.enable()?;
        let fd = Fd(self.socket.as_raw_fd());
        let entry = match &self.header {
            None => opcode::RecvMulti::new(fd, GROUP).build(),
            Some(Header(header)) => opcode::RecvMsgMulti::new(fd, header.place(0), GROUP).build(),
        };
        // SAFETY: the socket, the buffers and the header stay until the request has ended, or for ever (see `drop`).
        unsafe { self.ring.push(&entry) }?;
        self.armed = true;
        self.ring.enter(0)
    }

    /// Copies the frames of all completions, and returns the buffers.
    fn take(&mut self, batch: &mut Batch) -> usize {
        let mut count = 0;
        let Self { ring, buffers, header, index, armed, delayed, .. } = self;
        let mut completions = ring.completions();
        while let Some((frame, meta)) = batch.place() {
            let Some(completion) = completions.next() else { break };
            *armed &= cqueue::more(completion.flags());
            let number = cqueue::buffer_select(completion.flags());
            match (completion.result(), number) {
                (bytes @ 0.., Some(number)) => {
                    *meta = Meta { interface: *index, ..Meta::default() };
                    let buffer = buffers.filled(number);
                    let is_frame = match header {
                        None => copy(buffer.get(..bytes as usize), frame),
                        Some(header) => copy_message(buffer, header.get(), frame, meta),
                    };
                    if is_frame {
                        batch.commit(1);
                        count += 1;
                    }
                    buffers.give(number);
                }
                (negative, _) => match -negative {
                    // No buffer was free, or the request was cancelled: it is submitted again.
                    libc::ENOBUFS | libc::ECANCELED | libc::EINTR | libc::EAGAIN => {}
                    errno => *delayed = delayed.take().or(Some(io::Error::from_raw_os_error(errno))),
                },
            }
        }
        drop(completions);
        if count > 0 {
            buffers.publish();
        }
        count
    }
}

/// Copies a frame; false when the bytes are not a frame.
fn copy(bytes: Option<&[u8]>, frame: &mut Frame) -> bool {
    let Some(bytes) = bytes.filter(|bytes| [CAN_MTU, CANFD_MTU].contains(&bytes.len())) else { return false };
    let to = std::ptr::from_mut(frame).cast::<u8>();
    // SAFETY: a Frame has 72 bytes, any of whose values are valid, and overlaps no buffer.
    unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    frame.received_as(bytes.len());
    true
}

/// Copies a frame from the buffer of a multishot recvmsg: header, control messages and payload.
fn copy_message(buffer: &[u8], request: &libc::msghdr, frame: &mut Frame, meta: &mut Meta) -> bool {
    let Ok(message) = RecvMsgOut::parse(buffer, request) else { return false };
    control::note(message.control_data(), message.flags() as libc::c_int, meta);
    copy(Some(message.payload_data()), frame)
}
