//! What cargo has built: test executables and the programs that tests start.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// A test executable.
#[derive(Clone, Debug, PartialEq)]
pub struct Executable {
    pub package: String,
    /// The package's folder, in which its tests run.
    pub folder: PathBuf,
    /// `it`: the integration tests, by module; `unit`: the library's own tests; else the name of a program or a test.
    pub name: String,
    pub path: PathBuf,
    pub tests: Vec<String>,
    pub ignored: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Built {
    pub executables: Vec<Executable>,
    pub programs: Vec<PathBuf>,
    /// The lab without canter's other commands, an example of canter-lab.
    pub lab: PathBuf,
}

/// The arguments by which cargo builds. The whole workspace even for one package: with `-p`, cargo would choose other features
/// of libraries and build all of it again. By `cargo test`, an example that is named would become a test executable.
pub fn arguments(all_targets: bool) -> Vec<String> {
    let what = match all_targets {
        true => "test --no-run",
        false => "build --bins --test it --example record --example lab",
    };
    let words = format!("cargo {what} --workspace --locked --message-format=json-render-diagnostics");
    words.split(' ').map(str::to_owned).collect()
}

impl Built {
    /// From cargo's messages, a JSON object a line.
    pub fn read(messages: &[String]) -> Self {
        let mut built = Self::default();
        for message in messages.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let (Some(path), Some(manifest)) =
                (message["executable"].as_str(), message["manifest_path"].as_str())
            else {
                continue;
            };
            let kind = message["target"]["kind"][0].as_str().unwrap_or_default();
            if message["profile"]["test"] != true || kind == "example" {
                let path = PathBuf::from(path);
                match message["target"]["name"] == "lab" {
                    true => built.lab = path,
                    false => built.programs.push(path),
                }
                continue;
            }
            let folder = Path::new(manifest).parent().unwrap_or(Path::new("."));
            let name = match kind {
                "test" => message["target"]["name"].as_str().unwrap_or_default(),
                "bin" => "program",
                _ => "unit",
            };
            built.executables.push(Executable {
                package: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                folder: folder.to_owned(),
                name: name.to_owned(),
                path: PathBuf::from(path),
                tests: Vec::new(),
                ignored: Vec::new(),
            });
        }
        built.programs.sort();
        built.executables.sort_by(|a, b| (&a.package, &a.name).cmp(&(&b.package, &b.name)));
        built
    }
}

impl Executable {
    /// Asks for the names of its tests, those that are ignored apart.
    pub fn list_tests(&mut self) -> Result<(), String> {
        self.ignored = self.list(&["--ignored"])?;
        self.tests = self.list(&[])?;
        self.tests.retain(|name| !self.ignored.contains(name));
        Ok(())
    }

    fn list(&self, more: &[&str]) -> Result<Vec<String>, String> {
        let failure = |why: String| format!("{}: --list: {why}", self.path.display());
        let mut command = Command::new(&self.path);
        let output = command
            .args(["--list", "--format", "terse"])
            .args(more)
            .output()
            .map_err(|e| failure(e.to_string()))?;
        if !output.status.success() {
            return Err(failure(output.status.to_string()));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_and_programs_are_told_apart() {
        let message = |kind: &str, name: &str, test: bool, path: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/r/crates/canter/Cargo.toml","target":{{"kind":["{kind}"],"name":"{name}"}},"profile":{{"test":{test}}},"executable":{path}}}"#
            )
        };
        let messages = [
            message("lib", "canter", false, "null"),
            message("lib", "canter", true, r#""/t/unit-1""#),
            message("test", "it", true, r#""/t/it-1""#),
            message("bin", "canter", false, r#""/t/canter""#),
            message("example", "record", true, r#""/t/record""#),
            message("example", "lab", true, r#""/t/lab""#),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let built = Built::read(&messages);
        let names: Vec<_> =
            built.executables.iter().map(|one| (one.package.as_str(), one.name.as_str())).collect();
        assert_eq!(names, [("canter", "it"), ("canter", "unit")]);
        assert_eq!(built.programs, [PathBuf::from("/t/canter"), PathBuf::from("/t/record")]);
        assert_eq!(built.lab, PathBuf::from("/t/lab"));
    }
}
