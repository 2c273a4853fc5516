//! The names of messages, by the databases of their buses.

use super::census::{Census, Key};
use crate::databases::{Databases, known_message};
use canter_signals::Codebook;

/// The names of the identifiers of a census.
pub struct Names<'a> {
    /// The messages of each bus; empty without databases.
    codebooks: Vec<Codebook<'a>>,
}

impl<'a> Names<'a> {
    pub fn new(databases: &'a Databases, census: &Census) -> Self {
        let buses = census.buses.iter().filter(|_| !databases.is_empty());
        Self { codebooks: buses.map(|bus| databases.codebook(&bus.name)).collect() }
    }

    /// Whether there are databases.
    pub fn are_known(&self) -> bool {
        !self.codebooks.is_empty()
    }

    /// The name of an identifier's message.
    pub fn name(&self, key: &Key) -> Option<&'a str> {
        known_message(self.codebooks.get(key.bus)?, key.id).map(|message| message.name.as_str())
    }

    /// A sentence when the databases know no identifier of the recordings.
    pub fn remark(&self, census: &Census) -> Option<String> {
        let is_useless = self.are_known() && !census.rows.keys().any(|key| self.name(key).is_some());
        is_useless.then(|| "the databases know no identifier: wrong database?".to_owned())
    }
}
