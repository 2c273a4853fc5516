//! The kernels that an apt offers, each with the packages that it consists of. Debian has a kernel in one package, since
//! 6.19.14 in three (`linux-binary`, `linux-modules`, `linux-base`); Ubuntu has it in two or three.

use super::{Apt, Image, Series, names};
use canter_cli::failure::Result;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Packages of a kernel, by the beginnings of their names.
const PARTS: [&str; 4] = ["linux-image-", "linux-binary-", "linux-modules-", "linux-base-"];

/// A kernel that can be downloaded, at least in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    pub image: Image,
    /// The suite that has it: `trixie-backports`.
    pub suite: String,
    /// The packages to extract.
    pub packages: Vec<String>,
    /// The first of these packages that the suite has dropped.
    pub missing: Option<String>,
}

/// What `apt` offers, newest versions first.
pub fn list(apt: &Apt) -> Result<Vec<Offer>> {
    let names = names(apt, "linux-")?;
    let parts: Vec<_> =
        names.lines().filter(|name| PARTS.iter().any(|part| name.starts_with(part))).collect();
    if parts.is_empty() {
        return Ok(Vec::new());
    }
    let output = apt.run("apt-cache", &[&["madison"], &*parts].concat(), Path::new("/"))?;
    Ok(read(&String::from_utf8_lossy(&output.stdout)))
}

/// Reads the table of `apt-cache madison`: package, version, and the suite with its site.
fn read(madison: &str) -> Vec<Offer> {
    let suites: HashMap<_, _> = madison
        .lines()
        .rev() // the first line of a package is its newest version
        .filter_map(|line| {
            let mut fields = line.split('|').map(str::trim);
            let (package, _version, place) = (fields.next()?, fields.next()?, fields.next()?);
            let suite = place.strip_suffix("Packages")?.split_whitespace().nth(1)?;
            Some((package, suite.split('/').next().unwrap_or(suite)))
        })
        .collect();
    let mut offers: Vec<_> =
        suites.iter().filter_map(|(package, suite)| offer(package, suite, &suites)).collect();
    offers.sort_by(|a, b| b.image.numbers.cmp(&a.image.numbers));
    offers
}

fn offer(package: &str, suite: &str, offered: &HashMap<&str, &str>) -> Option<Offer> {
    let image = Image::parse(package)?;
    let has = |package: &String| offered.contains_key(package.as_str());
    let packages: Vec<_> = if has(&image.part("binary")) {
        ["binary", "modules", "base"].map(|part| image.part(part)).into()
    } else if image.is_ubuntus() {
        // The second may be missing.
        let extra = Some(image.part("modules-extra")).filter(has);
        [image.part("image"), image.part("modules")].into_iter().chain(extra).collect()
    } else {
        vec![image.part("image")]
    };
    let missing = packages.iter().find(|package| !has(package)).cloned();
    Some(Offer { image, suite: suite.to_owned(), packages, missing })
}

/// The newest kernel of a series; one of which everything is offered before newer ones.
pub fn newest<'a>(offers: &'a [Offer], series: &Series) -> Option<&'a Offer> {
    let of_series = || offers.iter().filter(|offer| offer.image.series == *series);
    of_series().find(|offer| offer.missing.is_none()).or_else(|| of_series().next())
}

/// The newest kernel of each series, in the order of versions.
pub fn by_series(offers: &[Offer]) -> Vec<&Offer> {
    let mut seen = HashSet::new();
    let names = offers.iter().filter(|offer| seen.insert(offer.image.series.name()));
    let mut newest: Vec<_> = names.filter_map(|offer| newest(offers, &offer.image.series)).collect();
    newest.sort_by_key(|offer| (offer.image.numbers[..2].to_vec(), offer.image.series.realtime));
    newest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::arch::Arch;

    const BACKPORTS: &str = "http://d/debian trixie-backports/main amd64 Packages";

    fn table(packages: &[&str]) -> Vec<Offer> {
        read(&packages.iter().map(|p| format!("{p} | 1 | {BACKPORTS}\n")).collect::<String>())
    }

    fn series(name: &str) -> Series {
        Series::parse(name, Arch::Amd64).unwrap()
    }

    #[test]
    fn a_kernel_of_three_packages_needs_them_all() {
        let offers = table(&[
            "linux-image-6.18.15+deb13-amd64",
            "linux-image-7.0.13+deb13-amd64",
            "linux-binary-7.0.13+deb13-amd64",
            "linux-image-7.3.4+deb13-amd64",
            "linux-binary-7.3.4+deb13-amd64",
            "linux-modules-7.3.4+deb13-amd64",
            "linux-base-7.3.4+deb13-amd64",
        ]);
        let packages = |name| newest(&offers, &series(name)).map(|offer| offer.packages.len());
        assert_eq!(["6.18", "7.3", "7.3-rt"].map(packages), [Some(1), Some(3), None]);
        let missing = newest(&offers, &series("7.0")).unwrap().missing.clone();
        assert_eq!(missing.as_deref(), Some("linux-modules-7.0.13+deb13-amd64"));
        let names: Vec<_> = by_series(&offers).iter().map(|offer| offer.image.series.name()).collect();
        assert_eq!(names, ["6.18", "7.0", "7.3"]);
        assert_eq!(newest(&offers, &series("7.3")).unwrap().suite, "trixie-backports");
    }

    #[test]
    fn an_older_kernel_that_is_whole_comes_before_a_newer_one_that_is_not() {
        let offers = table(&[
            "linux-image-6.19.14+deb13-amd64",
            "linux-binary-6.19.14+deb13-amd64",
            "linux-image-6.19.13+deb13-amd64",
        ]);
        assert_eq!(newest(&offers, &series("6.19")).unwrap().image.release, "6.19.13+deb13-amd64");
    }

    #[test]
    fn ubuntus_kernels_come_in_two_or_three_packages() {
        let offers = table(&[
            "linux-image-6.8.0-31-generic",
            "linux-modules-6.8.0-31-generic",
            "linux-modules-extra-6.8.0-31-generic",
            "linux-image-6.11.0-29-generic",
            "linux-modules-6.11.0-29-generic",
        ]);
        let packages = |name| {
            let series = Series::parse(name, Arch::default()).unwrap();
            newest(&offers, &series).map(|offer| offer.packages.len())
        };
        assert_eq!(["6.8", "6.11"].map(packages), [Some(3), Some(2)]);
    }

    #[test]
    fn a_source_package_is_no_kernel() {
        assert!(read("linux-image-6.1.0-9-amd64 | 1 | http://d/debian bookworm/main Sources\n").is_empty());
    }
}
