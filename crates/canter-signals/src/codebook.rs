//! Which message an identifier means: by the identifier itself, or by its parameter group (J1939).

use crate::{Database, Message};
use canter_frame::Identifier;
use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

const SFF_COUNT: usize = 0x800;

/// The messages of the databases of one bus. Where two databases have the same identifier, the first one counts.
pub struct Codebook<'a> {
    messages: Vec<&'a Message>,
    /// The place in `messages` plus 1; 0: unknown.
    standard: Box<[u32; SFF_COUNT]>,
    extended: HashMap<u32, u32, BuildHasherDefault<IdentifierHasher>>,
    groups: HashMap<u32, u32, BuildHasherDefault<IdentifierHasher>>,
}

/// A multiplication spreads identifiers well enough, and costs a tenth of the default hash.
#[derive(Default)]
struct IdentifierHasher(u64);

impl Hasher for IdentifierHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }
}

/// The parameter group of an extended identifier (J1939-21): the destination address of a group that has one is left out.
#[inline]
pub fn parameter_group(identifier: u32) -> u32 {
    let group = identifier >> 8 & 0x3_FFFF;
    if group >> 8 & 0xFF < 240 { group & !0xFF } else { group }
}

impl<'a> Codebook<'a> {
    /// The codebook of these databases.
    pub fn new(databases: &[&'a Database]) -> Self {
        let mut codebook = Self {
            messages: Vec::new(),
            standard: Box::new([0; SFF_COUNT]),
            extended: HashMap::default(),
            groups: HashMap::default(),
        };
        for message in databases.iter().flat_map(|database| &database.messages) {
            codebook.messages.push(message);
            let number = codebook.messages.len() as u32;
            match message.id {
                Identifier::Sff(id) => {
                    if let Some(place @ 0) = codebook.standard.get_mut(usize::from(id)) {
                        *place = number;
                    }
                }
                Identifier::Eff(id) => {
                    codebook.extended.entry(id).or_insert(number);
                    if message.is_j1939 {
                        codebook.groups.entry(parameter_group(id)).or_insert(number);
                    }
                }
            }
        }
        codebook
    }

    /// All messages, in the order of the databases.
    pub fn messages(&self) -> &[&'a Message] {
        &self.messages
    }

    /// The messages that identifiers mean: without those whose identifier an earlier message has.
    pub fn meant(&self) -> impl Iterator<Item = &'a Message> {
        let counts = |message: &&&Message| {
            self.message(message.id).is_some_and(|first| std::ptr::eq(first, **message))
        };
        self.messages.iter().filter(counts).copied()
    }

    /// The place of the message of an identifier.
    #[inline]
    pub fn place(&self, id: Identifier) -> Option<usize> {
        let number = match id {
            Identifier::Sff(id) => *self.standard.get(usize::from(id))?,
            Identifier::Eff(id) => match self.extended.get(&id) {
                Some(&number) => number,
                None if self.groups.is_empty() => 0,
                None => *self.groups.get(&parameter_group(id))?,
            },
        };
        (number as usize).checked_sub(1)
    }

    /// The message of an identifier.
    #[inline]
    pub fn message(&self, id: Identifier) -> Option<&'a Message> {
        self.messages.get(self.place(id)?).copied()
    }

    /// Whether a message is a parameter group of J1939, so that long messages may be transported in several frames.
    pub fn has_groups(&self) -> bool {
        !self.groups.is_empty()
    }
}
