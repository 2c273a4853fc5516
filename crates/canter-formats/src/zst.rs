//! Zstandard, by libzstd, which is written in C: with the feature `zstd` only.

#[cfg(feature = "zstd")]
mod with {
    use std::io::{self, Read};
    use zstd::stream::raw::{Encoder, InBuffer, Operation, OutBuffer};

    /// The size of the output buffer, in bytes.
    const PACKED_BYTES: usize = 256 << 10;
    /// libzstd's default.
    const LEVEL: i32 = 3;

    /// The largest window that is unpacked, as a power of two: 32 MiB. The window is memory that unpacking takes, and a few
    /// bytes of a file can ask for 128 MiB. zstd's levels 1 to 20 stay below.
    const WINDOW_LOG_MAX: u32 = 25;

    /// Decompresses the input.
    pub fn unpack(input: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
        let mut decoder = zstd::stream::read::Decoder::new(input)?;
        decoder.window_log_max(WINDOW_LOG_MAX)?;
        Ok(Box::new(Unpacked(decoder)))
    }

    /// Names the way out of a window that is too large.
    struct Unpacked<R>(R);

    impl<R: Read> Read for Unpacked<R> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(buffer).map_err(|error| match error.to_string().contains("too much memory") {
                true => {
                    io::Error::other("packed with a window above 32 MiB (unpack it with zstd -d --long=31)")
                }
                false => error,
            })
        }
    }

    /// Compresses a stream.
    pub struct Packer {
        encoder: Encoder<'static>,
        packed: Vec<u8>,
    }

    impl Packer {
        pub fn new() -> io::Result<Self> {
            Ok(Self { encoder: Encoder::new(LEVEL)?, packed: vec![0; PACKED_BYTES] })
        }

        /// Compresses `bytes`, and ends the stream with `end`; passes compressed output to `put`.
        pub fn pack(
            &mut self,
            bytes: &[u8],
            end: bool,
            mut put: impl FnMut(&[u8]) -> io::Result<()>,
        ) -> io::Result<()> {
            let mut input = InBuffer::around(bytes);
            loop {
                let mut output = OutBuffer::around(self.packed.as_mut_slice());
                let consumed = input.pos() == bytes.len();
                let left = if end && consumed {
                    self.encoder.finish(&mut output, true)?
                } else {
                    self.encoder.run(&mut input, &mut output)?
                };
                let count = output.pos();
                put(&self.packed[..count])?;
                if if end { consumed && left == 0 } else { input.pos() == bytes.len() } {
                    return Ok(());
                }
            }
        }
    }
}

#[cfg(not(feature = "zstd"))]
mod without {
    use std::io::{self, Read};

    fn refusal() -> io::Error {
        let reason = "zstd compression needs the feature `zstd` of the crate canter-formats";
        io::Error::new(io::ErrorKind::Unsupported, reason)
    }

    pub fn unpack(_input: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
        Err(refusal())
    }

    /// Never exists.
    pub enum Packer {}

    impl Packer {
        pub fn new() -> io::Result<Self> {
            Err(refusal())
        }

        pub fn pack(
            &mut self,
            _bytes: &[u8],
            _end: bool,
            _put: impl FnMut(&[u8]) -> io::Result<()>,
        ) -> io::Result<()> {
            match *self {}
        }
    }
}

#[cfg(feature = "zstd")]
pub use with::{Packer, unpack};
#[cfg(not(feature = "zstd"))]
pub use without::{Packer, unpack};
