//! The kernel that the lab boots: from apt by series, or a tree by path.

mod catalog;
mod debian;
mod installed;

pub use catalog::print as print_list;

use super::apt::Series;
use super::{
    arch::Arch,
    cache::{Cache, Entry},
    lab_failure, modprobe,
    modprobe::Index,
    programs,
    progress::Progress,
    vmlinux,
};
use canter_cli::failure::Result;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A kernel ready to boot.
#[derive(Debug, Default)]
pub struct Kernel {
    /// The kernel's release, as `uname -r` prints it in the guest.
    pub release: String,
    /// The image that QEMU starts.
    pub image: PathBuf,
    /// The folder `lib/modules`, when the kernel has modules.
    pub modules: Option<PathBuf>,
    pub index: Index,
    /// Modules outside of that folder, in the order to load them.
    pub extra_modules: Vec<Extra>,
    /// The kernel's build tree, if it has one.
    pub build_tree: Option<PathBuf>,
    /// The key that identifies the build.
    pub key: String,
    /// The packages of the distribution with their hashes, as [`super::apt::extract`] answers them, by commas.
    pub packages: String,
    /// The cache's entries that the machine uses: nobody removes these before the machine has ended.
    pub in_use: Vec<Entry>,
}

/// A module that the lab has built.
#[derive(Clone, Debug)]
pub struct Extra {
    pub file: PathBuf,
    /// The module's parameters as insmod takes them: `name=value` words.
    pub parameters: String,
}

impl Extra {
    /// A module without parameters.
    pub fn new(file: PathBuf) -> Self {
        Self { file, parameters: String::new() }
    }
}

/// Finds the kernel `name`: `6.12`, `6.1-rt`, or the path of a tree.
pub fn find(name: &str, arch: Arch, cache: &Cache, progress: &Progress) -> Result<Kernel> {
    match Series::parse(name, arch) {
        // A machine of another architecture needs Debian's packages anyway.
        Some(series) if programs::find(programs::APT).is_some() || !arch.is_host() => {
            debian::find(&series, cache, progress)
        }
        Some(series) => installed::find(Path::new("/"), &series, cache, progress),
        None if !arch.is_host() => {
            Err(lab_failure(format!("kernel {name}: with --arch only a series like 6.12 or 6.1-rt")))
        }
        None => {
            let tree = fs::canonicalize(name).map_err(|e| {
                lab_failure(format!(
                    "kernel {name}: {e} (a series like 6.12 or 6.1-rt, or the folder of a kernel)"
                ))
            })?;
            from_tree(&tree, cache, progress)
        }
    }
}

fn from_tree(tree: &Path, cache: &Cache, progress: &Progress) -> Result<Kernel> {
    if tree.join(Arch::default().built_image()).exists() {
        return from_build_tree(tree, cache, progress);
    }
    from_package_tree(tree, cache, progress)
}

/// The kernel in a tree made by `dpkg-deb -x linux-image-….deb TREE`, since 6.19.14 of linux-binary, -modules and -base.
fn from_package_tree(tree: &Path, cache: &Cache, progress: &Progress) -> Result<Kernel> {
    let wrong = |reason: &str| lab_failure(format!("kernel {}: {reason}", tree.display()));
    let modules = ["lib/modules", "usr/lib/modules"].map(|folder| tree.join(folder));
    let modules = modules.into_iter().find(|folder| folder.is_dir());
    let in_boot = first_file(&tree.join("boot"), "vmlinuz");
    let named = in_boot.as_ref().and_then(|file| file.file_name()?.to_str()?.strip_prefix("vmlinuz-"));
    let release = modules.as_ref().and_then(|modules| match named {
        Some(release) if modules.join(release).is_dir() => Some(release.to_owned()),
        _ => only_folder(modules),
    });
    let beside =
        |name| Some(modules.as_ref()?.join(release.as_ref()?).join(name)).filter(|file| file.exists());
    let image = in_boot.clone().or_else(|| beside("vmlinuz")).ok_or_else(|| {
        wrong(
            "neither a package tree (boot/vmlinuz-… or lib/modules/…/vmlinuz) nor a build tree \
             (arch/x86/boot/bzImage, on arm64 arch/arm64/boot/Image)",
        )
    })?;
    let modules = modules.as_ref().ok_or_else(|| wrong("no folder lib/modules"))?;
    let release = release.as_ref().ok_or_else(|| wrong("not exactly one kernel in lib/modules"))?;
    if beside("modules.builtin").is_none() {
        return Err(wrong(&format!(
            "no modules.builtin (extract linux-base-{release} and linux-modules-{release} too)"
        )));
    }
    let root = if modules.starts_with(tree.join("usr")) { &tree.join("usr") } else { tree };
    modprobe::index(&programs::path(programs::DEPMOD), root, release)?;
    let config = beside("config").unwrap_or_else(|| tree.join(format!("boot/config-{release}")));
    let packed = Packed { release: release.clone(), image, config, modules: modules.clone() };
    packed.unpack(cache, progress)
}

