//! Packages by apt: found by pattern, downloaded, extracted, never installed. `offers` lists the kernels that an apt
//! offers, `suites` is the apt of Debian's other suites, and `state` keeps the lists of an apt that is not the host's.

pub mod offers;
pub mod state;
pub mod suites;

use super::{
    arch::Arch,
    cache::{Cache, Entry},
    lab_failure,
    progress::Progress,
};
use canter_cli::failure::Result;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A kernel series by name: `6.12`, `6.1-rt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// Major and minor number.
    pub version: String,
    pub realtime: bool,
    pub arch: Arch,
}

impl Series {
    /// Reads `6.12` or `6.12-rt`; `None` for anything else.
    pub fn parse(text: &str, arch: Arch) -> Option<Self> {
        let (version, realtime) = match text.strip_suffix("-rt") {
            Some(version) => (version, true),
            None => (text, false),
        };
        let (major, minor) = version.split_once('.')?;
        let number = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
        (number(major) && number(minor)).then(|| Self { version: version.to_owned(), realtime, arch })
    }

    pub fn name(&self) -> String {
        format!("{}{}", self.version, if self.realtime { "-rt" } else { "" })
    }
}

/// A kernel image package, parsed from its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub series: Series,
    /// The kernel's release, as `uname -r` prints it.
    pub release: String,
    /// All numbers of the version, to sort by.
    numbers: Vec<u64>,
}

impl Image {
    /// Reads `linux-image-6.12.117+deb12-rt-amd64` (Debian) or `linux-image-6.8.0-31-generic` (Ubuntu). Meta packages
    /// (`linux-image-6.12-amd64`), other flavours, debug symbols, unsigned images and templates are refused.
    pub fn parse(package: &str) -> Option<Self> {
        let release = package.strip_prefix("linux-image-")?;
        let of_arch = |arch: Arch| release.strip_suffix(arch.debian())?.strip_suffix('-').zip(Some(arch));
        let debian = || Arch::ALL.into_iter().find_map(of_arch);
        let (version, flavour, arch) = match debian() {
            Some((version, arch)) => (version, version.ends_with("-rt").then_some("-rt"), arch),
            None => {
                let flavour = UBUNTU.into_iter().find(|flavour| release.ends_with(flavour))?;
                (release, Some(flavour), Arch::default())
            }
        };
        let version = version.strip_suffix(flavour.unwrap_or_default())?;
        let realtime = flavour.is_some_and(|flavour| REALTIME.contains(&flavour));
        let tokens: Vec<_> = version.split(['.', '+', '~', '-']).collect();
        let numbers = tokens.iter().map(|token| number(token)).collect::<Option<Vec<_>>>()?;
        let [major, minor, _, ..] = numbers[..] else { return None };
        let series = Series { version: format!("{major}.{minor}"), realtime, arch };
        Some(Self { series, release: release.to_owned(), numbers })
    }

    pub fn package(&self) -> String {
        self.part("image")
    }

    /// All numbers of the version, to sort by.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// The package `linux-PART-RELEASE`.
    fn part(&self, part: &str) -> String {
        format!("linux-{part}-{}", self.release)
    }

    /// Whether the kernel is one of Ubuntu's.
    fn is_ubuntus(&self) -> bool {
        UBUNTU.iter().any(|flavour| self.release.ends_with(flavour))
    }
}

/// Ubuntu's flavours. Their names do not have the architecture, and their modules are in other packages.
const UBUNTU: [&str; 2] = ["-generic", "-realtime"];
const REALTIME: [&str; 2] = ["-rt", "-realtime"];

/// The number in `117`, `deb12`, `bpo12`, `rc3`.
fn number(token: &str) -> Option<u64> {
    let digits = ["deb", "bpo", "rc"].iter().find_map(|word| token.strip_prefix(word)).unwrap_or(token);
    digits.parse().ok()
}

/// The images of `series` among package names, the newest first.
pub fn select<'a>(packages: impl Iterator<Item = &'a str>, series: &Series) -> Vec<Image> {
    let mut images: Vec<_> =
        packages.filter_map(Image::parse).filter(|image| image.series == *series).collect();
    images.sort_by(|a, b| b.numbers.cmp(&a.numbers));
    images.dedup();
    images
}

/// An apt configuration: the host's, or that of another architecture.
#[derive(Debug)]
pub struct Apt {
    configuration: Option<PathBuf>,
    /// The cache's entry with apt's state, in use as long as this.
    _state: Option<Entry>,
}

/// The host's configuration.
pub const HOST: Apt = Apt { configuration: None, _state: None };

impl Apt {
    /// An apt with this configuration file instead of the host's.
    pub fn of(configuration: PathBuf) -> Self {
        Self { configuration: Some(configuration), _state: None }
    }

    /// Adds the cache's entry with the configuration's state, which is in use as long as the configuration.
    pub fn with(self, state: Entry) -> Self {
        Self { _state: Some(state), ..self }
    }

    /// Runs one of apt's programs to its end.
    pub fn run(&self, program: &str, arguments: &[&str], folder: &Path) -> Result<Output> {
        let variables = self.configuration.as_deref().map(|file| ("APT_CONFIG", file));
        run_with(program, arguments, folder, variables)
    }
}

/// All package names that begin with `prefix`.
fn names(apt: &Apt, prefix: &str) -> Result<String> {
    let output = apt.run("apt-cache", &["pkgnames", prefix], Path::new("/"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The host's apt if it offers the package, else that of Debian's other suites.
pub fn with_package(package: &str, cache: &Cache, progress: &Progress) -> Result<Apt> {
    if is_offered(&HOST, package) {
        return Ok(HOST);
    }
    let state = suites::state(Arch::default())?;
    let mut other = state.open(cache, progress)?;
    if !is_offered(&other, package) {
        drop(other); // otherwise its lists are in use
        let _renewed = state.renew(cache, progress)?;
        other = state.open(cache, progress)?;
    }
    if is_offered(&other, package) {
        return Ok(other);
    }
    Err(lab_failure(format!(
        "{package}: not offered, neither by this host's suites nor by Debian's other ones"
    )))
}

/// Whether the package can be downloaded: `pkgnames` also lists packages that others only mention.
pub fn is_offered(apt: &Apt, package: &str) -> bool {
    apt.run("apt-cache", &["policy", package], Path::new("/"))
        .is_ok_and(|output| has_candidate(&String::from_utf8_lossy(&output.stdout)))
}

fn has_candidate(policy: &str) -> bool {
    policy.lines().any(|line| line.trim().strip_prefix("Candidate:").is_some_and(|v| v.trim() != "(none)"))
}

/// What a package depends on, alternatives included.
pub fn depends(apt: &Apt, package: &str) -> Result<Vec<String>> {
    let output = apt.run("apt-cache", &["depends", package], Path::new("/"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text
        .lines()
        .filter_map(|line| line.split_once("Depends: "))
        .map(|(_, name)| name.to_owned())
        .collect())
}

/// Downloads one package into `folder` and returns its file.
pub fn download(apt: &Apt, package: &str, folder: &Path, progress: &Progress) -> Result<PathBuf> {
    let _step = progress.step(&format!("downloading {package}"));
    let before = debs(folder);
    apt.run("apt-get", &["download", package], folder).map_err(|failure| {
        lab_failure(format!("{} (apt-get update first?)", failure.message.trim_start_matches("lab: ")))
    })?;
    let new = debs(folder).into_iter().find(|deb| !before.contains(deb));
    new.ok_or_else(|| lab_failure(format!("apt-get download {package}: no .deb in {}", folder.display())))
}

/// Downloads `package` and extracts it into `folder`. Answers the file's name, which has the version, and its SHA-256:
/// `linux-image-6.12.117+deb12-amd64_6.12.117-1_amd64.deb:9f86d0…`.
pub fn extract(apt: &Apt, package: &str, folder: &Path, progress: &Progress) -> Result<String> {
    let deb = download(apt, package, folder, progress)?;
    let _step = progress.step(&format!("extracting {package}"));
    let path = deb.to_string_lossy();
    run("dpkg-deb", &["-x", &path, &folder.to_string_lossy()], folder)?;
    let sum = run("sha256sum", &["--", &path], folder)?.stdout;
    let sum = String::from_utf8_lossy(&sum).split(' ').next().unwrap_or_default().to_owned();
    let name = deb.file_name().unwrap_or_default().to_string_lossy();
    std::fs::remove_file(&deb).map_err(|e| lab_failure(format!("{}: remove: {e}", deb.display())))?;
    Ok(format!("{name}:{sum}"))
}

fn debs(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|e| e == "deb")).collect()
}

/// Runs a program to its end. The error has the end of its output.
pub fn run(program: &str, arguments: &[&str], folder: &Path) -> Result<Output> {
    run_with(program, arguments, folder, None)
}

fn run_with(
    program: &str,
    arguments: &[&str],
    folder: &Path,
    variable: Option<(&str, &Path)>,
) -> Result<Output> {
    let output = Command::new(program)
        .args(arguments)
        .envs(variable)
        .current_dir(folder)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|e| match program.starts_with("apt") {
            true => lab_failure(format!("{program}: {e} (without apt: --kernel DIR, a kernel's folder)")),
            false => lab_failure(format!("{program}: {e}")),
        })?;
    if output.status.success() {
        return Ok(output);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let tail: Vec<_> = stderr.lines().filter(|line| !line.starts_with("W: Download is performed")).collect();
    let tail = tail[tail.len().saturating_sub(8)..].join("; ");
    Err(lab_failure(format!("{program} {}: {tail}", arguments.join(" "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &str = "linux-image-6.1.0-9-amd64\nlinux-image-6.1.0-56-amd64\nlinux-image-6.1.0-56-rt-amd64\n\
        linux-image-6.1.0-56-amd64-unsigned\nlinux-image-6.1.0-56-cloud-amd64\nlinux-image-6.1-amd64\n\
        linux-image-6.12-amd64-signed-template\nlinux-image-6.12.9+deb12-amd64\nlinux-image-6.12.117+deb12-amd64\n\
        linux-image-6.12.117+deb12-rt-amd64\nlinux-image-6.12.117+deb12-amd64-dbg\nlinux-image-6.12-rt-amd64\n\
        linux-image-6.12.12+bpo-amd64\nlinux-image-6.17.13+deb13-amd64\nlinux-image-6.12.12-2-amd64\n";

    #[test]
    fn the_newest_plain_or_realtime_image_of_a_series_is_chosen() {
        let table = [
            ("6.12", Some("6.12.117+deb12-amd64")),
            ("6.12-rt", Some("6.12.117+deb12-rt-amd64")),
            ("6.1", Some("6.1.0-56-amd64")),
            ("6.1-rt", Some("6.1.0-56-rt-amd64")),
            ("6.17", Some("6.17.13+deb13-amd64")),
            ("6.17-rt", None),
            ("5.10", None),
        ];
        for (name, release) in table {
            let series = Series::parse(name, Arch::Amd64).unwrap();
            let first = select(NAMES.lines(), &series).into_iter().next();
            assert_eq!(first.map(|image| image.release).as_deref(), release, "{name}");
            assert_eq!(series.name(), name);
        }
    }

    #[test]
    fn cloud_debug_unsigned_and_meta_packages_are_not_kernels() {
        for name in [
            "linux-image-6.12-amd64",
            "linux-image-6.12.117+deb12-cloud-amd64",
            "linux-image-6.12.117+deb12-amd64-dbg",
            "linux-image-6.12.117+deb12-amd64-unsigned",
            "linux-image-amd64",
            "linux-image-6.12.117+deb12-armmp",
        ] {
            assert_eq!(Image::parse(name), None, "{name}");
        }
    }

    /// Packages of Ubuntu 24.04, with the kernels for newer hardware.
    const UBUNTU_NAMES: &str = "linux-image-6.8.0-31-generic\nlinux-image-unsigned-6.8.0-31-generic\n\
        linux-image-6.8.0-106-generic\nlinux-image-6.8.0-106-lowlatency\nlinux-image-generic\n\
        linux-image-generic-hwe-24.04\nlinux-image-6.11.0-29-generic\nlinux-image-6.14.0-1012-oem\n\
        linux-image-6.8.1-1015-realtime\nlinux-image-6.8.0-1010-aws\nlinux-image-unsigned-6.8.0-31-generic-dbgsym\n";

    #[test]
    fn ubuntus_kernels_are_those_for_everyone() {
        for (name, release) in [
            ("6.8", Some("6.8.0-106-generic")),
            ("6.11", Some("6.11.0-29-generic")),
            ("6.8-rt", Some("6.8.1-1015-realtime")),
            ("6.14", None),
        ] {
            let series = Series::parse(name, Arch::default()).unwrap();
            let first = select(UBUNTU_NAMES.lines(), &series).into_iter().next();
            assert_eq!(first.map(|image| image.release).as_deref(), release, "{name}");
        }
        let image = Image::parse("linux-image-6.8.0-31-generic").unwrap();
        assert_eq!(image.package(), "linux-image-6.8.0-31-generic");
        assert!(image.is_ubuntus());
        assert!(!Image::parse("linux-image-6.12.117+deb12-rt-amd64").unwrap().is_ubuntus());
    }

    #[test]
    fn an_architecture_has_its_own_images() {
        let names = ["linux-image-6.12.117+deb12-amd64", "linux-image-6.12.94+deb12-arm64"];
        let series = Series::parse("6.12", Arch::Arm64).unwrap();
        let found = select(names.into_iter(), &series);
        assert_eq!(
            found.iter().map(|image| image.release.as_str()).collect::<Vec<_>>(),
            ["6.12.94+deb12-arm64"]
        );
    }

    #[test]
    fn a_path_is_not_a_series() {
        for text in ["./6.12", "6", "6.", "6.12.1", "linux-6.12", "6.12-cloud", "/boot"] {
            assert_eq!(Series::parse(text, Arch::Amd64), None, "{text}");
        }
    }

    #[test]
    fn a_package_without_a_candidate_is_not_offered() {
        assert!(has_candidate("x:\n  Installed: (none)\n  Candidate: 6.12.1\n"));
        assert!(!has_candidate("x:\n  Installed: (none)\n  Candidate: (none)\n"));
        assert!(!has_candidate(""));
    }
}
