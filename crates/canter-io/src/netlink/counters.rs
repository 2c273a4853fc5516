//! The counters of an interface since it was created: those of the network layer and those of the controller.
//!
//! linux/if_link.h: `struct rtnl_link_stats64`; linux/can/netlink.h: `struct can_device_stats`.

use super::attribute::{u32_at, u64_at};

/// The counters: one table for the structure, its difference, its rows and where the kernel has them.
macro_rules! counters {
    (link { $($link:ident @ $link_at:literal $link_about:literal)* } controller { $($controller:ident @ $controller_at:literal $controller_about:literal)* }) => {
        /// What an interface has counted. They only grow, and are not reset by up or down.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $(#[doc = $link_about] pub $link: u64,)*
            $(#[doc = $controller_about] pub $controller: u32,)*
        }

        impl Counters {
            /// How much each has grown since `earlier`. The controller's have 32 bits, and on machines of 32 bits the
            /// others too; those may wrap once.
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                Self {
                    $($link: grown(self.$link, earlier.$link),)*
                    $($controller: self.$controller.wrapping_sub(earlier.$controller),)*
                }
            }

            /// The sum of two differences.
            #[must_use]
            pub fn plus(&self, other: &Self) -> Self {
                Self {
                    $($link: self.$link.saturating_add(other.$link),)*
                    $($controller: self.$controller.saturating_add(other.$controller),)*
                }
            }

            /// All of them with their names, for results and tables.
            pub fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($link), self.$link),)* $((stringify!($controller), u64::from(self.$controller)),)*].into_iter()
            }

            /// From `IFLA_STATS64` and, of CAN controllers, `IFLA_INFO_XSTATS`; what is missing stays 0.
            pub(crate) fn decode(link: &[u8], controller: &[u8]) -> Self {
                Self {
                    $($link: u64_at(link, 8 * $link_at).unwrap_or_default(),)*
                    $($controller: u32_at(controller, 4 * $controller_at).unwrap_or_default(),)*
                }
            }
        }
    };
}

/// The growth of a counter that wraps at 2⁶⁴, or at 2³² where a driver counts in a `long` of 32 bits.
pub(crate) fn grown(later: u64, earlier: u64) -> u64 {
    let narrow = later < earlier && earlier <= u64::from(u32::MAX);
    if narrow { (1 << 32) - earlier + later } else { later.wrapping_sub(earlier) }
}

counters! {
    link {
        rx_frames @ 0 "Frames received, echoes of own frames and error frames with them."
        tx_frames @ 1 "Frames sent."
        rx_bytes @ 2 "Payload bytes received."
        tx_bytes @ 3 "Payload bytes sent."
        rx_errors @ 4 "Receive errors of any kind."
        tx_errors @ 5 "Transmit errors of any kind."
        rx_dropped @ 6 "Received frames that the driver or the stack dropped."
        tx_dropped @ 7 "Frames that the driver or the queue dropped on sending, also for invalid lengths."
        rx_length_errors @ 10 "Received frames of a wrong length."
        rx_over_errors @ 11 "Frames lost because the controller's FIFO was full."
        rx_crc_errors @ 12 "Received frames with a wrong checksum."
        rx_frame_errors @ 13 "Received frames of a wrong form."
        rx_fifo_errors @ 14 "Frames lost in a FIFO between controller and driver."
        rx_missed @ 15 "Frames lost because the host was too slow."
        tx_aborted @ 16 "Transmissions given up (one-shot, lost arbitration)."
        rx_nohandler @ 23 "Frames that arrived on an interface that was not ready for them."
    }
    controller {
        bus_error @ 0 "Bus errors seen by the controller (with berr-reporting)."
        error_warning @ 1 "Changes to error warning."
        error_passive @ 2 "Changes to error passive."
        bus_off @ 3 "Changes to bus off."
        arbitration_lost @ 4 "Arbitrations lost."
        restarts @ 5 "Restarts after bus off."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_counts_what_came_since_and_survives_a_wrap() {
        let earlier = Counters { rx_frames: 5, bus_error: u32::MAX, ..Counters::default() };
        let later = Counters { rx_frames: 9, bus_error: 1, ..Counters::default() };
        let grown = later.since(&earlier);
        assert_eq!((grown.rx_frames, grown.bus_error), (4, 2));
        assert_eq!(grown.rows().map(|(_, count)| count).sum::<u64>(), 6);
        assert_eq!(grown.plus(&grown).rows().map(|(_, count)| count).sum::<u64>(), 12);
        for (earlier, later) in [(u64::from(u32::MAX) - 1, 3), (u64::MAX - 1, 3)] {
            let [earlier, later] =
                [earlier, later].map(|rx_frames| Counters { rx_frames, ..Counters::default() });
            assert_eq!(later.since(&earlier).rx_frames, 5, "{earlier:?}");
        }
    }

    #[test]
    fn each_counter_is_read_from_its_place_in_the_header() {
        let link: Vec<u8> = (0..25u64).flat_map(u64::to_ne_bytes).collect();
        let controller: Vec<u8> = (100..106u32).flat_map(u32::to_ne_bytes).collect();
        let counters = Counters::decode(&link, &controller);
        assert_eq!((counters.rx_over_errors, counters.rx_missed, counters.rx_nohandler), (11, 15, 23));
        assert_eq!((counters.bus_error, counters.restarts), (100, 105));
        assert_eq!(Counters::decode(&link[..9], &[]), Counters { rx_frames: 0, ..Counters::default() });
    }
}
