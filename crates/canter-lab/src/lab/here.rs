//! The folders of the host that the guest shares: the current one and those of `--share`.

use super::{lab_failure, progress::Progress};
use canter_cli::failure::Result;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Folders of the guest that hide the host's.
const HIDING: &[&str] = &["/tmp", "/run"];

/// The command's current folder, the folders whose changes the lab keeps, and what else the guest must not hide.
pub struct Here {
    pub folder: PathBuf,
    pub shares: Vec<PathBuf>,
    /// Entries of the host's /tmp and /run that the command needs. The guest sees them, and its changes are lost.
    pub visible: Vec<PathBuf>,
}

impl Here {
    /// Finds the folders for a command. Its program and the current folder may be below /tmp, as in a checkout there.
    pub fn find(command: &[String], others: &[PathBuf], progress: &Progress) -> Result<Self> {
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
        let program = command.first().map(PathBuf::from);
        let needed = [Some(folder.clone()), program, std::env::current_exe().ok()];
        let mut visible: Vec<_> = needed.iter().flatten().filter_map(|path| hidden_entry(path)).collect();
        visible.retain(|entry| !shares.contains(entry));
        visible.sort();
        visible.dedup();
        visible.iter().try_for_each(|entry| shareable(entry))?;
        Ok(Self { folder, shares, visible })
    }
}

/// The entry of the host's /tmp or /run that this path leads through: `/tmp/clone` of `/tmp/clone/target/debug/canter`.
fn hidden_entry(path: &Path) -> Option<PathBuf> {
    HIDING.iter().find_map(|own| {
        let first = path.strip_prefix(own).ok()?.components().next()?;
        Some(Path::new(own).join(first))
    })
}

/// Refuses a folder that the guest cannot have under the same path.
fn shareable(folder: &Path) -> Result<()> {
    if folder.to_str().is_none_or(|name| name.contains('\n')) {
        return Err(lab_failure(format!(
            "folder {}: its name has characters that the lab cannot pass to the guest (use another folder)",
            folder.display()
        )));
    }
    let separate = ["/proc", "/sys", "/dev"].iter().find(|mount| folder.starts_with(mount));
    match separate.filter(|_| !folder.starts_with("/dev/shm")) {
        Some(mount) => Err(lab_failure(format!(
            "folder {}: the guest has a separate {mount} (use another folder)",
            folder.display()
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_below_tmp_or_run_leads_through_an_entry_that_the_guest_hides() {
        for (path, entry) in [
            ("/tmp/my clone/target/debug/canter", Some("/tmp/my clone")),
            ("/run/user/0/clone", Some("/run/user")),
            ("/tmp", None),
            ("/home/tmp/clone", None),
            ("target/debug/canter", None),
        ] {
            assert_eq!(hidden_entry(Path::new(path)), entry.map(PathBuf::from), "{path}");
        }
    }
}
