//! A database: the messages of a DBC file.

use crate::{Message, dbc};
use std::{fmt, fs, io, path::Path};

/// The messages of a file.
#[derive(Clone, Debug, Default)]
pub struct Database {
    /// Messages, in the order of the file.
    pub messages: Vec<Message>,
    /// What in the file contradicts itself and was left out or read in one of two ways, a sentence each, with its line.
    pub remarks: Vec<String>,
}

/// Why a file is no database.
#[derive(Debug)]
pub enum DatabaseError {
    /// The operating system's reason.
    Io(String, io::Error),
    /// The place and the reason, for people.
    Malformed(String, String),
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "{path}: read: {error}"),
            Self::Malformed(path, reason) if path.is_empty() => f.write_str(reason),
            Self::Malformed(path, reason) => write!(f, "{path}: {reason}"),
        }
    }
}

impl std::error::Error for DatabaseError {}

impl Database {
    /// Reads a DBC file, in UTF-8 or, as Vector's tools write it, in Windows-1252.
    ///
    /// # Errors
    /// When it cannot be read, or is no DBC; the error names the line.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DatabaseError> {
        let name = path.as_ref().display().to_string();
        let bytes = fs::read(path).map_err(|error| DatabaseError::Io(name.clone(), error))?;
        Self::parse(&text(&bytes)).map_err(|error| match error {
            DatabaseError::Malformed(_, reason) => DatabaseError::Malformed(name, reason),
            io => io,
        })
    }

    /// Reads the text of a DBC file.
    ///
    /// # Errors
    /// When it is no DBC; the error names the line.
    pub fn parse(text: &str) -> Result<Self, DatabaseError> {
        dbc::parse(text).map_err(|reason| DatabaseError::Malformed(String::new(), reason))
    }

    /// The message of this name.
    pub fn message(&self, name: &str) -> Option<&Message> {
        self.messages.iter().find(|message| message.name == name)
    }
}

/// The text of a file: UTF-8, and what is not is Windows-1252, in which every byte is a character.
fn text(bytes: &[u8]) -> String {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().copied().map(windows_1252).collect(),
    }
}

/// The character of a byte in Windows-1252: that of Latin-1, but for 0x80 to 0x9F. The five bytes that it leaves undefined
/// are control characters there, too (WHATWG's index windows-1252).
fn windows_1252(byte: u8) -> char {
    #[rustfmt::skip]
    const FROM_80: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8D}', 'Ž', '\u{8F}',
        '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9D}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9F => FROM_80[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_file_in_windows_1252_is_read_as_such_and_utf_8_as_utf_8() {
        assert_eq!(super::text(b"\xB0C \xB5m \x80 \x89 \x8C\x9E \x97 \x9F"), "°C µm € ‰ Œž — Ÿ");
        assert_eq!(super::text("°C".as_bytes()), "°C");
        assert_eq!(super::text(b"\xEF\xBB\xBFVERSION"), "VERSION");
    }
}
