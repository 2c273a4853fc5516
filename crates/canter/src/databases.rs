//! The databases of a command line, each for one bus or for all; and messages and their values as people name them.

mod names;
pub mod number;
mod wording;

pub use names::{MessageFilter, known_message, nearest};
pub use wording::Wording;

use canter_cli::failure::{self, Failure};
use canter_signals::{Codebook, Database, DatabaseError};
use std::{
    path::{Path, PathBuf},
    str::FromStr,
};

/// A value of `--dbc`.
#[derive(Clone, Debug)]
pub struct Source {
    /// The bus; `None`: all.
    bus: Option<String>,
    path: PathBuf,
}

impl FromStr for Source {
    type Err = String;

    /// A file whose own name has an equals sign is taken for the file.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((bus, path)) if !Path::new(text).exists() && !bus.is_empty() && !bus.contains('.') => {
                Ok(Self { bus: Some(bus.to_owned()), path: path.into() })
            }
            _ if text.is_empty() => Err("is no file".to_owned()),
            _ => Ok(Self { bus: None, path: text.into() }),
        }
    }
}

/// All databases.
pub struct Databases(Vec<(Source, Database)>);

impl Databases {
    /// Opens all files, and prints what they say against themselves.
    pub fn open_with_remarks(sources: &[Source], quiet: bool) -> failure::Result<Self> {
        let databases = Self::open(sources)?;
        if !quiet {
            databases.remarks().for_each(|remark| eprintln!("canter: {remark}"));
        }
        Ok(databases)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn open(sources: &[Source]) -> failure::Result<Self> {
        let open = |source: &Source| match Database::open(&source.path) {
            Ok(database) => Ok((source.clone(), database)),
            Err(error @ DatabaseError::Io(..)) => Err(Failure::failed(error.to_string())),
            Err(error) => Err(Failure::failed(format!("{error} (is it a DBC?)"))),
        };
        sources.iter().map(open).collect::<Result<_, _>>().map(Self)
    }

    /// What the files say against themselves.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        self.0.iter().flat_map(|(source, database)| {
            database.remarks.iter().map(move |remark| format!("{}: {remark}", source.path.display()))
        })
    }

    pub fn iter(&self) -> impl Iterator<Item = &Database> {
        self.0.iter().map(|(_, database)| database)
    }

    /// The messages of buses that have no databases of their own.
    pub fn shared_codebook(&self) -> Codebook<'_> {
        let shared = self.0.iter().filter(|(source, _)| source.bus.is_none());
        Codebook::new(&shared.map(|(_, database)| database).collect::<Vec<_>>())
    }

    /// The messages of a bus: its own databases come before those of all buses.
    pub fn codebook(&self, bus: &str) -> Codebook<'_> {
        let own = self.0.iter().filter(|(source, _)| source.bus.as_deref() == Some(bus));
        let shared = self.0.iter().filter(|(source, _)| source.bus.is_none());
        Codebook::new(&own.chain(shared).map(|(_, database)| database).collect::<Vec<_>>())
    }
}
