//! Kernel settings that a study changes for some series and then restores: the priority of the controllers' interrupts,
//! whether canchar's and NAPI's work is done by threads, and the number of frames that the network stack handles at a time.

use super::ethernet::run;
use canter_cli::failure::{self, Failure};
use canter_io::kernel_threads::{self, napi_interface};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{
    fmt, fs,
    path::{Path, PathBuf},
    str::FromStr,
};

/// The priority under SCHED_FIFO that Linux gives to interrupt threads.
const USUAL_PRIORITY: u8 = 50;
/// How to write a tuning.
const TUNINGS: &str = "irq-priority=1…99, threads=1…99, napi=softirq, napi=thread, napi=1…99, defer-interrupts=N, \
     netdev-budget=N, dev-weight=N or \"\"";

/// A change of a kernel setting: `irq-priority=90`, `threads=60`, `napi=80`, `netdev-budget=30`, or empty: no change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tuning {
    Usual,
    /// The priority of interrupt threads, 1…99; only where interrupts are threads (PREEMPT_RT).
    InterruptPriority(u8),
    /// All interrupt handlers are threads of this priority, canchar's by request; `None`: as usual.
    Threads(Option<u8>),
    Napi(Napi),
    /// The number of polls without a frame after which the interface's interrupts are enabled again; 0: after each poll.
    /// With any other number `read/busy-poll` prefers polling.
    DeferInterrupts(u32),
    Frames(FrameLimit, u32),
}

/// Who does NAPI's work of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Napi {
    SoftInterrupt,
    /// A thread of its own, without a real-time priority, as the kernel starts it.
    Thread,
    /// A thread of its own under SCHED_FIFO.
    Fifo(u8),
}

/// A limit of the frames that the network stack handles at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameLimit {
    /// The frames that a soft interrupt handles before it yields the processor.
    NetdevBudget,
    /// The frames of drivers without NAPI that are taken from their queue before others have their turn.
    DevWeight,
}

impl FrameLimit {
    const ALL: [Self; 2] = [Self::NetdevBudget, Self::DevWeight];

    fn name(self) -> &'static str {
        match self {
            Self::NetdevBudget => "netdev-budget",
            Self::DevWeight => "dev-weight",
        }
    }

    fn path(self) -> String {
        format!("/proc/sys/net/core/{}", self.name().replace('-', "_"))
    }

    fn value(self) -> failure::Result<u32> {
        let path = self.path();
        let failed = |why: String| Failure::failed(format!("study: {path}: {why}"));
        let text = fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
        text.trim().parse().map_err(|_| failed(format!("\"{}\" is not a number", text.trim())))
    }
}

impl FromStr for Tuning {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\": not a tuning ({TUNINGS})");
        let (name, value) = match text.split_once('=') {
            None if text.is_empty() => return Ok(Self::Usual),
            Some(("napi", "softirq")) => return Ok(Self::Napi(Napi::SoftInterrupt)),
            Some(("napi", "thread")) => return Ok(Self::Napi(Napi::Thread)),
            None => return Err(wrong()),
            Some((name, value)) => (name, value.parse::<u32>().map_err(|_| wrong())?),
        };
        if let Some(limit) = FrameLimit::ALL.into_iter().find(|limit| limit.name() == name && value > 0) {
            return Ok(Self::Frames(limit, value));
        }
        if name == "defer-interrupts" && value > 0 {
            return Ok(Self::DeferInterrupts(value));
        }
        let priority =
            u8::try_from(value).ok().filter(|priority| (1..=99).contains(priority)).ok_or_else(wrong)?;
        match name {
            "irq-priority" => Ok(Self::InterruptPriority(priority)),
            "threads" => Ok(Self::Threads(Some(priority))),
            "napi" => Ok(Self::Napi(Napi::Fifo(priority))),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usual | Self::Threads(None) => Ok(()),
            Self::InterruptPriority(priority) => write!(f, "irq-priority={priority}"),
            Self::Threads(Some(priority)) => write!(f, "threads={priority}"),
            Self::Napi(Napi::SoftInterrupt) => f.write_str("napi=softirq"),
            Self::Napi(Napi::Thread) => f.write_str("napi=thread"),
            Self::Napi(Napi::Fifo(priority)) => write!(f, "napi={priority}"),
            Self::DeferInterrupts(polls) => write!(f, "defer-interrupts={polls}"),
            Self::Frames(limit, value) => write!(f, "{}={value}", limit.name()),
        }
    }
}

