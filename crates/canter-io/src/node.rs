//! One `CAN_RAW` socket, or one open file of a canchar device, that both receives and sends: for programs that take part
//! in a bus rather than route or record it. The kernel knows which frames the node sent, so the node can leave them out.
//!
//! It receives many frames per system call and never waits; to wait, poll its file descriptor.
#![allow(unsafe_code)]

mod device;

use crate::{
    Error, Filter, Filters, Frame, Interface, Meta, Result,
    carrier::Access,
    interface::Counters,
    method::can_raw,
    sys::{
        self,
        canchar::RawFrame,
        inbox::{self, About, Wanted},
        socket::Socket,
    },
};
use device::OpenDevice;
use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
};

/// The most frames per system call.
pub const CALL_FRAMES: usize = 64;

/// Options of a node.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Receive its own frames too, if `echo` is on (`CAN_RAW_RECV_OWN_MSGS`).
    pub own_frames: bool,
    /// Other sockets of this machine, or other files of the device, receive the frames it sends (`CAN_RAW_LOOPBACK`).
    pub echo: bool,
    /// Receive and send FD frames, where the interface supports them.
    pub fd: bool,
    /// The frames to receive.
    pub filters: Filters,
    /// The size of its receive queue in bytes, as the kernel counts them; `None`: the system's default. A device's queue
    /// holds as many frames as a socket's of that size, rounded up to a power of two, 4096 at most.
    pub queue_bytes: Option<u32>,
    /// Request the controller's hardware stamps (`SO_TIMESTAMPING`); a canchar device has only the kernel's stamps.
    pub hardware_stamps: bool,
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self {
            own_frames: false,
            echo: true,
            fd: false,
            filters: Filters::default(),
            queue_bytes: None,
            hardware_stamps: false,
        }
    }
}

/// A received frame with its metadata.
#[derive(Clone, Copy, Debug, Default)]
pub struct Received {
    /// The frame.
    pub frame: Frame,
    /// Stamp, interface, origin.
    pub meta: Meta,
    /// The controller's hardware stamp in ns of the controller's clock; 0: none.
    pub hardware_ns: u64,
}

/// A participant of a bus: one socket or one device file.
#[derive(Debug)]
pub struct Node {
    line: Line,
    /// `None`: all interfaces.
    interface: Option<Interface>,
}

#[derive(Debug)]
enum Line {
    Socket(Socket),
    Device(OpenDevice),
}

impl Node {
    /// Opens a node on `interface`, or on all network interfaces.
    ///
    /// # Errors
    /// The kernel's error, with the step: `ENODEV`, `ENETDOWN`, `EACCES`; `Unsupported` for an interface that is
    /// neither of the network nor a canchar device.
    pub fn open(interface: Option<&Interface>, options: &NodeOptions) -> Result<Self> {
        let line = match interface {
            Some(device) if device.carrier.access == Access::File => {
                Line::Device(OpenDevice::open(device, options)?)
            }
            Some(other) if !other.has_sockets() => {
                let why = format!("{} is neither of the network nor a canchar device", other.kind);
                return Err(Error::unsupported(&other.name, "open", why));
            }
            _ => Line::Socket(open_socket(interface, options)?),
        };
        Ok(Self { line, interface: interface.cloned() })
    }

    /// Replaces the filters. Frames already in the queue stay there.
    ///
    /// # Errors
    /// The error of setsockopt(2), for a device of ioctl(2).
    pub fn set_filters(&self, filters: &Filters) -> Result<()> {
        let name = self.interface.as_ref().map_or("any", |interface| &interface.name);
        match &self.line {
            Line::Socket(socket) => set_filters(socket, name, filters),
            Line::Device(device) => device.set_filters(name, filters),
        }
    }

    /// Appends waiting frames, up to [`CALL_FRAMES`], and returns how many; 0 when none waits.
    ///
    /// # Errors
    /// `ENETDOWN` when an interface went down, `ENODEV` when it no longer exists. A socket reports the error once, before
    /// the frames that wait. A device reports it after them and at each call; poll(2) then reports an error each time.
    pub fn receive(&self, inbox: &mut Inbox, to: &mut impl Extend<Received>) -> io::Result<usize> {
        let answer = match &self.line {
            Line::Socket(socket) => inbox
                .socket
                .receive(socket)
                .inspect(|&count| to.extend(inbox.socket.received(count).map(received))),
            Line::Device(device) => device.receive(&mut inbox.raw, to),
        };
        match answer {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            answer => answer,
        }
    }

    /// Sends one frame, on the interface with index `interface` where the node is on all; 0: on its own. Does not wait.
    ///
    /// # Errors
    /// `ENOBUFS` and `EAGAIN` when a queue is full, of a device also while another thread sends; `ENETDOWN`, `ENODEV`;
    /// `EINVAL` for an FD frame on a classic interface or a device, and for an error frame on a device.
    pub fn send(&self, frame: &Frame, interface: u32) -> io::Result<()> {
        match &self.line {
            Line::Socket(socket) => send(socket, frame, interface),
            Line::Device(device) => device.send(frame),
        }
    }

    /// The number of frames lost in its queue so far, up to date at each call.
    ///
    /// # Errors
    /// The error of getsockopt(2), for a device of ioctl(2).
    pub fn drops(&self) -> io::Result<u64> {
        match &self.line {
            Line::Socket(socket) => socket.drops(),
            Line::Device(device) => device.tally().map(|tally| tally.lost),
        }
    }

