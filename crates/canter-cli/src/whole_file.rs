//! Files that are written whole or not at all: to a temporary file in the same folder that is renamed when complete.

use crate::{failure, trouble};
use std::{fs, io, io::Write, path::Path};

/// Writes `text`; creates the folder if it does not exist.
///
/// # Errors
/// The error names the file. The file keeps its old content.
pub fn write(path: &Path, step: &'static str, text: &str) -> failure::Result<()> {
    let fail = |error: io::Error| trouble::of_file(path, step, error);
    let name = path.file_name().ok_or_else(|| fail(io::ErrorKind::IsADirectory.into()))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(fail)?;
    let unfinished = folder.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    let written = fs::File::create(&unfinished).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&unfinished, path)).map_err(|error| {
        let _ = fs::remove_file(&unfinished); // the first error is the one to report
        fail(error)
    })
}
