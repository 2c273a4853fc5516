//! Links: frames go in at the near end and come out at the far end. What goes in and comes out is told by the plainest
//! means there are, a raw socket with read(2) and write(2), against which the methods are held.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use canter_io::canchar::{Device, RawFrame};
use canter_io::frame::{CAN_MTU, CANFD_MTU, EFF_MASK};
use canter_io::interface::BitTiming;
use canter_io::method::{Receive, ReceiveMethod, ReceiveOptions, Transmit, TransmitMethod, TransmitOptions};
use canter_io::netlink::wire::{self, NodeOptions};
use canter_io::{Batch, Frame, Interface, Meta, method::sim};
use canter_io::{poll, socket::Socket};

/// What joins the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A bus in the memory of this process.
    Sim,
    /// One vcan: both ends are the same interface.
    Vcan,
    /// One vcan with FD.
    VcanFd,
    /// A vxcan.
    Vxcan,
    /// A vxcan with FD.
    VxcanFd,
    /// Two of the lab's SJA1000 cards on one bus.
    Sja1000,
    /// Two of the lab's CTU CAN FD cards on one bus, when it has them.
    Ctucanfd,
    /// Two nodes of a virtual wire, when the lab has canwire.
    Canwire,
    /// Two virtual devices of the module canchar.
    CancharVirtual,
    /// Two of the lab's SJA1000 cards, driven by canchar.
    CancharCards,
    /// Two nodes of a virtual wire, driven by canchar.
    CancharWire,
    /// Two of the lab's SJA1000 cards without a driver, driven from here.
    PortCards,
}

impl Kind {
    /// Whether this guest has no driver for it, which is the only reason to leave it out.
    pub fn has_no_driver(self) -> bool {
        let is_loaded = |module: &str| Path::new("/sys/module").join(module).exists();
        match self {
            Self::Ctucanfd => !is_loaded("ctucanfd"),
            Self::Canwire => !is_loaded("canwire"),
            _ => false,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sim => "a simulated bus",
            Self::Vcan => "a vcan",
            Self::VcanFd => "an FD vcan",
            Self::Vxcan => "a vxcan",
            Self::VxcanFd => "an FD vxcan",
            Self::Sja1000 => "SJA1000 cards",
            Self::Ctucanfd => "CTU CAN FD cards",
            Self::Canwire => "a virtual wire",
            Self::CancharVirtual => "virtual canchar devices",
            Self::CancharCards => "cards driven by canchar",
            Self::CancharWire => "nodes driven by canchar",
            Self::PortCards => "cards without a driver",
        })
    }
}

/// A place where frames go in at one end and come out at the other.
pub struct Link {
    pub kind: Kind,
    near: String,
    far: String,
    /// How many worlds the simulated link has had; each sentence gets its own.
    worlds: AtomicU32,
}

impl Link {
    /// Makes it; its interfaces' names begin with `prefix`.
    pub fn new(kind: Kind, prefix: &str) -> Result<Self, String> {
        let (near, far) = match kind {
            Kind::Sja1000 => ("can0".to_owned(), "can1".to_owned()),
            Kind::Ctucanfd => ("can5".to_owned(), "can7".to_owned()),
            Kind::CancharVirtual => device_pair("virtual")?,
            Kind::CancharCards => device_pair("kvaser-pci")?,
            Kind::CancharWire => device_pair("canwire")?,
            Kind::PortCards => (format!("port:{}", PORT_CARDS[0]), format!("port:{}", PORT_CARDS[1])),
            Kind::Sim | Kind::Vcan | Kind::VcanFd => (format!("{prefix}v0"), format!("{prefix}v0")),
            Kind::Vxcan | Kind::VxcanFd => (format!("{prefix}x0"), format!("{prefix}x1")),
            Kind::Canwire => (format!("{prefix}w0"), format!("{prefix}w1")),
        };
        match kind {
            Kind::Sim | Kind::CancharVirtual => {}
            Kind::PortCards => PORT_CARDS.iter().for_each(|card| unbind(card)),
            Kind::CancharCards | Kind::CancharWire => {
                for name in [&near, &far] {
                    let mut device = Interface::find(name).map_err(|error| error.to_string())?;
                    device.down().unwrap();
                    device.set_bit_timing(&BitTiming::classic(500_000)).unwrap();
                }
            }
            Kind::Vcan | Kind::VcanFd => drop(Interface::create_vcan(&near).unwrap()),
            Kind::Vxcan | Kind::VxcanFd => drop(Interface::create_vxcan(&near, &far).unwrap()),
            Kind::Sja1000 | Kind::Ctucanfd => {
                for name in [&near, &far] {
                    set_up_card(kind, name)?;
                }
            }
            Kind::Canwire => {
                for name in [&near, &far] {
                    wire::add(name, prefix, &NodeOptions::default()).map_err(|error| error.to_string())?;
                    let mut node = Interface::find(name).unwrap();
                    node.set_bit_timing(&BitTiming::fd(1_000_000, 5_000_000)).unwrap();
                }
            }
        }
        let link = Self { kind, near, far, worlds: AtomicU32::new(0) };
        if link.is_virtual() {
            let mtu = if matches!(kind, Kind::VcanFd | Kind::VxcanFd) { CANFD_MTU } else { CAN_MTU };
            link.near().set_mtu(mtu as u32).unwrap();
            link.far().set_mtu(mtu as u32).unwrap();
        }
        link.make_ready();
        Ok(link)
    }

