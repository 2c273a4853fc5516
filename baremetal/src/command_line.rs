//! The image's options: `name=number` words, as QEMU's -append passes them.

use core::str;

/// The longest command line.
const LEN_MAX: usize = 1024;
/// The magic number of a `struct hvm_start_info` (xen/include/public/arch-x86/hvm/start_info.h).
const START_MAGIC: u32 = 0x336e_c578;
/// The offset of the address of the command line in it.
const START_COMMAND_LINE: usize = 24;

/// The options of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// bit/s of all controllers: `bitrate`.
    pub bitrate: u32,
    /// Cards, by their order on the bus: frames come from `from` and go to `to`.
    pub from: usize,
    /// See `from`.
    pub to: usize,
    /// End after this number of frames and print their account; 0: never. `frames`.
    pub frames: u64,
    /// Send this number of frames and print their latencies; 0: none. `measure`.
    pub measure: u64,
    /// Measuring: the cards that send and receive, and bytes of a frame, 2…8. `send`, `receive`, `len`.
    pub send: usize,
    /// See `send`.
    pub receive: usize,
    /// See `send`.
    pub len: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { bitrate: 1_000_000, from: 0, to: 1, frames: 0, measure: 0, send: 2, receive: 3, len: 8 }
    }
}

impl Options {
    /// From the words of a command line.
    ///
    /// # Errors
    /// The word that is not understood.
    pub fn parse(text: &str) -> Result<Self, &str> {
        let mut options = Self::default();
        for word in text.split_ascii_whitespace() {
            let (name, value) = word.split_once('=').ok_or(word)?;
            let value: u32 = value.parse().map_err(|_| word)?;
            match name {
                "bitrate" => options.bitrate = value,
                "from" => options.from = value as usize,
                "to" => options.to = value as usize,
                "frames" => options.frames = value.into(),
                "measure" => options.measure = value.into(),
                "send" => options.send = value as usize,
                "receive" => options.receive = value as usize,
                "len" if (2..=8).contains(&value) => options.len = value as usize,
                _ => return Err(word),
            }
        }
        Ok(options)
    }
}

/// The command line that the loader has left; empty without one.
///
/// # Safety
/// `start` is what a PVH loader has passed in %ebx, and the first GiB of memory is mapped to itself.
pub unsafe fn from_loader(start: u64) -> &'static str {
    // The loader, which is no part of this program, has exposed both structures.
    let start = core::ptr::with_exposed_provenance::<u8>(start as usize);
    // SAFETY: a PVH loader passes the address of such a structure.
    let magic = unsafe { start.cast::<u32>().read_unaligned() };
    if magic != START_MAGIC {
        return "";
    }
    // SAFETY: the same.
    let text = unsafe { start.add(START_COMMAND_LINE).cast::<u64>().read_unaligned() };
    if text == 0 {
        return "";
    }
    let text = core::ptr::with_exposed_provenance::<u8>(text as usize);
    // SAFETY: it ends with a NUL, and what is looked at first lies before that.
    let end = |at: &usize| unsafe { text.add(*at).read() } == 0;
    let len = (0..LEN_MAX).find(end).unwrap_or(LEN_MAX);
    // SAFETY: all these bytes have been read, and nobody writes them.
    str::from_utf8(unsafe { core::slice::from_raw_parts(text, len) }).unwrap_or("")
}
