//! The source of a recording's frames: the kernel's ring for network interfaces, or sockets without permission for the
//! ring or when direction or hardware stamps are wanted; one open file for each canchar device.

use crate::{
    Error, Result,
    buses::{Buses, News},
    chunk::Chunk,
    counting::IN_FLIGHT_NS,
    keeper::Keeper,
    live::Live,
    ring::Ring,
    verdict::Method,
};
use canter_io::{
    Interface, batch::Origin, capture_devices::CaptureDevices, capture_ring::Block,
    capture_sockets::CaptureSockets, captured::Captured, carrier::Access, clock, poll,
};
use std::{
    io::{self, ErrorKind},
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};

/// The longest drain of sockets and devices at the end. On a busy bus they never run empty, and later frames do not
/// belong to the recording.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// The pause after a wake-up, in which frames of devices gather: a wake-up costs more than ten frames. A device's queue
/// holds 190 ms of frames of a bus at full load.
const GATHER: Duration = Duration::from_millis(4);

/// The most descriptors in one poll(2); with more, all are read every [`GATHER`].
const POLLED_MAX: usize = 64;

/// The part of the settings that the source needs.
pub struct SourceOptions {
    /// Network interfaces are to be recorded.
    pub network: bool,
    /// The name of the only network interface to be recorded, if there is only one.
    pub single: Option<String>,
    /// The indexes of the CAN interfaces that are up and not to be recorded.
    pub unwanted: Vec<u32>,
    /// Paths of canchar devices.
    pub devices: Vec<String>,
    /// FD frames may arrive.
    pub fd: bool,
    /// The size of the ring, or of all sockets' queues together, in bytes.
    pub bytes: usize,
    pub direction: bool,
    pub hardware_stamps: bool,
}

/// How frames of network interfaces are received.
enum Network {
    Ring(Ring),
    Sockets { sockets: CaptureSockets, bytes: usize },
}

pub struct Source {
    network: Option<Network>,
    devices: CaptureDevices,
    /// The paths of the devices to be recorded, existing or not.
    paths: Vec<String>,
    /// Record whether a frame was received or sent.
    direction: bool,
}

impl Source {
    /// Starts to receive from `found`.
    pub fn open(options: &SourceOptions, found: &[Interface], live: &Live) -> Result<Self> {
        let is_device = |one: &&Interface| one.carrier.access == Access::File;
        let (of_devices, of_network): (Vec<_>, Vec<_>) = found.iter().partition(is_device);
        let network = options.network.then(|| Network::open(options, &of_network, live)).transpose()?;
        let mut devices = CaptureDevices::default();
        for device in of_devices {
            devices.add(device)?;
        }
        Ok(Self { network, devices, paths: options.devices.clone(), direction: options.direction })
    }

    /// The size of the kernel's queues in bytes.
    pub fn bytes(&self) -> usize {
        self.devices.bytes() + self.network.as_ref().map_or(0, Network::bytes)
    }

    /// How frames are received.
    pub fn method(&self) -> Method {
        match (&self.network, self.paths.is_empty()) {
            (Some(Network::Ring(_)), true) => Method::Ring,
            (Some(Network::Ring(_)), false) => Method::RingAndDevices,
            (Some(Network::Sockets { .. }), true) => Method::Sockets,
            (Some(Network::Sockets { .. }), false) => Method::SocketsAndDevices,
            (None, _) => Method::Devices,
        }
    }

    /// Whether a ring has received from interfaces that are not recorded.
    pub fn has_shared_ring(&self) -> bool {
        matches!(&self.network, Some(Network::Ring(ring)) if ring.is_shared)
    }

    /// Follows an interface that appeared or disappeared, and tells of the first when it is received.
    pub fn follow(&mut self, news: &News, keeper: &mut Keeper<'_>, live: &Live) {
        match (self.try_to_follow(news, keeper, live), news) {
            (Err(error), _) => live.alarm(format!("{error}; the interface is not recorded")),
            (Ok(()), News::Found { told: Some(told), .. }) => live.log(told.clone()),
            (Ok(()), _) => {}
        }
    }

