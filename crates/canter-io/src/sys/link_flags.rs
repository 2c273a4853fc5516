//! The flags of a network interface by `SIOCGIFFLAGS`, for which the kernel takes no mutex: netlink answers only when nobody
//! changes an interface, and a thread that waits for that cannot be ended.

use std::{
    io,
    os::{fd::AsRawFd, unix::net::UnixDatagram},
};

const SIOCGIFFLAGS: libc::Ioctl = 0x8913; // linux/sockios.h

/// Whether the network interface `name` is up.
///
/// # Errors
/// `ENODEV` without such an interface.
pub fn is_up(name: &str) -> io::Result<bool> {
    let mut request =
        super::interface_request(name).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
    // Any socket will do; the kernel takes the mutex to close one of CAN.
    let socket = UnixDatagram::unbound()?;
    // SAFETY: the request names an interface, the kernel writes its flags, and it outlives the call. netdevice(7).
    super::check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGIFFLAGS, &mut request) })?;
    // SAFETY: SIOCGIFFLAGS has filled in the flags.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    Ok(libc::c_int::from(flags) & libc::IFF_UP != 0)
}
