//! The card: an AMCC S5920 bridge, and SJA1000 controllers behind it. As drivers/net/can/sja1000/kvaser_pci.c has it.

use crate::ports::ChannelPorts;
use sja1000::{Bus, Controller, Error, Timing};

/// Vendor and device of Kvaser PCIcan.
pub const IDS: [u32; 2] = [0x8406_10e8, 0x0008_1a07];
/// The controllers' crystal, in Hz.
const CRYSTAL_HZ: u32 = 16_000_000;
/// Output control and clock divider as the board is wired.
const OUTPUT: u8 = 0xda;
const CLOCK: u8 = 0x47;

/// A controller of a card.
pub type Channel = Controller<ChannelPorts>;

/// Puts the controller at these ports on the bus, at so many bit/s.
///
/// # Errors
/// There is none, or it cannot make the bit rate.
pub fn start(first_port: u16, bitrate: u32) -> Result<Channel, Error> {
    let timing = Timing::of(CRYSTAL_HZ, bitrate)?;
    let mut controller = Controller::new(ChannelPorts { first: first_port });
    controller.start(&Bus { timing, output: OUTPUT, clock: CLOCK, listen_only: false })?;
    Ok(controller)
}
