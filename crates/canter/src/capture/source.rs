//! Where frames come from: the kernel's ring, or sockets where it is not permitted or does not tell enough.

use super::{
    buses::{Buses, News},
    chunk::Chunk,
    live::Live,
    receiver::Keeper,
};
use crate::failure::{self, Failure};
use canter_io::{
    Interface,
    batch::Origin,
    capture_ring::{Block, CaptureRing, Record},
    capture_sockets::CaptureSockets,
    sys::clock,
};
use std::{
    io::{self, ErrorKind},
    time::{Duration, Instant},
};

/// How long a frame may be on its way between its stamp and its block or its socket.
const IN_FLIGHT_NS: u64 = 20_000_000;

/// Sockets that never run empty are left after this: the rest is of after the end.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// What a recording asks of its source.
pub struct Wish {
    /// The name of the only interface that will ever be wanted.
    pub single: Option<String>,
    /// FD frames may come.
    pub fd: bool,
    pub bytes: usize,
    pub direction: bool,
    pub hardware_stamps: bool,
}

pub enum Source {
    Ring { ring: CaptureRing, bound: bool },
    Sockets { sockets: CaptureSockets, bytes: usize, direction: bool },
}

impl Source {
    /// Starts to receive from `found`. A ring hears all interfaces unless there is only one to hear.
    pub fn open(wish: &Wish, found: &[Interface], live: &Live) -> failure::Result<Self> {
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

    fn sockets(wish: &Wish, found: &[Interface]) -> failure::Result<Self> {
        let share = wish.bytes / found.len().max(1);
        let mut sockets = CaptureSockets::new(share.try_into().unwrap_or(u32::MAX), wish.hardware_stamps);
        for interface in found {
            sockets.add(interface).map_err(Failure::from)?;
        }
        Ok(Self::Sockets { sockets, bytes: share * found.len(), direction: wish.direction })
    }

    /// Memory that the kernel fills.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Ring { ring, .. } => ring.bytes(),
            Self::Sockets { bytes, .. } => *bytes,
        }
    }

    /// Follows what became of an interface.
    pub fn follow(&mut self, news: &News, buses: &mut Buses<'_>, live: &Live) {
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
                buses.keep_socket_losses(*index, sockets.drops(*index).unwrap_or_default());
                sockets.remove(*index);
            }
        }
    }

    /// Gives what there is to `keeper`, waiting up to `timeout_ns`.
    pub fn next(&mut self, timeout_ns: u64, keeper: &mut Keeper<'_>) -> io::Result<()> {
        match self {
            Self::Ring { ring, .. } => ring.next(timeout_ns, |block| keep_block(keeper, block)).map(drop),
            Self::Sockets { sockets, direction, .. } => {
                sockets.next(timeout_ns, |records| keep_records(keeper, records, *direction))
            }
        }
    }

    /// The end: takes what came before it out of the kernel.
    pub fn drain(&mut self, keeper: &mut Keeper<'_>) -> io::Result<()> {
        match self {
            Self::Ring { ring, .. } => ring.drain(|block| keep_block(keeper, block)),
            Self::Sockets { .. } => {
                let until_ns = clock::realtime_ns() + IN_FLIGHT_NS;
                let begun = Instant::now();
                while self.complete_until_ns() < until_ns && begun.elapsed() < DRAIN_MAX {
                    self.next(IN_FLIGHT_NS / 4, keeper)?;
                }
                Ok(())
            }
        }
    }

    /// All frames with an older stamp, in ns, have been handed out.
    pub fn complete_until_ns(&self) -> u64 {
        let until_ns = match self {
            Self::Ring { ring, .. } => ring.complete_until_ns(),
            Self::Sockets { sockets, .. } => sockets.complete_until_ns(),
        };
        until_ns.saturating_sub(IN_FLIGHT_NS)
    }

    /// Frames lost here so far, of all buses; of sockets each bus is told its own.
    pub fn drops(&mut self, buses: &mut Buses<'_>) -> io::Result<u64> {
        match self {
            Self::Ring { ring, .. } => ring.drops(),
            Self::Sockets { sockets, .. } => buses.count_socket_losses(|index| sockets.drops(index)),
        }
    }

    pub fn is_sockets(&self) -> bool {
        matches!(self, Self::Sockets { .. })
    }
}

fn keep_block(keeper: &mut Keeper<'_>, block: Block<'_>) {
    keeper.keep_block(block.is_fd(), block.len(), block.records());
}

fn keep_records(keeper: &mut Keeper<'_>, records: &[Record<'_>], direction: bool) {
    let told = records.iter().map(|record| {
        let origin = if direction { record.origin } else { Origin::Unknown };
        Record { origin, ..*record }
    });
    keeper.keep(Chunk::noted(records.len()), told);
}
