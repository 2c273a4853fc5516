//! A value of `--filter`: an interface, identifiers with masks, and names of messages where there are databases.

use crate::databases::{Databases, MessageFilter, nearest};
use canter_cli::failure::{self, Exit, Failure};
use canter_io::{Filters, InterfaceFilters};
use std::{collections::BTreeMap, str::FromStr};

/// candump's name for all interfaces.
const ANY: &str = "any";

/// The frames that a value of `--filter` selects.
#[derive(Clone, Debug)]
pub struct FrameFilter {
    text: String,
    /// Filters by interface.
    pub filters: Vec<InterfaceFilters>,
    /// A word that only a database can explain.
    unknown: Option<String>,
    /// The question whether a message was meant, when the recordings have no interface of the first word.
    pub message_hint: String,
}

impl FromStr for FrameFilter {
    type Err = String;

    /// Names of messages are taken too, and stay without meaning until [`FrameFilter::resolve`] has the databases.
    fn from_str(text: &str) -> Result<Self, String> {
        let (filters, unknown) = match parse_filters(text) {
            Ok(one) => (vec![one], None),
            Err(error) => match text.split(',').find(|word| !is_filter(word) && *word != ANY) {
                Some(_) if text.split(',').all(|word| is_filter(word) || is_name(word)) => {
                    let last = text.rsplit(',').find(|word| !is_filter(word)).unwrap_or_default();
                    (Vec::new(), Some(last.to_owned()))
                }
                _ => return Err(error),
            },
        };
        Ok(Self { text: text.to_owned(), filters, unknown, message_hint: String::new() })
    }
}

fn is_filter(word: &str) -> bool {
    !word.is_empty() && word.parse::<Filters>().is_ok()
}

/// Whether a word may be the name of a message: an identifier of C.
fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && word.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
}

/// Reads filters without names: filters alone apply to every interface. A name that is also an identifier, such as `bad`,
/// counts as an identifier.
pub fn parse_filters(text: &str) -> Result<InterfaceFilters, String> {
    let first = text.split(',').next().unwrap_or_default();
    let read = if begins_filters(first) {
        text.parse().map(|filters| InterfaceFilters { interface: ANY.to_owned(), filters })
    } else {
        InterfaceFilters::parse(text)
    };
    read.map_err(|error| error.to_string())
}

/// Whether the first word of a value is a filter and not an interface.
fn begins_filters(word: &str) -> bool {
    word.contains([':', '~'])
        || word.starts_with('#')
        || (!word.is_empty() && word.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

impl FrameFilter {
    /// Refuses a name that no database explained.
    pub fn refuse_unknown(&self) -> failure::Result<()> {
        let Some(word) = &self.unknown else { return Ok(()) };
        let reason =
            format!("{word} is no filter (123, 100:700), and no database has a message of that name");
        Err(Failure::new(Exit::Usage, format!("--filter {}: {reason} (--dbc FILE)", self.text)))
    }

    /// Replaces the names of messages by filters for their frames. A word that names a message is never an interface or an
    /// identifier.
    ///
    /// # Errors
    /// When a word is neither a filter nor the name of a message.
    pub fn resolve(&mut self, databases: &Databases) -> failure::Result<()> {
        let refused = |reason: String| Failure::new(Exit::Usage, format!("--filter {}: {reason}", self.text));
        if databases.is_empty() {
            return self.refuse_unknown();
        }
        let mut words: Vec<&str> = self.text.split(',').collect();
        self.message_hint = nearest(words[0], databases.message_names());
        if !words.iter().any(|word| databases.has_message(word)) {
            return match &self.unknown {
                Some(word) => {
                    let near = nearest(word, databases.message_names());
                    Err(refused(format!("no message is named {word}{near}")))
                }
                None => Ok(()),
            };
        }
        let first_is_interface = !databases.has_message(words[0]) && !begins_filters(words[0]);
        let interface = first_is_interface.then(|| words.remove(0));
        let bus = interface.filter(|name| *name != ANY);
        let (names, others): (Vec<&str>, Vec<&str>) =
            words.into_iter().partition(|word| databases.has_message(word));
        if let Some(word) = others.iter().find(|word| !is_filter(word)) {
            let near = nearest(word, databases.message_names());
            return Err(refused(format!("no message is named {word}{near}")));
        }
        let others: Filters = others.join(",").parse().map_err(|error| refused(format!("{error}")))?;
        let mut found: BTreeMap<String, Filters> = BTreeMap::new();
        if others != Filters::default() {
            found.insert(bus.unwrap_or(ANY).to_owned(), others.clone());
        }
        for name in names {
            for MessageFilter { bus, filter } in databases.message_filters(name, bus).map_err(refused)? {
                let of_bus = found.entry(bus.unwrap_or_else(|| ANY.to_owned()));
                of_bus.or_insert_with(|| others.clone()).list.push(filter);
            }
        }
        let filters = found.into_iter().map(|(interface, filters)| InterfaceFilters { interface, filters });
        (self.filters, self.unknown) = (filters.collect(), None);
        Ok(())
    }
}
