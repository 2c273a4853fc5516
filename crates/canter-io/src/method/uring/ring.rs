//! A ring of requests and completions that belongs to one thread, and how its requests are ended.
#![allow(unsafe_code)]

use super::buffers::BUFFERS;
use io_uring::{
    IoUring, cqueue, squeue,
    types::{CancelBuilder, SubmitArgs, Timespec},
};
use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    time::Duration,
};

/// `IORING_ENTER_GETEVENTS`: process deferred completions.
const GET_EVENTS: u32 = 1;
/// How often [`Ring::end`] checks for the cancelled requests, and how long it waits in between.
const LOOKS_MAX: u32 = 100;
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

// linux/io_uring.h: struct io_uring_sqe, io_uring_cqe; __kernel_timespec is of 64 bits everywhere.
const _: () = assert!(size_of::<squeue::Entry>() == 64 && size_of::<cqueue::Entry>() == 16);
const _: () = assert!(size_of::<Timespec>() == 16);

/// A ring that the thread that first uses it enables.
pub(super) struct Ring {
    ring: IoUring,
    enabled: bool,
    /// Requests whose memory the kernel may still use.
    in_flight: usize,
}

impl Ring {
    pub fn new(entries: u32) -> io::Result<Self> {
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag().setup_r_disabled();
        builder.setup_cqsize(2 * u32::from(BUFFERS));
        Ok(Self { ring: builder.build(entries)?, enabled: false, in_flight: 0 })
    }

    /// Enables the ring for this thread.
    pub fn enable(&mut self) -> io::Result<()> {
        if !self.enabled {
            self.ring.submitter().register_enable_rings()?;
            self.enabled = true;
        }
        Ok(())
    }

