//! `canter wire source`: traffic that the kernel sends, driven by a high-resolution timer.

use canter_cli::{
    duration,
    failure::{self, Exit, Failure},
    interrupt::interrupt_flag,
    options::Common,
    trouble,
    units::us,
};
use canter_io::{
    Frame, LogLine, clock,
    frame::BitRate,
    netlink::wire::{self, Random, Source},
};
use canter_route::{canwire, traffic::pattern::Traffic};
use clap::{Args, Subcommand, ValueEnum};
use std::path::{Path, PathBuf};

/// Send traffic from the kernel: a schedule without the jitter of a process
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter wire source start A --frame 123#11223344 --traffic period=10ms
  canter wire source start A --frame 123#1122 --traffic load=50% --count 10000 --number --wait
  canter wire source start A --traffic flood --random all --seed 7 --count 10000
  canter wire source start A --traffic period=5ms --burst 6      overflow a small FIFO
  canter wire source start A --log drive.log                     send a recording, at its times
  canter wire source stop A
The source is another controller on its bus: it takes part in arbitration and acknowledges frames.")]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Start the source
    Start(Box<StartArguments>),
    /// Stop the source: a frame on the wire is completed, waiting frames are not sent
    Stop {
        #[arg(value_name = "BUS")]
        bus: String,
    },
}

#[derive(Args)]
struct StartArguments {
    #[arg(value_name = "BUS")]
    bus: String,
    /// The frame, in cansend's notation
    #[arg(long, value_name = "FRAME", default_value = "123#0000")]
    frame: Frame,
    /// When frames start: period=120us, load=50%, flood (a frame is always ready)
    #[arg(long, value_name = "T", default_value = "flood")]
    traffic: Traffic,
    /// Frames at each start, back to back
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    burst: u32,
    /// Delay each start by a random time up to this
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ns, default_value = "0ns")]
    jitter: u64,
    /// Number of frames; with --log, number of rounds [default: until stopped; one round of a log]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
    /// Number the frames in their first two bytes, low byte first
    #[arg(long)]
    number: bool,
    /// Parts of the frame that are random
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    random: Vec<RandomName>,
    /// Seed of the random numbers, so that they repeat
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seed: Option<u64>,
    /// Bit rate in bit/s; that of the first node that is up unless given
    #[arg(long, value_name = "RATE")]
    bitrate: Option<u32>,
    /// Bit rate of the data phase in bit/s
    #[arg(long, value_name = "RATE", requires = "bitrate")]
    dbitrate: Option<u32>,
    /// Send a recording of candump -l or canter capture, at its times
    #[arg(long, value_name = "FILE", conflicts_with_all = ["frame", "traffic", "burst", "jitter", "number", "random"])]
    log: Option<PathBuf>,
    /// With --log: send only the frames of this interface
    #[arg(long, value_name = "INTERFACE", requires = "log")]
    from: Option<String>,
    /// Return when all frames have been sent
    #[arg(long)]
    wait: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RandomName {
    Id,
    Format,
    Len,
    Data,
    All,
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    match arguments.action {
        Action::Start(start) => start.run(common),
        Action::Stop { bus } => {
            wire::stop(&bus)?;
            Ok(Exit::Done)
        }
    }
}

impl StartArguments {
    fn run(&self, common: &Common) -> failure::Result {
        if self.wait && self.count.is_none() && self.log.is_none() {
            let message = "--wait: the source never ends (limit it with --count)";
            return Err(Failure::new(Exit::Usage, message));
        }
        match &self.log {
            Some(path) => {
                wire::load(&self.bus, &schedule(path, self.from.as_deref())?)?;
                wire::start_schedule(&self.bus, Some(self.count.unwrap_or(1)), 0)?;
            }
            None => wire::start(&self.bus, &self.source()?)?,
        }
        if !self.wait {
            return Ok(Exit::Done);
        }
        wait(&self.bus, common)
    }

