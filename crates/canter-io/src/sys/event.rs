//! One file descriptor for several wake-up sources: epoll, and an event that this process sets.

use rustix::{
    buffer::spare_capacity,
    event::{EventfdFlags, Timespec, epoll, eventfd},
    io::Errno,
};
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
        self.add_numbered(descriptor, 0)
    }

    /// Adds `descriptor` as [`add`](Self::add) does, with a number by which [`wait`](Self::wait) reports it.
    ///
    /// # Errors
    /// The error of epoll_ctl(2).
    pub fn add_numbered(&self, descriptor: BorrowedFd<'_>, number: u64) -> io::Result<()> {
        Ok(epoll::add(&self.0, descriptor, epoll::EventData::new_u64(number), epoll::EventFlags::IN)?)
    }

    /// Waits until one can be read or reports an error, for at most `timeout_ns` (`None`: forever), and puts the numbers of
    /// those into `numbers`: none after the time or a signal. It reports no more than `numbers` has capacity for.
    ///
    /// # Errors
    /// The error of epoll_pwait2(2), except for `EINTR`.
    ///
    /// # Panics
    /// When `numbers` has no capacity.
    pub fn wait(&self, numbers: &mut Ready, timeout_ns: Option<u64>) -> io::Result<()> {
        numbers.0.clear();
        let timeout = timeout_ns
            .map(|ns| Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ });
        match epoll::wait(&self.0, spare_capacity(&mut numbers.0), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
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

/// The numbers of descriptors that can be read.
pub struct Ready(Vec<epoll::Event>);

impl Ready {
    /// Room for as many at once.
    pub fn with_capacity(descriptors: usize) -> Self {
        Self(Vec::with_capacity(descriptors.max(1)))
    }

    /// How many can be read.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none can be read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of one of them.
    ///
    /// # Panics
    /// When there are no more than `at`.
    pub fn number(&self, at: usize) -> u64 {
        let event = self.0[at]; // the kernel's structure is packed
        event.data.u64()
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

    #[test]
    #[cfg_attr(miri, ignore = "system calls")]
    fn a_set_reports_the_numbers_of_the_flags_that_are_set() {
        let (set, flags) = (Any::new().unwrap(), [(); 3].map(|()| Flag::new().unwrap()));
        for (number, flag) in flags.iter().enumerate() {
            set.add_numbered(flag.as_fd(), 10 + number as u64).unwrap();
        }
        let mut ready = Ready::with_capacity(3);
        set.wait(&mut ready, Some(0)).unwrap();
        assert!(ready.is_empty());
        [&flags[0], &flags[2]].into_iter().for_each(Flag::set);
        set.wait(&mut ready, None).unwrap();
        assert_eq!((0..ready.len()).map(|at| ready.number(at)).collect::<Vec<_>>(), [10, 12]);
    }
}
