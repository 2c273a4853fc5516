//! Routing in the kernel by a BPF program. On reception, before sockets get the frame, the program sends each frame that
//! passes the filters unchanged to another interface. No process takes part.
//!
//! The kernel redirects only what has room for a link-layer header in front, and sends that room along. CAN has no such
//! header; but controllers' drivers begin a received frame's buffer with a `struct can_skb_priv` of 16 bytes, which the
//! kernel takes for one (`skb->mac_len`). So the program moves the frame 16 bytes to the front and cuts off the rest.
//! Hence what it cannot do: frames of virtual interfaces and those that this machine itself has sent have no such room,
//! and stay where they are; and a kernel in which the structure has another size or place is refused.
//!
//! Programs that listen to the input do not receive a redirected frame. The output's driver does not echo it, so
//! redirection in both directions makes no loop.

mod assembler;
mod program;

use crate::{
    Error, Filters, Interface, Result, btf,
    interface::Kind,
    netlink::traffic_control::{self, Classifier},
    sys::bpf::{self, Counters, Link},
};
use program::COUNTERS;
use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};

/// A rule: which frames it matches, and whether they are redirected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Matches frames that pass these filters; never error frames.
    pub filters: Filters,
    /// Matches classic frames.
    pub classic: bool,
    /// Matches FD frames.
    pub fd: bool,
    /// Redirect matching frames; false: they stay on the input.
    pub pass: bool,
}

impl Rule {
    /// A rule that redirects every frame of these filters.
    pub fn passing(filters: Filters) -> Self {
        Self { filters, classic: true, fd: true, pass: true }
    }
}

/// The counters of a redirection, in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Passed to the output's queue.
    pub handed_on: u64,
    /// Not passed on: no rule redirects them.
    pub filtered: u64,
    /// Matched, but cannot be redirected: FD frames for a classic output, frames that this machine sent on the input.
    pub refused: u64,
    /// Discarded by the output's queue; includes other programs' frames, which the queue does not count separately.
    pub no_room: u64,
}

/// The program at work, until this is dropped.
#[derive(Debug)]
pub struct Redirect {
    counters: Counters<COUNTERS>,
    output: Interface,
    drops_before: u32,
    attached: Option<Attached>,
}

