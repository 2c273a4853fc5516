//! `canter analyze`: shows or records the frames of a virtual wire from its tap, each with its start and end in ns, errors,
//! and the load of the bus. Reading the tap does not disturb the bus.

mod line;
mod load;
mod recording;
mod summary;

use crate::format_names;
use canter_cli::{
    duration,
    failure::{self, Exit, Failure},
    interrupt::interrupt_flag,
    options::Common,
    trouble,
};
use canter_io::{
    clock,
    netlink::wire as netlink,
    tap::{Record, Tap},
};
use canter_route::canwire;
use clap::Args;
use line::Names;
use load::Load;
use recording::Recording;
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    sync::atomic::Ordering,
};
use summary::Summary;

/// Show or record each frame on a virtual wire: start, end, errors, load
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter analyze wcan0                          every frame: start, end, bits, sender
  canter analyze A --load 1s --duration 10s     the bus's load, second by second
  canter analyze wcan0 --count 1000 --quiet --json -      the summary only
  canter analyze wcan0 -o drive.pcapng          for Wireshark, stamped at the end of each frame; errors too
Times are the wire's own, in CLOCK_MONOTONIC: 3 nominal bits between two frames of a busy bus.
SIGINT and SIGTERM end it. Exit code 0; 3 when canter read too slowly and missed frames.")]
pub struct Arguments {
    /// A node of the bus, or the bus itself
    #[arg(value_name = "NODE|BUS")]
    node_or_bus: String,
    /// Record into FILE (.pcapng or .log) instead of printing the frames
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Instead of the frames, print load, frames and errors of each interval of this length
    #[arg(long, value_name = "TIME", value_parser = interval)]
    load: Option<u64>,
    /// End after this number of frames and errors
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ns)]
    duration: Option<u64>,
}

/// Longest wait for frames before a check of signals and of the time.
const CHECK_PERIOD_NS: u64 = 50_000_000;

fn interval(text: &str) -> Result<u64, String> {
    match duration::parse_ns(text)? {
        ns if ns < 1_000_000 => Err("must be at least 1ms".to_owned()),
        ns => Ok(ns),
    }
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    let name = &arguments.node_or_bus;
    let bus = canwire::bus_of(name).map_err(|error| {
        if !Path::new(name).is_file() {
            return error;
        }
        let reason = "is a file, and analyze reads a virtual bus";
        let way_out = format!("canter convert {name} -o - --format log prints a recording");
        Failure::new(Exit::Usage, format!("{name}: {reason} ({way_out})"))
    })?;
    let recording = arguments.output.as_deref().map(|path| {
        let names = format_names::extensions(format_names::is_live);
        let usage = format!("{}: unknown format (end the name in {names})", path.display());
        // This recording is not compressed.
        let format = Some(path).filter(|path| path.extension().is_none_or(|end| end != "zst"));
        let format = format.and_then(|path| format_names::find(path, format_names::is_live));
        let append = format.and_then(|format| format.append);
        let append = append.ok_or_else(|| Failure::new(Exit::Usage, usage))?;
        Recording::create(path, append(true))
    });
    let stop = interrupt_flag()?;
    let tap = Tap::open(&bus)?;
    common.apply()?;
    let start_ns = clock::monotonic_ns();
    let about = netlink::bus(&bus)?;
    let mut analyzer = Analyzer {
        recording: recording.transpose()?,
        load: arguments.load.map(|ns| Load::new(start_ns, ns)),
        summary: Summary::new(&bus, start_ns, &about),
        names: Names::read(&bus)?,
        prints: common.shows_table(),
        tap,
    };
    if analyzer.prints && analyzer.recording.is_none() {
        eprintln!("analyze: bus {bus}, {}", line::rates(&about));
    }
    let end_ns = arguments.duration.map_or(u64::MAX, |ns| start_ns.saturating_add(ns));
    let count = arguments.count.unwrap_or(u64::MAX);
    while !stop.load(Ordering::Acquire)
        && analyzer.summary.records() < count
        && clock::monotonic_ns() < end_ns
    {
        if !analyzer.read(count, end_ns)? {
            break;
        }
    }
    analyzer.finish(common)
}

/// The tap and all outputs.
struct Analyzer {
    tap: Tap,
    recording: Option<Recording>,
    load: Option<Load>,
    summary: Summary,
    names: Names,
    prints: bool,
}

impl Analyzer {
    /// Handles all frames in the tap, then waits for the next one, at most [`CHECK_PERIOD_NS`]. Returns false when the bus
    /// was deleted or the reader of the standard output has closed it.
    fn read(&mut self, count: u64, end_ns: u64) -> failure::Result<bool> {
        let mut out = io::stdout().lock();
        let mut text = String::new();
        while self.summary.records() < count {
            let Some(record) = self.tap.next_record() else { break };
            if record.sof_ns >= end_ns {
                break;
            }
            self.take(&record, &mut text)?;
            if text.len() > 1 << 14 && !write(&mut out, &mut text)? {
                return Ok(false);
            }
        }
        if let (Some(load), true) = (&mut self.load, self.prints) {
            load.print_finished(clock::monotonic_ns(), &mut text);
        }
        if !write(&mut out, &mut text)? {
            return Ok(false);
        }
        let left_ns = end_ns.saturating_sub(clock::monotonic_ns()).min(CHECK_PERIOD_NS);
        if self.summary.records() < count {
            let waited = self.tap.wait(Some(left_ns));
            waited.map_err(|error| Failure::failed(format!("bus {}: wait: {error}", self.tap.bus())))?;
        }
        Ok(!self.tap.is_gone())
    }

    fn take(&mut self, record: &Record, text: &mut String) -> failure::Result<()> {
        self.summary.count(record);
        let sender = self.names.sender(record);
        if let Some(recording) = &mut self.recording {
            recording.write(record, &sender)?;
        }
        match &mut self.load {
            Some(load) => load.add(record, self.summary.interframe_ns()),
            None if self.prints && self.recording.is_none() => line::print(record, &sender, text),
            None => {}
        }
        Ok(())
    }

    fn finish(mut self, common: &Common) -> failure::Result {
        let end_ns = clock::monotonic_ns();
        let report = self.summary.report(end_ns, self.tap.stats(), self.tap.missed());
        if let Some(recording) = self.recording.take() {
            recording.close(&report)?;
        }
        common.write_json(&report)?;
        if self.prints {
            let text = report.to_string(); // one write, so that output of other processes does not split it
            eprintln!("analyze: {text}");
        }
        Ok(if report.missed > 0 { Exit::Lost } else { Exit::Done })
    }
}

/// Writes and empties `text`; false when the reader has closed the pipe.
fn write(out: &mut impl Write, text: &mut String) -> failure::Result<bool> {
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    text.clear();
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(trouble::file_failure("standard output".as_ref(), "write", error)),
        Ok(()) => Ok(true),
    }
}
