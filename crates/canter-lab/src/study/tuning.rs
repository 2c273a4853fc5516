//! Kernel settings that a study changes for some series and then restores: the priority of the controllers' interrupts,
//! whether canchar's are threads, and the number of frames that the network stack handles at a time.

use super::ethernet::run;
use canter_cli::failure::{self, Failure};
use std::{
    fs,
    path::{Path, PathBuf},
    str::FromStr,
};

/// The priority under SCHED_FIFO that Linux gives to interrupt threads.
const USUAL_PRIORITY: u8 = 50;
/// The number of frames that the network's soft interrupt handles before it yields the processor.
const NETDEV_BUDGET: &str = "/proc/sys/net/core/netdev_budget";

/// A change of a kernel setting: `irq-priority=90`, `threads=60`, `netdev-budget=30`, or empty: no change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tuning {
    Usual,
    /// The priority of interrupt threads, 1…99; only where interrupts are threads (PREEMPT_RT).
    InterruptPriority(u8),
    /// All interrupt handlers are threads of this priority, canchar's by request; `None`: as usual.
    Threads(Option<u8>),
    NetdevBudget(u32),
}

impl FromStr for Tuning {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("\"{text}\": not a tuning (irq-priority=1…99, threads=1…99, netdev-budget=N or \"\")");
        let (name, value) = match text.split_once('=') {
            None if text.is_empty() => return Ok(Self::Usual),
            None => return Err(wrong()),
            Some((name, value)) => (name, value.parse::<u32>().map_err(|_| wrong())?),
        };
        match (name, u8::try_from(value)) {
            ("irq-priority", Ok(priority @ 1..=99)) => Ok(Self::InterruptPriority(priority)),
            ("threads", Ok(priority @ 1..=99)) => Ok(Self::Threads(Some(priority))),
            ("netdev-budget", _) if value > 0 => Ok(Self::NetdevBudget(value)),
            _ => Err(wrong()),
        }
    }
}

/// A changed setting; dropping this restores it.
#[must_use]
pub struct Tuned {
    undo: Option<Tuning>,
    interfaces: Vec<String>,
}

impl Tuning {
    /// Changes the setting for these interfaces.
    pub fn apply(self, interfaces: &[&str]) -> failure::Result<Tuned> {
        let undo = match self {
            Self::Usual => None,
            Self::InterruptPriority(_) => Some(Self::InterruptPriority(USUAL_PRIORITY)),
            Self::Threads(_) => Some(Self::Threads(None)),
            Self::NetdevBudget(_) => Some(Self::NetdevBudget(netdev_budget()?)),
        };
        self.set(interfaces)?;
        Ok(Tuned { undo, interfaces: interfaces.iter().map(|&name| name.to_owned()).collect() })
    }

    fn set(self, interfaces: &[&str]) -> failure::Result<()> {
        match self {
            Self::Usual => Ok(()),
            Self::InterruptPriority(priority) => set_interrupt_priority(interfaces, priority),
            Self::Threads(priority) => set_threads(interfaces, priority),
            Self::NetdevBudget(frames) => fs::write(NETDEV_BUDGET, frames.to_string())
                .map_err(|error| Failure::unable(format!("{NETDEV_BUDGET}: {error}"))),
        }
    }
}

impl Drop for Tuned {
    fn drop(&mut self) {
        let interfaces: Vec<&str> = self.interfaces.iter().map(String::as_str).collect();
        let undone = self.undo.map_or(Ok(()), |undo| undo.set(&interfaces));
        if let Err(why) = undone {
            eprintln!("canter: study: restore a kernel setting: {why}");
        }
    }
}

fn netdev_budget() -> failure::Result<u32> {
    let failed = |why: String| Failure::failed(format!("study: {NETDEV_BUDGET}: {why}"));
    let text = fs::read_to_string(NETDEV_BUDGET).map_err(|error| failed(error.to_string()))?;
    text.trim().parse().map_err(|_| failed(format!("\"{}\" is not a number", text.trim())))
}

