//! Kernels by series from apt: from the cache, else from the host's own apt, else from Debian's other suites. They are
//! extracted and never installed.

use super::{Kernel, key};
use crate::lab::{
    apt::{
        self, Apt, Image, Series,
        offers::{self, Offer},
        suites,
    },
    arch::Arch,
    cache::{Cache, Entry},
    foreign, lab_failure, modprobe,
    modprobe::Index,
    programs,
    progress::Progress,
    vmlinux,
};
use canter_cli::failure::Result;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The file of a tree with the names and hashes of its packages; those of older versions of canter have none.
const PACKAGES: &str = "packages";

/// The newest kernel of the series in the cache; if there is none, downloads the newest that is offered.
pub fn find(series: &Series, cache: &Cache, progress: &Progress) -> Result<Kernel> {
    let tree = match cached(series, cache) {
        Some(image) => (entry(&image, cache, progress)?, image),
        None => {
            let image = offered(series, cache, progress)?.1.image;
            (entry(&image, cache, progress)?, image)
        }
    };
    let (tree, image) = tree;
    let at = tree.path();
    let index = Index::read(&at.join("lib/modules").join(&image.release))?;
    let image_path = at.join(if series.arch.unpacks() { "boot/vmlinux" } else { "boot/vmlinuz" });
    let key = key(&image_path);
    let packages = fs::read_to_string(at.join(PACKAGES)).unwrap_or_default();
    let modules = Some(at.join("lib/modules"));
    let (release, in_use) = (image.release, vec![tree]);
    Ok(Kernel { release, image: image_path, modules, index, key, packages, in_use, ..Kernel::default() })
}

/// The kernel's tree in the cache.
fn entry(image: &Image, cache: &Cache, progress: &Progress) -> Result<Entry> {
    cache.entry(&format!("kernels/{}", image.package()), progress, |new| {
        let (apt, offer) = offered(&image.series, cache, progress)?;
        if offer.image != *image {
            let message = format!("{}: no longer offered (canter lab --kernel list)", image.package());
            return Err(lab_failure(message));
        }
        let extract = |package: &String| apt::extract(&apt, package, new, progress);
        let packages = offer.packages.iter().map(extract).collect::<Result<Vec<_>>>()?;
        let list = new.join(PACKAGES);
        fs::write(&list, packages.join(","))
            .map_err(|error| lab_failure(format!("{}: {error}", list.display())))?;
        complete(new, &image.release, image.series.arch)
    })
}

/// The newest kernel of a series in the cache.
fn cached(series: &Series, cache: &Cache) -> Option<Image> {
    apt::select(images(cache).iter().map(String::as_str), series).into_iter().next()
}

