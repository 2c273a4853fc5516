//! The version of the host's QEMU. Its program needs a tenth of a second to say it, so the answer is kept with the program's
//! identity.

use super::{
    apt,
    arch::Arch,
    cache::{self, Cache},
    kernel, lab_failure, programs,
};
use canter_cli::failure::Result;
use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

/// The version of the QEMU for this board, `7.2.22`.
pub fn find(arch: Arch, cache: &Cache) -> Result<String> {
    let name = arch.qemu().name;
    let kept = Kept::new(&programs::path(arch.qemu()), &cache.path(cache::QEMU).join(name));
    if let Some(version) = kept.as_ref().and_then(Kept::read) {
        return Ok(version);
    }
    let output = apt::run(name, &["--version"], Path::new("/"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.split("version ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let version = version.ok_or_else(|| lab_failure(format!("{name} --version: {}", text.trim())))?;
    if let Some(kept) = kept {
        let _ = kept.write(version); // without it the next run asks again
    }
    Ok(version.to_owned())
}

/// A file with a program's identity and its version.
struct Kept {
    file: PathBuf,
    identity: String,
}

impl Kept {
    /// `None` for a program that is a script: it may start any other one.
    fn new(program: &Path, file: &Path) -> Option<Self> {
        let program = program.canonicalize().ok()?;
        let mut magic = [0; 4];
        File::open(&program).ok()?.read_exact(&mut magic).ok()?;
        let identity = kernel::identity(&program);
        (magic == *b"\x7fELF").then(|| Self { file: file.to_owned(), identity })
    }

    fn read(&self) -> Option<String> {
        let text = fs::read_to_string(&self.file).ok()?;
        let version = text.strip_prefix(&self.identity)?.strip_prefix('\n')?;
        version.strip_suffix('\n').filter(|version| !version.is_empty()).map(str::to_owned)
    }

    fn write(&self, version: &str) -> io::Result<()> {
        fs::create_dir_all(self.file.parent().unwrap_or(Path::new("")))?;
        fs::write(&self.file, format!("{}\n{version}\n", self.identity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn a_version_is_kept_until_its_program_changes() {
        let folder = tempfile::tempdir().unwrap();
        let [program, file] = ["qemu", "kept/qemu"].map(|name| folder.path().join(name));
        fs::write(&program, b"\x7fELF one").unwrap();
        let kept = || Kept::new(&program, &file).unwrap();
        assert_eq!(kept().read(), None);
        kept().write("7.2.22").unwrap();
        assert_eq!(kept().read().as_deref(), Some("7.2.22"));
        // As long as before, at another time.
        let later = SystemTime::now() + Duration::from_secs(1);
        File::options().write(true).open(&program).unwrap().set_modified(later).unwrap();
        assert_eq!(kept().read(), None);
        kept().write("10.0.2").unwrap();
        assert_eq!(kept().read().as_deref(), Some("10.0.2"));
        let whole = fs::read_to_string(&file).unwrap();
        fs::write(&file, &whole[..whole.len() - 2]).unwrap();
        assert_eq!(kept().read(), None, "the end of a write that was cut off is not believed");
    }

    #[test]
    fn what_a_script_starts_is_asked_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("qemu");
        fs::write(&program, "#!/bin/sh\nexec other-qemu \"$@\"\n").unwrap();
        assert!(Kept::new(&program, &folder.path().join("kept")).is_none());
    }
}
