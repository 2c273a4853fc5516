//! `{run}` in a service's output is the number of the start, so that a restarted service overwrites no recording, even when
//! the clock was set back. The names sort by start. Old runs are deleted when the new one has a frame, not at its start: a
//! service that fails at each start must not delete recordings.

use canter_capture::Account;
use canter_cli::{
    failure::{self, Exit, Failure},
    trouble,
};
use canter_io::file;
use std::{
    collections::{BTreeMap, HashSet},
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, SystemTime},
};

/// The placeholder of the number.
pub const RUN: &str = "{run}";
/// Period at which the new run is checked for a frame.
const CHECK_PERIOD: Duration = Duration::from_secs(1);
/// Files of earlier runs go before the recorder deletes those of this run, which it does with less room than this more.
const FREE_BYTES_MORE: u64 = 64 << 20;
/// Files from before 2020 were written while the clock was wrong: their age is unknown.
const CLOCK_WAS_RIGHT: Duration = Duration::from_secs(1_577_836_800);

/// Which earlier runs stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// The number of runs with frames, the new one included.
    pub runs: Option<u32>,
    /// The least room on the disk, in bytes.
    pub free_bytes: Option<u64>,
    /// The greatest age of a file.
    pub age: Option<Duration>,
}

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
    /// Whether a template has a number, if it is in the right place.
    ///
    /// # Errors
    /// The number is in the name of the folder.
    pub fn is_numbered(template: &str) -> failure::Result<bool> {
        Ok(Runs::parse(template)?.is_some())
    }

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

    /// As soon as this run has a frame, deletes older ones: `runs` with frames stay, this one included, and the youngest
    /// `runs` without. From then on deletes files of older runs that are too old, or while the disk has too little room.
    pub fn retain(self, retention: Retention) {
        let Some((runs, number)) = self.number else { return };
        if retention == Retention::default() {
            return;
        }
        let work = move || {
            while !runs.files().is_ok_and(|files| files.get(&number).is_some_and(|run| has_frame(run))) {
                thread::sleep(CHECK_PERIOD);
            }
            let kept = retention.runs.map_or(Ok(()), |keep| runs.delete_before(number, keep));
            if let Err(failure) = kept {
                eprintln!("service: {failure}");
            }
            let mut stuck = HashSet::new();
            while retention.free_bytes.is_some() || retention.age.is_some() {
                if let Err(failure) = runs.delete_surplus(number, retention, &mut stuck) {
                    eprintln!("service: {failure}");
                }
                thread::sleep(CHECK_PERIOD);
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

    /// Deletes files of runs before `number`, the oldest first: those that are too old, and all while the disk has too little
    /// room. `stuck`: files that could not be deleted, which keep no other one.
    ///
    /// # Errors
    /// The first file that cannot be deleted and is not in `stuck` yet.
    fn delete_surplus(
        &self,
        number: u32,
        Retention { free_bytes, age, .. }: Retention,
        stuck: &mut HashSet<PathBuf>,
    ) -> failure::Result<()> {
        let lacks_room = || {
            let least = free_bytes.map(|bytes| bytes.saturating_add(FREE_BYTES_MORE));
            least.is_some_and(|least| file::room(&self.folder).is_ok_and(|room| room < least))
        };
        if age.is_none() && !lacks_room() {
            return Ok(());
        }
        let mut failed = None;
        let files = self.files()?;
        for path in files.range(..number).flat_map(|(_, files)| files).filter(|path| !path.is_dir()) {
            let is_surplus = age.is_some_and(|most| is_older(path, most)) || lacks_room();
            if !is_surplus || stuck.contains(path) {
                continue;
            }
            if let Err(error) = fs::remove_file(path) {
                stuck.insert(path.clone());
                failed.get_or_insert_with(|| trouble::file_failure(path, "remove", error));
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

/// Whether a file was written longer than this ago, by a clock that was right.
fn is_older(path: &Path, most: Duration) -> bool {
    let Ok(written) = path.metadata().and_then(|about| about.modified()) else { return false };
    let was_right = written.duration_since(SystemTime::UNIX_EPOCH).is_ok_and(|at| at >= CLOCK_WAS_RIGHT);
    was_right && written.elapsed().is_ok_and(|age| age > most)
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
        run.retain(Retention { runs: Some(1), ..Retention::default() });
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

    fn surplus(drive: &Drive, number: u32, retention: Retention) -> failure::Result<()> {
        drive.next().number.unwrap().0.delete_surplus(number, retention, &mut HashSet::new())
    }

    #[test]
    fn files_of_earlier_runs_go_when_they_are_too_old_or_the_disk_is_too_full() {
        let runs = ["drive-0001.log", "drive-0002.log", "drive-0003.log"];
        let written = |drive: &Drive, name: &str, at: SystemTime| {
            fs::File::options().write(true).open(drive.path(name)).unwrap().set_modified(at).unwrap();
        };
        let hour = Duration::from_secs(3600);
        let drive = Drive::new(&runs);
        written(&drive, "drive-0001.log", SystemTime::now() - 2 * hour);
        written(&drive, "drive-0002.log", SystemTime::UNIX_EPOCH + hour); // a machine without a clock
        surplus(&drive, 3, Retention { age: Some(hour), ..Retention::default() }).unwrap();
        assert_eq!(drive.names(), runs[1..]);
        surplus(&drive, 3, Retention { free_bytes: Some(1), ..Retention::default() }).unwrap();
        assert_eq!(drive.names(), runs[1..]);
        surplus(&drive, 3, Retention { free_bytes: Some(u64::MAX), ..Retention::default() }).unwrap();
        assert_eq!(drive.names(), runs[2..], "the new run stays");
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
