//! Sockets for recording: recvmmsg(2) on one `CAN_RAW` socket per bus. For programs without permission for packet
//! rings, and for recordings with the direction and the hardware stamp of each frame, which a ring does not report.
//!
//! One socket per bus, not one for all: each has its own queue (443 frames with the system's default limit), so losses
//! are known per bus, up to date at each call. The order between buses comes from the stamps.

use crate::{
    Error, Interface, Meta, Result,
    captured::Captured,
    filter::EVERY_ERROR,
    frame::CANFD_MTU,
    method::{ReceiveOptions, can_raw},
    sys::{
        clock,
        inbox::{About, Inbox, Wanted},
        poll,
        socket::Socket,
    },
};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    time::Duration,
};

/// The most frames per system call.
const CALL_FRAMES: usize = 256;
/// The most consecutive system calls for one bus, so that a busy bus does not delay the others.
const CALLS_IN_A_ROW: usize = 16;
/// The pause after a wake-up, in which frames gather: a wake-up costs more than ten frames. A queue of 443 frames holds
/// 20 ms of a bus at full load.
const GATHER: Duration = Duration::from_millis(4);
/// The most descriptors in one poll(2); with more buses, all are read every [`GATHER`].
const POLLED_MAX: usize = 64;

struct Bus {
    socket: Socket,
    index: u32,
    name: String,
    /// The kernel's 32-bit count of lost frames at the last reading, and the total.
    counted: u32,
    lost: u64,
}

/// Receives from any number of interfaces.
pub struct CaptureSockets {
    buses: Vec<Bus>,
    inbox: Inbox<[u8; CANFD_MTU]>,
    hardware: bool,
    queue_bytes: u32,
    /// All frames with stamps below this, in ns, have been handed out.
    complete_until_ns: u64,
}

impl CaptureSockets {
    /// A receiver without interfaces. Each interface gets a queue of `queue_bytes`, or as much as is permitted
    /// (`rmem_max` without CAP_NET_ADMIN). `hardware` requests the controllers' hardware stamps.
    pub fn new(queue_bytes: u32, hardware: bool) -> Self {
        let inbox = Inbox::new(CALL_FRAMES, Wanted { control: true, interface: false }, [0; CANFD_MTU]);
        Self { buses: Vec::new(), inbox, hardware, queue_bytes, complete_until_ns: 0 }
    }

