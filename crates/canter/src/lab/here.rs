//! The folders of the host that the guest shares: the current one and those of `--share`.

use super::{lab_failure, progress::Progress};
use crate::failure::Result;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The command's current folder, and the folders whose changes the lab keeps.
pub struct Here {
    pub folder: PathBuf,
    pub shares: Vec<PathBuf>,
}

impl Here {
    pub fn find(others: &[PathBuf], progress: &Progress) -> Result<Self> {
        let folder = std::env::current_dir().map_err(|e| lab_failure(format!("current directory: {e}")))?;
        shareable(&folder)?;
        let mut shares = Vec::new();
        if folder == Path::new("/") {
            progress.say("the current directory is /: files that the command writes are lost");
        } else {
            shares.push(folder.clone());
        }
        for other in others {
            let path = fs::canonicalize(other)
                .map_err(|e| lab_failure(format!("--share {}: {e}", other.display())))?;
            if !path.is_dir() || path == Path::new("/") {
                let message =
                    format!("--share {}: not a folder, or the root (name a folder below /)", other.display());
                return Err(lab_failure(message));
            }
            shareable(&path)?;
            shares.push(path);
        }
        // The outer folder first: otherwise it would be mounted over the inner one.
        shares.sort();
        shares.dedup();
        Ok(Self { folder, shares })
    }
}

/// Refuses a folder that the guest cannot have under the same path.
fn shareable(folder: &Path) -> Result<()> {
    if folder.to_str().is_none_or(|name| name.contains('\n')) {
        return Err(lab_failure(format!(
            "folder {}: its name has characters that the lab cannot pass to the guest (use another folder)",
            folder.display()
        )));
    }
    let own = ["/proc", "/sys", "/dev"].iter().find(|own| folder.starts_with(own));
    match own.filter(|_| !folder.starts_with("/dev/shm")) {
        Some(own) => Err(lab_failure(format!(
            "folder {}: the guest has a separate {own} (use another folder)",
            folder.display()
        ))),
        None => Ok(()),
    }
}
