//! `sim`: an in-memory bus with a clock and finite queues, so that gateways and meters can be tested without a
//! kernel, deterministically, and against loss, duplicates and reordering.
//!
//! An interface named `sim:WORLD/BUS` is a node of that bus. The buses of a world share one clock, which moves only
//! in [`World::advance`]. A bus carries one frame at a time, for exactly its bits; the frame reaches every receiver
//! when it ends. The next frame starts three bits later: the waiting frame that wins arbitration
//! ([`Frame::arbitration`]), and of equal ones that of the sender that was opened first. A sender has one transmit
//! buffer: only the first frame of its queue takes part. The kernel's wire (kernel/canwire) has the same rules, and a
//! test compares the two.

use super::{Receive, ReceiveOptions, Transmit, TransmitOptions, Wait};
use crate::{
    Batch, Error, Filters, Frame, Interface, Meta, Result,
    batch::{Clock, Origin},
    frame::{BitRate, FrameBits, INTERFRAME_BITS},
    interface::Kind,
};
use std::{
    collections::{BTreeMap, VecDeque},
    io,
    os::fd::BorrowedFd,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
};

/// The length of a sender's queue in frames, like `txqueuelen`.
const SEND_QUEUE_FRAMES: usize = 10;
/// The length of a receiver's queue in frames: as many as fit into a socket by default.
const RECEIVE_QUEUE_FRAMES: usize = 222;

static WORLDS: LazyLock<Mutex<BTreeMap<String, World>>> = LazyLock::new(Mutex::default);

/// Buses that share a clock.
#[derive(Clone, Default)]
pub struct World(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    now_ns: u64,
    buses: BTreeMap<String, Bus>,
}

/// The fault of a bus on its `n`-th frame, counted from 1: how many times the bus delivers the frame (1: no fault), and
/// after how many later frames (0: in order).
pub type Fault = Box<dyn Fn(u64) -> (u32, usize) + Send>;

struct Bus {
    rate: BitRate,
    fault: Fault,
    /// When the next frame may start, in ps: at some rates a bit is not a whole number of ns.
    free_ps: u64,
    carried: u64,
    senders: Vec<VecDeque<(u64, Frame)>>,
    receivers: Vec<Queue>,
    /// Frames that a fault holds back, with the number of frames that must pass first.
    held: Vec<(usize, Frame)>,
}

impl Default for Bus {
    fn default() -> Self {
        let rate = BitRate { nominal: 1_000_000, data: 1_000_000 };
        let (senders, receivers, held) = (Vec::new(), Vec::new(), Vec::new());
        Self { rate, fault: Box::new(|_| (1, 0)), free_ps: 0, carried: 0, senders, receivers, held }
    }
}

/// A frame on a bus, or the next one.
struct Next {
    sender: usize,
    frame: Frame,
    end_ps: u64,
}

impl Next {
    /// Stamps are whole ns: the first one at which the frame has ended.
    fn end_ns(&self) -> u64 {
        self.end_ps.div_ceil(PS)
    }
}

/// ps in a ns.
const PS: u64 = 1000;

struct Queue {
    filters: Filters,
    frames: VecDeque<(u64, Frame)>,
    capacity: usize,
    drops: u64,
}

/// The world of this name; created on first use.
pub fn world(name: &str) -> World {
    lock(&WORLDS).entry(name.to_owned()).or_default().clone()
}

impl World {
    /// The time of the world's clock, in ns.
    pub fn now_ns(&self) -> u64 {
        lock(&self.0).now_ns
    }

    /// Sets the bit rates of a bus; 1 Mbit/s unless set.
    pub fn set_bit_rate(&self, bus: &str, rate: BitRate) {
        lock(&self.0).bus(bus).rate = rate;
    }

    /// Makes a bus lose, repeat or reorder frames by a [`Fault`].
    pub fn set_fault(&self, bus: &str, fault: impl Fn(u64) -> (u32, usize) + Send + 'static) {
        lock(&self.0).bus(bus).fault = Box::new(fault);
    }

    /// When the next frame on a bus ends, if no other frame is sent before; `None`: no frame waits.
    pub fn next_ns(&self) -> Option<u64> {
        let state = lock(&self.0);
        state.buses.values().filter_map(|bus| bus.next().map(|next| next.end_ns())).min()
    }

    /// Lets time run until `until_ns`.
    pub fn advance(&self, until_ns: u64) {
        let mut state = lock(&self.0);
        for bus in state.buses.values_mut() {
            while bus.carry(until_ns) {}
        }
        state.now_ns = state.now_ns.max(until_ns);
    }
}

impl State {
    fn bus(&mut self, name: &str) -> &mut Bus {
        self.buses.entry(name.to_owned()).or_default()
    }
}

