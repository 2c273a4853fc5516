//! The buses of a recording, numbered in the order in which they are found.

use crate::trouble::{Trouble, wrong};
use canter_frame::BusId;

/// More interfaces than any vehicle has: a damaged file must not fill the memory.
const INTERFACES_MAX: usize = 4096;

/// The buses of a recording: each has a name, and a number from 0 on in the order in which they are found.
#[derive(Clone, Debug)]
pub struct Names {
    list: Vec<String>,
    /// Buses by the end of their names: the one found last of each slot. Frames of different buses follow each other, and the
    /// end of a name tells most buses of a vehicle apart.
    by_end: [u16; SLOTS],
}

/// Slots of buses by the end of their names.
const SLOTS: usize = 64;

/// The slot of a name: a number below 64 at its end has a slot of its own, as in `can12`.
#[inline]
fn slot(name: &str) -> usize {
    let end = match name.as_bytes() {
        [.., tens, ones] => tens.wrapping_mul(10).wrapping_add(*ones),
        [one] => *one,
        [] => 0,
    };
    usize::from(end) % SLOTS
}

impl Default for Names {
    fn default() -> Self {
        Self { list: Vec::new(), by_end: [0; SLOTS] }
    }
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
    #[inline]
    pub fn number(&mut self, name: &str) -> Result<BusId, Trouble> {
        let slot = slot(name);
        let found = self.by_end[slot];
        if self.list.get(usize::from(found)).is_some_and(|known| known == name) {
            return Ok(BusId(found.into()));
        }
        let bus = match self.list.iter().position(|known| known == name) {
            Some(known) => BusId(known as u32),
            None => self.add(name)?,
        };
        self.by_end[slot] = bus.0 as u16; // below INTERFACES_MAX
        Ok(bus)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_the_same_end_are_buses_of_their_own() {
        let mut names = Names::default();
        for _ in 0..2 {
            for (number, name) in ["can0", "vcan0", "0", "can64", "", "can12"].iter().enumerate() {
                assert_eq!(names.number(name).unwrap(), BusId(number as u32), "{name:?}");
            }
        }
    }
}