    /// Another one like it, to be spoilt.
    pub fn another(&self) -> Self {
        let link = Self::new(self.kind, "t").unwrap();
        link.make_ready();
        link
    }

    /// Brings both ends up, however the last sentence left them.
    pub fn make_ready(&self) {
        self.worlds.fetch_add(1, Ordering::Relaxed);
        for mut end in [self.near(), self.far()] {
            if !end.up {
                end.up().unwrap();
            }
        }
        // When one end of a vxcan goes down, the other loses its carrier; and until the kernel's work queue has noticed
        // that it is back, that end takes frames and throws them away without a word.
        let deadline = Instant::now() + ARRIVAL;
        while self.is_virtual() && !(self.near().running && self.far().running) {
            assert!(Instant::now() < deadline, "{} does not run", self.kind);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Where frames go in.
    pub fn near(&self) -> Interface {
        self.end(&self.near)
    }

    /// Where they come out.
    pub fn far(&self) -> Interface {
        self.end(&self.far)
    }

    fn end(&self, name: &str) -> Interface {
        match self.kind {
            Kind::Sim => Interface::find(&format!("sim:{}/bus", self.world_name())).unwrap(),
            _ => Interface::find(name).unwrap(),
        }
    }

    fn world_name(&self) -> String {
        format!("conformance-{}", self.worlds.load(Ordering::Relaxed))
    }

    // Where a sentence makes sense.

    pub fn everywhere(&self) -> bool {
        true
    }

    pub fn simulated(&self) -> bool {
        self.kind == Kind::Sim
    }

    pub fn with_kernel(&self) -> bool {
        self.kind != Kind::Sim
    }

    pub fn has_sockets(&self) -> bool {
        use Kind::{CancharCards, CancharVirtual, CancharWire, PortCards, Sim};
        !matches!(self.kind, Sim | CancharVirtual | CancharCards | CancharWire | PortCards)
    }

    /// Whether the link can be made and deleted at will.
    pub fn is_virtual(&self) -> bool {
        matches!(self.kind, Kind::Vcan | Kind::VcanFd | Kind::Vxcan | Kind::VxcanFd)
    }

    /// Receivers have a descriptor.
    pub fn has_descriptors(&self) -> bool {
        !matches!(self.kind, Kind::Sim | Kind::PortCards)
    }

    /// The driver sends own frames back (`IFF_ECHO`).
    pub fn echoes(&self) -> bool {
        self.with_kernel() && self.far().echo
    }

    /// What is sent waits in the queue of an interface for the other end.
    pub fn has_queue(&self) -> bool {
        self.has_sockets() && self.near != self.far
    }

    pub fn carries_error_frames(&self) -> bool {
        self.is_virtual()
    }

    pub fn classic_with_kernel(&self) -> bool {
        self.with_kernel() && !self.fd()
    }

    /// Whether the link carries frames as fast as they are sent, or has a clock that waits.
    pub fn takes_floods(&self) -> bool {
        self.is_virtual() || self.simulated()
    }

    // What it carries.

    pub fn fd(&self) -> bool {
        self.far().supports_fd()
    }

    /// An RTR frame with a length. QEMU's SJA1000 delivers garbage after one.
    pub fn carries_rtr_length(&self) -> bool {
        !matches!(self.kind, Kind::Sja1000 | Kind::CancharCards | Kind::PortCards)
    }

    /// DLC 9…15 of classic frames: controllers would need `cc-len8-dlc on`.
    pub fn carries_len8_dlc(&self) -> bool {
        self.is_virtual() || self.kind == Kind::Sim
    }

    /// The ESI flag as sent: a controller sets its own.
    pub fn carries_esi(&self) -> bool {
        self.kind != Kind::Ctucanfd
    }

    /// How many frames it takes at once. The emulated cards take no time on the bus, and their receive FIFO overruns:
    /// that of the SJA1000 has 64 bytes, an extended frame with 8 bytes takes 13.
    pub fn burst(&self) -> usize {
        match self.kind {
            Kind::Sim => 10,
            Kind::Sja1000 | Kind::CancharCards | Kind::PortCards => 4,
            Kind::CancharVirtual => 16,
            Kind::Ctucanfd | Kind::Canwire | Kind::CancharWire => 4,
            _ => usize::MAX,
        }
    }

    /// Lets what was sent arrive.
    pub fn settle(&self) {
        const SECOND_NS: u64 = 1_000_000_000;
        match self.kind {
            Kind::Sim => {
                let world = sim::world(&self.world_name());
                world.advance(world.now_ns() + SECOND_NS);
            }
            Kind::Sja1000 | Kind::Ctucanfd | Kind::Canwire | Kind::CancharCards | Kind::CancharWire => {
                std::thread::sleep(Duration::from_millis(2))
            }
            // Whoever looks empties the controller for all.
            Kind::PortCards => while RawEnd::open(&self.far()).receive().is_some() {},
            _ => {}
        }
    }

    /// Transmitters that work without a ring, and so may echo or not.
    pub fn plain_transmitters(&self) -> &'static [&'static str] {
        match self.kind {
            _ if self.has_sockets() => &["write", "sendmmsg"],
            Kind::PortCards => &["port"],
            _ => &["canchar"],
        }
    }

    /// Opens a receiver at the far end.
    pub fn receiver(&self, method: ReceiveMethod, options: &ReceiveOptions) -> Box<dyn Receive> {
        method.open(&self.far(), options).unwrap()
    }

    /// Opens a transmitter at the near end.
    pub fn transmitter(&self, method: TransmitMethod, options: &TransmitOptions) -> Box<dyn Transmit> {
        method.open(&self.near(), options).unwrap()
    }

    /// Sends at the near end, and returns when all frames have arrived at the far end.
    pub fn send(&self, frames: &[Frame]) {
        match self.kind {
            Kind::Sim => {
                let mut sender = self.transmitter("sim".parse().unwrap(), &TransmitOptions::default());
                for burst in frames.chunks(self.burst()) {
                    assert_eq!(sender.transmit(burst).unwrap(), burst.len());
                    self.settle();
                }
            }
            _ => {
                let mut socket = RawEnd::open(&self.near());
                let mut witness = RawEnd::open(&self.far());
                for burst in frames.chunks(self.burst()) {
                    burst.iter().for_each(|frame| socket.send(frame));
                    let deadline = Instant::now() + ARRIVAL;
                    let mut arrived = 0;
                    while arrived < burst.len() {
                        assert!(Instant::now() < deadline, "the link itself has lost frames");
                        arrived += usize::from(witness.receive().is_some());
                    }
                }
            }
        }
    }

    /// Listens at the far end.
    pub fn listen(&self) -> Listener<'_> {
        let ear = match self.kind {
            Kind::Sim => {
                let options = ReceiveOptions { queue_frames: Some(10_000), ..ReceiveOptions::default() };
                Ear::Sim(self.receiver("sim".parse().unwrap(), &options))
            }
            _ => Ear::Raw(RawEnd::open(&self.far())),
        };
        Listener { link: self, ear }
    }

