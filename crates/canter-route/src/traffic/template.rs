//! Test frames: constant except for a number in the first two payload bytes, low byte first.

use canter_cli::failure::{self, Exit, Failure};
use canter_io::{
    Frame, Identifier,
    frame::{BRS, BitRate},
};
use clap::Args;

/// The test frames
#[derive(Args, Clone, Debug)]
pub struct Template {
    /// Identifier, hexadecimal; extended if longer than three digits
    #[arg(long, default_value = "123", value_name = "ID")]
    id: String,
    /// Extended identifier (29 bits)
    #[arg(long)]
    ext: bool,
    /// Payload in bytes; at least 2, for the frame's number
    #[arg(long, default_value_t = 2, value_name = "BYTES")]
    len: u8,
    /// FD frames
    #[arg(long)]
    fd: bool,
    /// FD: switch the bit rate for the payload
    #[arg(long, requires = "fd")]
    brs: bool,
}

/// Payload after the number: alternating bits need no stuffing.
const FILLING: u8 = 0x55;

impl Template {
    /// Classic frames of `len` bytes.
    pub fn classic(len: u8) -> Self {
        Self { id: "123".to_owned(), ext: false, len, fd: false, brs: false }
    }

    /// Frames of this identifier (more than three digits: extended) and of `len` bytes; FD ones switch the bit rate.
    pub fn new(id: &str, len: u8, fd: bool) -> Self {
        Self { id: id.to_owned(), fd, brs: fd, ..Self::classic(len) }
    }

    /// The frame of number 0.
    pub fn frame(&self) -> failure::Result<Frame> {
        let usage = |message: String| Failure::new(Exit::Usage, message);
        let bits = u32::from_str_radix(&self.id, 16)
            .map_err(|_| usage(format!("--id {}: is not a hexadecimal number", self.id)))?;
        let extended = self.ext || self.id.len() > 3;
        let id = match u16::try_from(bits) {
            Ok(bits) if !extended => Identifier::Sff(bits),
            _ => Identifier::Eff(bits),
        };
        if self.len < 2 {
            return Err(usage(format!("--len {}: must be at least 2, for the frame's number", self.len)));
        }
        let mut data = vec![FILLING; usize::from(self.len)];
        data[..2].fill(0);
        let flags = if self.brs { BRS } else { 0 };
        let frame = if self.fd { Frame::fd(id, &data, flags) } else { Frame::classic(id, &data) };
        frame.map_err(|error| usage(format!("test frame {}, {} bytes: {error}", self.id, self.len)))
    }
}

/// Writes a number into a test frame.
pub fn set_number(frame: &mut Frame, number: u16) {
    frame.data[..2].copy_from_slice(&number.to_le_bytes());
}

/// The number of a received frame; `None` when its identifier, length or kind differs from `template`.
pub fn number(frame: &Frame, template: &Frame) -> Option<u16> {
    let alike =
        frame.can_id == template.can_id && frame.len == template.len && frame.is_fd() == template.is_fd();
    alike.then(|| u16::from_le_bytes([frame.data[0], frame.data[1]]))
}

/// Mean duration of the first `count` test frames with their interframe spaces. Number 0 takes up to a tenth more than
/// most, because its zeros need stuff bits.
pub fn mean_ns(template: &Frame, count: u64, rate: BitRate) -> u64 {
    let mut frame = *template;
    let numbers = count.clamp(1, 1 << 16);
    let durations = (0..numbers).map(|number| {
        set_number(&mut frame, number as u16);
        frame.duration_with_interframe_ns(rate)
    });
    durations.sum::<u64>() / numbers
}