/// A kernel as a package contains it.
struct Packed {
    release: String,
    image: PathBuf,
    config: PathBuf,
    /// The path of the folder lib/modules.
    modules: PathBuf,
}

impl Packed {
    /// The kernel, uncompressed if QEMU can start that.
    fn unpack(self, cache: &Cache, progress: &Progress) -> Result<Kernel> {
        let Self { release, mut image, config, modules } = self;
        let (key, mut in_use) = (key(&image), vec![]);
        if Arch::default().unpacks() && has_pvh(&config) {
            let unpacked = cache.entry(&format!("images/{key}"), progress, |new| {
                vmlinux::extract(&image, &new.join("vmlinux"))
            })?;
            image = unpacked.path().join("vmlinux");
            in_use.push(unpacked);
        }
        let index = Index::read(&modules.join(&release))?;
        Ok(Kernel { release, image, modules: Some(modules), index, key, in_use, ..Kernel::default() })
    }
}

/// A folder in which a kernel was built.
fn from_build_tree(tree: &Path, cache: &Cache, progress: &Progress) -> Result<Kernel> {
    let read = |file: &str| {
        let path = tree.join(file);
        fs::read_to_string(&path).map_err(|e| lab_failure(format!("kernel {}: {e}", path.display())))
    };
    let release = read("include/config/kernel.release")?.trim().to_owned();
    let (bzimage, vmlinux) = (tree.join(Arch::default().built_image()), tree.join("vmlinux"));
    let unpacked = Arch::default().unpacks() && has_pvh(&tree.join(".config")) && vmlinux.exists();
    let image = if unpacked { vmlinux } else { bzimage.clone() };
    let order = fs::read_to_string(tree.join("modules.order")).unwrap_or_default();
    let (build_tree, key) = (Some(tree.to_owned()), build_key(tree, &bzimage, &order));
    if order.trim().is_empty() {
        let index = Index::builtin_only(&read("modules.builtin")?);
        return Ok(Kernel { release, image, index, build_tree, key, ..Kernel::default() });
    }
    let installed = cache.entry(&format!("builds/{release}-{key}"), progress, |new| {
        let _step = progress.step(&format!("installing the modules of {}", tree.display()));
        install_modules(tree, new, &release)
    })?;
    let modules = installed.path().join("lib/modules");
    let index = Index::read(&modules.join(&release))?;
    let (modules, in_use) = (Some(modules), vec![installed]);
    Ok(Kernel { release, image, modules, index, build_tree, key, in_use, ..Kernel::default() })
}

/// A name for what a build tree boots: its image and the modules in modules.order, which change without the image.
fn build_key(tree: &Path, image: &Path, order: &str) -> String {
    let mut hasher = DefaultHasher::new();
    key(image).hash(&mut hasher);
    for module in order.lines() {
        // Old kernels write kernel/net/can/can.ko in place of net/can/can.o.
        for module in [Some(module), module.strip_prefix("kernel/")].into_iter().flatten() {
            key(&tree.join(module).with_extension("ko")).hash(&mut hasher);
        }
    }
    format!("{:016x}", hasher.finish())
}

fn install_modules(tree: &Path, to: &Path, release: &str) -> Result<()> {
    programs::require(&[programs::MAKE])?;
    let output = Command::new("make")
        .arg("-C")
        .arg(tree)
        .arg("modules_install")
        .arg(format!("INSTALL_MOD_PATH={}", to.display()))
        .arg(format!("DEPMOD={}", programs::path(programs::DEPMOD).display()))
        .stdin(Stdio::null())
        .output()
        .map_err(|e| lab_failure(format!("make: {e}")))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let last = stderr.lines().last().unwrap_or_default();
        return Err(lab_failure(format!("kernel {}: make modules_install: {last}", tree.display())));
    }
    modprobe::index(&programs::path(programs::DEPMOD), to, release)
}

/// Whether QEMU can start the uncompressed kernel, which needs PVH; true when the configuration cannot be read. A
/// kernel with KASAN faults at that entry: it calls memcmp, which reads the shadow memory before it is set up (6.12).
fn has_pvh(config: &Path) -> bool {
    let Ok(text) = fs::read_to_string(config) else { return true };
    let has = |option: &str| text.lines().any(|line| line == option);
    has("CONFIG_PVH=y") && !has("CONFIG_KASAN=y")
}

