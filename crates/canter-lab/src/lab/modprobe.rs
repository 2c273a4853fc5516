//! Which module files a guest must load, and in which order: the work of modprobe, before the guest has modprobe.

use super::lab_failure;
use canter_cli::failure::Result;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// `modules.dep` and `modules.builtin` of one kernel.
#[derive(Debug, Default)]
pub struct Index {
    /// The file of each module by the module's name, and the files that it needs, in reverse order of loading.
    files: HashMap<String, (String, Vec<String>)>,
    builtin: HashSet<String>,
}

/// The result of a search for modules.
#[derive(Debug, PartialEq, Eq)]
pub struct Order {
    /// Files below the module folder, in the order to load them.
    pub files: Vec<String>,
    /// Names that this kernel has neither as a module nor built in.
    pub absent: Vec<String>,
}

impl Index {
    /// Reads the module folder of one kernel (`lib/modules/RELEASE`).
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("modules.dep");
        let dep =
            std::fs::read_to_string(&path).map_err(|e| lab_failure(format!("{}: {e}", path.display())))?;
        let builtin = std::fs::read_to_string(folder.join("modules.builtin")).unwrap_or_default();
        Ok(Self::parse(&dep, &builtin))
    }

    /// An index of built-in modules only, from the text of `modules.builtin`.
    pub fn builtin_only(builtin: &str) -> Self {
        Self::parse("", builtin)
    }

    fn parse(dep: &str, builtin: &str) -> Self {
        let files = dep.lines().filter_map(|line| line.split_once(':')).map(|(file, needs)| {
            let needs = needs.split_whitespace().map(str::to_owned).collect();
            (name_of(file), (file.to_owned(), needs))
        });
        Self { files: files.collect(), builtin: builtin.lines().map(name_of).collect() }
    }

    pub fn has(&self, module: &str) -> bool {
        let name = module.replace('-', "_");
        self.files.contains_key(&name) || self.builtin.contains(&name)
    }

    /// The files for `modules` and their dependencies, each once.
    pub fn order(&self, modules: &[&str]) -> Order {
        let mut order = Order { files: Vec::new(), absent: Vec::new() };
        let mut seen = HashSet::new();
        for module in modules {
            let name = module.replace('-', "_");
            match self.files.get(&name) {
                Some((file, needs)) => {
                    for each in needs.iter().rev().chain([file]) {
                        if seen.insert(each.clone()) {
                            order.files.push(each.clone());
                        }
                    }
                }
                None if self.builtin.contains(&name) => {}
                None => order.absent.push((*module).to_owned()),
            }
        }
        order
    }
}

/// The name of the module in a file: can_raw for `kernel/net/can/can-raw.ko.xz`.
fn name_of(file: &str) -> String {
    let base = file.rsplit('/').next().unwrap_or(file);
    base.split(".ko").next().unwrap_or(base).replace('-', "_")
}

/// A module's content, uncompressed, because busybox's insmod does not decompress.
pub fn read_plain(path: &Path) -> Result<Vec<u8>> {
    let tool = match path.extension().and_then(|e| e.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return std::fs::read(path).map_err(|e| lab_failure(format!("{}: {e}", path.display()))),
    };
    let output = Command::new(tool).args(["-dcq"]).arg(path).stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => Ok(output.stdout),
        Ok(output) => Err(lab_failure(format!(
            "{}: {tool}: {}",
            path.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
        Err(error) => Err(lab_failure(format!("{}: {tool}: {error}", path.display()))),
    }
}

/// The plain name that a module file has in the initramfs.
pub fn plain_name(file: &str) -> String {
    let base = Path::new(file).file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    match base.find(".ko") {
        Some(at) => base[..at + 3].to_owned(),
        None => base,
    }
}

/// Writes `modules.dep` and its companions for the kernel below `tree`, unless they exist.
pub fn index(depmod: &Path, tree: &Path, release: &str) -> Result<()> {
    let folder: PathBuf = tree.join("lib/modules").join(release);
    if folder.join("modules.dep").exists() {
        return Ok(());
    }
    let output = Command::new(depmod).arg("-b").arg(tree).arg(release).stdin(Stdio::null()).output();
    let output = output.map_err(|e| lab_failure(format!("depmod: {e}")))?;
    if output.status.success() && folder.join("modules.dep").exists() {
        return Ok(());
    }
    Err(lab_failure(format!(
        "{}: depmod -b {} {release} wrote no modules.dep: {} (run it once as a user who may write there)",
        folder.display(),
        tree.display(),
        String::from_utf8_lossy(&output.stderr).trim()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEP: &str = "kernel/net/can/can.ko.xz:\n\
        kernel/net/can/can-raw.ko.xz: kernel/net/can/can.ko.xz\n\
        kernel/drivers/net/can/sja1000/kvaser_pci.ko.xz: kernel/drivers/net/can/sja1000/sja1000.ko.xz \
        kernel/drivers/net/can/dev/can-dev.ko.xz\n\
        kernel/drivers/net/can/sja1000/sja1000.ko.xz: kernel/drivers/net/can/dev/can-dev.ko.xz\n";

    #[test]
    fn dependencies_are_loaded_before_the_module_and_once() {
        let index = Index::parse(DEP, "kernel/fs/overlayfs/overlay.ko\n");
        let order = index.order(&["overlay", "can_raw", "kvaser-pci", "can-raw", "nonesuch"]);
        let names: Vec<_> = order.files.iter().map(|f| plain_name(f)).collect();
        assert_eq!(names, ["can.ko", "can-raw.ko", "can-dev.ko", "sja1000.ko", "kvaser_pci.ko"]);
        assert_eq!(order.absent, ["nonesuch"]);
        assert!(index.has("overlay") && index.has("kvaser-pci") && !index.has("9p"));
    }

    #[test]
    fn a_kernel_without_modules_loads_nothing() {
        let order = Index::builtin_only("kernel/net/can/can-raw.ko\n").order(&["can_raw"]);
        assert_eq!(order, Order { files: vec![], absent: vec![] });
    }

    #[test]
    fn every_compression_has_the_same_plain_name() {
        for file in ["a/can-dev.ko", "a/can-dev.ko.xz", "/b/can-dev.ko.zst", "can-dev.ko.gz"] {
            assert_eq!(plain_name(file), "can-dev.ko");
        }
    }
}
