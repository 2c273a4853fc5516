//! What is run: every module of the Rust tests on each of its machines, unit tests, documentation tests and scripts; or those
//! of them whose names contain a word.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    built::{Built, Executable},
    keys::Inputs,
    lanes::Line,
    machine::{LIMIT, Machine, Module},
    table::{SCRIPTS, Script},
};

/// The lab ends a guest that has had its time, with the last lines of its console; it has this much longer to do so.
const LAB_WAIT: Duration = Duration::from_secs(30);

/// What a user may choose.
#[derive(Clone, Debug)]
pub struct Item {
    /// `canter::capture`
    pub name: String,
    what: What,
    pub all_only: bool,
    /// Parts of the names of those tests that are chosen; all of them when there are none.
    tests: Vec<String>,
}

#[derive(Clone, Debug)]
enum What {
    /// A module, and which of its places.
    Module(Module, usize),
    /// A package's unit tests.
    Unit(String),
    Documentation,
    Script(&'static Script),
}

/// A line, and what else is known of it.
#[derive(Clone, Debug)]
pub struct Planned {
    pub line: Line,
    pub needs: Vec<String>,
    pub package: String,
    pub inputs: Inputs,
    /// Executables and programs that it depends on.
    pub others: Vec<PathBuf>,
    /// All of its tests run, so that it may be remembered.
    pub whole: bool,
    /// How long it takes, where nobody has measured it.
    pub guess: Duration,
}

/// Everything that may be chosen.
pub fn items(modules: Vec<Module>, packages: &[String]) -> Vec<Item> {
    let item = |name: String, what, all_only| Item { name, what, all_only, tests: Vec::new() };
    let mut items = Vec::new();
    for module in modules {
        for (number, place) in module.places.iter().enumerate() {
            items.push(item(module.id(), What::Module(module.clone(), number), place.all_only));
        }
    }
    items.extend(
        packages.iter().map(|package| item(format!("{package}::unit"), What::Unit(package.clone()), false)),
    );
    items.push(item("doc".to_owned(), What::Documentation, false));
    items.extend(
        SCRIPTS.iter().map(|script| item(script.name.to_owned(), What::Script(script), script.all_only)),
    );
    items
}

/// The items that the words choose: by a part of their names, or by a module and a part of a test's name behind `::`. What only
/// `make test-all` runs is chosen by words that choose nothing else.
pub fn choose(items: &[Item], words: &[&str], all: bool) -> Result<Vec<Item>, String> {
    if words.is_empty() {
        return Ok(items.iter().filter(|item| all || !item.all_only).cloned().collect());
    }
    let mut chosen = Vec::<Item>::new();
    for word in words {
        let mut found = matching(items, word, all);
        if found.is_empty() {
            found = matching(items, word, true);
        }
        if found.is_empty() {
            return Err(format!(
                "{word}: no module has this name; near: {}",
                nearest(items, word).join(", ")
            ));
        }
        for item in found {
            match chosen.iter_mut().find(|one| one.id() == item.id()) {
                Some(one) if one.tests.is_empty() || item.tests.is_empty() => one.tests.clear(),
                Some(one) => one.tests.extend(item.tests),
                None => chosen.push(item),
            }
        }
    }
    Ok(chosen)
}

fn matching(items: &[Item], word: &str, all: bool) -> Vec<Item> {
    let items = || items.iter().filter(|item| all || !item.all_only);
    let whole: Vec<Item> = items().filter(|item| item.name.contains(word)).cloned().collect();
    if !whole.is_empty() {
        return whole;
    }
    for (at, _) in word.rmatch_indices("::") {
        let (module, test) = (&word[..at], &word[at + 2..]);
        let of_module = |item: &&Item| item.name == module || item.name.ends_with(&format!("::{module}"));
        let found: Vec<Item> = items()
            .filter(of_module)
            .map(|item| Item { tests: vec![test.to_owned()], ..item.clone() })
            .collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

fn nearest<'a>(items: &'a [Item], word: &str) -> Vec<&'a str> {
    let likeness = |item: &Item| {
        item.name
            .split("::")
            .chain([item.name.as_str()])
            .map(|part| strsim::jaro_winkler(part, word))
            .fold(0.0, f64::max)
    };
    let mut items: Vec<&Item> = items.iter().collect();
    items.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
    let mut names: Vec<&str> = items.iter().map(|item| item.name.as_str()).collect();
    names.dedup();
    names.truncate(3);
    names
}

impl Item {
    /// A name of its own: a module's later places have their options behind it.
    fn id(&self) -> String {
        match &self.what {
            What::Module(module, number) if *number > 0 => {
                format!("{} {}", self.name, module.places[*number].machine)
            }
            _ => self.name.clone(),
        }
    }

