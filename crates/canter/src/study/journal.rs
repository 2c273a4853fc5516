//! The journal of an interrupted run: the same command, given again, continues after the finished units. The file
//! exists only while a run is incomplete.

use super::unit::Unit;
use crate::{failure, measure::result::ResultFile, trouble};
use serde::{Deserialize, Serialize};
use std::{
    fs,
    path::{Path, PathBuf},
};

const NAME: &str = "unfinished.txt";

/// A run's plan and its finished units.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Content {
    /// A run continues only if these are the same: the program's version, the number of frames, the names.
    plan: Vec<String>,
    done: Vec<String>,
}

pub struct Journal {
    path: PathBuf,
    content: Content,
}

impl Journal {
    /// Begins a run in a folder, or continues an interrupted one with the same plan.
    pub fn open(folder: &Path, units: &[Unit], count: Option<u64>, again: bool) -> failure::Result<Self> {
        fs::create_dir_all(folder).map_err(|error| trouble::of_file(folder, "make the folder", error))?;
        let mut plan = vec![format!("canter {}", env!("CARGO_PKG_VERSION")), format!("count {count:?}")];
        plan.extend(units.iter().map(Unit::name));
        let path = folder.join(NAME);
        let before: Option<Content> =
            fs::read_to_string(&path).ok().and_then(|text| serde_json::from_str(&text).ok());
        let done = before.filter(|before| before.plan == plan && !again).map(|before| before.done);
        let mut journal = Self { path, content: Content { plan, done: done.unwrap_or_default() } };
        // A unit whose file is missing or unreadable is measured again.
        let is_there = |name: &String| ResultFile::load(&result_path(folder, name)).is_ok();
        journal.content.done.retain(is_there);
        journal.write()?;
        Ok(journal)
    }

    pub fn is_done(&self, unit: &Unit) -> bool {
        self.content.done.contains(&unit.name())
    }

    pub fn done(&mut self, name: &str) -> failure::Result<()> {
        self.content.done.push(name.to_owned());
        self.write()
    }

    /// The run is complete: the next run starts from the beginning.
    pub fn finish(&self) -> failure::Result<()> {
        fs::remove_file(&self.path).map_err(|error| trouble::of_file(&self.path, "delete", error))
    }

    fn write(&self) -> failure::Result<()> {
        let text = serde_json::to_string_pretty(&self.content).unwrap_or_default(); // strings only
        fs::write(&self.path, text + "\n").map_err(|error| trouble::of_file(&self.path, "write", error))
    }
}

/// The path of a unit's result.
pub fn result_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        measure::environment,
        study::{definition::Study, unit},
    };

    fn units() -> Vec<Unit> {
        let studies = ["2014-fig4.1", "2014-fig4.2"].map(|name| Study::find(name).expect("it is there"));
        studies.iter().flat_map(|study| unit::of(study, None, false, None)).collect()
    }

    #[test]
    fn an_interrupted_run_continues_and_another_plan_starts_anew() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let folder = folder.path();
        let units = units();
        let mut journal = Journal::open(folder, &units, None, false).expect("it opens");
        environment::result("2014-fig4.1", "", &[], Vec::new())
            .save(&result_path(folder, "2014-fig4.1"))
            .expect("it saves");
        journal.done("2014-fig4.1").expect("it writes");
        journal.done("2014-fig4.2").expect("it writes"); // and its file has been lost
        let went_on = Journal::open(folder, &units, None, false).expect("it opens");
        assert!(went_on.is_done(&units[0]) && !went_on.is_done(&units[1]));
        let other = Journal::open(folder, &units, Some(7), false).expect("it opens");
        assert!(!other.is_done(&units[0]), "another number of frames is another run");
        drop(other);
        let finished = Journal::open(folder, &units, None, false).expect("it opens");
        finished.finish().expect("it goes");
        assert!(!Journal::open(folder, &units, None, false).expect("it opens").is_done(&units[0]));
    }
}
