//! The signals that a command line names.

use crate::databases::{Databases, nearest};
use canter_cli::failure::{self, Exit, Failure};
use canter_signals::Message;

/// `--signals`.
pub struct Wanted {
    names: Vec<Name>,
}

struct Name {
    message: Option<String>,
    /// The signal; `*`: all of the message.
    signal: String,
}

/// The word for all signals of a message.
const ALL: &str = "*";

impl Wanted {
    /// Refuses names that no database has.
    pub fn new(words: &[String], databases: &Databases) -> failure::Result<Self> {
        let mut names = Vec::new();
        for word in words {
            let name = match word.split_once('.') {
                Some((message, signal)) => {
                    Name { message: Some(message.to_owned()), signal: signal.to_owned() }
                }
                None => Name { message: None, signal: word.clone() },
            };
            let has = |message: &Message| !name.places(message).is_empty();
            if !databases.iter().any(|database| database.messages.iter().any(has)) {
                let messages = databases.iter().flat_map(|database| &database.messages);
                let signals = messages.flat_map(|message| &message.signals);
                let near = nearest(&name.signal, signals.map(|signal| signal.name.as_str()));
                let reason = format!("--signals {word}: no message has this signal{near}");
                return Err(Failure::new(Exit::Usage, reason));
            }
            names.push(name);
        }
        Ok(Self { names })
    }

    /// Whether all signals are wanted.
    pub fn is_all(&self) -> bool {
        self.names.is_empty()
    }

    /// The places of the wanted signals of a message.
    pub fn places(&self, message: &Message) -> Vec<usize> {
        if self.is_all() {
            return (0..message.signals.len()).collect();
        }
        let mut places: Vec<usize> = self.names.iter().flat_map(|name| name.places(message)).collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// The wanted signals in the order of the command line, each as message and place; without names, in that of the databases.
    pub fn columns<'a>(&self, databases: &'a Databases) -> Vec<(&'a Message, usize)> {
        let messages = || databases.iter().flat_map(|database| &database.messages);
        if self.is_all() {
            return messages()
                .flat_map(|message| (0..message.signals.len()).map(move |at| (message, at)))
                .collect();
        }
        let columns_of = |name: &'_ Name| -> Vec<(&'a Message, usize)> {
            messages()
                .flat_map(|message| name.places(message).into_iter().map(move |at| (message, at)))
                .collect()
        };
        self.names.iter().flat_map(columns_of).collect()
    }
}

impl Name {
    /// The places of the named signals of a message.
    fn places(&self, message: &Message) -> Vec<usize> {
        if self.message.as_ref().is_some_and(|name| *name != message.name) {
            return Vec::new();
        }
        match self.signal.as_str() {
            ALL => (0..message.signals.len()).collect(),
            name => message.signal(name).map(|(at, _)| at).into_iter().collect(),
        }
    }
}
