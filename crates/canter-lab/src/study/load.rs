//! Loads: other work of the machine during a measurement. Each load is a separate process that runs until it is ended:
//! `ping` of iputils, or this program (`canter study load NAME`), so that no load runs in the meter's process.

mod cpu;
mod disk;
mod ethernet;
mod processes;
mod row;
mod table;
mod usb_stick;

use super::ethernet::{Ethernet, ping_is_there};
use canter_cli::failure::{self, Failure};
use row::{CANTER, LoadCommand, LoadRow};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{
    fmt, fs, io,
    process::{Child, Command, Stdio},
    str::FromStr,
    thread,
    time::{Duration, Instant},
};
use table::LOADS;

/// A load by its name in study files and results.
#[derive(Clone, Copy)]
pub struct Load(&'static LoadRow);

impl Load {
    pub fn name(self) -> &'static str {
        self.0.name
    }

    pub fn is_ethernet(self) -> bool {
        self.0.ethernet
    }

    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

impl Default for Load {
    /// No load.
    fn default() -> Self {
        Self(&LOADS[0])
    }
}

impl PartialEq for Load {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Load {}

impl fmt::Debug for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Load {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = LOADS.iter().find(|load| load.name == text).map(Self);
        let names = || LOADS.iter().map(|load| load.name).collect::<Vec<_>>().join(", ");
        found.ok_or_else(|| format!("{text}: no such load ({})", names()))
    }
}

impl Serialize for Load {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Load {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// The processes of a load; dropping this ends them.
#[derive(Default)]
pub struct Running(Vec<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill(); // fails only for a process that has ended
            let _ = child.wait();
        }
    }
}

/// The part of a load that runs on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    #[default]
    Both,
    Gateway,
    Other,
}

/// The processor time that each process of a running load has used at least, in ticks of 10 ms.
const SETTLED_TICKS: u64 = 5;
/// Timeout of starting a load.
const SETTLED_WITHIN: Duration = Duration::from_secs(30);

/// Starts a load on a processor of the gateway.
pub fn start(
    load: Load,
    processor: Option<usize>,
    ethernet: Option<&Ethernet>,
    part: Part,
) -> failure::Result<Running> {
    let mut running = Running::default();
    if load.is_ethernet() {
        ethernet.ok_or_else(|| {
            unable(
                load,
                "needs two network cards (canter lab --net), or SSH_CONNECTION on the gateway's machine",
            )
        })?;
        ping_is_there()?;
    }
    if part != Part::Other {
        (load.0.check)().map_err(|why| unable(load, &why))?;
    }
    let program = super::program()?;
    let here = |line: &LoadCommand| part == Part::Both || line.on_gateway == (part == Part::Gateway);
    for LoadCommand { words, on_gateway } in (load.0.lines)(ethernet).into_iter().filter(here) {
        let processor = match on_gateway {
            true => processor,
            false => processor.map(|_| super::preparation::SENDER_CPU),
        };
        let pinned = processor.map(|number| ["taskset".to_owned(), "-c".to_owned(), number.to_string()]);
        let mut words = pinned.into_iter().flatten().chain(words).map(|word| match word.as_str() {
            CANTER => program.clone().into_os_string(),
            _ => word.into(),
        });
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        running.0.push(command.spawn().map_err(|error| failed(load, error))?);
    }
    running.settle(load).map(|()| running)
}

impl Running {
    /// Waits until the load runs, by processor time: the wall time depends on how fast the programs are read from disk.
    fn settle(&mut self, load: Load) -> failure::Result<()> {
        let since = Instant::now();
        while !self.0.iter().all(|child| ticks(child) >= SETTLED_TICKS) {
            if let Some(status) = self.0.iter_mut().find_map(|child| child.try_wait().ok().flatten()) {
                return Err(unable(load, &format!("ended early: {status}")));
            }
            if since.elapsed() > SETTLED_WITHIN {
                return Err(unable(load, &format!("used almost no processor time in {SETTLED_WITHIN:?}")));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

/// The processor time of a process: utime and stime of proc(5), the 12th and 13th word after its name.
fn ticks(process: &Child) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap_or_default();
    let words = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    words.skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum()
}

fn unable(load: Load, why: &str) -> Failure {
    Failure::unable(format!("load {}: {why}", load.name()))
}

fn failed(load: Load, error: io::Error) -> Failure {
    Failure::failed(format!("load {}: start: {error}", load.name()))
}

/// The work of `canter study load NAME`; returns only when something fails.
pub fn work(name: &str, to: Option<&str>) -> failure::Result<()> {
    let known = LOADS.iter().flat_map(|load| load.work).find(|(known, _)| *known == name);
    let Some((_, work)) = known else {
        return Err(Failure::new(failure::Exit::Usage, format!("{name}: no such load")));
    };
    work(to).map_err(|error| Failure::failed(format!("load {name}: {error}")))
}