    /// Makes the near end slow: a token bucket of `rate` (as tc(8) spells it), which lets four classic frames or one FD
    /// frame through at once, and behind it a queue of `limit` bytes.
    pub fn slow(&self, rate: &str, limit: u32) -> Slow<'_> {
        let bucket = if self.fd() { CANFD_MTU } else { 4 * CAN_MTU };
        let mut near = self.near();
        let tx_queue_len = near.tx_queue_len;
        near.set_tx_queue_len(10).unwrap();
        tc(&format!("qdisc replace dev {} root tbf rate {rate} burst {bucket} limit {limit}", self.near));
        Slow { link: self, tx_queue_len }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if self.is_virtual() {
            let _ = Interface::find(&self.near).and_then(Interface::delete); // it may have gone
        }
        if self.kind == Kind::Canwire {
            for name in [&self.near, &self.far] {
                let _ = wire::delete(name); // the same
            }
        }
        if self.kind == Kind::PortCards {
            PORT_CARDS.iter().for_each(|card| give_back(card));
        }
    }
}

/// The lab's can0 and can1.
const PORT_CARDS: [&str; 2] = ["0000:00:04.0", "0000:00:05.0"];

fn unbind(card: &str) {
    std::fs::write(format!("/sys/bus/pci/devices/{card}/driver/unbind"), card).unwrap();
}

