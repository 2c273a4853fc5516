//! `io-uring`: frames received by one standing request (multishot, buffers given beforehand), sent by chains of linked
//! requests. Modern, and for CAN dearer than recvmmsg and sendmmsg: a row to measure, not a default.
//!
//! - Completions are run by this thread when it asks for them (`DEFER_TASKRUN`), so nothing interrupts it; the ring
//!   belongs to the thread that first uses it (`SINGLE_ISSUER`).
//! - Requests that are not linked pass each other when one finds no room: each send waits for the one before, and a
//!   failed one cancels those behind it, so that what was sent is always a prefix.
//! - Buffers come back to the kernel when a frame has been copied out of them. When they run out the standing request
//!   ends; frames wait in the socket's queue then, and it is made anew.
#![allow(unsafe_code)]

use super::{
    Receive, ReceiveOptions, Transmit, TransmitOptions, Wait, read_write::check_receiver,
    read_write::short_count,
};
use crate::{
    Batch, Error, Frame, Interface, Meta, Result,
    frame::{CAN_MTU, CANFD_MTU},
    sys::{
        can_raw,
        control::{self, Control},
        socket::Socket,
    },
};
use io_uring::{
    IoUring, cqueue, opcode, squeue,
    types::{BufRingEntry, CancelBuilder, Fd, RecvMsgOut, Timespec},
};
use std::{
    alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error},
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    ptr::NonNull,
    sync::atomic::{AtomicU16, Ordering},
};

/// Frames that the kernel may receive ahead of us; a power of two.
const BUFFERS: u16 = 256;
/// Bytes of a buffer: with stamps a header of 16, a [`Control`], and the frame.
const BUFFER_BYTES: usize = 256;
/// Sends in one chain.
const CHAIN: u32 = 64;
/// The group that our buffers are.
const GROUP: u16 = 1;
/// `IORING_ENTER_GETEVENTS`: run what has been deferred.
const GET_EVENTS: u32 = 1;

const _: () = assert!(16 + size_of::<Control>() + CANFD_MTU <= BUFFER_BYTES);
// linux/io_uring.h: struct io_uring_buf, io_uring_sqe, io_uring_cqe; __kernel_timespec is of 64 bits everywhere.
const _: () = assert!(size_of::<BufRingEntry>() == 16 && align_of::<BufRingEntry>() == 8);
const _: () = assert!(size_of::<squeue::Entry>() == 64 && size_of::<cqueue::Entry>() == 16);
const _: () = assert!(size_of::<Timespec>() == 16);

/// Why io_uring cannot receive from `interface`.
pub(super) fn check_receive(interface: &Interface, _wait: Wait) -> Result<()> {
    check_receiver(interface, Wait::Block)?;
    let ring = Ring::new(8).map_err(|error| refused(interface, error))?;
    ring.with_buffers().map(drop).map_err(|error| refused(interface, error))
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

/// A ring that is switched on by the thread that first uses it.
struct Ring {
    ring: IoUring,
    enabled: bool,
}

impl Ring {
    fn new(entries: u32) -> io::Result<Self> {
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag().setup_r_disabled();
        builder.setup_cqsize(2 * u32::from(BUFFERS));
        Ok(Self { ring: builder.build(entries)?, enabled: false })
    }

    fn enable(&mut self) -> io::Result<()> {
        if !self.enabled {
            self.ring.submitter().register_enable_rings()?;
            self.enabled = true;
        }
        Ok(())
    }

    /// The ring with buffers to receive into.
    fn with_buffers(self) -> io::Result<(Self, Buffers)> {
        let buffers = Buffers::new(&self.ring)?;
        Ok((self, buffers))
    }

    /// Queues a request.
    ///
    /// # Safety
    /// What it points at must stay until it has completed.
    unsafe fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: the caller's promise.
        let pushed = unsafe { self.ring.submission().push(entry) };
        pushed.map_err(|_| io::Error::other("the submission queue is full"))
    }

    /// Submits what is queued, runs what was deferred, and waits for `want` completions.
    fn enter(&mut self, want: u32) -> io::Result<()> {
        let queued = self.ring.submission().len() as u32;
        // SAFETY: the requests' memory stays (see `push`), and no argument is passed. io_uring_enter(2).
        unsafe { self.ring.submitter().enter::<libc::sigset_t>(queued, want, GET_EVENTS, None) }.map(drop)
    }

    /// Ends all requests, whatever they wait for. (Linux 6.0: `IORING_REGISTER_SYNC_CANCEL`.)
    fn cancel_all(&mut self) {
        let second = Timespec::new().sec(1);
        let _ = self.ring.submitter().register_sync_cancel(Some(second), CancelBuilder::any());
    }
}

