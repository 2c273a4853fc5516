//! Messages by their names: the filters of their frames, and the nearest known name for an error.

use super::Databases;
use canter_frame::{
    Filter, Identifier,
    frame::{EFF_FLAG, EFF_MASK, SFF_MASK},
};
use canter_signals::{Codebook, Message};
use std::collections::BTreeSet;

/// The frames of a message on a bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageFilter {
    /// The bus; `None`: all buses without databases of their own.
    pub bus: Option<String>,
    pub filter: Filter,
}

impl Databases {
    /// Whether a database has a message of this name.
    pub fn has_message(&self, name: &str) -> bool {
        self.iter().any(|database| database.message(name).is_some())
    }

    /// The message names of all databases.
    pub fn message_names(&self) -> impl Iterator<Item = &str> {
        self.iter().flat_map(|database| &database.messages).map(|message| message.name.as_str())
    }

    /// The buses that have databases of their own.
    pub fn named_buses(&self) -> BTreeSet<&str> {
        self.0.iter().filter_map(|(source, _)| source.bus.as_deref()).collect()
    }

    /// The filters for the frames of a message, on one bus or on all.
    ///
    /// # Errors
    /// When no database of the bus has the message, or one frame is too short for it.
    pub fn message_filters(&self, name: &str, bus: Option<&str>) -> Result<Vec<MessageFilter>, String> {
        let buses: Vec<Option<&str>> = match bus {
            Some(bus) => vec![Some(bus)],
            None => std::iter::once(None).chain(self.named_buses().into_iter().map(Some)).collect(),
        };
        let mut filters = Vec::new();
        for bus in buses {
            let codebook = bus.map_or_else(|| self.shared_codebook(), |bus| self.codebook(bus));
            for message in codebook.meant().filter(|message| message.name == name) {
                if message.is_transported() {
                    let reason = "several frames carry it, which no filter puts together";
                    return Err(format!("{name}: {reason} (canter decode --signals {name}.*)"));
                }
                filters.push(MessageFilter { bus: bus.map(str::to_owned), filter: message.filter() });
            }
        }
        match (filters.is_empty(), bus) {
            (true, Some(bus)) => Err(format!("no database of {bus} has the message {name}")),
            (true, None) => {
                Err(format!("no database has the message {name}{}", nearest(name, self.message_names())))
            }
            (false, _) => Ok(filters),
        }
    }
}

/// The message of an identifier with its flags; a remote request asks for the message of its identifier.
pub fn known_message<'a>(codebook: &Codebook<'a>, id: u32) -> Option<&'a Message> {
    codebook.message(match id & EFF_FLAG {
        0 => Identifier::Sff((id & SFF_MASK) as u16),
        _ => Identifier::Eff(id & EFF_MASK),
    })
}

/// The question whether the nearest of these names was meant; empty when none is near.
pub fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> String {
    match names.map(|name| (strsim::damerau_levenshtein(word, name), name)).min() {
        Some((distance, name)) if distance <= word.len().div_ceil(3) => format!(" (did you mean {name}?)"),
        _ => String::new(),
    }
}
