//! The file of the account, `FILE.account.json`: from the start it says that the recording has not ended, and at the end
//! the account replaces that. An earlier account is never truncated.

use super::errors;
use canter_capture::{Account, Error};
use canter_cli::{failure, trouble};
use std::{
    io,
    path::{Path, PathBuf},
};

/// The file of the account; none when the recording goes to standard output.
#[derive(Clone)]
pub struct AccountFile {
    output: PathBuf,
    path: Option<PathBuf>,
}

impl AccountFile {
    /// The file for a recording to `output`. Nothing is written yet.
    ///
    /// # Errors
    /// The account of an earlier recording exists, and `overwrite` is not set; its name is too long.
    pub fn new(output: &Path, overwrite: bool) -> failure::Result<Self> {
        let path = (output != Path::new("-")).then(|| Account::path(output));
        // Writing to a device or FIFO replaces no recording.
        let may_replace = overwrite || output.metadata().is_ok_and(|about| !about.is_file());
        let refused = |path: &Path, source| {
            Err(errors::explain(Error::File { path: path.to_owned(), step: "open", source }))
        };
        match path.as_ref().map(|path| (path, path.symlink_metadata())) {
            Some((path, Ok(_))) if !may_replace => return refused(path, io::ErrorKind::AlreadyExists.into()),
            // Such a name is too long; a missing folder is found when the recording is created.
            Some((path, Err(error))) if error.kind() != io::ErrorKind::NotFound => {
                return refused(path, error);
            }
            _ => {}
        }
        Ok(Self { output: output.to_owned(), path })
    }

    /// Writes that the recording has not ended: that is what a killed process leaves. A full disk does not end the recording,
    /// which continues when there is room.
    pub fn begin(&self) -> failure::Result<()> {
        match self.save(&Account::unfinished(&self.output)) {
            Err((path, error)) if error.kind() == io::ErrorKind::StorageFull => {
                eprintln!(
                    "canter: {}; it is written at the end",
                    trouble::file_failure(path, "write", error)
                );
                Ok(())
            }
            saved => saved.map_err(|(path, error)| trouble::file_failure(path, "write", error)),
        }
    }

    /// Writes the account.
    pub fn end(&self, account: &Account) -> failure::Result<()> {
        self.save(account).map_err(|(path, error)| trouble::file_failure(path, "write", error))
    }

    fn save(&self, account: &Account) -> Result<(), (&Path, io::Error)> {
        let Some(path) = &self.path else { return Ok(()) };
        account.save(path).map_err(|error| (path.as_path(), error))
    }
}