/// What keeps the program on its interface.
#[derive(Debug)]
enum Attached {
    /// A descriptor: it goes with the process, however that ends. Linux 6.6.
    Link(#[expect(dead_code, reason = "it is there to be dropped")] Link),
    /// A filter of traffic control, which a killed process leaves behind.
    Classifier(#[expect(dead_code, reason = "it is there to be dropped")] Classifier),
}

const THING: &str = "bpf";
/// Bytes in front of a frame.
const ROOM: u32 = 16;

/// Checks whether this kernel can redirect received frames.
///
/// # Errors
/// `Unsupported` where received frames are laid out otherwise or the kernel does not say how; `PermissionDenied` without
/// `CAP_BPF` and `CAP_NET_ADMIN`.
pub fn available() -> Result<()> {
    check_layout()?;
    let counters = counters()?;
    load(&program::assemble(&[Rule::passing(Filters::default())], true, 1, counters.descriptor()))?;
    Ok(())
}

fn check_layout() -> Result<()> {
    let why = match btf::size_of("can_dev", "can_skb_priv") {
        Some(ROOM) => return Ok(()),
        Some(bytes) => format!("a received frame has {bytes} bytes in front of it, and the program moves it by {ROOM}"),
        None => "the kernel does not say how a received frame is laid out (struct can_skb_priv in /sys/kernel/btf)".into(),
    };
    Err(Error::unsupported(THING, "look", why).hint("modprobe can-dev if that is all, or take can-gw"))
}

fn counters() -> Result<Counters<COUNTERS>> {
    Counters::new().map_err(|error| refused(THING, "BPF_MAP_CREATE", error))
}

fn load(program: &[bpf::Instruction]) -> Result<OwnedFd> {
    bpf::load(program).map_err(|error| refused(THING, "BPF_PROG_LOAD", error))
}

/// With the way out; a kernel without bpf(2) and one that forbids it are both unable.
fn refused(thing: &str, step: &'static str, error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::EPERM) => Error::new(thing, step, error)
            .hint("needs CAP_BPF and CAP_NET_ADMIN: run as root, or run in canter lab"),
        Some(libc::ENOSYS) => {
            Error::unsupported(thing, step, "this kernel has no bpf(2)").hint("take can-gw")
        }
        _ => Error::new(thing, step, error),
    }
}

/// Checks whether frames can be redirected from one interface to the other.
///
/// # Errors
/// As [`available`]; `Unsupported` from an interface that is no controller, and into a vcan.
pub fn check(from: &Interface, to: &Interface) -> Result<()> {
    let unable = |interface: &Interface, why: &str| {
        Err(Error::unsupported(&interface.name, THING, why).hint("take can-gw, or a user-space pair"))
    };
    if from.kind != Kind::Can {
        return unable(from, "the kernel redirects only what a controller's driver has received");
    }
    match to.kind {
        Kind::Vcan => unable(to, "what is redirected into a vcan reaches nobody"),
        Kind::Can | Kind::Vxcan => available(),
        _ => unable(to, "it is no interface of the kernel's"),
    }
}

impl Redirect {
    /// Starts redirecting. The first matching rule decides; frames that no rule matches stay on the input.
    ///
    /// # Errors
    /// As [`check`]; `InvalidInput` for more filters than a program holds; `AlreadyExists` when the interface has a program.
    pub fn open(from: &Interface, to: &Interface, rules: &[Rule]) -> Result<Self> {
        check(from, to)?;
        let counters = counters()?;
        let program = program::assemble(rules, to.supports_fd(), to.index, counters.descriptor());
        if program.len() > program::INSTRUCTIONS_MAX {
            let why = format!("{} instructions, of at most {}", program.len(), program::INSTRUCTIONS_MAX);
            let long = io::Error::new(io::ErrorKind::InvalidInput, why);
            return Err(Error::new(THING, "assemble", long).hint("fewer filters, or a user-space pair"));
        }
        let program = load(&program)?;
        let drops_before = queue_drops(to)?;
        let attached = Attached::to(&program, from)?;
        Ok(Self { counters, output: to.clone(), drops_before, attached: Some(attached) })
    }

    /// What it has done so far.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn counts(&self) -> Result<Counts> {
        let read = self.counters.read().map_err(|error| Error::new(THING, "BPF_MAP_LOOKUP_ELEM", error))?;
        let [handed_on, filtered, refused] = read;
        // An output that has gone has dropped what it had; that is counted as given.
        let drops = queue_drops(&self.output).unwrap_or(self.drops_before);
        let no_room = u64::from(drops.wrapping_sub(self.drops_before)).min(handed_on);
        Ok(Counts { handed_on, filtered, refused, no_room })
    }

    /// Ends it, and answers what it has done.
    ///
    /// # Errors
    /// As [`counts`](Self::counts).
    pub fn close(mut self) -> Result<Counts> {
        self.attached = None; // nothing is counted from here on
        self.counts()
    }
}

fn queue_drops(interface: &Interface) -> Result<u32> {
    traffic_control::queue_drops(interface.index)
        .map_err(|refusal| refusal.of(&interface.name, "read qdisc", ""))
}

impl Attached {
    fn to(program: &OwnedFd, interface: &Interface) -> Result<Self> {
        const STEP: &str = "attach";
        let taken = || {
            let twice =
                io::Error::new(io::ErrorKind::AlreadyExists, "a program is on what it receives already");
            let name = &interface.name;
            Error::new(name, STEP, twice).hint(format!(
                "another gateway's, or one's that was killed before Linux 6.6: tc qdisc del dev {name} clsact"
            ))
        };
        match Link::attach(program.as_fd(), interface.index) {
            Ok(link) => return Ok(Self::Link(link)),
            Err(error) if error.raw_os_error() == Some(libc::ESTALE) => return Err(taken()),
            Err(error) if error.raw_os_error() != Some(libc::EINVAL) => {
                return Err(refused(&interface.name, STEP, error));
            }
            Err(_) => {} // before Linux 6.6
        }
        Classifier::attach(program.as_fd(), interface.index).map(Self::Classifier).map_err(|refusal| {
            match refusal.source.raw_os_error() {
                Some(libc::EEXIST) => taken(),
                _ => refusal.of(&interface.name, STEP, "modprobe sch_ingress cls_bpf"),
            }
        })
    }
}