fn give_back(card: &str) {
    std::fs::write("/sys/bus/pci/drivers_probe", card).unwrap();
    let driver = std::fs::read_link(format!("/sys/bus/pci/devices/{card}/driver"));
    assert!(driver.is_ok_and(|driver| driver.ends_with("kvaser_pci")), "{card} does not go back");
}

fn set_up_card(kind: Kind, name: &str) -> Result<(), String> {
    let mut card = Interface::find(name).map_err(|error| error.to_string())?;
    let driver = if kind == Kind::Ctucanfd { "ctucanfd" } else { "kvaser_pci" };
    if card.driver.as_deref().is_none_or(|its| !its.starts_with(driver)) {
        return Err(format!("the driver of {name} is {:?}, not {driver}", card.driver));
    }
    let timing =
        if kind == Kind::Ctucanfd { BitTiming::fd(500_000, 2_000_000) } else { BitTiming::classic(500_000) };
    card.down().map_err(|error| error.to_string())?;
    // Sentences send from the first processor. When it also takes the cards' interrupts, each frame has left the
    // receiver's FIFO before the next is sent; otherwise an emulated processor that gets no time loses frames. The
    // driver asks for its interrupt when the card comes up.
    std::fs::write("/proc/irq/default_smp_affinity", "1").unwrap();
    card.set_bit_timing(&timing).map_err(|error| error.to_string())
}

/// An interface made slow, until this is dropped.
pub struct Slow<'a> {
    link: &'a Link,
    tx_queue_len: u32,
}

impl Drop for Slow<'_> {
    fn drop(&mut self) {
        tc(&format!("qdisc delete dev {} root", self.link.near));
        self.link.near().set_tx_queue_len(self.tx_queue_len).unwrap();
    }
}

fn tc(arguments: &str) {
    let done = Command::new("tc").args(arguments.split_whitespace()).output().unwrap();
    assert!(done.status.success(), "tc {arguments}: {}", String::from_utf8_lossy(&done.stderr));
}

/// The plainest end of a link: a raw socket, an open canchar device, or the one way that there is to a card without a
/// driver.
enum RawEnd {
    Socket(RawSocket),
    Device(RawDevice),
    Port(Box<dyn Receive>, Box<dyn Transmit>),
}

impl RawEnd {
    fn open(interface: &Interface) -> Self {
        if interface.has_sockets() {
            Self::Socket(RawSocket::open(interface))
        } else if interface.kind == canter_io::interface::Kind::Port {
            let (receive, transmit): (ReceiveMethod, TransmitMethod) =
                ("port".parse().unwrap(), "port".parse().unwrap());
            let long = ReceiveOptions { queue_frames: Some(1024), ..ReceiveOptions::default() };
            let receiver = receive.open(interface, &long).unwrap();
            Self::Port(receiver, transmit.open(interface, &TransmitOptions::default()).unwrap())
        } else {
            Self::Device(RawDevice::open(interface))
        }
    }

