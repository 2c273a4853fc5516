//! The errors of a recording, as the command line reports them.

use canter_capture::Error;
use canter_cli::failure::{Exit, Failure};
use canter_formats::{FORMATS, list_extensions};

/// The error of a recording, with the options that are the way out.
pub fn explain(error: Error) -> Failure {
    use Error::{
        File, FlushTooShort, Io, KeepWithoutRotation, NamedTwice, NoHardwareStamps, NoInterface,
        RotatesStdout, UnknownFormat, Unsupported,
    };
    use std::io::ErrorKind::AlreadyExists;
    match error {
        Io(error) => error.into(),
        UnknownFormat(path) => Failure::new(
            Exit::Usage,
            format!(
                "{}: unknown format (end the name in {}, or give --format)",
                path.display(),
                list_extensions(FORMATS, |format| format.append.is_some(), "or")
            ),
        ),
        KeepWithoutRotation => Failure::new(
            Exit::Usage,
            "--keep, --keep-free and --keep-age: need --rotate-size or --rotate-time",
        ),
        FlushTooShort(least) => {
            Failure::new(Exit::Usage, format!("--flush-interval: must be at least {} ms", least.as_millis()))
        }
        NoHardwareStamps(_) | NamedTwice(_) | RotatesStdout => Failure::new(Exit::Usage, error.to_string()),
        Unsupported { .. } => Failure::unable(error.to_string()),
        File { path, step, source } if source.kind() == AlreadyExists => {
            let (path, reason) = (path.display(), canter_io::error::plain(&source));
            Failure::failed(format!("{path}: {step}: {reason} (--overwrite replaces it)"))
        }
        NoInterface => Failure::new(Exit::Usage, error.to_string()),
        _ => Failure::failed(error.to_string()),
    }
}