/// The packages of the kernels in the cache.
pub fn images(cache: &Cache) -> Vec<String> {
    let entries = fs::read_dir(cache.path("kernels")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// The apt of the host, or of another architecture.
pub fn own_apt(arch: Arch, cache: &Cache, progress: &Progress) -> Result<Apt> {
    if arch.is_host() { Ok(apt::HOST) } else { foreign::apt(arch, cache, progress) }
}

/// The newest kernel of a series and the apt that offers it.
fn offered(series: &Series, cache: &Cache, progress: &Progress) -> Result<(Apt, Offer)> {
    let own = own_apt(series.arch, cache, progress)?;
    let mut known = offers::list(&own)?;
    if let Some(offer) = offers::newest(&known, series).filter(|offer| offer.missing.is_none()) {
        return Ok((own, offer.clone()));
    }
    let other = suites::state(series.arch).and_then(|state| {
        let mut apt = state.open(cache, progress)?;
        let mut more = offers::list(&apt)?;
        if !has(&more, series) {
            drop(apt); // otherwise its lists are in use
            let _renewed = state.renew(cache, progress)?;
            apt = state.open(cache, progress)?;
            more = offers::list(&apt)?;
        }
        Ok((apt, more))
    });
    let (apt, more) = match other {
        Ok(other) => other,
        Err(failure) => {
            let why = failure.message.trim_start_matches("lab: ");
            let list = apt_list(&known);
            return Err(lab_failure(format!("kernel {}: apt offers {list}; {why}", series.name())));
        }
    };
    if let Some(offer) = offers::newest(&more, series).filter(|offer| offer.missing.is_none()) {
        return Ok((apt, offer.clone()));
    }
    known.extend(more);
    Err(unknown(series, &known))
}

fn has(offers: &[Offer], series: &Series) -> bool {
    offers.iter().any(|offer| offer.image.series == *series && offer.missing.is_none())
}

/// The failure for a series that nobody offers as a whole.
fn unknown(series: &Series, known: &[Offer]) -> canter_cli::failure::Failure {
    let list = apt_list(known);
    let missing = offers::newest(known, series).and_then(|offer| offer.missing.as_deref());
    lab_failure(match missing {
        Some(package) => {
            format!("kernel {}: {package} is no longer offered (offered: {list})", series.name())
        }
        None => format!("kernel {}: not offered (offered: {list})", series.name()),
    })
}

/// The series of which everything is offered, for a message.
fn apt_list(known: &[Offer]) -> String {
    let whole: Vec<_> = known.iter().filter(|offer| offer.missing.is_none()).cloned().collect();
    let names: Vec<_> = offers::by_series(&whole).iter().map(|offer| offer.image.series.name()).collect();
    if names.is_empty() { "none: apt-get update first?".to_owned() } else { names.join(", ") }
}

/// Adds the uncompressed kernel and the index of its modules, which packages lack and a boot needs.
fn complete(tree: &Path, release: &str, arch: Arch) -> Result<()> {
    let failed = |what: &str, e: std::io::Error| lab_failure(format!("{}: {what}: {e}", tree.display()));
    join_lib(tree).map_err(|e| failed("lib", e))?;
    fs::create_dir_all(tree.join("boot")).map_err(|e| failed("boot", e))?;
    let packed = packed(tree, release);
    if arch.unpacks() {
        vmlinux::extract(&tree.join("boot").join(packed), &tree.join("boot/vmlinux"))?;
    } else {
        std::os::unix::fs::symlink(packed, tree.join("boot/vmlinuz")).map_err(|e| failed("boot", e))?;
    }
    modprobe::index(&programs::path(programs::DEPMOD), tree, release)
}

/// The packed kernel as seen from boot/: beside it, or since 6.19.14 beside its modules.
fn packed(tree: &Path, release: &str) -> PathBuf {
    let beside = PathBuf::from(format!("vmlinuz-{release}"));
    if tree.join("boot").join(&beside).exists() {
        return beside;
    }
    Path::new("../lib/modules").join(release).join("vmlinuz")
}

/// Links lib to usr/lib in newer packages: depmod and modprobe search below lib.
fn join_lib(tree: &Path) -> std::io::Result<()> {
    if !tree.join("lib").exists() && tree.join("usr/lib/modules").exists() {
        std::os::unix::fs::symlink("usr/lib", tree.join("lib"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(package: &str, missing: Option<&str>) -> Offer {
        let image = Image::parse(package).unwrap();
        let missing = missing.map(str::to_owned);
        Offer { image, suite: String::new(), packages: vec![], missing }
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
    fn an_unknown_kernel_is_answered_by_what_there_is() {
        let known = [
            offer("linux-image-7.3.4+deb13-rt-amd64", None),
            offer("linux-image-7.0.13+deb13-amd64", Some("linux-modules-7.0.13+deb13-amd64")),
            offer("linux-image-6.1.0-56-amd64", None),
        ];
        let message = |name| unknown(&Series::parse(name, Arch::Amd64).unwrap(), &known).message;
        assert_eq!(message("9.9"), "lab: kernel 9.9: not offered (offered: 6.1, 7.3-rt)");
        let wanted =
            "lab: kernel 7.0: linux-modules-7.0.13+deb13-amd64 is no longer offered (offered: 6.1, 7.3-rt)";
        assert_eq!(message("7.0"), wanted);
    }

    #[test]
    fn the_packed_kernel_is_in_boot_or_beside_its_modules() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("boot")).unwrap();
        assert_eq!(packed(tree.path(), "7.3"), Path::new("../lib/modules/7.3/vmlinuz"));
        fs::write(tree.path().join("boot/vmlinuz-7.3"), "").unwrap();
        assert_eq!(packed(tree.path(), "7.3"), Path::new("vmlinuz-7.3"));
    }
}
