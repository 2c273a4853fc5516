//! Interrupt coalescing by `SIOCETHTOOL`: how long a driver holds received frames back to save interrupts.

use super::socket::Socket;
use std::{io, os::fd::AsRawFd};

const SIOCETHTOOL: libc::Ioctl = 0x8946; // linux/sockios.h
const ETHTOOL_GCOALESCE: u32 = 0x0e; // linux/ethtool.h
/// `struct ethtool_coalesce`: a command and 22 numbers.
const COALESCE_WORDS: usize = 23;

/// How an interface collects received frames before it interrupts (`ethtool -c`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coalescing {
    /// The longest delay in µs; 0: no delay.
    pub rx_us: u32,
    /// The most frames before an interrupt.
    pub rx_frames: u32,
    /// As `rx_us`, while an interrupt is being served; what mcp251xfd goes by.
    pub rx_us_irq: u32,
    /// As `rx_frames`, while an interrupt is being served.
    pub rx_frames_irq: u32,
}

/// Asks the driver of the interface `name`.
///
/// # Errors
/// `EOPNOTSUPP` when the driver does not support it, `ENODEV` without such an interface, `EINVAL` for a name that is
/// too long.
pub fn coalescing(name: &str) -> io::Result<Coalescing> {
    let mut request = super::interface_request(name)?;
    let socket = Socket::can_raw()?;
    let mut words = [0u32; COALESCE_WORDS];
    words[0] = ETHTOOL_GCOALESCE;
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: the request names an interface and points at a whole struct ethtool_coalesce; both outlive the call.
    // netdevice(7), linux/ethtool.h.
    super::check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &mut request) })?;
    let [_, rx_us, rx_frames, rx_us_irq, rx_frames_irq, ..] = words;
    Ok(Coalescing { rx_us, rx_frames, rx_us_irq, rx_frames_irq })
}
