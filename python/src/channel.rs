//! A channel of a bus: one interface, one device, or all interfaces.

use canter_io::{
    Error, Frame, Interface,
    interface::{Counters, Kind},
    node::{Node, NodeOptions},
};
use std::{
    io,
    sync::{Mutex, PoisonError, atomic::AtomicI32},
};

/// A socket or a device's file, and the interface behind it.
pub struct Channel {
    pub node: Node,
    /// `None`: all interfaces.
    pub interface: Option<Interface>,
    /// The interface's counters when the bus was opened.
    pub before: Counters,
    /// The last ones that could be read.
    last: Mutex<Counters>,
    /// The reported errno of a device that is stopped or removed; otherwise 0.
    pub trouble: AtomicI32,
}

impl Channel {
    /// An interface by its name; an empty one stands for all.
    pub fn open(name: &str, options: &NodeOptions) -> Result<Self, Error> {
        let interface = if name.is_empty() { None } else { Some(Interface::find(name)?) };
        let node = Node::open(interface.as_ref(), options)?;
        let before = node.counters()?;
        Ok(Self { node, interface, before, last: Mutex::new(before), trouble: AtomicI32::new(0) })
    }

    /// The interface's counters; the last ones once it has gone.
    pub fn counters(&self) -> Counters {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(now) = self.node.counters() {
            *last = now;
        }
        *last
    }

    pub fn name(&self) -> &str {
        self.interface.as_ref().map_or("any", |interface| &interface.name)
    }

    /// Whether it is a character device.
    pub fn is_device(&self) -> bool {
        self.interface.as_ref().is_some_and(|interface| interface.kind == Kind::Canchar)
    }

    /// The remedy for a full transmit queue.
    pub fn room(&self) -> String {
        if self.is_device() {
            return "send with a timeout".to_owned();
        }
        format!("ip link set {} txqueuelen 1000, or send with a timeout", self.name())
    }

    /// The error for a frame that cannot be sent.
    pub fn cannot_send(&self, frame: &Frame, error: io::Error) -> Error {
        let refused = self.is_device() && error.raw_os_error() == Some(libc::EINVAL);
        let error = Error::moving(self.name(), "send", error);
        match refused {
            true if frame.is_fd() => error.hint("a device cannot send FD frames"),
            true if frame.is_error() => error.hint("a device cannot send error frames"),
            _ => error,
        }
    }
}
