//! The interfaces of a recording, numbered as they are met.

use super::{Trouble, wrong};
use canter_frame::BusId;

/// More interfaces than any car has: a damaged file must not fill the memory.
const INTERFACES_MAX: usize = 4096;

/// Names by number.
#[derive(Clone, Debug, Default)]
pub struct Names {
    list: Vec<String>,
    /// The one that was looked for last: mostly it is the next one too, or the one after it follows.
    last: usize,
}

impl Names {
    pub fn list(&self) -> &[String] {
        &self.list
    }

    /// The number of `name`, a new one if need be.
    pub(super) fn number(&mut self, name: &str) -> Result<BusId, Trouble> {
        if self.list.get(self.last).is_some_and(|known| known == name) {
            return Ok(BusId(self.last as u32));
        }
        self.last = match self.list.iter().position(|known| known == name) {
            Some(known) => known,
            None => self.add(name)?.index(),
        };
        Ok(BusId(self.last as u32))
    }

    /// A new number for `name`, even when there is another of that name.
    pub(super) fn add(&mut self, name: &str) -> Result<BusId, Trouble> {
        if self.list.len() == INTERFACES_MAX {
            return wrong(format!("more than {INTERFACES_MAX} interfaces: the file is damaged"));
        }
        self.list.push(name.to_owned());
        Ok(BusId(self.list.len() as u32 - 1))
    }

    /// Calls a number by another name.
    pub(super) fn rename(&mut self, bus: BusId, name: &str) {
        if let Some(known) = self.list.get_mut(bus.index()) {
            name.clone_into(known);
        }
    }
}