    /// Whether more than the integration tests must be built.
    pub fn builds_all(&self) -> bool {
        matches!(self.what, What::Unit(_) | What::Documentation)
    }

    /// Its module, when its tests are in this executable, and the machine.
    fn module_of(&self, executable: &Executable) -> Option<(&Module, &Machine)> {
        match &self.what {
            What::Module(module, number)
                if executable.name == "it" && module.package == executable.package =>
            {
                Some((module, &module.places[*number].machine))
            }
            _ => None,
        }
    }

    /// Those of an executable's tests that the item has, without regard to the words behind `::`.
    fn all_tests<'a>(&self, executable: &'a Executable) -> Vec<&'a String> {
        match (&self.what, self.module_of(executable)) {
            (_, Some((module, machine))) => {
                let tests = if *machine == Machine::Host { &executable.tests } else { &executable.ignored };
                let is_below = |test: &&String| {
                    test.strip_prefix(&module.name).is_some_and(|rest| rest.starts_with("::"))
                };
                tests.iter().filter(is_below).collect()
            }
            (What::Unit(package), _) if *package == executable.package && executable.name != "it" => {
                executable.tests.iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Those of an executable's tests that are chosen.
    fn chosen_tests(&self, executable: &Executable) -> Vec<String> {
        let module = self.module_of(executable).map_or(0, |(module, _)| module.name.len() + 2);
        let takes = |test: &&String| {
            self.tests.is_empty() || self.tests.iter().any(|part| test[module..].contains(part.as_str()))
        };
        self.all_tests(executable).into_iter().filter(takes).cloned().collect()
    }
}

/// Makes lines of items.
pub struct Planner<'a> {
    pub root: &'a Path,
    pub canter: &'a Path,
    pub built: &'a Built,
    pub items: &'a [Item],
    /// The chosen ones.
    pub chosen: &'a [Item],
    pub variables: &'a [(String, String)],
}

impl Planner<'_> {
    /// The lines, and what is wrong with the plan, such as tests that no line would run.
    pub fn plan(&self) -> (Vec<Planned>, Vec<String>) {
        let executables = &self.built.executables;
        let mut lines: Vec<Planned> =
            executables.iter().flat_map(|executable| self.on_host(executable)).collect();
        let mut problems: Vec<String> =
            executables.iter().filter_map(|executable| self.unreached(executable)).collect();
        for item in self.chosen {
            lines.extend(executables.iter().filter_map(|executable| self.ignored(item, executable)));
            lines.extend(executables.iter().filter_map(|executable| self.unit(item, executable)));
            match item.what {
                What::Documentation => lines.push(self.documentation()),
                What::Script(script) => lines.push(self.script(script)),
                What::Module(..)
                    if executables.iter().all(|executable| item.chosen_tests(executable).is_empty()) =>
                {
                    let parts: String = item.tests.iter().map(|part| format!("{part} ")).collect();
                    problems.push(format!("{}: it has no {parts}test", item.id()));
                }
                _ => {}
            }
        }
        (lines, problems)
    }

    /// Tests of an executable that no line runs in `make test-all`.
    fn unreached(&self, executable: &Executable) -> Option<String> {
        let reached: HashSet<&String> =
            self.items.iter().flat_map(|item| item.all_tests(executable)).collect();
        let all = executable.tests.iter().chain(&executable.ignored);
        let left: Vec<&str> = all.filter(|test| !reached.contains(test)).map(String::as_str).collect();
        (!left.is_empty())
            .then(|| format!("{} {}: no line runs {}", executable.package, executable.name, left.join(", ")))
    }

    /// The tests of all chosen modules of a package that run on the host, as one line.
    fn on_host(&self, executable: &Executable) -> Option<Planned> {
        let is_on_host =
            |item: &&Item| item.module_of(executable).is_some_and(|(_, machine)| *machine == Machine::Host);
        let chosen: Vec<&Item> = self.chosen.iter().filter(is_on_host).collect();
        let tests: Vec<String> = chosen.iter().flat_map(|item| item.chosen_tests(executable)).collect();
        let whole = tests.len() == executable.tests.len();
        let id = if let [one] = chosen[..] { one.id() } else { format!("{}::host", executable.package) };
        self.rust(
            id,
            executable,
            Vec::new(),
            &[],
            if whole { Vec::new() } else { tests.clone() },
            tests.len(),
        )
    }

    fn unit(&self, item: &Item, executable: &Executable) -> Option<Planned> {
        let tests =
            if matches!(item.what, What::Unit(_)) { item.chosen_tests(executable) } else { Vec::new() };
        let id = format!("{}::{}", executable.package, executable.name);
        let line = self.rust(
            id,
            executable,
            Vec::new(),
            &[],
            if item.tests.is_empty() { Vec::new() } else { tests.clone() },
            tests.len(),
        );
        line.map(|line| Planned { whole: item.tests.is_empty(), ..line })
    }