/// Memory that the kernel receives into, and the ring by which it gets it.
struct Buffers {
    memory: NonNull<u8>,
    tail: u16,
}

// SAFETY: the memory belongs to this value alone; the kernel writes only into buffers that it was given.
unsafe impl Send for Buffers {}

impl Buffers {
    /// The entries first, page-aligned as io_uring_register_buf_ring(3) asks, then the buffers.
    const LAYOUT: Layout = match Layout::from_size_align(BUFFERS as usize * (16 + BUFFER_BYTES), 4096) {
        Ok(layout) => layout,
        Err(_) => panic!("not a layout"),
    };

    fn new(ring: &IoUring) -> io::Result<Self> {
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc_zeroed(Self::LAYOUT) };
        let Some(memory) = NonNull::new(memory) else { handle_alloc_error(Self::LAYOUT) };
        let mut buffers = Self { memory, tail: 0 };
        let address = memory.as_ptr() as u64;
        // SAFETY: the memory holds BUFFERS entries, is page-aligned and outlives the ring (see `Receiver`).
        unsafe { ring.submitter().register_buf_ring_with_flags(address, BUFFERS, GROUP, 0) }?;
        (0..BUFFERS).for_each(|number| buffers.give(number));
        buffers.publish();
        Ok(buffers)
    }

    fn buffer(&self, number: u16) -> *mut u8 {
        assert!(number < BUFFERS, "no such buffer");
        let at = 16 * usize::from(BUFFERS) + usize::from(number) * BUFFER_BYTES;
        // SAFETY: inside of the memory, by the layout.
        unsafe { self.memory.as_ptr().add(at) }
    }

    /// What the kernel has written into a buffer.
    fn filled(&self, number: u16) -> &[u8] {
        // SAFETY: the kernel has completed this buffer and gets it back only by `give`, which takes `&mut self`.
        unsafe { std::slice::from_raw_parts(self.buffer(number), BUFFER_BYTES) }
    }

    /// Gives a buffer to the kernel, with the next [`publish`](Self::publish).
    fn give(&mut self, number: u16) {
        let address = self.buffer(number) as u64;
        let at = usize::from(self.tail & (BUFFERS - 1));
        // SAFETY: inside of the entries, by the mask.
        let entry = unsafe { self.memory.as_ptr().cast::<BufRingEntry>().add(at) };
        // SAFETY: aligned, zeroed or written before, and the kernel reads it only once the tail is published. Of the
        // first entry the last two bytes are the tail, which these three do not touch.
        let entry = unsafe { &mut *entry };
        entry.set_addr(address);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(number);
        self.tail = self.tail.wrapping_add(1);
    }

    /// Lets the kernel see what was given.
    fn publish(&mut self) {
        // SAFETY: the tail is in the first entry.
        let tail = unsafe { BufRingEntry::tail(self.memory.as_ptr().cast()) }.cast_mut();
        // SAFETY: 2-aligned, and lives as long as the memory.
        let tail = unsafe { AtomicU16::from_ptr(tail) };
        tail.store(self.tail, Ordering::Release); // pairs with the kernel's smp_load_acquire of the tail
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.memory.as_ptr(), Self::LAYOUT) };
    }
}

pub(super) fn receiver(interface: &Interface, options: &ReceiveOptions) -> Result<Box<dyn Receive>> {
    let socket = can_raw::receiving(interface, options)?;
    let ring = Ring::new(8).and_then(Ring::with_buffers);
    let (ring, buffers) = ring.map_err(|error| refused(interface, error))?;
    // SAFETY: an all-zero msghdr is a valid value.
    let mut header: Box<libc::msghdr> = Box::new(unsafe { std::mem::zeroed() });
    header.msg_controllen = size_of::<Control>() as _;
    let wait = options.wait.unwrap_or(Wait::Block);
    let header = options.stamps.then_some(Header(header));
    Ok(Box::new(Receiver {
        ring,
        buffers,
        socket,
        header,
        wait,
        index: interface.index,
        armed: false,
        delayed: None,
    }))
}

