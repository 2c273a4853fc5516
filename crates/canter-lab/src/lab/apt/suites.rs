//! Debian's suites beside those of the host: `canter lab --kernel 7.3` on a Debian that has no 7.3. The lists come from the
//! host's own mirror and are checked by Debian's keyring; the host's sources, pins and lists stay as they are.

use super::{HOST, state::State};
use crate::lab::{arch::Arch, lab_failure};
use canter_cli::failure::Result;
use std::path::Path;

/// Suites of the archive. Their other names, such as stable-backports, can be weeks behind on a mirror that caches.
const SUITES: [&str; 3] = ["trixie", "trixie-backports", "bookworm"];
/// Suites of the security archive, which is another folder of a mirror.
const SECURITY_SUITES: [&str; 2] = ["trixie-security", "bookworm-security"];
/// Places of Debian's keyring: the second is Debian 13's.
const KEYRINGS: [&str; 2] =
    ["/usr/share/keyrings/debian-archive-keyring.gpg", "/usr/share/keyrings/debian-archive-keyring.pgp"];

/// The state with the lists of all these suites; the error says why this host has none.
pub fn state(arch: Arch) -> Result<State> {
    let output = HOST.run("apt-get", &["update", "--print-uris"], Path::new("/"))?;
    let mirror = Mirror::find(&String::from_utf8_lossy(&output.stdout))
        .ok_or_else(|| lab_failure("other suites: the host's apt has no mirror of Debian"))?;
    let keyring = KEYRINGS.into_iter().find(|file| Path::new(file).exists()).ok_or_else(|| {
        lab_failure(format!(
            "other suites: {}: missing (apt-get install debian-archive-keyring)",
            KEYRINGS[0]
        ))
    })?;
    let (name, lists) = (format!("suites-{}", arch.debian()), "Debian's other suites".to_owned());
    Ok(State { name, arch, sources: Some(mirror.sources(keyring)), lists })
}

/// The host's mirror of Debian.
#[derive(Debug, PartialEq, Eq)]
struct Mirror {
    archive: String,
    /// The security archive, if the host uses one.
    security: Option<String>,
}

impl Mirror {
    /// Finds the mirror in what `apt-get update` would download, which needs no lists.
    fn find(uris: &str) -> Option<Self> {
        let releases = uris.lines().filter_map(|line| {
            let uri = line.split('\'').nth(1)?.strip_suffix("/InRelease")?;
            uri.split_once("/dists/")
        });
        let mut mirror = Self { archive: String::new(), security: None };
        for (site, suite) in releases.filter(|(site, _)| site.contains("/debian")) {
            if suite.ends_with("-security") {
                mirror.security.get_or_insert_with(|| site.to_owned());
            } else if mirror.archive.is_empty() && site.ends_with("/debian") {
                site.clone_into(&mut mirror.archive);
            }
        }
        (!mirror.archive.is_empty()).then_some(mirror)
    }

    /// The lines of a sources.list(5).
    fn sources(&self, keyring: &str) -> String {
        let lines = |site: &str, suites: &[&str]| -> String {
            suites.iter().map(|suite| format!("deb [signed-by={keyring}] {site} {suite} main\n")).collect()
        };
        let security = self.security.as_deref().map(|site| lines(site, &SECURITY_SUITES));
        lines(&self.archive, &SUITES) + &security.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIAN: &str = "\
'http://deb.debian.org/debian/dists/bookworm/InRelease' deb.debian.org_debian_dists_bookworm_InRelease 0 
'https://deb.nodesource.com/node_20.x/dists/nodistro/InRelease' deb.nodesource.com_InRelease 0 
'http://deb.debian.org/debian-security/dists/bookworm-security/InRelease' x_InRelease 0 
'http://deb.debian.org/debian/dists/bookworm/main/binary-amd64/Packages.xz' x_Packages 0 
";

    #[test]
    fn the_mirror_is_the_hosts_own() {
        let mirror = Mirror::find(DEBIAN).unwrap();
        assert_eq!(mirror.archive, "http://deb.debian.org/debian");
        let sources = mirror.sources("/k.gpg");
        for line in [
            "deb [signed-by=/k.gpg] http://deb.debian.org/debian trixie-backports main",
            "deb [signed-by=/k.gpg] http://deb.debian.org/debian-security bookworm-security main",
        ] {
            assert!(sources.lines().any(|l| l == line), "{sources}");
        }
    }

    #[test]
    fn a_host_without_security_updates_gets_none_and_another_distribution_nothing() {
        let first = DEBIAN.lines().next().unwrap();
        assert!(!Mirror::find(first).unwrap().sources("/k").contains("security"));
        let ubuntu = first.replace("deb.debian.org/debian", "archive.ubuntu.com/ubuntu");
        assert_eq!(Mirror::find(&ubuntu), None);
    }
}