    /// The ignored tests of a module, in the lab or on the host.
    fn ignored(&self, item: &Item, executable: &Executable) -> Option<Planned> {
        let (module, machine) = item.module_of(executable)?;
        let (before, inputs) = match machine {
            Machine::Host => return None,
            Machine::HostIgnored => (Vec::new(), Inputs::Everything),
            Machine::Lab(options) => (self.lab(options, module.limit), Inputs::Guest),
        };
        let tests = item.chosen_tests(executable);
        let number = tests.len();
        let mut planned =
            self.rust(item.id(), executable, before, &["--ignored", "--test-threads=1"], tests, number)?;
        planned.line.limit = module.limit + LAB_WAIT;
        let guess = Duration::from_secs(5 + 3 * number as u64);
        Some(Planned { needs: module.needs.clone(), inputs, guess, whole: item.tests.is_empty(), ..planned })
    }

    fn lab(&self, options: &str, limit: Duration) -> Vec<String> {
        let limit = format!("{}s", limit.as_secs());
        let canter = [self.canter.display().to_string()];
        let words = ["lab", "--quiet"].into_iter().chain(options.split_whitespace()).chain([
            "--timeout",
            &limit,
            "--",
        ]);
        canter.into_iter().chain(words.map(str::to_owned)).collect()
    }

    /// A line of a test executable that runs `number` tests, and only `tests` when there are some.
    fn rust(
        &self,
        id: String,
        executable: &Executable,
        before: Vec<String>,
        options: &[&str],
        tests: Vec<String>,
        number: usize,
    ) -> Option<Planned> {
        let mut words = before;
        words.push(executable.path.display().to_string());
        words.extend(options.iter().map(|&option| option.to_owned()));
        if !tests.is_empty() {
            // A filter alone would also take tests that have it in the midst of their names: `wire::` is in `capture_wire::`.
            words.push("--exact".to_owned());
        }
        let whole = tests.is_empty();
        words.extend(tests);
        let mut planned = self.planned(id, words, Inputs::Host);
        planned.line.folder.clone_from(&executable.folder);
        (planned.line.tests, planned.line.limit) = (Some(number), LIMIT);
        let (folder, package) = (executable.folder.display().to_string(), executable.package.clone());
        planned
            .line
            .variables
            .extend([("CARGO_MANIFEST_DIR".to_owned(), folder), ("CARGO_PKG_NAME".to_owned(), package)]);
        planned.others.push(executable.path.clone());
        planned.others.extend(self.built.programs.iter().cloned());
        (number > 0).then(|| Planned { package: executable.package.clone(), whole, ..planned })
    }

    fn documentation(&self) -> Planned {
        let words = ["cargo", "test", "--workspace", "--locked", "--doc"].map(str::to_owned).to_vec();
        self.planned("doc".to_owned(), words, Inputs::Below(&["crates/", "Cargo", "README.md", ".cargo/"]))
    }

    fn script(&self, script: &Script) -> Planned {
        let words = ["sh", "-c", script.command].map(str::to_owned).to_vec();
        let mut planned = self.planned(script.name.to_owned(), words, script.inputs);
        for (name, path) in [("ROOT", self.root), ("CANTER", self.canter)] {
            planned.line.variables.push((name.to_owned(), path.display().to_string()));
        }
        (planned.line.alone, planned.line.limit) = (script.alone, Duration::from_secs(script.limit_s));
        planned.others.push(self.canter.to_owned());
        let needs = script.needs.iter().map(|&need| need.to_owned()).collect();
        Planned { needs, guess: Duration::from_secs(90), ..planned }
    }

    fn planned(&self, id: String, words: Vec<String>, inputs: Inputs) -> Planned {
        let line = Line { variables: self.variables.to_vec(), ..Line::new(id, words, self.root) };
        Planned::new(line, inputs)
    }
}

