//! TUN devices that pass for CAN interfaces: tests of recording need no CAN in the kernel then.
//!
//! A TUN device whose link type is `ARPHRD_CAN` is a CAN interface for packet sockets, rtnetlink and the counters of
//! interfaces. What is written to its file is received by the interface, at once and in the writing thread, so no queue
//! can lose it. It is none for CAN sockets, and it has no controller and no echo.
//!
//! Documentation/networking/tuntap.rst, linux/if_tun.h.

use crate::frame::{CANFD_MTU, Frame};
use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::fd::AsRawFd,
};

use super::socket::{ETH_P_CAN, ETH_P_CANFD};

/// The device whose open files are TUN devices.
pub const DEVICE: &str = "/dev/net/tun";

/// The link type of CAN interfaces (linux/if_arp.h), as the argument of an ioctl.
const LINK_TYPE: libc::c_ulong = libc::ARPHRD_CAN as libc::c_ulong;
/// `struct tun_pi`, which the libc crate does not have: flags, and the protocol in network byte order, two bytes each.
const PACKET_INFORMATION_BYTES: usize = 4;

/// A TUN device of the current network namespace, which disappears when this is dropped.
#[derive(Debug)]
pub struct Tun(File);

impl Tun {
    /// Creates an interface of this name, with the link type of CAN. It is down, and its MTU is 1500.
    ///
    /// # Errors
    /// The error of open(2): without the module `tun` `NotFound`. That of ioctl(2): `EPERM` without CAP_NET_ADMIN, `EBUSY`
    /// when there is such an interface, `EINVAL` for a name that is too long.
    pub fn create(name: &str) -> io::Result<Self> {
        let tun = Self::create_without_link_type(name)?;
        // SAFETY: the argument is a number. TUNSETLINK of drivers/net/tun.c: "Only allow setting the type when the interface
        // is down".
        super::check(unsafe { libc::ioctl(tun.0.as_raw_fd(), libc::TUNSETLINK, LINK_TYPE) })?;
        Ok(tun)
    }

    /// Creates an interface of this name that is no CAN interface, from which a filter of tc(8) may move frames to one.
    ///
    /// # Errors
    /// The errors of [`create`](Self::create) but for the link type's.
    pub fn create_without_link_type(name: &str) -> io::Result<Self> {
        let mut request = super::interface_request(name)?;
        let file = OpenOptions::new().read(true).write(true).open(DEVICE)?;
        // With packet information in front of each packet: without it the kernel takes all packets for IP.
        request.ifr_ifru.ifru_flags = libc::IFF_TUN as libc::c_short;
        // SAFETY: the request is a whole ifreq, which outlives the call. tuntap.rst.
        super::check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &mut request) })?;
        Ok(Self(file))
    }

    /// Lets the interface receive a frame.
    ///
    /// # Errors
    /// The error of write(2): `EIO` while the interface is down.
    pub fn receive(&self, frame: &Frame) -> io::Result<()> {
        let protocol = if frame.is_fd() { ETH_P_CANFD } else { ETH_P_CAN };
        self.receive_bytes(protocol, &frame.kernel_bytes()[..frame.mtu()])
    }

    /// Lets the interface receive a packet of any content, at most as long as an FD frame.
    ///
    /// # Errors
    /// The error of write(2): `EIO` while the interface is down. `InvalidInput` for an empty or a longer packet.
    pub fn receive_bytes(&self, protocol: u16, packet: &[u8]) -> io::Result<()> {
        let mut bytes = [0; PACKET_INFORMATION_BYTES + CANFD_MTU];
        let end = PACKET_INFORMATION_BYTES + packet.len();
        let place = bytes.get_mut(PACKET_INFORMATION_BYTES..end).filter(|place| !place.is_empty());
        place.ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(packet);
        bytes[2..PACKET_INFORMATION_BYTES].copy_from_slice(&protocol.to_be_bytes());
        (&self.0).write_all(&bytes[..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::{fd::OwnedFd, unix::net::UnixDatagram};

    #[test]
    #[cfg_attr(miri, ignore = "system calls")]
    fn a_packet_has_its_protocol_in_front_and_is_written_by_one_call() {
        let (kernel, ours) = UnixDatagram::pair().unwrap();
        let tun = Tun(File::from(OwnedFd::from(ours)));
        let mut packet = [0; 100];
        for (text, protocol, mtu) in [("123#AA", 0x0c, 16), ("123##1AA", 0x0d, 72)] {
            let frame: Frame = text.parse().unwrap();
            tun.receive(&frame).unwrap();
            assert_eq!(kernel.recv(&mut packet).unwrap(), PACKET_INFORMATION_BYTES + mtu, "{text}");
            assert_eq!(packet[..PACKET_INFORMATION_BYTES], [0, 0, 0, protocol], "{text}");
            assert_eq!(packet[PACKET_INFORMATION_BYTES..][..mtu], frame.kernel_bytes()[..mtu], "{text}");
        }
        for length in [0, CANFD_MTU + 1] {
            let error = tun.receive_bytes(ETH_P_CAN, &vec![0; length]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{length}");
        }
    }

    #[test]
    fn a_name_that_no_interface_can_have_is_refused() {
        assert_eq!(Tun::create("sixteen_letters_").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
