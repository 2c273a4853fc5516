//! Where `canter top` hears frames: the recording rings, or a raw socket an interface for those who may not open rings.

use canter_io::{
    Batch, Error, Filters, Frame, Interface,
    batch::BATCH_FRAMES,
    capture_ring::CaptureRing,
    frame::EFF_MASK,
    interface::Kind,
    method::{Receive, ReceiveMethod, ReceiveOptions},
    sys::poll,
};
use std::{collections::BTreeMap, io, os::fd::BorrowedFd};

/// Memory of the rings: 37 000 classic frames, and half as many FD frames.
const RING_BYTES: usize = 8 << 20;
/// What a socket's queue holds.
const QUEUE_FRAMES: u32 = 4096;
/// More interfaces than this have no socket; one wait has no more descriptors.
const SOCKETS_MAX: usize = 64;

/// What was heard.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// ns of the real-time clock.
    pub stamp_ns: u64,
    /// The interface's index.
    pub interface: u32,
    pub frame: Frame,
}

pub enum Source {
    /// All interfaces at once.
    Ring(CaptureRing),
    /// By the interfaces' index.
    Sockets(BTreeMap<u32, Box<dyn Receive>>, Batch),
}

impl Source {
    /// Rings, or without CAP_NET_RAW sockets, which [`follow`](Self::follow) opens; for character devices too, which no
    /// ring hears.
    pub fn open(devices: bool) -> canter_io::Result<Self> {
        if devices {
            return Ok(Self::Sockets(BTreeMap::new(), Batch::new(BATCH_FRAMES)));
        }
        match CaptureRing::open("top", 0, true, RING_BYTES) {
            Ok(ring) => Ok(Self::Ring(ring)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Ok(Self::Sockets(BTreeMap::new(), Batch::new(BATCH_FRAMES)))
            }
            Err(error) => Err(error),
        }
    }

    /// Opens sockets of interfaces that have come up, and forgets those that have gone.
    pub fn follow(&mut self, interfaces: &[Interface]) -> canter_io::Result<()> {
        let Self::Sockets(sockets, _) = self else { return Ok(()) };
        sockets.retain(|index, _| interfaces.iter().any(|one| one.index == *index && one.up));
        for interface in interfaces.iter().filter(|one| one.up) {
            if sockets.len() < SOCKETS_MAX && !sockets.contains_key(&interface.index) {
                sockets.insert(interface.index, listen(interface)?);
            }
        }
        Ok(())
    }

    /// Hands on what has come, waiting up to `timeout_ns` for the first.
    pub fn next(&mut self, timeout_ns: u64, mut take: impl FnMut(Heard)) -> canter_io::Result<()> {
        let failed = |error| Error::new("top", "receive", error);
        match self {
            Self::Ring(ring) => {
                let answer = ring.next(timeout_ns, |block| {
                    for record in block.records() {
                        let (stamp_ns, interface) = (record.stamp_ns, record.interface);
                        take(Heard { stamp_ns, interface, frame: record.frame() });
                    }
                });
                answer.map(drop).or_else(|error| gone(&error).then_some(()).ok_or(error)).map_err(failed)
            }
            Self::Sockets(sockets, batch) => {
                let descriptors: Vec<BorrowedFd<'_>> =
                    sockets.values().filter_map(|socket| socket.descriptor()).collect();
                poll::readable(&descriptors, Some(timeout_ns)).map_err(failed)?;
                sockets.retain(|&interface, socket| {
                    batch.clear();
                    let answer = socket.receive(batch);
                    for (frame, meta) in batch.iter() {
                        take(Heard { stamp_ns: meta.stamp_ns, interface, frame: *frame });
                    }
                    answer.is_ok() // down or gone: opened again when it is up
                });
                Ok(())
            }
        }
    }

    /// Frames that found no room here, of all interfaces.
    pub fn lost(&mut self) -> u64 {
        match self {
            Self::Ring(ring) => ring.drops().unwrap_or(0),
            Self::Sockets(sockets, _) => sockets.values_mut().map(|socket| socket.drops().unwrap_or(0)).sum(),
        }
    }
}

/// An interface that goes down or away is no reason to end.
fn gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NetworkDown | io::ErrorKind::Interrupted)
}

fn listen(interface: &Interface) -> canter_io::Result<Box<dyn Receive>> {
    let name = if interface.kind == Kind::Canchar { "canchar/spin" } else { "recvmmsg/spin" };
    let method: ReceiveMethod = name.parse()?;
    let filters = Filters { error_mask: EFF_MASK, ..Filters::default() };
    let options = ReceiveOptions {
        filters,
        stamps: true,
        queue_frames: Some(QUEUE_FRAMES),
        ..ReceiveOptions::default()
    };
    method.open(interface, &options)
}
