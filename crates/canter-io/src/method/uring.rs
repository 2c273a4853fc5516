//! `io-uring`: receives by one multishot request with provided buffers, sends by chains of linked requests. For CAN it
//! costs more than recvmmsg and sendmmsg: use it for comparison, not by default.
//!
//! - The thread processes completions when it asks for them (`DEFER_TASKRUN`), so they do not interrupt it. The ring
//!   belongs to the thread that first uses it (`SINGLE_ISSUER`).
//! - Requests that are not linked overtake each other when one finds no room. So each send is linked to the previous
//!   one, and a failed send cancels the later ones: the sent frames are always a prefix.
//! - The receiver returns a buffer to the kernel when it has copied the frame. When the buffers run out, the multishot
//!   request ends, frames wait in the socket's queue, and the receiver submits the request again.
//! - The memory of requests is in arrays that do not move and are never freed while the kernel may use them: when a
//!   request cannot be ended, its memory is leaked.

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

/// Fails with the reason when io_uring cannot receive from `interface`.
pub(super) fn check_receive(interface: &Interface, _wait: Wait) -> Result<()> {
    check_receiver(interface, Wait::Block)?;
    let ring = Ring::new(8).and_then(|ring| Buffers::new(&ring));
    ring.map(drop).map_err(|error| refused(interface, error))
}

/// Fails with the reason when io_uring cannot send to `interface`.
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
