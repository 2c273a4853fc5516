//! Why a recording could not be read or written: an error names the file, the step that failed and the remedy.

use std::{fmt, io, path::Path};

/// The result of an operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a recording could not be read or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system, or a decompressor, reports an error.
    Io {
        /// The file, and the place in it if that is known.
        thing: String,
        /// The step that failed: `open`, `read`, `unpack`, `write`.
        step: &'static str,
        /// The reported error.
        source: io::Error,
    },
    /// The file is in no format of the table.
    Unknown {
        /// The file.
        thing: String,
        /// Why, and the known formats.
        reason: String,
    },
    /// The file breaks a rule of its format.
    Malformed {
        /// The file.
        thing: String,
        /// Where in it: `byte 4711`, `line 12`.
        place: String,
        /// The rule, and the remedy.
        reason: String,
    },
    /// The format cannot be written there: it is only read, or it cannot be compressed or go into a pipe.
    Unsuitable {
        /// The file.
        thing: String,
        /// Why, and the remedy.
        reason: String,
    },
}

impl Error {
    pub(crate) fn io(path: &Path, step: &'static str, source: io::Error) -> Self {
        Self::Io { thing: path.display().to_string(), step, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { thing, step, source } => write!(f, "{thing}: {step}: {}", plain(source)),
            Self::Unknown { thing, reason } | Self::Unsuitable { thing, reason } => {
                write!(f, "{thing}: {reason}")
            }
            Self::Malformed { thing, place, reason } => write!(f, "{thing}: {place}: {reason}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// The text of an `io::Error` as a part of a sentence: lower case, without `(os error 2)`.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    // "No such file" becomes "no such file"; an abbreviation such as "EOF" stays.
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if first.is_uppercase() && second.is_lowercase() => {
            first.to_lowercase().chain(text[first.len_utf8()..].chars()).collect()
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_with_the_file_the_step_and_the_reason() {
        let missing = Error::io(Path::new("a.log"), "open", io::Error::from_raw_os_error(2));
        assert!(missing.to_string().starts_with("a.log: open: "), "{missing}");
        assert!(!missing.to_string().contains("os error"), "{missing}");
        assert!(std::error::Error::source(&missing).is_some());
        let wrong = Error::Malformed { thing: "a".into(), place: "line 2".into(), reason: "no DLC".into() };
        assert_eq!(wrong.to_string(), "a: line 2: no DLC");
    }
}
