//@ machine: host
//! Checks who imports whom in this crate: compares the list at the top of lib.rs, from the bottom up, with the code.
//!
//! Each line of the list is a layer of modules; a module's folder belongs to it, except modules that the list names
//! separately. A module may import only modules in lines above its own. Modules in parentheses count as one: they may
//! import each other.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Modules with the numbers of their layers, 0 at the bottom, and whether the layer counts as one module.
type Layers = BTreeMap<String, (usize, bool)>;

/// The block of text below the heading "Who imports whom".
fn layers(lib: &str) -> Layers {
    let mut lines = lib.lines().skip_while(|line| *line != "//! # Who imports whom");
    lines.next().expect("lib.rs has the list");
    let block = lines.skip_while(|line| *line != "//! ```text").skip(1);
    let block = block.map_while(|line| line.strip_prefix("//! ").filter(|line| *line != "```"));
    let names = |(layer, line): (usize, &str)| -> Vec<(String, (usize, bool))> {
        let names = line.trim_matches(['(', ')']).split_whitespace();
        names.map(|name| (name.to_owned(), (layer, line.starts_with('(')))).collect()
    };
    block.enumerate().flat_map(names).collect()
}

/// The module of the list that has this path: the longest one.
fn listed<'a>(path: &[&str], layers: &'a Layers) -> Option<(&'a str, (usize, bool))> {
    (1..=path.len()).rev().find_map(|len| {
        let found = layers.get_key_value(&path[..len].join("::"));
        found.map(|(name, &layer)| (name.as_str(), layer))
    })
}

/// Returns the code without comments, string literals with paths, and unit tests, which may import anything.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
    let lines = text[..end].lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// All paths that an import tree names: `a::{b, c::{self, d}}` is `a::b`, `a::c`, `a::c::d`.
fn paths(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((head, inner)) = tree.split_once('{') else {
        return vec![tree.split(" as ").next().unwrap_or(tree).trim_end_matches("::self").to_owned()];
    };
    let inner = inner.strip_suffix('}').expect("braces that match");
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, letter) in inner.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let parts = parts.into_iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| paths(&format!("{head}{}", part.trim()))).collect()
}

/// Paths that the code of a module names: those of its `use` lines, and `crate::…` and `super::…` elsewhere.
fn named(text: &str) -> Vec<String> {
    let code = code(text);
    let (mut found, mut rest) = (Vec::new(), String::new());
    let mut statements = code.split_inclusive(';');
    for statement in &mut statements {
        let import = ["use crate::", "use super::"].iter().filter_map(|word| statement.find(word)).min();
        match import {
            Some(at) => {
                rest.push_str(&statement[..at]);
                let tree: String = statement[at + 4..]
                    .trim_end_matches(';')
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" ");
                found.extend(paths(&tree.replace("{ ", "{").replace(" }", "}")));
            }
            None => rest.push_str(statement),
        }
    }
    let word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    for prefix in ["crate::", "super::"] {
        let places = rest.match_indices(prefix).filter(|(at, _)| !rest[..*at].ends_with(word));
        found.extend(
            places.map(|(at, _)| {
                rest[at..].split(|letter| !word(letter)).next().unwrap_or_default().to_owned()
            }),
        );
    }
    found
}

/// A path as it is seen from the crate's root; `roots` are names that lib.rs re-exports there.
fn absolute(path: &str, module: &[&str], roots: &BTreeMap<String, String>) -> Vec<String> {
    let mut words: Vec<String> = path.split("::").map(str::to_owned).collect();
    let mut absolute: Vec<String> = Vec::new();
    if words[0] == "super" {
        absolute = module.iter().map(|word| (*word).to_owned()).collect();
    }
    while words.first().is_some_and(|word| word == "super") {
        absolute.pop();
        words.remove(0);
    }
    if words.first().is_some_and(|word| word == "crate") {
        words.remove(0);
    }
    absolute.extend(words);
    if let Some(home) = absolute.first().and_then(|name| roots.get(name)) {
        absolute[0] = home.clone();
    }
    absolute
}

