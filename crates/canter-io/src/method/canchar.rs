//! `canchar`: read(2) and write(2) on the character device of a controller that the module canchar drives. Frames
//! bypass the network stack: the interrupt handler puts them directly into this file's queue, and one call moves many.

use super::{Echo, Receive, ReceiveOptions, Room, Transmit, TransmitOptions, Wait, read_write::short_count};
use crate::{
    Batch, Error, Frame, Interface, Meta, Result,
    batch::{Clock, Origin},
    frame::ERR_FLAG,
    interface::Kind,
    sys::{
        canchar::{
            ADAPTIVE, Device, ECHO, ECHO_OWN, FOREVER, FRAME_LOCAL, FRAME_OWN, POLL_CHIP, RawFrame, SLOTS_MAX,
        },
        poll,
    },
};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    path::Path,
};

/// The default number of slots of a receive queue: about as many frames as a socket holds.
const RECEIVE_SLOTS: u32 = 256;
/// The number of waiting frames that ends the wait of a coalescing receiver.
const COALESCED: u32 = 32;
/// The longest time, in ns, that a coalescing receiver waits for them.
const COALESCE_NS: u64 = 1_000_000;
/// The most frames that one system call moves.
const CALL_FRAMES: usize = 64;

pub(super) fn check_receiver(interface: &Interface, _wait: Wait) -> Result<()> {
    check_transmitter(interface)
}

pub(super) fn check_transmitter(interface: &Interface) -> Result<()> {
    if interface.kind != Kind::Canchar {
        let why = "this method works only on devices of the module canchar";
        let way_out = "/dev/canchar0; in the lab: canter lab --canchar virtual, or numbers of cards";
        return Err(Error::unsupported(&interface.name, "canchar", why).hint(way_out));
    }
    open(interface, false).map(drop)
}

fn open(interface: &Interface, nonblocking: bool) -> Result<Device> {
    Device::open(Path::new(&interface.name), nonblocking).map_err(|error| {
        let way_out = match error.raw_os_error() {
            Some(libc::EACCES) => "needs root, or a udev rule that gives the device to your group",
            _ => "",
        };
        // The device node disappears with the device.
        let gone = matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENXIO));
        let error = if gone { io::Error::from_raw_os_error(libc::ENODEV) } else { error };
        Error::new(&interface.name, "open", error).hint(way_out)
    })
}

fn queue_frames(options: &ReceiveOptions) -> u32 {
    options.queue_frames.unwrap_or(RECEIVE_SLOTS)
}

/// Opens and configures a device for a receiver.
pub(crate) fn open_receiver(interface: &Interface, options: &ReceiveOptions, wait: Wait) -> Result<Device> {
    let mut device = open(interface, matches!(wait, Wait::Poll | Wait::Spin))?;
    let frames = queue_frames(options);
    if frames > SLOTS_MAX {
        let why = format!("a queue of {frames} frames: at most {SLOTS_MAX}");
        let error = io::Error::new(io::ErrorKind::InvalidInput, why);
        return Err(Error::new(&interface.name, "set options", error));
    }
    let step = |step: &'static str| move |error| Error::new(&interface.name, step, error);
    // Frames that arrive before all options are set must not be received: they would pass the filters, or count as
    // lost.
    receive_nothing(&device).map_err(step("set filters"))?;
    let set = device.change(|set| {
        set.rx_slots = frames.max(2).next_power_of_two();
        set.flags |= if options.own_frames { ECHO_OWN } else { 0 };
        set.flags |= match wait {
            Wait::ChipPoll => POLL_CHIP,
            Wait::Adaptive => ADAPTIVE,
            _ => 0,
        };
    });
    set.map_err(step("set options"))?;
    if !options.stamps {
        device.decline_stamps().map_err(step("set options"))?;
    }
    device.start_counting().map_err(step("statistics"))?;
    device.set_filters(&options.filters).map_err(step("set filters"))?;
    Ok(device)
}

