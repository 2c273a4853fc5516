//! Receives the frames of many interfaces: from recording rings or, without the right to open rings, from a raw socket per
//! interface; and from canchar devices, whose frames rings do not contain.

use canter_io::{
    Batch, Error, Filters, Frame, Interface,
    batch::BATCH_FRAMES,
    capture_devices::CaptureDevices,
    capture_ring::CaptureRing,
    captured::Captured,
    carrier::Access,
    frame::EFF_MASK,
    method::{Receive, ReceiveMethod, ReceiveOptions},
    poll,
};
use std::{collections::BTreeMap, io, os::fd::BorrowedFd};

/// Memory of the rings: 37 000 classic frames, and half as many FD frames.
const RING_BYTES: usize = 8 << 20;
/// Capacity of a socket's queue.
const QUEUE_FRAMES: u32 = 4096;
/// Maximum number of sockets; further interfaces are not received.
const SOCKETS_MAX: usize = 48;
/// Maximum number of descriptors per poll(2).
const POLLED_MAX: usize = 64;

/// A received frame.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// The stamp in ns of CLOCK_REALTIME.
    pub stamp_ns: u64,
    /// The interface's index.
    pub interface: u32,
    pub frame: Frame,
}

impl Received {
    fn new(record: &Captured<'_>) -> Self {
        Self { stamp_ns: record.stamp_ns, interface: record.interface, frame: record.frame() }
    }
}

/// How network interfaces are received.
enum Network {
    /// All interfaces.
    Ring(CaptureRing),
    /// A socket per interface, by the interface's index.
    Sockets(BTreeMap<u32, Box<dyn Receive>>, Batch),
    /// No interface.
    Nothing,
}

pub struct Source {
    network: Network,
    devices: CaptureDevices,
    /// Frames lost in queues that were closed.
    lost: u64,
}

impl Source {
    /// Opens rings; without CAP_NET_RAW, [`follow`](Self::follow) opens sockets instead. `follow` also opens devices.
    /// Without `network`, only devices are received.
    pub fn open(network: bool) -> canter_io::Result<Self> {
        let network = if network { Network::open()? } else { Network::Nothing };
        Ok(Self { network, devices: CaptureDevices::default(), lost: 0 })
    }

    /// Opens devices and sockets of interfaces that have come up, and closes those of interfaces that have disappeared.
    pub fn follow(&mut self, interfaces: &[Interface]) -> canter_io::Result<()> {
        self.close_devices(interfaces);
        let devices = interfaces.iter().filter(|one| one.carrier.access == Access::File && one.up);
        for device in devices {
            if !self.devices.is_open(device.index) {
                self.devices.add(device).or_else(ignore_gone)?;
            }
        }
        self.network.follow(interfaces)
    }

    fn close_devices(&mut self, interfaces: &[Interface]) {
        let mut gone: Vec<u32> = self.devices.gone().collect();
        let exists = |index: &u32| interfaces.iter().any(|one| one.index == *index);
        gone.extend(self.devices.indexes().filter(|index| !exists(index)));
        for index in gone {
            self.lost += self.devices.drops(index).unwrap_or(0);
            self.devices.remove(index);
        }
        self.devices.wake();
    }

    /// Passes all received frames to `take`; waits up to `timeout_ns` for the first one.
    pub fn next(&mut self, timeout_ns: u64, mut take: impl FnMut(Received)) -> canter_io::Result<()> {
        let failed = |error| Error::new("interfaces", "receive", error);
        self.wait(timeout_ns).map_err(failed)?;
        let devices = self.devices.next(|records| records.iter().map(Received::new).for_each(&mut take));
        devices.and_then(|()| self.network.next(take)).map_err(failed)
    }

    fn wait(&self, timeout_ns: u64) -> io::Result<()> {
        let descriptors = self.devices.descriptors().chain(self.network.descriptors());
        let polled: Vec<_> = descriptors.take(POLLED_MAX).collect();
        poll::readable(&polled, Some(timeout_ns)).map(drop)
    }

    /// Frames of all interfaces that were lost because a queue was full.
    pub fn lost(&mut self) -> u64 {
        let devices = self.devices.indexes().map(|index| self.devices.drops(index).unwrap_or(0));
        self.lost + devices.sum::<u64>() + self.network.lost()
    }
}

impl Network {
    fn open() -> canter_io::Result<Self> {
        match CaptureRing::open("interfaces", 0, true, RING_BYTES) {
            Ok(ring) => Ok(Self::Ring(ring)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Ok(Self::Sockets(BTreeMap::new(), Batch::new(BATCH_FRAMES)))
            }
            Err(error) => Err(error),
        }
    }

    fn follow(&mut self, interfaces: &[Interface]) -> canter_io::Result<()> {
        let Self::Sockets(sockets, _) = self else { return Ok(()) };
        sockets.retain(|index, _| interfaces.iter().any(|one| one.index == *index && one.up));
        for interface in interfaces.iter().filter(|one| one.up && one.has_sockets()) {
            if sockets.len() < SOCKETS_MAX && !sockets.contains_key(&interface.index) {
                sockets.insert(interface.index, listen(interface)?);
            }
        }
        Ok(())
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Self::Ring(ring) => ring.descriptors().collect(),
            Self::Sockets(sockets, _) => sockets.values().filter_map(|socket| socket.descriptor()).collect(),
            Self::Nothing => Vec::new(),
        }
    }

    fn next(&mut self, mut take: impl FnMut(Received)) -> io::Result<()> {
        match self {
            Self::Ring(ring) => {
                let result =
                    ring.next(0, |block| block.records().for_each(|record| take(Received::new(&record))));
                result.map(drop).or_else(|error| is_down(&error).then_some(()).ok_or(error))
            }
            Self::Sockets(sockets, batch) => {
                sockets.retain(|&interface, socket| {
                    batch.clear();
                    let result = socket.receive(batch);
                    for (frame, meta) in batch.iter() {
                        take(Received { stamp_ns: meta.stamp_ns, interface, frame: *frame });
                    }
                    result.is_ok() // a socket of an interface that is down is opened again when the interface is up
                });
                Ok(())
            }
            Self::Nothing => Ok(()),
        }
    }

    fn lost(&mut self) -> u64 {
        match self {
            Self::Ring(ring) => ring.drops().unwrap_or(0),
            Self::Sockets(sockets, _) => sockets.values_mut().map(|socket| socket.drops().unwrap_or(0)).sum(),
            Self::Nothing => 0,
        }
    }
}

/// Whether an interface went down or was deleted, which does not end the program.
fn is_down(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NetworkDown | io::ErrorKind::Interrupted)
}

/// Ignores a device that disappears while it is opened.
fn ignore_gone(error: Error) -> canter_io::Result<()> {
    if error.is_gone() { Ok(()) } else { Err(error) }
}

fn listen(interface: &Interface) -> canter_io::Result<Box<dyn Receive>> {
    let method: ReceiveMethod = "recvmmsg/spin".parse()?;
    let filters = Filters { error_mask: EFF_MASK, ..Filters::default() };
    let options = ReceiveOptions {
        filters,
        stamps: true,
        queue_frames: Some(QUEUE_FRAMES),
        ..ReceiveOptions::default()
    };
    method.open(interface, &options)
}
