//! The first lines of a test module, which state on what machine it runs, and nothing else does:
//!
//! ```text
//! //@ machine: --bus wire --clock virtual    options of `canter lab`; `lab`: none; `host`: no guest;
//! //                                         `host --ignored`: on the host, its ignored tests
//! //@ also: all --kernel 6.1                 on another machine too, in make test-all; `gate`: in make test, too
//! //@ or: --cpus 2                           in place of `host`, where the host has no TUN devices in namespaces
//! //@ commands: latency wire                 the modules of the crate `canter` that its tests use, through the commands that they
//! //                                         start; `none`: those of other crates. A change elsewhere in the crate does not
//! //                                         make them run again
//! //@ needs: target/python target/vblf       targets of the Makefile
//! //@ limit: 20m                             after this time it is stopped
//! //@ in: all                                in make test-all only
//! ```

use crate::commands;
use std::{fmt, fs, io, path::Path, time::Duration};

pub const LIMIT: Duration = Duration::from_secs(10 * 60);

#[derive(Clone, Debug, PartialEq)]
pub enum Machine {
    /// The tests that are not ignored run on the host.
    Host,
    /// The ignored tests run on the host: they start guests themselves, or need other programs.
    HostIgnored,
    /// The ignored tests run in the lab with these options; all tests of a module whose own machine is the host.
    Lab(String),
}

impl fmt::Display for Machine {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str(match self {
            Self::Host => "host",
            Self::HostIgnored => "host --ignored",
            Self::Lab(options) if options.is_empty() => "lab",
            Self::Lab(options) => options,
        })
    }
}

/// A machine of a module, and where it is used.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub machine: Machine,
    /// Only `make test-all` uses it.
    pub all_only: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    pub package: String,
    pub name: String,
    /// The first one is the module's own.
    pub places: Vec<Place>,
    /// In place of the first, where the host has no TUN devices in namespaces.
    pub instead: Option<Machine>,
    /// The first lines name the host for the tests that are not ignored: elsewhere all tests run.
    pub is_of_host: bool,
    /// The modules of the crate `canter` that its tests use; `None`: any.
    pub commands: Option<Vec<String>>,
    pub needs: Vec<String>,
    pub limit: Duration,
    /// The number of machines among which its tests are divided; they run side by side.
    pub parts: usize,
}

impl Module {
    pub fn id(&self) -> String {
        format!("{}::{}", self.package, self.name)
    }
}

/// The modules of every package's `tests/it`, in order of their names.
pub fn modules(root: &Path) -> Result<Vec<Module>, String> {
    let mut found = Vec::new();
    for package in names(&root.join("crates")).map_err(|e| format!("crates: {e}"))? {
        let folder = root.join("crates").join(&package).join("tests/it");
        let Ok(main) = fs::read_to_string(folder.join("main.rs")) else { continue };
        for entry in names(&folder).map_err(|e| format!("{}: {e}", folder.display()))? {
            let name = entry.strip_suffix(".rs").unwrap_or(&entry);
            let path = if name == entry { folder.join(name).join("mod.rs") } else { folder.join(&entry) };
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let place = format!("crates/{package}/tests/it/{entry}");
            if name == "main" {
                continue;
            }
            let mut module = parse(&package, name, &text).map_err(|e| format!("{place}: {e}"))?;
            if let Some(commands) = module.as_mut().and_then(|module| module.commands.as_mut()) {
                *commands = commands::modules(root, commands).map_err(|e| format!("{place}: {e}"))?;
            }
            let listed =
                main.lines().any(|line| line.trim().trim_start_matches("pub ") == format!("mod {name};"));
            if module.is_some() && !listed {
                return Err(format!("{place}: no test of it runs (main.rs has no `mod {name};`)"));
            }
            found.extend(module);
        }
    }
    Ok(found)
}

/// What the first lines of a module's file state; nothing for a file without tests.
fn parse(package: &str, name: &str, text: &str) -> Result<Option<Module>, String> {
    let (package, name) = (package.to_owned(), name.to_owned());
    let mut module = Module {
        package,
        name,
        places: Vec::new(),
        instead: None,
        is_of_host: false,
        commands: None,
        needs: Vec::new(),
        limit: LIMIT,
        parts: 1,
    };
    let mut main_in_all = false;
    for line in text.lines().map_while(|line| line.strip_prefix("//@")) {
        let (key, value) = line.trim().split_once(':').ok_or_else(|| format!("//@{line}: no colon"))?;
        let value = value.trim();
        match key {
            "machine" if module.places.is_empty() => {
                let machine = machine(value)?;
                module.is_of_host = machine == Machine::Host;
                module.places.push(Place { machine, all_only: false });
            }
            "also" if !module.places.is_empty() => {
                let (gate, options) = value.split_once(' ').unwrap_or((value, "lab"));
                let all_only = match gate {
                    "all" => true,
                    "gate" => false,
                    _ => return Err(format!("//@ also: {value}: neither gate nor all")),
                };
                module.places.push(Place { machine: machine(options.trim())?, all_only });
            }
            "or" if module.is_of_host && module.instead.is_none() => match machine(value)? {
                machine @ Machine::Lab(_) => module.instead = Some(machine),
                _ => return Err(format!("//@ or: {value}: not a machine of the lab")),
            },
            "commands" => {
                let words = value.split_whitespace().filter(|&word| word != "none");
                module.commands = Some(words.map(str::to_owned).collect());
            }
            "needs" => module.needs.extend(value.split_whitespace().map(str::to_owned)),
            "limit" => {
                module.limit =
                    duration(value).ok_or_else(|| format!("//@ limit: {value}: not a time (20m)"))?
            }
            "parts" => {
                let parts = value.parse().ok().filter(|parts| (2..=9).contains(parts));
                module.parts = parts.ok_or_else(|| format!("//@ parts: {value}: not 2…9"))?;
            }
            "in" if value == "all" => main_in_all = true,
            _ => return Err(format!("//@{line}: not known here")),
        }
    }
    let has_tests =
        ["#[test]", "proptest! {"].iter().any(|mark| text.lines().any(|line| line.trim() == *mark));
    match module.places.first_mut() {
        None if has_tests => Err("its first line states no machine (//@ machine: host)".to_owned()),
        None => Ok(None),
        Some(first) => {
            first.all_only = main_in_all;
            Ok(Some(module))
        }
    }
}

