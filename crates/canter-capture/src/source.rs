//! Where frames come from: interfaces of the network by the kernel's ring, or by sockets where that is not permitted or
//! does not tell enough; canchar devices by files of their own.

use crate::Result;
use crate::{
    buses::{Buses, News},
    chunk::Chunk,
    live::Live,
    receiver::Keeper,
};
use canter_io::{
    Interface,
    batch::Origin,
    capture_devices::CaptureDevices,
    capture_ring::{Block, CaptureRing},
    capture_sockets::CaptureSockets,
    captured::Captured,
    carrier::Access,
    clock, poll,
};
use std::{
    io::{self, ErrorKind},
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};

/// How long a frame may be on its way between its stamp and its block or its socket.
const IN_FLIGHT_NS: u64 = 20_000_000;

/// Sockets and devices that never run empty are left after this: the rest is of after the end.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// How long frames of devices gather after a wake-up, which costs more than ten of them. A device's queue holds 190 ms of
/// the fullest bus.
const GATHER: Duration = Duration::from_millis(4);

/// What is waited for at once; of more, all are looked at every [`GATHER`].
const POLLED_MAX: usize = 64;

/// What a recording asks of its source.
pub struct Wish {
    /// Interfaces of the network are wanted.
    pub network: bool,
    /// The name of the only one of them that will ever be wanted.
    pub single: Option<String>,
    /// Paths of canchar devices.
    pub devices: Vec<String>,
    /// FD frames may come.
    pub fd: bool,
    pub bytes: usize,
    pub direction: bool,
    pub hardware_stamps: bool,
}

/// What the frames of interfaces of the network come by.
enum Network {
    Ring { ring: CaptureRing, bound: bool },
    Sockets { sockets: CaptureSockets, bytes: usize },
}

pub struct Source {
    network: Option<Network>,
    devices: CaptureDevices,
    /// Paths of devices that are wanted, there or not.
    paths: Vec<String>,
    /// Who sent a frame is to be told.
    direction: bool,
}

impl Source {
    /// Starts to receive from `found`.
    pub fn open(wish: &Wish, found: &[Interface], live: &Live) -> Result<Self> {
        let is_device = |one: &&Interface| one.carrier.access == Access::File;
        let (of_devices, of_network): (Vec<_>, Vec<_>) = found.iter().partition(is_device);
        let network = wish.network.then(|| Network::open(wish, &of_network, live)).transpose()?;
        let mut devices = CaptureDevices::default();
        for device in of_devices {
            devices.add(device)?;
        }
        Ok(Self { network, devices, paths: wish.devices.clone(), direction: wish.direction })
    }

    /// Memory that the kernel fills.
    pub fn bytes(&self) -> usize {
        self.devices.bytes() + self.network.as_ref().map_or(0, Network::bytes)
    }

    /// What it receives by: `ring`, `sockets`, `devices`, or two of them.
    pub fn method(&self) -> String {
        let network = self.network.as_ref().map(|network| match network {
            Network::Ring { .. } => "ring",
            Network::Sockets { .. } => "sockets",
        });
        let devices = (!self.paths.is_empty()).then_some("devices");
        network.into_iter().chain(devices).collect::<Vec<_>>().join("+")
    }

    /// Follows what became of an interface.
    pub fn follow(&mut self, news: &News, buses: &mut Buses<'_>, live: &Live) {
        match news {
            News::Found(interface) if interface.carrier.access == Access::File => {
                if let Err(error) = self.devices.add(interface) {
                    live.say(format!("{error}; it is not recorded"));
                }
            }
            _ => self.network.iter_mut().for_each(|network| network.follow(news, buses, live)),
        }
    }

    /// Follows what became of the devices, of which nobody tells.
    pub fn follow_devices(&mut self, buses: &mut Buses<'_>, live: &Live) {
        let gone: Vec<u32> = self.devices.gone().collect();
        for index in gone {
            buses.gone(index, self.devices.counters(index));
            buses.keep_own_losses(index, self.devices.drops(index).unwrap_or_default());
            self.devices.remove(index);
        }
        self.devices.wake();
        for path in self.paths.clone() {
            match Interface::find(&path) {
                Ok(interface) => {
                    let news = buses.is(interface);
                    news.iter().for_each(|news| self.follow(news, buses, live));
                }
                // Its file will tell, if it has one.
                Err(_) => {
                    let index = buses.index_of(&path).filter(|&index| !self.devices.is_open(index));
                    index.and_then(|index| buses.gone(index, None));
                }
            }
        }
    }

