//! Counts lost frames by the place where they were lost: the differences between two readings of all loss counters.
//!
//! | place | counted by | unit |
//! | --- | --- | --- |
//! | the controller's FIFO | the driver, `rx_over_errors` | overrun events, each at least one frame |
//! | a virtual wire's FIFO | canwire | frames |
//! | a processor's backlog | the network stack, `/proc/net/softnet_stat` and the interface's `rx_dropped` | frames |
//! | a socket or ring | [`Receive::drops`](crate::method::Receive::drops) | frames |
//! | an output | the driver, `tx_dropped` | frames |

use crate::{
    Error, Interface, Result,
    interface::{Counters, Kind},
    netlink::wire,
};
use std::fs;

/// A reading of the loss counters of some interfaces.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Without any, the backlog's losses are those of every interface of the machine, Ethernet's too.
    interfaces: Vec<(Interface, Counters)>,
    backlog: u64,
}

/// The losses since a reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Overruns of controllers' FIFOs: events, each of at least one frame; for nodes of virtual wires, frames.
    pub controller_events: u64,
    /// Frames that were dropped because a processor's backlog was full. Of the watched interfaces: a dropped frame counts in
    /// its interface's `rx_dropped` too (`enqueue_to_backlog` in net/core/dev.c); without any, of the whole machine.
    pub backlog: u64,
    /// Frames that drivers or queues discarded on transmission.
    pub output: u64,
}

impl Watch {
    /// Reads the counters now.
    ///
    /// # Errors
    /// When an interface no longer exists or /proc cannot be read.
    pub fn start(interfaces: &[&Interface]) -> Result<Self> {
        let read = |interface: &&Interface| Ok(((*interface).clone(), counters(interface)?));
        let interfaces = interfaces.iter().map(read).collect::<Result<_>>()?;
        Ok(Self { interfaces, backlog: backlog_drops()? })
    }

    /// The losses since [`start`](Self::start).
    ///
    /// # Errors
    /// When an interface no longer exists or /proc cannot be read.
    pub fn losses(&self) -> Result<Losses> {
        let backlog = grown(backlog_drops()?, self.backlog);
        let (mut losses, mut dropped) = (Losses::default(), 0);
        for (interface, earlier) in &self.interfaces {
            let grown = counters(interface)?.since(earlier);
            losses.controller_events += grown.rx_over_errors;
            losses.output += grown.tx_dropped;
            dropped += grown.rx_dropped;
        }
        losses.backlog = if self.interfaces.is_empty() { backlog } else { backlog.min(dropped) };
        Ok(losses)
    }
}

/// The counters of an interface. For a node of a virtual wire, overruns count frames instead of events.
fn counters(interface: &Interface) -> Result<Counters> {
    let counters = interface.counters()?;
    let may_be_one = interface.kind == Kind::Can && interface.driver.is_none();
    let node = if may_be_one { wire::node(&interface.name).ok() } else { None };
    let overruns = node.map(|node| node.stats.overruns);
    Ok(Counters { rx_over_errors: overruns.unwrap_or(counters.rx_over_errors), ..counters })
}

fn backlog_drops() -> Result<u64> {
    const SOFTNET: &str = "/proc/net/softnet_stat";
    let text = fs::read_to_string(SOFTNET).map_err(|error| Error::new(SOFTNET, "read", error))?;
    Ok(softnet_drops(&text))
}

/// The growth of a sum of 32-bit counters, one per processor, any of which may have wrapped.
fn grown(later: u64, earlier: u64) -> u64 {
    u64::from((later as u32).wrapping_sub(earlier as u32))
}

/// The frames dropped from backlogs according to the text of `/proc/net/softnet_stat`: the sum of the second column,
/// hexadecimal, of every processor's row (net/core/net-procfs.c).
pub fn softnet_drops(text: &str) -> u64 {
    let column = |row: &str| u64::from_str_radix(row.split_whitespace().nth(1)?, 16).ok();
    text.lines().filter_map(column).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backlog_drops_are_summed_over_processors() {
        let text = "0000272d 00000001 00000000 0 0\n000034d9 000000ff 00000001 0 0\n";
        assert_eq!(softnet_drops(text), 256);
        assert_eq!(softnet_drops(""), 0);
    }

    #[test]
    fn a_backlog_count_that_wraps_still_grows() {
        let [before, after] =
            ["0 ffffffff 0\n0 00000004 0\n", "0 00000001 0\n0 00000005 0\n"].map(softnet_drops);
        assert_eq!(grown(after, before), 3);
    }
}
