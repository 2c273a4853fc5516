//! `canter dump`: prints frames as candump does, each at once, from interfaces or from recordings.
//!
//! `live` (nodes) or `Selected` (recordings) → `line` → standard output

mod line;
mod live;
mod signals;

use crate::{
    databases::{Databases, Source},
    recordings::{Outcome, Selected, Selection, parse_filters},
};
use canter_cli::{
    duration,
    failure::{self, Exit, Failure},
    options::Common,
    terminal::Ink,
};
use canter_io::{Filters, Interface, InterfaceFilters, filter::EVERY_ERROR};
use clap::Args;
use line::{Printer, Shown, Stamps};
use live::Live;
use signals::Signals;
use std::{
    io::{self, BufWriter, StdoutLock, Write},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

/// Print frames as candump does: each at once, errors decoded, losses told at the end
#[derive(Args)]
#[command(
    alias = "candump",
    after_help = "\
Examples:
  canter dump any                         every interface, until Ctrl-C
  canter dump can0 can1,123,400:700       of can1 only some identifiers
  canter dump can0,0~0,#FFFFFFFF -t a     only error frames, decoded, with absolute stamps
  canter dump can0 -a -x                  as text too, and with the direction
  canter dump can0 -L > drive.log         candump's log; canter capture proves that none is missing
  canter dump drive.blf --filter 123 -t z     from a recording; --from, --to
  canter dump can0 --dbc car.dbc --filter Engine      with the signals of each frame
  canter dump can0 -n 1 -T 100ms          wait 100 ms for a frame; exit code 1 when none comes
On a terminal each identifier has a colour. Without filters canter prints error frames too, unlike candump. Exit code 0;
1 when -T ends it; 3 when frames were lost, because the terminal or the reader of the pipe was too slow."
)]
pub struct Arguments {
    /// Interfaces with candump's filters, or `any` for all; or recordings
    #[arg(value_name = "IFACE[,FILTERS]|FILE", required = true)]
    sources: Vec<String>,
    /// Stamps: absolute, as a date (UTC), since the frame before, since the first frame
    #[arg(
        long,
        short = 't',
        value_enum,
        value_name = "a|A|d|z",
        default_value = "none",
        hide_default_value = true
    )]
    stamps: Stamps,
    /// Print the data as text too
    #[arg(long, short)]
    ascii: bool,
    /// Print the direction (RX, TX) and the flags BRS and ESI
    #[arg(long, short = 'x')]
    extra: bool,
    /// Print lines of candump's log
    #[arg(long, short = 'L', conflicts_with_all = ["ascii", "stamps", "dbc"])]
    log: bool,
    /// Stamps of 9 digits instead of 6
    #[arg(long, short = 'N')]
    ns: bool,
    /// Use the controller's own stamps, where it has them
    #[arg(long, short = 'H')]
    hw_stamps: bool,
    /// End after this number of frames
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after this time without a frame, in ms or with a unit
    #[arg(long, short = 'T', value_name = "TIME", value_parser = parse_ms)]
    timeout: Option<u64>,
    /// Colour each identifier, also in a pipe
    #[arg(long, short)]
    colour: bool,
    /// candump's options for what canter always does: losses, errors decoded, an interface that goes down
    #[arg(short = 'd', short_aliases = ['e', 'D'], action = clap::ArgAction::Count, hide = true)]
    _always: u8,
    /// Print the message and its signals behind each frame: a DBC file for all buses, or for one; repeatable
    #[arg(long, value_name = "[IFACE=]FILE")]
    dbc: Vec<Source>,
    #[command(flatten)]
    selection: Selection,
}

fn parse_ms(text: &str) -> Result<u64, String> {
    duration::parse_ns_or(text, "ms")
}

/// What the arguments name.
enum Sources {
    Interfaces(Vec<InterfaceFilters>),
    Recordings(Vec<PathBuf>),
}

pub fn run(mut arguments: Arguments, common: &Common) -> failure::Result {
    if common.json.is_some() {
        let message = "dump: --json: frames have no document (canter dump -L prints a log, canter info --json a summary)";
        return Err(Failure::new(Exit::Usage, message));
    }
    let databases = Databases::open_with_remarks(&arguments.dbc, common.quiet)?;
    arguments.selection.resolve(&databases)?;
    let ink = if arguments.colour { Ink::always() } else { Ink::for_stdout() };
    let shown = Shown {
        stamps: arguments.stamps,
        ascii: arguments.ascii,
        extra: arguments.extra,
        log: arguments.log,
        ns: arguments.ns,
    };
    let mut output = Output {
        out: BufWriter::new(io::stdout().lock()),
        printer: Printer::new(shown, ink),
        signals: (!databases.is_empty()).then(|| Signals::new(&databases)),
        left: arguments.count,
        quiet: common.quiet,
    };
    match arguments.sources()? {
        Sources::Recordings(paths) => arguments.recorded(&paths, common, &mut output),
        Sources::Interfaces(interfaces) => {
            let mut live = Live::open(&interfaces, arguments.hw_stamps)?;
            common.apply()?;
            live.run(&mut output, arguments.timeout)
        }
    }
}

/// Where lines go.
struct Output<'a> {
    out: BufWriter<StdoutLock<'static>>,
    printer: Printer,
    /// What decodes frames; `None` without databases.
    signals: Option<Signals<'a>>,
    /// Frames to print before the end; `None`: no end.
    left: Option<u64>,
    quiet: bool,
}