struct Receiver {
    // The ring goes before the buffers that the kernel writes into.
    ring: Ring,
    buffers: Buffers,
    socket: Socket,
    /// What recvmsg is to tell besides the frame; `None`: nothing.
    header: Option<Header>,
    wait: Wait,
    index: u32,
    /// The standing request stands.
    armed: bool,
    /// An error that waits behind frames. The kernel tells it before them and only once.
    delayed: Option<io::Error>,
}

/// The sizes that a multishot recvmsg asks for; its pointers are null.
struct Header(Box<libc::msghdr>);

// SAFETY: there is nothing behind its pointers.
unsafe impl Send for Header {}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.ring.cancel_all();
    }
}

impl Receive for Receiver {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
        loop {
            let count = self.take(batch);
            if count > 0 || batch.room() == 0 {
                return Ok(count);
            }
            if !self.armed {
                self.arm()?;
                continue;
            }
            if let Some(error) = self.delayed.take() {
                return Err(error);
            }
            if self.wait == Wait::Block {
                match self.ring.enter(1) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(0),
                    done => done?,
                }
            } else if self.ring.ring.submission().taskrun() {
                self.ring.enter(0)?;
            } else {
                std::hint::spin_loop(); // lets a sibling thread, or in a virtual clock the other processor, run
                return Ok(0);
            }
        }
    }

    fn drops(&mut self) -> io::Result<u64> {
        self.socket.drops()
    }

    /// The socket, where frames wait until they are asked for; the ring, while it holds some that were.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: nobody else looks at the completions while `self` is borrowed.
        let completed = unsafe { self.ring.ring.completion_shared() }.len();
        if completed == 0 {
            return Some(self.socket.as_fd());
        }
        // SAFETY: the ring keeps its descriptor open for as long as `self` is borrowed.
        Some(unsafe { BorrowedFd::borrow_raw(self.ring.ring.as_raw_fd()) })
    }
}

impl Receiver {
    /// Makes the standing request, and takes what is there already.
    fn arm(&mut self) -> io::Result<()> {
        self.ring.enable()?;
        let fd = Fd(self.socket.as_raw_fd());
        let entry = match &self.header {
            None => opcode::RecvMulti::new(fd, GROUP).build(),
            Some(Header(header)) => opcode::RecvMsgMulti::new(fd, &**header, GROUP).build(),
        };
        // SAFETY: the socket, the buffers and the header live as long as the ring.
        unsafe { self.ring.push(&entry) }?;
        self.armed = true;
        self.ring.enter(0)
    }

    /// Copies what has completed, and gives the buffers back.
    fn take(&mut self, batch: &mut Batch) -> usize {
        let mut count = 0;
        let Self { ring, buffers, header, index, armed, delayed, .. } = self;
        let mut completions = ring.ring.completion();
        while let Some((frame, meta)) = batch.place() {
            let Some(completion) = completions.next() else { break };
            *armed &= cqueue::more(completion.flags());
            let number = cqueue::buffer_select(completion.flags());
            match (completion.result(), number) {
                (bytes @ 0.., Some(number)) => {
                    *meta = Meta { interface: *index, ..Meta::default() };
                    let buffer = buffers.filled(number);
                    let whole = match header {
                        None => copy(buffer.get(..bytes as usize), frame),
                        Some(Header(header)) => copy_message(buffer, header, frame, meta),
                    };
                    if whole {
                        batch.commit(1);
                        count += 1;
                    }
                    buffers.give(number);
                }
                (negative, _) => match -negative {
                    // No buffer was free, or the request was taken back: it is made anew.
                    libc::ENOBUFS | libc::ECANCELED | libc::EINTR | libc::EAGAIN => {}
                    errno => *delayed = delayed.take().or(Some(io::Error::from_raw_os_error(errno))),
                },
            }
        }
        drop(completions);
        if count > 0 {
            buffers.publish();
        }
        count
    }
}

