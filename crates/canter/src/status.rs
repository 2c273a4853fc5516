//! `canter status`: what the recordings of this machine do now, by their own words.

use crate::status_socket::{self, Bus, Report};
use canter_cli::{
    failure::{self, Exit, Failure},
    options::Common,
    units::{counted, grouped},
};
use clap::Args;
use serde_json::Value;
use std::{fmt::Write, io::ErrorKind, thread, time::Duration};

/// From the first question on, a recording looks at each bus. It publishes what it sees ten times a second.
const WAKE: Duration = Duration::from_millis(400);
/// The time over which rates and loads are measured.
const MEASURE: Duration = Duration::from_secs(1);

/// Show what the recordings of this machine do: rates, loads, losses, files, triggers
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter status                  every canter capture of this network namespace, also the services'
  canter status 4711             the one with this process id
  canter status --json -         as a list of documents, for scripts
Rates and loads are those of one second. The recordings compute the loads only while somebody asks. Exit code 0; 1 when
no recording runs; 3 when one has lost frames or cannot write.")]
pub struct Arguments {
    /// The process id of a recording
    #[arg(value_name = "PID")]
    pid: Option<u32>,
}

/// Two answers of a recording, a while apart.
struct Answers {
    before: Report,
    now: Report,
    document: Value,
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    common.apply()?;
    let failed = |error| Failure::failed(format!("status: /proc/net/unix: {error}"));
    let pids = match arguments.pid {
        Some(pid) => vec![pid],
        None => status_socket::recordings().map_err(failed)?,
    };
    // One that ends meanwhile does not answer, and is no error unless it was named.
    let woken: Vec<u32> = pids.into_iter().filter(|&pid| status_socket::ask(pid).is_ok()).collect();
    if !woken.is_empty() {
        thread::sleep(WAKE);
    }
    let before: Vec<Report> =
        woken.into_iter().filter_map(|pid| Some(status_socket::ask(pid).ok()?.1)).collect();
    if !before.is_empty() {
        thread::sleep(MEASURE);
    }
    let answers: Vec<Answers> = before.into_iter().filter_map(answers).collect();
    if answers.is_empty() {
        return Err(Failure::failed(match arguments.pid {
            Some(pid) => format!("status: {pid}: no canter capture of this network namespace answers with this id"),
            None => "status: no canter capture runs in this network namespace (canter capture any -o drive.pcapng)".to_owned(),
        }));
    }
    if !common.quiet {
        answers.iter().for_each(|answers| print!("{}", answers.text()));
    }
    common.write_json(&answers.iter().map(Answers::document).collect::<Vec<_>>())?;
    let is_well = |Answers { now, .. }: &Answers| now.lost.frames() == 0 && now.trouble.is_empty();
    Ok(if answers.iter().all(is_well) { Exit::Done } else { Exit::Lost })
}

fn answers(before: Report) -> Option<Answers> {
    match status_socket::ask(before.pid) {
        Ok((document, now)) => Some(Answers { before, now, document }),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => None,
        Err(error) => {
            eprintln!("canter: status: {}: {error}", before.pid);
            None
        }
    }
}

impl Answers {
    /// Per second, what grew by this number.
    fn per_second(&self, before: u64, now: u64) -> u64 {
        let passed = self.now.monotonic_ns.saturating_sub(self.before.monotonic_ns).max(1);
        (u128::from(now.saturating_sub(before)) * 1_000_000_000 / u128::from(passed)) as u64
    }

    fn rate(&self) -> u64 {
        self.per_second(self.before.frames, self.now.frames)
    }

    /// A bus's frames per second, and its load in tenths of a percent.
    fn bus(&self, bus: &Bus) -> (u64, Option<u64>) {
        let Some(before) = self.before.buses.iter().find(|before| before.name == bus.name) else {
            return (0, None);
        };
        let load =
            bus.busy_ns.zip(before.busy_ns).map(|(now, before)| self.per_second(before, now) / 1_000_000);
        (self.per_second(before.frames, bus.frames), load)
    }

    /// The recording's document, with what was measured.
    fn document(&self) -> Value {
        let mut document = self.document.clone();
        document["frames_per_second"] = self.rate().into();
        for (bus, shown) in self.now.buses.iter().zip(document["buses"].as_array_mut().into_iter().flatten())
        {
            let (rate, load) = self.bus(bus);
            shown["frames_per_second"] = rate.into();
            shown["load_percent"] = load.map(|tenths| tenths as f64 / 10.0).into();
        }
        document
    }

    fn text(&self) -> String {
        let now = &self.now;
        let mut out = String::new();
        let since = |ns: u64| age(now.at_ns.saturating_sub(ns));
        let _ = writeln!(out, "{}: pid {}, for {}", now.output, now.pid, since(now.started_ns));
        let (rate, frames, lost) = (grouped(self.rate()), grouped(now.frames), grouped(now.lost.frames()));
        let (used, most) = (size(now.queue_used_bytes), size(now.queue_high_water_bytes));
        let _ = writeln!(
            out,
            "  {rate} frames/s, {frames} frames, {lost} lost; queue {used} of {}, at most {most}",
            size(now.queue_bytes)
        );
        let free = now.free_bytes.map_or_else(String::new, |bytes| format!("; {} free", size(bytes)));
        match &now.file {
            Some(file) => {
                let (bytes, began) = (size(file.bytes), since(file.since_ns));
                let _ = writeln!(out, "  writes {}: {bytes}, begun {began} ago{free}", file.name);
            }
            None => {
                let _ = writeln!(out, "  writes no file now{free}");
            }
        }
        if let Some(triggers) = &now.triggers {
            let events = counted(now.triggered_events, "event");
            let _ = writeln!(
                out,
                "  {events}, {} frames in files, {} outside; triggers: {}",
                grouped(now.frames_in_files),
                grouped(now.frames_outside),
                triggers.join("; ")
            );
        }
        if !now.trouble.is_empty() {
            let _ = writeln!(out, "  does not write: {}", now.trouble);
        }
        let width = now.buses.iter().map(|bus| bus.name.len()).max().unwrap_or_default();
        for bus in &now.buses {
            let (rate, load) = self.bus(bus);
            let load =
                load.map_or_else(String::new, |tenths| format!(", load {}.{} %", tenths / 10, tenths % 10));
            let _ = writeln!(
                out,
                "  {:<width$}  {} frames/s, {} frames{load}",
                bus.name,
                grouped(rate),
                grouped(bus.frames)
            );
        }
        out
    }
}

/// A size for people.
fn size(bytes: u64) -> String {
    match bytes {
        ..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{}.{} kB", bytes / 1_000, bytes / 100 % 10),
        1_000_000..1_000_000_000 => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
        _ => format!("{}.{} GB", bytes / 1_000_000_000, bytes / 100_000_000 % 10),
    }
}

/// A time for people: 1 d 2 h, 3 min 4 s.
fn age(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_have_two_figures_that_matter() {
        let sizes = [7, 1_250, 12_340_000, 1_999_999_999].map(size);
        assert_eq!(sizes, ["7 B", "1.2 kB", "12.3 MB", "1.9 GB"]);
        let ages = [7, 125, 3_725, 90_000].map(|seconds| age(seconds * 1_000_000_000));
        assert_eq!(ages, ["7 s", "2 min 5 s", "1 h 2 min", "1 d 1 h"]);
    }
}
