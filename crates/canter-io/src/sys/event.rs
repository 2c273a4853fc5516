//! One file descriptor for several wake-up sources: epoll, and an event that this process sets.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
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
        // SAFETY: no memory is passed. epoll_create1(2).
        let raw = super::check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the kernel has just made this descriptor, and nobody else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(raw) }))
    }

    /// Adds `descriptor`, for reading, level-triggered. It leaves the set when it is closed.
    ///
    /// # Errors
    /// The error of epoll_ctl(2).
    pub fn add(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        let (set, one) = (self.0.as_raw_fd(), descriptor.as_raw_fd());
        // SAFETY: the event outlives the call. epoll_ctl(2).
        super::check(unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, one, &mut event) }).map(drop)
    }

    /// Takes `descriptor` out of it.
    ///
    /// # Errors
    /// The error of epoll_ctl(2); `ENOENT` when the descriptor is not in the set.
    pub fn remove(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let (set, one) = (self.0.as_raw_fd(), descriptor.as_raw_fd());
        // SAFETY: no memory is passed. epoll_ctl(2): "event is ignored and can be NULL" for EPOLL_CTL_DEL.
        let answer = unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_DEL, one, std::ptr::null_mut()) };
        super::check(answer).map(drop)
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
        // SAFETY: no memory is passed. eventfd(2).
        let raw = super::check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: the kernel has just made this descriptor, and nobody else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(raw) }))
    }

    /// Sets it.
    pub fn set(&self) {
        let one = 1u64;
        // SAFETY: eight bytes, as eventfd(2) wants them, that outlive the call. It cannot fail but for a full counter,
        // which is set.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }

    /// Clears it.
    pub fn clear(&self) {
        let mut count = 0u64;
        // SAFETY: eight bytes, as eventfd(2) wants them, that outlive the call. It answers EAGAIN when it is clear.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
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