    /// Registers a ring of buffers (io_uring_register_buf_ring(3)).
    ///
    /// # Safety
    /// The address is that of memory for as many entries, page-aligned, which outlives the ring.
    pub unsafe fn register(&self, address: u64, entries: u16, group: u16) -> io::Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.ring.submitter().register_buf_ring_with_flags(address, entries, group, 0) }
    }

    /// Queues a request.
    ///
    /// # Safety
    /// The memory that it points at stays until it has ended: [`end`](Self::end) reports whether it has.
    pub unsafe fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: the caller's promise.
        let pushed = unsafe { self.ring.submission().push(entry) };
        pushed.map_err(|_| io::Error::other("the submission queue is full"))
    }

    /// Submits queued requests, processes deferred completions, and waits for `want` completions.
    ///
    /// # Errors
    /// The error of io_uring_enter(2); nothing was submitted then. `EEXIST` on another thread than the ring's.
    pub fn enter(&mut self, want: u32) -> io::Result<()> {
        let queued = self.ring.submission().len() as u32;
        // SAFETY: the requests' memory stays (see `push`), and no argument is passed. io_uring_enter(2).
        let submitted =
            unsafe { self.ring.submitter().enter::<libc::sigset_t>(queued, want, GET_EVENTS, None) }?;
        self.in_flight += submitted;
        Ok(())
    }

    /// Submits queued requests and waits for `want` completions, at least one, for at most `patience`. It returns early
    /// after a signal, and when the kernel did not submit all requests.
    ///
    /// # Errors
    /// As [`enter`](Self::enter); `EINTR` and `ETIME` only when nothing was submitted.
    pub fn enter_within(&mut self, want: u32, patience: Duration) -> io::Result<()> {
        let timeout = Timespec::from(patience);
        let arguments = SubmitArgs::new().timespec(&timeout);
        let submitted = self.ring.submitter().submit_with_args(want as usize, &arguments)?;
        self.in_flight += submitted;
        Ok(())
    }

    /// The completions, in order.
    #[inline]
    pub fn completions(&mut self) -> impl Iterator<Item = cqueue::Entry> {
        let Self { ring, in_flight, .. } = self;
        ring.completion().inspect(|completion| *in_flight -= usize::from(!cqueue::more(completion.flags())))
    }

    /// Whether a completion waits.
    pub fn has_completed(&self) -> bool {
        // SAFETY: nobody else looks at the completions while `self` is borrowed.
        !unsafe { self.ring.completion_shared() }.is_empty()
    }

    /// Whether deferred completions wait for the next [`enter`](Self::enter).
    #[inline]
    pub fn has_deferred(&mut self) -> bool {
        self.ring.submission().taskrun()
    }

    /// Asks the kernel to cancel all requests. (Linux 6.0: `IORING_REGISTER_SYNC_CANCEL`.)
    pub fn cancel_all(&mut self) -> io::Result<()> {
        let second = Timespec::new().sec(1);
        match self.ring.submitter().register_sync_cancel(Some(second), CancelBuilder::any()) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()), // no request exists
            done => done,
        }
    }

    /// Ends all submitted requests and passes their completions to `note`. False: the kernel may still use the memory
    /// of some, without a known end. Another thread than the ring's cannot end requests.
    pub fn end(&mut self, mut note: impl FnMut(cqueue::Entry)) -> bool {
        for _ in 0..LOOKS_MAX {
            self.completions().for_each(&mut note);
            if self.in_flight == 0 {
                return true;
            }
            if self.cancel_all().and_then(|()| self.run()).is_err() {
                return false;
            }
            self.completions().for_each(&mut note);
            if self.in_flight > 0 {
                std::thread::sleep(BETWEEN_LOOKS);
            }
        }
        self.in_flight == 0
    }

    /// Processes deferred completions without submitting requests.
    fn run(&mut self) -> io::Result<()> {
        // SAFETY: as in `enter`.
        unsafe { self.ring.submitter().enter::<libc::sigset_t>(0, 0, GET_EVENTS, None) }.map(drop)
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring keeps its descriptor open for as long as `self` is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use io_uring::{opcode, types::Fd};
    use std::os::unix::net::UnixDatagram;

    /// A ring with one request that waits forever to receive into `room`.
    fn waiting(socket: &UnixDatagram, room: &'static mut [u8]) -> Ring {
        let mut ring = Ring::new(8).unwrap();
        ring.enable().unwrap();
        let entry = opcode::Recv::new(Fd(socket.as_raw_fd()), room.as_mut_ptr(), room.len() as u32).build();
        // SAFETY: the memory stays for ever.
        unsafe { ring.push(&entry) }.unwrap();
        ring.enter(0).unwrap();
        assert_eq!((ring.in_flight, ring.has_completed()), (1, false));
        ring
    }

    #[test]
    #[ignore = "needs the lab: make test"]
    fn a_request_that_waits_is_ended_by_its_own_thread_and_by_no_other() {
        let socket = UnixDatagram::unbound().unwrap();
        let mut ring = waiting(&socket, Box::leak(Box::new([0; 64])));
        let ended = std::thread::scope(|scope| scope.spawn(|| ring.end(|_| ())).join().unwrap());
        assert!(!ended, "another thread reported that it has ended the request");
        let mut results = Vec::new();
        assert!(ring.end(|completion| results.push(completion.result())));
        assert_eq!(results, [-libc::ECANCELED]);
        assert!(ring.end(|_| panic!("a request that was ended before")));
    }

    #[test]
    #[ignore = "needs the lab: make test"]
    fn what_was_queued_and_never_submitted_is_not_in_flight() {
        let socket = UnixDatagram::unbound().unwrap();
        let mut ring = Ring::new(8).unwrap();
        ring.enable().unwrap();
        let entry = opcode::Recv::new(Fd(socket.as_raw_fd()), std::ptr::null_mut(), 0).build();
        // SAFETY: it points at nothing.
        unsafe { ring.push(&entry) }.unwrap();
        let refused = std::thread::scope(|scope| scope.spawn(|| ring.enter(0)).join().unwrap());
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EEXIST));
        assert!(ring.end(|_| panic!("it was submitted")));
    }
}
