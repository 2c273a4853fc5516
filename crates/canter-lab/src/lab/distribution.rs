//! Distributions, as far as names differ: of packages, and of kernels. Debian 12 and 13 are tried; Ubuntu's and Fedora's
//! names are only written down here.

use std::fs;

/// Distributions that install packages in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Debian, Ubuntu and Raspberry Pi OS, which have apt.
    Debian,
    /// Fedora and distributions made from it, which have dnf.
    Fedora,
    Other,
}

/// The names of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packages {
    pub debian: &'static str,
    pub fedora: &'static str,
}

impl Family {
    /// The family of the host, by os-release(5).
    pub fn host() -> Self {
        let read = |file: &str| fs::read_to_string(file).ok();
        Self::of(&read("/etc/os-release").or_else(|| read("/usr/lib/os-release")).unwrap_or_default())
    }

    fn of(os_release: &str) -> Self {
        let values = ["ID=", "ID_LIKE="].iter().filter_map(|name| {
            let value = os_release.lines().find_map(|line| line.strip_prefix(name))?;
            Some(value.trim().trim_matches(['"', '\'']))
        });
        let family = |id| match id {
            "debian" | "ubuntu" => Some(Self::Debian),
            "fedora" | "rhel" => Some(Self::Fedora),
            _ => None,
        };
        values.flat_map(str::split_whitespace).find_map(family).unwrap_or(Self::Other)
    }

    /// The command that installs these packages.
    pub fn install(self, packages: &[Packages]) -> String {
        let names =
            |name: fn(&Packages) -> &'static str| packages.iter().map(name).collect::<Vec<_>>().join(" ");
        match self {
            Self::Debian => format!("apt-get install {}", names(|package| package.debian)),
            Self::Fedora => format!("dnf install {}", names(|package| package.fedora)),
            Self::Other => format!("Debian's packages: {}", names(|package| package.debian)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_is_known_by_its_name_or_that_of_its_origin() {
        for (os_release, family) in [
            (
                "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\nID=debian\n",
                Family::Debian,
            ),
            ("ID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"24.04\"\n", Family::Debian),
            ("ID=raspbian\nID_LIKE=debian\n", Family::Debian),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", Family::Debian),
            ("NAME=\"Fedora Linux\"\nVERSION_ID=41\nID=fedora\n", Family::Fedora),
            ("ID=\"almalinux\"\nID_LIKE=\"rhel centos fedora\"\n", Family::Fedora),
            ("ID=arch\n", Family::Other),
            ("", Family::Other),
        ] {
            assert_eq!(Family::of(os_release), family, "{os_release}");
        }
    }
}
