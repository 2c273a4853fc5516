//! The kernel that the lab boots: from apt by series, or a tree by path.

mod installed;

use super::apt::{self, Image, Series};
use super::{
    arch::Arch,
    cache::{Cache, Entry},
    foreign, lab_failure, modprobe,
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
            from_apt(&series, cache, progress)
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

/// The newest kernel of the series in the cache; if there is none, downloads apt's newest.
fn from_apt(series: &Series, cache: &Cache, progress: &Progress) -> Result<Kernel> {
    let apt = if series.arch.is_host() { apt::HOST } else { foreign::apt(series.arch, cache, progress)? };
    let image = match cached(series, cache) {
        Some(image) => image,
        None => apt::newest_image(&apt, series)?,
    };
    let tree = cache.entry(&format!("kernels/{}", image.package()), progress, |new| {
        apt::extract(&apt, &image.package(), new, progress)?;
        for package in image.modules().iter().filter(|package| apt::is_offered(&apt, package)) {
            apt::extract(&apt, package, new, progress)?;
        }
        complete_package(new, &image.release, series.arch)
    })?;
    let at = tree.path();
    let index = Index::read(&at.join("lib/modules").join(&image.release))?;
    let image_path = at.join(if series.arch.unpacks() { "boot/vmlinux" } else { "boot/vmlinuz" });
    let key = key(&image_path);
    let modules = Some(at.join("lib/modules"));
    let (release, extra_modules) = (image.release, vec![]);
    let in_use = vec![tree];
    Ok(Kernel { release, image: image_path, modules, index, extra_modules, build_tree: None, key, in_use })
}

/// The newest kernel of a series in the cache.
fn cached(series: &Series, cache: &Cache) -> Option<Image> {
    let entries = fs::read_dir(cache.path("kernels")).ok()?.flatten();
    let names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    apt::select(names.iter().map(String::as_str), series).into_iter().next()
}

/// Adds the uncompressed kernel and the index of its modules, which a package lacks and a boot needs.
fn complete_package(tree: &Path, release: &str, arch: Arch) -> Result<()> {
    join_lib(tree).map_err(|e| lab_failure(format!("{}: lib: {e}", tree.display())))?;
    let packed = format!("vmlinuz-{release}");
    if arch.unpacks() {
        vmlinux::extract(&tree.join("boot").join(packed), &tree.join("boot/vmlinux"))?;
    } else {
        std::os::unix::fs::symlink(packed, tree.join("boot/vmlinuz"))
            .map_err(|e| lab_failure(format!("{}: boot: {e}", tree.display())))?;
    }
    modprobe::index(&programs::path(programs::DEPMOD), tree, release)
}

/// Links lib to usr/lib in newer packages: depmod and modprobe search below lib.
fn join_lib(tree: &Path) -> std::io::Result<()> {
    if !tree.join("lib").exists() && tree.join("usr/lib/modules").exists() {
        std::os::unix::fs::symlink("usr/lib", tree.join("lib"))?;
    }
    Ok(())
}

fn from_tree(tree: &Path, cache: &Cache, progress: &Progress) -> Result<Kernel> {
    if tree.join(Arch::default().built_image()).exists() {
        return from_build_tree(tree, cache, progress);
    }
    from_package_tree(tree, cache, progress)
}

/// The kernel in a tree made by `dpkg-deb -x linux-image-….deb TREE`.
fn from_package_tree(tree: &Path, cache: &Cache, progress: &Progress) -> Result<Kernel> {
    let wrong = |reason: &str| lab_failure(format!("kernel {}: {reason}", tree.display()));
    let bzimage = first_file(&tree.join("boot"), "vmlinuz").ok_or_else(|| {
        wrong(
            "neither a package tree (boot/vmlinuz-…, lib/modules/) nor a build tree (arch/x86/boot/bzImage, on \
             arm64 arch/arm64/boot/Image)",
        )
    })?;
    let modules = ["lib/modules", "usr/lib/modules"].map(|folder| tree.join(folder));
    let modules =
        modules.into_iter().find(|folder| folder.is_dir()).ok_or_else(|| wrong("no folder lib/modules"))?;
    let named = bzimage.file_name().and_then(|n| n.to_str()).and_then(|n| n.strip_prefix("vmlinuz-"));
    let release = match named.filter(|release| modules.join(release).is_dir()) {
        Some(release) => release.to_owned(),
        None => only_folder(&modules).ok_or_else(|| wrong("not exactly one kernel in lib/modules"))?,
    };
    if modules.starts_with(tree.join("usr")) {
        modprobe::index(&programs::path(programs::DEPMOD), &tree.join("usr"), &release)?;
    } else {
        modprobe::index(&programs::path(programs::DEPMOD), tree, &release)?;
    }
    let config = tree.join(format!("boot/config-{release}"));
    let packed = Packed { release, image: bzimage, config, modules };
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
        let (modules, extra_modules) = (Some(modules), vec![]);
        Ok(Kernel { release, image, modules, index, extra_modules, build_tree: None, key, in_use })
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
    let has_modules = !fs::read_to_string(tree.join("modules.order")).unwrap_or_default().trim().is_empty();
    let (build_tree, key) = (Some(tree.to_owned()), key(&bzimage));
    if !has_modules {
        let index = Index::builtin_only(&read("modules.builtin")?);
        let (modules, extra_modules, in_use) = (None, vec![], vec![]);
        return Ok(Kernel { release, image, modules, index, extra_modules, build_tree, key, in_use });
    }
    let installed = cache.entry(&format!("builds/{release}-{key}"), progress, |new| {
        let _step = progress.step(&format!("installing the modules of {}", tree.display()));
        install_modules(tree, new, &release)
    })?;
    let modules = installed.path().join("lib/modules");
    let index = Index::read(&modules.join(&release))?;
    let (modules, extra_modules, in_use) = (Some(modules), vec![], vec![installed]);
    Ok(Kernel { release, image, modules, index, extra_modules, build_tree, key, in_use })
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
    fn a_kernel_in_the_cache_is_taken_without_asking_apt() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["linux-image-6.12.9+deb12-amd64", "linux-image-6.12.117+deb12-amd64", ".new-x"] {
            fs::create_dir_all(folder.path().join("kernels").join(name)).unwrap();
        }
        let cache = Cache::at(folder.path());
        let image = cached(&Series::parse("6.12", Arch::Amd64).unwrap(), &cache).unwrap();
        assert_eq!(image.release, "6.12.117+deb12-amd64");
        assert_eq!(cached(&Series::parse("6.12-rt", Arch::Amd64).unwrap(), &cache), None);
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
}
