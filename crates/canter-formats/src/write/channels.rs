//! Numbers for interfaces, in formats that have channels 1… and no names: can0 is channel 1, can7 is channel 8, and an
//! interface whose number is taken, or that has none, gets the lowest that is free.

use canter_frame::BusId;

/// Vector's programs have no more.
const CHANNEL_MAX: u32 = 255;

/// Channels by interface.
#[derive(Clone, Debug, Default)]
pub struct Channels(Vec<u32>);

impl Channels {
    /// The channel of the next interface.
    pub fn add(&mut self, name: &str) -> u32 {
        let digits = name.trim_start_matches(|letter: char| !letter.is_ascii_digit());
        let own = digits.parse().ok().and_then(|number: u32| number.checked_add(1));
        let free = |channel: &u32| *channel <= CHANNEL_MAX && !self.0.contains(channel);
        let channel = own.filter(free).or_else(|| (1..=CHANNEL_MAX).find(|channel| free(channel)));
        let channel = channel.unwrap_or(CHANNEL_MAX + 1 + self.0.len() as u32);
        self.0.push(channel);
        channel
    }

    #[inline]
    pub fn of(&self, bus: BusId) -> Option<u32> {
        self.0.get(bus.index()).copied()
    }

    pub fn known(&self, bus: BusId) -> u32 {
        self.of(bus).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_keep_their_numbers_while_these_are_free() {
        let mut channels = Channels::default();
        let given: Vec<u32> =
            ["can2", "vcan2", "can0", "drive", "can300"].iter().map(|name| channels.add(name)).collect();
        assert_eq!(given, [3, 1, 2, 4, 5]);
        assert_eq!(channels.of(BusId(1)), Some(1));
    }
}
