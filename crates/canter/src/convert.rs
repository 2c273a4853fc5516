//! `canter convert`: merges recordings by stamp, selects frames, renames interfaces and writes one recording or data set.
//! Output goes to a temporary file that is renamed when complete. The report lists what the format could not store.
//!
//! `input` → `merge` → `choice` → `Writer` → `report`

mod report;

use crate::{
    format_names,
    recordings::{Choice, Inputs, Merge, Selection, progress},
};
use canter_cli::{
    duration,
    failure::{self, Exit, Failure},
    options::Common,
};
use canter_formats::{Error, Format, WriteOptions, Writer, Written, Zone};
use canter_frame::BusId;
use clap::Args;
use indicatif::ProgressBar;
use report::{Bus, Report};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};
use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Frames between two checks for signals; the progress bar moves then.
const CHECK_FRAMES: u64 = 1 << 14;
/// Timeout of a signal: without a check within this time, the program ends.
const SIGNAL_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Args)]
#[command(about = format_names::conversions(), after_help = "\
Examples:
  canter convert drive.pcapng -o drive.blf           also .asc, .mf4 (ASAM bus logging), .csv, .log
  canter convert bus0.log bus1.log -o both.pcapng    merged by stamp
  canter convert drive.blf -o drive.log --interfaces can0=body    channel 1 of a BLF is can0
  canter convert drive.pcapng -o part.log --from 10m --to 12m --filter can0,123
  canter convert *.log.zst -o fleet --format parquet --vehicle V17    a data set for DuckDB
  canter convert fleet/vehicle=V17 -o v17.pcapng     all recordings of one vehicle in a data set
  canter convert drive.blf -o - --format log | canplayer vcan0=can0
  canter convert --salvage damaged.blf -o rest.blf   all that is readable, and a line that says what is missing
  canter convert drive.asc -o drive.pcapng --zone Europe/Prague    ASC and CANoe's BLF have local time
canter detects the formats of inputs by their content and decompresses .zst and .gz. docs/formats.md lists what each
format stores. Exit code 0; 3 when an input was cut off (canter converts all frames before the cut), when lengths in it
contradict each other, or when --salvage skipped damage.")]
pub struct Arguments {
    /// Recordings; a folder is a data set of Parquet; `-` is the standard input
    #[arg(value_name = "IN", required = true)]
    inputs: Vec<PathBuf>,
    #[arg(long, short, value_name = "OUT", help = format_names::output_help())]
    output: PathBuf,
    /// The format, regardless of the file's name
    #[arg(long, value_name = "FORMAT", value_parser = format_names::written())]
    format: Option<&'static Format>,
    /// Overwrite an existing file
    #[arg(long)]
    overwrite: bool,
    #[arg(long, help = format_names::ns_help())]
    ns: bool,
    /// In .log, write R or T after each frame, as candump -x does; some readers of logs reject it
    #[arg(long)]
    direction: bool,
    /// Sort frames whose stamps are out of order by up to this (dumpcap's files: up to 250ms)
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ns)]
    sort: Option<u64>,
    #[command(flatten)]
    selection: Selection,
    /// The vehicle's name: the first partition of a Parquet data set
    #[arg(long, value_name = "NAME")]
    vehicle: Option<String>,
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    let format = format(&arguments)?;
    let mut report = Report::new(&arguments.output.display().to_string(), format);
    report.zone = arguments.selection.zone.as_ref().map(Zone::to_string);
    let choice = Choice::new(&arguments.selection)?;
    let inputs = Inputs::open(&arguments.inputs, arguments.selection.opening())?;
    common.apply()?;
    let options = WriteOptions {
        format,
        path: arguments.output.clone(),
        ns: arguments.ns,
        direction: arguments.direction,
        overwrite: arguments.overwrite,
        vehicle: arguments.vehicle.clone(),
    };
    let writer = Writer::open(&options).map_err(output_failure)?;
    let progress = progress("convert", inputs.size(), common);
    let mut conversion = Conversion {
        merge: Merge::new(inputs, arguments.sort),
        choice,
        writer,
        path: &options.path,
        buses: Vec::new(),
    };
    let done = conversion.run(&progress, &mut report);
    progress.finish_and_clear();
    done?;
    conversion.choice.check(&conversion.merge, &arguments.inputs)?;
    conversion.close(&mut report, common)
}

