//! Message headers for recvmmsg(2) and sendmmsg(2), made once and used for each call, and memory for received frames.
//!
//! A header points at a vector, that at a frame, and both at memory that the kernel writes. All of it is in [`Array`]s,
//! so that these pointers stay valid wherever an inbox is moved.

use super::{
    array::Array,
    control::{self, Control},
    socket::{self, Socket},
};
use crate::{Frame, Meta, frame::CANFD_MTU};
use std::{io, os::fd::AsRawFd};

/// The metadata to receive with the frames.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    /// Stamps, origin and drop counts: control messages.
    pub control: bool,
    /// The address of a frame: the interface that received it.
    pub interface: bool,
}

/// A place for one received frame.
///
/// # Safety
/// It has [`CANFD_MTU`] bytes, any of whose values are valid.
pub(crate) unsafe trait Place: Copy {}
// SAFETY: struct canfd_frame has integers only.
unsafe impl Place for Frame {}
// SAFETY: as many bytes.
unsafe impl Place for [u8; CANFD_MTU] {}
const _: () = assert!(size_of::<Frame>() == CANFD_MTU);

/// Headers of up to as many frames as a call moves.
pub(crate) struct Headers {
    messages: Box<[libc::mmsghdr]>,
    vectors: Array<libc::iovec>,
    /// Empty where they are not wanted.
    controls: Array<Control>,
    /// Empty where they are not wanted.
    addresses: Array<libc::sockaddr_can>,
    /// How many headers the kernel may have written into.
    used: usize,
}

// SAFETY: the pointers in the headers lead to this value's own arrays, or are set anew before each call.
unsafe impl Send for Headers {}

impl Headers {
    pub fn new(frames: usize, wanted: Wanted) -> Self {
        let vector = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let vectors = Array::new(vector, frames);
        let controls = Array::new(Control::default(), if wanted.control { frames } else { 0 });
        let addresses = Array::new(socket::can_address(0), if wanted.interface { frames } else { 0 });
        let header = |at| {
            // SAFETY: an all-zero mmsghdr is a valid value.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_iov = vectors.place(at);
            message.msg_hdr.msg_iovlen = 1;
            if wanted.control {
                message.msg_hdr.msg_control = controls.place(at).cast();
            }
            if wanted.interface {
                message.msg_hdr.msg_name = addresses.place(at).cast();
            }
            message
        };
        let messages = (0..frames).map(header).collect();
        Self { messages, vectors, controls, addresses, used: frames }
    }

    /// Receives the waiting frames into the first of `places`, as many as there are headers; returns their number.
    ///
    /// # Errors
    /// The error of recvmmsg(2).
    pub fn receive<P: Place>(
        &mut self,
        socket: &Socket,
        places: &mut [P],
        flags: libc::c_int,
    ) -> io::Result<usize> {
        let most = places.len().min(self.messages.len());
        // SAFETY: the kernel uses the vectors during a call only.
        let vectors = unsafe { self.vectors.slice_mut() };
        for (vector, place) in vectors.iter_mut().zip(&mut places[..most]) {
            *vector = libc::iovec { iov_base: std::ptr::from_mut(place).cast(), iov_len: CANFD_MTU };
        }
        // SAFETY: the vectors point at `most` places, which outlive the call.
        unsafe { self.call(most, |messages, most| receive(socket, messages, most, flags)) }
    }

    /// Sends the first of `frames`, as many as the queue has room and there are headers for; returns their number.
    ///
    /// # Errors
    /// The error of sendmmsg(2), when no frame was sent.
    pub fn send(&mut self, socket: &Socket, frames: &[Frame], flags: libc::c_int) -> io::Result<usize> {
        let most = frames.len().min(self.messages.len());
        // SAFETY: the kernel uses the vectors during a call only.
        let vectors = unsafe { self.vectors.slice_mut() };
        for (vector, frame) in vectors.iter_mut().zip(&frames[..most]) {
            let iov_base = std::ptr::from_ref(frame).cast_mut().cast();
            *vector = libc::iovec { iov_base, iov_len: frame.mtu() };
        }
        // SAFETY: the headers point at our vectors, the vectors at `most` frames, which the kernel only reads; all
        // outlive the call. sendmmsg(2): "On success, sendmmsg() returns the number of messages sent". musl's flags are
        // unsigned.
        let answer = unsafe {
            libc::sendmmsg(socket.as_raw_fd(), self.messages.as_mut_ptr(), most as u32, flags as _)
        };
        super::check(answer).map(|count| count as usize)
    }

