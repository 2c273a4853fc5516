//! Control messages: the metadata of a frame that recvmsg(2) reports.

use super::socket::Socket;
use crate::{
    Frame, Meta,
    batch::{Clock, Origin},
};
use std::{io, os::fd::AsRawFd};

/// Room for a stamp (`timespec`, 32 bytes with its header), a drop count (24) and three stamps (64), 8-aligned.
pub const CONTROL_WORDS: usize = 16;

/// A buffer for the control messages of one frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct Control([u64; CONTROL_WORDS]);

impl Control {
    /// Receives one frame with recvmsg(2) and its metadata; returns its size in bytes.
    ///
    /// # Errors
    /// The error of recvmsg(2).
    pub fn receive(
        &mut self,
        socket: &Socket,
        frame: &mut Frame,
        meta: &mut Meta,
        flags: libc::c_int,
    ) -> io::Result<usize> {
        let mut vector =
            libc::iovec { iov_base: std::ptr::from_mut(frame).cast(), iov_len: size_of::<Frame>() };
        // SAFETY: an all-zero msghdr is a valid value.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_iov = &raw mut vector;
        header.msg_iovlen = 1;
        header.msg_control = std::ptr::from_mut(self).cast();
        header.msg_controllen = size_of::<Self>() as _;
        // SAFETY: the header points at the vector, the vector at the frame, and the control pointer at `self`; all
        // outlive the call, and any bytes make a valid Frame and a valid Control. recvmsg(2).
        let bytes = super::check_size(unsafe { libc::recvmsg(socket.as_raw_fd(), &mut header, flags) })?;
        note(self.filled(header.msg_controllen as _), header.msg_flags, meta);
        Ok(bytes)
    }

    /// The first `len` bytes, which the kernel has written; all of them where `len` is more.
    #[inline]
    pub fn filled(&self, len: usize) -> &[u8] {
        let bytes = self.0.as_ptr().cast::<u8>();
        // SAFETY: inside of the words, whose bytes may be read as such.
        unsafe { std::slice::from_raw_parts(bytes, len.min(size_of::<Self>())) }
    }
}

/// Stores the information in a received message's flags (`msg_flags`) and control messages.
#[inline]
pub fn note(control: &[u8], flags: libc::c_int, meta: &mut Meta) {
    // raw.c sets MSG_DONTROUTE on frames that a local socket sent, and MSG_CONFIRM on those that this one sent.
    meta.origin = match flags {
        flags if flags & libc::MSG_CONFIRM != 0 => Origin::Own,
        flags if flags & libc::MSG_DONTROUTE != 0 => Origin::Local,
        _ => Origin::Bus,
    };
    for Message { level, kind, data } in Messages(control) {
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                let Some(time) = read::<libc::timespec>(data) else { continue };
                meta.stamp_ns = ns(time);
                meta.clock = Clock::Software;
            }
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                let Some(drops) = read(data) else { continue };
                meta.drops = drops;
            }
            _ => {}
        }
    }
}

/// The controller's stamp in ns of its clock, as `SO_TIMESTAMPING` reports it; 0 when it has none.
pub fn hardware_ns(control: &[u8]) -> u64 {
    let stamps =
        |message: &Message<'_>| (message.level, message.kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING);
    let message = Messages(control).find(stamps);
    // Documentation/networking/timestamping.rst: struct scm_timestamping has three timespecs; the third is the
    // hardware's.
    let times = message.and_then(|message| read::<[libc::timespec; 3]>(message.data));
    times.map_or(0, |[_, _, hardware]| ns(hardware))
}

/// A time in ns. Wraps, so that an invalid stamp does not panic.
fn ns(time: libc::timespec) -> u64 {
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// What the kernel puts behind a control message's header.
///
/// # Safety
/// Any bytes are a valid value.
unsafe trait Plain {}
// SAFETY: integers.
unsafe impl Plain for u32 {}
// SAFETY: two integers, and perhaps padding.
unsafe impl Plain for libc::timespec {}
// SAFETY: as above.
unsafe impl Plain for [libc::timespec; 3] {}
// SAFETY: integers.
unsafe impl Plain for libc::cmsghdr {}

/// The value that these bytes begin with, wherever they are aligned; `None` when they are too few.
#[inline]
fn read<T: Plain>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.get(..size_of::<T>())?;
    // SAFETY: there are as many bytes as a T has, and any are valid.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

struct Message<'a> {
    level: libc::c_int,
    kind: libc::c_int,
    data: &'a [u8],
}

