//! `canter align`: brings a recording onto the clock of another one, by the frames that both have because both machines heard
//! the same bus.

mod matching;
mod relation;

use crate::recordings::utc;
use canter_cli::{
    failure::{self, Exit, Failure},
    options::Common,
    units::{grouped, span},
};
use canter_formats::{FORMATS, Reader, WriteOptions, Writer, by_extension};
use canter_frame::Record;
use clap::Args;
use matching::{Heard, Pair};
use relation::{Relation, Residual, Unrelated};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    str::FromStr,
};

/// The most frames of a recording: they are held in memory, 16 bytes each, and some of their runs.
const FRAMES_MAX: usize = 20_000_000;

/// Bring a recording onto the clock of another machine's that heard the same bus
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter align car.pcapng trailer.pcapng                            offset, drift and residual of the clocks
  canter align car.pcapng trailer.pcapng --bus can0=can2            can0 of the first was can2 of the second
  canter align car.pcapng trailer.pcapng -o trailer-on-car.pcapng   the second with stamps of the first's clock
  canter convert car.pcapng trailer-on-car.pcapng -o both.pcapng    both as one
Frames of the common bus tell which stamps belong together; payloads that change, such as counters, make them unique.
Exit code 0; 1 when too few frames are common or a clock was set during the recordings.")]
pub struct Arguments {
    /// The recording whose clock counts
    #[arg(value_name = "FIRST")]
    first: PathBuf,
    /// The recording that is brought onto it
    #[arg(value_name = "SECOND")]
    second: PathBuf,
    /// A bus that both heard, by its names in both; otherwise all buses whose names are equal
    #[arg(long, value_name = "NAME[=NAME]")]
    bus: Vec<BusNames>,
    /// Write the second recording with stamps of the first's clock
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    overwrite: bool,
}

/// The names of a bus in both recordings.
#[derive(Clone, Debug)]
struct BusNames(String, String);

impl FromStr for BusNames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, second) = text.split_once('=').unwrap_or((text, text));
        if first.is_empty() || second.is_empty() {
            return Err(format!("{text:?} names no bus (can0, can0=can2)"));
        }
        Ok(Self(first.to_owned(), second.to_owned()))
    }
}

/// The result.
#[derive(Serialize)]
struct Document {
    first: String,
    second: String,
    /// Frames that both have.
    common_frames: usize,
    /// What the second clock is ahead of the first at the beginning, in ns.
    ahead_ns: i64,
    /// What it gains, in parts per billion.
    drift_ppb: Option<i64>,
    residual_p50_ns: u64,
    residual_p99_ns: u64,
    residual_max_ns: u64,
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    common.apply()?;
    let Arguments { first, second, .. } = &arguments;
    let (of_first, of_second) = (heard(first)?, heard(second)?);
    let pairs = arguments.pairs(&of_first, &of_second)?;
    let names = format!("{} and {}", first.display(), second.display());
    let relation = Relation::new(&pairs).map_err(|reason| Failure::failed(match reason {
        Unrelated::TooFew(count) => format!(
            "{names}: only {count} frames are common for certain (did both hear this bus at the same time? --bus NAME=NAME)"
        ),
        Unrelated::ClockSet(at_ns) => format!(
            "{names}: a clock was set near {} of the second (cut there: canter convert --from and --to)",
            utc(at_ns)
        ),
    }))?;
    let residual = relation.residual(&pairs);
    if common.shows_table() {
        print!("{}", text(&arguments, &relation, residual, pairs.len()));
    }
    if let Some(output) = &arguments.output {
        write(second, output, arguments.overwrite, &relation)?;
    }
    common.write_json(&Document {
        first: first.display().to_string(),
        second: second.display().to_string(),
        common_frames: pairs.len(),
        ahead_ns: relation.ahead_ns(),
        drift_ppb: relation.drift_ppb(),
        residual_p50_ns: residual.p50_ns,
        residual_p99_ns: residual.p99_ns,
        residual_max_ns: residual.max_ns,
    })?;
    Ok(Exit::Done)
}

