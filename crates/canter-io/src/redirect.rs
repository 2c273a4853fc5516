//! Routing in the kernel by a BPF program. On reception, before sockets get the frame, the program sends each frame
//! that passes the filters unchanged to another interface. No process takes part.
//!
//! The kernel redirects only frames with room for a link-layer header in front, and sends that room too. CAN has no
//! such header; but controllers' drivers begin a received frame's buffer with a `struct can_skb_priv` of 16 bytes,
//! which the kernel takes for one (`skb->mac_len`). So the program moves the frame 16 bytes to the front and cuts off
//! the rest. So it cannot redirect some frames: those of virtual interfaces and those sent by this machine have no such
//! room, and stay where they are; and a kernel in which the structure has another size or place is refused.
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
    /// A descriptor: the kernel closes it when the process ends in any way. Linux 6.6.
    Link(#[expect(dead_code, reason = "kept for its Drop")] Link),
    /// A filter of traffic control, which a killed process leaves behind.
    Classifier(#[expect(dead_code, reason = "kept for its Drop")] Classifier),
}

const THING: &str = "bpf";
/// Bytes in front of a frame.
const ROOM: u32 = 16;

/// Checks whether this kernel can redirect received frames.
///
/// # Errors
/// `Unsupported` when received frames have another layout or the kernel has no type information; `PermissionDenied`
/// without
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
        Some(bytes) => format!("the kernel puts {bytes} bytes before a received frame; the program supports only {ROOM}"),
        None => "the kernel's type information lacks the layout of a received frame (struct can_skb_priv in /sys/kernel/btf)".into(),
    };
    Err(Error::unsupported(THING, "find", why).hint("modprobe can-dev, or use can-gw"))
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
        Some(libc::ENOSYS) => Error::unsupported(thing, step, "this kernel has no bpf(2)").hint("use can-gw"),
        _ => Error::new(thing, step, error),
    }
}

/// Checks whether frames can be redirected from one interface to the other.
///
/// # Errors
/// As [`available`]; `Unsupported` from an interface that is no controller, and into a vcan.
pub fn check(from: &Interface, to: &Interface) -> Result<()> {
    let unable = |interface: &Interface, why: &str| {
        Err(Error::unsupported(&interface.name, THING, why).hint("use can-gw or a user-space pair"))
    };
    if from.kind != Kind::Can {
        return unable(from, "the kernel redirects only frames received by a controller's driver");
    }
    match to.kind {
        Kind::Vcan => unable(to, "frames redirected into a vcan reach no receiver"),
        Kind::Can | Kind::Vxcan => available(),
        _ => unable(to, "it is not a network interface of the kernel"),
    }
}

impl Redirect {
    /// Starts redirecting. The first matching rule decides; frames that no rule matches stay on the input.
    ///
    /// # Errors
    /// As [`check`]; `InvalidInput` for more filters than a program holds; `AlreadyExists` when the interface has a
    /// program.
    pub fn open(from: &Interface, to: &Interface, rules: &[Rule]) -> Result<Self> {
        check(from, to)?;
        let counters = counters()?;
        let program = program::assemble(rules, to.supports_fd(), to.index, counters.descriptor());
        if program.len() > program::INSTRUCTIONS_MAX {
            let why = format!("{} instructions, of at most {}", program.len(), program::INSTRUCTIONS_MAX);
            let long = io::Error::new(io::ErrorKind::InvalidInput, why);
            return Err(Error::new(THING, "assemble", long).hint("use fewer filters or a user-space pair"));
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
        // An output that has disappeared dropped its queued frames; they count as sent.
        let drops = queue_drops(&self.output).unwrap_or(self.drops_before);
        let no_room = u64::from(drops.wrapping_sub(self.drops_before)).min(handed_on);
        Ok(Counts { handed_on, filtered, refused, no_room })
    }

    /// Ends the program; returns its counters.
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
            let twice = io::Error::new(
                io::ErrorKind::AlreadyExists,
                "the interface has a program on received frames already",
            );
            let name = &interface.name;
            Error::new(name, STEP, twice).hint(format!(
                "of another gateway, or of one that was killed before Linux 6.6: tc qdisc del dev {name} clsact"
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
