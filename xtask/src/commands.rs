//! The sources of the program's own commands. The program is a table of commands over other crates, so that most tests depend
//! on few of its modules: those of the commands that they use, and what these import.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The sources of the program.
pub const SOURCES: &str = "crates/canter/src/";
/// The modules by which every command is reached.
const ALWAYS: [&str; 3] = ["main", "lib", "cli"];

/// The program's module that has this source, which is given by its path below [`SOURCES`].
pub fn module_of(path: &str) -> &str {
    path.split(['/', '.']).next().unwrap_or_default()
}

/// The modules of these commands, with all that they import.
pub fn modules(root: &Path, commands: &[String]) -> Result<Vec<String>, String> {
    let folder = root.join(SOURCES);
    let mut found: BTreeSet<String> = ALWAYS.map(str::to_owned).into();
    let mut left = commands.to_vec();
    while let Some(name) = left.pop() {
        let texts = texts(&folder, &name);
        if texts.is_empty() && commands.contains(&name) {
            return Err(format!("//@ commands: {name}: {SOURCES} has no such module"));
        }
        // What has no file of its own, such as a function, is in lib.rs.
        if !texts.is_empty() && found.insert(name) {
            left.extend(texts.iter().flat_map(|text| imported(text)));
        }
    }
    Ok(found.into_iter().collect())
}

/// The texts of a module and of all below it.
fn texts(folder: &Path, name: &str) -> Vec<String> {
    let mut texts: Vec<String> = fs::read_to_string(folder.join(format!("{name}.rs"))).into_iter().collect();
    let mut folders: Vec<PathBuf> = vec![folder.join(name)];
    while let Some(entries) = folders.pop().map(fs::read_dir) {
        for path in entries.into_iter().flatten().flatten().map(|entry| entry.path()) {
            match path.is_dir() {
                true => folders.push(path),
                false => texts.extend(fs::read_to_string(path)),
            }
        }
    }
    texts
}

/// The words of imports from the crate, `crate::live::Live` and `crate::{gaps, live::Live}`, that may be modules. A word too
/// many costs a repetition.
fn imported(text: &str) -> Vec<String> {
    let imports = text.split("crate::").skip(1).map(|rest| rest.split(';').next().unwrap_or_default());
    let words = imports.flat_map(|import| import.split(|c: char| c != '_' && !c.is_alphanumeric()));
    words.filter(|word| word.starts_with(char::is_lowercase)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_text_imports_is_found_in_groups_too() {
        let text = "use crate::{\n    databases::{Names, Wording},\n    live,\n};\nuse crate::gaps::Gaps;\nlet x = crate::CONST;";
        assert_eq!(imported(text), ["databases", "live", "gaps"]);
    }

    #[test]
    fn a_command_comes_with_what_it_imports_and_with_the_table() {
        let folder = std::env::temp_dir().join(format!("xtask-commands-{}", std::process::id()));
        let sources = folder.join(SOURCES);
        fs::create_dir_all(sources.join("top")).unwrap();
        for (name, text) in [
            ("top.rs", "mod view;"),
            ("top/view.rs", "use crate::live::Live;"),
            ("live.rs", "use crate::{gaps, open_all};"),
            ("gaps.rs", "use crate::live;"),
            ("capture.rs", ""),
        ] {
            fs::write(sources.join(name), text).unwrap();
        }
        let modules = |command: &str| modules(&folder, &[command.to_owned()]);
        assert_eq!(modules("top").unwrap(), ["cli", "gaps", "lib", "live", "main", "top"]);
        assert!(modules("nap").unwrap_err().contains("nap"));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((module_of("top/view.rs"), module_of("live.rs")), ("top", "live"));
    }
}
