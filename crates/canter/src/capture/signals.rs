//! The signals that end a recording, and the one that asks for an event.

use canter_cli::failure::{self, Failure};
use canter_io::clock;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ},
    flag,
    iterator::Signals,
};
use std::{
    io,
    sync::{Arc, mpsc},
    thread,
};

/// A signal asks for an event, at this time of the real-time clock, in ns.
pub struct Ask {
    pub at_ns: u64,
}

/// Receives an item for each signal that is to end the recording.
pub type StopSignals = mpsc::Receiver<()>;

/// SIGINT and SIGTERM end the recording. SIGHUP, which a closed terminal sends, does so with `end_on_hangup`; otherwise
/// the recording goes on. With `asks`, SIGUSR1 asks for an event.
pub fn receive(end_on_hangup: bool, asks: bool) -> failure::Result<(StopSignals, mpsc::Receiver<Ask>)> {
    let failed = |error: io::Error| Failure::failed(format!("capture: signals: {error}"));
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?;
    if asks {
        signals.add_signal(SIGUSR1).map_err(failed)?;
    }
    // At the limit of a file's size (ulimit -f) the write fails, and the recording continues in another file.
    flag::register(SIGXFSZ, Arc::default()).map_err(failed)?;
    let (sender, receiver) = mpsc::channel();
    let (asking, asked) = mpsc::channel();
    let pass_on = move || {
        for signal in signals.forever() {
            if signal == SIGUSR1 {
                let _ = asking.send(Ask { at_ns: clock::realtime_ns() }); // nobody asks after the end
            } else if signal == SIGHUP && !end_on_hangup {
                eprintln!("canter: SIGHUP: the recording goes on (SIGTERM ends it; --end-on-hangup)");
            } else if sender.send(()).is_err() {
                break;
            }
        }
    };
    thread::Builder::new().name("canter-signals".to_owned()).spawn(pass_on).map_err(failed)?;
    Ok((receiver, asked))
}