impl Bus {
    /// The frame on the bus, or the next one: the first to wait, and of several the one that wins arbitration.
    fn next(&self) -> Option<Next> {
        let waiting = || {
            self.senders.iter().enumerate().filter_map(|(at, queue)| queue.front().map(|first| (at, first)))
        };
        let earliest_ns = waiting().map(|(_, (since_ns, _))| *since_ns).min()?;
        let start_ps = (earliest_ns * PS).max(self.free_ps);
        let contenders = waiting().filter(|(_, (since_ns, _))| *since_ns * PS <= start_ps);
        let (sender, &(_, frame)) = contenders.min_by_key(|(_, (_, frame))| frame.arbitration())?;
        Some(Next { sender, frame, end_ps: start_ps + frame.bits().duration_ps(self.rate) })
    }

    /// Carries the next frame if it ends by `until_ns`.
    fn carry(&mut self, until_ns: u64) -> bool {
        let Some(next) = self.next().filter(|next| next.end_ns() <= until_ns) else { return false };
        self.senders[next.sender].pop_front();
        let space = FrameBits { nominal: INTERFRAME_BITS, ..FrameBits::default() };
        self.free_ps = next.end_ps + space.duration_ps(self.rate);
        self.deliver(&next.frame, next.end_ns());
        true
    }

    fn deliver(&mut self, frame: &Frame, end_ns: u64) {
        self.carried += 1;
        let (times, later) = (self.fault)(self.carried);
        let mut ready = Vec::new();
        self.held.retain_mut(|(passes, held)| {
            *passes -= 1;
            if *passes == 0 {
                ready.push(*held);
            }
            *passes > 0
        });
        if later == 0 {
            ready.splice(0..0, (0..times).map(|_| *frame));
        } else {
            self.held.extend((0..times).map(|_| (later, *frame)));
        }
        for frame in ready {
            for receiver in &mut self.receivers {
                receiver.queue(&frame, end_ns);
            }
        }
    }
}

impl Queue {
    fn queue(&mut self, frame: &Frame, stamp_ns: u64) {
        if !self.filters.matches(frame) {
            return;
        }
        if self.frames.len() == self.capacity {
            self.drops += 1;
        } else {
            self.frames.push_back((stamp_ns, *frame));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Splits `sim:WORLD/BUS`.
fn place(interface: &Interface) -> Result<(World, String)> {
    let name = &interface.name;
    let place = name.strip_prefix("sim:").filter(|_| matches!(interface.kind, Kind::Sim));
    let Some((in_world, bus)) = place.and_then(|place| place.split_once('/')) else {
        let why = "this method works only on interfaces named sim:WORLD/BUS";
        return Err(
            Error::unsupported(name, "sim", why).hint("canter methods lists what this interface can do")
        );
    };
    Ok((world(in_world), bus.to_owned()))
}

pub(super) fn check_receiver(interface: &Interface, _wait: Wait) -> Result<()> {
    place(interface).map(drop)
}

pub(super) fn check_transmitter(interface: &Interface) -> Result<()> {
    place(interface).map(drop)
}

pub(super) fn receiver(interface: &Interface, options: &ReceiveOptions) -> Result<Box<dyn Receive>> {
    let (world, bus) = place(interface)?;
    let capacity = options.queue_frames.map_or(RECEIVE_QUEUE_FRAMES, |frames| frames as usize);
    let mut state = lock(&world.0);
    let receivers = &mut state.bus(&bus).receivers;
    receivers.push(Queue { filters: options.filters.clone(), frames: VecDeque::new(), capacity, drops: 0 });
    let at = receivers.len() - 1;
    drop(state);
    Ok(Box::new(Node { world, bus, at }))
}

pub(super) fn transmitter(interface: &Interface, _options: &TransmitOptions) -> Result<Box<dyn Transmit>> {
    let (world, bus) = place(interface)?;
    let mut state = lock(&world.0);
    let senders = &mut state.bus(&bus).senders;
    senders.push(VecDeque::new());
    let at = senders.len() - 1;
    drop(state);
    Ok(Box::new(Node { world, bus, at }))
}

/// A receiver or a sender on a bus.
struct Node {
    world: World,
    bus: String,
    at: usize,
}

impl Receive for Node {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
        let mut state = lock(&self.world.0);
        let queue = &mut state.bus(&self.bus).receivers[self.at].frames;
        let count = batch.room().min(queue.len());
        for (stamp_ns, frame) in queue.drain(..count) {
            let (clock, origin) = (Clock::Simulated, Origin::Unknown);
            batch.push(&frame, Meta { stamp_ns, clock, origin, ..Meta::default() });
        }
        Ok(count)
    }

    fn drops(&mut self) -> io::Result<u64> {
        Ok(lock(&self.world.0).bus(&self.bus).receivers[self.at].drops)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Transmit for Node {
    fn transmit(&mut self, frames: &[Frame]) -> io::Result<usize> {
        let mut state = lock(&self.world.0);
        let now_ns = state.now_ns;
        let queue = &mut state.bus(&self.bus).senders[self.at];
        let count = frames.len().min(SEND_QUEUE_FRAMES - queue.len());
        queue.extend(frames[..count].iter().map(|frame| (now_ns, *frame)));
        Ok(count)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

#[cfg(test)]
mod tests;
