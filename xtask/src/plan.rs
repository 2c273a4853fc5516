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

/// Everything that may be chosen. `has_tun`: the host has TUN devices in namespaces; without them, modules that need them run
/// on the machine that they name for that case.
pub fn items(modules: Vec<Module>, packages: &[String], has_tun: bool) -> Vec<Item> {
    let item = |name: String, what, all_only| Item { name, what, all_only, tests: Vec::new() };
    let mut items = Vec::new();
    for mut module in modules {
        if let (Some(machine), false) = (module.instead.take(), has_tun) {
            module.places[0].machine = machine;
        }
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

/// The end of a line's name, behind the package: the line runs all modules of the package that run on the host.
const HOST: &str = "::host";

/// The items that the words choose: by the whole name of a line, by a part of names, or by a module and a part of a test's
/// name behind `::`. What only `make test-all` runs is chosen by words that choose nothing else.
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
    let whole: Vec<Item> = items().filter(|item| item.name == word).cloned().collect();
    if !whole.is_empty() {
        return whole;
    }
    let named: Vec<Item> = items().filter(|item| item.name.contains(word)).cloned().collect();
    if !named.is_empty() {
        return named;
    }
    for (at, _) in word.rmatch_indices("::") {
        let (module, test) = (&word[..at], &word[at + 2..]);
        let is_module = |item: &&Item| item.name == module || item.name.ends_with(&format!("::{module}"));
        let found: Vec<Item> = items()
            .filter(is_module)
            .map(|item| Item { tests: vec![test.to_owned()], ..item.clone() })
            .collect();
        if !found.is_empty() {
            return found;
        }
    }
    let Some(package) = word.strip_suffix(HOST) else { return Vec::new() };
    let is_on_host =
        |item: &&Item| item.module_in(package).is_some_and(|(_, machine)| *machine == Machine::Host);
    items().filter(is_on_host).cloned().collect()
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

    /// The module of the item, when its tests are in this executable, and the machine.
    fn module_of(&self, executable: &Executable) -> Option<(&Module, &Machine)> {
        self.module_in(&executable.package).filter(|_| executable.name == "it")
    }

    /// The module of the item, when it is one of this package, and the machine.
    fn module_in(&self, package: &str) -> Option<(&Module, &Machine)> {
        match &self.what {
            What::Module(module, number) if module.package == package => {
                Some((module, &module.places[*number].machine))
            }
            _ => None,
        }
    }

    /// The tests of an executable that the item has, without regard to the words behind `::`.
    fn all_tests<'a>(&self, executable: &'a Executable) -> Vec<&'a String> {
        match (&self.what, self.module_of(executable)) {
            (_, Some((module, machine))) => {
                let (plain, ignored) = (executable.tests.as_slice(), executable.ignored.as_slice());
                let [plain, ignored] = match machine {
                    Machine::Host => [plain, &[]],
                    Machine::Lab(_) if module.is_of_host => [plain, ignored],
                    Machine::Lab(_) | Machine::HostIgnored => [&[], ignored],
                };
                let is_below = |test: &&String| {
                    test.strip_prefix(&module.name).is_some_and(|rest| rest.starts_with("::"))
                };
                plain.iter().chain(ignored).filter(is_below).collect()
            }
            (What::Unit(package), _) if *package == executable.package && executable.name != "it" => {
                executable.tests.iter().chain(&executable.ignored).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The tests of an executable that are chosen.
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
}

impl Planner<'_> {
    /// The lines, and what is wrong with the plan, such as tests that no line would run.
    pub fn plan(&self) -> (Vec<Planned>, Vec<String>) {
        let executables = &self.built.executables;
        let mut lines: Vec<Planned> =
            executables.iter().flat_map(|executable| self.host_tests(executable)).collect();
        let mut problems: Vec<String> =
            executables.iter().filter_map(|executable| self.unreached(executable)).collect();
        for item in self.chosen {
            lines.extend(executables.iter().flat_map(|executable| self.guest(item, executable)));
            lines.extend(executables.iter().flat_map(|executable| self.unit(item, executable)));
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
    fn host_tests(&self, executable: &Executable) -> Option<Planned> {
        let is_on_host =
            |item: &&Item| item.module_of(executable).is_some_and(|(_, machine)| *machine == Machine::Host);
        let chosen: Vec<&Item> = self.chosen.iter().filter(is_on_host).collect();
        let tests: Vec<String> = chosen.iter().flat_map(|item| item.chosen_tests(executable)).collect();
        let id = if let [one] = chosen[..] { one.id() } else { format!("{}{HOST}", executable.package) };
        let all =
            self.items.iter().filter(is_on_host).map(|item| item.all_tests(executable).len()).sum::<usize>();
        let has_all = tests.len() == all;
        self.rust(id, executable, &Machine::Host, LIMIT, tests, has_all)
    }

    /// A package's own tests; those that are ignored run in the plain machine.
    fn unit(&self, item: &Item, executable: &Executable) -> Vec<Planned> {
        let (chosen, is_unit) = (item.chosen_tests(executable), matches!(item.what, What::Unit(_)));
        let (ignored, plain) = chosen.into_iter().partition(|test| executable.ignored.contains(test));
        let id = format!("{}::{}", executable.package, executable.name);
        let guest = (format!("{id} in the lab"), Machine::Lab(String::new()), ignored);
        let lines = [(id, Machine::Host, plain), guest].into_iter().filter(|_| is_unit);
        let line =
            |(id, machine, tests)| self.rust(id, executable, &machine, LIMIT, tests, item.tests.is_empty());
        lines.filter_map(line).collect()
    }

    /// The tests of a module in the lab, or its ignored ones on the host: a line for each of its parts. Of three parts, each has
    /// every third test.
    fn guest(&self, item: &Item, executable: &Executable) -> Vec<Planned> {
        let Some((module, machine)) =
            item.module_of(executable).filter(|(_, machine)| **machine != Machine::Host)
        else {
            return Vec::new();
        };
        let (tests, whole) = (item.chosen_tests(executable), item.tests.is_empty());
        let parts = if whole { module.parts } else { 1 };
        let part = |number: usize| {
            let id = match parts {
                1 => item.id(),
                _ => format!("{} ({} of {parts})", item.id(), number + 1),
            };
            let tests = tests.iter().skip(number).step_by(parts).cloned().collect();
            let planned = self.rust(id, executable, machine, module.limit, tests, whole)?;
            let planned = Planned { needs: module.needs.clone(), ..planned };
            Some(match &module.commands {
                // In place of the executables, which any change of the crate makes anew, the sources that matter.
                Some(modules) => {
                    Planned { inputs: Inputs::Commands(modules.clone()), others: Vec::new(), ..planned }
                }
                None => planned,
            })
        };
        (0..parts).filter_map(part).collect()
    }

    /// A line of these tests of an executable; `whole`: these are all that an item, or all those of the host, have.
    fn rust(
        &self,
        id: String,
        executable: &Executable,
        machine: &Machine,
        limit: Duration,
        tests: Vec<String>,
        whole: bool,
    ) -> Option<Planned> {
        let needs_canter = executable.package == "canter";
        let program = if needs_canter { self.canter } else { &self.built.lab };
        let (mut words, number) = (lab(program, machine, limit), tests.len());
        words.push(executable.path.display().to_string());
        if *machine != Machine::Host {
            let are_ignored = tests.iter().all(|test| executable.ignored.contains(test));
            let which = if are_ignored { "--ignored" } else { "--include-ignored" };
            words.extend([which, "--test-threads=1"].map(str::to_owned));
        }
        if *machine != Machine::Host || number < executable.tests.len() {
            // A module's name as a filter would also take tests of others: `wire::` is in `capture_wire::`.
            words.push("--exact".to_owned());
            words.extend(tests);
        }
        let inputs = match machine {
            Machine::Host => Inputs::Host,
            Machine::HostIgnored => Inputs::Everything,
            Machine::Lab(_) => Inputs::Guest,
        };
        let mut planned =
            Planned { package: executable.package.clone(), whole, ..self.planned(id, words, inputs) };
        let line = &mut planned.line;
        (line.limit, line.tests, line.folder) = (limit + LAB_WAIT, Some(number), executable.folder.clone());
        let folder = executable.folder.display().to_string();
        line.variables.push(("CARGO_MANIFEST_DIR".to_owned(), folder));
        line.variables.push(("CARGO_PKG_NAME".to_owned(), executable.package.clone()));
        planned.others.push(executable.path.clone());
        match needs_canter {
            true => planned.others.extend(self.built.programs.iter().cloned()),
            false if *machine != Machine::Host => planned.others.push(self.built.lab.clone()),
            false => {}
        }
        if needs_canter || *machine != Machine::Host {
            planned.guess = Duration::from_secs(5 + 3 * number as u64);
        }
        (number > 0).then_some(planned)
    }

    fn documentation(&self) -> Planned {
        let words = ["cargo", "test", "--workspace", "--locked", "--doc"].map(str::to_owned).to_vec();
        self.planned("doc".to_owned(), words, Inputs::Below(&["crates/", "Cargo", "README.md", ".cargo/"]))
    }

    fn script(&self, script: &Script) -> Planned {
        let words = ["sh", "-c", script.command].map(str::to_owned).to_vec();
        let mut planned = self.planned(script.name.to_owned(), words, script.inputs.clone());
        let program = if script.lab_only { &self.built.lab } else { self.canter };
        for (name, path) in [("ROOT", self.root), ("CANTER", program)] {
            planned.line.variables.push((name.to_owned(), path.display().to_string()));
        }
        (planned.line.alone, planned.line.limit) = (script.alone, Duration::from_secs(script.limit_s));
        planned.others.push(program.to_owned());
        let needs = script.needs.iter().map(|&need| need.to_owned()).collect();
        Planned { needs, guess: Duration::from_secs(90), ..planned }
    }

    fn planned(&self, id: String, words: Vec<String>, inputs: Inputs) -> Planned {
        let line = Line::new(id, words, self.root);
        Planned::new(line, inputs)
    }
}

/// The words before a program that runs on a machine, which the command `lab` of `program` makes.
fn lab(program: &Path, machine: &Machine, limit: Duration) -> Vec<String> {
    let Machine::Lab(options) = machine else { return Vec::new() };
    let (program, limit) = (program.display().to_string(), format!("{}s", limit.as_secs()));
    let words = [program.as_str(), "lab", "--quiet"].into_iter().chain(options.split_whitespace());
    words.chain(["--timeout", &limit, "--"]).map(str::to_owned).collect()
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
            instead: None,
            is_of_host: machines[0].0 == "host",
            commands: None,
            needs: Vec::new(),
            limit: LIMIT,
            parts: 1,
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
        items(modules, &["canter".to_owned()], true)
    }

    #[test]
    fn what_needs_a_tun_device_runs_in_the_lab_where_the_host_has_none() {
        let host = Module {
            instead: Some(Machine::Lab("--cpus 2".to_owned())),
            ..module("capture_host", &[("host", false)])
        };
        for (has_tun, wanted) in [(true, Machine::Host), (false, Machine::Lab("--cpus 2".to_owned()))] {
            let items = items(vec![host.clone()], &[], has_tun);
            let What::Module(module, 0) = &items[0].what else { panic!("the module is the first item") };
            assert_eq!(module.places[0].machine, wanted);
        }
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
        let programs = vec![PathBuf::from("/t/canter")];
        Built { executables: vec![executable], programs, lab: PathBuf::from("/t/lab") }
    }

    /// The commands of the lines of test executables, and the problems.
    fn planned(words: &[&str], built: &Built) -> (Vec<String>, Vec<String>) {
        let (items, root, canter) = (all(), Path::new("/r"), Path::new("/t/canter"));
        let chosen = choose(&items, words, false).unwrap();
        let planner = Planner { root, canter, built, items: &items, chosen: &chosen };
        let (lines, problems) = planner.plan();
        let lines = lines.iter().filter(|one| !one.package.is_empty());
        (lines.map(|one| format!("{}: {}", one.line.id, one.line.words.join(" "))).collect(), problems)
    }

    const TESTS: [&str; 3] = ["convert::a", "convert::b", "manual::a"];
    const IGNORED: [&str; 4] = ["bare_metal::a", "capture::a", "capture::b", "capture_wire::capture::a"];

    #[test]
    fn a_word_chooses_modules_by_a_part_of_their_name_and_test_all_has_more_machines() {
        assert_eq!(chosen(&["capture"], false), ["canter::capture", "canter::capture_wire"]);
        assert_eq!(chosen(&["canter::capture"], false), ["canter::capture"]);
        assert_eq!(
            chosen(&["capture"], true),
            ["canter::capture", "canter::capture --kernel 6.1", "canter::capture_wire"]
        );
        assert_eq!(chosen(&["convert", "capture_w"], false), ["canter::convert", "canter::capture_wire"]);
        assert_eq!(chosen(&["bare_metal"], false), ["canter::bare_metal"]);
        assert!(chosen(&[], true).len() > chosen(&[], false).len());
    }

    #[test]
    fn only_tests_of_canter_depend_on_its_program() {
        let mut built = built("it", &["notation::a"], &["netlink::a"]);
        built.executables[0].package = "canter-io".to_owned();
        let others = |module: Module| {
            let items = items(vec![Module { package: "canter-io".to_owned(), ..module }], &[], true);
            let (root, canter) = (Path::new("/r"), Path::new("/t/canter"));
            let (lines, _) = Planner { root, canter, built: &built, items: &items, chosen: &items }.plan();
            let line = lines.into_iter().next().unwrap();
            (line.line.words[0].clone(), line.others)
        };
        let (test, lab) = (PathBuf::from("/t/it-1"), PathBuf::from("/t/lab"));
        assert_eq!(
            others(module("netlink", &[("--cpus 2", false)])),
            ("/t/lab".to_owned(), vec![test.clone(), lab])
        );
        assert_eq!(others(module("notation", &[("host", false)])), ("/t/it-1".to_owned(), vec![test]));
    }

    #[test]
    fn a_module_of_two_parts_is_two_lines_and_a_chosen_test_one() {
        let built = built("it", &[], &["wire::a", "wire::b", "wire::c"]);
        let wire = Module { parts: 2, ..module("wire", &[("--bus wire", false)]) };
        let items = items(vec![wire], &[], true);
        let (root, canter) = (Path::new("/r"), Path::new("/t/canter"));
        let planned = |words: &[&str]| {
            let chosen = choose(&items, words, false).unwrap();
            let (lines, problems) =
                Planner { root, canter, built: &built, items: &items, chosen: &chosen }.plan();
            assert_eq!(problems, [""; 0]);
            let lines = lines.into_iter().filter(|one| !one.package.is_empty());
            let tests = |line: &Line| line.words.join(" ").split_once("--exact ").unwrap().1.to_owned();
            lines.map(|one| (one.whole, format!("{}: {}", one.line.id, tests(&one.line)))).collect::<Vec<_>>()
        };
        let whole = |line: &str| (true, line.to_owned());
        assert_eq!(
            planned(&["canter::wire"]),
            [whole("canter::wire (1 of 2): wire::a wire::c"), whole("canter::wire (2 of 2): wire::b")]
        );
        assert_eq!(planned(&["wire::b"]), [(false, "canter::wire: wire::b".to_owned())]);
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
    fn the_line_of_the_modules_of_the_host_is_chosen_by_its_name() {
        let built = built("it", &TESTS, &IGNORED);
        assert_eq!(planned(&["canter::host"], &built).0, ["canter::host: /t/it-1"]);
        assert!(choose(&all(), &["canter-io::host"], false).is_err());
    }

    #[test]
    fn each_module_is_a_line_and_those_of_the_host_are_one() {
        let (lines, problems) = planned(&[], &built("it", &TESTS, &IGNORED));
        let ids: Vec<&str> = lines.iter().map(|line| line.split_once(": ").unwrap().0).collect();
        assert_eq!(ids, ["canter::host", "canter::capture", "canter::capture_wire"]);
        assert_eq!(lines[0], "canter::host: /t/it-1");
        assert_eq!(problems, [""; 0]);
    }

    /// The lines of `make test-all` for two modules of the host, of which one needs TUN devices: whether all tests of each run,
    /// id and command.
    fn planned_with_tun(has_tun: bool) -> Vec<(bool, String)> {
        let recording = Module {
            instead: Some(Machine::Lab("--cpus 2".to_owned())),
            ..module("capture_host", &[("host", false), ("--kernel 6.1", true)])
        };
        let items = items(vec![recording, module("convert", &[("host", false)])], &[], has_tun);
        let built = built("it", &["capture_host::a", "convert::a"], &["capture_host::b"]);
        let (root, canter) = (Path::new("/r"), Path::new("/t/canter"));
        let chosen = choose(&items, &[], true).unwrap();
        let (lines, problems) =
            Planner { root, canter, built: &built, items: &items, chosen: &chosen }.plan();
        assert_eq!(problems, [""; 0]);
        let lines = lines.iter().filter(|one| !one.package.is_empty());
        lines.map(|one| (one.whole, format!("{}: {}", one.line.id, one.line.words.join(" ")))).collect()
    }

    const ALL_IN_LAB: &str = "--timeout 600s -- /t/it-1 --include-ignored --test-threads=1 --exact capture_host::a capture_host::b";

    #[test]
    fn a_module_of_the_host_runs_in_the_lab_with_all_of_its_tests() {
        let also =
            format!("canter::capture_host --kernel 6.1: /t/canter lab --quiet --kernel 6.1 {ALL_IN_LAB}");
        assert_eq!(planned_with_tun(true), [(true, "canter::host: /t/it-1".to_owned()), (true, also)]);
    }

    #[test]
    fn without_tun_devices_a_module_that_needs_them_runs_on_its_other_machine_and_the_rest_on_the_host() {
        let also =
            format!("canter::capture_host --kernel 6.1: /t/canter lab --quiet --kernel 6.1 {ALL_IN_LAB}");
        let instead = format!("canter::capture_host: /t/canter lab --quiet --cpus 2 {ALL_IN_LAB}");
        let host = "canter::convert: /t/it-1 --exact convert::a".to_owned();
        assert_eq!(planned_with_tun(false), [(true, host), (true, instead), (true, also)]);
    }

    #[test]
    fn a_test_that_no_line_would_run_is_a_problem() {
        let (_, problems) = planned(
            &[],
            &built("it", &[&TESTS[..], &["capture::c"]].concat(), &[&IGNORED[..], &["manual::b"]].concat()),
        );
        assert_eq!(problems, ["canter it: no line runs capture::c, manual::b"]);
    }

    #[test]
    fn a_packages_own_tests_that_are_ignored_run_in_the_plain_machine() {
        let (lines, problems) = planned(&["unit"], &built("unit", &["a::b"], &["a::c"]));
        let lab = "/t/canter lab --quiet --timeout 600s -- /t/it-1 --ignored --test-threads=1 --exact a::c";
        assert_eq!(lines, ["canter::unit: /t/it-1".to_owned(), format!("canter::unit in the lab: {lab}")]);
        assert_eq!(problems, [""; 0]);
    }

    #[test]
    fn a_module_without_tests_is_a_problem() {
        assert_eq!(
            planned(&[], &built("it", &TESTS, &IGNORED[..3])).1,
            ["canter::capture_wire: it has no test"]
        );
    }
}
