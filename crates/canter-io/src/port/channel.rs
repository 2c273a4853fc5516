//! A channel in use by this process: one controller, and the queues of its receivers.

use super::card::{Card, ChannelPorts, Name};
use crate::{
    Batch, Error, Filters, Frame, Meta, Result,
    batch::Clock,
    frame::{EFF_FLAG, EFF_MASK, RTR_FLAG, SFF_MASK},
    netlink::counters::Counters,
    sys::{clock, marker, ports::RANGES_MAX},
};
use sja1000::{Bus, Controller, Identifier, Registers};
use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

impl Registers for ChannelPorts {
    #[inline]
    fn read(&mut self, register: u8) -> u8 {
        Self::read(self, register)
    }

    #[inline]
    fn write(&mut self, register: u8, value: u8) {
        Self::write(self, register, value);
    }

    #[inline]
    fn sends(&mut self) {
        marker::mark::<{ marker::SEND }>();
    }
}

/// The channels that this process uses or has used, by their places, which keep their numbers.
static CHANNELS: Mutex<BTreeMap<(String, u8), Place>> = Mutex::new(BTreeMap::new());

struct Place {
    number: u32,
    /// Brought down by [`set_up`]; opening it does not bring it up again.
    down: bool,
    channel: Weak<Mutex<Channel>>,
}

/// A share of a channel. Dropping the last one stops the controller and returns the card.
#[derive(Clone)]
pub(crate) struct Shared {
    channel: Arc<Mutex<Channel>>,
    ports: ChannelPorts,
}

/// The part of a channel that moves frames.
pub(crate) struct Channel {
    controller: Controller<ChannelPorts>,
    ports: ChannelPorts,
    bus: Bus,
    up: bool,
    gone: bool,
    queues: Vec<Queue>,
    /// The name of the next queue.
    next: u32,
    counters: Counters,
    _card: Card,
}

/// The queue of one receiver.
struct Queue {
    name: u32,
    filters: Option<Filters>,
    stamps: bool,
    interface: u32,
    frames: VecDeque<(sja1000::Frame, u64)>,
    frames_max: usize,
    lost: u64,
}

/// The options of a queue.
pub(crate) struct Wanted {
    pub filters: Filters,
    pub stamps: bool,
    pub interface: u32,
    pub frames_max: usize,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The channel; starts it unless this process uses it already.
pub(crate) fn open(name: &Name) -> Result<Shared> {
    let mut channels = locked(&CHANNELS);
    let number = channels.len() as u32;
    if number >= RANGES_MAX && !channels.contains_key(&name.place()) {
        let why = format!("a process can use at most {RANGES_MAX} channels");
        return Err(Error::unsupported(name.to_string(), "open", why));
    }
    let place = channels.entry(name.place()).or_insert(Place { number, down: false, channel: Weak::new() });
    if let Some(channel) = place.channel.upgrade() {
        let ports = locked(&channel).ports;
        return Ok(Shared { channel, ports });
    }
    let channel = Channel::start(name, place)?;
    let shared = Shared { ports: channel.ports, channel: Arc::new(Mutex::new(channel)) };
    place.channel = Arc::downgrade(&shared.channel);
    Ok(shared)
}

/// Whether a channel that this process uses or has used was brought down.
pub(crate) fn is_up(name: &Name) -> bool {
    !locked(&CHANNELS).get(&name.place()).is_some_and(|place| place.down)
}

/// Brings a channel up or down for all its users in this process.
pub(crate) fn set_up(name: &Name, up: bool) -> Result<()> {
    let mut channels = locked(&CHANNELS);
    let Some(place) = channels.get_mut(&name.place()) else { return Ok(()) }; // opening it brings it up
    place.down = !up;
    let Some(channel) = place.channel.upgrade() else { return Ok(()) };
    drop(channels);
    let failed = |error| Error::new(name.to_string(), if up { "up" } else { "down" }, error);
    let ports = locked(&channel).ports;
    ports.permit().map_err(failed)?;
    locked(&channel).run(up).map_err(|error| failed(io::Error::other(error)))
}

/// A channel's counters since this process opened it.
pub(crate) fn counters(name: &Name) -> Counters {
    let channel = locked(&CHANNELS).get(&name.place()).and_then(|place| place.channel.upgrade());
    channel.map_or_else(Counters::default, |channel| locked(&channel).counters)
}

impl Shared {
    /// The channel; gives this thread access to its ports.
    #[inline]
    pub fn lock(&self) -> io::Result<MutexGuard<'_, Channel>> {
        self.ports.permit()?;
        Ok(locked(&self.channel))
    }
}

