//! Addresses and bits of the registers in PeliCAN mode, by the data sheet's names (section 6.4.1, table 13).
//!
//! Bits that are not named are 0 when read and to be written as 0.

/// Mode (6.4.3). Bits 1 to 3 can be written only while bit 0 is set.
pub const MOD: u8 = 0;
/// RM, bit 0: reset mode. Leaving it, the chip waits for 11 recessive bits, after bus-off for 128 times 11.
pub const MOD_RESET: u8 = 1 << 0;
/// LOM, bit 1: listens only, acknowledges nothing. QEMU ignores it.
pub const MOD_LISTEN_ONLY: u8 = 1 << 1;
/// STM, bit 2: self test, a frame needs no acknowledgement. QEMU ignores it.
pub const MOD_SELF_TEST: u8 = 1 << 2;
/// AFM, bit 3: one long acceptance filter instead of two short ones. QEMU 7.2 gets the long one wrong.
pub const MOD_SINGLE_FILTER: u8 = 1 << 3;
/// SM, bit 4: sleeps when the bus is silent.
pub const MOD_SLEEP: u8 = 1 << 4;

/// Command (6.4.4). Written only; reads as 0.
pub const CMR: u8 = 1;
/// TR, bit 0: send what is in the transmit buffer.
pub const CMR_SEND: u8 = 1 << 0;
/// AT, bit 1: do not send it, unless it is on its way; with TR, send it once only.
pub const CMR_ABORT: u8 = 1 << 1;
/// RRB, bit 2: the frame in the receive buffer has been taken, the next one of the FIFO takes its place.
pub const CMR_RELEASE: u8 = 1 << 2;
/// CDO, bit 3: clears SR's data overrun.
pub const CMR_CLEAR_OVERRUN: u8 = 1 << 3;
/// SRR, bit 4: send, and receive it too.
pub const CMR_SELF_RECEIVE: u8 = 1 << 4;

/// Status (6.4.5). Read only.
pub const SR: u8 = 2;
/// RBS, bit 0: at least one frame waits in the FIFO.
pub const SR_RECEIVED: u8 = 1 << 0;
/// DOS, bit 1: a frame was lost because the FIFO of 64 bytes was full.
pub const SR_OVERRUN: u8 = 1 << 1;
/// TBS, bit 2: the transmit buffer may be written.
pub const SR_BUFFER_FREE: u8 = 1 << 2;
/// TCS, bit 3: the last frame to be sent has been sent.
pub const SR_SENT: u8 = 1 << 3;
/// RS, bit 4: receiving.
pub const SR_RECEIVING: u8 = 1 << 4;
/// TS, bit 5: sending.
pub const SR_SENDING: u8 = 1 << 5;
/// ES, bit 6: an error counter has reached [`EWLR`].
pub const SR_ERROR: u8 = 1 << 6;
/// BS, bit 7: bus-off. The chip has set reset mode.
pub const SR_BUS_OFF: u8 = 1 << 7;

/// Interrupts (6.4.6). Read only; reading clears all but RI, which stays while the FIFO holds a frame. QEMU latches them
/// whether enabled or not.
pub const IR: u8 = 3;
/// Interrupt enable (6.4.7): the same bits. QEMU does not update the line when it is written.
pub const IER: u8 = 4;
/// RI, bit 0: a frame waits.
pub const IR_RECEIVED: u8 = 1 << 0;
/// TI, bit 1: the transmit buffer has become free.
pub const IR_SENT: u8 = 1 << 1;
/// EI, bit 2: SR's ES or BS has changed.
pub const IR_WARNING: u8 = 1 << 2;
/// DOI, bit 3: SR's DOS has been set.
pub const IR_OVERRUN: u8 = 1 << 3;
/// WUI, bit 4: woken up.
pub const IR_WAKE_UP: u8 = 1 << 4;
/// EPI, bit 5: error-passive now, or active again.
pub const IR_PASSIVE: u8 = 1 << 5;
/// ALI, bit 6: arbitration lost; [`ALC`] has the position.
pub const IR_ARBITRATION: u8 = 1 << 6;
/// BEI, bit 7: a bus error; [`ECC`] has its kind.
pub const IR_BUS_ERROR: u8 = 1 << 7;

/// Bus timing 0 (6.5.1), written in reset mode: bits 5…0 prescaler less 1, bits 7…6 SJW less 1.
pub const BTR0: u8 = 6;
/// Bus timing 1 (6.5.2), written in reset mode: bits 3…0 TSEG1 less 1, bits 6…4 TSEG2 less 1, bit 7 three samples a bit.
pub const BTR1: u8 = 7;
/// Output control (6.5.3), written in reset mode: the wiring of TX0 and TX1, given by the board.
pub const OCR: u8 = 8;
/// Arbitration lost capture (6.4.8).
pub const ALC: u8 = 11;
/// Error code capture (6.4.9).
pub const ECC: u8 = 12;
/// Error warning limit (6.4.10), 96 after power-on.
pub const EWLR: u8 = 13;
/// Receive error counter (6.4.11), written in reset mode only.
pub const RXERR: u8 = 14;
/// Transmit error counter (6.4.12), written in reset mode only.
pub const TXERR: u8 = 15;

/// The frame's first byte in operating mode: written to the transmit buffer (6.4.13), read from the receive buffer
/// (6.4.14).
pub const FRAME: u8 = 16;
/// FF, bit 7 of the first byte: an extended identifier.
pub const FRAME_EXTENDED: u8 = 1 << 7;
/// RTR, bit 6 of it: a remote frame.
pub const FRAME_REMOTE: u8 = 1 << 6;
/// Bits 3…0 of it: the DLC, of which 9…15 stand for 8 bytes.
pub const FRAME_DLC: u8 = 0x0f;
/// Where the identifier begins, from its highest bit: two bytes, extended four.
pub const IDENTIFIER: u8 = 17;

/// Acceptance code 0…3 in reset mode (6.4.15).
pub const ACR: u8 = 16;
/// Acceptance mask 0…3 in reset mode: where it is 1 a bit may be either.
pub const AMR: u8 = 20;
/// Frames in the FIFO (6.4.16).
pub const RMC: u8 = 29;
/// Clock divider (6.5.4): bit 7 PeliCAN mode, bit 6 input comparator bypassed, bits 3…0 the clock output, given by
/// the board. Bits 7 and 6 are written in reset mode only.
pub const CDR: u8 = 31;
/// CAN mode, bit 7 of CDR: PeliCAN.
pub const CDR_PELICAN: u8 = 1 << 7;
