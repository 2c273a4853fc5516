//@ machine: host
//! The packet filter on this machine's kernel: it passes what the filters say.

use canter_io::packet_filter::{Instruction, Options, program};
use canter_io::{Filters, Frame};

fn frame(text: &str) -> Frame {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A pair of connected datagram sockets, of which the second runs `program` on what it is sent: the filter machine
/// is the same for every family, so this needs neither CAN nor rights.
mod filtered {
    use super::Instruction;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixDatagram;

    pub fn pair(program: &[Instruction]) -> io::Result<(UnixDatagram, UnixDatagram)> {
        let (sender, receiver) = UnixDatagram::pair()?;
        let filter = program.as_ptr().cast_mut().cast::<libc::sock_filter>();
        let attached = libc::sock_fprog { len: program.len() as u16, filter };
        // SAFETY: socket(7): SO_ATTACH_FILTER takes a struct sock_fprog; it outlives the call, and points at `len`
        // instructions of the kernel's layout, which the kernel copies.
        let result = unsafe {
            libc::setsockopt(
                receiver.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ATTACH_FILTER,
                (&raw const attached).cast(),
                size_of::<libc::sock_fprog>() as libc::socklen_t,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        receiver.set_nonblocking(true)?;
        Ok((sender, receiver))
    }
}

#[test]
fn the_kernel_runs_the_packet_filter_as_the_filters_say() {
    let frames =
        ["123#11", "123#R", "124#", "00000123#", "12345678#", "20000004#0000000000000000", "20000002#"];
    let long: String = (0..100).map(|id| format!("{:03X}:7FF,", 0x200 + id)).collect();
    for text in [
        "",
        "123:7FF",
        "123:C00007FF",
        "123~7FF",
        "0~0,#00000004",
        "12345678:DFFFFFFF,124:7FF",
        "100:700,23:0FF,j",
        "100:700,23:0FF,j,#FFFFFFFF",
        &format!("{long}123:7FF"),
        &format!("{long}123:7FF,j"),
    ] {
        let filters: Filters = text.parse().unwrap();
        let program = program(&filters, Options { drop_mark: Some(7), check_protocol: false }).unwrap();
        let (sender, receiver) = filtered::pair(&program).unwrap();
        for frame in frames.map(frame) {
            let bytes = [frame.can_id.to_ne_bytes(), [frame.len, 0, 0, 0], [0; 4], [0; 4]].concat();
            // A unix socket tells the sender EPERM when the receiver's filter refuses.
            let _ = sender.send(&bytes);
            let passed = receiver.recv(&mut [0; 16]).is_ok();
            assert_eq!(passed, filters.matches(&frame), "{text} {frame}");
        }
    }
}

#[test]
fn the_kernel_drops_other_protocols_when_asked() {
    let program = program(&Filters::default(), Options { drop_mark: None, check_protocol: true }).unwrap();
    let (sender, receiver) = filtered::pair(&program).unwrap();
    let _ = sender.send(&[0; 16]);
    assert!(receiver.recv(&mut [0; 16]).is_err(), "a unix datagram has no CAN protocol");
}
