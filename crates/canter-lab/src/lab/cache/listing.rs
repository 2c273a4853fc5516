//! The list of an entry's files, written into the entry when it is complete. An entry that differs from its list, or
//! has none, is made again. Contents are not read: a kernel's folder has 5000 files and 300 MB, and every lab checks it.

use std::{
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
};

/// The name of an entry's list of files.
const NAME: &str = ".canter";
/// The first line of an entry's list: the version of the cache.
const VERSION: &str = "canter cache 1";

/// Writes the list of the files in `folder`: size, time in seconds and path of each.
pub fn write(folder: &Path) -> io::Result<()> {
    let mut list = format!("{VERSION}\n");
    add(folder, "", &mut list)?;
    fs::write(folder.join(NAME), list)
}

fn add(folder: &Path, below: &str, list: &mut String) -> io::Result<()> {
    for entry in fs::read_dir(folder.join(below))? {
        let entry = entry?;
        // No package has such names; a file with one is not watched.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        if path.contains('\n') {
            continue;
        }
        let about = entry.metadata()?;
        if about.is_dir() {
            add(folder, &path, list)?;
        } else {
            *list += &line(&about, &path);
        }
    }
    Ok(())
}

fn line(about: &Metadata, path: &str) -> String {
    format!("{} {} {path}\n", about.len(), about.mtime())
}

/// Compares `folder` with its list. The error says what differs. Files that the list lacks are no difference.
pub fn check(folder: &Path) -> Result<(), String> {
    let list = fs::read_to_string(folder.join(NAME))
        .map_err(|_| "incomplete, or made by another version of canter".to_owned())?;
    let Some(files) = list.strip_prefix(VERSION).and_then(|rest| rest.strip_prefix('\n')) else {
        return Err("made by another version of canter".to_owned());
    };
    for file in files.split_inclusive('\n') {
        let path = file.trim_end_matches('\n').splitn(3, ' ').nth(2).ok_or("its list of files is damaged")?;
        match fs::symlink_metadata(folder.join(path)) {
            Ok(about) if line(&about, path) == file => {}
            Ok(_) => return Err(format!("{path} has changed")),
            Err(_) => return Err(format!("{path} is missing")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_damage_a_folder_is_noticed() {
        type Harm = fn(&Path);
        let damage: [(&str, Harm); 6] = [
            ("lib/a.ko is missing", |at| fs::remove_file(at.join("lib/a.ko")).unwrap()),
            ("lib/a.ko has changed", |at| fs::write(at.join("lib/a.ko"), "cut").unwrap()),
            ("link is missing", |at| fs::remove_file(at.join("link")).unwrap()),
            ("made by another version of canter", |at| fs::write(at.join(NAME), "canter cache 0\n").unwrap()),
            ("incomplete, or made by another version of canter", |at| {
                fs::remove_file(at.join(NAME)).unwrap();
            }),
            ("its list of files is damaged", |at| {
                fs::write(at.join(NAME), format!("{VERSION}\n7 1")).unwrap();
            }),
        ];
        for (wanted, harm) in damage {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir(folder.path().join("lib")).unwrap();
            fs::write(folder.path().join("lib/a.ko"), "a module").unwrap();
            std::os::unix::fs::symlink("lib", folder.path().join("link")).unwrap();
            write(folder.path()).unwrap();
            assert_eq!(check(folder.path()), Ok(()));
            fs::write(folder.path().join("another"), "is no difference").unwrap();
            assert_eq!(check(folder.path()), Ok(()));
            harm(folder.path());
            assert_eq!(check(folder.path()), Err(wanted.to_owned()));
        }
    }

    #[test]
    fn a_file_of_the_same_size_and_another_time_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.ko");
        fs::write(&file, "a module").unwrap();
        write(folder.path()).unwrap();
        let later = fs::metadata(&file).unwrap().modified().unwrap() + std::time::Duration::from_secs(2);
        fs::File::options().write(true).open(&file).unwrap().set_modified(later).unwrap();
        assert_eq!(check(folder.path()), Err("a.ko has changed".to_owned()));
    }
}
