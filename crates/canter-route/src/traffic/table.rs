//! Reads a TOML file key by key, so that errors have their line and column: an unknown key with the nearest known one, a
//! wrong value with the values that are allowed.

use canter_cli::failure::{self, Exit, Failure};
use std::{fmt::Display, path::Path, str::FromStr};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// A file and its text.
#[derive(Clone, Copy)]
pub struct Document<'a> {
    pub path: &'a Path,
    pub text: &'a str,
}

/// A table of it.
pub struct Table<'a> {
    document: Document<'a>,
    /// In bytes from the start of the text.
    at: usize,
    entries: &'a DeTable<'a>,
}

/// A value with its place in the file.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    document: Document<'a>,
    at: usize,
}

impl Place<'_> {
    pub fn failure(&self, message: impl Display) -> Failure {
        self.document.failure(self.at, message)
    }
}

impl<'a> Document<'a> {
    /// `car.toml:12:3: message`.
    pub fn failure(&self, at: usize, message: impl Display) -> Failure {
        let before = self.text.get(..at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let path = self.path.display();
        Failure::new(Exit::Usage, format!("{path}:{line}:{column}: {message}"))
    }

    /// Parses the text as TOML, without checking keys and values.
    pub fn parse(&self) -> failure::Result<Spanned<DeTable<'a>>> {
        DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            self.failure(at, error.message().lines().collect::<Vec<_>>().join(", "))
        })
    }

    /// The file's outermost table, whose keys are all `known`.
    pub fn table(&self, parsed: &'a Spanned<DeTable<'a>>, known: &[&str]) -> failure::Result<Table<'a>> {
        Table::new(*self, parsed.span().start, parsed.get_ref(), known)
    }
}

impl<'a> Table<'a> {
    fn new(
        document: Document<'a>,
        at: usize,
        entries: &'a DeTable<'a>,
        known: &[&str],
    ) -> failure::Result<Self> {
        for key in entries.keys() {
            let name: &str = key.get_ref();
            if !known.contains(&name) {
                let nearest = nearest(name, known.iter().copied());
                let known = format!("known: {}", known.join(", "));
                let way_out = nearest.map_or(known, |nearest| format!("did you mean {nearest:?}?"));
                return Err(document.failure(key.span().start, format!("unknown key {name:?} ({way_out})")));
            }
        }
        Ok(Self { document, at, entries })
    }

    /// Where the table begins.
    pub fn place(&self) -> Place<'a> {
        Place { document: self.document, at: self.at }
    }

    fn get(&self, key: &str) -> Option<(Place<'a>, &'a DeValue<'a>)> {
        let value = self.entries.get(key)?;
        Some((Place { document: self.document, at: value.span().start }, value.get_ref()))
    }

    /// The tables of an array `[[key]]`, whose own keys are all `known`; at least one.
    pub fn tables(&self, key: &str, known: &[&str]) -> failure::Result<Vec<Table<'a>>> {
        let missing = || self.place().failure(format!("[[{key}]] is missing"));
        let (place, value) = self.get(key).ok_or_else(missing)?;
        let array =
            value.as_array().ok_or_else(|| place.failure(format!("{key}: must be written as [[{key}]]")))?;
        let table = |item: &'a Spanned<DeValue<'a>>| {
            let at = item.span().start;
            let entries = item.get_ref().as_table();
            let entries =
                entries.ok_or_else(|| self.document.failure(at, format!("{key}: must be a table")))?;
            Table::new(self.document, at, entries, known)
        };
        let tables: Vec<Table<'a>> = array.iter().map(table).collect::<failure::Result<_>>()?;
        if tables.is_empty() { Err(missing()) } else { Ok(tables) }
    }

    /// A string or a number, parsed by `read`.
    pub fn read<T>(
        &self,
        key: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> failure::Result<Option<(Place<'a>, T)>> {
        let Some((place, value)) = self.get(key) else { return Ok(None) };
        let number = value.as_integer().map(|number| {
            // In decimal, from each base that TOML allows.
            i64::from_str_radix(number.as_str(), number.radix())
                .map_or_else(|_| number.as_str().to_owned(), |number| number.to_string())
        });
        let text = number.as_deref().or(value.as_str());
        let text = text.ok_or_else(|| {
            place.failure(format!("{key}: must be a string or a number, not a {}", value.type_str()))
        })?;
        let value = read(text).map_err(|error| place.failure(format!("{key}: {error}")))?;
        Ok(Some((place, value)))
    }

    /// Reads the value of `key`, of a type with `FromStr`.
    pub fn parse<T: FromStr<Err: Display>>(&self, key: &str) -> failure::Result<Option<(Place<'a>, T)>> {
        self.read(key, |text| text.parse().map_err(|error: T::Err| error.to_string()))
    }

    /// Whether the value is a number.
    pub fn is_number(&self, key: &str) -> bool {
        self.get(key).is_some_and(|(_, value)| value.is_integer())
    }

    /// `true` or `false`; false without the key.
    pub fn flag(&self, key: &str) -> failure::Result<bool> {
        let Some((place, value)) = self.get(key) else { return Ok(false) };
        value
            .as_bool()
            .ok_or_else(|| place.failure(format!("{key}: must be true or false, not {}", value.type_str())))
    }

    /// The value of a required key.
    pub fn need<T>(&self, key: &str, value: Option<T>) -> failure::Result<T> {
        value.ok_or_else(|| self.place().failure(format!("{key} is missing")))
    }
}

/// The nearest known name, if at most a third of its letters (but at least one) may be wrong.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.map(|known| (strsim::damerau_levenshtein(name, known), known)).min()?;
    (near.0 <= (near.1.len() / 3).max(1)).then_some(near.1)
}