    fn source(&self) -> failure::Result<Source> {
        let (pace, burst) = canwire::pace(self.traffic)?.ok_or_else(|| {
            Failure::new(
                Exit::Usage,
                "--traffic one-at-a-time: a source does not receive frames (period=…, load=…, flood)",
            )
        })?;
        let is_random = |name| self.random.contains(&name) || self.random.contains(&RandomName::All);
        let random = Random {
            id: is_random(RandomName::Id),
            format: is_random(RandomName::Format),
            len: is_random(RandomName::Len),
            data: is_random(RandomName::Data),
            seed: self.seed,
        };
        Ok(Source {
            frame: self.frame,
            pace,
            jitter_ns: self.jitter,
            burst: burst.max(self.burst),
            count: self.count,
            number: self.number,
            random,
            delay_ns: None,
            rate: self.bitrate.map(|nominal| BitRate { nominal, data: self.dbitrate.unwrap_or(nominal) }),
        })
    }
}

/// Period at which `--wait` checks whether the source has ended.
const CHECK_PERIOD_NS: u64 = 5_000_000;

fn wait(bus: &str, common: &Common) -> failure::Result {
    let stop = interrupt_flag()?;
    loop {
        let source = wire::bus(bus)?.source;
        if !source.running {
            if common.shows_table() {
                let waited_us = us(source.waited_ns_max);
                println!(
                    "{} frames sent, {} attempts failed; {} waited for the wire, at most {waited_us:.1} µs",
                    source.sent, source.errors, source.waited
                );
            }
            return Ok(Exit::Done);
        }
        if stop.load(std::sync::atomic::Ordering::Acquire) {
            wire::stop(bus)?;
            return Ok(Exit::Interrupted);
        }
        clock::sleep_until_ns(clock::monotonic_ns() + CHECK_PERIOD_NS);
    }
}

/// The frames of a log with their times since the first one, without error frames, which cannot be sent.
fn schedule(path: &Path, from: Option<&str>) -> failure::Result<Vec<(u64, Frame)>> {
    let text = trouble::read_text(path)?;
    let mut frames = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let failure = |error: String| {
            Failure::failed(format!(
                "{}: line {}: {error} (the file must be a log in the format of candump -l)",
                path.display(),
                number + 1
            ))
        };
        let Some(line) = LogLine::parse(line).map_err(|error| failure(error.to_string()))? else { continue };
        if line.frame.is_error() || from.is_some_and(|from| from != line.interface) {
            continue;
        }
        frames.push((line.stamp_ns, line.frame));
    }
    let Some(&(first_ns, _)) = frames.first() else {
        let interface = from.map(|from| format!(" of {from}")).unwrap_or_default();
        return Err(Failure::failed(format!("{}: contains no frames{interface}", path.display())));
    };
    frames.sort_by_key(|(stamp_ns, _)| *stamp_ns);
    for (at_ns, _) in &mut frames {
        *at_ns = at_ns.saturating_sub(first_ns);
    }
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn log(lines: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(lines.as_bytes()).unwrap();
        file
    }

    #[test]
    fn a_log_becomes_a_schedule_that_starts_with_its_first_frame() {
        let file = log("(100.000001) can0 123#11\n(100.000003) can1 124#\n(100.000002) can0 20000004#00\n(100.5) can0 125#R\n"
            .replace("(100.5)", "(100.500000)").as_str());
        let frames = schedule(file.path(), None).unwrap_or_else(|failure| panic!("{failure}"));
        let times: Vec<_> = frames.iter().map(|(at_ns, frame)| (*at_ns, frame.to_string())).collect();
        assert_eq!(times, [(0, "123#11".into()), (2_000, "124#".into()), (499_999_000, "125#R".into())]);
        let only = schedule(file.path(), Some("can1")).unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(only.len(), 1);
        assert!(schedule(file.path(), Some("can7")).unwrap_err().message.contains("no frames of can7"));
    }

    #[test]
    fn a_line_that_is_not_of_a_log_is_reported_with_its_number() {
        let file = log("(100.000001) can0 123#11\n(oops) can0 123#\n");
        assert!(schedule(file.path(), None).unwrap_err().message.contains("line 2"));
    }
}