    fn send(&mut self, frame: &Frame) {
        match self {
            Self::Socket(socket) => socket.send(frame),
            Self::Device(device) => device.send(frame),
            Self::Port(_, transmitter) => assert_eq!(transmitter.transmit(&[*frame]).unwrap(), 1),
        }
    }

    fn receive(&mut self) -> Option<Frame> {
        match self {
            Self::Socket(socket) => socket.receive(),
            Self::Device(device) => device.receive(),
            Self::Port(receiver, _) => {
                let mut one = Batch::new(1);
                receiver.receive(&mut one).unwrap();
                one.frames().first().copied()
            }
        }
    }
}

/// A canchar device that sends, and hears all data and RTR frames, one at a time, with a queue longer than the default.
struct RawDevice(Device);

impl RawDevice {
    fn open(interface: &Interface) -> Self {
        let device = Device::open(Path::new(&interface.name), true).unwrap();
        device.change(|options| options.rx_slots = 1024).unwrap();
        Self(device)
    }

    fn send(&mut self, frame: &Frame) {
        send_to_device(&self.0, frame);
    }

    fn receive(&mut self) -> Option<Frame> {
        let mut raw = [RawFrame::default()];
        match self.0.read(&mut raw) {
            Ok(count) => assert_eq!(count, 1),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
            Err(error) => panic!("{error}"),
        }
        let mut frame = Frame::default();
        (frame.can_id, frame.len) = (raw[0].can_id, raw[0].len);
        frame.data[..8].copy_from_slice(&raw[0].data);
        Some(frame)
    }
}

fn send_to_device(device: &Device, frame: &Frame) {
    let mut raw = RawFrame { can_id: frame.can_id, len: frame.len, ..RawFrame::default() };
    raw.data.copy_from_slice(&frame.data[..8]);
    assert_eq!(device.write(&[raw]).unwrap(), 1);
}

/// The first two canchar devices of this board.
fn device_pair(board: &str) -> Result<(String, String), String> {
    let name = |number: u32| format!("/dev/canchar{number}");
    let found = (0..8).filter_map(|number| Interface::find(&name(number)).ok());
    let mut names = found.filter(|device| device.driver.as_deref() == Some(board)).map(|device| device.name);
    match (names.next(), names.next()) {
        (Some(near), Some(far)) => Ok((near, far)),
        _ => Err(format!("not two canchar devices of board {board}")),
    }
}

/// A raw socket that sends, and hears all frames, error frames too, with write(2) and read(2).
pub struct RawSocket(File);

impl RawSocket {
    pub fn open(interface: &Interface) -> Self {
        let socket = Socket::can_raw().unwrap();
        if interface.supports_fd() {
            socket.set(libc::SOL_CAN_RAW, libc::CAN_RAW_FD_FRAMES, 1i32).unwrap();
        }
        socket.set(libc::SOL_CAN_RAW, libc::CAN_RAW_ERR_FILTER, EFF_MASK).unwrap();
        socket.set_receive_buffer(16 << 20).unwrap();
        socket.bind_can(interface.index).unwrap();
        Self(File::from(socket.as_fd().try_clone_to_owned().unwrap()))
    }

    pub fn send(&mut self, frame: &Frame) {
        write_frame(&mut self.0, frame);
    }

    fn receive(&mut self) -> Option<Frame> {
        if poll::readable(&[self.0.as_fd()], Some(0)).unwrap() == 0 {
            return None;
        }
        let mut bytes = [0; CANFD_MTU];
        let count = self.0.read(&mut bytes).unwrap();
        let mut frame = Frame::default();
        frame.can_id = u32::from_ne_bytes(bytes[..4].try_into().unwrap());
        (frame.len, frame.flags, frame.len8_dlc) = (bytes[4], bytes[5], bytes[7]);
        frame.data.copy_from_slice(&bytes[8..]);
        frame.received_as(count);
        Some(frame)
    }
}

