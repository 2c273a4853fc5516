//! The errors of a recording, as the command line reports them.

use canter_capture::Error;
use canter_cli::failure::{Exit, Failure};
use canter_formats::{FORMATS, list_extensions};
use std::path::Path;

/// The error of a recording, with the options that are the way out.
pub fn explain(error: Error) -> Failure {
    use Error::{
        File, FlushTooShort, Io, KeepWithoutRotation, NamedTwice, NoCondition, NoErrorFrames,
        NoHardwareStamps, NoInterface, NotRecorded, RotatesStdout, TriggersStdout, UnknownFormat,
        Unsupported, WindowTooLong,
    };
    use std::io::ErrorKind::AlreadyExists;
    match error {
        Io(error) => error.into(),
        UnknownFormat(path) => Failure::new(Exit::Usage, unknown_format(&path)),
        KeepWithoutRotation => Failure::new(
            Exit::Usage,
            "--keep, --keep-free and --keep-age: need --rotate-size, --rotate-time or --trigger",
        ),
        FlushTooShort(least) => {
            Failure::new(Exit::Usage, format!("--flush-interval: must be at least {} ms", least.as_millis()))
        }
        WindowTooLong { before, bytes, left, longest } => {
            let (needed, free) = (bytes.div_ceil(1_000_000), left / 1_000_000);
            Failure::unable(format!(
                "--before {before:?}: takes {needed} MB of memory at the buses' highest rate, and {free} MB are free (at most \
                 {longest:?} fit, or set a smaller --window-buffer)"
            ))
        }
        NoHardwareStamps(_)
        | NamedTwice(_)
        | RotatesStdout
        | NoCondition
        | NoErrorFrames(_)
        | NotRecorded { .. }
        | TriggersStdout => Failure::new(Exit::Usage, error.to_string()),
        Unsupported { .. } => Failure::unable(error.to_string()),
        File { path, source, .. } if source.kind() == AlreadyExists => {
            Failure::failed(format!("{}: exists (--overwrite replaces it)", path.display()))
        }
        NoInterface => Failure::new(Exit::Usage, error.to_string()),
        _ => Failure::failed(error.to_string()),
    }
}

/// Names the formats that can be recorded; a format that only `canter convert` writes is not unknown.
fn unknown_format(path: &Path) -> String {
    let names = |word| list_extensions(FORMATS, |format| format.append.is_some(), word);
    let known = canter_formats::by_extension(path, FORMATS);
    let path = path.display();
    match known {
        Some(format) if format.write.is_some() => {
            let (names, name) = (names("and"), format.name);
            format!("{path}: capture writes {names} (record one, then canter convert makes {name} of it)")
        }
        _ => format!("{path}: unknown format (end the name in {}, or give --format)", names("or")),
    }
}
