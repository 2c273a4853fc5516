//! Buses for tests of recording on a kernel without CAN: TUN devices that pass for CAN interfaces, in namespaces of the
//! test's own. What is sent on such a bus is received by its interface at once, and no queue can lose it on the way.

use crate::recorder::{Buses, sh};
use canter_io::{Frame, Interface, method::Transmit, socket::ETH_P_CAN, tun::Tun};
use std::{io, os::fd::BorrowedFd, sync::Arc};

/// The MTU of an interface that receives FD frames. A TUN device has at least 68, so that none is of classic frames only.
const MTU: u32 = 72;

/// Any number of buses; their interfaces are deleted with this and its senders.
pub struct TunBuses {
    pub interfaces: Vec<Interface>,
    tuns: Vec<Arc<Tun>>,
}

impl TunBuses {
    /// Buses with interfaces of these names, which are up.
    pub fn named(names: &[String]) -> Self {
        let tuns = names.iter().map(|name| Arc::new(Tun::create(name).unwrap())).collect();
        let up = |name: &String| {
            let mut interface = Interface::find(name).unwrap();
            interface.set_mtu(MTU).unwrap();
            interface.up().unwrap();
            interface
        };
        Self { interfaces: names.iter().map(up).collect(), tuns }
    }

    /// Lets the interface of a bus receive a packet that is no frame, though its protocol is that of frames: the interface
    /// counts it, and no recorder can have it.
    pub fn lose(&self, bus: usize) {
        self.tuns[bus].receive_bytes(ETH_P_CAN, &[0; 20]).unwrap();
    }
}

impl Buses for TunBuses {
    fn new(prefix: &str, count: usize) -> Self {
        Self::named(&(0..count).map(|n| format!("{prefix}{n}")).collect::<Vec<_>>())
    }

    fn names(&self) -> Vec<String> {
        self.interfaces.iter().map(|interface| interface.name.clone()).collect()
    }

    fn senders(&self) -> Vec<Box<dyn Transmit>> {
        self.tuns.iter().map(|tun| Box::new(Sender(Arc::clone(tun))) as Box<dyn Transmit>).collect()
    }
}

/// A sender on a bus.
struct Sender(Arc<Tun>);

impl Transmit for Sender {
    fn transmit(&mut self, frames: &[Frame]) -> io::Result<usize> {
        for (sent, frame) in frames.iter().enumerate() {
            match self.0.receive(frame) {
                Err(error) if sent == 0 => return Err(error),
                Err(_) => return Ok(sent),
                Ok(()) => {}
            }
        }
        Ok(frames.len())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A way for frames onto an interface that does not count them, as a driver does not count error frames and echoes.
pub struct Uncounted(Tun);

impl Uncounted {
    /// `name` is that of the interface through which they come.
    pub fn onto(interface: &str, name: &str) -> Self {
        let tun = Tun::create_without_link_type(name).unwrap();
        sh(&format!(
            "ip link set {name} mtu {MTU} up && tc qdisc add dev {name} ingress &&
             tc filter add dev {name} ingress protocol all u32 match u32 0 0 action mirred ingress redirect dev {interface}"
        ));
        Self(tun)
    }

    pub fn send(&self, frame: &Frame) {
        self.0.receive(frame).unwrap();
    }
}