    fn try_to_follow(&mut self, news: &News, keeper: &mut Keeper<'_>, live: &Live) -> Result<()> {
        match news {
            News::Found { interface, .. } if interface.carrier.access == Access::File => {
                self.devices.add(interface)?;
            }
            News::Gone { index, place } if self.devices.is_open(*index) => {
                keeper.buses.list[*place].own_lost += self.devices.drops(*index).unwrap_or_default();
                self.devices.remove(*index);
            }
            _ => {
                if let Some(network) = &mut self.network {
                    network.follow(news, keeper, self.direction, live)?;
                }
            }
        }
        Ok(())
    }

    /// Looks for devices that appeared or disappeared, since the kernel does not report them.
    pub fn note_devices(&mut self, buses: &mut Buses<'_>) {
        let gone: Vec<u32> = self.devices.gone().collect();
        for index in gone {
            buses.note_gone(index, self.devices.counters(index));
        }
        self.devices.wake();
        for path in self.paths.clone() {
            match Interface::find(&path) {
                Ok(interface) => buses.note_present(interface, None),
                // An open device reports its removal through its file.
                Err(_) => {
                    let index = buses.index_of(&path).filter(|&index| !self.devices.is_open(index));
                    index.into_iter().for_each(|index| buses.note_gone(index, None));
                }
            }
        }
    }

    /// Passes the waiting frames to `keeper`; waits up to `timeout_ns` for the first.
    pub fn next(&mut self, timeout_ns: u64, keeper: &mut Keeper<'_>) -> io::Result<()> {
        let alone = self.network.is_some() && self.devices.is_empty();
        let timeout_ns = if alone {
            timeout_ns
        } else {
            self.wait(timeout_ns)?;
            0
        };
        self.next_of_devices(keeper)?;
        match &mut self.network {
            None => Ok(()),
            Some(Network::Ring(ring)) => {
                ring.packets.next(timeout_ns, |block| keep_block(keeper, block)).map(drop)
            }
            Some(Network::Sockets { sockets, .. }) => {
                let direction = self.direction;
                sockets.next(timeout_ns, |records| keep_noted(keeper, records, direction))
            }
        }
    }

    fn next_of_devices(&mut self, keeper: &mut Keeper<'_>) -> io::Result<()> {
        let direction = self.direction;
        self.devices.next(|records| match direction {
            true => keep_noted(keeper, records, true),
            false => keeper.keep_block(false, records.len(), records.iter().copied()),
        })
    }

    /// Waits until a frame can be read anywhere, and then [`GATHER`] for more.
    fn wait(&self, timeout_ns: u64) -> io::Result<()> {
        let of_network = self.network.iter().flat_map(Network::descriptors);
        let mut polled: Vec<BorrowedFd<'_>> = self.devices.descriptors().chain(of_network).collect();
        let gather_ns = GATHER.as_nanos() as u64;
        let timeout_ns = if polled.len() > POLLED_MAX { timeout_ns.min(gather_ns) } else { timeout_ns };
        polled.truncate(POLLED_MAX);
        if poll::readable(&polled, Some(timeout_ns))? > 0 {
            std::thread::sleep(GATHER.min(Duration::from_nanos(timeout_ns)));
        }
        Ok(())
    }

    /// At the end of the recording: takes the frames received before it out of the kernel.
    pub fn drain(&mut self, keeper: &mut Keeper<'_>) -> io::Result<()> {
        let (begun, now_ns) = (Instant::now(), clock::realtime_ns());
        while self.devices.complete_until_ns() < now_ns && begun.elapsed() < DRAIN_MAX {
            self.next_of_devices(keeper)?;
        }
        let until_ns = now_ns + IN_FLIGHT_NS;
        match &mut self.network {
            None => Ok(()),
            Some(Network::Ring(ring)) => {
                // An interface may have counted a frame that still waits in a processor's backlog.
                ring.receive_for(IN_FLIGHT_NS, |block| keep_block(keeper, block))?;
                ring.packets.drain(|block| keep_block(keeper, block))
            }
            Some(Network::Sockets { sockets, .. }) => {
                let direction = self.direction;
                while sockets.complete_until_ns() < until_ns && begun.elapsed() < DRAIN_MAX {
                    sockets.next(IN_FLIGHT_NS / 4, |records| keep_noted(keeper, records, direction))?;
                }
                Ok(())
            }
        }
    }

    /// All frames with stamps below this, in ns, have been passed on.
    pub fn complete_until_ns(&self) -> u64 {
        let of_network = self.network.as_ref().map_or(u64::MAX, Network::complete_until_ns);
        self.devices.complete_until_ns().min(of_network).saturating_sub(IN_FLIGHT_NS)
    }