fn machine(value: &str) -> Result<Machine, String> {
    match value {
        "host" => Ok(Machine::Host),
        "host --ignored" => Ok(Machine::HostIgnored),
        "lab" => Ok(Machine::Lab(String::new())),
        options if options.starts_with("--") => Ok(Machine::Lab(options.to_owned())),
        _ => Err(format!("machine {value:?}: not host, host --ignored, lab or options of canter lab")),
    }
}

fn duration(value: &str) -> Option<Duration> {
    let (number, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
    let unit_s = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    number.parse::<u64>().ok().map(|number| Duration::from_secs(number * unit_s))
}

fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Option<Module>, String> {
        parse("canter", "wire", text)
    }

    #[test]
    fn all_that_the_first_lines_may_state_is_read() {
        let text = "//@ machine: --bus wire --clock virtual\n//@ also: all --kernel 6.1 --cpus 2\n//@ also: gate lab\n\
                    //@ commands: latency wire\n//@ needs: target/python target/vblf\n//@ limit: 20m\n//@ parts: 2\n//@ in: all\n//! A module.\n//@ limit: 1s\n#[test]\n";
        let module = parsed(text).unwrap().unwrap();
        let lab = |options: &str, all_only| Place { machine: Machine::Lab(options.to_owned()), all_only };
        assert_eq!(
            module.places,
            [lab("--bus wire --clock virtual", true), lab("--kernel 6.1 --cpus 2", true), lab("", false)]
        );
        assert_eq!(module.needs, ["target/python", "target/vblf"]);
        assert_eq!(module.commands.unwrap(), ["latency", "wire"]);
        assert!(
            parsed("//@ machine: lab\n//@ commands: none\n").unwrap().unwrap().commands.unwrap().is_empty()
        );
        assert_eq!((module.limit, module.parts), (Duration::from_secs(1200), 2));
    }

    #[test]
    fn the_hosts_two_machines_are_told_apart() {
        assert_eq!(parsed("//@ machine: host\n").unwrap().unwrap().places[0].machine, Machine::Host);
        assert_eq!(
            parsed("//@ machine: host --ignored\n").unwrap().unwrap().places[0].machine,
            Machine::HostIgnored
        );
    }

    #[test]
    fn a_module_of_the_host_may_have_a_machine_of_the_lab_in_its_place() {
        let module = parsed("//@ machine: host\n//@ or: --cpus 2\n").unwrap().unwrap();
        assert_eq!(module.instead, Some(Machine::Lab("--cpus 2".to_owned())));
        assert!(module.is_of_host && module.places.len() == 1);
        let module = parsed("//@ machine: lab\n//@ also: all host\n").unwrap().unwrap();
        assert!(module.instead.is_none() && !module.is_of_host);
        for lines in [
            "//@ machine: lab\n//@ or: --cpus 2\n",
            "//@ machine: host --ignored\n//@ or: lab\n",
            "//@ machine: host\n//@ or: host --ignored\n",
            "//@ machine: host\n//@ or: lab\n//@ or: lab\n",
            "//@ or: lab\n//@ machine: host\n",
        ] {
            assert!(parsed(lines).is_err(), "{lines}");
        }
    }

    #[test]
    fn a_file_without_tests_is_no_module_and_one_with_tests_must_state_its_machine() {
        assert_eq!(parsed("//! Waits.\nfn wait() {}\n"), Ok(None));
        assert!(
            parsed("//! Waits.\n    #[test]\nfn waits() {}\n").unwrap_err().contains("states no machine")
        );
    }

    #[test]
    fn words_that_mean_nothing_here_are_errors() {
        for line in [
            "machine: wire",
            "machine host",
            "also: all",
            "also: some lab",
            "limit: 20",
            "limit: m",
            "parts: 1",
            "parts: two",
            "in: gate",
            "need: x",
        ] {
            let text = if line.starts_with("machine") || line == "also: all" {
                format!("//@ {line}\n")
            } else {
                format!("//@ machine: lab\n//@ {line}\n")
            };
            assert!(parsed(&text).is_err(), "{line}");
        }
    }

    #[test]
    fn modules_are_found_and_one_that_is_not_compiled_is_an_error() {
        let root = std::env::temp_dir().join(format!("xtask-modules-{}", std::process::id()));
        let it = root.join("crates/canter/tests/it");
        fs::create_dir_all(it.join("canchar")).unwrap();
        fs::write(it.join("main.rs"), "mod canchar;\nmod wait;\nmod wire;\n").unwrap();
        fs::write(it.join("wait.rs"), "//! Waits.\n").unwrap();
        fs::write(it.join("wire.rs"), "//@ machine: lab\n").unwrap();
        fs::write(it.join("canchar/mod.rs"), "//@ machine: --canchar virtual,3,4\n").unwrap();
        let found = modules(&root).unwrap();
        assert_eq!(found.iter().map(Module::id).collect::<Vec<_>>(), ["canter::canchar", "canter::wire"]);
        fs::write(it.join("main.rs"), "mod wire;\n").unwrap();
        assert!(modules(&root).unwrap_err().contains("mod canchar;"));
        fs::remove_dir_all(&root).unwrap();
    }
}
