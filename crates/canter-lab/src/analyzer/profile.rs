//! Where the instructions of a command went: by function of the kernel and of user programs, by stage. The guest notes in
//! which files programs executed; the host reads the files' symbols, because it does so faster.

use super::{
    board::Board,
    elf::Functions,
    session::{Program, Request, Session, executable},
    stage::{ALL, Stage},
    symbols::Symbol,
    window::{Executed, Window},
};
use canter_cli::failure::{self, Failure};
use canter_io::clock;
use canter_measure::work::Work;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Child, ExitStatus},
};

/// The file in the analyzer's folder by which a profile reaches the host.
pub const FILE: &str = "profile";
const SCHEMA: u32 = 1;
/// Code of user programs of which no file was seen.
const UNKNOWN: &str = "[unknown]";
/// How often the files of running programs are looked for: first soon, then seldom.
const LOOK_NS_MIN: u64 = 1_000_000;
const LOOK_NS_MAX: u64 = 100_000_000;

/// A profile, as `--json` writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    pub schema: u32,
    /// The command's words.
    pub command: Vec<String>,
    /// The kernel's release.
    pub kernel: String,
    /// The instructions of all rows of `functions` and `programs`; those of the instrument are in none.
    pub instructions: u64,
    /// The time in which no processor executed anything, in ns.
    pub idle_ns: u64,
    /// Instructions by stage, with those of the instrument.
    pub stages: Vec<Row>,
    /// Instructions by function of the kernel, most first: `can_rcv [can]`.
    pub functions: Vec<Row>,
    /// Instructions by function of user programs, most first: `memcpy [libc.so.6]`, or `[libc.so.6]` without a symbol.
    pub programs: Vec<Row>,
    /// The board on which the rows' `time_ns` is; `None` without `--cost`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub board: Option<Board>,
    /// What the host makes `programs` of.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub blocks: Vec<Block>,
}

/// What a user program executed at a place in its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    file: String,
    offset: u64,
    work: Work,
}

/// A number of instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    pub name: String,
    pub instructions: u64,
    /// Their time on the board.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub time_ns: Option<u64>,
    /// What makes that time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub work: Option<Work>,
}

impl Row {
    fn new(name: String, work: Work, board: Option<Board>) -> Self {
        let time_ns = board.map(|board| board.time_ns(&work));
        Self { name, instructions: work.instructions, time_ns, work: board.map(|_| work) }
    }
}

impl Profile {
    /// Reads a file that `canter lab --profile --json` has written.
    pub fn read(path: &Path) -> failure::Result<Self> {
        let wrong = |why: String| Failure::failed(format!("{}: {why}", path.display()));
        let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let profile: Self = serde_json::from_str(&text)
            .map_err(|error| wrong(format!("not a profile of canter lab --profile: {error}")))?;
        match profile.schema {
            SCHEMA => Ok(profile),
            other => Err(wrong(format!("schema {other}: this canter reads {SCHEMA}"))),
        }
    }

    fn new(command: &[String], window: &Window, symbols: &[Symbol], files: &Files) -> Self {
        let board = Session::board();
        let functions = window.functions.iter().map(|Executed { address, work }| {
            let at = symbols.partition_point(|symbol| symbol.address <= *address);
            (at.checked_sub(1).map_or_else(|| UNKNOWN.to_owned(), |at| symbols[at].to_string()), *work)
        });
        let blocks = window.user.iter().map(|executed| files.block(executed)).collect();
        let stages = ALL
            .iter()
            .map(|stage| Row::new(stage.name().to_owned(), window.end.work[*stage as usize - 1], board));
        Self {
            schema: SCHEMA,
            command: command.to_vec(),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
            instructions: window.functions.iter().chain(&window.user).map(|one| one.work.instructions).sum(),
            idle_ns: window.end.idle_ns,
            stages: stages.collect(),
            functions: ranked(functions, board),
            programs: Vec::new(),
            board,
            blocks,
        }
    }

    /// Names the functions of user programs by the symbols of their files, which are the same on the host.
    pub fn name_programs(mut self) -> Self {
        let mut known = BTreeMap::<String, Functions>::new();
        let named = std::mem::take(&mut self.blocks).into_iter().map(|block| {
            let functions = known
                .entry(block.file.clone())
                .or_insert_with(|| Functions::read(&fs::read(&block.file).unwrap_or_default()));
            let file = block.file.rsplit('/').next().unwrap_or_default().trim_matches(['[', ']']);
            let name = match functions.at(block.offset) {
                Some(function) => format!("{function} [{file}]"),
                None => format!("[{file}]"),
            };
            (name, block.work)
        });
        self.programs = ranked(named, self.board);
        self
    }
}

