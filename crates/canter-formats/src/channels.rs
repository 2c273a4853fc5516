//! Channels 1…, in formats that have no names for buses. canter keeps the names in a note, `canter: channel 1 = vcan0`.

use crate::{format::Names, trouble::Trouble};
use canter_frame::BusId;

/// The highest channel number of Vector's programs.
const CHANNEL_MAX: u32 = 255;
/// The text before a channel's number in a note.
const NOTE: &str = "canter: channel ";

/// Returns the note that names a channel.
pub fn note(channel: u32, name: &str) -> String {
    format!("{NOTE}{channel} = {name}")
}

/// Reads a note; `None` if the text is not one.
pub fn parse_note(text: &str) -> Option<(u32, &str)> {
    let (channel, name) = text.trim_ascii().strip_prefix(NOTE)?.split_once(" = ")?;
    Some((channel.parse().ok()?, name))
}

/// For reading: the bus of each channel.
#[derive(Default)]
pub struct BusOfChannel(Vec<(u32, BusId)>);

impl BusOfChannel {
    /// Returns the bus of a channel; without a note channel 1 is can0, channel 2 can1.
    #[inline]
    pub fn number(&mut self, channel: u32, names: &mut Names) -> Result<BusId, Trouble> {
        if let Some(&(_, number)) = self.0.iter().find(|(known, _)| *known == channel) {
            return Ok(number);
        }
        let name = match channel.checked_sub(1) {
            Some(number) => format!("can{number}"),
            None => "channel0".to_owned(),
        };
        let number = names.add(&name)?;
        self.0.push((channel, number));
        Ok(number)
    }

    /// Gives a channel's bus the name of a note.
    pub fn name(&mut self, channel: u32, name: &str, names: &mut Names) -> Result<(), Trouble> {
        if !name.is_empty() {
            let number = self.number(channel, names)?;
            names.rename(number, name);
        }
        Ok(())
    }
}

/// For writing: the channel of each bus. can0 is channel 1, can7 is channel 8, and a bus whose number is taken, or that
/// has none, gets the lowest that is free.
#[derive(Clone, Debug, Default)]
pub struct ChannelOfBus(Vec<u32>);

impl ChannelOfBus {
    /// Adds the next bus, and returns its channel.
    pub fn add(&mut self, name: &str) -> u32 {
        let digits = name.trim_start_matches(|letter: char| !letter.is_ascii_digit());
        let wanted = digits.parse().ok().and_then(|number: u32| number.checked_add(1));
        let free = |channel: &u32| *channel <= CHANNEL_MAX && !self.0.contains(channel);
        let channel = wanted.filter(free).or_else(|| (1..=CHANNEL_MAX).find(|channel| free(channel)));
        let channel = channel.unwrap_or(CHANNEL_MAX + 1 + self.0.len() as u32);
        self.0.push(channel);
        channel
    }

    /// The channel of a bus; `None` if it was never added.
    #[inline]
    pub fn channel(&self, bus: BusId) -> Option<u32> {
        self.0.get(bus.index()).copied()
    }

    /// Like [`channel`](Self::channel), but 0 for a bus that was never added.
    pub fn known(&self, bus: BusId) -> u32 {
        self.channel(bus).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_keep_their_numbers_while_these_are_free() {
        let mut channels = ChannelOfBus::default();
        let given: Vec<u32> =
            ["can2", "vcan2", "can0", "drive", "can300"].iter().map(|name| channels.add(name)).collect();
        assert_eq!(given, [3, 1, 2, 4, 5]);
        assert_eq!(channels.channel(BusId(1)), Some(1));
    }

    #[test]
    fn a_note_reads_back() {
        assert_eq!(parse_note(&note(7, "a = b")), Some((7, "a = b")));
        assert_eq!(parse_note("canter: channel x = a"), None);
    }
}
