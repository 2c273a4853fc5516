//! `canter replay`: sends a recording again, several buses in order, and measures timing errors.
//!
//! `recording` (files, merged) → `feed` (thread: `timeline`, assignment, filters) → `player` (thread: sends)

mod feed;
mod player;
mod recording;
mod timeline;

use crate::recordings::{Opening, TimePoint};
use canter_cli::{
    duration,
    failure::{self, Exit, Failure},
    interrupt::interrupt_flag,
    options::{Common, parse_filters},
    units,
};
use canter_formats::Zone;
use canter_io::{
    Filters,
    frame::BitRate,
    method::{Echo, TransmitMethod},
    thread::Worker,
};
use canter_route::traffic::{
    assignment::Assignment,
    sender::{Account, Setup, Table, parse_ms, parse_rate, refused_message},
};
use clap::Args;
use feed::{Feed, Plan, Tally};
use player::{Played, Player};
use recording::Recordings;
use serde::Serialize;
use std::{
    path::{Path, PathBuf},
    sync::{atomic::Ordering, mpsc},
    time::Duration,
};
use timeline::{Pace, Speed};

/// Period at which the main thread checks signals.
const CHECK_PERIOD: Duration = Duration::from_millis(10);

/// Send a recording again, several buses in order, and measure timing errors
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter replay drive.log                           to the interfaces in the recording
  canter replay drive.log vcan2=can0 vcan3=can1     canplayer's DESTINATION=SOURCE; other buses are left out
  canter replay drive.log -=can5                    all except can5
  canter replay can0.log can1.log                   several files, merged by their stamps
  canter replay drive.log --from 10s --to 20s --speed 0.5 --loop forever
  canter replay drive.log --max-error 1ms --json -  exit code 1 when a frame was more than 1 ms late
Each frame is due at an absolute time of CLOCK_MONOTONIC. Its timing error is the delay until the kernel has it; a late
frame does not delay the next one. A frame that finds no room within --wait is refused and counted; meanwhile the other
buses continue. Exit code 0; 1 beyond --max-error; 3 when frames were refused, a recording was cut off (all frames before
the cut were sent) or damaged (--salvage), or lengths in it contradict each other; 130 when interrupted.")]
pub struct Arguments {
    /// Recordings (- is the standard input), and DESTINATION=SOURCE for interfaces
    #[arg(value_name = "FILE|DEST=SOURCE", required_unless_present = "input")]
    items: Vec<String>,
    /// Recording, in canplayer's notation
    #[arg(short = 'I', long, value_name = "FILE", hide = true)]
    input: Option<PathBuf>,
    /// Multiply the recording's speed by this factor
    #[arg(long, default_value = "1", value_name = "FACTOR", conflicts_with_all = ["gap", "no_stamps"])]
    speed: Speed,
    /// Constant time between frames instead of their stamps, in ms or with a unit
    #[arg(long, short, value_name = "TIME", value_parser = parse_ms, conflicts_with = "no_stamps")]
    gap: Option<u64>,
    /// Ignore the stamps: send in order, as fast as the interfaces accept frames
    #[arg(long, short = 't')]
    no_stamps: bool,
    /// Skip pauses that are longer than this, in seconds or with a unit
    #[arg(long, short = 's', value_name = "TIME", value_parser = parse_seconds, conflicts_with_all = ["gap", "no_stamps"])]
    skip_pauses: Option<u64>,
    /// Number of rounds, or forever
    #[arg(long = "loop", short = 'l', default_value = "1", value_name = "N", value_parser = parse_rounds)]
    rounds: Rounds,
    /// Start at this time: 10m after the first frame, 2026-11-22 09:30:00 in --zone, 2026-11-22T08:30:00Z, or seconds
    /// since 1970
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    from: Option<TimePoint>,
    /// End before this time
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    to: Option<TimePoint>,
    /// Skip what is damaged in a recording and send the rest; without it, the replay ends there with an error
    #[arg(long)]
    salvage: bool,
    /// Time zone of dates that name none, in ASC and BLF: Europe/Prague, +01:00, local; UTC unless given
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    zone: Option<Zone>,
    /// Frames to send: 123, 12345678, ID:MASK, or ID~MASK (all except these), comma-separated; all unless given
    #[arg(long, short, value_name = "FILTERS", value_parser = parse_filters)]
    filter: Option<Filters>,
    /// Fail when the timing error of a frame exceeds this
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ns, conflicts_with = "no_stamps")]
    max_error: Option<u64>,
    /// Transmitter (see canter methods); write, or the interface's own, unless given
    #[arg(long, value_name = "METHOD")]
    method: Option<TransmitMethod>,
    /// Longest wait of a frame for room, in ms or with a unit
    #[arg(long, short = 'p', default_value = "1s", value_name = "TIME", value_parser = parse_ms)]
    wait: u64,
    /// Hide the frames from other programs on this machine
    #[arg(long, short = 'x')]
    no_echo: bool,
    /// Bit rates of interfaces that have none, to compute the load: 500k,2M
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    bitrate: Option<BitRate>,
}

