//! Zstandard, by libzstd, which is written in C: with the feature `zstd` only.

#[cfg(feature = "zstd")]
mod with {
    use std::io::{self, Read};
    use zstd::stream::raw::{Encoder, InBuffer, Operation, OutBuffer};

    /// The size of the output buffer, in bytes.
    const PACKED_BYTES: usize = 256 << 10;
    /// libzstd's default.
    const LEVEL: i32 = 3;

    /// Decompresses the input.
    pub fn unpack(input: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(zstd::stream::read::Decoder::new(input)?))
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