/// `Frame` → `frame`: what `pub use frame::{Frame, …};` in lib.rs makes of a name.
fn roots(lib: &str) -> BTreeMap<String, String> {
    let uses = code(lib);
    let uses = uses.split(';').filter_map(|one| one.trim().strip_prefix("pub use "));
    let homes = uses.flat_map(|tree| paths(&tree.split_whitespace().collect::<Vec<_>>().join(" ")));
    homes
        .filter_map(|path| {
            path.rsplit_once("::").map(|(home, name)| (name.trim().to_owned(), home.to_owned()))
        })
        .collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Every import that is not of a lower layer, as `from → to (path)`.
fn wrong_arrows(
    sources: &[(String, String)],
    layers: &Layers,
    roots: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (module, text) in sources {
        let module: Vec<&str> = module.split("::").collect();
        let Some((from, (layer, one))) = listed(&module, layers) else {
            wrong.push(format!("{} stands in no layer", module.join("::")));
            continue;
        };
        for path in named(text) {
            let target = absolute(&path, &module, roots);
            let target: Vec<&str> = target.iter().map(String::as_str).collect();
            // A path that is not in the list is an item of the root, or of another crate.
            let Some((to, (below, _))) = listed(&target, layers) else { continue };
            if to != from && below >= layer && !(one && below == layer) {
                let who = module.join("::");
                let listed =
                    if who == from { String::new() } else { format!(" (not in the list: counts as {from})") };
                wrong.push(format!("{who}{listed} → {to} ({path})"));
            }
        }
    }
    wrong
}

fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources: Vec<(String, String)> = files(&root)
        .into_iter()
        .filter(|path| path.file_name().is_some_and(|name| name != "lib.rs" && name != "tests.rs"))
        .map(|path| {
            let module = path.strip_prefix(&root).unwrap().with_extension("");
            let module = module.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
            (module.collect::<Vec<_>>().join("::"), fs::read_to_string(&path).unwrap())
        })
        .collect();
    sources.sort();
    sources
}

#[test]
fn every_module_imports_only_what_stands_below_it() {
    let lib = include_str!("../../src/lib.rs");
    let layers = layers(lib);
    let wrong = wrong_arrows(&sources(), &layers, &roots(lib));
    assert!(
        wrong.is_empty(),
        "against the list at the top of lib.rs, these run up or sideways:\n  {}",
        wrong.join("\n  ")
    );
    // The list may only name modules that exist.
    let modules: Vec<String> = sources().into_iter().map(|(module, _)| module).collect();
    for name in layers.keys() {
        assert!(modules.contains(name), "{name} is listed and does not exist");
    }
}

#[test]
fn an_arrow_that_runs_up_or_sideways_is_found_however_it_is_written() {
    let layers: Layers =
        [("ground", 0), ("rock", 0), ("seam", 1), ("seam::left", 2), ("seam::right", 2), ("roof", 3)]
            .map(|(name, layer)| (name.to_owned(), (layer, name == "ground" || name == "rock")))
            .into();
    let roots: BTreeMap<String, String> = [("Roof".to_owned(), "roof".to_owned())].into();
    let wrong =
        |module: &str, text: &str| wrong_arrows(&[(module.to_owned(), text.to_owned())], &layers, &roots);
    for (module, text, arrow) in [
        ("ground", "use crate::roof::Top;", "ground → roof (crate::roof::Top)"),
        ("ground", "use crate::{\n    Other,\n    seam::{self, Seam},\n};", "ground → seam (crate::seam)"),
        ("seam", "use crate::Roof;", "seam → roof (crate::Roof)"),
        ("seam", "fn f() { crate::roof::go() }", "seam → roof (crate::roof::go)"),
        ("seam::left", "use super::right::Hand;", "seam::left → seam::right (super::right::Hand)"),
        (
            "seam::left::finger",
            "use super::super::right::Hand;",
            "seam::left::finger (not in the list: counts as seam::left) → seam::right (super::super::right::Hand)",
        ),
        ("cellar", "", "cellar stands in no layer"),
    ] {
        assert!(
            wrong(module, text).contains(&arrow.to_owned()),
            "{module}: {text}: {:?}",
            wrong(module, text)
        );
    }
    for (module, text) in [
        ("roof", "use crate::{ground, seam::left::Hand};"),
        ("seam::left", "use super::Seam;\nuse crate::ground::Ground;"),
        ("seam::left::finger", "use super::Hand;"),
        ("ground", "use crate::rock::Rock;"),
        ("ground", "// see crate::roof\nfn f() {}\n#[cfg(test)]\nmod tests { use crate::roof::Top; }"),
    ] {
        assert_eq!(wrong(module, text), Vec::<String>::new(), "{module}: {text}");
    }
}
