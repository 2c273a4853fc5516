//! System calls, thin and safe: one file per family. Errors of a call are returned as `io::Error`.
#![allow(unsafe_code)]

pub(crate) mod array;
pub mod canbare;
pub mod canchar;
pub mod canprobe;
pub mod clock;
pub mod control;
pub mod ethtool;
pub mod event;
pub mod file;
pub(crate) mod inbox;
pub mod link_flags;
pub mod map;
pub mod marker;
pub mod poll;
pub mod ports;
pub mod process;
#[cfg(all(target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod rseq;
pub mod socket;
pub mod thread;
pub mod tun;

use std::io;

/// The `-1` of a system call as the error that `errno` holds.
pub(crate) fn check(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// The `-1` of a system call that answers a size, as the error that `errno` holds.
pub(crate) fn check_size(answer: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}

/// An otherwise empty request about the interface `name`, for ioctl(2). netdevice(7).
///
/// # Errors
/// `InvalidInput` for a name that is too long.
pub(crate) fn interface_request(name: &str) -> io::Result<libc::ifreq> {
    if name.len() >= libc::IFNAMSIZ {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: an all-zero ifreq is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, &from) in request.ifr_name.iter_mut().zip(name.as_bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}