/// Closes its receive queue to new frames and discards the frames in it.
fn receive_nothing(device: &Device) -> io::Result<()> {
    let nothing = "0~0".parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    device.set_filters(&nothing)?;
    while device.wait(1, 0).is_ok_and(|waiting| waiting > 0) {
        device.read(&mut [RawFrame::default(); CALL_FRAMES])?;
    }
    Ok(())
}

/// Opens and configures a device for a transmitter.
pub(super) fn open_transmitter(interface: &Interface, options: &TransmitOptions) -> Result<Device> {
    let device = open(interface, !Room::new(options).waits)?;
    // A transmitter receives nothing, so it should add no work to the interrupt handler.
    receive_nothing(&device).map_err(|error| Error::new(&interface.name, "set filters", error))?;
    let step = |error| Error::new(&interface.name, "set options", error);
    device.decline_stamps().map_err(step)?;
    if options.echo == Echo::On {
        device.change(|set| set.flags |= ECHO).map_err(step)?;
    }
    Ok(device)
}

/// The frame in the device's format; `EINVAL` for a frame that it cannot send.
pub(crate) fn to_raw(frame: &Frame) -> io::Result<RawFrame> {
    if frame.is_fd() || frame.can_id & ERR_FLAG != 0 || frame.len > 8 {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut raw = RawFrame { can_id: frame.can_id, len: frame.len, ..RawFrame::default() };
    raw.data.copy_from_slice(&frame.data[..8]);
    Ok(raw)
}

/// Appends a frame to a batch that has room.
#[inline]
pub(super) fn append(batch: &mut Batch, raw: &RawFrame, index: u32, stamps: bool) {
    let Some((frame, meta)) = batch.place() else { return };
    from_raw(raw, index, stamps, frame, meta);
    batch.commit(1);
}

/// Converts a frame of the device with this index into a frame and its meta. The bytes from the ninth on are not
/// changed.
#[inline]
pub(crate) fn from_raw(raw: &RawFrame, index: u32, stamps: bool, frame: &mut Frame, meta: &mut Meta) {
    frame.can_id = raw.can_id;
    frame.len = raw.len;
    (frame.flags, frame.len8_dlc) = (0, 0);
    frame.data[..8].copy_from_slice(&raw.data);
    *meta = Meta { interface: index, ..Meta::default() };
    if stamps {
        meta.stamp_ns = raw.stamp_ns;
        meta.clock = Clock::Software;
        meta.origin = origin(raw);
    }
}

/// The origin of a frame.
#[inline]
pub(crate) fn origin(raw: &RawFrame) -> Origin {
    match raw.flags {
        flags if flags & FRAME_OWN != 0 => Origin::Own,
        flags if flags & FRAME_LOCAL != 0 => Origin::Local,
        _ => Origin::Bus,
    }
}

pub(super) fn receiver(interface: &Interface, options: &ReceiveOptions) -> Result<Box<dyn Receive>> {
    let wait = options.wait.unwrap_or(Wait::Block);
    let device = open_receiver(interface, options, wait)?;
    let queued = queue_frames(options);
    let many = if wait == Wait::Coalesce { COALESCED.min(queued / 2) } else { 1 };
    let frames = vec![RawFrame::default(); CALL_FRAMES].into_boxed_slice();
    let (index, stamps) = (interface.index, options.stamps);
    Ok(Box::new(Reader { device, wait, many, frames, index, stamps }))
}

struct Reader {
    device: Device,
    wait: Wait,
    /// The number of waiting frames that ends its wait; 1 unless it coalesces.
    many: u32,
    frames: Box<[RawFrame]>,
    index: u32,
    stamps: bool,
}

impl Reader {
    /// Waits until many frames wait or a moment has passed, as the reader of "Wapice Custom CAN Driver" does. Where no frame
    /// came in it, it first waits for the next one. False after a signal.
    fn coalesce(&self) -> io::Result<bool> {
        let many = || self.device.wait(self.many, COALESCE_NS);
        let waiting = many().and_then(|waiting| match waiting {
            0 => self.device.wait(1, FOREVER).and_then(|_| many()),
            _ => Ok(waiting),
        });
        match waiting {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            waiting => waiting.map(|_| true),
        }
    }
}

impl Receive for Reader {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
        let room = batch.room().min(self.frames.len());
        if room == 0 || self.many > 1 && !self.coalesce()? {
            return Ok(0);
        }
        loop {
            match self.device.read(&mut self.frames[..room]) {
                Ok(count) => {
                    for raw in &self.frames[..count] {
                        append(batch, raw, self.index, self.stamps);
                    }
                    return Ok(count);
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => return Ok(0),
                    io::ErrorKind::WouldBlock if self.wait == Wait::Poll => {
                        if poll::readable(&[self.device.as_fd()], None)? == 0 {
                            return Ok(0); // a signal
                        }
                    }
                    io::ErrorKind::WouldBlock => {
                        crate::sys::thread::relax();
                        return Ok(0);
                    }
                    _ => return Err(error),
                },
            }
        }
    }

    fn drops(&mut self) -> io::Result<u64> {
        self.device.lost()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.device.as_fd())
    }
}

