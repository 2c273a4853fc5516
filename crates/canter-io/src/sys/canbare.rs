//! The module canbare, /dev/canbare: a gateway on a processor that Linux leaves alone. Its system calls, one function
//! each.

use crate::uapi::canbare as uapi;
use std::{fs::File, io, os::fd::AsRawFd};

pub use uapi::{Counts, GONE, NO_INPUT, NO_OUTPUT, NOT_STARTED, ROUTING, STOPPED, Status};

/// The error of a start in a kernel that takes signed modules only.
pub const SIGNED_ONLY: i32 = libc::EKEYREJECTED;
/// The driver's name, in sysfs.
pub const DRIVER: &str = "canbare";
/// The device.
pub const PATH: &str = "/dev/canbare";

/// The open device. The gateway ends when it is dropped.
#[derive(Debug)]
pub struct Launcher(File);

impl Launcher {
    /// Opens it.
    ///
    /// # Errors
    /// `ENOENT` without the module, `EBUSY` when another process uses it, `EACCES` without root.
    pub fn open() -> io::Result<Self> {
        File::open(PATH).map(Self)
    }

    /// Starts the image between the module's two cards at these bit rates (bit/s), and returns when it routes.
    ///
    /// # Errors
    /// The errors listed in kernel/uapi/canbare.h; [`status`](Self::status) has details.
    pub fn start(&self, image: &[u8], bitrate: [u32; 2]) -> io::Result<()> {
        let image_len = image.len().try_into().unwrap_or(u32::MAX); // too long for the module as well
        let mut start = uapi::Start { image: image.as_ptr() as u64, image_len, bitrate, reserved: 0 };
        self.ioctl(uapi::START, &mut start)
    }

    /// Ends the gateway; its counters stay.
    ///
    /// # Errors
    /// The error of ioctl(2).
    pub fn stop(&self) -> io::Result<()> {
        self.ioctl(uapi::STOP, &mut 0u64)
    }

    /// The processor's state, its counters, and the error of its start if it could not be started.
    ///
    /// # Errors
    /// The error of ioctl(2).
    pub fn status(&self) -> io::Result<Status> {
        let mut status = Status::default();
        self.ioctl(uapi::GET_STATUS, &mut status)?;
        Ok(status)
    }

    fn ioctl<T>(&self, request: u32, argument: &mut T) -> io::Result<()> {
        // SAFETY: the argument is the structure whose size is part of the request and outlives the call, as does the
        // image that it may name. kernel/uapi/canbare.h.
        let answer = unsafe { libc::ioctl(self.0.as_raw_fd(), request as _, std::ptr::from_mut(argument)) };
        super::check(answer).map(drop)
    }
}
