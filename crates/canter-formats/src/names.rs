//! The buses of a recording, numbered in the order in which they are found.

use crate::trouble::{Trouble, wrong};
use canter_frame::BusId;

/// More interfaces than any vehicle has: a damaged file must not fill the memory.
const INTERFACES_MAX: usize = 4096;

/// The buses of a recording: each has a name, and a number from 0 on in the order in which they are found.
#[derive(Clone, Debug, Default)]
pub struct Names {
    list: Vec<String>,
    /// The bus found last: usually the next frame is on the same bus.
    last: usize,
}

impl Names {
    /// The names, by number.
    pub fn list(&self) -> &[String] {
        &self.list
    }

    /// Returns the bus of this name, a new one if there is none.
    ///
    /// # Errors
    /// When there are more buses than any vehicle has.
    pub fn number(&mut self, name: &str) -> Result<BusId, Trouble> {
        if self.list.get(self.last).is_some_and(|known| known == name) {
            return Ok(BusId(self.last as u32));
        }
        self.last = match self.list.iter().position(|known| known == name) {
            Some(known) => known,
            None => self.add(name)?.index(),
        };
        Ok(BusId(self.last as u32))
    }

    /// Adds a bus, even if there is another of this name.
    ///
    /// # Errors
    /// When there are more buses than any vehicle has.
    pub fn add(&mut self, name: &str) -> Result<BusId, Trouble> {
        if self.list.len() == INTERFACES_MAX {
            return wrong(format!("more than {INTERFACES_MAX} interfaces: the file is damaged"));
        }
        self.list.push(name.to_owned());
        Ok(BusId(self.list.len() as u32 - 1))
    }

    /// Gives a bus another name.
    pub fn rename(&mut self, bus: BusId, name: &str) {
        if let Some(known) = self.list.get_mut(bus.index()) {
            name.clone_into(known);
        }
    }
}
