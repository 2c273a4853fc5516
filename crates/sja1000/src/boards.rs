//! Properties of boards, not of the chip: the PCI identifiers of a card, the addresses of its controllers, the wiring of
//! their pins, and the setup of its bus bridge. A card is a row of [`BOARDS`].
//!
//! Nothing here touches a port: finding cards and reaching registers is the business of the program, which differs from one
//! operating system to the next.
//!
//! ```
//! use sja1000::boards::{self, BOARDS};
//!
//! let board = boards::find(BOARDS, 0x10e8, 0x8406).expect("a Kvaser PCIcan");
//! let settings = board.bus(500_000)?; // for Controller::start
//! assert_eq!((settings.output, settings.clock), (0xda, 0x47));
//! assert_eq!(board.channel_offset(1), Some(32)); // the second controller, behind the first
//! # Ok::<(), sja1000::Error>(())
//! ```

mod board;
pub mod kvaser;
pub mod s5920;

pub use board::Board;

/// The supported cards.
pub const BOARDS: &[Board] = &[kvaser::PCICAN];

/// The row of `boards` for a card with this vendor and device, as its PCI configuration space has them.
pub fn find(boards: &[Board], vendor: u16, device: u16) -> Option<&Board> {
    boards.iter().find(|board| board.ids.contains(&(vendor, device)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn a_card_is_found_by_each_of_its_identifiers_and_by_no_other() {
        for &(vendor, device) in kvaser::PCICAN.ids {
            assert_eq!(find(BOARDS, vendor, device), Some(&kvaser::PCICAN));
        }
        assert_eq!(find(BOARDS, 0x10e8, 0x0008), None, "one card's vendor with another card's device");
        assert_eq!(find(&[], 0x10e8, 0x8406), None);
    }

    #[test]
    fn identifiers_name_one_row() {
        for board in BOARDS {
            for &(vendor, device) in board.ids {
                assert_eq!(find(BOARDS, vendor, device), Some(board), "{vendor:04x}:{device:04x}");
            }
        }
    }

    #[test]
    fn a_card_has_the_controllers_that_fit_on_it_and_no_more() {
        let offsets = [0, 1, 2, 3, 4, u8::MAX].map(|channel| kvaser::PCICAN.channel_offset(channel));
        assert_eq!(offsets, [Some(0), Some(32), Some(64), Some(96), None, None]);
    }

    #[test]
    fn settings_are_those_of_the_board_at_the_bit_rate() {
        let bus = kvaser::PCICAN.bus(500_000).unwrap();
        // 0x00 0x1c: the usual pair for 500 kbit/s with a crystal of 16 MHz.
        assert_eq!((bus.timing.btr0(), bus.timing.btr1()), (0x00, 0x1c));
        assert_eq!((bus.output, bus.clock, bus.listen_only), (0xda, 0x47, false));
        assert_eq!(kvaser::PCICAN.bus(333_333), Err(Error::Timing));
    }
}