/// Copies a frame; false when these bytes are none.
fn copy(bytes: Option<&[u8]>, frame: &mut Frame) -> bool {
    let Some(bytes) = bytes.filter(|bytes| [CAN_MTU, CANFD_MTU].contains(&bytes.len())) else { return false };
    let to = std::ptr::from_mut(frame).cast::<u8>();
    // SAFETY: a Frame has 72 bytes, any of whose values are valid, and overlaps no buffer.
    unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    frame.received_as(bytes.len());
    true
}

/// Copies a frame from what a multishot recvmsg leaves: its header, control messages and payload.
fn copy_message(buffer: &[u8], asked: &libc::msghdr, frame: &mut Frame, meta: &mut Meta) -> bool {
    let Ok(message) = RecvMsgOut::parse(buffer, asked) else { return false };
    control::note(message.control_data(), message.flags() as libc::c_int, meta);
    copy(Some(message.payload_data()), frame)
}

pub(super) fn transmitter(interface: &Interface, options: &TransmitOptions) -> Result<Box<dyn Transmit>> {
    let socket = can_raw::sending(interface, options)?;
    let ring = Ring::new(CHAIN).map_err(|error| refused(interface, error))?;
    let flags = if options.no_wait { libc::MSG_DONTWAIT } else { 0 };
    Ok(Box::new(Sender { ring, frames: vec![Frame::default(); CHAIN as usize].into(), socket, flags }))
}

struct Sender {
    ring: Ring,
    /// What the kernel reads from while a chain is under way.
    frames: Box<[Frame]>,
    socket: Socket,
    flags: libc::c_int,
}

impl Transmit for Sender {
    fn transmit(&mut self, frames: &[Frame]) -> io::Result<usize> {
        self.ring.enable()?;
        let mut sent = 0;
        for part in frames.chunks(CHAIN as usize) {
            let (count, error) = self.chain(part)?;
            sent += count;
            if let Some(error) = error {
                return short_count(sent, error);
            }
        }
        Ok(sent)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}

impl Sender {
    /// Sends frames one behind the other; answers how many went, and why the next did not.
    fn chain(&mut self, frames: &[Frame]) -> io::Result<(usize, Option<io::Error>)> {
        self.frames[..frames.len()].copy_from_slice(frames);
        let fd = Fd(self.socket.as_raw_fd());
        for at in 0..frames.len() {
            let frame = &self.frames[at];
            let send = opcode::Send::new(fd, std::ptr::from_ref(frame).cast(), frame.mtu() as u32);
            let linked = if at + 1 < frames.len() { squeue::Flags::IO_LINK } else { squeue::Flags::empty() };
            let entry = send.flags(self.flags).build().user_data(at as u64).flags(linked);
            // SAFETY: the frames stay as they are until all have completed, below.
            unsafe { self.ring.push(&entry) }?;
        }
        let mut outcome = Outcome { sent: 0, completed: 0, error: None };
        while outcome.completed < frames.len() {
            let missing = frames.len() - outcome.completed;
            match self.ring.enter(missing as u32) {
                Ok(()) => {}
                // A signal: whoever sent it does not want to wait for room.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => self.ring.cancel_all(),
                Err(error) => return Err(error),
            }
            self.ring.ring.completion().for_each(|completion| outcome.note(completion.result()));
        }
        Ok((outcome.sent, outcome.error))
    }
}

/// What came of a chain.
struct Outcome {
    sent: usize,
    completed: usize,
    /// The first failure; those behind it are cancelled.
    error: Option<io::Error>,
}

impl Outcome {
    fn note(&mut self, result: i32) {
        self.completed += 1;
        match result {
            0.. => self.sent += 1,
            _ if self.error.as_ref().is_some_and(|error| error.kind() != io::ErrorKind::Interrupted) => {}
            // Cancelled: by us after a signal, or behind the one that failed, whose reason may come later.
            canceled if canceled == -libc::ECANCELED => {
                self.error = Some(io::Error::from_raw_os_error(libc::EINTR))
            }
            failed => self.error = Some(io::Error::from_raw_os_error(-failed)),
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.ring.cancel_all();
    }
}
