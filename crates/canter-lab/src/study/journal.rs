//! The journal of an unfinished run: a line of JSON for each case, as soon as it is measured, so that the same command
//! continues after the last case. The file exists only while a run is incomplete; it may be copied with its folder.
//!
//! A run continues only with the plan with which it began: the program's sources, the studies' texts, the number of frames.
//! Cases of a unit are kept only if its machine and kernel are still the same.

use super::{amount::Amount, unit::Unit};
use canter_cli::{
    failure::{self, Exit, Failure},
    trouble,
};
use canter_measure::result::{Environment, ResultFile, Series};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
};

const NAME: &str = "unfinished.jsonl";

/// A line of the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    /// The first line: the plan of the run.
    Plan(Vec<String>),
    /// The machine of a unit: the unit's cases follow, and those of another machine before this line are void.
    Begin {
        unit: String,
        environment: Box<Environment>,
    },
    Case {
        unit: String,
        number: usize,
        series: Vec<Series>,
    },
    /// The result of a unit is complete.
    Done {
        unit: String,
    },
}

/// A unit that has begun.
#[derive(Default)]
struct Progress {
    environment: Option<Environment>,
    cases: BTreeMap<usize, Vec<Series>>,
    done: bool,
}

pub struct Journal {
    path: PathBuf,
    units: BTreeMap<String, Progress>,
}

impl Journal {
    /// Begins a run in a folder, or continues an unfinished one with the same plan; `again` begins in any case.
    pub fn open(folder: &Path, units: &[Unit], amount: Amount, again: bool) -> failure::Result<Self> {
        fs::create_dir_all(folder)
            .map_err(|error| trouble::file_failure(folder, "make the folder", error))?;
        let plan = plan(units, amount);
        let mut journal = Self { path: folder.join(NAME), units: BTreeMap::new() };
        let before = if again { None } else { fs::read_to_string(&journal.path).ok() };
        if let Some(text) = before {
            journal.replay(&text, &plan)?;
        }
        // A unit whose result is missing or unreadable is put together again.
        for (name, progress) in &mut journal.units {
            progress.done &= ResultFile::load(&result_path(folder, name)).is_ok();
        }
        journal.write(&plan)?;
        Ok(journal)
    }

    /// Reads what an unfinished run has measured. A last line without its end is ignored, because it was being written.
    fn replay(&mut self, text: &str, plan: &[String]) -> failure::Result<()> {
        let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let read = |line: &str| serde_json::from_str::<Line>(line).ok();
        match lines.next().and_then(read) {
            Some(Line::Plan(before)) if before == plan => {}
            Some(Line::Plan(before)) => return Err(self.another_plan(&before, plan)),
            _ => return Err(self.refuse("is not the journal of an unfinished run")),
        }
        for line in lines {
            match read(line) {
                Some(Line::Begin { unit, environment }) => _ = self.begin(&unit, &environment),
                Some(Line::Case { unit, number, series }) => {
                    self.units.entry(unit).or_default().cases.insert(number, series);
                }
                Some(Line::Done { unit }) => self.units.entry(unit).or_default().done = true,
                Some(Line::Plan(_)) | None => return Err(self.refuse("is damaged")),
            }
        }
        Ok(())
    }

    /// Reads any text as a journal, with the plan in its first line.
    pub fn of_text(path: &Path, text: &str) -> failure::Result<Self> {
        let plan = match serde_json::from_str(text.lines().next().unwrap_or_default()) {
            Ok(Line::Plan(plan)) => plan,
            _ => Vec::new(),
        };
        let mut journal = Self { path: path.to_owned(), units: BTreeMap::new() };
        journal.replay(text, &plan)?;
        Ok(journal)
    }

    fn another_plan(&self, before: &[String], plan: &[String]) -> Failure {
        let differs = plan.iter().find(|line| !before.contains(line));
        let differs = differs.or(before.iter().find(|line| !plan.contains(line)));
        self.refuse(&format!("is of another run ({})", differs.map_or("", String::as_str)))
    }

    fn refuse(&self, why: &str) -> Failure {
        let way_out = "--again begins anew, --out FOLDER elsewhere";
        Failure::new(Exit::Usage, format!("{}: {why}: {way_out}", self.path.display()))
    }

    pub fn is_done(&self, unit: &Unit) -> bool {
        self.units.get(&unit.name()).is_some_and(|progress| progress.done)
    }

