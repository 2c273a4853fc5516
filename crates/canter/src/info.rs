//! `canter info`: what is in a recording: buses, load, errors, and for each identifier its period and its gaps.
//!
//! `Selected` (frames) → `census` → `summary`, `document` or `comparison`

mod census;
mod comparison;
mod document;
mod names;
mod order;
mod summary;

use crate::{
    databases::{Databases, Source},
    recordings::{Ending, Outcome, Selected, Selection},
};
use canter_cli::{
    failure::{self, Exit, Failure},
    options::Common,
    terminal::Ink,
};
use canter_io::frame::BitRate;
use canter_route::traffic::sender::parse_rate;
use census::Census;
use clap::Args;
use comparison::Comparison;
use document::Document;
use names::Names;
use order::{Sort, sorted};
use std::{path::PathBuf, str::FromStr};
use summary::{Summary, terminal_columns};

/// Show what is in recordings: buses, load, errors; for each identifier period, jitter, gaps, missing frames
#[derive(Args)]
#[command(aliases = ["show", "stat"], after_help = "\
Examples:
  canter info drive.blf                    any format that canter reads
  canter info drive.mf4 --sort missing     the identifiers that lack most first
  canter info logs/                        all recordings of a folder, as one
  canter info drive.log --bitrate 500k     load in %, in exact bits
  canter info drive.log --filter can0 --from 10m --to 12m
  canter info drive.log --dbc car.dbc      with the names of messages
  canter info --compare old.blf new.blf    identifiers and periods that changed
  canter info drive.log --json -           for a script
period: the median time between frames. jitter: between the times that 5 % and 95 % do not exceed. missing: frames that a
steady period lacks; – where frames come at no steady period. longest: the longest time between two frames. changing: the
bytes that change. A bus that is silent for a second pauses, and a pause is no missing frame. Exit code 0; with --compare
1 when there are differences; 3 when a recording was cut off or damaged.")]
pub struct Arguments {
    /// Recordings; a folder stands for all recordings in it; `-` is the standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Compare two recordings: identifiers new and vanished, periods and lengths changed
    #[arg(long)]
    compare: bool,
    /// Periods that change by more are a difference, in percent
    #[arg(long, value_name = "PERCENT", default_value = "10", value_parser = parse_percent, requires = "compare")]
    max_change: f64,
    /// Sort key of the identifiers
    #[arg(long, short, value_enum, default_value = "bus", value_name = "KEY")]
    sort: Sort,
    /// Reverse the order of the identifiers
    #[arg(long, short)]
    reverse: bool,
    /// Bit rate of the buses, or of one of them, for the load in percent: 500k, 500k,2M, can0=500k; repeatable
    #[arg(long, value_name = "[IFACE=]RATE")]
    bitrate: Vec<Rate>,
    /// Names of messages: a DBC file for all buses, or for one; repeatable
    #[arg(long, value_name = "[IFACE=]FILE")]
    dbc: Vec<Source>,
    #[command(flatten)]
    selection: Selection,
}

/// A bit rate, and the bus that it is for; `None`: all others.
#[derive(Clone, Debug)]
struct Rate(Option<String>, BitRate);

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((bus, rate)) => Ok(Self(Some(bus.to_owned()), parse_rate(rate)?)),
            None => Ok(Self(None, parse_rate(text)?)),
        }
    }
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse::<f64>().ok();
    number
        .filter(|percent| percent.is_finite() && *percent >= 0.0)
        .ok_or_else(|| format!("{text:?} is not a percentage (10)"))
}

pub fn run(mut arguments: Arguments, common: &Common) -> failure::Result {
    arguments.selection.renames_elsewhere = arguments.compare;
    let databases = Databases::open_with_remarks(&arguments.dbc, common.quiet)?;
    arguments.selection.resolve(&databases)?;
    if arguments.compare {
        arguments.comparison(&databases, common)
    } else {
        arguments.information(&databases, common)
    }
}

impl Arguments {
    /// Reads recordings into a census.
    fn census(&self, paths: &[PathBuf], common: &Common) -> failure::Result<(Census, Ending)> {
        let mut frames = Selected::open("info", paths, &self.selection, common)?;
        let mut census = Census::default();
        while frames.next()? {
            let record = frames.record();
            if record.bus.index() == census.buses.len() {
                let name = frames.name(record.bus);
                census.add_bus(name, self.rate(name));
            }
            census.count(record);
        }
        census.finish();
        let names = frames.names();
        let ending = frames.finish()?;
        self.refuse_unknown_bus(&names)?;
        Ok((census, ending))
    }

