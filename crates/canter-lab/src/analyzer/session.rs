//! A conversation with the analyzer: markers are instructions that it sees, and files are in a folder that it shares with the
//! guest. Nothing here runs while a window is open.

use super::{
    board::Board,
    stage::Stage,
    symbols::{self, Symbol},
    window::Window,
};
use canter_cli::failure::{self, Failure};
use canter_io::{clock, marker};
use std::{
    fmt::Write,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// The folder of the guest that the lab shares with the analyzer.
pub const FOLDER: &str = "/run/canter-lab/analyzer";
const SYMBOLS: &str = "/proc/kallsyms";
const MODULES: &str = "/proc/modules";
/// The modules whose functions, with marks, the analyzer has.
const KNOWN: &str = "known";
/// The process that uses the analyzer.
const USER: &str = "user";
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// Where the lab names the board of `--cost`.
pub const BOARD: &str = "board";
/// How often to look for an answer, and how many times.
const LOOK_AGAIN_NS: u64 = 20_000_000;
const LOOKS: u32 = 3000;

const LOAD: u8 = 1;
const OPEN: u8 = 2;
const FRAME: u8 = 3;
const CLOSE: u8 = 4;

/// Where the gateway without Linux has its code (kernel/canbare): no program may use addresses as low as these.
const WITHOUT_LINUX: [u64; 2] = [0x1_0000, 0x2_0000];

/// A program whose code is at these addresses while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub stage: Stage,
    /// First address and the address after the last one.
    pub code: Vec<[u64; 2]>,
}

impl Program {
    /// A running process.
    pub fn of_process(stage: Stage, pid: u32) -> failure::Result<Self> {
        let path = format!("/proc/{pid}/maps");
        let text =
            fs::read_to_string(&path).map_err(|e| Failure::failed(format!("analyzer: {path}: {e}")))?;
        Ok(Self { stage, code: text.lines().filter_map(executable).collect() })
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.code.iter().any(|[start, end]| other.code.iter().any(|[from, to]| start < to && from < end))
    }
}

/// The addresses of a line of /proc/PID/maps, when they are executable.
pub fn executable(line: &str) -> Option<[u64; 2]> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let may_run = words.next()?.contains('x');
    let number = |text| u64::from_str_radix(text, 16).ok();
    let range = [number(start)?, number(end)?];
    (may_run && range[0] < 1 << 63).then_some(range)
}

/// What the analyzer has to know before the first window.
#[derive(Clone, Debug)]
pub struct Request {
    pub programs: Vec<Program>,
    /// The stage of user code of none of the programs.
    pub others: Stage,
    /// Whether transmissions and deliveries of frames are events. Events take memory, so there can be too many.
    pub marks: bool,
}

/// The analyzer, ready for windows.
#[derive(Debug)]
pub struct Session {
    windows: u32,
    /// The kernel's functions, ascending by address; none when the analyzer keeps those of the session before.
    pub functions: Vec<Symbol>,
}

impl Session {
    /// Fails where there is no analyzer.
    pub fn require() -> failure::Result<()> {
        if marker::AVAILABLE && Path::new(FOLDER).is_dir() {
            return Ok(());
        }
        let why = "analyzer: this machine has none (canter lab --analyzer --clock virtual has)";
        Err(Failure::unable(why))
    }

    /// The board whose costs the analyzer counts; `None`: it counts instructions only.
    pub fn board() -> Option<Board> {
        fs::read_to_string(file(BOARD)).ok().and_then(|name| Board::named(&name))
    }

    /// Gives the analyzer the request, and the kernel's functions, which it keeps for requests with marks while no module
    /// comes or goes: 150 000 are described by a thousand million instructions.
    pub fn load(wanted: &Request) -> failure::Result<Self> {
        Self::require()?;
        refuse_another_user()?;
        if let [first, second] = &wanted.programs[..]
            && first.overlaps(second)
        {
            let why = "analyzer: the programs are at the same addresses (kernel.randomize_va_space=2 separates them)";
            return Err(Failure::unable(why));
        }
        let modules = modules()?;
        let keeps = wanted.marks && fs::read_to_string(file(KNOWN)).is_ok_and(|known| known == modules);
        let (functions, mut request) = if keeps {
            (Vec::new(), "keep\n".to_owned())
        } else {
            let functions = functions()?;
            let request = symbols::request(&functions, wanted.marks);
            (functions, request)
        };
        for name in ["ready", "failed", KNOWN] {
            remove(name)?;
        }
        write(USER, &std::process::id().to_string())?;
        for program in &wanted.programs {
            for [start, end] in &program.code {
                let _ = writeln!(request, "u {start:x} {end:x} {}", program.stage as u32);
            }
        }
        let [start, end] = WITHOUT_LINUX;
        let _ = writeln!(request, "u {start:x} {end:x} {}", Stage::Gateway as u32);
        let _ = write!(request, "u 0 0 {}\nend\n", wanted.others as u32);
        write("request", &request)?;
        marker::mark::<LOAD>();
        answer("ready")?;
        if wanted.marks {
            write(KNOWN, &modules)?;
        }
        Ok(Self { windows: 0, functions })
    }

    /// Begins a window.
    pub fn open(&mut self) {
        self.windows += 1;
        marker::mark::<OPEN>();
    }