    /// The numbers of a unit's measured cases.
    pub fn cases(&self, unit: &str) -> Vec<usize> {
        self.units.get(unit).map_or_else(Vec::new, |progress| progress.cases.keys().copied().collect())
    }

    /// The machine on which a unit began.
    pub fn environment(&self, unit: &str) -> Option<Environment> {
        self.units.get(unit)?.environment.clone()
    }

    /// All series of a unit, in the order of its cases.
    pub fn series(&self, unit: &str) -> Vec<Series> {
        let cases = self.units.get(unit).into_iter().flat_map(|progress| progress.cases.values());
        cases.flatten().cloned().collect()
    }

    /// Begins a unit on a machine; returns whether cases of another machine were dropped.
    pub fn begin(&mut self, unit: &str, environment: &Environment) -> bool {
        let progress = self.units.entry(unit.to_owned()).or_default();
        let same = progress.environment.as_ref().is_none_or(|before| is_same_machine(before, environment));
        if !same {
            *progress = Progress::default();
        }
        progress.environment = Some(environment.clone());
        !same
    }

    /// Writes that a unit has begun.
    pub fn begun(&mut self, unit: &str, environment: &Environment) -> failure::Result<()> {
        self.append(&Line::Begin { unit: unit.to_owned(), environment: Box::new(environment.clone()) })
    }

    pub fn case(&mut self, unit: &str, number: usize, series: Vec<Series>) -> failure::Result<()> {
        let line = Line::Case { unit: unit.to_owned(), number, series: series.clone() };
        self.units.entry(unit.to_owned()).or_default().cases.insert(number, series);
        self.append(&line)
    }

    pub fn done(&mut self, unit: &str) -> failure::Result<()> {
        self.units.entry(unit.to_owned()).or_default().done = true;
        self.append(&Line::Done { unit: unit.to_owned() })
    }

    /// Removes the journal of a complete run: the next run starts from the beginning.
    pub fn finish(&self) -> failure::Result<()> {
        fs::remove_file(&self.path).map_err(|error| trouble::file_failure(&self.path, "delete", error))
    }

    /// Writes the whole journal anew.
    fn write(&mut self, plan: &[String]) -> failure::Result<()> {
        let mut lines = vec![Line::Plan(plan.to_vec())];
        for (unit, progress) in &self.units {
            let environment = progress.environment.clone().map(Box::new);
            lines.extend(environment.map(|environment| Line::Begin { unit: unit.clone(), environment }));
            lines.extend(progress.cases.iter().map(|(&number, series)| Line::Case {
                unit: unit.clone(),
                number,
                series: series.clone(),
            }));
            lines.extend(progress.done.then(|| Line::Done { unit: unit.clone() }));
        }
        let text: String = lines.iter().map(in_json).collect();
        canter_cli::whole_file::write(&self.path, "write the journal", &text)
    }

    fn append(&self, line: &Line) -> failure::Result<()> {
        let file = fs::OpenOptions::new().append(true).open(&self.path);
        let written = file.and_then(|mut file| {
            file.write_all(in_json(line).as_bytes())?;
            file.sync_data()
        });
        written.map_err(|error| trouble::file_failure(&self.path, "write", error))
    }
}

fn in_json(line: &Line) -> String {
    serde_json::to_string(line).unwrap_or_default() + "\n" // numbers and strings only
}

/// The inputs of a run; a journal with another plan is not continued.
fn plan(units: &[Unit], amount: Amount) -> Vec<String> {
    let mut plan = vec![
        format!(
            "canter {}, sources {}",
            env!("CARGO_PKG_VERSION"),
            canter_measure::identity::Build::current().sources
        ),
        format!("{amount} frames per series"),
    ];
    plan.extend(units.iter().map(|unit| format!("{}, text {:016x}", unit.name(), unit.study.text_number)));
    plan
}

/// Whether kernel, clock, processors and emulator are equal; the boot, the date and the interfaces may differ.
fn is_same_machine(a: &Environment, b: &Environment) -> bool {
    let date = String::new();
    let bare = |environment: &Environment| Environment {
        date: date.clone(),
        boot: String::new(),
        interfaces: Vec::new(),
        ..environment.clone()
    };
    bare(a) == bare(b)
}

