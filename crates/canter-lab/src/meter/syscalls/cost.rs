//! The runs behind `canter syscalls`: interfaces, timed calls, and a straight line through the figures.

use canter_cli::{
    failure::{self, Exit, Failure},
    trouble::{explain, refuse_down},
};
use canter_io::{
    Batch, Frame, Interface, Result,
    batch::BATCH_FRAMES,
    carrier::{Access, Carrier},
    clock,
    frame::CAN_MTU,
    method::{Receive, ReceiveMethod, ReceiveOptions, Transmit, TransmitMethod, TransmitOptions},
};
use canter_measure::result::Fit;
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// The most frames a run may queue: 960 bytes each in the kernel.
pub const FRAMES_MAX: u64 = 200_000;

/// The most receivers that a run may open.
pub const READERS_MAX: usize = 64;

/// The name of the temporary interface that is created when none is given.
const VCAN: &str = "canter-v";
const VXCAN: [&str; 2] = ["canter-x0", "canter-x1"];

/// A processor that is busy sending may leave the delivery to its kernel thread (ksoftirqd), which runs when this
/// thread sleeps. Missing frames count as lost only after this number of sleeps without a frame.
const DELIVERY_WAITS_MAX: u32 = 20;
const DELIVERY_WAIT_NS: u64 = 1_000_000;

/// Interfaces to measure on.
pub struct Bench {
    sockets: Links,
    /// The two character devices of one bus, if they are given.
    devices: Option<Links>,
    made: Vec<Made>,
    frame: Frame,
    /// The flag that skips the remaining runs.
    interrupted: Arc<AtomicBool>,
    /// The time that two clock readings add to a timed call.
    clock_ns: u64,
}

/// The pairs of interfaces that frames pass.
#[derive(Clone)]
struct Links {
    /// A pair of interfaces for receivers, which are measured on the second while the first sends.
    receiving: [Interface; 2],
    /// A pair of interfaces for senders, which are measured on the first while the second receives.
    sending: [Interface; 2],
    sender: &'static str,
    reader: &'static str,
}

impl Links {
    /// The links of the devices `/dev/canchar0,/dev/canchar1`.
    fn of_devices(names: &str) -> failure::Result<Self> {
        let Some((near, far)) = names.split_once(',') else {
            let why = format!("{names}: expected two devices of one bus: /dev/canchar0,/dev/canchar1");
            return Err(Failure::new(Exit::Usage, why));
        };
        let found = [Interface::find(near)?, Interface::find(far)?];
        found.iter().try_for_each(refuse_down)?;
        Ok(Self::between(found.clone(), found))
    }

    /// Links with the methods that fit the interfaces' carriers.
    fn between(receiving: [Interface; 2], sending: [Interface; 2]) -> Self {
        let usual = sending[0].carrier.usual;
        Self { receiving, sending, sender: usual.transmit, reader: usual.receive_spinning }
    }
}

/// The receivers of a run, of which one is timed.
#[derive(Clone, Copy)]
pub struct Readers {
    pub number: usize,
    /// Frames per call.
    pub batch: usize,
}

/// One timed run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub frames: u64,
    pub received: u64,
    /// The time of the method's calls.
    pub calls_ns: u64,
    /// The additional time of sending with a receiver: of the sending calls for a receiver, of its own calls for a
    /// sender.
    pub delivery_ns: i64,
}

/// A temporary interface; dropping this deletes it.
struct Made(Option<Interface>);

impl Made {
    fn delete(mut self) -> Result<()> {
        self.0.take().map_or(Ok(()), Interface::delete)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // Another error is being returned, and that one matters.
        let _ = self.0.take().map(Interface::delete);
    }
}

impl Bench {
    pub fn set_up(
        interface: Option<&str>,
        frame: Frame,
        interrupted: Arc<AtomicBool>,
    ) -> failure::Result<Self> {
        let mut made = Vec::new();
        let devices =
            interface.filter(|names| super::are_devices(names)).map(Links::of_devices).transpose()?;
        let vcan = match interface.filter(|_| devices.is_none()) {
            Some(name) => {
                let vcan = Interface::find(name)?;
                refuse_down(&vcan)?;
                if vcan.controller.is_some() {
                    // Its receivers do not hear what this machine sends: they would wait for ever.
                    let why = "is no virtual interface (leave out -i: canter makes one)";
                    return Err(Failure::new(Exit::Usage, format!("{name}: {why}")));
                }
                vcan
            }
            None => classic(Interface::create_vcan(VCAN)?, &mut made)?,
        };
        let near = classic(Interface::create_vxcan(VXCAN[0], VXCAN[1])?, &mut made)?;
        let mut far = Interface::find(VXCAN[1])?; // goes with the near end
        set_classic(&mut far)?;
        let receiving = [vcan.clone(), vcan];
        let sockets = Links::between(receiving, [near, far]);
        Ok(Self { sockets, devices, made, frame, interrupted, clock_ns: clock_ns() })
    }

