//! A row of the table of boards.

use crate::{Bus, Error, REGISTERS, Timing};

/// A PCI card with SJA1000 controllers behind I/O ports, one after the other, 32 ports each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Board {
    /// The manufacturer's name for it.
    pub name: &'static str,
    /// Vendor and device in PCI configuration space; the card has one of these pairs.
    pub ids: &'static [(u16, u16)],
    /// Which I/O region (base address register, from 0) holds the registers of the bus bridge, [`s5920`](super::s5920).
    pub bridge_region: u8,
    /// Which I/O region holds the controllers.
    pub channels_region: u8,
    /// Controllers on the card at most. Where one is not fitted, its registers do not enter reset mode.
    pub channels_max: u8,
    /// The controllers' crystal, in Hz.
    pub crystal_hz: u32,
    /// OCR: how the outputs are wired.
    pub output: u8,
    /// CDR: how the clock output is used.
    pub clock: u8,
}

impl Board {
    /// The settings of a controller on this board at `bitrate` bit/s; it acknowledges what it hears.
    ///
    /// # Errors
    /// [`Error::Timing`] when the crystal cannot be divided to that rate.
    pub fn bus(&self, bitrate: u32) -> Result<Bus, Error> {
        let timing = Timing::new(self.crystal_hz, bitrate)?;
        Ok(Bus { timing, output: self.output, clock: self.clock, listen_only: false })
    }

    /// From the first port of the controllers' region to the first register of a controller, which are counted from 0;
    /// `None` when the board never has that many.
    pub fn channel_offset(&self, channel: u8) -> Option<u16> {
        (channel < self.channels_max).then(|| u16::from(channel) * u16::from(REGISTERS))
    }
}