impl Serialize for Tuning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Tuning {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// A changed setting; dropping this restores it.
#[must_use]
pub struct Tuned {
    undo: Vec<(Tuning, Vec<String>)>,
}

impl Tuning {
    /// Changes the setting for these interfaces.
    pub fn apply(self, interfaces: &[&str]) -> failure::Result<Tuned> {
        let all = || interfaces.iter().map(|&name| name.to_owned()).collect();
        let undo = match self {
            Self::Usual => Vec::new(),
            Self::InterruptPriority(_) => vec![(Self::InterruptPriority(USUAL_PRIORITY), all())],
            Self::Threads(_) => vec![(Self::Threads(None), all())],
            Self::Napi(_) => interfaces
                .iter()
                .map(|&name| Ok((napi(name)?, vec![name.to_owned()])))
                .collect::<failure::Result<_>>()?,
            // The kernel's default, which nothing in a study's machine has changed.
            Self::DeferInterrupts(_) => vec![(Self::DeferInterrupts(0), all())],
            Self::Frames(limit, _) => vec![(Self::Frames(limit, limit.value()?), Vec::new())],
        };
        let mut tuned = Tuned { undo };
        if let Err(failure) = self.set(interfaces) {
            // Some of it may be set. Why the rest cannot be, the failure says already.
            tuned.restore();
            return Err(failure);
        }
        Ok(tuned)
    }

