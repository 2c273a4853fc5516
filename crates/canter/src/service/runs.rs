//! `{run}` in a service's output is the number of the start, so that a restarted service overwrites no recording, even when
//! the clock was set back. The names sort by start. Old runs are deleted when the new one has a frame, not at its start: a
//! service that fails at each start must not delete recordings.

use canter_capture::Account;
use canter_cli::{
    failure::{self, Exit, Failure},
    trouble,
};
use std::{collections::BTreeMap, fs, path::PathBuf, thread, time::Duration};

/// The placeholder of the number.
pub const RUN: &str = "{run}";
/// Period at which the new run is checked for a frame.
const CHECK_PERIOD: Duration = Duration::from_secs(1);

/// The runs of a recording: all files whose names come from one template.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Runs {
    folder: PathBuf,
    /// The parts of the file's name before and after the number.
    before: String,
    after: String,
}

/// A run that starts.
#[derive(Debug, PartialEq, Eq)]
pub struct Run {
    /// The file to record to.
    pub output: String,
    /// The run's number, and all runs of the same name; `None` when the name has no number.
    number: Option<(Runs, u32)>,
}

impl Run {
    /// The next run.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn next(template: &str) -> failure::Result<Self> {
        let Some(runs) = Runs::parse(template)? else {
            return Ok(Self { output: template.to_owned(), number: None });
        };
        let number = runs.files()?.last_key_value().map_or(0, |(&newest, _)| newest) + 1;
        let output = template.replacen(RUN, &format!("{number:04}"), 1);
        Ok(Self { output, number: Some((runs, number)) })
    }

    /// As soon as this run has a frame, deletes older ones: `keep` runs with frames stay, this one included, and the
    /// youngest `keep` without.
    pub fn keep(self, keep: u32) {
        let Some((runs, number)) = self.number else { return };
        let work = move || {
            while !runs.files().is_ok_and(|files| files.get(&number).is_some_and(|run| has_frame(run))) {
                thread::sleep(CHECK_PERIOD);
            }
            if let Err(failure) = runs.delete_before(number, keep) {
                eprintln!("service: {failure}");
            }
        };
        if let Err(error) = thread::Builder::new().name("canter-runs".to_owned()).spawn(work) {
            eprintln!("service: old runs stay: {error}");
        }
    }
}

impl Runs {
    /// The runs of a template; `None` when the template has no [`RUN`].
    fn parse(template: &str) -> failure::Result<Option<Self>> {
        let (folder, name) = template.rsplit_once('/').unwrap_or((".", template));
        if folder.contains(RUN) {
            let message =
                format!("{template}: {RUN} is allowed only in the name of the file, not in its folder");
            return Err(Failure::new(Exit::Usage, message));
        }
        let folder = PathBuf::from(if folder.is_empty() { "/" } else { folder });
        let split = name.split_once(RUN);
        Ok(split.map(|(before, after)| Self { folder, before: before.into(), after: after.into() }))
    }

    /// The files of each run, in the order of their names.
    fn files(&self) -> failure::Result<BTreeMap<u32, Vec<PathBuf>>> {
        let unreadable = |error| trouble::file_failure(&self.folder, "read", error);
        let mut runs: BTreeMap<u32, Vec<PathBuf>> = BTreeMap::new();
        for entry in fs::read_dir(&self.folder).map_err(unreadable)?.flatten() {
            let name = entry.file_name();
            if let Some(run) = name.to_str().and_then(|name| run_number(name, &self.before, &self.after)) {
                runs.entry(run).or_default().push(entry.path());
            }
        }
        runs.values_mut().for_each(|files| files.sort());
        Ok(runs)
    }

