//! Builds our kernel modules for a guest's kernel on first use, from the sources in this program.

use super::{
    cache::{Cache, Entry},
    headers,
    kernel::{Extra, Kernel},
    lab_failure,
    module::{Chosen, Source},
    progress::Progress,
};
use canter_cli::failure::Result;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

/// Builds the module and adds it to the kernel's list of modules to load.
pub fn add(chosen: &Chosen, kernel: &mut Kernel, cache: &Cache, progress: &Progress) -> Result<()> {
    let Source { name, folder, .. } = chosen.module.source;
    let built = build(&chosen.module.source, kernel, cache, progress)?;
    let file = built.path().join(folder).join(format!("{name}.ko"));
    kernel.in_use.push(built);
    kernel.extra_modules.push(Extra { file, parameters: chosen.loading.parameters.clone() });
    Ok(())
}

/// Builds the module for this kernel, unless it is in the cache.
fn build(source: &Source, kernel: &Kernel, cache: &Cache, progress: &Progress) -> Result<Entry> {
    let Source { name, folder, files } = source;
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    // The key, because a tree is built again under the same release.
    let of_tree = kernel.build_tree.as_ref().map_or(String::new(), |_| format!("-{}", kernel.key));
    let entry = format!("drivers/{name}-{:016x}-{}{of_tree}", hasher.finish(), kernel.release);
    cache.entry(&entry, progress, |new| {
        write(files, new).map_err(|e| lab_failure(format!("{}: {e}", new.display())))?;
        headers::build(kernel, &new.join(folder), &[], cache, progress)
    })
}

fn write(files: &[(&str, &str)], to: &Path) -> std::io::Result<()> {
    for (path, content) in files {
        let path = to.join(path);
        fs::create_dir_all(path.parent().unwrap_or(to))?;
        fs::write(path, content)?;
    }
    Ok(())
}