/// The sums by name, the most instructions first.
fn ranked(each: impl Iterator<Item = (String, Work)>, board: Option<Board>) -> Vec<Row> {
    let mut sums = BTreeMap::<String, Work>::new();
    for (name, work) in each {
        let sum = sums.entry(name).or_default();
        *sum = *sum + work;
    }
    let mut rows: Vec<_> = sums.into_iter().map(|(name, work)| Row::new(name, work, board)).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.instructions));
    rows
}

/// Profiles a command from its start to its end. `start` starts it.
pub fn profile(
    command: &[String],
    start: impl FnOnce() -> failure::Result<Child>,
) -> failure::Result<(Profile, ExitStatus)> {
    let own = Program::of_process(Stage::Instrument, std::process::id())?;
    let request = Request { programs: vec![own], others: Stage::Gateway, marks: false };
    let mut session = Session::load(&request)?;
    let mut files = Files::default();
    session.open();
    let mut child = start()?;
    let mut pause_ns = LOOK_NS_MIN;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {}
            Err(error) => return Err(Failure::failed(format!("profile: wait for the command: {error}"))),
        }
        files.observe();
        clock::sleep_until_ns(clock::monotonic_ns() + pause_ns);
        pause_ns = (2 * pause_ns).min(LOOK_NS_MAX);
    };
    let window = session.close()?;
    Ok((Profile::new(command, &window, &session.functions, &files), status))
}

/// The files whose code programs execute, by the first address.
#[derive(Debug, Default)]
struct Files(BTreeMap<u64, Mapped>);

#[derive(Debug)]
struct Mapped {
    end: u64,
    offset: u64,
    file: String,
}

impl Files {
    /// Looks at the programs that run now. Some end before they are seen.
    fn observe(&mut self) {
        let Ok(processes) = fs::read_dir("/proc") else { return };
        for process in processes.flatten() {
            let is_number = process.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit());
            let maps = is_number.then(|| fs::read_to_string(process.path().join("maps")).unwrap_or_default());
            for line in maps.iter().flat_map(|maps| maps.lines()) {
                if let Some([start, end]) = executable(line) {
                    let mut words = line.split_whitespace().skip(2);
                    let offset = words.next().and_then(|text| u64::from_str_radix(text, 16).ok());
                    let (offset, file) = (offset.unwrap_or(0), words.nth(2).unwrap_or(UNKNOWN));
                    self.0.entry(start).or_insert_with(|| Mapped { end, offset, file: file.to_owned() });
                }
            }
        }
    }

    fn block(&self, executed: &Executed) -> Block {
        let Executed { address, work } = *executed;
        let before = self.0.range(..=address).next_back();
        match before.filter(|(_, mapped)| address < mapped.end) {
            Some((start, Mapped { offset, file, .. })) => {
                Block { file: file.clone(), offset: address - start + offset, work }
            }
            None => Block { file: UNKNOWN.to_owned(), offset: address, work },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_sums_up_by_name_and_names_files_by_address() {
        let symbols = crate::analyzer::symbols::functions(
            "ffffffff81000000 T one\nffffffff81000100 T two\nffffffffc0000000 t three\t[can]\n",
        );
        let executed = |address, instructions| Executed {
            address,
            work: Work { instructions, memory: 1, ..Work::default() },
        };
        let window = Window {
            functions: vec![executed(0xffff_ffff_8100_0000, 5), executed(0xffff_ffff_c000_0000, 9)],
            user: vec![executed(0x1000, 1), executed(0x1fff, 2), executed(0x2000, 4)],
            ..Window::default()
        };
        let mapped = Mapped { end: 0x2000, offset: 0, file: "/no/such/program".to_owned() };
        let files = Files(BTreeMap::from([(0x1000, mapped)]));
        let profile = Profile::new(&[], &window, &symbols, &files).name_programs();
        let rows = |rows: &[Row]| -> Vec<(String, u64)> {
            rows.iter().map(|row| (row.name.clone(), row.instructions)).collect()
        };
        assert_eq!(rows(&profile.functions), [("three [can]".to_owned(), 9), ("one".to_owned(), 5)]);
        assert_eq!(rows(&profile.programs), [(UNKNOWN.to_owned(), 4), ("[program]".to_owned(), 3)]);
        assert_eq!((profile.instructions, profile.programs[0].time_ns), (21, None));
        let board = Board::Mpc5200;
        let on_board =
            Row::new(String::new(), Work { instructions: 3, memory: 2, ..Work::default() }, Some(board));
        let its = board.parameters();
        assert_eq!(
            on_board.time_ns,
            Some((3 * its.times.instruction_ps + 2 * its.times.memory_ps).div_ceil(1000))
        );
    }
}