/// Sends by write(2) on the very socket or file of a receiver.
pub fn send_by(link: &Link, descriptor: BorrowedFd<'_>, frame: &Frame) {
    if !link.has_sockets() {
        let file = File::from(descriptor.try_clone_to_owned().unwrap());
        return send_to_device(&Device::from(file), frame);
    }
    write_frame(&mut File::from(descriptor.try_clone_to_owned().unwrap()), frame);
}

fn write_frame(socket: &mut File, frame: &Frame) {
    let mut bytes = [0; CANFD_MTU];
    bytes[..4].copy_from_slice(&frame.can_id.to_ne_bytes());
    (bytes[4], bytes[5], bytes[7]) = (frame.len, frame.flags, frame.len8_dlc);
    bytes[8..].copy_from_slice(&frame.data);
    assert_eq!(socket.write(&bytes[..frame.mtu()]).unwrap(), frame.mtu());
}

/// Hears what arrives at the far end of a link.
pub struct Listener<'a> {
    link: &'a Link,
    ear: Ear,
}

enum Ear {
    Raw(RawEnd),
    Sim(Box<dyn Receive>),
}

impl Listener<'_> {
    /// What has arrived by now.
    pub fn heard(&mut self) -> Vec<Frame> {
        self.link.settle();
        match &mut self.ear {
            Ear::Raw(socket) => std::iter::from_fn(|| socket.receive()).collect(),
            Ear::Sim(receiver) => {
                let mut batch = Batch::new(10_000);
                receiver.receive(&mut batch).unwrap();
                batch.frames().to_vec()
            }
        }
    }

    /// What arrives until there are `count` frames, and a moment more.
    pub fn hear(&mut self, count: usize) -> Vec<Frame> {
        let deadline = Instant::now() + ARRIVAL;
        let mut frames = self.heard();
        while frames.len() < count && Instant::now() < deadline {
            std::thread::sleep(Duration::from_micros(200));
            frames.extend(self.heard());
        }
        std::thread::sleep(MOMENT);
        frames.extend(self.heard());
        frames
    }
}

/// How long a frame may be on its way.
const ARRIVAL: Duration = Duration::from_secs(5);
/// How long it is waited for frames that should not come.
const MOMENT: Duration = Duration::from_millis(5);

/// Receives until there are `count` frames; fails when they do not come.
pub fn receive_all(link: &Link, receiver: &mut dyn Receive, count: usize) -> Vec<(Frame, Meta)> {
    let deadline = Instant::now() + ARRIVAL;
    let (mut batch, mut all) = (Batch::new(16), Vec::new());
    while all.len() < count {
        assert!(Instant::now() < deadline, "{} of {count} frames came", all.len());
        link.settle();
        batch.clear();
        let came = receiver.receive(&mut batch).unwrap();
        assert_eq!(came, batch.len());
        all.extend(batch.iter().map(|(frame, meta)| (*frame, *meta)));
    }
    all
}

/// Fails when something comes within a moment.
pub fn assert_nothing_comes(link: &Link, receiver: &mut dyn Receive) {
    link.settle();
    if link.with_kernel() {
        std::thread::sleep(MOMENT);
    }
    let is_quiet = |descriptor| poll::readable(&[descriptor], Some(0)).unwrap() == 0;
    if receiver.descriptor().is_some_and(is_quiet) {
        return;
    }
    let mut batch = Batch::new(16);
    receiver.receive(&mut batch).unwrap();
    assert_frames(batch.frames(), &[]);
}

/// Fails when other frames came than expected.
pub fn assert_frames(came: &[Frame], expected: &[Frame]) {
    if let Some(difference) = difference(came, expected) {
        panic!("{difference}");
    }
}

/// The first difference, in words.
pub fn difference(came: &[Frame], expected: &[Frame]) -> Option<String> {
    if came == expected {
        return None;
    }
    let first = came.iter().zip(expected).position(|(came, expected)| came != expected);
    let at = first.unwrap_or(came.len().min(expected.len()));
    let (count, wanted) = (came.len(), expected.len());
    let (came, expected) = (came.get(at), expected.get(at));
    Some(format!("{count} frames came, should be {wanted}; number {at} is {came:?}, should be {expected:?}"))
}
