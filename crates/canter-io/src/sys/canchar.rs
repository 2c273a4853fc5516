//! An open file of a canchar device: its system calls, one function each.

use crate::{Filters, uapi::canchar as uapi};
use rustix::fs::{OFlags, fcntl_setfl};
use std::{
    fs::{File, OpenOptions},
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

pub use uapi::{ADAPTIVE, ECHO, ECHO_OWN, FRAME_LOCAL, FRAME_OWN, NO_STAMPS, OVERWRITE, POLL_CHIP};
pub use uapi::{FOREVER, Frame as RawFrame, Options, PollEntry, SLOTS_MAX, Statistics};

/// An open canchar device.
#[derive(Debug)]
pub struct Device {
    file: File,
    /// What its receive queue had lost when counting began.
    lost_before: u64,
}

impl Device {
    /// Opens a device, for waiting calls or for calls that answer `EAGAIN`.
    ///
    /// # Errors
    /// The error of open(2); `ENODEV` when the board has disappeared.
    pub fn open(path: &Path, nonblocking: bool) -> io::Result<Self> {
        let flags = if nonblocking { libc::O_NONBLOCK } else { 0 };
        OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).map(Self::from)
    }

    /// Whether a call returns at once instead of waiting. Closing a file that waits sends its waiting frames first.
    ///
    /// # Errors
    /// The error of fcntl(2).
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        let flags = if on { OFlags::NONBLOCK } else { OFlags::empty() };
        Ok(fcntl_setfl(&self.file, flags)?) // fcntl(2): F_SETFL ignores the access mode.
    }

    /// Changes the file's options by `change`.
    ///
    /// # Errors
    /// `EINVAL` for options that cannot be, `EBUSY` for rings that are mapped.
    pub fn change(&self, change: impl FnOnce(&mut Options)) -> io::Result<()> {
        let mut options = self.options()?;
        change(&mut options);
        self.ioctl(uapi::SET_OPTIONS, &mut options).map(drop)
    }

    /// Tells the driver that this file needs no stamps: it then reads no clock for a frame if no other file needs one.
    /// A driver that lacks the option stamps all frames.
    ///
    /// # Errors
    /// The error of ioctl(2).
    pub fn decline_stamps(&self) -> io::Result<()> {
        match self.change(|set| set.flags |= NO_STAMPS) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
            answer => answer,
        }
    }

    /// The file's options.
    ///
    /// # Errors
    /// The error of ioctl(2).
    pub fn options(&self) -> io::Result<Options> {
        let mut options = Options::default();
        self.ioctl(uapi::GET_OPTIONS, &mut options)?;
        Ok(options)
    }

    /// Lets only frames through that pass `filters`.
    ///
    /// # Errors
    /// `EINVAL` for more than 4096.
    pub fn set_filters(&self, filters: &Filters) -> io::Result<()> {
        let mut set = uapi::FilterSet {
            count: filters.list.len() as u32,
            error_mask: filters.error_mask,
            join: filters.join.into(),
            reserved: 0,
            filters: filters.list.as_ptr() as u64,
        };
        self.ioctl(uapi::SET_FILTERS, &mut set).map(drop)
    }

    /// What the device and the file have counted.
    ///
    /// # Errors
    /// The error of ioctl(2).
    pub fn statistics(&self) -> io::Result<Statistics> {
        let mut statistics = Statistics::default();
        self.ioctl(uapi::GET_STATISTICS, &mut statistics)?;
        Ok(statistics)
    }

    /// Resets the loss counter of its receive queue.
    ///
    /// # Errors
    /// The error of ioctl(2).
    pub fn start_counting(&mut self) -> io::Result<()> {
        self.lost_before = self.statistics()?.file_rx_lost;
        Ok(())
    }

    /// Frames that its receive queue has lost since then, or since it was opened.
    ///
    /// # Errors
    /// The error of ioctl(2).
    pub fn lost(&self) -> io::Result<u64> {
        Ok(self.statistics()?.file_rx_lost.saturating_sub(self.lost_before))
    }

    /// Waits for at most `timeout_ns` (0: looks once; [`FOREVER`]) until `min` frames wait; returns their number.
    ///
    /// # Errors
    /// `EINTR`, `ENETDOWN`, `ENODEV`, when no frame waits.
    pub fn wait(&self, min: u32, timeout_ns: u64) -> io::Result<u32> {
        self.ioctl(uapi::WAIT, &mut uapi::Wait { timeout_ns, min, reserved: 0 })
    }

    /// Sends the frames in the mapped transmit ring; returns the number of frames left in it.
    ///
    /// # Errors
    /// `ENETDOWN`, `ENODEV`.
    pub fn kick(&self) -> io::Result<u32> {
        self.ioctl(uapi::KICK, &mut 0u64)
    }

    /// Waits for at most `timeout_ns` until all frames of this file were on the bus.
    ///
    /// # Errors
    /// `ETIME`, `EINTR`, `ENETDOWN`, `ENODEV`.
    pub fn wait_sent(&self, timeout_ns: u64) -> io::Result<()> {
        self.ioctl(uapi::WAIT_TX_DONE, &mut timeout_ns.clone()).map(drop)
    }

    /// Waits for many devices at once, for at most `timeout_ns`; returns how many have frames.
    ///
    /// # Errors
    /// `EBADF`, `ENOTTY` for a file that is not a canchar device, `EINTR`.
    pub fn poll_set(&self, entries: &mut [PollEntry], timeout_ns: u64) -> io::Result<u32> {
        let mut set = uapi::PollSet {
            timeout_ns,
            count: entries.len() as u32,
            reserved: 0,
            entries: entries.as_mut_ptr() as u64,
        };
        self.ioctl(uapi::POLL_SET, &mut set)
    }

    /// Reads the waiting frames, as far as they fit.
    ///
    /// # Errors
    /// `EAGAIN`, `EINTR`, `ENETDOWN`, `ENODEV`, `EBUSY` when the file is mapped.
    pub fn read(&self, frames: &mut [RawFrame]) -> io::Result<usize> {
        let bytes = size_of_val(frames);
        // SAFETY: the slice is writable for `bytes` bytes, outlives the call, and any bytes make a valid RawFrame.
        // read(2), past libc's own, which in a program of several threads makes a point of cancellation of it.
        let answer =
            unsafe { libc::syscall(libc::SYS_read, self.file.as_raw_fd(), frames.as_mut_ptr(), bytes) };
        Ok(super::check_size(answer as isize)? / size_of::<RawFrame>())
    }

    /// Writes frames, as many as the queue has room for; waits while it has none.
    ///
    /// # Errors
    /// As `read`; `EINVAL` for a frame that cannot be sent. Returns an error only when no frame was written.
    pub fn write(&self, frames: &[RawFrame]) -> io::Result<usize> {
        let bytes = size_of_val(frames);
        // SAFETY: the slice is readable for `bytes` bytes and outlives the call. write(2), as `read`.
        let answer = unsafe { libc::syscall(libc::SYS_write, self.file.as_raw_fd(), frames.as_ptr(), bytes) };
        Ok(super::check_size(answer as isize)? / size_of::<RawFrame>())
    }

    /// Closes the file while others may still use it: their calls then answer `EBADF`. Frames that are not sent yet are
    /// lost unless calls wait.
    ///
    /// # Errors
    /// The error of open(2).
    pub fn close(&self) -> io::Result<()> {
        // A descriptor that can do nothing takes the place of the file's, so that no other file gets its number.
        // open(2): "other file operations (e.g., read(2), write(2), … ioctl(2), mmap(2)) fail with the error EBADF".
        let nothing = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open("/")?;
        let (from, to) = (nothing.as_raw_fd(), self.file.as_raw_fd());
        // SAFETY: no memory is passed, and the descriptor stays this file's. dup(2): "The steps of closing and reusing
        // the file descriptor newfd are performed atomically."
        super::check(unsafe { libc::dup3(from, to, libc::O_CLOEXEC) }).map(drop)
    }

    fn ioctl<T>(&self, request: u32, argument: &mut T) -> io::Result<u32> {
        // SAFETY: the argument is the structure whose size is part of the request, and what it points at is borrowed
        // by the caller; both outlive the call. kernel/uapi/canchar.h.
        let answer =
            unsafe { libc::ioctl(self.file.as_raw_fd(), request as _, std::ptr::from_mut(argument)) };
        super::check(answer).map(|answer| answer as u32)
    }
}

impl From<File> for Device {
    /// A device that another process has opened.
    fn from(file: File) -> Self {
        Self { file, lost_before: 0 }
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
