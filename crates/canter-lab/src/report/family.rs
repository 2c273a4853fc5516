//! Families of methods by the way they wait or the place they run: the colour of their drawings.

use canter_io::method::{Wait, table::RECEIVERS};
use canter_route::gateway::kind::{Method, Place};

/// Receivers of earlier result files, for which canter has no row; they block.
const OTHERS: [&str; 1] = ["lincan"];

/// The way in which a method waits for a frame, or the place where it runs: this explains most of its latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    BareMetal,
    Kernel,
    Spin,
    Poll,
    Block,
    Other,
}

impl Family {
    /// Reads the family from the name: the wait is after the receiver's slash, or the receiver's default.
    pub fn of(method: &str) -> Self {
        let receiver = method.split('+').next().unwrap_or(method);
        let (receiver, wait) = receiver.split_once('/').unwrap_or((receiver, ""));
        match method.parse::<Method>().map(|method| method.kind.place) {
            Ok(Place::BareMetal) => return Self::BareMetal,
            Ok(Place::Kernel) => return Self::Kernel,
            Ok(Place::UserSpace) | Err(_) => {}
        }
        let row = RECEIVERS.iter().find(|row| row.name == receiver);
        let default = row.map(|row| row.waits[0]).or(OTHERS.contains(&receiver).then_some(Wait::Block));
        match Wait::ALL.into_iter().find(|known| known.name() == wait).or(default) {
            Some(Wait::Spin | Wait::BusyPoll | Wait::ChipPoll | Wait::Adaptive) => Self::Spin,
            Some(Wait::Poll) => Self::Poll,
            Some(Wait::Block | Wait::Coalesce) => Self::Block,
            None => Self::Other,
        }
    }

    /// The class of the family's colours.
    pub fn class(self) -> &'static str {
        match self {
            Self::BareMetal => "bare",
            Self::Kernel => "kernel",
            Self::Spin => "spin",
            Self::Poll => "poll",
            Self::Block => "block",
            Self::Other => "other",
        }
    }

    pub fn about(self) -> &'static str {
        match self {
            Self::BareMetal => "no operating system",
            Self::Kernel => "in the kernel",
            Self::Spin => "user space, busy waiting",
            Self::Poll => "user space, poll",
            Self::Block => "user space, blocking",
            Self::Other => "unknown method",
        }
    }

    pub fn user_space(self) -> bool {
        (Self::Spin..=Self::Block).contains(&self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_gives_the_family() {
        for (method, family) in [
            ("bare-metal", Family::BareMetal),
            ("can-gw", Family::Kernel),
            ("bpf", Family::Other),
            ("read+write", Family::Block),
            ("read/spin+ring", Family::Spin),
            ("read/busy-poll+write", Family::Spin),
            ("ring+write", Family::Poll),
            ("read/poll+write", Family::Poll),
            ("canchar/chip-poll+canchar", Family::Spin),
            ("port+port", Family::Spin),
            ("sim+sim", Family::Spin),
            ("canchar-ring+canchar-ring", Family::Block),
            ("lincan", Family::Block),
            ("io-uring+io-uring", Family::Block),
            ("gateway", Family::Other),
            ("teleport+write", Family::Other),
            ("", Family::Other),
        ] {
            assert_eq!(Family::of(method), family, "{method}");
        }
    }
}
