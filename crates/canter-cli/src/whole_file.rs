//! Files that are written whole or not at all: to a temporary file in the same folder that is renamed when complete.

use crate::{failure, trouble};
use std::{
    fs::{self, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
};

/// Writes `text`; creates the folder if it does not exist.
///
/// # Errors
/// The error names the file. The file keeps its old content.
pub fn write(path: &Path, step: &'static str, text: &str) -> failure::Result<()> {
    let write = || -> io::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        // The rights of any new file, which the umask limits; tempfile's own are for the owner only.
        let rights = Permissions::from_mode(0o666);
        let mut file = tempfile::Builder::new().permissions(rights).tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(|error| trouble::file_failure(path, step, error))
}