fn text(arguments: &Arguments, relation: &Relation, residual: Residual, common_frames: usize) -> String {
    let (ahead, drift) = (relation.ahead_ns(), relation.drift_ppb());
    let seconds =
        format!("{}.{:09} s", ahead.unsigned_abs() / 1_000_000_000, ahead.unsigned_abs() % 1_000_000_000);
    let way = if ahead < 0 { "behind" } else { "ahead of" };
    let drift = drift.map_or_else(|| "unknown".to_owned(), |ppb| format!("{:+.3} ppm", ppb as f64 / 1000.0));
    let Residual { p50_ns, p99_ns, max_ns } = residual;
    format!(
        "{} is {seconds} {way} {} at the beginning, drift {drift}\n\
         {} common frames; half of them within {}, 99 % within {}, all within {}\n",
        arguments.second.display(),
        arguments.first.display(),
        grouped(common_frames as u64),
        span(p50_ns),
        span(p99_ns),
        span(max_ns)
    )
}

impl Arguments {
    /// The frames that both recordings have, on all common buses, in the order of the second's stamps.
    fn pairs(
        &self,
        first: &BTreeMap<String, Vec<Heard>>,
        second: &BTreeMap<String, Vec<Heard>>,
    ) -> failure::Result<Vec<Pair>> {
        let equal = || {
            first
                .keys()
                .filter(|name| second.contains_key(*name))
                .map(|name| BusNames(name.clone(), name.clone()))
        };
        let buses: Vec<BusNames> = if self.bus.is_empty() { equal().collect() } else { self.bus.clone() };
        let names = |of: &BTreeMap<String, Vec<Heard>>| of.keys().cloned().collect::<Vec<_>>().join(", ");
        if buses.is_empty() {
            let (one, other) = (names(first), names(second));
            let message =
                format!("align: no bus has the same name in both: {one} and {other} (--bus NAME=NAME)");
            return Err(Failure::new(Exit::Usage, message));
        }
        let mut pairs = Vec::new();
        for BusNames(a, b) in buses {
            let missing = |path: &Path, name: &str, has: String| {
                Failure::new(
                    Exit::Usage,
                    format!("--bus: {}: no bus is named {name:?} (there are {has})", path.display()),
                )
            };
            let one = first.get(&a).ok_or_else(|| missing(&self.first, &a, names(first)))?;
            let other = second.get(&b).ok_or_else(|| missing(&self.second, &b, names(second)))?;
            pairs.extend(matching::pairs(one, other));
        }
        pairs.sort_by_key(|pair| pair.b_ns);
        Ok(pairs)
    }
}

/// The frames of each bus of a recording.
fn heard(path: &Path) -> failure::Result<BTreeMap<String, Vec<Heard>>> {
    let mut reader = Reader::open(path, FORMATS)?;
    let (mut buses, mut frames): (Vec<Vec<Heard>>, usize) = (Vec::new(), 0);
    while let Some(Record { stamp_ns, bus, frame, .. }) = reader.next_record()? {
        if frame.is_error() {
            continue; // of one controller, not of the bus
        }
        frames += 1;
        if frames > FRAMES_MAX {
            let message = format!(
                "{}: more than {FRAMES_MAX} frames (take a part: canter convert --to 1h)",
                path.display()
            );
            return Err(Failure::failed(message));
        }
        let mut content = DefaultHasher::new();
        (frame.can_id, frame.data(), frame.is_fd()).hash(&mut content);
        if buses.len() <= bus.index() {
            buses.resize_with(bus.index() + 1, Vec::new);
        }
        buses[bus.index()].push(Heard { content: content.finish(), stamp_ns });
    }
    Ok(reader.names().iter().cloned().zip(buses).collect())
}

/// Writes a recording with stamps of the other clock. No stamp is brought behind the one before it.
fn write(path: &Path, output: &Path, overwrite: bool, relation: &Relation) -> failure::Result<()> {
    let Some(format) = by_extension(output, FORMATS) else {
        let message = format!("{}: unknown format (end the name in .pcapng or .log)", output.display());
        return Err(Failure::new(Exit::Usage, message));
    };
    let mut reader = Reader::open(path, FORMATS)?;
    let mut writer =
        Writer::open(&WriteOptions { overwrite, ns: true, ..WriteOptions::new(format, output) })?;
    let (mut buses, mut last, mut last_before) = (0, 0, 0);
    while let Some(mut record) = reader.next_record()? {
        for name in &reader.names()[buses..] {
            writer.interface(name)?;
            buses += 1;
        }
        let stamp_ns = relation.on_first(record.stamp_ns);
        let ordered_ns = if record.stamp_ns >= last_before { stamp_ns.max(last) } else { stamp_ns };
        (last_before, last) = (record.stamp_ns, ordered_ns);
        record.stamp_ns = ordered_ns;
        writer.frame(&record)?;
    }
    writer.finish()?;
    Ok(())
}
