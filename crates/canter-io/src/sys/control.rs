//! Control messages: what recvmsg(2) tells of a frame besides its bytes.

use super::socket::Socket;
use crate::{
    Frame, Meta,
    batch::{Clock, Origin},
};
use std::{io, os::fd::AsRawFd};

/// Room for a stamp (`timespec`, 32 bytes with its header), a drop count (24) and three stamps (64), 8-aligned.
pub const CONTROL_WORDS: usize = 16;

/// A buffer for the control messages of one frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct Control([u64; CONTROL_WORDS]);

impl Control {
    /// Receives one frame with recvmsg(2) and what the kernel says of it; answers its size in bytes.
    ///
    /// # Errors
    /// What recvmsg(2) answers.
    pub fn receive(
        &mut self,
        socket: &Socket,
        frame: &mut Frame,
        meta: &mut Meta,
        flags: libc::c_int,
    ) -> io::Result<usize> {
        let mut vector =
            libc::iovec { iov_base: std::ptr::from_mut(frame).cast(), iov_len: size_of::<Frame>() };
        let mut header = self.header(&mut vector);
        // SAFETY: the header points at the vector, the vector at the frame, and the control pointer at `self`; all
        // outlive the call, and any bytes make a valid Frame. recvmsg(2).
        let bytes = super::check_size(unsafe { libc::recvmsg(socket.as_raw_fd(), &mut header, flags) })?;
        note(&header, meta);
        Ok(bytes)
    }

    /// A message header that receives into `vector` and this buffer.
    pub fn header(&mut self, vector: &mut libc::iovec) -> libc::msghdr {
        // SAFETY: an all-zero msghdr is a valid value.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_iov = vector;
        header.msg_iovlen = 1;
        header.msg_control = self.0.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&self.0) as _;
        header
    }
}

/// Writes down what the control messages and flags of a received `header` say.
pub fn note(header: &libc::msghdr, meta: &mut Meta) {
    // raw.c sets MSG_DONTROUTE on frames that a local socket sent, and MSG_CONFIRM on those that this one sent.
    meta.origin = match header.msg_flags {
        flags if flags & libc::MSG_CONFIRM != 0 => Origin::Own,
        flags if flags & libc::MSG_DONTROUTE != 0 => Origin::Local,
        _ => Origin::Bus,
    };
    each_message(header, |level, kind, data| match (level, kind) {
        (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
            // SAFETY: the kernel puts a timespec there; the data need not be aligned for it.
            meta.stamp_ns = ns(unsafe { data.cast::<libc::timespec>().read_unaligned() });
            meta.clock = Clock::Software;
        }
        (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
            // SAFETY: the kernel puts a u32 there.
            meta.drops = unsafe { data.cast::<u32>().read_unaligned() };
        }
        _ => {}
    });
}

/// The controller's own stamp in ns of its own clock, as `SO_TIMESTAMPING` tells it; 0 when it has none.
pub fn hardware_ns(header: &libc::msghdr) -> u64 {
    let mut stamp_ns = 0;
    each_message(header, |level, kind, data| {
        if (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) {
            // SAFETY: Documentation/networking/timestamping.rst: struct scm_timestamping has three timespecs, "the
            // third" of which is the hardware's; they need not be aligned.
            let [_, _, hardware] = unsafe { data.cast::<[libc::timespec; 3]>().read_unaligned() };
            stamp_ns = ns(hardware);
        }
    });
    stamp_ns
}

fn ns(time: libc::timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Walks the control messages of a received `header`: level, type, data.
fn each_message(header: &libc::msghdr, mut each: impl FnMut(libc::c_int, libc::c_int, *const u8)) {
    // SAFETY: the kernel filled the control buffer and set its length. cmsg(3).
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !message.is_null() {
        // SAFETY: not null, so it points at a whole cmsghdr inside the buffer.
        let about = unsafe { &*message };
        // SAFETY: as above; cmsg(3): the data follows the header.
        let data = unsafe { libc::CMSG_DATA(message) };
        each(about.cmsg_level, about.cmsg_type, data);
        // SAFETY: `message` is a header of this buffer. cmsg(3): null after the last.
        message = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
}
