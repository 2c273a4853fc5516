//! The frames that an interface has counted, read without waiting. The kernel answers a request by rtnetlink only while no
//! interface is being changed, and a driver may need seconds for a change: too long for a thread that must empty a ring.
//! Reading `/proc/net/dev` takes no lock; it has sums of the counters.

use crate::{Error, Result, netlink::counters::Counters};
use rustix::net::{AddressFamily, SocketType, netdevice::index_to_name, socket};
use std::{fs, io};

/// The table of the calling thread's network namespace.
const PATH: &str = "/proc/thread-self/net/dev";
/// How often the counters are looked for again under another name.
const TRIES: usize = 3;

/// What an interface has counted of frames, as far as `/proc/net/dev` tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounters {
    /// Frames received, echoes of own frames and error frames with them.
    pub rx_frames: u64,
    /// Frames sent.
    pub tx_frames: u64,
    /// Events at which frames were lost in the controller or its driver's FIFO, and damaged frames.
    pub overruns: u64,
    /// Received frames that the driver or the stack dropped.
    pub dropped: u64,
}

impl From<Counters> for FrameCounters {
    /// Sums up as the kernel does for `/proc/net/dev` (net/core/net-procfs.c).
    fn from(counters: Counters) -> Self {
        let damaged = counters.rx_length_errors + counters.rx_crc_errors + counters.rx_frame_errors;
        Self {
            rx_frames: counters.rx_frames,
            tx_frames: counters.tx_frames,
            overruns: damaged + counters.rx_over_errors + counters.rx_fifo_errors,
            dropped: counters.rx_dropped + counters.rx_missed,
        }
    }
}

impl FrameCounters {
    fn with_each(&self, other: &Self, of_two: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            rx_frames: of_two(self.rx_frames, other.rx_frames),
            tx_frames: of_two(self.tx_frames, other.tx_frames),
            overruns: of_two(self.overruns, other.overruns),
            dropped: of_two(self.dropped, other.dropped),
        }
    }

    /// How much each has grown since `earlier`. On machines of 32 bits each may wrap once.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        self.with_each(earlier, crate::netlink::counters::grown)
    }

    /// The sum of two differences.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.with_each(other, u64::saturating_add)
    }

    /// The line of an interface in the text of `/proc/net/dev`.
    fn find(text: &str, name: &str) -> Option<Self> {
        let numbers = text.lines().find_map(|line| {
            let (before, numbers) = line.split_once(':')?;
            (before.trim_start() == name).then_some(numbers)
        })?;
        let numbers: Vec<u64> =
            numbers.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>().ok()?;
        // bytes packets errs drop fifo frame compressed multicast, and after these eight the same of sent frames.
        let &[_, rx_frames, _, dropped, fifo, damaged, _, _, _, tx_frames, ..] = numbers.as_slice() else {
            return None;
        };
        Some(Self { rx_frames, tx_frames, overruns: fifo + damaged, dropped })
    }
}

/// The counters of the network interface with this index, whatever its name is now; `last_name` is for errors.
pub(crate) fn read(index: u32, last_name: &str) -> Result<FrameCounters> {
    let failed = |error: io::Error| Error::new(last_name, "counters", error);
    let any = socket(AddressFamily::UNIX, SocketType::DGRAM, None).map_err(|error| failed(error.into()))?;
    for _ in 0..TRIES {
        let name = index_to_name(&any, index).map_err(|error| failed(error.into()))?;
        let text = fs::read_to_string(PATH).map_err(|error| Error::new(PATH, "read", error))?;
        let counters = FrameCounters::find(&text, &name);
        // Unless it was renamed meanwhile.
        if let (Some(counters), Ok(still)) = (counters, index_to_name(&any, index))
            && still == name
        {
            return Ok(counters);
        }
    }
    Err(failed(io::Error::from_raw_os_error(libc::ENODEV)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    1000     100    0    0    0     0          0         0     1000     100    0    0    0     0       0          0
  can0:   80000 10000000000    9    4    2     1          0         0       16       2    0    0    0     0       0          0
 vcan0:       8       1    0    0    0     0          0         0        8       1    0    0    0     0       0          0
";

    #[test]
    fn the_line_of_an_interface_is_found_by_its_whole_name() {
        let found = FrameCounters::find(TEXT, "can0");
        let wanted = FrameCounters { rx_frames: 10_000_000_000, tx_frames: 2, overruns: 3, dropped: 4 };
        assert_eq!(found, Some(wanted));
        assert_eq!(FrameCounters::find(TEXT, "can").map(|counters| counters.rx_frames), None);
        assert_eq!(FrameCounters::find("can0: 1 2 x", "can0"), None);
    }

    #[test]
    fn what_rtnetlink_reports_is_summed_up_in_the_same_way() {
        let reported = Counters {
            rx_frames: 10,
            tx_frames: 2,
            rx_dropped: 3,
            rx_missed: 1,
            rx_over_errors: 1,
            rx_fifo_errors: 2,
            rx_crc_errors: 4,
            ..Counters::default()
        };
        let counters = FrameCounters::from(reported);
        assert_eq!(counters, FrameCounters { rx_frames: 10, tx_frames: 2, overruns: 7, dropped: 4 });
        assert_eq!(counters.since(&counters), FrameCounters::default());
        assert_eq!(counters.plus(&counters).overruns, 14);
    }
}
