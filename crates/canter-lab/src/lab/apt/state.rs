//! An apt state of the lab's own, in its cache: the lists of another architecture or of other suites. The host's apt
//! stays as it is.

use super::Apt;
use crate::lab::{arch::Arch, cache::Cache, lab_failure, progress::Progress};
use canter_cli::failure::{Failure, Result};
use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// A state by its name in the cache.
pub struct State {
    /// The entry's name below `apt/`.
    pub name: String,
    pub arch: Arch,
    /// The lines of a sources.list(5); `None`: the host's sources.
    pub sources: Option<String>,
    /// The contents of the lists, for messages: `arm64`.
    pub lists: String,
}

const CONFIGURATION: &str = "apt.conf";
const SOURCES: &str = "sources.list";
/// Age at which lists are downloaded again when they lack something.
const OLD: Duration = Duration::from_secs(3600);

impl State {
    fn entry(&self) -> String {
        format!("apt/{}", self.name)
    }

    /// The apt with this state, whose lists are downloaded once.
    pub fn open(&self, cache: &Cache, progress: &Progress) -> Result<Apt> {
        let state = cache.entry(&self.entry(), progress, |new| self.fill(new, progress))?;
        Ok(Apt::of(self.configure(state.path())?).with(state))
    }

    /// Downloads the lists again unless they are new, or another lab uses them; returns whether it did.
    pub fn renew(&self, cache: &Cache, progress: &Progress) -> Result<bool> {
        let made = fs::metadata(cache.path(&self.entry()).join("status")).and_then(|about| about.modified());
        let is_old = made.is_ok_and(|made| SystemTime::now().duration_since(made).is_ok_and(|age| age > OLD));
        let Some(new) = is_old.then(|| cache.reserve(&self.entry())).transpose()?.flatten() else {
            return Ok(false);
        };
        self.fill(new.path(), progress)?;
        new.keep(progress)?;
        Ok(true)
    }

    fn fill(&self, new: &Path, progress: &Progress) -> Result<()> {
        let _step = progress.step(&format!("updating apt's lists for {}", self.lists));
        for below in ["state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(new.join(below)).map_err(|e| failed(new, "create", e))?;
        }
        fs::write(new.join("status"), "").map_err(|e| failed(new, "write", e))?;
        if let Some(sources) = &self.sources {
            fs::write(new.join(SOURCES), sources).map_err(|e| failed(new, "write", e))?;
        }
        // The host's sources may have one that does not answer; of the lab's own, each is needed.
        let strict: &[&str] = if self.sources.is_some() { &["--error-on=any"] } else { &[] };
        Apt::of(self.configure(new)?).run("apt-get", &[&["update", "-q"], strict].concat(), new)?;
        // Of another folder; and apt itself writes its indexes again.
        for index in [CONFIGURATION, "cache/pkgcache.bin", "cache/srcpkgcache.bin"] {
            let _ = fs::remove_file(new.join(index));
        }
        Ok(())
    }

    /// Writes the configuration, which names its own folder, unless it exists.
    fn configure(&self, folder: &Path) -> Result<PathBuf> {
        let (file, text) = (folder.join(CONFIGURATION), self.configuration(folder));
        if fs::read_to_string(&file).ok().as_ref() != Some(&text) {
            fs::write(&file, text).map_err(|e| failed(&file, "write", e))?;
        }
        Ok(file)
    }

    fn configuration(&self, folder: &Path) -> String {
        let (arch, folder) = (self.arch.debian(), folder.display());
        let mut text = format!(
            "APT::Architecture \"{arch}\";\nAPT::Architectures {{ \"{arch}\"; }};\nAPT::Sandbox::User \"root\";\n\
             Dir::State \"{folder}/state\";\nDir::State::status \"{folder}/status\";\nDir::Cache \"{folder}/cache\";\n"
        );
        if self.sources.is_some() {
            text += &format!(
                "Dir::Etc::sourcelist \"{folder}/{SOURCES}\";\nDir::Etc::sourceparts \"-\";\n\
                 Dir::Etc::preferences \"-\";\nDir::Etc::preferencesparts \"-\";\n"
            );
        }
        text
    }
}

fn failed(path: &Path, step: &str, error: std::io::Error) -> Failure {
    lab_failure(format!("{}: {step}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_with_sources_reads_none_of_the_hosts() {
        let state = |sources| State { name: String::new(), arch: Arch::Amd64, sources, lists: String::new() };
        let text = state(Some(String::new())).configuration(Path::new("/c"));
        for line in ["Dir::Etc::sourcelist \"/c/sources.list\";", "Dir::Etc::sourceparts \"-\";"] {
            assert!(text.lines().any(|l| l == line), "{text}");
        }
        assert!(!state(None).configuration(Path::new("/c")).contains("Dir::Etc"));
    }

    #[test]
    fn new_lists_are_not_downloaded_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let state = State { name: "x".to_owned(), arch: Arch::Amd64, sources: None, lists: String::new() };
        fs::create_dir_all(folder.path().join("apt/x")).unwrap();
        fs::write(folder.path().join("apt/x/status"), "").unwrap();
        assert!(!state.renew(&cache, &Progress::new(true)).unwrap());
    }
}