impl Output<'_> {
    /// Prints a frame. It ends when the reader has closed the pipe, or enough frames are printed.
    fn frame(&mut self, line: &line::Line<'_>) -> failure::Result<ControlFlow<()>> {
        let signals = self.signals.as_mut().map(|signals| signals.text(line.interface, line.frame));
        if !self.quiet
            && let Err(error) =
                self.printer.print(&mut self.out, line, signals.as_deref().unwrap_or_default())
        {
            return closed(error);
        }
        self.left = self.left.map(|left| left - 1);
        Ok(if self.left == Some(0) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Hands all printed lines to the reader.
    fn flush(&mut self) -> failure::Result<ControlFlow<()>> {
        self.out.flush().map_or_else(closed, |()| Ok(ControlFlow::Continue(())))
    }
}

/// A reader that has closed the pipe, such as `head`, ends the command without an error.
fn closed(error: io::Error) -> failure::Result<ControlFlow<()>> {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Ok(ControlFlow::Break(()));
    }
    Err(Failure::failed(format!("standard output: write: {error}")))
}

impl Arguments {
    /// Tells interfaces from recordings: an argument that is a file or a folder is a recording.
    fn sources(&self) -> failure::Result<Sources> {
        let is_recording = |text: &&String| {
            let about = Path::new(text.as_str()).metadata();
            text.as_str() == "-" || about.is_ok_and(|about| about.is_file() || about.is_dir())
        };
        let (files, names): (Vec<&String>, Vec<&String>) = self.sources.iter().partition(is_recording);
        match (files.is_empty(), names.first()) {
            (false, None) => Ok(Sources::Recordings(files.iter().map(PathBuf::from).collect())),
            (false, Some(name)) if looks_like_file(name) => {
                Err(Failure::failed(format!("{name}: open: no such file or directory")))
            }
            (false, Some(name)) => {
                let message =
                    format!("{name}: dump: an interface beside a recording (give one or the other)");
                Err(Failure::new(Exit::Usage, message))
            }
            (true, _) => Ok(Sources::Interfaces(self.interfaces(&names)?)),
        }
    }

    fn interfaces(&self, names: &[&String]) -> failure::Result<Vec<InterfaceFilters>> {
        if let Some(option) = self.recordings_option() {
            let message = format!("{option}: is for recordings, and {} is none", names[0]);
            return Err(Failure::new(Exit::Usage, message));
        }
        let read = |name: &&String| match InterfaceFilters::parse(name) {
            Ok(one) if looks_like_file(&one.interface) => {
                Err(Failure::failed(format!("{name}: open: no such file or directory")))
            }
            Err(_) if looks_like_file(name) => {
                Err(Failure::failed(format!("{name}: open: no such file or directory")))
            }
            _ if is_filter(name) => {
                let message = format!("{name}: is a filter without an interface (any,{name})");
                Err(Failure::new(Exit::Usage, message))
            }
            Ok(one) => Ok(one),
            Err(error) => Err(Failure::new(Exit::Usage, format!("{name}: {error}"))),
        };
        let mut interfaces = names.iter().map(read).collect::<failure::Result<Vec<_>>>()?;
        for one in &mut interfaces {
            for extra in self.selection.filters()? {
                if extra.interface == "any" || extra.interface == one.interface {
                    one.filters.list.extend_from_slice(&extra.filters.list);
                    one.filters.error_mask |= extra.filters.error_mask;
                }
            }
            // As with canter capture, no filter means everything, errors too.
            if one.filters == Filters::default() {
                one.filters.error_mask = EVERY_ERROR;
            }
        }
        Ok(interfaces)
    }

    /// An option that has no effect on interfaces.
    fn recordings_option(&self) -> Option<&'static str> {
        let Selection { interfaces, from, to, zone, salvage, .. } = &self.selection;
        match () {
            () if !interfaces.is_empty() => Some("--interfaces"),
            () if from.is_some() => Some("--from"),
            () if to.is_some() => Some("--to"),
            () if zone.is_some() => Some("--zone"),
            () if *salvage => Some("--salvage"),
            () => None,
        }
    }

    fn recorded(&self, paths: &[PathBuf], common: &Common, output: &mut Output<'_>) -> failure::Result {
        // A progress bar would stand between the lines.
        let common = Common { quiet: true, ..common.clone() };
        let mut frames = Selected::open("dump", paths, &self.selection, &common)?;
        while frames.next()? {
            let record = frames.record();
            let line = line::Line {
                interface: frames.name(record.bus),
                frame: &record.frame,
                stamp_ns: record.stamp_ns,
                direction: record.direction,
            };
            if output.frame(&line)?.is_break() {
                output.flush().map(drop)?;
                return Ok(Exit::Done); // the rest is not read, so nothing is known of it
            }
        }
        output.flush().map(drop)?;
        let ending = frames.finish()?;
        ending.remarks.iter().for_each(|remark| eprintln!("dump: {remark}"));
        if output.signals.as_ref().is_some_and(Signals::are_unknown) {
            eprintln!("dump: the databases know no frame: wrong database?");
        }
        Ok(if ending.outcomes.iter().any(Outcome::is_doubtful) { Exit::Lost } else { Exit::Done })
    }
}

/// Whether a name is rather a filter: none of an interface.
fn is_filter(name: &str) -> bool {
    parse_filters(name).is_ok_and(|one| one.interface == "any" && !name.starts_with("any"))
        && Interface::find(name).is_err()
}

/// Whether a name is rather that of a file than of an interface: no error should then speak of interfaces.
fn looks_like_file(name: &str) -> bool {
    let is_device = name.starts_with("/dev/") || name.starts_with("sim:");
    !is_device
        && (name.contains('/') || canter_formats::by_extension(name, canter_formats::FORMATS).is_some())
}