    /// Frames that the ring has lost so far, of all buses.
    pub fn ring_drops(&mut self) -> io::Result<u64> {
        match &mut self.network {
            Some(Network::Ring(ring)) => ring.packets.drops(),
            _ => Ok(0),
        }
    }

    /// Updates the losses of the buses that have their own queue, in a socket or a device's file, and returns the sum.
    pub fn own_drops(&mut self, buses: &mut Buses<'_>) -> io::Result<u64> {
        let Self { network, devices, .. } = self;
        buses.count_own_losses(|index| {
            let of_socket = match network {
                Some(Network::Sockets { sockets, .. }) => sockets.drops(index)?,
                _ => 0,
            };
            Ok(of_socket + devices.drops(index)?)
        })
    }
}

impl Network {
    /// Opens a ring for all interfaces, or bound to one if only that one is to be recorded; sockets without permission
    /// for a ring, or if direction or hardware stamps are wanted.
    fn open(options: &SourceOptions, found: &[&Interface], live: &Live) -> Result<Self> {
        if options.direction || options.hardware_stamps {
            return Self::sockets(options, found);
        }
        let bound = options.single.as_deref().and_then(|name| found.iter().find(|one| one.name == name));
        let thing = bound.map_or("capture", |one| one.name.as_str());
        let index = bound.map(|one| one.index);
        match Ring::open(thing, index, &options.unwanted, options.fd, options.bytes) {
            Ok(ring) => Ok(Self::Ring(ring)),
            Err(Error::Io(error)) if error.kind() == ErrorKind::PermissionDenied => {
                let source = Self::sockets(options, found)?;
                let Self::Sockets { sockets, .. } = &source else { return Ok(source) };
                let frames = sockets.queue_frames().unwrap_or_default();
                live.log(format!(
                    "capture: without CAP_NET_RAW, through sockets instead of a ring; each socket's queue holds {frames} frames"
                ));
                Ok(source)
            }
            Err(error) => Err(error),
        }
    }

    fn sockets(options: &SourceOptions, found: &[&Interface]) -> Result<Self> {
        let share = options.bytes / found.len().max(1);
        let mut sockets = CaptureSockets::new(share.try_into().unwrap_or(u32::MAX), options.hardware_stamps);
        for interface in found {
            sockets.add(interface)?;
        }
        Ok(Self::Sockets { sockets, bytes: share * found.len() })
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Ring(ring) => ring.packets.bytes(),
            Self::Sockets { bytes, .. } => *bytes,
        }
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Self::Ring(ring) => ring.packets.descriptors().collect(),
            Self::Sockets { sockets, .. } => sockets.descriptors().collect(),
        }
    }

    fn follow(&mut self, news: &News, keeper: &mut Keeper<'_>, direction: bool, live: &Live) -> Result<()> {
        match (self, news) {
            (Self::Ring(ring), news) => ring.follow(news, live),
            (Self::Sockets { sockets, .. }, News::Found { interface, .. }) => sockets.add(interface)?,
            (Self::Sockets { .. }, News::Unwanted { .. }) => {}
            (Self::Sockets { sockets, .. }, News::Gone { index, place }) => {
                let left = sockets.empty(*index, |records| keep_noted(keeper, records, direction));
                if let Err(error) = left {
                    live.alarm(format!("{error}; its last frames are not recorded"));
                }
                keeper.buses.list[*place].own_lost += sockets.drops(*index).unwrap_or_default();
                sockets.remove(*index);
            }
        }
        Ok(())
    }

    fn complete_until_ns(&self) -> u64 {
        match self {
            Self::Ring(ring) => ring.packets.complete_until_ns(),
            Self::Sockets { sockets, .. } => sockets.complete_until_ns(),
        }
    }
}

fn keep_block(keeper: &mut Keeper<'_>, block: Block<'_>) {
    keeper.keep_block(block.is_fd(), block.len(), block.records());
}

/// Keeps frames with their origin, if `direction` is set, and their hardware stamps.
fn keep_noted(keeper: &mut Keeper<'_>, records: &[Captured<'_>], direction: bool) {
    let noted = records.iter().map(|record| {
        let origin = if direction { record.origin } else { Origin::Unknown };
        Captured { origin, ..*record }
    });
    keeper.keep(Chunk::noted(records.len()), noted);
}