/// Number of rounds; `None`: forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rounds(Option<u64>);

fn parse_rounds(text: &str) -> Result<Rounds, String> {
    match text.parse() {
        _ if matches!(text, "forever" | "i") => Ok(Rounds(None)),
        Ok(count @ 1..) => Ok(Rounds(Some(count))),
        _ => Err("must be a number from 1, or forever".to_owned()),
    }
}

/// A time; without a unit in seconds, as for canplayer.
fn parse_seconds(text: &str) -> Result<u64, String> {
    duration::parse_ns_or(text, "s")
}

/// The document of `--json`: `read = sent + refused + unassigned + filtered + outside + error_frames + unsent`, where sent
/// and refused are sums over all interfaces.
#[derive(Serialize)]
struct Document {
    command: String,
    files: Vec<String>,
    interrupted: bool,
    #[serde(flatten)]
    tally: Tally,
    /// Frames that were read but not sent before the end.
    unsent: u64,
    max_error_ns: Option<u64>,
    interfaces: Vec<Account>,
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    let plan = arguments.plan()?;
    let recordings = Recordings::open(&plan.files, plan.opening.clone())?;
    let stop = interrupt_flag()?;
    common.apply()?;
    let player = Player {
        method: arguments.method,
        setup: Setup {
            echo: if arguments.no_echo { Echo::Off } else { Echo::On },
            rate: arguments.bitrate,
            patience_ns: arguments.wait,
            late_ns: arguments.max_error,
        },
        prints_frames: common.verbose > 0,
    };
    let (out, chunks) = mpsc::sync_channel(feed::CHUNKS);
    let failed = |error| Failure::failed(format!("replay: start: {error}"));
    let feed = Feed::new(plan.clone(), out);
    let feed = std::thread::Builder::new().name("canter-read".to_owned()).spawn(move || feed.run(recordings));
    let feed = feed.map_err(failed)?;
    let player = Worker::start("canter-replay", move |flag| player.run(chunks, flag)).map_err(failed)?;
    while !stop.load(Ordering::Acquire) && !player.is_finished() {
        std::thread::sleep(CHECK_PERIOD);
    }
    let played = player.stop();
    // A thread that waits for the standard input does not notice that its receiver has ended.
    let (tally, unread) = if stop.load(Ordering::Acquire) && !feed.is_finished() && plan.reads_stdin() {
        (Tally { passed: played.handled, read: played.handled, ..Tally::default() }, None)
    } else {
        feed.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    };
    arguments.finish(common, &plan, tally, played, unread)
}

impl Plan {
    fn reads_stdin(&self) -> bool {
        self.files.iter().any(|path| path.as_os_str() == "-")
    }
}

impl Arguments {
    fn plan(&self) -> failure::Result<Plan> {
        let is_file = |item: &&String| !item.contains('=') || Path::new(item).exists();
        let (files, assignments): (Vec<&String>, Vec<&String>) = self.items.iter().partition(is_file);
        let files: Vec<PathBuf> =
            self.input.iter().cloned().chain(files.into_iter().map(PathBuf::from)).collect();
        let usage = |message: &str| Err(Failure::new(Exit::Usage, message));
        if files.is_empty() {
            return usage("replay: no FILE given (- is the standard input)");
        }
        let assignments: Vec<String> = assignments.into_iter().cloned().collect();
        let pace = match (self.gap, self.no_stamps) {
            (_, true) | (Some(0), _) => Pace::Flood,
            (Some(gap_ns), _) => Pace::Gap(gap_ns),
            (None, _) => Pace::Stamps { speed: self.speed, pause_ns_max: self.skip_pauses },
        };
        let plan = Plan {
            files,
            opening: Opening { salvage: self.salvage, zone: self.zone.clone() },
            assignment: Assignment::parse(&assignments)?,
            filters: self.filter.clone(),
            pace,
            from: self.from,
            to: self.to,
            rounds: self.rounds.0,
        };
        if plan.reads_stdin() && (plan.rounds != Some(1) || plan.files.len() > 1) {
            return usage("replay: -: the standard input can be read only once and not together with files");
        }
        let zone = self.zone.clone().unwrap_or_default();
        TimePoint::refuse_empty_range(self.from, self.to, &zone)?;
        Ok(plan)
    }

