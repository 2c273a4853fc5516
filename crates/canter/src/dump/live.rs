//! Frames of interfaces, as they come: a node for each named interface, or one for all.

use super::{Output, line::Line};
use canter_cli::{
    failure::{self, Exit, Failure},
    interrupt::interrupt_flag,
    trouble::refuse_down,
    units::counted,
};
use canter_frame::Direction;
use canter_io::{
    Error, Interface, InterfaceFilters,
    batch::Origin,
    clock,
    interface::Counters,
    node::{Inbox, Node, NodeOptions, Received},
    poll,
};
use std::{
    collections::HashMap,
    io,
    ops::ControlFlow,
    os::fd::AsFd,
    sync::atomic::{AtomicBool, Ordering},
};

/// Longest wait for frames before a check of signals.
const CHECK_PERIOD_NS: u64 = 30_000_000;
/// Size of a receive queue, as the kernel counts it: about 8000 frames. Without CAP_NET_ADMIN the kernel grants less.
const QUEUE_BYTES: u32 = 8 << 20;

/// The most descriptors per poll(2); further nodes are read every [`CHECK_PERIOD_NS`].
const POLLED_MAX: usize = 64;

/// A node, and what its end reports.
struct Source {
    node: Node,
    /// `any` or the interface's name.
    name: String,
    /// Frames lost in the queue before its interface disappeared.
    lost: u64,
    /// The interface's counters at the start.
    counters: Counters,
    gone: bool,
}

impl Source {
    /// Frames that the interface counts as lost since the start.
    fn missed(&self) -> u64 {
        let counters = self.node.counters().unwrap_or(self.counters).since(&self.counters);
        let Counters { rx_dropped, rx_over_errors, rx_fifo_errors, rx_missed, .. } = counters;
        rx_dropped + rx_over_errors + rx_fifo_errors + rx_missed
    }
}

/// The nodes of all interfaces.
pub struct Live {
    sources: Vec<Source>,
    inbox: Inbox,
    /// The names of interfaces by their index.
    names: HashMap<u32, String>,
    hw_stamps: bool,
}

impl Live {
    pub fn open(interfaces: &[InterfaceFilters], hw_stamps: bool) -> failure::Result<Self> {
        let mut live =
            Self { sources: Vec::new(), inbox: Inbox::default(), names: HashMap::new(), hw_stamps };
        for wanted in interfaces {
            let interface = match wanted.interface.as_str() {
                "any" => None,
                name => Some(Interface::find(name)?),
            };
            if let Some(interface) = &interface {
                refuse_down(interface)?;
                live.names.insert(interface.index, interface.name.clone());
            }
            let options = NodeOptions {
                own_frames: true,
                fd: interface.as_ref().is_none_or(Interface::supports_fd),
                filters: wanted.filters.clone(),
                queue_bytes: Some(QUEUE_BYTES),
                hardware_stamps: hw_stamps,
                ..NodeOptions::default()
            };
            let node = Node::open(interface.as_ref(), &options)?;
            if interface.is_none() && Interface::list()?.is_empty() {
                eprintln!("canter: any: this machine has no CAN interface yet: waiting for one");
            }
            live.sources.push(Source {
                counters: node.counters().unwrap_or_default(),
                node,
                name: wanted.interface.clone(),
                lost: 0,
                gone: false,
            });
        }
        Ok(live)
    }

    /// Prints frames until a signal, a count, or a time without a frame.
    pub fn run(&mut self, output: &mut Output<'_>, timeout_ns: Option<u64>) -> failure::Result {
        let stop = interrupt_flag()?;
        output.printer.reserve(self.names.values().map(String::as_str));
        let end = self.print_all(output, timeout_ns, &stop)?;
        let lost = self.report_lost();
        Ok(match end {
            _ if lost > 0 => Exit::Lost,
            End::Quiet => Exit::Failed,
            End::Done => Exit::Done,
        })
    }

