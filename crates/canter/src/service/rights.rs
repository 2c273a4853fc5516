//! Methods that need more rights than the package's units have. A drop-in of the machine's owner gives them.

use super::configuration::GATEWAY;
use canter_cli::failure::{self, Exit, Failure};
use canter_route::gateway::kind::Method;
use std::{fs, path::Path};

/// Where units and their drop-ins are.
const FOLDERS: [&str; 4] =
    ["etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"];

/// Refuses a gateway with a method that needs a drop-in that does not exist below `root`.
pub fn check(name: &str, methods: &[Method], root: &Path) -> failure::Result<()> {
    let mut needs = methods.iter().flat_map(|method| method.rights().map(move |right| (method, right)));
    let Some((method, capability)) = needs.find(|(_, right)| !has_drop_in(name, right, root)) else {
        return Ok(());
    };
    let message = format!(
        "[gateway.{name}]: method: {method} needs {capability}, which the unit does not have \
        (systemctl edit canter-{GATEWAY}@{name}; docs/services.md has the lines)"
    );
    Err(Failure::new(Exit::Usage, message))
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
    use crate::cli::COMMANDS;
    use canter_cli::program::{Program, arguments};
    use canter_route::gateway;

    #[test]
    fn a_method_beyond_the_units_rights_needs_a_drop_in_that_names_its_capability() {
        let root = tempfile::tempdir().unwrap();
        let checked = |method: &str| check("g", &[method.parse().unwrap()], root.path());
        assert!(checked("read+write").is_ok() && checked("can-gw").is_ok());
        let refused = checked("port+port").unwrap_err();
        assert!(refused.message.contains("systemctl edit canter-gateway@g"), "{refused}");
        let folder = root.path().join("etc/systemd/system/canter-gateway@g.service.d");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("override.conf"), "[Service]\n# AmbientCapabilities=CAP_SYS_RAWIO\n").unwrap();
        assert!(checked("port+port").is_err(), "a comment gives no right");
        fs::write(folder.join("override.conf"), "[Service]\nAmbientCapabilities=CAP_SYS_RAWIO\n").unwrap();
        assert!(checked("port+port").is_ok());
    }

    #[test]
    fn a_method_needs_its_right_under_each_of_its_names_and_as_the_default_of_an_interface() {
        let root = tempfile::tempdir().unwrap();
        let card = "port:0000:00:07.0";
        let refused: [&[&str]; 5] = [
            &["can0", "can1", "--method=bare-metal"],
            &["can0", "can1", "--method=rtems"],
            &[card, "can1", "--method=port/spin+write"],
            &[card, "can1"],
            &["can1", card],
        ];
        for words in refused {
            let line = [&["canter", "gateway"], words].concat();
            let given = Program(COMMANDS).read(line).unwrap();
            let (_, options) = given.subcommand().unwrap();
            let methods = arguments::<gateway::Arguments>(options).unwrap().methods().unwrap();
            let refusal = check("g", &methods, root.path()).unwrap_err();
            assert!(refusal.message.contains("which the unit does not have"), "{words:?}: {refusal}");
        }
    }
}
