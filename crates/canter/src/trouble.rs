//! What goes wrong with interfaces and files, said the same by every command.

use crate::failure::{self, Failure};
use canter_io::{Error, Interface, interface::State};
use std::{
    io,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

/// Set by SIGINT and SIGTERM.
pub fn interrupt_flag() -> failure::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&flag))
            .map_err(|error| Failure::failed(format!("signals: {error}")))?;
    }
    Ok(flag)
}

/// Says so before anything is opened: what waits on an interface that is down waits for ever.
pub fn refuse_down(interface: &Interface) -> failure::Result<()> {
    let name = &interface.name;
    if !interface.up && !name.starts_with(canter_io::interface::SIMULATED) {
        let rate = if interface.controller.is_some() { " type can bitrate 500000" } else { "" };
        return Err(Failure::failed(format!("{name}: is down (ip link set {name} up{rate})")));
    }
    if interface.controller.as_ref().is_some_and(|controller| controller.state == Some(State::BusOff)) {
        return Err(Failure::failed(format!("{name}: is off the bus (ip link set {name} type can restart)")));
    }
    Ok(())
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