    /// Prints the results; decides on the exit code.
    fn finish(
        &self,
        common: &Common,
        plan: &Plan,
        tally: Tally,
        played: Played,
        unread: Option<Failure>,
    ) -> failure::Result {
        let Tally { read, passed, unassigned, filtered, outside, error_frames, .. } = tally;
        assert_eq!(
            read,
            passed + unassigned + filtered + outside + error_frames,
            "every frame that was read is counted once"
        );
        let total = |count: fn(&Account) -> u64| played.accounts.iter().map(count).sum::<u64>();
        let (sent, refused) = (total(|one| one.sent), total(|one| one.refused));
        assert_eq!(played.handled, sent + refused, "every frame that was passed on is counted once");
        let unsent = passed - played.handled;
        let failure = played.failure.or(unread);
        // A signal is the only end of --loop forever, so it does not count as an interruption.
        let interrupted = unsent > 0 && failure.is_none() && plan.rounds.is_some();
        let document = Document {
            command: std::env::args().collect::<Vec<_>>().join(" "),
            files: plan.files.iter().map(|path| path.display().to_string()).collect(),
            interrupted,
            tally,
            unsent,
            max_error_ns: self.max_error,
            interfaces: played.accounts,
        };
        if common.shows_table() && !document.interfaces.is_empty() {
            print!("{}", Table(&document.interfaces));
        }
        if !common.quiet {
            document.remarks().iter().for_each(|remark| eprintln!("replay: {remark}"));
        }
        common.write_json(&document)?;
        if let Some(failure) = failure {
            return Err(failure);
        }
        if refused > 0 {
            return Err(Failure::new(Exit::Lost, refused_message(refused)));
        }
        if interrupted {
            return Ok(Exit::Interrupted);
        }
        if sent == 0 && unsent == 0 {
            // A recording without frames is at fault, otherwise the selection.
            let exit = if document.tally.read == 0 { Exit::Failed } else { Exit::Usage };
            return Err(Failure::new(exit, document.nothing_sent(&self.items)));
        }
        // A mistyped bus name is known only after the last frame of the recording.
        plan.assignment.refuse_unknown(document.tally.buses.iter().map(String::as_str))?;
        document.refuse_late(sent)
    }
}

impl Document {
    /// Lines about everything that was not sent as recorded.
    fn remarks(&self) -> Vec<String> {
        let tally = &self.tally;
        let mut remarks = tally.notes.clone();
        let mut remark = |count: u64, text: &str| {
            if count > 0 {
                remarks.push(format!("{count} {text}"));
            }
        };
        remark(tally.unassigned, "frames not sent: their buses are not assigned (DESTINATION=SOURCE)");
        remark(tally.filtered, "frames filtered");
        remark(tally.error_frames, "error frames: not sent");
        remark(tally.oddities.clock_steps, "stamps went backwards by more than 1 s: sent on without a pause");
        remark(
            tally.oddities.out_of_order,
            "frames out of order: sent at once, in the order of the recording",
        );
        remark(tally.oddities.pauses, "pauses skipped");
        remark(if self.interrupted { self.unsent } else { 0 }, "frames not sent before the end");
        remarks
    }

    fn nothing_sent(&self, items: &[String]) -> String {
        let files = self.files.join(" ");
        let buses = &self.tally.buses;
        if buses.is_empty() {
            return format!("{files}: contains no frames");
        }
        // SOURCE=DESTINATION is a common mistake.
        let swapped = items.iter().filter_map(|item| item.split_once('=')).find(|(destination, source)| {
            buses.iter().any(|bus| bus == destination) && !buses.iter().any(|bus| bus == source)
        });
        let tip = swapped
            .map_or(String::new(), |(destination, source)| format!("; did you mean {source}={destination}?"));
        let has = buses.join(", ");
        format!("{files}: no frame of {} was selected for sending (it has {has}{tip})", self.tally.read)
    }

    /// Fails when a timing error exceeds `--max-error`.
    fn refuse_late(&self, sent: u64) -> failure::Result {
        let worst = self.interfaces.iter().map(|one| one.late_ns.max).max().unwrap_or(0);
        let late: u64 = self.interfaces.iter().map(|one| one.late).sum();
        match self.max_error_ns {
            Some(limit) if worst > limit => {
                let (worst, limit) = (units::span(worst), units::round_span(limit));
                let message = format!(
                    "timing errors up to {worst}: {late} of {sent} frames beyond --max-error {limit}"
                );
                Err(Failure::failed(message))
            }
            _ if self.tally.incomplete => Ok(Exit::Lost),
            _ => Ok(Exit::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canplayers_notation_of_rounds_and_pauses_is_read() {
        assert_eq!(parse_rounds("i"), Ok(Rounds(None)));
        assert_eq!(parse_rounds("forever"), Ok(Rounds(None)));
        assert_eq!(parse_rounds("3"), Ok(Rounds(Some(3))));
        assert!(parse_rounds("0").is_err());
        assert_eq!([parse_seconds("10"), parse_seconds("10ms")], [Ok(10_000_000_000), Ok(10_000_000)]);
    }
}
