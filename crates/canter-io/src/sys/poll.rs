//! Waiting for descriptors.

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::CWD,
    io::Errno,
};
use std::{array, io, os::fd::BorrowedFd};

/// Waits until one of `descriptors` can be read or reports an error, for at most `timeout_ns` (`None`: forever).
/// `Ok(0)`: time-out or a signal.
///
/// # Errors
/// The error of ppoll(2), except for `EINTR`.
pub fn readable(descriptors: &[BorrowedFd<'_>], timeout_ns: Option<u64>) -> io::Result<usize> {
    wait(descriptors, PollFlags::IN, timeout_ns)
}

/// Waits until `descriptor` can be written or reports an error. A CAN_RAW socket is writable while its send buffer has
/// room, independent of the interface's queue.
///
/// # Errors
/// The error of ppoll(2), except for `EINTR`.
pub fn writable(descriptor: BorrowedFd<'_>, timeout_ns: Option<u64>) -> io::Result<usize> {
    wait(&[descriptor], PollFlags::OUT, timeout_ns)
}

/// Whether the other end of a descriptor is closed (`POLLHUP`).
///
/// # Errors
/// The error of ppoll(2).
pub fn hung_up(descriptor: BorrowedFd<'_>) -> io::Result<bool> {
    // Without requested events, poll reports only POLLERR, POLLHUP and POLLNVAL.
    wait(&[descriptor], PollFlags::empty(), Some(0)).map(|ready| ready > 0)
}

/// More descriptors than any one waiter has.
const DESCRIPTORS_MAX: usize = 64;

fn wait(descriptors: &[BorrowedFd<'_>], events: PollFlags, timeout_ns: Option<u64>) -> io::Result<usize> {
    assert!(descriptors.len() <= DESCRIPTORS_MAX, "at most {DESCRIPTORS_MAX} descriptors in one wait");
    let descriptor = |at| descriptors.get(at).copied().unwrap_or(CWD); // CWD fills the places that are cut off
    let mut list: [_; DESCRIPTORS_MAX] =
        array::from_fn(|at| PollFd::from_borrowed_fd(descriptor(at), events));
    let timeout = timeout_ns
        .map(|ns| Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ });
    match poll(&mut list[..descriptors.len()], timeout.as_ref()) {
        Err(Errno::INTR) => Ok(0),
        ready => Ok(ready?),
    }
}