/// The control messages in a buffer, as cmsg(3) lays them out: a header, its data, and padding to a word.
struct Messages<'a>(&'a [u8]);

/// `CMSG_LEN(0)`.
const HEADER_BYTES: usize = size_of::<libc::cmsghdr>().next_multiple_of(size_of::<usize>());

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    /// `None` after the last, and at one with an invalid length.
    #[inline]
    fn next(&mut self) -> Option<Message<'a>> {
        let header: libc::cmsghdr = read(self.0)?;
        let len: usize = header.cmsg_len as _; // a socklen_t in some C libraries
        let data = self.0.get(HEADER_BYTES..len)?;
        self.0 = self.0.get(len.next_multiple_of(size_of::<usize>())..).unwrap_or_default();
        Some(Message { level: header.cmsg_level, kind: header.cmsg_type, data })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A control message as the kernel writes it.
    pub(crate) fn message(kind: libc::c_int, data: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        let len = size_of_val(&bytes[..]) + data.len();
        // SAFETY: an all-zero cmsghdr is a valid value.
        let mut header: libc::cmsghdr = unsafe { std::mem::zeroed() };
        (header.cmsg_len, header.cmsg_level, header.cmsg_type) = (len as _, libc::SOL_SOCKET, kind);
        // SAFETY: the bytes hold a header.
        unsafe { bytes.as_mut_ptr().cast::<libc::cmsghdr>().write_unaligned(header) };
        bytes.extend(data);
        bytes.resize(len.next_multiple_of(size_of::<usize>()), 0);
        bytes
    }

    /// Words of a `timespec`.
    pub(crate) fn time(seconds: libc::c_long, nanoseconds: libc::c_long) -> Vec<u8> {
        [seconds.to_ne_bytes(), nanoseconds.to_ne_bytes()].concat()
    }

    #[test]
    fn stamp_drop_count_and_hardware_stamp_are_found_in_any_order() {
        let stamp = message(libc::SCM_TIMESTAMPNS, &time(5, 7));
        let drops = message(libc::SO_RXQ_OVFL, &9u32.to_ne_bytes());
        let stamps = [time(1, 1), time(0, 0), time(2, 3)].concat();
        let hardware = message(libc::SCM_TIMESTAMPING, &stamps);
        for control in [[&stamp[..], &drops, &hardware].concat(), [&hardware[..], &drops, &stamp].concat()] {
            let mut meta = Meta::default();
            note(&control, libc::MSG_DONTROUTE, &mut meta);
            assert_eq!((meta.stamp_ns, meta.drops), (5_000_000_007, 9));
            assert_eq!((meta.clock, meta.origin), (Clock::Software, Origin::Local));
            assert_eq!(hardware_ns(&control), 2_000_000_003);
        }
    }

    #[test]
    fn a_message_that_is_cut_off_says_nothing() {
        let stamp = message(libc::SCM_TIMESTAMPNS, &time(5, 7));
        for len in 0..stamp.len() {
            let mut meta = Meta::default();
            note(&stamp[..len], 0, &mut meta);
            assert_eq!((meta.stamp_ns, hardware_ns(&stamp[..len])), (0, 0), "{len} bytes");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 16 } else { 256 }, ..ProptestConfig::default() })]
        #[test]
        fn no_content_of_a_buffer_makes_it_panic(mut content in prop::collection::vec(any::<u8>(), 0..128), len: u8) {
            if let Some(first) = content.first_mut() {
                *first = len; // most lengths would not fit
            }
            note(&content, 0, &mut Meta::default());
            hardware_ns(&content);
        }
    }
}