    fn print_all(
        &mut self,
        output: &mut Output<'_>,
        timeout_ns: Option<u64>,
        stop: &AtomicBool,
    ) -> failure::Result<End> {
        let mut quiet_since_ns = clock::monotonic_ns();
        let mut received = Vec::new();
        while !stop.load(Ordering::Acquire) {
            self.wait(timeout_ns)?;
            self.receive(&mut received)?;
            // Frames of several queues, by their stamps.
            received.sort_by_key(|one: &Received| one.meta.stamp_ns);
            for one in &received {
                if self.print(output, one)?.is_break() {
                    output.flush().map(drop)?;
                    return Ok(End::Done);
                }
            }
            if !received.is_empty() {
                quiet_since_ns = clock::monotonic_ns();
                received.clear();
                if output.flush()?.is_break() {
                    return Ok(End::Done);
                }
            } else if timeout_ns.is_some_and(|ns| clock::monotonic_ns() - quiet_since_ns >= ns) {
                return Ok(End::Quiet);
            }
        }
        Ok(End::Done)
    }

    fn wait(&self, timeout_ns: Option<u64>) -> failure::Result<()> {
        let open = self.sources.iter().filter(|source| !source.gone);
        let descriptors: Vec<_> = open.map(|source| source.node.as_fd()).take(POLLED_MAX).collect();
        let wait_ns = timeout_ns.unwrap_or(CHECK_PERIOD_NS).min(CHECK_PERIOD_NS);
        let ready = poll::readable(&descriptors, Some(wait_ns));
        ready.map(drop).map_err(|error| Error::new("dump", "wait", error).into())
    }

    fn receive(&mut self, received: &mut Vec<Received>) -> failure::Result<()> {
        for source in self.sources.iter_mut().filter(|source| !source.gone) {
            match source.node.receive(&mut self.inbox, received) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NetworkDown => {
                    eprintln!("canter: {}: is down: waiting until it is up", source.name);
                }
                Err(error) => {
                    source.lost = source.node.drops().unwrap_or(0);
                    source.gone = true;
                    eprintln!("canter: {}", Error::new(&source.name, "receive", error));
                }
            }
        }
        if self.sources.iter().all(|source| source.gone) && received.is_empty() {
            let message = "dump: no interface is left (canter capture --wait-for-interface follows interfaces that return)";
            return Err(Failure::failed(message));
        }
        Ok(())
    }

    fn print(&mut self, output: &mut Output<'_>, one: &Received) -> failure::Result<ControlFlow<()>> {
        let index = one.meta.interface;
        let name = self.names.entry(index).or_insert_with(|| {
            Interface::by_index(index).map_or_else(|_| format!("if{index}"), |interface| interface.name)
        });
        let stamp_ns = match one.hardware_ns {
            hardware_ns @ 1.. if self.hw_stamps => hardware_ns,
            _ => one.meta.stamp_ns,
        };
        let direction = match one.meta.origin {
            Origin::Unknown => None,
            Origin::Bus => Some(Direction::Received),
            Origin::Local | Origin::Own => Some(Direction::Sent),
        };
        output.frame(&Line { interface: name, frame: &one.frame, stamp_ns, direction })
    }

    /// Reports the frames that did not fit into a queue, and returns their number.
    fn report_lost(&self) -> u64 {
        let mut total = 0;
        for source in &self.sources {
            let lost = if source.gone { source.lost } else { source.node.drops().unwrap_or(source.lost) };
            if lost > 0 {
                let reason =
                    "the terminal, or the reader of the pipe, was too slow (canter capture loses none)";
                eprintln!("canter: {}: {} lost: {reason}", source.name, counted(lost, "frame"));
            }
            let missed = source.missed();
            if missed > 0 {
                let reason = "by the interface or the kernel before they came here (canter doctor finds why)";
                eprintln!("canter: {}: {} lost {reason}", source.name, counted(missed, "frame"));
            }
            total += lost + missed;
        }
        total
    }
}

/// Why printing ended.
enum End {
    /// A signal, enough frames, or a closed pipe.
    Done,
    /// A time without a frame.
    Quiet,
}