pub(super) fn transmitter(interface: &Interface, options: &TransmitOptions) -> Result<Box<dyn Transmit>> {
    let device = open_transmitter(interface, options)?;
    let frames = vec![RawFrame::default(); CALL_FRAMES].into_boxed_slice();
    let room = Room::new(options);
    if room.ends() {
        device.set_nonblocking(true).map_err(|error| Error::new(&interface.name, "O_NONBLOCK", error))?;
    }
    Ok(Box::new(Writer { device, frames, room }))
}

struct Writer {
    device: Device,
    frames: Box<[RawFrame]>,
    /// Without an end to its patience, write(2) itself waits.
    room: Room,
}

impl Writer {
    /// Writes at most one call's frames; returns fewer when the queue is full.
    fn write(&mut self, frames: &[Frame]) -> io::Result<usize> {
        let mut ready = 0;
        for (raw, frame) in self.frames.iter_mut().zip(frames) {
            match to_raw(frame) {
                Ok(converted) => *raw = converted,
                Err(error) if ready == 0 => return Err(error),
                Err(_) => break,
            }
            ready += 1;
        }
        self.device.write(&self.frames[..ready])
    }
}

impl Transmit for Writer {
    fn transmit(&mut self, frames: &[Frame]) -> io::Result<usize> {
        let mut sent = 0;
        while sent < frames.len() {
            match self.write(&frames[sent..]) {
                Ok(count) => sent += count,
                Err(error) if self.room.waits && error.kind() == io::ErrorKind::WouldBlock => {
                    if !self.room.wait(self.device.as_fd())? {
                        return Ok(sent);
                    }
                }
                Err(error) => return short_count(sent, error),
            }
        }
        Ok(sent)
    }

    fn lost(&self) -> u64 {
        self.device.statistics().map_or(0, |counted| counted.file_tx_lost)
    }

    fn set_waiting(&mut self, waits: bool) {
        self.room.set_waiting(waits);
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.device.as_fd())
    }
}

impl Drop for Writer {
    /// The driver sends the frames that wait before it closes a file that may wait.
    fn drop(&mut self) {
        if self.room.ends() {
            let _ = self.device.set_nonblocking(false); // without it the frames are lost, and nothing else goes wrong
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Identifier;

    #[test]
    fn a_frame_survives_the_way_through_the_devices_layout() {
        for frame in [
            Frame::classic(Identifier::Sff(0x7ff), &[1, 2, 3]).unwrap(),
            Frame::classic(Identifier::Eff(0x1fff_ffff), &[9; 8]).unwrap(),
            Frame::rtr(Identifier::Sff(0x123), 4).unwrap(),
        ] {
            let mut batch = Batch::new(1);
            append(&mut batch, &to_raw(&frame).unwrap(), 7, false);
            assert_eq!((batch.frames()[0], batch.meta()[0].interface), (frame, 7));
        }
    }

    #[test]
    fn what_a_classic_controller_cannot_send_is_refused() {
        let mut error = Frame::default();
        error.can_id = ERR_FLAG;
        for frame in [Frame::fd(Identifier::Sff(1), &[1], 0).unwrap(), error] {
            assert_eq!(to_raw(&frame).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        }
    }
}