    /// The counters of its interface, read now; for a device also after its card was removed. All 0 where the node is on all
    /// interfaces.
    ///
    /// # Errors
    /// `ENODEV` when the interface no longer exists.
    pub fn counters(&self) -> Result<Counters> {
        let Some(interface) = &self.interface else { return Ok(Counters::default()) };
        match &self.line {
            Line::Socket(_) => interface.counters(),
            Line::Device(device) => {
                let tally = device.tally().map_err(|error| Error::new(&interface.name, "counters", error))?;
                Ok(tally.counters)
            }
        }
    }

    /// The size of its receive queue in bytes, as the kernel counts them; a device's frame takes 24 bytes.
    ///
    /// # Errors
    /// The error of getsockopt(2).
    pub fn queue_bytes(&self) -> io::Result<u32> {
        match &self.line {
            Line::Socket(socket) => socket.get(libc::SOL_SOCKET, libc::SO_RCVBUF).map(|[bytes]| bytes),
            Line::Device(device) => Ok(device.queue_bytes()),
        }
    }

    /// Closes a device when its queued frames have been sent, or after 1 s. A card that is plugged in again gets its old
    /// number only when no program has the device open. Counters stay readable. A socket stays open until it is dropped.
    pub fn close(&self) {
        if let Line::Device(device) = &self.line {
            device.close();
        }
    }
}

fn open_socket(interface: Option<&Interface>, options: &NodeOptions) -> Result<Socket> {
    let (name, index) = interface.map_or(("any", 0), |interface| (&interface.name, interface.index));
    let step = |step: &'static str| move |error| Error::new(name, step, error);
    let socket = can_raw::open(name)?;
    let switch = |option, on: bool| socket.set(libc::SOL_CAN_RAW, option, libc::c_int::from(on));
    switch(libc::CAN_RAW_LOOPBACK, options.echo).map_err(step("CAN_RAW_LOOPBACK"))?;
    switch(libc::CAN_RAW_RECV_OWN_MSGS, options.own_frames).map_err(step("CAN_RAW_RECV_OWN_MSGS"))?;
    switch(libc::CAN_RAW_FD_FRAMES, options.fd).map_err(step("CAN_RAW_FD_FRAMES"))?;
    socket.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1i32).map_err(step("SO_TIMESTAMPNS"))?;
    if options.hardware_stamps {
        let wanted = libc::SOF_TIMESTAMPING_RX_HARDWARE | libc::SOF_TIMESTAMPING_RAW_HARDWARE;
        socket.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, wanted).map_err(step("SO_TIMESTAMPING"))?;
    }
    if let Some(bytes) = options.queue_bytes {
        socket.set_receive_buffer(bytes).map_err(step("SO_RCVBUF"))?;
    }
    set_filters(&socket, name, &options.filters)?;
    socket.bind_can(index).map_err(|error| Error::moving(name, "bind", error))?;
    Ok(socket)
}

fn set_filters(socket: &Socket, name: &str, filters: &Filters) -> Result<()> {
    let everything = [Filter { id: 0, mask: 0 }];
    let list = if filters.list.is_empty() { &everything[..] } else { &filters.list };
    let step = |step: &'static str| move |error| Error::new(name, step, error);
    let raw = libc::SOL_CAN_RAW;
    socket.set_slice(raw, libc::CAN_RAW_FILTER, list).map_err(step("CAN_RAW_FILTER"))?;
    socket.set(raw, libc::CAN_RAW_ERR_FILTER, filters.error_mask).map_err(step("CAN_RAW_ERR_FILTER"))
}

fn send(socket: &Socket, frame: &Frame, interface: u32) -> io::Result<()> {
    let (bytes, length) = (std::ptr::from_ref(frame).cast(), frame.mtu());
    let fd = socket.as_raw_fd();
    if interface == 0 {
        // SAFETY: a Frame has at least `length` bytes and outlives the call. send(2).
        return sys::check_size(unsafe { libc::send(fd, bytes, length, libc::MSG_DONTWAIT) }).map(drop);
    }
    let address = sys::socket::can_address(interface);
    let to = std::ptr::from_ref(&address).cast();
    let size = size_of_val(&address) as libc::socklen_t;
    // SAFETY: as above, and the address outlives the call. sendto(2).
    let answer = unsafe { libc::sendto(fd, bytes, length, libc::MSG_DONTWAIT, to, size) };
    sys::check_size(answer).map(drop)
}

impl AsFd for Node {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.line {
            Line::Socket(socket) => socket.as_fd(),
            Line::Device(device) => device.as_fd(),
        }
    }
}

/// Room for the frames of one system call. Kept apart from [`Node`], so that one thread may send while another
/// receives.
pub struct Inbox {
    socket: inbox::Inbox<Frame>,
    /// Frames as a device hands them out.
    raw: Box<[RawFrame]>,
}

impl Default for Inbox {
    fn default() -> Self {
        let wanted = Wanted { control: true, interface: true };
        Self {
            socket: inbox::Inbox::new(CALL_FRAMES, wanted, Frame::default()),
            raw: vec![RawFrame::default(); CALL_FRAMES].into(),
        }
    }
}

/// A frame from a socket.
fn received((about, frame): (About<'_>, &Frame)) -> Received {
    let mut frame = *frame;
    frame.received_as(about.bytes());
    let mut meta = Meta { interface: about.interface(), ..Meta::default() };
    about.note(&mut meta);
    Received { frame, meta, hardware_ns: about.hardware_ns() }
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}
