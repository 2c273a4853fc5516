//! The stamps of controllers: the instrument `hardware` receives by them, instead of the kernel's. What the host does before the
//! kernel's stamp, an interrupt that comes late or a busy processor, is then not in a latency.

use canter_cli::failure::{self, Exit, Failure};
use canter_io::{
    Batch, Interface, Meta,
    batch::Clock,
    method::Receive,
    netlink::wire,
    node::{Inbox, Node, NodeOptions, Received},
};
use std::{
    collections::VecDeque,
    fs, io,
    os::fd::{AsFd, BorrowedFd},
    path::PathBuf,
};

/// Receives frames of an interface with the controller's stamps.
pub struct Controller {
    node: Node,
    inbox: Inbox,
    waiting: VecDeque<Received>,
}

impl Controller {
    pub fn open(on: &Interface, queue_bytes: u32) -> canter_io::Result<Self> {
        let options = NodeOptions {
            fd: on.supports_fd(),
            queue_bytes: Some(queue_bytes),
            hardware_stamps: true,
            ..NodeOptions::default()
        };
        Ok(Self { node: Node::open(Some(on), &options)?, inbox: Inbox::default(), waiting: VecDeque::new() })
    }
}

impl Receive for Controller {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
        if self.waiting.is_empty() {
            self.node.receive(&mut self.inbox, &mut self.waiting)?;
        }
        let count = self.waiting.len().min(batch.room());
        for Received { frame, meta, hardware_ns } in self.waiting.drain(..count) {
            if hardware_ns == 0 {
                let why =
                    "the controller does not stamp frames (--instrument socket takes the kernel's stamps)";
                return Err(io::Error::new(io::ErrorKind::Unsupported, why));
            }
            batch.push(&frame, Meta { stamp_ns: hardware_ns, clock: Clock::Hardware, ..meta });
        }
        Ok(count)
    }

    fn drops(&mut self) -> io::Result<u64> {
        self.node.drops()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.node.as_fd())
    }
}

/// What the stamps of an interface count by.
#[derive(PartialEq, Eq)]
enum Counter {
    /// The clock of all virtual wires.
    Wires,
    /// One for all channels of a device, by its place in sysfs.
    Device(PathBuf),
}

impl Counter {
    /// The counter of an interface; `None`: one of its own.
    fn find(interface: &Interface) -> Option<Self> {
        if let Ok(node) = wire::node(&interface.name) {
            return (node.clock_drift_ppb == 0).then_some(Self::Wires);
        }
        fs::canonicalize(format!("/sys/class/net/{}/device", interface.name)).ok().map(Self::Device)
    }
}

/// Refuses two interfaces whose stamps count by two clocks: their difference would be no latency.
pub fn refuse_two_clocks(direct: &Interface, routed: &Interface) -> failure::Result<()> {
    match (Counter::find(direct), Counter::find(routed)) {
        (Some(one), Some(other)) if one == other => Ok(()),
        _ => {
            let way = "take two channels of one device, or --instrument socket";
            let why =
                format!("{}, {}: their controllers stamp by two clocks ({way})", direct.name, routed.name);
            Err(Failure::new(Exit::Usage, why))
        }
    }
}
