//! `io-uring`: frames received by one standing request (multishot, buffers given beforehand), sent by chains of linked
//! requests. Modern, and for CAN dearer than recvmmsg and sendmmsg: a row to measure, not a default.
//!
//! - Completions are run by this thread when it asks for them (`DEFER_TASKRUN`), so nothing interrupts it; the ring
//!   belongs to the thread that first uses it (`SINGLE_ISSUER`).
//! - Requests that are not linked pass each other when one finds no room: each send waits for the one before, and a
//!   failed one cancels those behind it, so that what was sent is always a prefix.
//! - Buffers come back to the kernel when a frame has been copied out of them. When they run out the standing request
//!   ends; frames wait in the socket's queue then, and it is made anew.
//! - What a request points at is in arrays that keep their place and are never freed while the kernel may still use
//!   them: who cannot end a request leaks its memory.

mod buffers;
mod receiver;
mod ring;
mod sender;

use super::{Wait, read_write::check_receiver};
use crate::{Error, Interface, Result};
use buffers::Buffers;
use ring::Ring;
use std::io;

pub(super) use receiver::receiver;
pub(super) use sender::transmitter;

/// Why io_uring cannot receive from `interface`.
pub(super) fn check_receive(interface: &Interface, _wait: Wait) -> Result<()> {
    check_receiver(interface, Wait::Block)?;
    let ring = Ring::new(8).and_then(|ring| Buffers::new(&ring));
    ring.map(drop).map_err(|error| refused(interface, error))
}

/// Why io_uring cannot send to `interface`.
pub(super) fn check_transmit(interface: &Interface) -> Result<()> {
    super::read_write::check_transmitter(interface)?;
    Ring::new(8).map(drop).map_err(|error| refused(interface, error))
}

fn refused(interface: &Interface, error: io::Error) -> Error {
    let why = match error.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel has no io_uring",
        Some(libc::EPERM) => "io_uring is switched off (sysctl kernel.io_uring_disabled)",
        Some(libc::EINVAL) => {
            "this kernel's io_uring has no DEFER_TASKRUN (Linux 6.1) or no buffer rings (5.19)"
        }
        _ => return Error::new(&interface.name, "io_uring", error),
    };
    Error::unsupported(&interface.name, "io_uring", why)
}
