//! The cards on the first PCI bus, by configuration mechanism 1 (PCI Local Bus Specification 3.0, 3.2.2.3).

use crate::{
    card::{self, Channel},
    ports,
};
use sja1000::{
    Error,
    boards::{self, BOARDS, Board, s5920},
};

/// The maximum number of cards found.
pub const CARDS_MAX: usize = 8;
const ADDRESS: u16 = 0xcf8;
const DATA: u16 = 0xcfc;
const SLOTS: u8 = 32;
/// Registers of a card's configuration.
const ID: u8 = 0x00;
const COMMAND: u8 = 0x04;
const COMMAND_IO: u32 = 1;
const REGION_0: u8 = 0x10;

/// A card.
#[derive(Clone, Copy, Debug)]
pub struct Card {
    board: &'static Board,
    /// The card's slot on bus 0.
    pub slot: u8,
    /// The first port of its first controller.
    first_port: u16,
}

/// All cards, by their slots, and then `None`.
pub fn find() -> [Option<Card>; CARDS_MAX] {
    let mut cards = [None; CARDS_MAX];
    let found = (0..SLOTS).filter_map(|slot| Some((slot, board_in(slot)?)));
    for (place, (slot, board)) in cards.iter_mut().zip(found) {
        *place = Some(Card::enable(board, slot));
    }
    cards
}

fn board_in(slot: u8) -> Option<&'static Board> {
    let id = read(slot, ID);
    boards::find(BOARDS, id as u16, (id >> 16) as u16)
}

impl Card {
    fn enable(board: &'static Board, slot: u8) -> Self {
        write(slot, COMMAND, COMMAND_IO);
        // The lowest two bits mark a region of ports.
        let region = |number: u8| (read(slot, REGION_0 + 4 * number) & !3) as u16;
        ports::write_long(region(board.bridge_region) + u16::from(s5920::PTCR), s5920::PTCR_WAIT);
        Self { board, slot, first_port: region(board.channels_region) }
    }

    /// Puts its first controller on its bus.
    ///
    /// # Errors
    /// As [`card::start`].
    pub fn start(&self, bitrate: u32) -> Result<Channel, Error> {
        card::start(self.board, self.first_port, bitrate)
    }
}

fn select(slot: u8, register: u8) {
    ports::write_long(ADDRESS, 1 << 31 | u32::from(slot) << 11 | u32::from(register));
}

fn read(slot: u8, register: u8) -> u32 {
    select(slot, register);
    ports::read_long(DATA)
}

fn write(slot: u8, register: u8, value: u32) {
    select(slot, register);
    ports::write_long(DATA, value);
}