/// Puts the handlers of canchar devices into threads of this priority, and gives it to the threads of the others.
fn set_threads(interfaces: &[&str], priority: Option<u8>) -> failure::Result<()> {
    let (devices, others): (Vec<&str>, Vec<&str>) =
        interfaces.iter().partition(|interface| interface.starts_with("/dev/"));
    for device in devices {
        let folder = Path::new("/sys/class/canchar").join(device.trim_start_matches("/dev/"));
        let values = [
            ("thread_priority", priority.unwrap_or(USUAL_PRIORITY)),
            ("threaded", u8::from(priority.is_some())),
        ];
        for (name, value) in values {
            let path = folder.join(name);
            fs::write(&path, value.to_string())
                .map_err(|error| Failure::unable(format!("{}: write {value}: {error}", path.display())))?;
        }
    }
    match others.is_empty() {
        true => Ok(()),
        false => set_interrupt_priority(&others, priority.unwrap_or(USUAL_PRIORITY)),
    }
}

fn set_interrupt_priority(interfaces: &[&str], priority: u8) -> failure::Result<()> {
    let threads = interrupt_threads(interfaces, handlers_are_threads());
    if threads.is_empty() {
        let whose = interfaces.join(", ");
        return Err(Failure::unable(format!(
            "{whose}: interrupts are not threads here (they are on PREEMPT_RT, for socket interfaces)"
        )));
    }
    threads.iter().try_for_each(|process| run(&["chrt", "-f", "-p", &priority.to_string(), process]))
}

/// Without this check, a driver's thread for other work could be mistaken for an interrupt thread.
fn handlers_are_threads() -> bool {
    let has = |path: &str, word: &str| {
        fs::read_to_string(path).is_ok_and(|text| text.split_whitespace().any(|known| known == word))
    };
    has("/proc/version", "PREEMPT_RT") || has("/proc/cmdline", "threadirqs")
}

/// The process numbers of the threads that do the work of these interfaces' interrupts.
fn interrupt_threads(interfaces: &[&str], handlers_are_threads: bool) -> Vec<String> {
    let is_theirs = |folder: &PathBuf| {
        let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
        interfaces.iter().any(|interface| is_thread_of(name.trim(), interface, handlers_are_threads))
    };
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let theirs = folders.filter(is_theirs);
    theirs.filter_map(|folder| Some(folder.file_name()?.to_string_lossy().into_owned())).collect()
}

/// Whether a thread's name is that of an interface's interrupt (`irq/23-can3`; `irq/canchar0` of a device whose handler is
/// a thread) or of its NAPI (`napi/wcan3-8193`), which has the interrupt's work on a virtual wire.
fn is_thread_of(thread: &str, interface: &str, handlers_are_threads: bool) -> bool {
    let interrupt = thread.strip_prefix("irq/");
    let action = interrupt.and_then(|rest| rest.split_once('-'));
    let napi = thread.strip_prefix("napi/").and_then(|rest| rest.rsplit_once('-'));
    napi.is_some_and(|(name, _)| name == interface)
        || interrupt.is_some() && interrupt == interface.strip_prefix("/dev/")
        || handlers_are_threads && action.is_some_and(|(_, action)| action == interface)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tuning_is_a_name_and_a_number() {
        assert_eq!("".parse(), Ok(Tuning::Usual));
        assert_eq!("irq-priority=90".parse(), Ok(Tuning::InterruptPriority(90)));
        assert_eq!("netdev-budget=30".parse(), Ok(Tuning::NetdevBudget(30)));
        assert_eq!("threads=60".parse(), Ok(Tuning::Threads(Some(60))));
        for wrong in [
            "irq-priority=100",
            "irq-priority=0",
            "threads=0",
            "threads",
            "netdev-budget=0",
            "netdev-budget",
            "budget=1",
            "=3",
        ] {
            assert!(wrong.parse::<Tuning>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_thread_is_found_by_the_interface_whose_interrupts_or_napi_it_serves() {
        assert!(is_thread_of("irq/23-can3", "can3", true));
        assert!(!is_thread_of("irq/23-can3", "can3", false), "the driver's own thread, for other work");
        assert!(is_thread_of("napi/wcan3-8193", "wcan3", false));
        assert!(is_thread_of("napi/my-can-7", "my-can", true));
        assert!(is_thread_of("irq/canchar0", "/dev/canchar0", false));
        assert!(!is_thread_of("irq/canchar10", "/dev/canchar1", true));
        for other in ["napi/wcan30-8193", "napi/wcan3", "wcan3", "irq/23-wcan30"] {
            assert!(!is_thread_of(other, "wcan3", true), "{other}");
        }
    }
}
