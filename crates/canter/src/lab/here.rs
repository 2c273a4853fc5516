//! The folders of the host in which the command runs and its changes stay.

use super::{lab_failure, progress::Progress};
use crate::failure::Result;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Where the command runs, and the folders in which its changes stay.
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
            progress
                .say("the current directory is /: what the command writes stays in the guest and is lost");
        } else {
            shares.push(folder.clone());
        }
        for other in others {
            let path = fs::canonicalize(other)
                .map_err(|e| lab_failure(format!("--share {}: {e}", other.display())))?;
            if !path.is_dir() || path == Path::new("/") {
                let message = format!("--share {}: it must be a folder, and not the root", other.display());
                return Err(lab_failure(message));
            }
            shareable(&path)?;
            shares.push(path);
        }
        // The outer before the inner, or it would be mounted over it.
        shares.sort();
        shares.dedup();
        Ok(Self { folder, shares })
    }
}

/// A folder that can be at the same place in the guest.
fn shareable(folder: &Path) -> Result<()> {
    if folder.to_str().is_none_or(|name| name.contains('\n')) {
        return Err(lab_failure(format!(
            "folder {}: not a name that the guest can be told",
            folder.display()
        )));
    }
    let own = ["/proc", "/sys", "/dev"].iter().find(|own| folder.starts_with(own));
    match own.filter(|_| !folder.starts_with("/dev/shm")) {
        Some(own) => Err(lab_failure(format!(
            "folder {}: the guest has a {own} of its own: use another",
            folder.display()
        ))),
        None => Ok(()),
    }
}
