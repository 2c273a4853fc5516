//! Our kernel modules for the lab, in the order in which a guest loads them.

use super::{bare_metal, canchar, module::Module, probe, wire};

pub static MODULES: &[Module] = &[wire::MODULE, probe::MODULE, bare_metal::MODULE, canchar::MODULE];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::module::Source;
    use std::{collections::BTreeSet, fs, path::Path};

    #[test]
    fn every_source_of_a_module_is_carried() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel");
        for Source { name, folder, files } in MODULES.iter().map(|module| &module.source) {
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
            // A module may also use files of another module.
            let carried: BTreeSet<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
            let missing: Vec<_> = there.difference(&carried).collect();
            assert!(missing.is_empty(), "{name}: {missing:?}");
        }
    }
}
