//! Errors of interfaces and files, in the same words by every command.

use crate::failure::{self, Failure};
use canter_io::{Error, Interface};
use std::{io, path::Path};

/// Reports an interface that is down before anything is opened: nothing would ever arrive.
pub fn refuse_down(interface: &Interface) -> failure::Result<()> {
    interface
        .not_ready()
        .map_or(Ok(()), |reason| Err(Failure::failed(format!("{}: {reason}", interface.name))))
}

/// Refuses an interface that carries classic frames only.
pub fn refuse_classic(interface: &Interface) -> failure::Result<()> {
    if interface.supports_fd() {
        return Ok(());
    }
    let name = &interface.name;
    let way_out = format!("ip link set {name} mtu 72, or type can … fd on");
    Err(Failure::unable(format!("{name}: cannot carry FD frames ({way_out})")))
}

/// An error of receiving or sending, with its cause. An interface goes down before the kernel deletes it, so its sockets
/// may report only that it is down.
pub fn explain(name: &str, step: &'static str, error: io::Error) -> Error {
    let deleted = if error.kind() == io::ErrorKind::NetworkDown { Interface::find(name).err() } else { None };
    Error::moving(name, step, deleted.map_or(error, |deleted| deleted.source))
}

/// An error in a recording, with the option that is the way out.
pub fn recording_failure(error: canter_formats::Error) -> Failure {
    match &error {
        canter_formats::Error::Malformed { .. } => {
            Failure::failed(format!("{error}; --salvage skips what is damaged"))
        }
        _ => error.into(),
    }
}

/// Reads a file that must be text.
pub fn read_text(path: &Path) -> failure::Result<String> {
    std::fs::read_to_string(path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => {
            let reason = "is not UTF-8 text (is it the right file? canter convert reads recordings)";
            Failure::failed(format!("{}: read: {reason}", path.display()))
        }
        _ => file_failure(path, "read", error),
    })
}

/// A file that cannot be opened, read or written.
pub fn file_failure(path: &Path, step: &'static str, error: io::Error) -> Failure {
    Failure::failed(Error::new(path.display().to_string(), step, error).to_string())
}
