//! Waiting for descriptors.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

/// Waits until one of `descriptors` can be read or reports an error, for at most `timeout_ns` (`None`: forever).
/// `Ok(0)`: time-out or a signal.
///
/// # Errors
/// The error of ppoll(2), except for `EINTR`.
pub fn readable(descriptors: &[BorrowedFd<'_>], timeout_ns: Option<u64>) -> io::Result<usize> {
    wait(descriptors, libc::POLLIN, timeout_ns)
}

/// The same for writing. A CAN_RAW socket is writable while its send buffer has room, independent of the interface's queue.
///
/// # Errors
/// The error of ppoll(2), except for `EINTR`.
pub fn writable(descriptor: BorrowedFd<'_>, timeout_ns: Option<u64>) -> io::Result<usize> {
    wait(&[descriptor], libc::POLLOUT, timeout_ns)
}

/// Whether the other end of a descriptor is closed (`POLLHUP`).
///
/// # Errors
/// The error of ppoll(2).
pub fn hung_up(descriptor: BorrowedFd<'_>) -> io::Result<bool> {
    // Without requested events, poll reports only POLLERR, POLLHUP and POLLNVAL.
    wait(&[descriptor], 0, Some(0)).map(|ready| ready > 0)
}

/// More descriptors than any one waiter has.
const DESCRIPTORS_MAX: usize = 64;

fn wait(descriptors: &[BorrowedFd<'_>], events: libc::c_short, timeout_ns: Option<u64>) -> io::Result<usize> {
    assert!(descriptors.len() <= DESCRIPTORS_MAX, "at most {DESCRIPTORS_MAX} descriptors in one wait");
    let mut list = [libc::pollfd { fd: -1, events, revents: 0 }; DESCRIPTORS_MAX];
    for (entry, descriptor) in list.iter_mut().zip(descriptors) {
        entry.fd = descriptor.as_raw_fd();
    }
    let timeout = timeout_ns.map(|ns| libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the list is longer than the count and, like the time-out, outlives the call. ppoll(2): "If the
    // timeout_ts argument is specified as NULL, then ppoll() can block indefinitely."
    let ready = unsafe {
        libc::ppoll(list.as_mut_ptr(), descriptors.len() as libc::nfds_t, timeout, std::ptr::null())
    };
    match super::check(ready) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        answer => answer.map(|count| count as usize),
    }
}