    fn rate(&self, bus: &str) -> Option<BitRate> {
        let wanted = |name: Option<&str>| self.bitrate.iter().find(|Rate(bus, _)| bus.as_deref() == name);
        wanted(Some(bus)).or_else(|| wanted(None)).map(|Rate(_, rate)| *rate)
    }

    /// Refuses a bit rate of a bus that the recordings do not have.
    fn refuse_unknown_bus(&self, names: &[String]) -> failure::Result<()> {
        let named = self.bitrate.iter().filter_map(|Rate(bus, _)| bus.as_ref());
        let Some(unknown) = named.into_iter().find(|bus| !names.contains(bus)) else { return Ok(()) };
        let message = format!("--bitrate: no bus is named {unknown:?} (there are {})", names.join(", "));
        Err(Failure::new(Exit::Usage, message))
    }

    fn information(&self, databases: &Databases, common: &Common) -> failure::Result {
        let (census, mut ending) = self.census(&self.files, common)?;
        let names = Names::new(databases, &census);
        ending.remarks.extend(names.remark(&census));
        let rows = sorted(&census, self.sort, self.reverse);
        let doubtful = ending.outcomes.iter().any(Outcome::is_doubtful);
        if common.shows_table() {
            let summary = Summary {
                title: self.title(&ending.outcomes),
                census: &census,
                names: &names,
                rows: rows.clone(),
                remarks: &ending.remarks,
                outcomes: &ending.outcomes,
                columns: terminal_columns(),
                ink: Ink::for_stdout(),
            };
            print!("{}", summary.text());
        }
        common.write_json(&Document::new(&census, &names, &rows, ending))?;
        Ok(if doubtful { Exit::Lost } else { Exit::Done })
    }

    /// The name of the recordings, with their formats.
    fn title(&self, outcomes: &[Outcome]) -> String {
        match (&self.files[..], outcomes) {
            ([path], [one]) => format!("{} ({})", path.display(), one.format),
            ([path], _) => format!("{} ({} recordings)", path.display(), outcomes.len()),
            _ => format!("{} recordings", outcomes.len()),
        }
    }

    fn comparison(&self, databases: &Databases, common: &Common) -> failure::Result {
        let [before, after] = &self.files[..] else {
            let message =
                "--compare: give two recordings or two folders (canter info --compare old.blf new.blf)";
            return Err(Failure::new(Exit::Usage, message));
        };
        let (old, first) = self.census(std::slice::from_ref(before), common)?;
        let (new, second) = self.census(std::slice::from_ref(after), common)?;
        let names = [&first.names[..], &second.names].concat();
        self.selection.refuse_unknown_renames("--compare", &names)?;
        let mut comparison = Comparison::new(&old, &new, self.max_change);
        comparison.name_messages(databases);
        if comparison.common == 0 && !old.rows.is_empty() && !new.rows.is_empty() {
            let names = |census: &Census| {
                census.buses.iter().map(|bus| bus.name.clone()).collect::<Vec<_>>().join(", ")
            };
            eprintln!(
                "canter: --compare: no identifier of {} is in {}; their buses are {} and {} (--interfaces OLD=NEW \
                 renames a bus)",
                before.display(),
                after.display(),
                names(&old),
                names(&new)
            );
        }
        if common.shows_table() {
            print!("{}", comparison.text(Ink::for_stdout()));
        }
        if !common.quiet {
            first.remarks.iter().chain(&second.remarks).for_each(|remark| eprintln!("info: {remark}"));
        }
        common.write_json(&comparison)?;
        let mut outcomes = first.outcomes.iter().chain(&second.outcomes);
        Ok(match () {
            () if !comparison.differences.is_empty() => Exit::Failed,
            () if outcomes.any(Outcome::is_doubtful) => Exit::Lost,
            () => Exit::Done,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_rate_is_for_all_buses_or_for_one() {
        let rates = ["can0=500k", "1M"].map(|text| text.parse::<Rate>().unwrap());
        assert_eq!(rates[0].0.as_deref(), Some("can0"));
        assert_eq!((rates[0].1.nominal, rates[1].1.nominal), (500_000, 1_000_000));
        assert!("can0=fast".parse::<Rate>().is_err());
    }
}