/// The format of `--format`, or by the output's name.
fn format(arguments: &Arguments) -> failure::Result<&'static Format> {
    let path = &arguments.output;
    let usage = |reason: &str| Failure::new(Exit::Usage, format!("{}: {reason}", path.display()));
    let Some(format) = arguments.format.or_else(|| format_names::find(path, format_names::is_written)) else {
        if path.as_os_str() == "-" {
            let names = format_names::growing();
            return Err(usage(&format!(
                "the standard output has no name that tells the format (--format {names})"
            )));
        }
        let names = format_names::extensions(format_names::is_written);
        return Err(usage(&format!("unknown format (end the name in {names}, or give --format)")));
    };
    let name = format.name;
    let compressed = path.extension().is_some_and(|extension| extension == "zst");
    let stream =
        path.as_os_str() == "-" || path.metadata().is_ok_and(|about| !about.is_file() && !about.is_dir());
    if !format.grows && (compressed || stream) {
        let reason = if compressed {
            "cannot be compressed: its header is written last (leave out .zst)"
        } else {
            "cannot be written to a pipe or a device: its header is written last (give the name of a file)"
        };
        return Err(usage(&format!("{name} {reason}")));
    }
    if arguments.vehicle.is_some() && !format.writes_folder() {
        return Err(usage(&format!("{name} cannot store --vehicle (Parquet can)")));
    }
    if path.as_os_str() != "-"
        && let Some(input) = arguments.inputs.iter().find(|input| is_same_file(input, path))
    {
        return Err(usage(&format!("is also an input: {} (choose another -o)", input.display())));
    }
    Ok(format)
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other && other.is_file())
}

/// An error of the output, with the options that are the way out.
fn output_failure(error: Error) -> Failure {
    let Error::Io { thing, source, .. } = &error else { return error.into() };
    let way_out = match source.kind() {
        io::ErrorKind::AlreadyExists if source.get_ref().is_none() => {
            return Failure::failed(format!("{thing}: exists (--overwrite replaces it)"));
        }
        io::ErrorKind::AlreadyExists => " (--overwrite replaces it)",
        io::ErrorKind::StorageFull => " (nothing was written; free space, or choose another disk with -o)",
        io::ErrorKind::BrokenPipe => return Failure::closed_pipe(),
        io::ErrorKind::IsADirectory => " (only --format parquet writes into a folder)",
        _ => "",
    };
    Failure::failed(format!("{error}{way_out}"))
}

/// A flag that SIGINT and SIGTERM set. When an input or the disk blocks, so that nothing checks the flag, the program
/// ends after [`SIGNAL_TIMEOUT`].
fn watch_signals() -> failure::Result<Arc<AtomicBool>> {
    let failed = |error| Failure::failed(format!("convert: signals: {error}"));
    let stop = Arc::new(AtomicBool::new(false));
    let (set, mut signals) = (Arc::clone(&stop), Signals::new([SIGINT, SIGTERM]).map_err(failed)?);
    let watch = move || {
        if signals.forever().next().is_some() {
            set.store(true, Ordering::Relaxed);
            std::thread::sleep(SIGNAL_TIMEOUT);
            eprintln!("canter: convert: interrupted while an input or the disk did not respond");
            std::process::exit(Exit::Interrupted as i32);
        }
    };
    std::thread::Builder::new().name("canter-signals".to_owned()).spawn(watch).map_err(failed)?;
    Ok(stop)
}

/// A running conversion.
struct Conversion<'a> {
    merge: Merge,
    choice: Choice<'a>,
    writer: Writer,
    path: &'a Path,
    buses: Vec<Bus>,
}

impl Conversion<'_> {
    fn run(&mut self, progress: &ProgressBar, report: &mut Report) -> failure::Result<()> {
        let stop = watch_signals()?;
        let mut read = 0u64;
        while let Some(input) = self.merge.next()? {
            read += 1;
            if read.is_multiple_of(CHECK_FRAMES) {
                progress.set_position(self.merge.bytes());
                if stop.load(Ordering::Relaxed) {
                    let message = format!("{}: interrupted; nothing was written", self.path.display());
                    return Err(Failure::new(Exit::Interrupted, message));
                }
            }
            let chosen = self.choice.bus(input, self.merge.record(), |bus| self.merge.name(input, bus));
            let Some(bus) = chosen else { continue };
            if bus.index() == self.buses.len() {
                self.buses.push(Bus::new(self.choice.name(bus)));
                let name = self.choice.name(bus);
                self.writer.interface(name).map_err(output_failure)?;
            }
            self.merge.put_onto(bus);
            self.writer.frame(self.merge.record()).map_err(output_failure)?;
            self.buses[bus.index()].count(self.merge.record());
        }
        report.read = read;
        report.backwards = self.merge.backwards();
        Ok(())
    }

    fn close(self, report: &mut Report, common: &Common) -> failure::Result {
        let channels: Vec<Option<u32>> =
            (0..self.buses.len()).map(|bus| self.writer.channel(BusId(bus as u32))).collect();
        let written: Written = self.writer.finish().map_err(output_failure)?;
        report.close(self.merge.into_inputs().outcomes(), self.buses, &channels, &written);
        if !common.quiet {
            eprint!("{report}");
        }
        common.write_json(report)?;
        Ok(if report.is_doubtful() { Exit::Lost } else { Exit::Done })
    }
}