    /// Starts to receive from `interface`, error frames too. It may be down.
    ///
    /// # Errors
    /// The error of the kernel, with the step.
    pub fn add(&mut self, interface: &Interface) -> Result<()> {
        let step = |step: &'static str| move |error| Error::new(&interface.name, step, error);
        let frames = self.queue_bytes / can_raw::RECEIVED_FRAME_BYTES;
        let mut options =
            ReceiveOptions { queue_frames: Some(frames), stamps: true, ..ReceiveOptions::default() };
        options.filters.error_mask = EVERY_ERROR;
        let socket = can_raw::receiving(interface, &options)?;
        // Also on an interface of classic frames: FD may be switched on later.
        socket.set(libc::SOL_CAN_RAW, libc::CAN_RAW_FD_FRAMES, 1i32).map_err(step("CAN_RAW_FD_FRAMES"))?;
        if self.hardware {
            let wanted = libc::SOF_TIMESTAMPING_RX_HARDWARE | libc::SOF_TIMESTAMPING_RAW_HARDWARE;
            socket.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, wanted).map_err(step("SO_TIMESTAMPING"))?;
        }
        let name = interface.name.clone();
        self.buses.push(Bus { socket, index: interface.index, name, counted: 0, lost: 0 });
        Ok(())
    }

    /// Frames that the queue of the interface with this index has lost; 0 for one that is not received.
    ///
    /// # Errors
    /// The error of getsockopt(2).
    pub fn drops(&mut self, index: u32) -> io::Result<u64> {
        let Some(bus) = self.buses.iter_mut().find(|bus| bus.index == index) else { return Ok(0) };
        let counted = bus.socket.drops()? as u32;
        bus.lost += u64::from(counted.wrapping_sub(bus.counted));
        bus.counted = counted;
        Ok(bus.lost)
    }

    /// Passes the frames that wait in the queue of the interface with this index, which no longer exists, to `take`.
    ///
    /// # Errors
    /// The error of recvmmsg(2), except for an interface that is down or gone.
    pub fn empty(&mut self, index: u32, mut take: impl FnMut(&[Captured<'_>])) -> io::Result<()> {
        let Self { buses, inbox, hardware, .. } = self;
        let Some(bus) = buses.iter().find(|bus| bus.index == index) else { return Ok(()) };
        while !empty(bus, inbox, *hardware, &mut take)? {}
        Ok(())
    }

    /// Stops receiving from the interface with this index, which no longer exists.
    pub fn remove(&mut self, index: u32) {
        self.buses.retain(|bus| bus.index != index);
    }

    /// How many frames the smallest queue holds; `None` without any interface.
    pub fn queue_frames(&self) -> Option<u32> {
        let size = |bus: &Bus| bus.socket.get(libc::SOL_SOCKET, libc::SO_RCVBUF).ok().map(|[bytes]| bytes);
        self.buses.iter().filter_map(size).min().map(|bytes| bytes / can_raw::SENT_FRAME_BYTES)
    }

    /// Passes the waiting frames to `take`, bus by bus, in order per bus; waits up to `timeout_ns` for the first.
    ///
    /// # Errors
    /// The error of poll(2) or recvmmsg(2), except for an interface that is down or gone.
    pub fn next(&mut self, timeout_ns: u64, mut take: impl FnMut(&[Captured<'_>])) -> io::Result<()> {
        self.wait(timeout_ns)?;
        let now_ns = clock::realtime_ns(); // read first: frames that arrive after the check are younger
        let mut all = true;
        for bus in &self.buses {
            all &= empty(bus, &mut self.inbox, self.hardware, &mut take)?;
        }
        if all {
            self.complete_until_ns = now_ns;
        }
        Ok(())
    }

    /// Every frame with a stamp below this, in ns, has been handed out, except for a frame that is on its way into a
    /// socket at this moment.
    pub fn complete_until_ns(&self) -> u64 {
        self.complete_until_ns
    }

    /// What [`next`](Self::next) waits for.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.buses.iter().map(|bus| bus.socket.as_fd())
    }

    /// Waits until a frame can be read, and then [`GATHER`] for more.
    fn wait(&self, timeout_ns: u64) -> io::Result<()> {
        let polled: Vec<BorrowedFd<'_>> =
            self.buses.iter().take(POLLED_MAX).map(|bus| bus.socket.as_fd()).collect();
        let gather_ns = GATHER.as_nanos() as u64;
        let more = self.buses.len() > POLLED_MAX;
        let timeout_ns = if more { timeout_ns.min(gather_ns) } else { timeout_ns };
        if poll::readable(&polled, Some(timeout_ns))? > 0 {
            std::thread::sleep(GATHER.min(Duration::from_nanos(timeout_ns)));
        }
        Ok(())
    }
}

/// Receives the waiting frames of a bus; true when none is left.
fn empty(
    bus: &Bus,
    inbox: &mut Inbox<[u8; CANFD_MTU]>,
    hardware: bool,
    take: &mut impl FnMut(&[Captured<'_>]),
) -> io::Result<bool> {
    for _ in 0..CALLS_IN_A_ROW {
        let count = match inbox.receive(&bus.socket) {
            Ok(count) => count,
            Err(error) => {
                return match error.raw_os_error() {
                    // Reported once when it goes down or away; frames may wait behind that.
                    Some(libc::ENETDOWN | libc::ENODEV | libc::ENXIO) => continue,
                    Some(libc::EINTR) => continue,
                    Some(libc::EAGAIN) => Ok(true),
                    _ => Err(io::Error::new(error.kind(), format!("{}: {error}", bus.name))),
                };
            }
        };
        let record = |(about, frame)| record(about, frame, bus.index, hardware);
        take(&inbox.received(count).map(record).collect::<Vec<_>>());
        if count < CALL_FRAMES {
            return Ok(true);
        }
    }
    Ok(false)
}

fn record<'a>(about: About<'_>, frame: &'a [u8; CANFD_MTU], index: u32, hardware: bool) -> Captured<'a> {
    let mut meta = Meta::default();
    about.note(&mut meta);
    let hardware_ns = if hardware { about.hardware_ns() } else { 0 };
    let bytes = &frame[..CANFD_MTU.min(about.bytes())];
    Captured { origin: meta.origin, hardware_ns, ..Captured::new(meta.stamp_ns, index, bytes) }
}