    /// Lets `call` fill the first `most` messages.
    ///
    /// # Safety
    /// Their vectors point at places, which outlive the call.
    unsafe fn call(
        &mut self,
        most: usize,
        call: impl FnOnce(*mut libc::mmsghdr, libc::c_uint) -> libc::c_int,
    ) -> io::Result<usize> {
        // The kernel has written into the last call's headers how much of each buffer it used.
        if self.controls.len() > 0 {
            for message in &mut self.messages[..self.used] {
                message.msg_hdr.msg_controllen = size_of::<Control>() as _;
            }
        }
        if self.addresses.len() > 0 {
            for message in &mut self.messages[..self.used] {
                message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_can>() as libc::socklen_t;
            }
        }
        self.used = 0;
        self.used = super::check(call(self.messages.as_mut_ptr(), most as u32))? as usize;
        Ok(self.used)
    }

    /// What the kernel reports of the first `count` frames that the last call received.
    #[inline]
    pub fn received(&self, count: usize) -> impl Iterator<Item = About<'_>> {
        // SAFETY: the kernel writes there during a call only, which needs `self` mutably.
        let controls = unsafe { self.controls.slice() };
        // SAFETY: as above.
        let addresses = unsafe { self.addresses.slice() };
        self.messages[..count].iter().enumerate().map(move |(at, message)| About {
            message,
            control: controls.get(at),
            address: addresses.get(at),
        })
    }
}

fn receive(
    socket: &Socket,
    messages: *mut libc::mmsghdr,
    most: libc::c_uint,
    flags: libc::c_int,
) -> libc::c_int {
    // SAFETY: recvmmsg(2): "msgvec is a pointer to an array of mmsghdr structures … vlen is its size"; what the headers
    // point at outlives the call (see `Headers::call`), and any bytes are valid there. musl's flags are unsigned.
    unsafe { libc::recvmmsg(socket.as_raw_fd(), messages, most, flags as _, std::ptr::null_mut()) }
}

/// What the kernel reports of one received frame.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    message: &'a libc::mmsghdr,
    control: Option<&'a Control>,
    address: Option<&'a libc::sockaddr_can>,
}

impl About<'_> {
    /// The frame's size in bytes.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.message.msg_len as usize
    }

    /// Stores stamp, drop count and origin, as far as they were requested.
    #[inline]
    pub fn note(&self, meta: &mut Meta) {
        if let Some(control) = self.control {
            control::note(self.filled(control), self.message.msg_hdr.msg_flags, meta);
        }
    }

    /// The controller's stamp in ns of its clock; 0: none.
    pub fn hardware_ns(&self) -> u64 {
        self.control.map_or(0, |control| control::hardware_ns(self.filled(control)))
    }

    /// The index of the receiving interface; 0 unless requested.
    pub fn interface(&self) -> u32 {
        self.address.map_or(0, |address| address.can_ifindex as u32)
    }

    #[inline]
    fn filled<'a>(&self, control: &'a Control) -> &'a [u8] {
        control.filled(self.message.msg_hdr.msg_controllen as _)
    }
}

/// Headers with a place for each frame.
pub(crate) struct Inbox<P: Place> {
    headers: Headers,
    places: Array<P>,
}

impl<P: Place> Inbox<P> {
    /// For `frames` frames a call; `empty` is a place where nothing was received yet.
    pub fn new(frames: usize, wanted: Wanted, empty: P) -> Self {
        let places = Array::new(empty, frames);
        let mut headers = Headers::new(frames, wanted);
        // SAFETY: the kernel uses the vectors during a call only.
        for (at, vector) in unsafe { headers.vectors.slice_mut() }.iter_mut().enumerate() {
            *vector = libc::iovec { iov_base: places.place(at).cast(), iov_len: CANFD_MTU };
        }
        Self { headers, places }
    }

    /// Receives the waiting frames, as many as there are places, without waiting; returns their number.
    ///
    /// # Errors
    /// The error of recvmmsg(2).
    pub fn receive(&mut self, socket: &Socket) -> io::Result<usize> {
        self.call(|messages, most| receive(socket, messages, most, libc::MSG_DONTWAIT))
    }

    fn call(
        &mut self,
        call: impl FnOnce(*mut libc::mmsghdr, libc::c_uint) -> libc::c_int,
    ) -> io::Result<usize> {
        // SAFETY: each vector points at a place of ours.
        unsafe { self.headers.call(self.places.len(), call) }
    }

