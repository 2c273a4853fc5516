//@ machine: host
//! Who may import whom inside the crates of the program: ARCHITECTURE.md has the order of their modules from the ground up,
//! a numbered line for each step; between crates Cargo enforces it. A module imports modules of earlier lines only, so there
//! are no circles, and commands do not import each other. Files of one folder may import each other, but in no circle. The
//! unit tests of a file may import anything.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The crates whose modules the list has.
const CRATES: [&str; 4] = ["canter-cli", "canter-route", "canter-lab", "canter"];

/// The folder of the repository.
fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

/// The modules of each line, the ground first.
fn order(document: &str) -> Vec<Vec<String>> {
    let section = document.split("\n## ").find(|section| section.starts_with("Who may import whom\n"));
    let section = section.expect("ARCHITECTURE.md has the section \"Who may import whom\"");
    let numbered = |line: &&str| line.starts_with(|first: char| first.is_ascii_digit());
    let mut steps: Vec<String> = Vec::new();
    for line in section.lines() {
        match steps.last_mut() {
            _ if numbered(&line) => steps.push(line.to_owned()),
            Some(step) if line.starts_with("    ") => *step += &line[3..],
            _ => {}
        }
    }
    let names = |step: &String| {
        let (names, _) = step.split_once(": ").unwrap_or((step, ""));
        names.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    steps.iter().map(names).collect()
}

/// Every source file below a folder but those of tests, with the path of its module: `["gateway", "bpf"]`.
fn sources(folder: &Path, module: &[String], found: &mut Vec<(PathBuf, Vec<String>)>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_stem().unwrap().to_str().unwrap().to_owned();
        let inner = [module, std::slice::from_ref(&name)].concat();
        if entry.is_dir() {
            sources(&entry, &inner, found);
        } else if entry.extension().is_some_and(|end| end == "rs") && name != "tests" {
            found.push((entry, inner));
        }
    }
}

/// The program without comments and without its inner module `tests`.
fn code(text: &str) -> String {
    let text = text.split_once("#[cfg(test)]\nmod tests {").map_or(text, |(before, _)| before);
    let lines = text.lines().map(|line| line.split_once("//").map_or(line, |(before, _)| before));
    lines.collect::<Vec<_>>().join("\n")
}

/// The modules that follow a path's beginning, as in `crate::report` and `crate::{failure, gateway::{kind, table}}`.
fn named_after(beginning: &str, code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices(beginning) {
        let part_of_a_word = |before: char| before.is_alphanumeric() || before == '_' || before == ':';
        if code[..at].ends_with(part_of_a_word) {
            continue;
        }
        let rest = &code[at + beginning.len()..];
        match rest.strip_prefix('{') {
            Some(list) => names.extend(first_names(list)),
            None => names.extend(first_name(rest)),
        }
    }
    names
}

fn first_name(path: &str) -> Option<String> {
    let name: String = path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

/// The first name of each path of a list, up to its closing brace.
fn first_names(list: &str) -> Vec<String> {
    let mut names = Vec::new();
    let (mut depth, mut begin) = (0, 0);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.extend(first_name(&list[begin..at]));
                begin = at + 1;
                if c == '}' {
                    return names;
                }
            }
            _ => {}
        }
    }
    panic!("a list of imports without an end: {list}");
}

/// What a file of this module imports from other modules of the crate.
fn imports(text: &str, module: &[String]) -> BTreeSet<String> {
    let code = code(text);
    let above = "super::".repeat(module.len());
    let mut names = named_after("crate::", &code);
    names.extend(named_after(&above, &code));
    names.remove(&module[0]);
    names
}

/// The files of a folder below `src` and what each imports from its neighbours, both by the names of their modules.
fn neighbours(folder: &str, files: &[(PathBuf, Vec<String>)]) -> Graph {
    let inside = files.iter().filter(|(_, module)| module.len() > 1 && module[0] == folder);
    let mut graph = Graph::new();
    for (path, module) in inside {
        let code = code(&fs::read_to_string(path).unwrap());
        let mut names = named_after(&"super::".repeat(module.len() - 1), &code);
        names.extend(named_after(&format!("crate::{folder}::"), &code));
        names.remove(&module[1]);
        graph.entry(module[1].clone()).or_default().extend(names);
    }
    graph
}

type Graph = BTreeMap<String, BTreeSet<String>>;

