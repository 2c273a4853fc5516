//! The cards on the first PCI bus, by configuration mechanism 1 (PCI Local Bus Specification 3.0, 3.2.2.3).

use crate::{card, ports};

/// How many cards are found at most.
pub const CARDS_MAX: usize = 8;
const ADDRESS: u16 = 0xcf8;
const DATA: u16 = 0xcfc;
const SLOTS: u8 = 32;
/// Registers of a card's configuration.
const ID: u8 = 0x00;
const COMMAND: u8 = 0x04;
const COMMAND_IO: u32 = 1;
const REGION_0: u8 = 0x10;
const REGION_1: u8 = 0x14;
/// S5920 (AMCC data book): slow enough for the controllers in all four regions of the pass-through.
const PTCR: u16 = 0x60;
const PTCR_WAIT: u32 = 0x8080_8080;

/// A card.
#[derive(Clone, Copy, Debug, Default)]
pub struct Card {
    /// Its slot on bus 0.
    pub slot: u8,
    /// The first port of its first controller.
    pub first_port: u16,
}

/// All cards, by their slots; answers how many there are.
pub fn find(cards: &mut [Card; CARDS_MAX]) -> usize {
    let mut count = 0;
    for slot in 0..SLOTS {
        if count < CARDS_MAX && card::IDS.contains(&read(slot, ID)) {
            cards[count] = enable(slot);
            count += 1;
        }
    }
    count
}

fn enable(slot: u8) -> Card {
    write(slot, COMMAND, COMMAND_IO);
    // The lowest two bits of a region say that it is one of ports.
    let port = |register| (read(slot, register) & !3) as u16;
    ports::write_long(port(REGION_0) + PTCR, PTCR_WAIT);
    Card { slot, first_port: port(REGION_1) }
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
