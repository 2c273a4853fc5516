//! The delay of a gateway from a recording of both of its buses, without sending a frame: by the stamps of the same frame on
//! either bus. The first reading finds the direction of each identifier, the second one the longest delay of the gateway. The
//! third reading takes that delay as the bound, so that each of several like frames has one partner.

use super::{
    runs::{Found, Runs, Tally},
    stamps::{Clock, Delays, Stamp, Stamps},
};
use crate::recordings::{Ending, Selected, Selection};
use canter_cli::{
    duration,
    failure::{self, Exit, Failure},
    options::Common,
};
use canter_frame::{BitRate, Frame};
use canter_io::{Batch, Meta};
use canter_route::{
    rules::{Policy, engine::Engine, read},
    traffic::sender::parse_rate,
};
use clap::Args;
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

/// The bound of the other readings, unless `--max-delay` gives it.
const DELAY_MAX_NS: u64 = 1_000_000_000;
/// The bound of the last reading, as a multiple of the longest delay of the one before.
const MARGIN: u64 = 2;

/// Both buses, in a program without the laboratory.
#[cfg(not(feature = "lab"))]
#[derive(Args)]
pub struct Ends {
    /// Bus in front of the gateway
    #[arg(long, value_name = "INTERFACE", required = true)]
    direct: Option<String>,
    /// Bus behind the gateway
    #[arg(long, value_name = "INTERFACE", required = true)]
    routed: Option<String>,
    /// Rules by which the gateway changes or drops frames
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
}

/// Refuses options that have no effect without a recording.
#[cfg(feature = "lab")]
pub fn refuse_options(given: &clap::ArgMatches) -> failure::Result<()> {
    let options = Recorded::augment_args(clap::Command::default());
    let is_given = |option: &&clap::Arg| {
        given.value_source(option.get_id().as_str()) == Some(clap::parser::ValueSource::CommandLine)
    };
    let Some(option) = options.get_arguments().find(is_given) else { return Ok(()) };
    let name = option.get_long().unwrap_or_default();
    let message = format!("--{name}: is for recordings, and none is given");
    Err(Failure::new(Exit::Usage, message))
}

/// The options of a recording.
#[derive(Args)]
#[command(next_help_heading = "From a recording")]
pub struct Recorded {
    /// Recordings of both buses: --direct and --routed are their names in them
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Stamps that the delay is the difference of; aligned unless given, where both controllers stamped every frame
    #[arg(long, value_enum, value_name = "WHICH")]
    pub stamps: Option<Stamps>,
    /// Frames that take longer count as lost; twice the longest delay found unless given
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ns)]
    max_delay: Option<u64>,
    /// Bit rate of the routed bus: the frame's time on it is no delay then
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub bitrate: Option<BitRate>,
    #[command(flatten)]
    selection: Selection,
}

/// Both buses of a gateway, and its rules.
pub struct Gateway {
    pub direct: String,
    pub routed: String,
    pub policy: Option<Policy>,
}

impl Gateway {
    /// # Errors
    /// When a bus is not given, or the rule file has no rules for this direction.
    pub fn new(
        direct: Option<String>,
        routed: Option<String>,
        rules: Option<&Path>,
    ) -> failure::Result<Self> {
        let usage = |message: String| Failure::new(Exit::Usage, message);
        let missing = |name: &str| {
            usage(format!("{name}: give the bus {name} of the gateway (canter info lists them)"))
        };
        let direct = direct.ok_or_else(|| missing("--direct"))?;
        let routed = routed.ok_or_else(|| missing("--routed"))?;
        if direct == routed {
            return Err(usage(format!("{direct}: is both --direct and --routed")));
        }
        let Some(path) = rules else { return Ok(Self { direct, routed, policy: None }) };
        let set = read::file(path)?;
        let route = set.routes.into_iter().find(|route| route.from == direct && route.to == routed);
        let policy = route
            .map(|route| route.policy)
            .or(set.loose)
            .ok_or_else(|| usage(format!("{}: has no route from {direct} to {routed}", path.display())))?;
        Ok(Self { direct, routed, policy: Some(policy) })
    }
}

/// A reading of the recordings.
pub struct Reading {
    pub found: Found,
    pub delays: Delays,
    pub delay_max_ns: u64,
    /// Frames of identifiers that go the other way.
    pub other_way: u64,
    pub ending: Ending,
    pub error_frames: u64,
}

/// What a reading assumes.
#[derive(Default)]
struct Assumed {
    delay_max_ns: u64,
    /// Identifiers that the gateway forwards the other way: in this one they are only its output.
    other_way: HashSet<u32>,
}

impl Recorded {
    /// Reads the recordings, and lets `each` count every frame on one of both buses; error frames have no stamp.
    fn each(
        &self,
        gateway: &Gateway,
        common: &Common,
        mut each: impl FnMut(End, &Frame, Option<Stamp>),
    ) -> failure::Result<Ending> {
        let mut frames = Selected::open("latency", &self.files, &self.selection, common)?;
        let (mut direct, mut routed) = (Clock::default(), Clock::default());
        while frames.next()? {
            let record = frames.record();
            let name = frames.name(record.bus);
            let (end, clock) = match name {
                _ if name == gateway.routed => (End::Routed, &mut routed),
                _ if name == gateway.direct => (End::Direct, &mut direct),
                _ => continue,
            };
            let frame = &record.frame;
            let stamp = (!frame.is_error()).then(|| clock.stamp(record.stamp_ns, frames.controller_stamp()));
            each(end, frame, stamp);
        }
        let names = frames.names();
        let ending = frames.finish()?;
        gateway.refuse_unknown(&names)?;
        Ok(ending)
    }

