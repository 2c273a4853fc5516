//! Sockets of the two families that carry CAN, `PF_CAN` raw sockets and `PF_PACKET`, and of netlink.

use crate::{Filter, packet_filter::Instruction};
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, socket_with};
use std::{
    io,
    num::NonZeroU32,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    time::Duration,
};

/// `ETH_P_CAN`, the protocol that a packet socket must set for a classic frame: with 0, drivers drop the frame without
/// an error.
pub const ETH_P_CAN: u16 = 0x000c;
/// `ETH_P_CANFD`, the same for FD frames.
pub const ETH_P_CANFD: u16 = 0x000d;
/// `ETH_P_ALL`: every protocol.
pub const ETH_P_ALL: u16 = 0x0003;

// linux/filter.h: struct sock_filter.
const _: () = assert!(size_of::<Instruction>() == size_of::<libc::sock_filter>());

/// A value that [`Socket::set`] may hand to the kernel.
///
/// # Safety
/// All its bytes are initialised, and none is part of an address: the kernel copies it and follows nothing.
pub unsafe trait OptionValue: Copy {}
// SAFETY: a number.
unsafe impl OptionValue for i32 {}
// SAFETY: a number.
unsafe impl OptionValue for u32 {}
// SAFETY: two numbers, without padding.
unsafe impl OptionValue for Filter {}
// SAFETY: numbers of one size: linux/if_packet.h.
unsafe impl OptionValue for libc::tpacket_req {}
// SAFETY: as above.
unsafe impl OptionValue for libc::tpacket_req3 {}
// SAFETY: two numbers of one size, socket(7): SO_SNDTIMEO.
unsafe impl OptionValue for libc::timeval {}
#[allow(deprecated, reason = "musl's alias will change together with the structure")]
const _: () = assert!(size_of::<libc::timeval>() == 2 * size_of::<libc::suseconds_t>());
const _: () = assert!(size_of::<Filter>() == 8 && size_of::<libc::tpacket_req>() == 16);
const _: () = assert!(size_of::<libc::tpacket_req3>() == 28);

/// An open socket.
#[derive(Debug)]
pub struct Socket(OwnedFd);

impl Socket {
    /// A `CAN_RAW` socket, not bound yet.
    ///
    /// # Errors
    /// The error of socket(2): `EAFNOSUPPORT` without the module `can`, `EPROTONOSUPPORT` without `can_raw`.
    pub fn can_raw() -> io::Result<Self> {
        Self::open(AddressFamily::CAN, libc::CAN_RAW)
    }

    /// A packet socket that receives nothing until it is bound to a protocol.
    ///
    /// # Errors
    /// The error of socket(2): `EPERM` without CAP_NET_RAW.
    pub fn packet() -> io::Result<Self> {
        Self::open(AddressFamily::PACKET, 0)
    }

    /// A netlink socket of this protocol (`NETLINK_…`), not connected yet.
    ///
    /// # Errors
    /// The error of socket(2).
    pub(crate) fn netlink(protocol: libc::c_int) -> io::Result<Self> {
        Self::open(AddressFamily::NETLINK, protocol)
    }

    fn open(family: AddressFamily, protocol: libc::c_int) -> io::Result<Self> {
        let protocol = NonZeroU32::new(protocol as u32).map(Protocol::from_raw);
        Ok(Self(socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?))
    }

    /// Binds a `CAN_RAW` socket to an interface; index 0 is every interface.
    ///
    /// # Errors
    /// The error of bind(2).
    pub fn bind_can(&self, index: u32) -> io::Result<()> {
        self.bind(&can_address(index))
    }

    /// Binds a packet socket to an interface and a protocol (0: it receives nothing).
    ///
    /// # Errors
    /// The error of bind(2).
    pub fn bind_packet(&self, index: u32, protocol: u16) -> io::Result<()> {
        self.bind(&packet_address(index, protocol))
    }

    /// The index of the interface to which a packet socket is bound; `None`: to no single one, or it has been removed.
    ///
    /// # Errors
    /// The error of getsockname(2).
    pub fn bound_interface(&self) -> io::Result<Option<u32>> {
        let mut address = packet_address(0, 0);
        let mut length = size_of_val(&address) as libc::socklen_t;
        // SAFETY: an address of `length` bytes to be filled. getsockname(2).
        let answer = unsafe {
            libc::getsockname(self.0.as_raw_fd(), std::ptr::from_mut(&mut address).cast(), &raw mut length)
        };
        super::check(answer)?;
        // packet(7): 0 stands for any interface; packet_notifier() sets -1 when the interface goes.
        Ok(u32::try_from(address.sll_ifindex).ok().filter(|&index| index > 0))
    }

    fn bind<T>(&self, address: &T) -> io::Result<()> {
        let length = size_of::<T>() as libc::socklen_t;
        // SAFETY: `address` is a socket address of `length` bytes and outlives the call. bind(2).
        let answer = unsafe { libc::bind(self.0.as_raw_fd(), std::ptr::from_ref(address).cast(), length) };
        super::check(answer).map(drop)
    }

    /// Sets an option whose value is a plain kernel structure or integer.
    ///
    /// # Errors
    /// The error of setsockopt(2).
    pub fn set<T: OptionValue>(&self, level: libc::c_int, name: libc::c_int, value: T) -> io::Result<()> {
        self.set_slice(level, name, std::slice::from_ref(&value))
    }

    /// Sets an option whose value is an array.
    ///
    /// # Errors
    /// The error of setsockopt(2).
    pub fn set_slice<T: OptionValue>(
        &self,
        level: libc::c_int,
        name: libc::c_int,
        values: &[T],
    ) -> io::Result<()> {
        // SAFETY: an OptionValue has no pointers.
        unsafe { self.set_any(level, name, values) }
    }