impl Channel {
    fn start(name: &Name, place: &Place) -> Result<Self> {
        let failed = |error| Error::new(name.to_string(), "start", io::Error::other(error));
        let board = name.look()?;
        let bus = board.bus(name.bitrate).map_err(failed)?;
        let (card, ports) = Card::take(name, board, place.number)?;
        let mut channel = Self {
            controller: Controller::new(ports),
            ports,
            bus,
            up: false,
            gone: false,
            queues: Vec::new(),
            next: 0,
            counters: Counters::default(),
            _card: card,
        };
        channel.run(!place.down).map_err(failed)?;
        Ok(channel)
    }

    fn run(&mut self, up: bool) -> std::result::Result<(), sja1000::Error> {
        if up == self.up {
            return Ok(());
        }
        if up {
            self.controller.start(&self.bus)?;
        } else {
            self.drain(); // frames received before this belong to the existing receivers
            self.controller.stop()?;
        }
        self.up = up;
        Ok(())
    }

    /// Adds a queue; returns its name.
    pub fn add(&mut self, wanted: Wanted) -> u32 {
        let Wanted { filters, stamps, interface, frames_max } = wanted;
        let filters = (filters != Filters::default()).then_some(filters);
        let name = self.next;
        self.next += 1;
        let frames = VecDeque::with_capacity(frames_max);
        self.queues.push(Queue { name, filters, stamps, interface, frames, frames_max, lost: 0 });
        name
    }

    pub fn remove(&mut self, name: u32) {
        self.queues.retain(|queue| queue.name != name);
    }

    pub fn lost(&self, name: u32) -> u64 {
        self.queues.iter().find(|queue| queue.name == name).map_or(0, |queue| queue.lost)
    }

    /// Moves the frames in the queue of receiver `name` to the batch. If there are none, polls the controller up to
    /// `looks` times for one frame: more than one would only delay the first, because a call costs almost nothing.
    /// Returns the number of frames.
    #[inline]
    pub fn receive(&mut self, name: u32, batch: &mut Batch, looks: u32) -> usize {
        let Some(caller) = self.queues.iter().position(|queue| queue.name == name) else { return 0 };
        let before = batch.len();
        if !self.queues[caller].frames.is_empty() {
            self.queues[caller].hand_over(batch);
        }
        let looks = if batch.len() > before || !self.up { 0 } else { looks };
        for _ in 0..looks {
            match self.take() {
                Some(raw) => {
                    self.deliver(&raw, Some((caller, batch)));
                    if batch.len() > before {
                        break;
                    }
                }
                None => crate::sys::thread::relax(),
            }
        }
        batch.len() - before
    }

    /// The error of a channel that receives no more frames.
    #[inline]
    pub fn trouble(&self) -> io::Result<()> {
        match (self.gone, self.up) {
            (true, _) => Err(io::Error::from_raw_os_error(libc::ENODEV)),
            (_, false) => Err(io::Error::from_raw_os_error(libc::ENETDOWN)),
            _ => Ok(()),
        }
    }

    /// Empties the controller's FIFO into the queues.
    fn drain(&mut self) {
        while let Some(raw) = self.take() {
            self.deliver(&raw, None);
        }
    }

    /// The next frame of the controller.
    #[inline]
    fn take(&mut self) -> Option<sja1000::Frame> {
        let status = self.controller.status();
        if status.trouble() {
            self.see_to(status);
        }
        if !status.received() || self.gone {
            return None;
        }
        self.counters.rx_frames += 1;
        Some(self.controller.take())
    }

    #[cold]
    fn see_to(&mut self, status: sja1000::Status) {
        if !self.controller.answers() {
            self.gone = true;
            return;
        }
        if status.overrun() {
            self.controller.clear_overrun();
            self.counters.rx_over_errors += 1;
        }
        if status.bus_off() {
            self.counters.bus_off += 1;
            self.gone = self.controller.recover().is_err();
        }
    }

    /// Gives a frame to all receivers whose filters match; directly to the batch of the calling receiver, if its queue
    /// is empty.
    #[inline]
    fn deliver(&mut self, raw: &sja1000::Frame, direct: Option<(usize, &mut Batch)>) {
        match (&mut self.queues[..], direct) {
            // A single receiver without filters: the usual case, in which every instruction counts.
            ([queue], Some((_, batch))) if queue.filters.is_none() => {
                queue.append(batch, raw, queue.stamp_ns());
            }
            (_, direct) => self.deliver_to_all(raw, direct),
        }
    }

