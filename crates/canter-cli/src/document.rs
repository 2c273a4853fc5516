//! A TOML document with positions: errors have the shape `file:line:column: key: message`, with the nearest known word.

use crate::failure::{Exit, Failure, Result};
use serde::de::DeserializeOwned;
use std::{
    fmt,
    ops::{Range, RangeInclusive},
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// A position in a file. Lines and columns count from 1.
#[derive(Clone, Copy, Debug, Default, Eq)]
pub struct Place {
    /// The line; 0 without a file.
    pub line: usize,
    /// The column in characters; 0 without a file.
    pub column: usize,
}

impl PartialEq for Place {
    /// Rules are equal regardless of their positions.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A file's text, and where its lines start.
pub struct Document<'a> {
    file: String,
    text: &'a str,
    line_starts: Vec<usize>,
}

impl<'a> Document<'a> {
    /// Takes a text; `file` is its name in errors.
    pub fn new(file: impl fmt::Display, text: &'a str) -> Self {
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { file: file.to_string(), text, line_starts }
    }

    /// Parses the text as TOML, without checking keys and values.
    pub fn parse(&self) -> Result<DeTable<'a>> {
        DeTable::parse(self.text).map(Spanned::into_inner).map_err(|error| self.toml_failure(&error))
    }

    /// Reads the text as a type whose fields are the known keys.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        toml::from_str(self.text).map_err(|error| self.toml_failure(&error))
    }

    fn toml_failure(&self, error: &toml::de::Error) -> Failure {
        let message = error.message();
        // serde writes: unknown field `perod`, expected one of `period`, `phase`
        let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        let unknown = |what| format!("{:?}: unknown {what}{}", quoted[0], instead(quoted[0], &quoted[1..]));
        let message = match message {
            _ if quoted.len() < 2 => message.lines().collect::<Vec<_>>().join("; "),
            _ if message.starts_with("unknown field `") => unknown("key"),
            _ if message.starts_with("unknown variant `") => unknown("word"),
            _ => message.lines().collect::<Vec<_>>().join("; "),
        };
        self.failure(&error.span().unwrap_or(0..0), message)
    }

    /// The position of a span in the text.
    pub fn place(&self, span: &Range<usize>) -> Place {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = self.line_starts.partition_point(|&start| start <= before.len());
        let line_start = self.line_starts[line - 1];
        Place { line, column: before[line_start..].chars().count() + 1 }
    }

    /// An error at a position: `file:line:column: message`.
    pub fn failure(&self, span: &Range<usize>, message: impl fmt::Display) -> Failure {
        self.failure_at(self.place(span), message)
    }

    /// An error at a position that was computed before.
    pub fn failure_at(&self, Place { line, column }: Place, message: impl fmt::Display) -> Failure {
        Failure::new(Exit::Usage, format!("{}:{line}:{column}: {message}", self.file))
    }

    /// A table whose keys are all known.
    pub fn table<'t>(
        &'t self,
        table: &'t DeTable<'a>,
        span: Range<usize>,
        known: &[&str],
    ) -> Result<Table<'t, 'a>> {
        for key in table.keys() {
            let word: &str = key.get_ref();
            if !known.contains(&word) {
                let message = format!("{word:?}: unknown key{}", instead(word, known));
                return Err(self.failure(&key.span(), message));
            }
        }
        Ok(Table { document: self, table, span })
    }
}

/// A table with its position.
pub struct Table<'t, 'a> {
    document: &'t Document<'a>,
    table: &'t DeTable<'a>,
    /// The table's place in the text, in bytes.
    pub span: Range<usize>,
}

impl<'t, 'a> Table<'t, 'a> {
    /// The position of a span in the document.
    pub fn place(&self, span: &Range<usize>) -> Place {
        self.document.place(span)
    }

    /// An error at a position: `file:line:column: message`.
    pub fn fault<T>(&self, span: &Range<usize>, message: impl fmt::Display) -> Result<T> {
        Err(self.document.failure(span, message))
    }

    /// The value of a required key.
    pub fn need<T>(&self, key: &str, value: Option<T>) -> Result<T> {
        value.map_or_else(|| self.fault(&self.span, format!("{key:?} is missing")), Ok)
    }

    /// The value of a key, whatever its kind.
    pub fn get(&self, key: &str) -> Option<&'t Spanned<DeValue<'a>>> {
        self.table.get(key)
    }

