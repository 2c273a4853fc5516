//! Changes of interfaces, as the kernel reports them to the members of the multicast group `RTNLGRP_LINK`. rtnetlink(7).

use crate::{
    Error, Interface, Result,
    carrier::{network, table::NETWORK},
    netlink::{
        answer::Messages,
        counters::Counters,
        link::Link,
        socket::{Protocol, Socket},
    },
};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
};

/// A change of a CAN interface.
#[derive(Clone, Debug)]
pub enum Change {
    /// An interface was created or changed: its new description, and its counters at that time.
    Is(Interface, Counters),
    /// An interface was removed: its last description, and its last counters.
    Gone(Interface, Counters),
    /// The kernel dropped reports: read the list of interfaces again.
    Missed,
}

/// Listens for changes of CAN interfaces. It needs no permission.
#[derive(Debug)]
pub struct Monitor {
    socket: Socket,
    datagram: Vec<u8>,
}

impl Monitor {
    /// Starts listening in this network namespace.
    ///
    /// # Errors
    /// The error of socket(2) or setsockopt(2).
    pub fn open() -> Result<Self> {
        let socket = Socket::open(Protocol::Route).and_then(|socket| {
            socket.join(libc::RTNLGRP_LINK)?;
            Ok(socket)
        });
        let socket = socket.map_err(|error| Error::new("interfaces", "listen for changes", error))?;
        Ok(Self { socket, datagram: Vec::new() })
    }

    /// Passes the changes since the last call to `each`, oldest first, without waiting.
    ///
    /// # Errors
    /// The error of recv(2).
    pub fn changes(&mut self, mut each: impl FnMut(Change)) -> io::Result<()> {
        loop {
            match self.socket.receive_now(&mut self.datagram) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    each(Change::Missed);
                    continue;
                }
                Err(error) => return Err(error),
            }
            for message in Messages::new(&self.datagram) {
                let Some(link) = Link::decode(message.payload) else { continue };
                match message.kind {
                    _ if link.hardware != libc::ARPHRD_CAN => {}
                    libc::RTM_NEWLINK => {
                        let counters = link.counters;
                        each(Change::Is(network::from_link(link, &NETWORK), counters));
                    }
                    libc::RTM_DELLINK => {
                        let counters = link.counters;
                        each(Change::Gone(network::from_link(link, &NETWORK), counters));
                    }
                    _ => {}
                }
            }
        }
    }
}

impl AsFd for Monitor {
    /// Readable when a change waits.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