    /// Gives what there is to `keeper`, waiting up to `timeout_ns`.
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
            Some(Network::Ring { ring, .. }) => {
                ring.next(timeout_ns, |block| keep_block(keeper, block)).map(drop)
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

    /// Until there is something anywhere, and a little longer.
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

    /// The end: takes what came before it out of the kernel.
    pub fn drain(&mut self, keeper: &mut Keeper<'_>) -> io::Result<()> {
        let (begun, now_ns) = (Instant::now(), clock::realtime_ns());
        while self.devices.complete_until_ns() < now_ns && begun.elapsed() < DRAIN_MAX {
            self.next_of_devices(keeper)?;
        }
        let until_ns = now_ns + IN_FLIGHT_NS;
        match &mut self.network {
            None => Ok(()),
            Some(Network::Ring { ring, .. }) => ring.drain(|block| keep_block(keeper, block)),
            Some(Network::Sockets { sockets, .. }) => {
                let direction = self.direction;
                while sockets.complete_until_ns() < until_ns && begun.elapsed() < DRAIN_MAX {
                    sockets.next(IN_FLIGHT_NS / 4, |records| keep_noted(keeper, records, direction))?;
                }
                Ok(())
            }
        }
    }

    /// All frames with an older stamp, in ns, have been handed out.
    pub fn complete_until_ns(&self) -> u64 {
        let of_network = self.network.as_ref().map_or(u64::MAX, Network::complete_until_ns);
        self.devices.complete_until_ns().min(of_network).saturating_sub(IN_FLIGHT_NS)
    }

    /// Frames that the ring has lost so far, of all buses.
    pub fn ring_drops(&mut self) -> io::Result<u64> {
        match &mut self.network {
            Some(Network::Ring { ring, .. }) => ring.drops(),
            _ => Ok(0),
        }
    }

    /// Tells each bus that has a queue of its own, a socket's or a device's file's, what was lost there so far. Answers
    /// the sum.
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
    /// A ring hears all interfaces unless there is only one to hear.
    fn open(wish: &Wish, found: &[&Interface], live: &Live) -> Result<Self> {
        if wish.direction || wish.hardware_stamps {
            return Self::sockets(wish, found);
        }
        let bound = wish.single.as_deref().and_then(|name| found.iter().find(|one| one.name == name));
        let (thing, index) = bound.map_or(("capture", 0), |one| (one.name.as_str(), one.index));
        match CaptureRing::open(thing, index, wish.fd, wish.bytes) {
            Ok(ring) => Ok(Self::Ring { ring, bound: bound.is_some() }),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                let source = Self::sockets(wish, found)?;
                let Self::Sockets { sockets, .. } = &source else { return Ok(source) };
                let frames = sockets.queue_frames().unwrap_or_default();
                live.say(format!(
                    "capture: no ring without CAP_NET_RAW: by sockets, whose queues hold {frames} frames each"
                ));
                Ok(source)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn sockets(wish: &Wish, found: &[&Interface]) -> Result<Self> {
        let share = wish.bytes / found.len().max(1);
        let mut sockets = CaptureSockets::new(share.try_into().unwrap_or(u32::MAX), wish.hardware_stamps);
        for interface in found {
            sockets.add(interface)?;
        }
        Ok(Self::Sockets { sockets, bytes: share * found.len() })
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Ring { ring, .. } => ring.bytes(),
            Self::Sockets { bytes, .. } => *bytes,
        }
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Self::Ring { ring, .. } => ring.descriptors().collect(),
            Self::Sockets { sockets, .. } => sockets.descriptors().collect(),
        }
    }

    fn follow(&mut self, news: &News, buses: &mut Buses<'_>, live: &Live) {
        match (self, news) {
            (Self::Ring { ring, bound: true }, News::Found(interface)) => {
                if let Err(error) = ring.bind(interface.index) {
                    live.say(format!("{}: cannot be received: {error}", interface.name));
                }
            }
            (Self::Ring { .. }, _) => {}
            (Self::Sockets { sockets, .. }, News::Found(interface)) => {
                if let Err(error) = sockets.add(interface) {
                    live.say(format!("{error}; it is not recorded"));
                }
            }
            (Self::Sockets { sockets, .. }, News::Gone(index)) => {
                buses.keep_own_losses(*index, sockets.drops(*index).unwrap_or_default());
                sockets.remove(*index);
            }
        }
    }

    fn complete_until_ns(&self) -> u64 {
        match self {
            Self::Ring { ring, .. } => ring.complete_until_ns(),
            Self::Sockets { sockets, .. } => sockets.complete_until_ns(),
        }
    }
}

fn keep_block(keeper: &mut Keeper<'_>, block: Block<'_>) {
    keeper.keep_block(block.is_fd(), block.len(), block.records());
}

/// Keeps frames with what is told of them besides; who sent them only where that is asked for.
fn keep_noted(keeper: &mut Keeper<'_>, records: &[Captured<'_>], direction: bool) {
    let told = records.iter().map(|record| {
        let origin = if direction { record.origin } else { Origin::Unknown };
        Captured { origin, ..*record }
    });
    keeper.keep(Chunk::noted(records.len()), told);
}