/// A name for a file's content: its path, size and time.
pub fn key(file: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    file.hash(&mut hasher);
    if let Ok(metadata) = fs::metadata(file) {
        metadata.len().hash(&mut hasher);
        metadata.modified().ok().hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

/// A file's path, and a number that changes with the file.
pub fn identity(file: &Path) -> String {
    format!("{} {}", file.display(), key(file))
}

fn first_file(folder: &Path, prefix: &str) -> Option<PathBuf> {
    let names = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let mut names: Vec<_> = names
        .filter(|path| path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with(prefix)))
        .collect();
    names.sort();
    names.into_iter().next()
}

fn only_folder(folder: &Path) -> Option<String> {
    let mut names =
        fs::read_dir(folder).ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let first = names.next()?;
    names.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_a_folder_without_a_kernel_names_the_expected_files() {
        let folder = tempfile::tempdir().unwrap();
        // The lab refuses the folder before it opens the cache.
        let cache = Cache::at(folder.path());
        let failure = find(&folder.path().to_string_lossy(), Arch::default(), &cache, &Progress::new(true))
            .unwrap_err();
        assert!(failure.message.contains("arch/x86/boot/bzImage"), "{}", failure.message);
        let failure = find("/no/such/tree", Arch::default(), &cache, &Progress::new(true)).unwrap_err();
        assert!(failure.message.contains("/no/such/tree"), "{}", failure.message);
    }

    #[test]
    fn a_tree_of_separate_packages_has_its_kernel_beside_its_modules() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("usr/lib/modules/7.3.4");
        fs::create_dir_all(&at).unwrap();
        for (name, content) in [
            ("vmlinuz", ""),
            ("config", "# CONFIG_PVH is not set\n"),
            ("modules.dep", "kernel/net/can/can.ko:\n"),
        ] {
            fs::write(at.join(name), content).unwrap();
        }
        let find = || from_tree(folder.path(), &Cache::at(folder.path()), &Progress::new(true));
        let failure = find().unwrap_err();
        assert!(failure.message.contains("extract linux-base-7.3.4"), "{failure}");
        fs::write(at.join("modules.builtin"), "").unwrap();
        let kernel = find().unwrap();
        assert_eq!((kernel.release.as_str(), kernel.image), ("7.3.4", at.join("vmlinuz")));
        assert!(kernel.index.has("can"));
    }

    #[test]
    fn a_build_tree_without_modules_boots_what_is_built_in() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path();
        for (name, content) in [
            (Arch::default().built_image(), ""),
            ("vmlinux", ""),
            (".config", "CONFIG_PVH=y\n"),
            ("include/config/kernel.release", "6.12.1\n"),
            ("modules.builtin", "kernel/fs/9p/9p.ko\n"),
        ] {
            let path = tree.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let kernel = from_tree(tree, &Cache::at(tree), &Progress::new(true)).unwrap();
        let image = if Arch::default().unpacks() { "vmlinux" } else { Arch::default().built_image() };
        assert_eq!((kernel.release.as_str(), kernel.image), ("6.12.1", tree.join(image)));
        assert!(kernel.modules.is_none() && kernel.index.has("9p"));
        fs::write(tree.join(".config"), "# CONFIG_PVH is not set\n").unwrap();
        let kernel = from_tree(tree, &Cache::at(tree), &Progress::new(true)).unwrap();
        assert_eq!(kernel.image, tree.join(Arch::default().built_image()));
    }

    #[test]
    fn modules_that_are_built_again_under_the_same_image_replace_those_in_the_cache() {
        let folder = tempfile::tempdir().unwrap();
        let (tree, cache) = (folder.path(), Cache::at(folder.path()));
        let makefile = "TO := $(INSTALL_MOD_PATH)/lib/modules/6.12.1\n\
            modules_install:\n\tinstall -D -t $(TO) net/can.ko\n\ttouch $(TO)/modules.dep $(TO)/modules.builtin\n";
        for (name, content) in [
            (Arch::default().built_image(), ""),
            (".config", ""),
            ("include/config/kernel.release", "6.12.1\n"),
            ("Makefile", makefile),
            ("net/can.ko", ""),
        ] {
            let path = tree.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let (today, before) = ("net/can.o\n", "kernel/net/can.ko\n");
        for (order, built) in [(today, "one"), (today, "three"), (before, "seven"), (before, "eleven")] {
            fs::write(tree.join("modules.order"), order).unwrap();
            fs::write(tree.join("net/can.ko"), built).unwrap();
            let kernel = from_tree(tree, &cache, &Progress::new(true)).unwrap();
            let loaded = fs::read_to_string(kernel.modules.unwrap().join("6.12.1/can.ko")).unwrap();
            assert_eq!(loaded, built);
        }
    }
}