    /// Marks an event in the window.
    #[inline(always)]
    pub fn frame() {
        marker::mark::<FRAME>();
    }

    /// Ends the window and reads what the analyzer has seen.
    pub fn close(&mut self) -> failure::Result<Window> {
        marker::mark::<CLOSE>();
        let name = format!("result.{}", self.windows);
        let text = answer(&name)?;
        remove(&name)?;
        let seen = Window::parse(&text).map_err(|why| Failure::failed(format!("analyzer: {why}")))?;
        Ok(Window { processors: processors()?, ..seen })
    }
}

/// A file in the shared folder.
fn file(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

/// Waits for a file of the analyzer, which appears when it is complete.
fn answer(name: &str) -> failure::Result<String> {
    let path = file(name);
    for _ in 0..LOOKS {
        match fs::read_to_string(&path) {
            Ok(text) => return Ok(text),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                return Err(Failure::failed(format!("analyzer: {}: {error}", path.display())));
            }
        }
        if let Ok(why) = fs::read_to_string(file("failed")) {
            return Err(Failure::failed(format!("analyzer: {}", why.trim())));
        }
        clock::sleep_until_ns(clock::monotonic_ns() + LOOK_AGAIN_NS);
    }
    Err(Failure::failed(format!("analyzer: {name}: no answer")))
}

fn write(name: &str, text: &str) -> failure::Result<()> {
    fs::write(file(name), text).map_err(|error| Failure::failed(format!("analyzer: {name}: {error}")))
}

fn remove(name: &str) -> failure::Result<()> {
    match fs::remove_file(file(name)) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Failure::failed(format!("analyzer: {name}: {error}")))
        }
        _ => Ok(()),
    }
}

/// Refuses what would end another process's windows: a program that `canter lab --profile` runs is the usual one.
fn refuse_another_user() -> failure::Result<()> {
    let Ok(user) = fs::read_to_string(file(USER)) else { return Ok(()) };
    if user == std::process::id().to_string() || !runs(&user) {
        return Ok(());
    }
    Err(Failure::unable(format!(
        "analyzer: process {user} uses it (canter lab --profile? --analyzer leaves it to a measurement)"
    )))
}

/// Whether the process of this number has not ended. One that has, and that nobody has waited for, has no program any more.
fn runs(process: &str) -> bool {
    Path::new("/proc").join(process).join("exe").read_link().is_ok()
}

/// The functions of the kernel that runs.
fn functions() -> failure::Result<Vec<Symbol>> {
    let read = fs::read_to_string(SYMBOLS);
    let text = read.map_err(|e| Failure::unable(format!("analyzer: {SYMBOLS}: {e} (run as root)")))?;
    let functions = symbols::functions(&text);
    if functions.len() < 1000 {
        let why = format!("analyzer: {SYMBOLS}: hides the kernel's addresses (kernel.kptr_restrict=1, root)");
        return Err(Failure::unable(why));
    }
    Ok(functions)
}

/// The name and the address of each module that is loaded.
fn modules() -> failure::Result<String> {
    let read = fs::read_to_string(MODULES);
    let text = read.map_err(|error| Failure::unable(format!("analyzer: {MODULES}: {error}")))?;
    Ok(text.lines().filter_map(place_of_module).collect())
}

/// The name and the address in a line such as `can 28672 2 can_raw,can_gw, Live 0xffffffffc0000000`.
fn place_of_module(line: &str) -> Option<String> {
    let mut words = line.split_ascii_whitespace();
    let name = words.next()?;
    let address = words.find(|word| word.starts_with("0x"))?;
    Some(format!("{name} {address}\n"))
}

/// The number above that of every processor that Linux uses.
fn processors() -> failure::Result<u32> {
    let read = fs::read_to_string(ONLINE);
    let text = read.map_err(|error| Failure::failed(format!("analyzer: {ONLINE}: {error}")))?;
    let last = text.trim().rsplit(['-', ',']).next().and_then(|last| last.parse::<u32>().ok());
    last.map(|last| last + 1).ok_or_else(|| Failure::failed(format!("analyzer: {ONLINE}: {text:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_runs_no_more_before_anyone_has_waited_for_it() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let status = format!("/proc/{}/stat", child.id());
        while !fs::read_to_string(&status).unwrap().contains(") Z ") {
            std::thread::yield_now();
        }
        assert!(!runs(&child.id().to_string()));
        assert!(runs(&std::process::id().to_string()));
        child.wait().unwrap();
    }

    #[test]
    fn the_code_of_a_program_is_what_it_may_execute() {
        let own = Program::of_process(Stage::Instrument, std::process::id()).unwrap();
        let here = Session::require as *const () as u64;
        assert!(own.code.iter().any(|[start, end]| (*start..*end).contains(&here)), "{own:?}");
        assert!(own.overlaps(&own));
        assert!(processors().unwrap() >= 1);
        let module = "can 28672 2 can_raw,can_gw, Live 0xffffffffc0000000 (OE)";
        assert_eq!(place_of_module(module).unwrap(), "can 0xffffffffc0000000\n");
        assert_eq!(executable("7f10-7f20 r--p 00000000 08:01 1 /bin/true"), None);
        assert_eq!(executable("7f10-7f20 r-xp 00000000 08:01 1 /bin/true"), Some([0x7f10, 0x7f20]));
        let kernels = "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]";
        assert_eq!(executable(kernels), None);
    }
}