    /// Deletes the files of runs before `number`, except those of the youngest `keep - 1` with frames and of the youngest
    /// `keep` without. A file that cannot be deleted does not keep the others.
    ///
    /// # Errors
    /// The first file that cannot be deleted.
    fn delete_before(&self, number: u32, keep: u32) -> failure::Result<()> {
        let (mut with, mut without) = (keep - 1, keep);
        let mut failed = None;
        for (_, files) in self.files()?.range(..number).rev() {
            let left = if has_frame(files) { &mut with } else { &mut without };
            if *left > 0 {
                *left -= 1;
                continue;
            }
            for path in files {
                if let Err(error) = fs::remove_file(path) {
                    failed.get_or_insert_with(|| trouble::file_failure(path, "remove", error));
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

/// Whether one of these files has a frame. A recording that ended before its first frame has none, and a damaged file counts
/// as one without frames.
fn has_frame(files: &[PathBuf]) -> bool {
    let mut recordings = files
        .iter()
        .filter(|path| !path.as_os_str().as_encoded_bytes().ends_with(Account::SUFFIX.as_bytes()));
    recordings.any(|path| {
        let mut reader = canter_formats::open(path).ok();
        reader.as_mut().is_some_and(|reader| matches!(reader.next_record(), Ok(Some(_))))
    })
}

/// The number of the run that a file belongs to: a recording, one of its rotated files (`-000001`), or its account.
fn run_number(name: &str, before: &str, after: &str) -> Option<u32> {
    let rest = name.strip_prefix(before)?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (number, rest) = rest.split_at(digits);
    let rest = rest.strip_suffix(Account::SUFFIX).unwrap_or(rest);
    let rotation = rest.strip_suffix(after)?;
    let is_rotated =
        rotation.strip_prefix('-').is_some_and(|n| n.len() >= 6 && n.bytes().all(|c| c.is_ascii_digit()));
    (number.len() >= 4 && (rotation.is_empty() || is_rotated)).then(|| number.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with runs of `drive-{run}.log`.
    struct Drive(tempfile::TempDir);

    impl Drive {
        fn new(names: &[&str]) -> Self {
            let drive = Self(tempfile::tempdir().unwrap());
            names.iter().for_each(|name| drive.put(name, "(1.000000) can0 123#11\n"));
            drive
        }

        fn put(&self, name: &str, text: &str) {
            fs::write(self.path(name), text).unwrap();
        }

        fn path(&self, name: &str) -> String {
            self.0.path().join(name).display().to_string()
        }

        fn next(&self) -> Run {
            Run::next(&self.path("drive-{run}.log")).unwrap()
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(self.0.path()).unwrap();
            let mut names: Vec<String> =
                entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }

        fn delete_before(&self, number: u32, keep: u32) {
            self.next().number.unwrap().0.delete_before(number, keep).unwrap();
        }
    }

    #[test]
    fn each_run_has_the_next_number() {
        let drive = Drive::new(&[]);
        assert_eq!(drive.next().output, drive.path("drive-0001.log"));
        let drive = Drive::new(&[
            "drive-0007-000001.log",
            "drive-12.log",
            "drive-9999.pcapng",
            "drive-0300-notes.log",
        ]);
        assert_eq!(drive.next().output, drive.path("drive-0008.log"));
        assert_eq!(drive.names().len(), 4, "a start deletes nothing");
    }

    #[test]
    fn the_oldest_runs_are_deleted_and_nothing_else() {
        let others = ["drive-0003-notes.log", "drive-12.log", "drive-9999.pcapng", "other-0100.log"];
        let runs =
            ["drive-0001.log", "drive-0001.log.account.json", "drive-0007-000001.log", "drive-0008.log"];
        let drive = Drive::new(&[&runs[..], &others[..], &["drive-0009.log"]].concat());
        drive.delete_before(9, 2);
        let mut left = [&others[..], &["drive-0008.log", "drive-0009.log"]].concat();
        left.sort_unstable();
        assert_eq!(drive.names(), left);
    }

    #[test]
    fn runs_without_a_frame_displace_no_recording() {
        let drive = Drive::new(&["drive-0001.log", "drive-0002.log", "drive-0009.log"]);
        for number in 3..9 {
            drive.put(&format!("drive-000{number}.log"), "");
            drive.put(&format!("drive-000{number}.log.account.json"), "{}");
        }
        drive.delete_before(9, 2);
        let account = |number| format!("drive-000{number}.log.account.json");
        let left = [
            "drive-0002.log",
            "drive-0007.log",
            &account(7),
            "drive-0008.log",
            &account(8),
            "drive-0009.log",
        ];
        assert_eq!(drive.names(), left);
    }

    #[test]
    fn old_runs_stay_until_the_new_one_has_a_frame() {
        let drive = Drive::new(&["drive-0001.log"]);
        let run = drive.next();
        drive.put("drive-0002.log", "");
        run.keep(1);
        thread::sleep(2 * CHECK_PERIOD); // the load: two checks
        assert_eq!(drive.names(), ["drive-0001.log", "drive-0002.log"]);
        drive.put("drive-0002.log", "(1.000000) can0 123#11\n");
        let began = std::time::Instant::now();
        while drive.names().len() > 1 {
            assert!(began.elapsed() < Duration::from_secs(60), "the old run stays");
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(drive.names(), ["drive-0002.log"]);
    }

    #[test]
    fn a_name_without_a_number_is_unchanged_and_a_folder_with_one_is_refused() {
        assert_eq!(Run::next("/nowhere/x.log").unwrap().output, "/nowhere/x.log");
        let refused = |template| Run::next(template).unwrap_err().message;
        assert!(refused("/var/{run}/x.log").contains("is allowed only in the name of the file"));
        assert!(refused("/nowhere/{run}.log").starts_with("/nowhere: read: "));
    }

    #[test]
    fn a_file_that_cannot_be_deleted_keeps_no_other_one() {
        let drive = Drive::new(&["drive-0001.log", "drive-0003.log"]);
        drive.put("drive-0004.log", ""); // the one without frames that stays
        fs::create_dir(drive.path("drive-0002.log")).unwrap(); // which remove_file() refuses, also to root
        let runs = drive.next().number.unwrap().0;
        let failure = runs.delete_before(5, 1).unwrap_err().to_string();
        assert!(failure.contains("drive-0002.log: remove: "), "{failure}");
        assert_eq!(drive.names(), ["drive-0002.log", "drive-0004.log"]);
    }
}