    fn read(&self, gateway: &Gateway, assumed: &Assumed, common: &Common) -> failure::Result<Reading> {
        let mut delays = Delays::new();
        let mut engine = gateway.policy.as_ref().map(|policy| Engine::new(policy, 1));
        let mut batch = Batch::new(1);
        let (mut error_frames, mut other_way) = (0, 0);
        let mut runs = Runs::new(assumed.delay_max_ns, |direct: &Stamp, routed: &Stamp, frame_ns| {
            delays.record(direct, routed, frame_ns);
        });
        let time_on_bus = |frame: &Frame| self.bitrate.map_or(0, |rate| frame.bits().duration_ns(rate));
        let ending = self.each(gateway, common, |end, frame, stamp| {
            let Some(stamp) = stamp else {
                error_frames += 1;
                return;
            };
            match (end, &mut engine) {
                _ if assumed.other_way.contains(&frame.can_id) => other_way += 1,
                (End::Routed, _) => runs.routed(frame, stamp, time_on_bus(frame)),
                (End::Direct, None) => runs.direct(frame, stamp),
                (End::Direct, Some(engine)) => {
                    batch.clear();
                    batch.push(frame, Meta::default());
                    engine.apply(&mut batch, |_| stamp.recorded_ns);
                    engine.outgoing(&batch).iter().for_each(|frame| runs.direct(frame, stamp));
                }
            }
        })?;
        let found = runs.finish();
        let delay_max_ns = assumed.delay_max_ns;
        Ok(Reading { found, delays, delay_max_ns, other_way, ending, error_frames })
    }

    /// Finds out what the second reading assumes: identifiers that go the other way, by their shorter delay, and the
    /// longest delay of the others.
    fn assumed(&self, gateway: &Gateway, common: &Common) -> failure::Result<Assumed> {
        let mut there = Runs::new(DELAY_MAX_NS, |_, _, _| {});
        let mut back = Runs::new(DELAY_MAX_NS, |_, _, _| {});
        self.each(gateway, common, |end, frame, stamp| match (end, stamp) {
            (_, None) => {}
            (End::Direct, Some(stamp)) => {
                there.direct(frame, stamp);
                back.routed(frame, stamp, 0);
            }
            (End::Routed, Some(stamp)) => {
                there.routed(frame, stamp, 0);
                back.direct(frame, stamp);
            }
        })?;
        let (there, back) = (there.finish().tallies, back.finish().tallies);
        let goes_back = |(id, tally): (&u32, &Tally)| {
            let there_ns = there.get(id).and_then(Tally::mean_ns);
            tally.mean_ns().filter(|&ns| there_ns.is_none_or(|there_ns| ns < there_ns)).map(|_| *id)
        };
        let other_way = back.iter().filter_map(goes_back).collect();
        Ok(Assumed { delay_max_ns: DELAY_MAX_NS, other_way })
    }

    /// Reads as often as it takes to know the bound, if the inputs can be read again.
    pub fn reading(&self, gateway: &Gateway, common: &Common) -> failure::Result<Reading> {
        let can_be_read_again = self.files.iter().all(|path| path.is_file() || path.is_dir());
        // Rules say which way frames go.
        let mut assumed = if can_be_read_again && gateway.policy.is_none() {
            self.assumed(gateway, common)?
        } else {
            Assumed::default()
        };
        assumed.delay_max_ns = self.max_delay.unwrap_or(DELAY_MAX_NS);
        let first = self.read(gateway, &assumed, common)?;
        let longest_ns = first.found.longest_ns;
        if self.max_delay.is_some() || !can_be_read_again || longest_ns == 0 {
            return Ok(first);
        }
        assumed.delay_max_ns = longest_ns.saturating_mul(MARGIN).min(DELAY_MAX_NS);
        self.read(gateway, &assumed, common)
    }
}

/// The bus of a frame.
#[derive(Clone, Copy)]
enum End {
    Direct,
    Routed,
}

impl Gateway {
    fn refuse_unknown(&self, names: &[String]) -> failure::Result<()> {
        for (option, name) in [("--direct", &self.direct), ("--routed", &self.routed)] {
            if !names.contains(name) {
                let message =
                    format!("{option}: the recording has no bus {name:?} (it has {})", names.join(", "));
                return Err(Failure::new(Exit::Usage, message));
            }
        }
        Ok(())
    }
}

impl Reading {
    /// The identifiers that the gateway forwards: with rules all, otherwise those of which a frame arrived.
    pub fn forwarded(&self, has_rules: bool) -> Vec<(u32, Tally)> {
        let is_forwarded = |tally: &Tally| has_rules || tally.is_forwarded();
        let mut list: Vec<(u32, Tally)> = self
            .found
            .tallies
            .iter()
            .filter(|one| is_forwarded(one.1))
            .map(|(&id, &tally)| (id, tally))
            .collect();
        list.sort_unstable_by_key(|one| one.0);
        list
    }
}
