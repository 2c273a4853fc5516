//! The instrument of the module canprobe, /dev/canprobe: its system calls, one function each.

use crate::uapi::canprobe as uapi;
use std::{fs::File, io, os::fd::AsRawFd};

pub use uapi::{HANDLER, Plan, Record, SENT, State};

/// The driver's name, in sysfs.
pub const DRIVER: &str = "canprobe";
/// The device.
pub const PATH: &str = "/dev/canprobe";

/// The open instrument.
#[derive(Debug)]
pub struct Instrument(File);

impl Instrument {
    /// Opens it.
    ///
    /// # Errors
    /// `ENOENT` without the module, `ENODEV` when it has fewer than two cards, `EBUSY` when another process uses it.
    pub fn open() -> io::Result<Self> {
        File::open(PATH).map(Self)
    }

    /// Begins to send.
    ///
    /// # Errors
    /// `EBUSY` when it does already, `EINVAL` for a plan that cannot be, `EIO` when a controller does not start.
    pub fn start(&self, plan: &Plan) -> io::Result<()> {
        self.ioctl(uapi::START, &mut { *plan })
    }

    /// Ends it.
    ///
    /// # Errors
    /// `ENODEV` when the cards have disappeared.
    pub fn stop(&self) -> io::Result<()> {
        self.ioctl(uapi::STOP, &mut 0u64)
    }

    /// Measures the latency that the instrument adds; the result is [`State::floor_ns`].
    ///
    /// # Errors
    /// `EAGAIN` before a frame has been sent, `EBUSY` while it sends.
    pub fn measure_floor(&self) -> io::Result<()> {
        self.ioctl(uapi::FLOOR, &mut 0u64)
    }

    /// Records how long the handlers of an interrupt line run, from now on; 0: of none.
    ///
    /// # Errors
    /// `EINVAL` for a line that each processor has for itself, `EOPNOTSUPP` on a kernel without tracepoints.
    pub fn watch(&self, line: u32) -> io::Result<()> {
        self.ioctl(uapi::WATCH, &mut { line })
    }

    /// The probe's state and results.
    ///
    /// # Errors
    /// The error of ioctl(2).
    pub fn state(&self) -> io::Result<State> {
        let mut state = State::default();
        self.ioctl(uapi::GET_STATE, &mut state)?;
        Ok(state)
    }

    /// Reads records, as many as there are and fit; 0: there are none.
    ///
    /// # Errors
    /// `ENODEV` when the cards have disappeared.
    pub fn read(&self, records: &mut [Record]) -> io::Result<usize> {
        let bytes = size_of_val(records);
        // SAFETY: the slice is writable for `bytes` bytes, outlives the call, and any bytes make a valid Record.
        // read(2).
        let answer = unsafe { libc::read(self.0.as_raw_fd(), records.as_mut_ptr().cast(), bytes) };
        Ok(super::check_size(answer)? / size_of::<Record>())
    }

    fn ioctl<T>(&self, request: u32, argument: &mut T) -> io::Result<()> {
        // SAFETY: the argument is the structure whose size is part of the request and outlives the call.
        // kernel/uapi/canprobe.h.
        let answer = unsafe { libc::ioctl(self.0.as_raw_fd(), request as _, std::ptr::from_mut(argument)) };
        super::check(answer).map(drop)
    }
}
