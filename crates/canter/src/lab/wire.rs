//! canwire, the virtual bus that has time, built for the guest's kernel from the sources that this program carries, and
//! loaded with the papers' testbed on it.

use super::{Kernel, cache::Cache, headers, kernel::Extra, lab_failure, progress::Progress};
use crate::failure::Result;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

/// The nodes and their buses, beside can0…can4 and wired as those.
const NODES: &str = "wcan0:A,wcan1:A,wcan2:B,wcan3:A,wcan4:B";

/// The module's folder in the sources.
const FOLDER: &str = "canwire";

macro_rules! sources {
    ($($file:literal,)*) => {
        &[$(($file, include_str!(concat!("../../../../kernel/", $file)))),*]
    };
}

/// Every file that it is built from, by its place below kernel/.
const SOURCES: &[(&str, &str)] = sources! {
    "uapi/canwire.h",
    "canwire/Kbuild",
    "canwire/bits.c",
    "canwire/bits.h",
    "canwire/bus.h",
    "canwire/compat.h",
    "canwire/controller.c",
    "canwire/faults.c",
    "canwire/handover.c",
    "canwire/main.c",
    "canwire/netlink.c",
    "canwire/netlink.h",
    "canwire/netlink_get.c",
    "canwire/netlink_source.c",
    "canwire/node.c",
    "canwire/node.h",
    "canwire/source.c",
    "canwire/source.h",
    "canwire/tap.c",
    "canwire/tap.h",
    "canwire/wire.c",
    "canwire/wire.h",
};

/// Adds the module to a kernel.
pub fn add(kernel: &mut Kernel, cache: &Cache, progress: &Progress) -> Result<()> {
    let build = match &kernel.build_tree {
        Some(tree) => tree.clone(),
        None => headers::build_folder(&kernel.release, cache, progress)?,
    };
    // The kernel's key, because a tree is built again under the same release.
    let name = format!("drivers/canwire-{}-{}-{:016x}", kernel.release, kernel.key, source_key());
    let built = cache.entry(&name, progress, |new, _| {
        let _step = progress.step(&format!("building canwire for {}", kernel.release));
        write(new).map_err(|e| lab_failure(format!("canwire's sources: {}: write: {e}", new.display())))?;
        headers::make(&build, &new.join(FOLDER), &[])
    })?;
    let file = built.join(FOLDER).join("canwire.ko");
    kernel.extra_modules.push(Extra { file, parameters: format!("nodes={NODES}") });
    Ok(())
}

fn source_key() -> u64 {
    let mut hasher = DefaultHasher::new();
    SOURCES.hash(&mut hasher);
    hasher.finish()
}

fn write(to: &Path) -> std::io::Result<()> {
    for (name, text) in SOURCES {
        let path = to.join(name);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_source_of_the_module_is_carried() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel");
        let mut there: BTreeSet<String> = BTreeSet::from(["uapi/canwire.h".to_owned()]);
        for entry in fs::read_dir(root.join(FOLDER)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let is_source =
                name == "Kbuild" || name.ends_with(".c") && !name.ends_with(".mod.c") || name.ends_with(".h");
            if is_source {
                there.insert(format!("{FOLDER}/{name}"));
            }
        }
        let carried: BTreeSet<String> = SOURCES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(carried, there);
    }
}
