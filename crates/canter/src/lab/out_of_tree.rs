//! Kernel modules of our own: their sources are in this program, and they are built for a guest's kernel on first use.

use super::{Kernel, cache::Cache, headers, kernel::Extra, lab_failure, progress::Progress};
use crate::failure::Result;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// The source of a module, as it lies below kernel/.
pub struct Source {
    /// Of the module.
    pub name: &'static str,
    /// Where it is made, below kernel/.
    pub folder: &'static str,
    /// Paths below kernel/ and what the files hold.
    pub files: &'static [(&'static str, &'static str)],
}

/// Files by their paths below kernel/, carried in this program.
macro_rules! sources {
    ($($path:literal)*) => { &[$(($path, include_str!(concat!("../../../../kernel/", $path)))),*] };
}
pub(super) use sources;

/// Adds the module to a kernel, to be loaded with these `name=value` words.
pub fn add(
    source: &Source,
    parameters: String,
    kernel: &mut Kernel,
    cache: &Cache,
    progress: &Progress,
) -> Result<()> {
    let file = build(source, kernel, cache, progress)?;
    kernel.extra_modules.push(Extra { file, parameters });
    Ok(())
}

/// Builds the module for this kernel, unless it is in the cache, and answers its file.
pub fn build(source: &Source, kernel: &Kernel, cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    let Source { name, folder, files } = source;
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    // The key, because a tree is built again under the same release.
    let of_tree = kernel.build_tree.as_ref().map_or(String::new(), |_| format!("-{}", kernel.key));
    let entry = format!("drivers/{name}-{:016x}-{}{of_tree}", hasher.finish(), kernel.release);
    let built = cache.entry(&entry, progress, |new, _| {
        let build = match &kernel.build_tree {
            Some(tree) => tree.clone(),
            None => headers::build_folder(&kernel.release, cache, progress)?,
        };
        let _step = progress.step(&format!("building {name} for {}", kernel.release));
        write(files, new).map_err(|e| lab_failure(format!("{}: {e}", new.display())))?;
        headers::make(&build, &new.join(folder), &[])
    })?;
    Ok(built.join(folder).join(format!("{name}.ko")))
}

fn write(files: &[(&str, &str)], to: &Path) -> std::io::Result<()> {
    for (path, content) in files {
        let path = to.join(path);
        fs::create_dir_all(path.parent().unwrap_or(to))?;
        fs::write(path, content)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{bare_metal, canchar, probe, wire};
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_source_of_a_module_is_carried() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel");
        for Source { name, folder, files } in
            [bare_metal::SOURCE, canchar::SOURCE, wire::SOURCE, probe::SOURCE]
        {
            let mut there = BTreeSet::from([format!("uapi/{name}.h")]);
            for entry in fs::read_dir(root.join(folder)).unwrap() {
                let file = entry.unwrap().file_name().into_string().unwrap();
                let is_source = file == "Kbuild"
                    || file.ends_with(".c") && !file.ends_with(".mod.c")
                    || file.ends_with(".h");
                if is_source {
                    there.insert(format!("{folder}/{file}"));
                }
            }
            // A module may have files of another one besides.
            let carried: BTreeSet<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
            let missing: Vec<_> = there.difference(&carried).collect();
            assert!(missing.is_empty(), "{name}: {missing:?}");
        }
    }
}
