//! Why a decoder has no next frame.

use std::io;

/// Why a decoder has no next frame. The [`Reader`](crate::Reader) adds the file and the place in it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Trouble {
    /// The file ends in the middle of an entry.
    Cut,
    /// The file breaks a rule of its format: the rule, and the remedy.
    Wrong(String),
    /// The operating system, or a decompressor, reports an error.
    Io(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        // Decompressors report an input that ends too early with this error.
        if error.kind() == io::ErrorKind::UnexpectedEof { Self::Cut } else { Self::Io(error) }
    }
}

/// Returns the error that the file breaks a rule of its format.
pub(crate) fn wrong<T>(rule: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble::Wrong(rule.into()))
}