    fn set(self, interfaces: &[&str]) -> failure::Result<()> {
        match self {
            Self::Usual => Ok(()),
            Self::InterruptPriority(priority) => set_interrupt_priority(interfaces, priority),
            Self::Threads(priority) => set_threads(interfaces, priority),
            Self::Napi(who) => interfaces.iter().try_for_each(|name| set_napi(name, who)),
            Self::DeferInterrupts(polls) => {
                interfaces.iter().try_for_each(|name| defer_interrupts(name, polls))
            }
            Self::Frames(limit, frames) => fs::write(limit.path(), frames.to_string())
                .map_err(|error| Failure::unable(format!("{}: {error}", limit.path()))),
        }
    }
}

impl Tuned {
    /// Restores what is changed; answers what could not be restored.
    fn restore(&mut self) -> Vec<Failure> {
        let restored = self.undo.drain(..).map(|(tuning, interfaces)| {
            tuning.set(&interfaces.iter().map(String::as_str).collect::<Vec<_>>())
        });
        restored.filter_map(Result::err).collect()
    }
}

impl Drop for Tuned {
    fn drop(&mut self) {
        for why in self.restore() {
            eprintln!("canter: study: restore a kernel setting: {why}");
        }
    }
}

fn threaded(interface: &str) -> PathBuf {
    Path::new("/sys/class/net").join(interface).join("threaded")
}

/// How NAPI works for an interface.
fn napi(interface: &str) -> failure::Result<Tuning> {
    let path = threaded(interface);
    let text = fs::read_to_string(&path).map_err(|error| {
        Failure::unable(format!("{}: {error} (a device of canchar has no NAPI)", path.display()))
    })?;
    if text.trim() == "0" {
        return Ok(Tuning::Napi(Napi::SoftInterrupt));
    }
    let stat =
        napi_threads(interface).first().map(|process| fs::read_to_string(format!("/proc/{process}/stat")));
    let priority = stat.and_then(|text| kernel_threads::real_time_priority(&text.ok()?));
    Ok(Tuning::Napi(priority.filter(|&priority| priority > 0).map_or(Napi::Thread, Napi::Fifo)))
}

fn set_napi(interface: &str, who: Napi) -> failure::Result<()> {
    let path = threaded(interface);
    fs::write(&path, if who == Napi::SoftInterrupt { "0" } else { "1" }).map_err(|error| {
        Failure::unable(format!("{}: {error} (its driver may have no NAPI)", path.display()))
    })?;
    if who == Napi::SoftInterrupt {
        return Ok(());
    }
    let threads = napi_threads(interface);
    if threads.is_empty() {
        return Err(Failure::unable(format!("{interface}: no thread napi/{interface}-N has started")));
    }
    match who {
        Napi::Fifo(priority) => set_priority(&threads, priority),
        _ => threads.iter().try_for_each(|process| run(&["chrt", "-o", "-p", "0", process])),
    }
}

/// Until the next poll, or until NAPI's own timer expires.
const DEFERRED_NS: u32 = 200_000;

fn defer_interrupts(interface: &str, polls: u32) -> failure::Result<()> {
    let timeout = if polls > 0 { DEFERRED_NS } else { 0 };
    for (name, value) in [("gro_flush_timeout", timeout), ("napi_defer_hard_irqs", polls)] {
        let path = Path::new("/sys/class/net").join(interface).join(name);
        fs::write(&path, value.to_string())
            .map_err(|error| Failure::unable(format!("{}: write {value}: {error}", path.display())))?;
    }
    Ok(())
}

fn set_priority(threads: &[String], priority: u8) -> failure::Result<()> {
    threads.iter().try_for_each(|process| run(&["chrt", "-f", "-p", &priority.to_string(), process]))
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
    set_priority(&threads, priority)
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
    threads(|name| interfaces.iter().any(|interface| is_thread_of(name, interface, handlers_are_threads)))
}

/// The process numbers of the threads with such a name.
fn threads(is_meant: impl Fn(&str) -> bool) -> Vec<String> {
    let named =
        |folder: &PathBuf| fs::read_to_string(folder.join("comm")).is_ok_and(|name| is_meant(name.trim()));
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let meant = folders.filter(named);
    meant.filter_map(|folder| Some(folder.file_name()?.to_string_lossy().into_owned())).collect()
}

fn napi_threads(interface: &str) -> Vec<String> {
    threads(|name| napi_interface(name) == Some(interface))
}

/// Whether a thread's name is that of an interface's interrupt (`irq/23-can3`; `irq/canchar0` of a device whose handler is
/// a thread) or of its NAPI (`napi/wcan3-8193`), which has the interrupt's work on a virtual wire.
fn is_thread_of(thread: &str, interface: &str, handlers_are_threads: bool) -> bool {
    let interrupt = thread.strip_prefix("irq/");
    let action = interrupt.and_then(|rest| rest.split_once('-'));
    napi_interface(thread) == Some(interface)
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
        assert_eq!("netdev-budget=30".parse(), Ok(Tuning::Frames(FrameLimit::NetdevBudget, 30)));
        assert_eq!("threads=60".parse(), Ok(Tuning::Threads(Some(60))));
        for text in [
            "",
            "irq-priority=90",
            "threads=60",
            "napi=softirq",
            "napi=thread",
            "napi=80",
            "defer-interrupts=2",
            "netdev-budget=1",
            "dev-weight=1",
        ] {
            assert_eq!(text.parse::<Tuning>().map(|tuning| tuning.to_string()).as_deref(), Ok(text));
        }
        for wrong in [
            "irq-priority=100",
            "irq-priority=0",
            "threads=0",
            "threads",
            "netdev-budget=0",
            "netdev-budget",
            "napi=0",
            "defer-interrupts=0",
            "napi",
            "dev-weight=0",
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
