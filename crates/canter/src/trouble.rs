//! What goes wrong with interfaces and files, in the same words by every command.

use crate::failure::{self, Failure};
use canter_io::{
    Error, Interface,
    interface::{Kind, State, remedy},
};
use std::{io, path::Path};

/// Says so before anything is opened: what waits on an interface that is down waits for ever.
pub fn refuse_down(interface: &Interface) -> failure::Result<()> {
    let name = &interface.name;
    if !interface.up && !name.starts_with(canter_io::interface::SIMULATED) {
        let needs_rate = match interface.kind {
            Kind::Canchar => interface.driver.as_deref() != Some("virtual") && interface.bitrate().is_none(),
            _ => interface.controller.is_some(),
        };
        return Err(Failure::failed(format!("{name}: is down ({})", remedy::up(name, needs_rate))));
    }
    if interface.controller.as_ref().is_some_and(|controller| controller.state == Some(State::BusOff)) {
        return Err(Failure::failed(format!("{name}: is off the bus ({})", remedy::restart(name))));
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
