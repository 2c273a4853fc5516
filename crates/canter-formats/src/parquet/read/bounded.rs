//! A Parquet file whose pages are bounded: a page's header is checked before the `parquet` crate sets memory aside for it.
//! A page of a few bytes may say that it unpacks to 2 GiB, and a dictionary that it has as many values.

use super::{layout, thrift::walk};
use crate::{
    source::read_at,
    trouble::{Trouble, wrong},
};
use bytes::Bytes;
use parquet::{
    errors::ParquetError,
    file::reader::{ChunkReader, Length},
};
use std::{
    fs::File,
    io::{self, BufReader},
};

/// The most bytes of a page, packed or not. Writers aim at 1 MiB, DuckDB at a row group's column: 8 MiB of FD data.
const PAGE_BYTES_MAX: u64 = 16 << 20;
/// The fewest bytes of a value in a dictionary: a number, or the length of a text.
const DICTIONARY_VALUE_BYTES: u64 = 4;
/// The longest header that is read, in bytes: it may hold the smallest and the largest value of its page.
const HEADER_BYTES_MAX: u64 = 4 << 10;
/// The file's end, which is no page, in bytes.
const END_BYTES: u64 = 8;

/// The kind of a page that is a dictionary.
const DICTIONARY: i64 = 2;
/// Encodings whose first numbers say how much memory to set aside: DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY.
const UNBOUNDED: [i64; 2] = [6, 7];

/// A file whose pages are bounded.
pub struct Bounded(pub File);

impl Length for Bounded {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for Bounded {
    type T = BufReader<File>;

    /// Called for each page's header, and for the file's end.
    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let left = self.len().saturating_sub(start);
        if left > END_BYTES {
            let mut head = vec![0; left.min(HEADER_BYTES_MAX) as usize];
            read_at(&self.0, start, &mut head)?;
            check_page(&head)?;
        }
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        if self.len().checked_sub(start).is_none_or(|left| left < length as u64) {
            return Err(ParquetError::EOF("a part behind the end of the file".to_owned()));
        }
        self.0.get_bytes(start, length)
    }
}

/// Checks what a file says of itself at its end.
pub fn check_file(file: &File) -> Result<(), Trouble> {
    let end_at = file.metadata()?.len().saturating_sub(END_BYTES);
    let mut length = [0; 4];
    read_at(file, end_at, &mut length)?;
    // The crate refuses one that is longer than the file.
    let Some(start) = end_at.checked_sub(u32::from_le_bytes(length).into()) else { return Ok(()) };
    let mut about = vec![0; (end_at - start) as usize];
    read_at(file, start, &mut about)?;
    match walk(&about, layout::FILE, &mut |_, _| {}) {
        Some(()) => Ok(()),
        None => wrong("what it says of itself at its end cannot be read (a damaged file?)"),
    }
}

/// Returns the refusal of a page, with the way out.
fn refusal(reason: &str) -> ParquetError {
    ParquetError::External(io::Error::other(reason.to_owned()).into())
}

/// Checks a page's header.
fn check_page(head: &[u8]) -> Result<(), ParquetError> {
    let mut page = Page::default();
    if walk(head, layout::PAGE, &mut |path, value| page.take(path, value)).is_none() {
        return Err(ParquetError::General("a page's header that cannot be read".to_owned()));
    }
    let bytes = page.unpacked.max(page.packed);
    if u64::try_from(bytes).is_ok_and(|bytes| bytes > PAGE_BYTES_MAX) {
        return Err(refusal("has a page of more than 16 MiB (write it with smaller pages or row groups)"));
    }
    let values = u64::try_from(page.values).unwrap_or(u64::MAX);
    if page.kind == DICTIONARY && values.saturating_mul(DICTIONARY_VALUE_BYTES) > bytes.cast_unsigned() {
        return Err(ParquetError::General("a dictionary of more values than bytes".to_owned()));
    }
    if UNBOUNDED.contains(&page.encoding) {
        return Err(refusal("has texts as differences, which canter does not read (write it as version 1)"));
    }
    Ok(())
}

/// What a page's header says.
#[derive(Default)]
struct Page {
    kind: i64,
    unpacked: i64,
    packed: i64,
    values: i64,
    encoding: i64,
}

impl Page {
    /// Takes a number of the header; `path` has the numbers of the fields that lead to it.
    fn take(&mut self, path: &[i64], value: i64) {
        match path {
            [1] => self.kind = value,
            [2] => self.unpacked = value,
            [3] => self.packed = value,
            // The header of a data page, of a dictionary, and of a data page of version 2.
            [5 | 7 | 8, 1] => self.values = value,
            [5, 2] | [8, 4] => self.encoding = value,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page's header: its kind, its sizes, and in a structure of this number the values and the encoding.
    fn header(kind: u8, bytes: u64, inner: u8, values: u64, encoding: u8) -> Vec<u8> {
        let number = |value: u64| {
            let mut rest = value << 1;
            let mut bytes = Vec::new();
            while rest >= 0x80 {
                bytes.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            bytes.push(rest as u8);
            bytes
        };
        let mut head = vec![0x15, kind << 1, 0x15];
        head.extend(number(bytes));
        head.extend([0x15, 20, (inner - 3) << 4 | 12, 0x15]);
        head.extend(number(values));
        let delta = if inner == 8 { 3 } else { 1 };
        head.extend([delta << 4 | 5, encoding << 1, 0, 0]);
        head
    }

    fn said(head: &[u8]) -> String {
        check_page(head).map_or_else(|error| error.to_string(), |()| "read".to_owned())
    }

    #[test]
    fn a_page_is_read_up_to_16_mib_and_a_dictionary_up_to_its_bytes() {
        assert_eq!(said(&header(0, 16 << 20, 5, 1 << 30, 0)), "read");
        assert!(said(&header(0, (16 << 20) + 1, 5, 1, 0)).contains("more than 16 MiB"));
        assert!(said(&header(3, 300 << 20, 8, 1, 0)).contains("more than 16 MiB"));
        assert_eq!(said(&header(2, 400, 7, 100, 0)), "read");
        assert!(said(&header(2, 400, 7, 101, 0)).contains("a dictionary of more values than bytes"));
        assert!(said(&header(0, 400, 5, 1, 6)).contains("texts as differences"));
        assert!(said(&header(3, 400, 8, 1, 7)).contains("texts as differences"));
    }

    #[test]
    fn a_header_that_ends_too_early_or_states_a_field_twice_is_refused() {
        let head = header(0, 400, 5, 100, 0);
        for end in 0..head.len() {
            assert!(said(&head[..end]).contains("cannot be read"), "{end}");
        }
        // Field 2 once more, in the long form.
        let twice = [&head[..head.len() - 1], &[0x05, 4, 0x7e, 0]].concat();
        assert!(said(&twice).contains("cannot be read"));
    }
}
