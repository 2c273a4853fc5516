//! The netlink socket: five system calls. It is connected to the kernel, so it receives no messages of other programs.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// How long the kernel may take to answer before we give up rather than hang.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

/// Whom a socket talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Interfaces, routes and can-gw jobs: rtnetlink(7).
    Route,
    /// Families that modules register by a name; see [`generic`](super::generic).
    Generic,
}

/// A netlink socket.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
}

impl Socket {
    /// Opens and connects it, with extended acknowledgements.
    pub fn open(protocol: Protocol) -> io::Result<Self> {
        let protocol = match protocol {
            Protocol::Route => libc::NETLINK_ROUTE,
            Protocol::Generic => libc::NETLINK_GENERIC,
        };
        // SAFETY: socket(2): "creates an endpoint for communication and returns a file descriptor that refers to
        // that endpoint." It takes no pointer.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
        let fd = positive(fd as isize)? as i32;
        // SAFETY: socket(2): "The file descriptor returned by a successful call will be the lowest-numbered file
        // descriptor not currently open for the process", so nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let socket = Self { fd };
        let seconds = libc::timeval { tv_sec: ANSWER_TIME_MAX.as_secs() as libc::time_t, tv_usec: 0 };
        socket.set(libc::SOL_SOCKET, libc::SO_RCVTIMEO, &seconds)?;
        // Linux 4.12 and 4.3; without them errors have no text, so a refusal is no failure.
        let on: libc::c_int = 1;
        let _ = socket.set(libc::SOL_NETLINK, libc::NETLINK_EXT_ACK, &on);
        let _ = socket.set(libc::SOL_NETLINK, libc::NETLINK_CAP_ACK, &on);
        socket.connect()?;
        Ok(socket)
    }

    /// The descriptor, to wait for messages.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn set<T: Copy>(&self, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
        let len = size_of::<T>() as libc::socklen_t;
        // SAFETY: setsockopt(2): "The arguments optval and optlen are used to access option values"; `value` is
        // readable for `len` bytes during the call.
        let answer =
            unsafe { libc::setsockopt(self.fd.as_raw_fd(), level, option, (&raw const *value).cast(), len) };
        positive(answer as isize).map(drop)
    }

    /// Joins a group (`RTNLGRP_…`) to receive its notifications.
    pub fn join(&self, group: u32) -> io::Result<()> {
        self.set(libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, &group)
    }

    fn connect(&self) -> io::Result<()> {
        // SAFETY: netlink(7): `struct sockaddr_nl` has integers only, for which zero is a value: "nl_pid is the
        // unicast address of netlink socket. It's always 0 if the destination is in the kernel."
        let mut kernel: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        kernel.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        let len = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        // SAFETY: connect(2): "The addrlen argument specifies the size of addr"; `kernel` outlives the call.
        let answer = unsafe { libc::connect(self.fd.as_raw_fd(), (&raw const kernel).cast(), len) };
        positive(answer as isize).map(drop)
    }

    /// Sends one request.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        uninterrupted(|| {
            // SAFETY: send(2): "the message is found in buf and has length len"; `bytes` is readable for its length.
            unsafe { libc::send(self.fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) }
        })
        .map(drop)
    }

    /// Receives one whole datagram into `buffer`, which grows as needed.
    ///
    /// # Errors
    /// `TimedOut` when no message arrives in time; `ENOBUFS` when the kernel had to drop an answer.
    pub fn receive(&self, buffer: &mut Vec<u8>) -> io::Result<()> {
        buffer.clear();
        let len = self.receive_into(buffer, libc::MSG_PEEK | libc::MSG_TRUNC)?;
        buffer.resize(len, 0);
        let len = self.receive_into(buffer, 0)?;
        buffer.truncate(len);
        Ok(())
    }

    /// The same without waiting; false when there is nothing.
    ///
    /// # Errors
    /// `ENOBUFS` when the kernel had to drop something.
    pub fn receive_now(&self, buffer: &mut Vec<u8>) -> io::Result<bool> {
        buffer.clear();
        let flags = libc::MSG_PEEK | libc::MSG_TRUNC | libc::MSG_DONTWAIT;
        match self.receive_into(buffer, flags) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(false),
            answer => buffer.resize(answer?, 0),
        }
        let len = self.receive_into(buffer, libc::MSG_DONTWAIT)?;
        buffer.truncate(len);
        Ok(true)
    }

    fn receive_into(&self, buffer: &mut [u8], flags: libc::c_int) -> io::Result<usize> {
        let (start, len) = (buffer.as_mut_ptr(), buffer.len());
        uninterrupted(|| {
            // SAFETY: recv(2): the message is put "into the buffer" of `len` writable bytes; with MSG_TRUNC it may
            // "return the real length of the packet or datagram, even when it was longer than the passed buffer".
            unsafe { libc::recv(self.fd.as_raw_fd(), start.cast(), len, flags) }
        })
        .map_err(|error| match error.kind() {
            // socket(7), SO_RCVTIMEO: "-1 is returned with errno set to EAGAIN or EWOULDBLOCK".
            io::ErrorKind::WouldBlock => {
                io::Error::new(io::ErrorKind::TimedOut, "the kernel did not answer in 5 s")
            }
            _ => error,
        })
    }
}

/// The answer of a system call, or what errno holds.
fn positive(answer: isize) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}

/// Repeats a call that a signal interrupted.
fn uninterrupted(mut call: impl FnMut() -> isize) -> io::Result<usize> {
    loop {
        match positive(call()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            answer => return answer,
        }
    }
}
