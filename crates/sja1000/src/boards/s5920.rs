//! AMCC S5920, the PCI bridge of [`Board`](super::Board): offsets and bits of its 32-bit registers. Source: AMCC S5920 data
//! book; Linux, drivers/net/can/sja1000/kvaser_pci.c.

/// Ports of the bridge's registers.
pub const PORTS: u16 = 128;

/// Interrupt control and status.
pub const INTCSR: u8 = 0x38;
/// Bit 13 of INTCSR: an interrupt of the controllers reaches the PCI interrupt line.
pub const INTCSR_ADDON: u32 = 1 << 13;

/// Pass-through configuration: a byte for each of four regions behind the bridge.
pub const PTCR: u8 = 0x60;
/// PTCR with which every region is slow enough for the controllers. To be written once the card is enabled, before a
/// controller is reached.
pub const PTCR_WAIT: u32 = 0x8080_8080;
