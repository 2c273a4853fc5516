//! One file descriptor for several wake-up sources: epoll, and an event that this process sets.

use rustix::event::{EventfdFlags, epoll, eventfd};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

/// A set of descriptors that is readable when one of them is.
#[derive(Debug)]
pub struct Any(OwnedFd);

impl Any {
    /// An empty set.
    ///
    /// # Errors
    /// The error of epoll_create1(2).
    pub fn new() -> io::Result<Self> {
        Ok(Self(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    /// Adds `descriptor`, for reading, level-triggered. It leaves the set when it is closed.
    ///
    /// # Errors
    /// The error of epoll_ctl(2).
    pub fn add(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::add(&self.0, descriptor, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?)
    }

    /// Takes `descriptor` out of it.
    ///
    /// # Errors
    /// The error of epoll_ctl(2); `ENOENT` when the descriptor is not in the set.
    pub fn remove(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::delete(&self.0, descriptor)?)
    }
}

impl AsFd for Any {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A flag that is a descriptor: readable while it is set.
#[derive(Debug)]
pub struct Flag(OwnedFd);

impl Flag {
    /// A flag that is not set.
    ///
    /// # Errors
    /// The error of eventfd(2).
    pub fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Sets it.
    pub fn set(&self) {
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes()); // fails only for a full counter, which is set
    }

    /// Clears it.
    pub fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]); // EAGAIN when it is clear
    }
}

impl AsFd for Flag {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::poll;

    #[test]
    #[cfg_attr(miri, ignore = "system calls")]
    fn a_set_is_readable_while_a_flag_in_it_is_set() {
        let (set, flag) = (Any::new().unwrap(), Flag::new().unwrap());
        set.add(flag.as_fd()).unwrap();
        let ready = || poll::readable(&[set.as_fd()], Some(0)).unwrap();
        assert_eq!(ready(), 0);
        flag.set();
        flag.set();
        assert_eq!(ready(), 1);
        flag.clear();
        assert_eq!(ready(), 0);
        flag.set();
        set.remove(flag.as_fd()).unwrap();
        assert_eq!(ready(), 0);
    }
}