    /// The first `count` frames of the last call, with their metadata.
    pub fn received(&self, count: usize) -> impl Iterator<Item = (About<'_>, &P)> {
        // SAFETY: the kernel writes there during a call only, which needs `self` mutably.
        self.headers.received(count).zip(unsafe { self.places.slice() })
    }
}

// SAFETY: the headers' vectors point at this value's own places.
unsafe impl<P: Place + Send> Send for Inbox<P> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Identifier,
        batch::Origin,
        sys::control::tests::{message, time},
    };

    const ALL: Wanted = Wanted { control: true, interface: true };

    /// What recvmmsg(2) does with the headers of `frames` frames, number `first` and so on.
    #[expect(clippy::multiple_unsafe_ops_per_block, reason = "all of it is on the kernel's side")]
    fn kernel(messages: *mut libc::mmsghdr, most: libc::c_uint, first: u8, frames: u8) -> libc::c_int {
        for at in 0..frames.min(most as u8) {
            let number = first + at;
            // SAFETY: as the kernel: below `most`, and headers point at what they say.
            unsafe {
                let message = messages.add(at.into());
                let header = &raw mut (*message).msg_hdr;
                let frame = Frame::classic(Identifier::Sff(number.into()), &[number]).unwrap();
                let place = (*(*header).msg_iov).iov_base.cast::<u8>();
                place.copy_from_nonoverlapping((&raw const frame).cast(), 16);
                (*message).msg_len = 16;
                (*header).msg_flags = libc::MSG_CONFIRM;
                if !(*header).msg_control.is_null() {
                    let control = self::message(libc::SCM_TIMESTAMPNS, &time(1, number.into()));
                    assert_eq!((*header).msg_controllen, size_of::<Control>() as _);
                    (*header).msg_control.cast::<u8>().copy_from(control.as_ptr(), control.len());
                    (*header).msg_controllen = control.len() as _;
                }
                if !(*header).msg_name.is_null() {
                    assert_eq!((*header).msg_namelen as usize, size_of::<libc::sockaddr_can>());
                    (*header).msg_name.cast::<libc::sockaddr_can>().write(socket::can_address(number.into()));
                    (*header).msg_namelen = 8;
                }
            }
        }
        frames.min(most as u8).into()
    }

    #[test]
    fn an_inbox_receives_the_same_wherever_it_is_moved() {
        let mut inbox = Inbox::new(4, ALL, Frame::default());
        for (first, frames) in [(1, 3), (4, 4), (8, 6), (20, 1)] {
            let mut moved = Box::new(inbox);
            assert_eq!(
                moved.call(|messages, most| kernel(messages, most, first, frames)).unwrap(),
                usize::from(frames.min(4))
            );
            inbox = std::thread::spawn(move || *moved).join().unwrap();
            for (at, (about, frame)) in inbox.received(frames.min(4).into()).enumerate() {
                let number = u64::from(first) + at as u64;
                let mut meta = Meta::default();
                about.note(&mut meta);
                assert_eq!((about.bytes(), u64::from(frame.can_id)), (16, number));
                assert_eq!((meta.stamp_ns, meta.origin), (1_000_000_000 + number, Origin::Own));
                assert_eq!((u64::from(about.interface()), about.hardware_ns()), (number, 0));
            }
        }
    }

    #[test]
    fn headers_that_want_nothing_else_report_sizes_only() {
        let mut inbox = Inbox::new(2, Wanted::default(), [0; CANFD_MTU]);
        assert_eq!(inbox.call(|messages, most| kernel(messages, most, 7, 2)).unwrap(), 2);
        let (about, frame) = inbox.received(2).last().unwrap();
        let mut meta = Meta::default();
        about.note(&mut meta);
        assert_eq!((about.bytes(), frame[8], about.interface()), (16, 8, 0));
        assert_eq!(meta, Meta::default());
    }

    #[test]
    fn a_call_that_fails_is_an_error_and_the_next_one_has_all_its_room() {
        let mut inbox = Inbox::new(2, ALL, Frame::default());
        assert_eq!(inbox.call(|messages, most| kernel(messages, most, 1, 2)).unwrap(), 2);
        inbox.call(|_, _| -1).unwrap_err();
        assert_eq!(inbox.call(|messages, most| kernel(messages, most, 3, 2)).unwrap(), 2);
        assert_eq!(inbox.received(2).map(|(_, frame)| frame.can_id).collect::<Vec<_>>(), [3, 4]);
    }
}