/// The path of a unit's result.
pub fn result_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{definition::Study, unit};
    use canter_measure::environment;

    fn units() -> Vec<Unit> {
        let studies = ["2014-fig4.1", "2014-fig4.2"].map(|name| Study::find(name).expect("it is there"));
        studies.iter().flat_map(|study| unit::planned(study, &[], false, None)).collect()
    }

    fn one(method: &str) -> Vec<Series> {
        vec![Series { method: method.to_owned(), ..Series::default() }]
    }

    fn methods(journal: &Journal, unit: &str) -> Vec<String> {
        journal.series(unit).into_iter().map(|series| series.method).collect()
    }

    #[test]
    fn an_unfinished_run_continues_after_its_last_case() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let folder = folder.path();
        let units = units();
        let mut journal = Journal::open(folder, &units, Amount::Own, false).expect("it opens");
        environment::result("2014-fig4.1", "", &[], Vec::new())
            .save(&result_path(folder, "2014-fig4.1"))
            .expect("it saves");
        journal.done("2014-fig4.1").expect("it writes");
        let machine = Environment { kernel: "6.12".to_owned(), ..Environment::default() };
        assert!(!journal.begin("2014-fig4.2", &machine));
        journal.begun("2014-fig4.2", &machine).expect("it writes");
        journal.case("2014-fig4.2", 3, one("b")).expect("it writes");
        journal.case("2014-fig4.2", 1, one("a")).expect("it writes");
        // Whoever is killed in the middle of a line loses that line only.
        let path = folder.join(NAME);
        let text = fs::read_to_string(&path).expect("a journal");
        assert_eq!(Journal::of_text(&path, &text).expect("by itself").cases("2014-fig4.2"), [1, 3]);
        fs::write(&path, text + "{\"case\":{\"unit\":\"2014-fig4.2\",\"num").expect("it writes");
        let mut went_on = Journal::open(folder, &units, Amount::Own, false).expect("it opens");
        assert!(went_on.is_done(&units[0]) && !went_on.is_done(&units[1]));
        assert_eq!(went_on.cases("2014-fig4.2"), [1, 3]);
        assert_eq!(methods(&went_on, "2014-fig4.2"), ["a", "b"]);
        assert!(!went_on.begin("2014-fig4.2", &Environment { date: "later".to_owned(), ..machine.clone() }));
        assert_eq!(went_on.cases("2014-fig4.2"), [1, 3], "the same machine");
        assert!(went_on.begin("2014-fig4.2", &Environment { kernel: "6.13".to_owned(), ..machine }));
        assert!(went_on.cases("2014-fig4.2").is_empty(), "another kernel: nothing is mixed");
        went_on.finish().expect("it goes");
        assert!(!Journal::open(folder, &units, Amount::Own, false).expect("it opens").is_done(&units[0]));
    }

    #[test]
    fn the_fuzzer_s_seed_is_a_journal() {
        let seed = include_str!("../../../../fuzz/corpus/journal/seed-one-case.jsonl");
        let journal = Journal::of_text(Path::new("seed"), seed).expect("it is read");
        assert_eq!(methods(&journal, "2011-fig13"), ["can-gw"]);
    }

    #[test]
    fn another_plan_or_a_damaged_journal_is_refused_and_nothing_is_lost() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let folder = folder.path();
        let units = units();
        let mut journal = Journal::open(folder, &units, Amount::Own, false).expect("it opens");
        journal.case("2014-fig4.2", 0, one("a")).expect("it writes");
        let path = folder.join(NAME);
        let kept = fs::read_to_string(&path).expect("a journal");
        let refused = |amount, expected: &str| {
            let failure = Journal::open(folder, &units, amount, false).err().expect("it is refused");
            assert!(failure.exit == Exit::Usage && failure.message.contains(expected), "{failure}");
            assert!(failure.message.contains("--again") && failure.message.lines().count() == 1, "{failure}");
        };
        refused(Amount::Exactly(7), "is of another run (7 frames per series)");
        assert_eq!(fs::read_to_string(&path).expect("a journal"), kept);
        fs::write(&path, kept.replacen("sources ", "sources 0", 1)).expect("it writes");
        refused(Amount::Own, "is of another run (canter ");
        fs::write(&path, kept.replace("\"case\"", "\"cass\"")).expect("it writes");
        refused(Amount::Own, "is damaged");
        fs::write(&path, "").expect("it writes");
        refused(Amount::Own, "is not the journal");
        assert!(
            Journal::open(folder, &units, Amount::Own, true)
                .expect("it begins")
                .cases("2014-fig4.2")
                .is_empty()
        );
    }
}