    /// Sets an option of any kind.
    ///
    /// # Safety
    /// What the values point at, if anything, stays for the call and is what the kernel expects there.
    unsafe fn set_any<T>(&self, level: libc::c_int, name: libc::c_int, values: &[T]) -> io::Result<()> {
        let length = size_of_val(values) as libc::socklen_t;
        // SAFETY: `values` has `length` bytes and outlives the call; the caller promises the rest. setsockopt(2): "The
        // arguments optval and optlen are used to access option values".
        let answer =
            unsafe { libc::setsockopt(self.0.as_raw_fd(), level, name, values.as_ptr().cast(), length) };
        super::check(answer).map(drop)
    }

    /// Attaches a BPF program that selects the frames that the socket receives.
    ///
    /// # Errors
    /// The error of setsockopt(2).
    pub fn attach_filter(&self, program: &[Instruction]) -> io::Result<()> {
        let filter =
            libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut().cast() };
        // SAFETY: struct sock_fprog of linux/filter.h: the instructions and how many they are; they outlive the call.
        unsafe { self.set_any(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &[filter]) }
    }

    /// Reads an option whose value is a plain kernel structure or integer array, all of whose bit patterns are valid.
    ///
    /// # Errors
    /// The error of getsockopt(2); `EINVAL` for `SO_GET_FILTER`, which counts instructions where others count bytes, so
    /// that the kernel would write behind the value.
    pub fn get<const N: usize>(&self, level: libc::c_int, name: libc::c_int) -> io::Result<[u32; N]> {
        if (level, name) == (libc::SOL_SOCKET, libc::SO_GET_FILTER) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let mut value = [0u32; N];
        let mut length = size_of_val(&value) as libc::socklen_t;
        // SAFETY: `value` has `length` bytes and outlives the call; any bytes are valid u32s. getsockopt(2).
        let answer = unsafe {
            libc::getsockopt(self.0.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &mut length)
        };
        super::check(answer).map(|_| value)
    }

    /// Sets the size of the receive queue, above the system's limit where permitted. The kernel doubles the value.
    ///
    /// # Errors
    /// The error of setsockopt(2).
    pub fn set_receive_buffer(&self, bytes: u32) -> io::Result<()> {
        let bytes = libc::c_int::try_from(bytes / 2).unwrap_or(libc::c_int::MAX);
        self.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
            .or_else(|_| self.set(libc::SOL_SOCKET, libc::SO_RCVBUF, bytes))
    }

    /// Sets how long a sending call waits for room; zero: as long as it takes.
    ///
    /// # Errors
    /// The error of setsockopt(2).
    pub fn set_send_timeout(&self, timeout: Duration) -> io::Result<()> {
        let tv_sec = timeout.as_secs().try_into().unwrap_or(i32::MAX.into());
        let timeout = libc::timeval { tv_sec, tv_usec: timeout.subsec_micros().cast_signed().into() };
        self.set(libc::SOL_SOCKET, libc::SO_SNDTIMEO, timeout)
    }

    /// Frames lost in this socket's receive queue since it was opened, up to date at each call (`SK_MEMINFO_DROPS`);
    /// `SO_RXQ_OVFL` reports them only with the next frame.
    ///
    /// # Errors
    /// The error of getsockopt(2).
    pub fn drops(&self) -> io::Result<u64> {
        const SK_MEMINFO_DROPS: usize = 8; // linux/sock_diag.h
        let memory: [u32; 9] = self.get(libc::SOL_SOCKET, libc::SO_MEMINFO)?;
        Ok(u64::from(memory[SK_MEMINFO_DROPS]))
    }

    /// The error that waits on the socket, if any; reading it clears it.
    ///
    /// # Errors
    /// That error: `ENETDOWN` when the interface went down, `ENODEV` when it disappeared.
    pub fn take_error(&self) -> io::Result<()> {
        let [errno] = self.get(libc::SOL_SOCKET, libc::SO_ERROR)?;
        if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno as i32)) }
    }
}

#[cfg(test)]
impl From<std::os::unix::net::UnixDatagram> for Socket {
    /// One of another family, which carries bytes alike, for tests.
    fn from(socket: std::os::unix::net::UnixDatagram) -> Self {
        Self(socket.into())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> libc::c_int {
        self.0.as_raw_fd()
    }
}

/// Where a `CAN_RAW` socket sends to or receives from.
pub fn can_address(index: u32) -> libc::sockaddr_can {
    // SAFETY: an all-zero sockaddr_can is a valid value.
    let mut address: libc::sockaddr_can = unsafe { std::mem::zeroed() };
    address.can_family = libc::AF_CAN as libc::sa_family_t;
    address.can_ifindex = index as libc::c_int;
    address
}

/// Where a packet socket sends to or receives from; packet(7): "sll_protocol is … in network byte order".
pub fn packet_address(index: u32, protocol: u16) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: index as libc::c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_filter;
    use std::os::unix::net::UnixDatagram;

    #[test]
    #[cfg_attr(miri, ignore = "system calls")]
    fn the_one_option_whose_size_counts_no_bytes_is_never_read() {
        let socket = Socket::from(UnixDatagram::unbound().unwrap());
        let program = packet_filter::drop_mark(1);
        assert!(program.len() > 2);
        socket.attach_filter(&program).unwrap();
        // As many instructions of 8 bytes would be written into as many bytes.
        let answer = socket.get::<2>(libc::SOL_SOCKET, libc::SO_GET_FILTER);
        assert_eq!(answer.unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