impl Planned {
    pub fn new(line: Line, inputs: Inputs) -> Self {
        let (needs, others, guess) = (Vec::new(), Vec::new(), Duration::from_secs(30));
        Self { line, needs, package: String::new(), inputs, others, whole: true, guess }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Place;

    fn module(name: &str, machines: &[(&str, bool)]) -> Module {
        let place = |&(options, all_only): &(&str, bool)| {
            let machine = if options == "host" { Machine::Host } else { Machine::Lab(options.to_owned()) };
            Place { machine, all_only }
        };
        let places = machines.iter().map(place).collect();
        Module {
            package: "canter".to_owned(),
            name: name.to_owned(),
            places,
            needs: Vec::new(),
            limit: LIMIT,
        }
    }

    fn all() -> Vec<Item> {
        let modules = vec![
            module("capture", &[("--cpus 2", false), ("--kernel 6.1", true)]),
            module("capture_wire", &[("--bus wire", false)]),
            module("convert", &[("host", false)]),
            module("manual", &[("host", false)]),
            module("bare_metal", &[("--bare-metal", true)]),
        ];
        items(modules, &["canter".to_owned()])
    }

    fn chosen(words: &[&str], all_of_it: bool) -> Vec<String> {
        choose(&all(), words, all_of_it).unwrap().iter().map(Item::id).collect()
    }

    fn built(name: &str, tests: &[&str], ignored: &[&str]) -> Built {
        let names = |tests: &[&str]| tests.iter().map(|&test| test.to_owned()).collect();
        let executable = Executable {
            package: "canter".to_owned(),
            folder: PathBuf::from("/r/crates/canter"),
            name: name.to_owned(),
            path: PathBuf::from("/t/it-1"),
            tests: names(tests),
            ignored: names(ignored),
        };
        Built { executables: vec![executable], programs: vec![PathBuf::from("/t/canter")] }
    }

    /// The commands of the lines of test executables, and the problems.
    fn planned(words: &[&str], built: &Built) -> (Vec<String>, Vec<String>) {
        let (items, root, canter) = (all(), Path::new("/r"), Path::new("/t/canter"));
        let chosen = choose(&items, words, false).unwrap();
        let planner = Planner { root, canter, built, items: &items, chosen: &chosen, variables: &[] };
        let (lines, problems) = planner.plan();
        let lines = lines.iter().filter(|one| !one.package.is_empty());
        (lines.map(|one| format!("{}: {}", one.line.id, one.line.words.join(" "))).collect(), problems)
    }

    const TESTS: [&str; 3] = ["convert::a", "convert::b", "manual::a"];
    const IGNORED: [&str; 4] = ["bare_metal::a", "capture::a", "capture::b", "capture_wire::capture::a"];

    #[test]
    fn a_word_chooses_modules_by_a_part_of_their_name_and_test_all_has_more_machines() {
        assert_eq!(chosen(&["capture"], false), ["canter::capture", "canter::capture_wire"]);
        assert_eq!(
            chosen(&["capture"], true),
            ["canter::capture", "canter::capture --kernel 6.1", "canter::capture_wire"]
        );
        assert_eq!(chosen(&["convert", "capture_w"], false), ["canter::convert", "canter::capture_wire"]);
        assert_eq!(chosen(&["bare_metal"], false), ["canter::bare_metal"]);
        assert!(chosen(&[], true).len() > chosen(&[], false).len());
    }

    #[test]
    fn a_test_is_chosen_behind_its_module() {
        let built = built("it", &TESTS, &IGNORED);
        let lab =
            "/t/canter lab --quiet --cpus 2 --timeout 600s -- /t/it-1 --ignored --test-threads=1 --exact";
        assert_eq!(planned(&["capture::b"], &built).0, [format!("canter::capture: {lab} capture::b")]);
        assert_eq!(
            planned(&["canter::convert::b"], &built).0,
            ["canter::convert: /t/it-1 --exact convert::b"]
        );
        assert_eq!(planned(&["convert::z"], &built).1, ["canter::convert: it has no z test"]);
    }

    #[test]
    fn a_word_that_chooses_nothing_is_an_error_with_names_that_are_near() {
        let error = choose(&all(), &["captur_wire"], false).unwrap_err();
        assert!(error.starts_with("captur_wire: no module has this name; near: canter::capture"), "{error}");
    }

    #[test]
    fn each_module_is_a_line_and_those_of_the_host_are_one() {
        let (lines, problems) = planned(&[], &built("it", &TESTS, &IGNORED));
        let ids: Vec<&str> = lines.iter().map(|line| line.split_once(": ").unwrap().0).collect();
        assert_eq!(ids, ["canter::host", "canter::capture", "canter::capture_wire"]);
        assert_eq!(lines[0], "canter::host: /t/it-1");
        assert_eq!(problems, [""; 0]);
    }

    #[test]
    fn a_test_that_no_line_would_run_is_a_problem() {
        let (_, problems) = planned(
            &[],
            &built("it", &[&TESTS[..], &["capture::c"]].concat(), &[&IGNORED[..], &["manual::b"]].concat()),
        );
        assert_eq!(problems, ["canter it: no line runs capture::c, manual::b"]);
        let (_, problems) = planned(&["manual"], &built("unit", &["a::b"], &["a::c"]));
        assert_eq!(problems[0], "canter unit: no line runs a::c");
    }

    #[test]
    fn a_module_without_tests_is_a_problem() {
        assert_eq!(
            planned(&[], &built("it", &TESTS, &IGNORED[..3])).1,
            ["canter::capture_wire: it has no test"]
        );
    }
}
