//! The serial line COM1, and the end of the machine.

use crate::ports;
use core::fmt;

const COM1: u16 = 0x3f8;
const LINE_STATUS: u16 = COM1 + 5;
const ROOM: u8 = 1 << 5;
/// Polls of a full transmitter before the character is dropped: the machine may have no serial line.
const POLLS_MAX: u32 = 1 << 16;
/// QEMU's `-device isa-debug-exit,iobase=0xf4`: it ends with 2 × value + 1.
const EXIT: u16 = 0xf4;
/// The keyboard controller's reset line.
const KEYBOARD: u16 = 0x64;
const RESET: u8 = 0xfe;

/// The serial line.
#[derive(Debug)]
pub struct Console;

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(put);
        Ok(())
    }
}

fn put(byte: u8) {
    for _ in 0..POLLS_MAX {
        if ports::read(LINE_STATUS) & ROOM != 0 {
            break;
        }
        core::hint::spin_loop();
    }
    ports::write(COM1, byte);
}

/// Writes a line that begins with `bare: `.
#[macro_export]
macro_rules! say {
    ($($word:tt)*) => {{
        use core::fmt::Write;
        let _ = writeln!($crate::console::Console, "bare: {}", format_args!($($word)*));
    }};
}

/// How the image ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Success. QEMU's exit code is 1.
    Done = 0,
    /// Failure. QEMU's exit code is 3.
    Failed = 1,
}

/// Ends the machine by QEMU's exit device, otherwise by a reset.
pub fn end(end: End) -> ! {
    ports::write(EXIT, end as u8);
    ports::write(KEYBOARD, RESET);
    ports::halt()
}
