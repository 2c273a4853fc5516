//! Limits how often a message about a lasting condition is repeated.

use std::time::{Duration, Instant};

/// Period at which an unchanged message is repeated.
const REPEAT: Duration = Duration::from_secs(60);
/// Shortest time between two different messages.
const CHANGE: Duration = Duration::from_secs(1);

/// Decides whether to print a message: at once when it is new, and then once a minute.
#[derive(Debug, Default)]
pub struct Reminder(Option<(String, Instant)>);

impl Reminder {
    /// Whether to print the message now.
    pub fn is_due(&mut self, message: &str) -> bool {
        self.is_due_at(message, Instant::now())
    }

    fn is_due_at(&mut self, message: &str, now: Instant) -> bool {
        let due = self.0.as_ref().is_none_or(|(last, when)| {
            now.saturating_duration_since(*when) >= if last == message { REPEAT } else { CHANGE }
        });
        if due {
            self.0 = Some((message.to_owned(), now));
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unchanged_message_is_due_once_a_minute_and_alternating_ones_once_a_second() {
        let (mut reminder, begin) = (Reminder::default(), Instant::now());
        let mut is_due = |message, ms| reminder.is_due_at(message, begin + Duration::from_millis(ms));
        let unchanged = (0..180_000).filter(|&ms| is_due("removed", ms)).count();
        assert_eq!(unchanged, 3);
        let alternating =
            (180_000..190_000).filter(|&ms| is_due(if ms % 2 == 0 { "removed" } else { "down" }, ms)).count();
        assert_eq!(alternating, 10);
    }
}