    /// The interfaces for a method of these carriers.
    fn links(&self, carriers: &[&Carrier]) -> &Links {
        let on_devices = carriers.iter().any(|carrier| carrier.access == Access::File);
        self.devices.as_ref().filter(|_| on_devices).unwrap_or(&self.sockets)
    }

    /// The interface for measuring a receiver of these carriers.
    pub fn receiving(&self, carriers: &[&Carrier]) -> &Interface {
        &self.links(carriers).receiving[1]
    }

    /// The interface for measuring a sender of these carriers.
    pub fn sending(&self, carriers: &[&Carrier]) -> &Interface {
        &self.links(carriers).sending[0]
    }

    pub fn interfaces(&self) -> Vec<Interface> {
        let devices = self.devices.iter().flat_map(|links| links.sending.clone());
        let sockets = [&self.sockets.receiving[0], &self.sockets.sending[0]];
        sockets.into_iter().cloned().chain(devices).collect()
    }

    pub fn tear_down(self) -> Result<()> {
        self.made.into_iter().try_for_each(Made::delete)
    }

    /// Queues `queue` frames and reads them by `method`, until `frames` have passed.
    pub fn receive(
        &self,
        method: ReceiveMethod,
        frames: u64,
        queue: u64,
        readers: Readers,
    ) -> failure::Result<Run> {
        let links = self.links(method.row.carriers);
        let nobody = Readers { number: 0, ..readers };
        let without = self.queue_all(links, frames, queue, nobody, method)?;
        let received = self.queue_all(links, frames, queue, readers, method)?;
        let delivery_ns = received.sending_ns as i64 - without.sending_ns as i64;
        Ok(Run { frames, received: received.received, calls_ns: received.receiving_ns, delivery_ns })
    }

    fn queue_all(
        &self,
        links: &Links,
        frames: u64,
        queue: u64,
        readers: Readers,
        method: ReceiveMethod,
    ) -> failure::Result<Passed> {
        let [from, to] = &links.receiving;
        let mut sender = transmitter(links.sender)?.open(from, &TransmitOptions::default())?;
        let options = whole_queue(queue);
        let opened = (0..readers.number).map(|_| method.open(to, &options));
        let mut receivers = opened.collect::<Result<Vec<_>>>()?;
        let mut batch = Batch::new(readers.batch);
        let burst = vec![self.frame; queue as usize];
        let mut passed = Passed::default();
        let mut left = frames;
        while left > 0 {
            self.refuse_interrupted()?;
            let count = queue.min(left) as usize;
            passed.sending_ns += self.timed(from, "send", |_| send_all(&mut *sender, &burst[..count], 1))?;
            for (number, receiver) in receivers.iter_mut().enumerate() {
                let mut received = 0;
                let calls_ns = self.timed(to, "receive", |waited_ns| {
                    received = receive_all(&mut **receiver, &mut batch, count, waited_ns)?;
                    Ok(())
                })?;
                if number == 0 {
                    passed.receiving_ns += calls_ns;
                    passed.received += received as u64;
                }
            }
            left -= count as u64;
        }
        Ok(passed)
    }

    /// Sends `frames` frames by `method`, `batch` per call: once without a receiver, once with one.
    pub fn send(&self, method: TransmitMethod, frames: u64, batch: usize) -> failure::Result<Run> {
        let (alone_ns, _) = self.send_to(method, frames, batch, false)?;
        let (heard_ns, received) = self.send_to(method, frames, batch, true)?;
        Ok(Run { frames, received, calls_ns: alone_ns, delivery_ns: heard_ns as i64 - alone_ns as i64 })
    }

    fn send_to(
        &self,
        method: TransmitMethod,
        frames: u64,
        batch: usize,
        heard: bool,
    ) -> failure::Result<(u64, u64)> {
        self.refuse_interrupted()?;
        let links = self.links(method.row.carriers);
        let [near, far] = &links.sending;
        let mut sender = method.open(near, &TransmitOptions::default())?;
        let options = whole_queue(frames);
        let reader: ReceiveMethod = links.reader.parse()?;
        let mut receiver = if heard { Some(reader.open(far, &options)?) } else { None };
        let burst = vec![self.frame; frames as usize];
        let sending_ns = self.timed(near, "send", |_| send_all(&mut *sender, &burst, batch))?;
        let received = match &mut receiver {
            Some(receiver) => {
                let mut batch = Batch::new(BATCH_FRAMES);
                receive_all(&mut **receiver, &mut batch, frames as usize, &mut 0)
                    .map_err(|error| explain(&far.name, "receive", error))?
            }
            None => 0,
        };
        Ok((sending_ns, received as u64))
    }

