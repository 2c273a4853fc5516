//! The netlink socket. It is connected to the kernel, so it receives no messages of other programs.

use crate::sys::socket;
use rustix::{
    io::{Errno, retry_on_intr},
    net::{RecvFlags, SendFlags, connect, netlink::SocketAddrNetlink, recv, send},
};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    time::Duration,
};

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
pub struct Socket(socket::Socket);

impl Socket {
    /// Opens and connects it, with extended acknowledgements.
    pub fn open(protocol: Protocol) -> io::Result<Self> {
        let protocol = match protocol {
            Protocol::Route => libc::NETLINK_ROUTE,
            Protocol::Generic => libc::NETLINK_GENERIC,
        };
        let socket = socket::Socket::netlink(protocol)?;
        let seconds = libc::timeval { tv_sec: ANSWER_TIME_MAX.as_secs() as _, tv_usec: 0 };
        socket.set(libc::SOL_SOCKET, libc::SO_RCVTIMEO, seconds)?;
        // Linux 4.12 and 4.3; without them errors have no text, so a refusal is no failure.
        let _ = socket.set(libc::SOL_NETLINK, libc::NETLINK_EXT_ACK, 1i32);
        let _ = socket.set(libc::SOL_NETLINK, libc::NETLINK_CAP_ACK, 1i32);
        // netlink(7): "nl_pid is the unicast address of netlink socket. It's always 0 if the destination is in the kernel."
        connect(&socket, &SocketAddrNetlink::new(0, 0))?;
        Ok(Self(socket))
    }

    /// The descriptor, to wait for messages.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Joins a group (`RTNLGRP_…`) to receive its notifications.
    pub fn join(&self, group: u32) -> io::Result<()> {
        self.0.set(libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, group)
    }

    /// Sends one request.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        retry_on_intr(|| send(&self.0, bytes, SendFlags::empty()))?;
        Ok(())
    }

    /// Receives one whole datagram into `buffer`, which grows as needed.
    ///
    /// # Errors
    /// `TimedOut` when no message arrives in time; `ENOBUFS` when the kernel had to drop an answer.
    pub fn receive(&self, buffer: &mut Vec<u8>) -> io::Result<()> {
        buffer.clear();
        let len = self.receive_into(buffer, RecvFlags::PEEK | RecvFlags::TRUNC)?;
        buffer.resize(len, 0);
        let len = self.receive_into(buffer, RecvFlags::empty())?;
        buffer.truncate(len);
        Ok(())
    }

    /// Receives one datagram without waiting; false when there is none.
    ///
    /// # Errors
    /// `ENOBUFS` when the kernel had to drop something.
    pub fn receive_now(&self, buffer: &mut Vec<u8>) -> io::Result<bool> {
        buffer.clear();
        let flags = RecvFlags::PEEK | RecvFlags::TRUNC | RecvFlags::DONTWAIT;
        match self.receive_into(buffer, flags) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(false),
            answer => buffer.resize(answer?, 0),
        }
        let len = self.receive_into(buffer, RecvFlags::DONTWAIT)?;
        buffer.truncate(len);
        Ok(true)
    }

    fn receive_into(&self, buffer: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
        // recv(2), MSG_TRUNC: "return the real length of the packet or datagram, even when it was longer than the passed
        // buffer".
        match retry_on_intr(|| recv(&self.0, &mut *buffer, flags)) {
            Ok((_, len)) => Ok(len),
            // socket(7), SO_RCVTIMEO: "-1 is returned with errno set to EAGAIN or EWOULDBLOCK".
            Err(Errno::WOULDBLOCK) => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "the kernel did not answer in 5 s"))
            }
            Err(error) => Err(error.into()),
        }
    }
}
