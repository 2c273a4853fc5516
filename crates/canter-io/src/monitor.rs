//! What happens to interfaces, as the kernel tells everyone who listens to `RTNLGRP_LINK`. rtnetlink(7).

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
    /// It was made, or something about it is different; and what it had counted then.
    Is(Interface, Counters),
    /// It was removed; and what it had counted at last.
    Gone(Interface, Counters),
    /// The kernel had to drop news: whoever keeps a list asks anew.
    Missed,
}

/// Listens for changes of CAN interfaces. It needs no permission.
#[derive(Debug)]
pub struct Monitor {
    socket: Socket,
    datagram: Vec<u8>,
}

impl Monitor {
    /// Listens from now on, in this network namespace.
    ///
    /// # Errors
    /// What socket(2) and setsockopt(2) answer.
    pub fn open() -> Result<Self> {
        let socket = Socket::open(Protocol::Route).and_then(|socket| {
            socket.join(libc::RTNLGRP_LINK)?;
            Ok(socket)
        });
        let socket = socket.map_err(|error| Error::new("interfaces", "listen for changes", error))?;
        Ok(Self { socket, datagram: Vec::new() })
    }

    /// Hands the changes since the last call to `each`, oldest first, without waiting.
    ///
    /// # Errors
    /// What recv(2) answers.
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
    /// Readable when there are changes.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