    /// The first of `keys` that the table has.
    pub fn first_key(&self, keys: &[&'static str]) -> Option<(&'static str, Range<usize>)> {
        keys.iter().find_map(|&key| Some((key, self.table.get_key_value(key)?.0.span())))
    }

    /// The value of a key, read by `read` if it has the expected kind, with its position.
    fn typed<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'t DeValue<'a>) -> Option<T>,
    ) -> Result<Option<(T, Range<usize>)>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match read(value.get_ref()) {
            Some(read) => Ok(Some((read, value.span()))),
            None => {
                let kind = kind(value.get_ref());
                self.fault(&value.span(), format!("{key}: must be {expected}, not {kind}"))
            }
        }
    }

    /// A string.
    pub fn text(&self, key: &str) -> Result<Option<(&'t str, Range<usize>)>> {
        self.typed(key, "a string", DeValue::as_str)
    }

    /// The text of a required key.
    pub fn needed_text(&self, key: &str) -> Result<(&'t str, Range<usize>)> {
        self.need(key, self.text(key)?)
    }

    /// A string or a whole number, parsed by `parse`.
    pub fn parsed<T>(
        &self,
        key: &str,
        parse: impl FnOnce(&str) -> std::result::Result<T, String>,
    ) -> Result<Option<(T, Range<usize>)>> {
        let text = |value: &'t DeValue<'a>| match value {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Integer(_) => Some(whole_number(value)?.to_string()),
            _ => None,
        };
        let Some((text, span)) = self.typed(key, "a string or a number", text)? else { return Ok(None) };
        match parse(&text) {
            Ok(value) => Ok(Some((value, span))),
            Err(error) => self.fault(&span, format!("{key}: {error}")),
        }
    }

    /// True or false.
    pub fn flag(&self, key: &str) -> Result<Option<bool>> {
        Ok(self.typed(key, "true or false", DeValue::as_bool)?.map(|(on, _)| on))
    }

    /// A whole number in a range.
    pub fn number(&self, key: &str, range: RangeInclusive<i64>) -> Result<Option<i64>> {
        let Some((value, span)) = self.typed(key, "a number", |value| value.is_integer().then_some(value))?
        else {
            return Ok(None);
        };
        match whole_number(value).filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => self.fault(&span, format!("{key}: must be {}…{}", range.start(), range.end())),
        }
    }

    /// A number from 0 to 255.
    pub fn byte(&self, key: &str) -> Result<Option<u8>> {
        Ok(self.number(key, 0..=255)?.map(|value| value as u8))
    }

    /// One of some words.
    pub fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Result<Option<T>> {
        let Some((text, span)) = self.text(key)? else { return Ok(None) };
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(Some(*value));
        }
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        self.fault(&span, format!("{key}: {text:?}: unknown word{}", instead(text, &known)))
    }

    /// The table that is the value of a key; `known` are its keys.
    pub fn inner(&self, key: &str, known: &[&str]) -> Result<Option<Table<'t, 'a>>> {
        let table = self.typed(key, "a table { … }", DeValue::as_table)?;
        table.map(|(table, span)| self.document.table(table, span, known)).transpose()
    }

    /// The table that is the value of a key; the caller checks its keys.
    pub fn open_inner(&self, key: &str) -> Result<Option<Self>> {
        let table = self.typed(key, "a table { … }", DeValue::as_table)?;
        Ok(table.map(|(table, span)| Self { document: self.document, table, span }))
    }

    /// The keys, each with its position and its value.
    pub fn entries(&self) -> impl Iterator<Item = (&'t str, Range<usize>, &'t Spanned<DeValue<'a>>)> {
        self.table.iter().map(|(key, value)| (key.get_ref().as_ref(), key.span(), value))
    }

    /// The tables of `[[key]]`.
    pub fn tables(&self, key: &str, known: &[&str]) -> Result<Vec<Table<'t, 'a>>> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let fault = |value: &Spanned<DeValue<'_>>| {
            let kind = kind(value.get_ref());
            self.fault(&value.span(), format!("{key}: must be written as [[{key}]], not as {kind}"))
        };
        let Some(array) = value.get_ref().as_array() else { return fault(value) };
        let mut tables = Vec::new();
        for item in array.iter() {
            let Some(table) = item.get_ref().as_table() else { return fault(item) };
            tables.push(self.document.table(table, item.span(), known)?);
        }
        Ok(tables)
    }

    /// A list of strings, each with its position.
    pub fn texts(&self, key: &str) -> Result<Vec<(&'t str, Range<usize>)>> {
        let Some((array, _)) = self.typed(key, "a list [ … ]", DeValue::as_array)? else {
            return Ok(Vec::new());
        };
        let text = |item: &'t Spanned<DeValue<'a>>| match item.get_ref().as_str() {
            Some(text) => Ok((text, item.span())),
            None => {
                let kind = kind(item.get_ref());
                self.fault(&item.span(), format!("{key}: must be a string, not {kind}"))
            }
        };
        array.iter().map(text).collect()
    }
}

/// A whole number, written in any base that TOML allows; `None` also when it takes more than 64 bits.
pub fn whole_number(value: &DeValue<'_>) -> Option<i64> {
    let number = value.as_integer()?;
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// The nearest known word, or all known words, in parentheses.
pub fn instead(word: &str, known: &[&str]) -> String {
    match closest(word, known.iter().copied()) {
        Some(candidate) => format!(" (did you mean {candidate:?}?)"),
        None => format!(" (known: {})", known.join(", ")),
    }
}

/// The nearest of some words; `None`: none is near.
pub fn closest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let nearest = known.map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate)).min();
    nearest.filter(|&(distance, _)| distance <= 2.max(word.len() / 3)).map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_word_is_answered_with_the_one_that_was_meant() {
        let known = ["filter", "frames", "from", "to"];
        assert_eq!(instead("fitler", &known), r#" (did you mean "filter"?)"#);
        assert_eq!(instead("form", &known), r#" (did you mean "from"?)"#);
        assert_eq!(instead("completely", &known), " (known: filter, frames, from, to)");
    }

    #[test]
    fn a_place_counts_lines_and_characters_from_one() {
        let text = "a = 1\n# µµ x\n";
        let document = Document::new("f", text);
        for (at, wanted) in [
            (0, (1, 1)),
            (text.find('\n').unwrap(), (1, 6)),
            (text.find('#').unwrap(), (2, 1)),
            (text.find('x').unwrap(), (2, 6)),
            (text.len(), (3, 1)),
            (text.len() + 9, (3, 1)),
        ] {
            let place = document.place(&(at..at + 1));
            assert_eq!((place.line, place.column), wanted, "{at}");
        }
    }
}
