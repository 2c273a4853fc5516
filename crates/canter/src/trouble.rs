//! What goes wrong with interfaces and files, said the same by every command.

use crate::failure::{self, Failure};
use canter_io::{Error, Interface};
use std::{
    io,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

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

/// Set by SIGINT and SIGTERM.
pub fn interrupt_flag() -> failure::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&flag))
            .map_err(|error| Failure::failed(format!("signals: {error}")))?;
    }
    Ok(flag)
}

/// Reports an interface that is down before anything is opened: nothing would ever arrive.
pub fn refuse_down(interface: &Interface) -> failure::Result<()> {
    interface
        .not_ready()
        .map_or(Ok(()), |reason| Err(Failure::failed(format!("{}: {reason}", interface.name))))
}

/// Why frames no longer move through an interface. One that is being deleted goes down first, and that may be all that
/// its sockets have been told.
pub fn explain(name: &str, step: &'static str, error: io::Error) -> Error {
    let gone = if error.kind() == io::ErrorKind::NetworkDown { Interface::find(name).err() } else { None };
    Error::moving(name, step, gone.map_or(error, |gone| gone.source))
}

/// A file that cannot be opened, read or written.
pub fn of_file(path: &Path, step: &'static str, error: io::Error) -> Failure {
    Failure::failed(Error::new(path.display().to_string(), step, error).to_string())
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
