//! A TOML document with positions: errors have the shape `file:line:column: key: message`, with the nearest known word.

use std::{fmt, ops::Range};
use toml::{
    Spanned,
    de::{DeArray, DeTable, DeValue},
};

/// A position in a file, both numbers from 1; 0 without a file.
#[derive(Clone, Copy, Debug, Default, Eq)]
pub struct Place {
    pub line: usize,
    /// In characters.
    pub column: usize,
}

impl PartialEq for Place {
    /// Rules are equal regardless of their positions.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// An error in a file, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub file: String,
    pub place: Place,
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, place: Place { line, column }, message } = self;
        write!(f, "{file}:{line}:{column}: {message}")
    }
}

pub type Result<T> = std::result::Result<T, Box<Fault>>;

/// The text that is being read, to find positions.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
    /// The file's [`line_starts`].
    pub lines: &'a [usize],
}

/// The start of each line, computed once because a file may have thousands of rules.
pub fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

impl<'a> Source<'a> {
    /// Reads the document.
    pub fn parse(self) -> Result<DeTable<'a>> {
        match DeTable::parse(self.text) {
            Ok(table) => Ok(table.into_inner()),
            Err(error) => {
                let span = error.span().unwrap_or(0..0);
                self.fault(&span, error.message().lines().collect::<Vec<_>>().join("; "))
            }
        }
    }

    pub fn place(self, span: &Range<usize>) -> Place {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = self.lines.partition_point(|&start| start <= before.len());
        let line_start = self.lines.get(line.wrapping_sub(1)).copied().unwrap_or(0);
        Place { line, column: before[line_start..].chars().count() + 1 }
    }

    pub fn fault<T>(self, span: &Range<usize>, message: impl Into<String>) -> Result<T> {
        Err(Box::new(Fault { file: self.file.to_owned(), place: self.place(span), message: message.into() }))
    }

    /// A table whose keys are all known.
    pub fn table<'t>(
        self,
        table: &'t DeTable<'a>,
        span: Range<usize>,
        known: &'static [&'static str],
    ) -> Result<Table<'t, 'a>> {
        for key in table.keys() {
            if !known.contains(&key.get_ref().as_ref()) {
                let word = key.get_ref();
                return self.fault(&key.span(), format!("{word:?}: unknown key{}", instead(word, known)));
            }
        }
        Ok(Table { source: self, table, span })
    }
}

/// A table with its position.
pub struct Table<'t, 'a> {
    pub source: Source<'a>,
    table: &'t DeTable<'a>,
    pub span: Range<usize>,
}

type Value<'t, 'a> = &'t Spanned<DeValue<'a>>;

impl<'t, 'a> Table<'t, 'a> {
    pub fn get(&self, key: &str) -> Option<Value<'t, 'a>> {
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    /// The first of `keys` that it has.
    pub fn first_of(&self, keys: &[&'static str]) -> Option<(&'static str, Range<usize>)> {
        keys.iter().find_map(|&key| {
            let (name, _) = self.table.iter().find(|(name, _)| name.get_ref() == key)?;
            Some((key, name.span()))
        })
    }

    pub fn text(&self, key: &str) -> Result<Option<(&'t str, Range<usize>)>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        self.source.text_of(key, value).map(Some)
    }

    /// The text of a required key.
    pub fn needed_text(&self, key: &str) -> Result<(&'t str, Range<usize>)> {
        match self.text(key)? {
            Some(text) => Ok(text),
            None => self.source.fault(&self.span, format!("{key:?} is missing")),
        }
    }

    pub fn flag(&self, key: &str) -> Result<Option<bool>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Boolean(on) => Ok(Some(*on)),
            other => {
                self.source.fault(&value.span(), format!("{key}: must be true or false, not {}", kind(other)))
            }
        }
    }

    /// A whole number in a range.
    pub fn number(&self, key: &str, range: std::ops::RangeInclusive<i64>) -> Result<Option<i64>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let number = match value.get_ref() {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok(),
            other => {
                return self
                    .source
                    .fault(&value.span(), format!("{key}: must be a number, not {}", kind(other)));
            }
        };
        match number.filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let (low, high) = (range.start(), range.end());
                self.source.fault(&value.span(), format!("{key}: must be {low}…{high}"))
            }
        }
    }

    pub fn byte(&self, key: &str) -> Result<Option<u8>> {
        Ok(self.number(key, 0..=255)?.map(|value| value as u8))
    }

    /// One of some words.
    pub fn word<T: Copy>(&self, key: &str, words: &'static [(&'static str, T)]) -> Result<Option<T>> {
        let Some((text, span)) = self.text(key)? else { return Ok(None) };
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(Some(*value));
        }
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        self.source.fault(&span, format!("{key}: {text:?}: unknown word{}", instead(text, &known)))
    }

    pub fn inner(&self, key: &str, known: &'static [&'static str]) -> Result<Option<Table<'t, 'a>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Table(table) => self.source.table(table, value.span(), known).map(Some),
            other => self
                .source
                .fault(&value.span(), format!("{key}: must be a table {{ … }}, not {}", kind(other))),
        }
    }

    /// The tables of `[[key]]`.
    pub fn tables(&self, key: &str, known: &'static [&'static str]) -> Result<Vec<Table<'t, 'a>>> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let fault = |span, kind| {
            self.source.fault(&span, format!("{key}: must be written as [[{key}]], not as {kind}"))
        };
        let DeValue::Array(array) = value.get_ref() else {
            return fault(value.span(), kind(value.get_ref()));
        };
        let mut tables = Vec::new();
        for item in array.iter() {
            match item.get_ref() {
                DeValue::Table(table) => tables.push(self.source.table(table, item.span(), known)?),
                other => return fault(item.span(), kind(other)),
            }
        }
        Ok(tables)
    }

    pub fn array(&self, key: &str) -> Result<Option<&'t DeArray<'a>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Array(array) => Ok(Some(array)),
            other => {
                self.source.fault(&value.span(), format!("{key}: must be a list [ … ], not {}", kind(other)))
            }
        }
    }
}

impl Source<'_> {
    pub fn text_of<'t>(self, key: &str, value: &'t Spanned<DeValue<'_>>) -> Result<(&'t str, Range<usize>)> {
        match value.get_ref() {
            DeValue::String(text) => Ok((text, value.span())),
            other => self.fault(&value.span(), format!("{key}: must be a string, not {}", kind(other))),
        }
    }
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
    let closest = known.iter().map(|&candidate| (distance(word, candidate), candidate)).min();
    match closest {
        Some((distance, candidate)) if distance <= 2.max(word.len() / 3) => {
            format!(" (did you mean {candidate:?}?)")
        }
        _ => format!(" (known: {})", known.join(", ")),
    }
}

/// The number of characters to change, add, remove or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
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
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn a_place_counts_lines_and_characters_from_one() {
        let text = "a = 1\n# µµ x\n";
        let source = Source { file: "f", text, lines: &line_starts(text) };
        for (at, wanted) in [
            (0, (1, 1)),
            (text.find('\n').unwrap(), (1, 6)),
            (text.find('#').unwrap(), (2, 1)),
            (text.find('x').unwrap(), (2, 6)),
            (text.len(), (3, 1)),
            (text.len() + 9, (3, 1)),
        ] {
            let place = source.place(&(at..at + 1));
            assert_eq!((place.line, place.column), wanted, "{at}");
        }
    }
}