    fn deliver_to_all(&mut self, raw: &sja1000::Frame, mut direct: Option<(usize, &mut Batch)>) {
        let frame = to_frame(raw);
        for (at, queue) in self.queues.iter_mut().enumerate() {
            if queue.filters.as_ref().is_some_and(|filters| !filters.matches(&frame)) {
                continue;
            }
            let stamp_ns = queue.stamp_ns();
            match &mut direct {
                Some((caller, batch)) if *caller == at => queue.append(batch, raw, stamp_ns),
                _ if queue.frames.len() < queue.frames_max => queue.frames.push_back((*raw, stamp_ns)),
                _ => queue.lost += 1,
            }
        }
    }

    /// Gives a frame to the controller; false when the previous frame still waits for the bus.
    #[inline]
    pub fn transmit(&mut self, frame: &Frame, echo: bool) -> io::Result<bool> {
        self.trouble()?;
        let raw = from_frame(frame)?;
        let status = self.controller.status();
        if status.trouble() {
            self.see_to(status);
            self.trouble()?;
        }
        if !status.buffer_free() {
            return Ok(false);
        }
        self.controller.put(&raw);
        self.counters.tx_frames += 1;
        if echo {
            self.deliver(&raw, None);
        }
        Ok(true)
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        if self.ports.permit().is_ok() {
            let _ = self.controller.stop(); // the card may have disappeared
        }
    }
}

impl Queue {
    fn hand_over(&mut self, batch: &mut Batch) {
        while batch.room() > 0 {
            let Some((raw, stamp_ns)) = self.frames.pop_front() else { return };
            self.append(batch, &raw, stamp_ns);
        }
    }

    #[inline]
    fn stamp_ns(&self) -> u64 {
        if self.stamps { clock::realtime_ns() } else { 0 }
    }

    #[inline]
    fn append(&self, batch: &mut Batch, raw: &sja1000::Frame, stamp_ns: u64) {
        let clock = if self.stamps { Clock::Software } else { Clock::None };
        let Some((to, meta)) = batch.place() else { return };
        (to.can_id, to.len, to.flags, to.len8_dlc) = (can_id(raw), raw.len, 0, 0);
        to.data[..8].copy_from_slice(&raw.data);
        *meta = Meta { stamp_ns, interface: self.interface, clock, ..Meta::default() };
        batch.commit(1);
    }
}

#[inline]
fn can_id(raw: &sja1000::Frame) -> u32 {
    let identifier = match raw.identifier {
        Identifier::Standard(id) => id.into(),
        Identifier::Extended(id) => id | EFF_FLAG,
    };
    identifier | if raw.remote { RTR_FLAG } else { 0 }
}

fn to_frame(raw: &sja1000::Frame) -> Frame {
    let mut frame = Frame::default();
    (frame.can_id, frame.len) = (can_id(raw), raw.len);
    frame.data[..8].copy_from_slice(&raw.data);
    frame
}

/// `EINVAL` for a frame that a classic controller cannot send.
#[inline]
fn from_frame(frame: &Frame) -> io::Result<sja1000::Frame> {
    if frame.is_fd() || frame.is_error() || frame.len > 8 {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let identifier = match frame.can_id & EFF_FLAG {
        0 => Identifier::Standard((frame.can_id & SFF_MASK) as u16),
        _ => Identifier::Extended(frame.can_id & EFF_MASK),
    };
    let mut data = [0; 8];
    data.copy_from_slice(&frame.data[..8]);
    Ok(sja1000::Frame { identifier, remote: frame.can_id & RTR_FLAG != 0, len: frame.len, data })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_survives_the_way_through_the_controllers_layout() {
        for frame in [
            Frame::classic(crate::Identifier::Sff(0x7ff), &[1, 2, 3]).unwrap(),
            Frame::classic(crate::Identifier::Eff(0x1fff_ffff), &[9; 8]).unwrap(),
            Frame::rtr(crate::Identifier::Sff(0x123), 4).unwrap(),
        ] {
            assert_eq!(to_frame(&from_frame(&frame).unwrap()), frame);
        }
    }

    #[test]
    fn what_a_classic_controller_cannot_send_is_refused() {
        let fd = Frame::fd(crate::Identifier::Sff(1), &[1], 0).unwrap();
        assert_eq!(from_frame(&fd).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
