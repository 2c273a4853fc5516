//! Methods that need more rights than the package's units have. A drop-in of the machine's owner gives them.

use super::configuration::GATEWAY;
use crate::failure::{self, Exit, Failure};
use std::{fs, path::Path};

/// Parts of a method's name, and the capability that it needs.
const MORE: &[(&str, &str)] =
    &[("bpf", "CAP_BPF"), ("port", "CAP_SYS_RAWIO"), ("bare-metal", "CAP_SYS_RAWIO")];
/// Where units and their drop-ins are.
const FOLDERS: [&str; 4] =
    ["etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"];

/// Refuses a gateway whose method needs a drop-in that does not exist below `root`.
pub fn check(name: &str, words: &[String], root: &Path) -> failure::Result<()> {
    let method = words.iter().find_map(|word| word.strip_prefix("--method=")).unwrap_or_default();
    let needs = |&&(part, _): &&(&str, &str)| method.split('+').any(|half| half == part);
    match MORE.iter().find(needs) {
        Some((_, capability)) if !has_drop_in(name, capability, root) => {
            let message = format!(
                "[gateway.{name}]: method: {method} needs {capability}, which the unit does not have \
                (systemctl edit canter-{GATEWAY}@{name}; docs/services.md has the lines)"
            );
            Err(Failure::new(Exit::Usage, message))
        }
        _ => Ok(()),
    }
}

/// Whether a drop-in of the gateway's unit names the capability.
fn has_drop_in(name: &str, capability: &str, root: &Path) -> bool {
    let units = [format!("canter-{GATEWAY}@{name}.service.d"), format!("canter-{GATEWAY}@.service.d")];
    let folders =
        FOLDERS.iter().flat_map(|folder| units.iter().map(move |unit| root.join(folder).join(unit)));
    let mut files = folders.filter_map(|folder| fs::read_dir(folder).ok()).flat_map(Iterator::flatten);
    files.any(|file| {
        let text = fs::read_to_string(file.path()).unwrap_or_default();
        text.lines().any(|line| !line.trim_start().starts_with(['#', ';']) && line.contains(capability))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_beyond_the_units_rights_needs_a_drop_in_that_names_its_capability() {
        let root = tempfile::tempdir().unwrap();
        let checked = |method: &str| check("g", &[format!("--method={method}")], root.path());
        assert!(checked("read+write").is_ok() && check("g", &[], root.path()).is_ok());
        let refused = checked("bpf").unwrap_err();
        assert!(refused.message.contains("systemctl edit canter-gateway@g"), "{refused}");
        let folder = root.path().join("etc/systemd/system/canter-gateway@g.service.d");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("override.conf"), "[Service]\n# AmbientCapabilities=CAP_BPF\n").unwrap();
        assert!(checked("bpf").is_err(), "a comment gives no right");
        fs::write(folder.join("override.conf"), "[Service]\nAmbientCapabilities=CAP_BPF\n").unwrap();
        assert!(checked("bpf").is_ok() && checked("port+port").is_err());
    }
}
