//! How often to repeat a message about something that lasts.

use std::time::{Duration, Instant};

/// How often something that lasts is said again.
const AGAIN: Duration = Duration::from_secs(60);
/// How often at most something that changes to and fro is said.
const CHANGE: Duration = Duration::from_secs(1);

/// Whether to say that something is still so: at once when it is new, and then once a minute.
#[derive(Debug, Default)]
pub struct Reminder(Option<(String, Instant)>);

impl Reminder {
    pub fn is_due(&mut self, what: &str) -> bool {
        self.is_due_at(what, Instant::now())
    }

    fn is_due_at(&mut self, what: &str, now: Instant) -> bool {
        let due = self.0.as_ref().is_none_or(|(said, when)| {
            now.saturating_duration_since(*when) >= if said == what { AGAIN } else { CHANGE }
        });
        if due {
            self.0 = Some((what.to_owned(), now));
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_is_said_once_a_minute_and_what_flutters_once_a_second() {
        let (mut reminder, begin) = (Reminder::default(), Instant::now());
        let mut said = |what, ms| reminder.is_due_at(what, begin + Duration::from_millis(ms));
        let lasting = (0..180_000).filter(|&ms| said("gone", ms)).count();
        assert_eq!(lasting, 3);
        let fluttering =
            (180_000..190_000).filter(|&ms| said(if ms % 2 == 0 { "gone" } else { "down" }, ms)).count();
        assert_eq!(fluttering, 10);
    }
}