    /// The time of `work`, without the time that it reports as waiting.
    fn timed(
        &self,
        interface: &Interface,
        step: &'static str,
        work: impl FnOnce(&mut u64) -> io::Result<()>,
    ) -> failure::Result<u64> {
        let mut waited_ns = 0;
        let start_ns = clock::monotonic_ns();
        let done = work(&mut waited_ns);
        let end_ns = clock::monotonic_ns();
        done.map_err(|error| explain(&interface.name, step, error))?;
        Ok((end_ns - start_ns).saturating_sub(self.clock_ns + waited_ns))
    }

    /// Checks for a signal; called between timed calls only.
    fn refuse_interrupted(&self) -> failure::Result<()> {
        if self.interrupted.load(Ordering::Acquire) {
            return Err(Failure::new(Exit::Interrupted, "syscalls: interrupted"));
        }
        Ok(())
    }
}

#[derive(Default)]
struct Passed {
    sending_ns: u64,
    receiving_ns: u64,
    received: u64,
}

fn transmitter(name: &str) -> Result<TransmitMethod> {
    name.parse()
}

/// The options of a receive queue that holds all these frames.
fn whole_queue(frames: u64) -> ReceiveOptions {
    ReceiveOptions { queue_frames: Some(frames as u32 + 1), whole_queue: true, ..ReceiveOptions::default() }
}

/// Sets an interface to classic frames, as in the paper: on an FD interface a ring must listen to all protocols, which
/// slows down every sender on the machine.
fn classic(mut interface: Interface, made: &mut Vec<Made>) -> Result<Interface> {
    made.push(Made(Some(interface.clone())));
    set_classic(&mut interface)?;
    Ok(interface)
}

fn set_classic(interface: &mut Interface) -> Result<()> {
    interface.set_mtu(CAN_MTU as u32)?;
    interface.up()
}

fn send_all(sender: &mut dyn Transmit, frames: &[Frame], batch: usize) -> io::Result<()> {
    for part in frames.chunks(batch) {
        let taken = sender.transmit(part)?;
        sender.flush()?;
        if taken < part.len() || sender.pending() > 0 {
            return Err(io::Error::other("the virtual interface accepts no more frames"));
        }
    }
    Ok(())
}

/// Receives what is queued, up to `count` frames; fewer when some were lost.
fn receive_all(
    receiver: &mut dyn Receive,
    batch: &mut Batch,
    count: usize,
    waited_ns: &mut u64,
) -> io::Result<usize> {
    let (mut received, mut waits) = (0, 0);
    while received < count {
        batch.clear();
        match receiver.receive(batch)? {
            0 if waits == DELIVERY_WAITS_MAX => break,
            0 => {
                let start_ns = clock::monotonic_ns();
                clock::sleep_until_ns(start_ns + DELIVERY_WAIT_NS);
                *waited_ns += clock::monotonic_ns() - start_ns;
                waits += 1;
            }
            more => {
                received += more;
                waits = 0;
            }
        }
    }
    Ok(received.min(count)) // more frames are those of other senders
}

/// The shortest time between two clock readings.
fn clock_ns() -> u64 {
    let reading = |_| {
        let start_ns = clock::monotonic_ns();
        clock::monotonic_ns() - start_ns
    };
    (0..1000).map(reading).min().unwrap_or(0)
}

/// The least-squares line through the origin and `[frames, ns]`; `None` with fewer than two different numbers of frames.
pub fn fit(points: &[[u64; 2]]) -> Option<Fit> {
    if points.iter().all(|point| point[0] == points[0][0]) {
        return None;
    }
    let sum = |of: fn(&[u64; 2]) -> f64| points.iter().map(of).sum::<f64>();
    let slope = sum(|[frames, ns]| *frames as f64 * *ns as f64) / sum(|[frames, _]| (*frames as f64).powi(2));
    Some(Fit { intercept: 0, slope_per_1000: (slope * 1000.0).round() as i64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fit_of_a_straight_line_is_that_line() {
        let points = [1000, 2000, 5000].map(|frames| [frames, 31 * frames]);
        assert_eq!(fit(&points), Some(Fit { intercept: 0, slope_per_1000: 31_000 }));
    }

    #[test]
    fn one_point_has_no_line() {
        assert_eq!(fit(&[[10, 5]]), None);
        assert_eq!(fit(&[[10, 5], [10, 6]]), None);
        assert_eq!(fit(&[]), None);
    }
}
