//! The card's controllers, reached through I/O ports. [`sja1000::boards`] describes the card.

use crate::ports::ChannelPorts;
use sja1000::{Controller, Error, boards::Board};

/// A controller of a card.
pub type Channel = Controller<ChannelPorts>;

/// Puts the controller at these ports of a board on its bus, at `bitrate` bit/s.
///
/// # Errors
/// No controller answers, or its clock cannot produce the bit rate.
pub fn start(board: &Board, first_port: u16, bitrate: u32) -> Result<Channel, Error> {
    let mut controller = Controller::new(ChannelPorts { first: first_port });
    controller.start(&board.bus(bitrate)?)?;
    Ok(controller)
}