/// The modules that are left after modules without an import from the graph are removed until there are none: circles, and
/// modules that import them.
fn circles(mut graph: Graph) -> Vec<String> {
    loop {
        let left: BTreeSet<String> = graph.keys().cloned().collect();
        graph.retain(|_, imports| !imports.is_disjoint(&left));
        if graph.len() == left.len() {
            return left.into_iter().collect();
        }
    }
}

fn rank(order: &[Vec<String>], name: &str) -> Option<usize> {
    order.iter().position(|line| line.iter().any(|known| known == name))
}

/// Why these imports of a module are wrong.
fn faults(order: &[Vec<String>], module: &str, imports: &BTreeSet<String>) -> Vec<String> {
    let Some(line) = rank(order, module) else { return vec![format!("{module} has no place in the list")] };
    let wrong = imports.iter().filter_map(|other| match rank(order, other) {
        Some(other_line) if other_line < line => None,
        Some(other_line) if other_line == line => Some(format!("{module} → {other}, which stands beside it")),
        Some(_) => Some(format!("{module} → {other}, which stands above it")),
        None => None, // a name that is no module: `crate::Failure`, a macro
    });
    wrong.collect()
}

#[test]
fn no_module_imports_one_above_or_beside_it() {
    let root = root();
    let order = order(&fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap());
    let mut files = Vec::new();
    for name in CRATES {
        sources(&root.join("crates").join(name).join("src"), &[], &mut files);
    }
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for (path, module) in files {
        if ["lib", "main"].contains(&module[0].as_str()) {
            continue;
        }
        let imports = imports(&fs::read_to_string(&path).unwrap(), &module);
        let path = path.strip_prefix(&root).unwrap().display();
        wrong.extend(faults(&order, &module[0], &imports).iter().map(|why| format!("{path}: {why}")));
        seen.insert(module[0].clone());
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    let listed: Vec<String> = order.concat();
    assert_eq!(
        listed.iter().cloned().collect::<BTreeSet<_>>(),
        seen,
        "the list has the modules, each of them"
    );
    assert_eq!(listed.len(), seen.len(), "no module has two places");
}

#[test]
fn the_files_of_a_folder_do_not_import_each_other_in_a_circle() {
    for name in CRATES {
        let mut files = Vec::new();
        sources(&root().join("crates").join(name).join("src"), &[], &mut files);
        let folders: BTreeSet<&String> = files.iter().map(|(_, module)| &module[0]).collect();
        for folder in folders {
            let circles = circles(neighbours(folder, &files));
            assert!(circles.is_empty(), "{name}: {folder}: a circle is among {circles:?}");
        }
    }
    let graph = |list: &[(&str, &str)]| {
        let mut graph = Graph::new();
        for (from, to) in list {
            graph.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        graph
    };
    assert_eq!(circles(graph(&[("a", "b"), ("b", "c"), ("c", "b"), ("d", "e")])), ["a", "b", "c"]);
    assert!(circles(graph(&[("a", "b"), ("a", "c"), ("b", "c"), ("c", "elsewhere")])).is_empty());
}

#[test]
fn an_arrow_that_runs_up_is_found_however_it_is_written() {
    let document = "# A\n\n## Who may import whom\nText.\n\n1. `ground`: first\n2. `left`, `right`: `words` of it\n\
                    3. `top`\n\n## More\n4. `other`\n";
    let order = order(document);
    assert_eq!(order, [vec!["ground"], vec!["left", "right"], vec!["top"]]);
    let module: Vec<String> = vec!["left".into(), "inner".into()];
    for (text, expected) in [
        ("use crate::ground;", ""),
        ("use crate::{\n    ground::{self, right},\n    left::other,\n};", ""),
        ("use crate::{ground, top::{a, b}};", "left → top, which stands above it"),
        ("use super::super::right;", "left → right, which stands beside it"),
        ("use super::right; // crate::top", ""),
        ("fn f() { crate::top::run() }", "left → top, which stands above it"),
        ("use other_crate::top;", ""),
        ("#[cfg(test)]\nmod tests {\n    use crate::top;\n}", ""),
    ] {
        assert_eq!(faults(&order, "left", &imports(text, &module)).join(", "), expected, "{text}");
    }
    assert_eq!(faults(&order, "new", &BTreeSet::new()), ["new has no place in the list"]);
}
