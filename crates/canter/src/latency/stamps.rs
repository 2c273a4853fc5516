//! Which stamps delays are measured by: those of the recording, or those that the controllers took. Stamps of two controllers
//! belong to two clocks, so they are brought onto the system's clock first, unless both controllers have one clock.

use canter_capture::{Aligned, Aligner};
use canter_cli::{
    failure::{self, Exit, Failure},
    units::{grouped, span},
};
use canter_frame::ControllerStamp;
use canter_measure::{histogram::Histogram, matcher::Passage, result::Latency};

/// Differences between a delay by aligned stamps and by the controllers' own that rounding explains, in ns.
const ROUNDING_NS: u64 = 1_000;
/// Two clocks are not one when more than one delay of this number contradicts that.
const CONTRADICTIONS_ONE_OF: u64 = 100;

/// The stamps that a delay is the difference of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Stamps {
    /// The recording's, in every format
    Recorded,
    /// The controllers', brought onto the system's clock with a bound of the error
    Aligned,
    /// The controllers' own: of two channels of one card, which have one clock
    Controller,
}

impl Stamps {
    /// The words of a result file; the recording's stamps need none.
    pub fn variant(self) -> &'static str {
        match self {
            Self::Recorded => "",
            Self::Aligned => "controllers' stamps, aligned",
            Self::Controller => "controllers' stamps, of one clock",
        }
    }
}

/// The stamps of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The recording's.
    pub recorded_ns: u64,
    controller: Option<OnSystemClock>,
}

/// The controller's stamp, on its own clock and on the system's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OnSystemClock {
    hardware_ns: u64,
    aligned: Aligned,
}

impl Stamp {
    /// A stamp of a recording that has no others.
    #[cfg(test)]
    pub fn recorded(recorded_ns: u64) -> Self {
        Self { recorded_ns, controller: None }
    }
}

/// The clock of a bus's controller.
#[derive(Debug, Default)]
pub struct Clock(Aligner);

impl Clock {
    /// The stamps of the bus's next frame. The recorder may have aligned the recording's stamp already.
    pub fn stamp(&mut self, recorded_ns: u64, controller: Option<ControllerStamp>) -> Stamp {
        let on_system_clock = |ControllerStamp { hardware_ns, bound_ns }| OnSystemClock {
            hardware_ns,
            aligned: match bound_ns {
                0 => self.0.align(hardware_ns, recorded_ns),
                bound_ns => Aligned { stamp_ns: recorded_ns, bound_ns },
            },
        };
        Stamp { recorded_ns, controller: controller.map(on_system_clock) }
    }
}

/// The delays of all matched frames, by each kind of stamps.
pub struct Delays {
    recorded: Histogram,
    aligned: Histogram,
    controller: Histogram,
    /// How far a delay by aligned stamps may be wrong: the sum of both bounds.
    bounds: Histogram,
    matched: u64,
    /// Delays that a controller stamped on both buses.
    stamped: u64,
    /// Delays by the controllers' own stamps that differ from those by aligned stamps by more than the bounds.
    apart: u64,
    apart_ns: u64,
}

/// The delays by the stamps that were chosen.
pub struct Chosen {
    pub stamps: Stamps,
    pub latency: Latency,
    /// The median and the greatest bound of the error, of aligned stamps.
    bounds_ns: Option<(u64, u64)>,
    /// Why the recording's stamps were taken though some frames have others.
    pub remark: Option<String>,
}

fn delay_ns(direct_ns: u64, routed_ns: u64, frame_ns: u64) -> i64 {
    Passage { direct_ns, routed_ns }.latency_ns(frame_ns)
}

impl Delays {
    pub fn new() -> Self {
        let [recorded, aligned, controller, bounds] = std::array::from_fn(|_| Histogram::new());
        Self { recorded, aligned, controller, bounds, matched: 0, stamped: 0, apart: 0, apart_ns: 0 }
    }

    /// Takes a frame that occupied the routed bus for `frame_ns`.
    pub fn record(&mut self, direct: &Stamp, routed: &Stamp, frame_ns: u64) {
        self.matched += 1;
        self.recorded.record(delay_ns(direct.recorded_ns, routed.recorded_ns, frame_ns));
        let (Some(direct), Some(routed)) = (direct.controller, routed.controller) else { return };
        self.stamped += 1;
        let aligned_ns = delay_ns(direct.aligned.stamp_ns, routed.aligned.stamp_ns, frame_ns);
        let controller_ns = delay_ns(direct.hardware_ns, routed.hardware_ns, frame_ns);
        let bound_ns = i64::from(direct.aligned.bound_ns) + i64::from(routed.aligned.bound_ns);
        self.aligned.record(aligned_ns);
        self.controller.record(controller_ns);
        self.bounds.record(bound_ns);
        let apart_ns = aligned_ns.abs_diff(controller_ns);
        if apart_ns > bound_ns.unsigned_abs() + ROUNDING_NS {
            self.apart += 1;
            self.apart_ns = self.apart_ns.max(apart_ns);
        }
    }

    /// The delays between two buses by these stamps; unless given, by aligned ones where every frame has them.
    ///
    /// # Errors
    /// When frames lack these stamps, or the clocks of the controllers are not one.
    pub fn choose(&self, given: Option<Stamps>, direct: &str, routed: &str) -> failure::Result<Chosen> {
        let Self { matched, stamped, .. } = *self;
        let is_complete = matched > 0 && stamped == matched;
        let stamps = given.unwrap_or(if is_complete { Stamps::Aligned } else { Stamps::Recorded });
        let refused = |reason: String| Failure::new(Exit::Usage, format!("{direct} and {routed}: {reason}"));
        let lacking = || format!("{} of {} delays", grouped(matched - stamped), grouped(matched));
        if stamps != Stamps::Recorded && matched > 0 && !is_complete {
            let way_out = "canter capture --hw-stamps records them; --stamps recorded";
            return Err(refused(format!("{} lack a controller's stamp ({way_out})", lacking())));
        }
        if stamps == Stamps::Controller && self.apart > matched / CONTRADICTIONS_ONE_OF {
            let apart = span(self.apart_ns);
            return Err(refused(format!("the controllers' clocks are {apart} apart (--stamps aligned)")));
        }
        let bounds = (stamps == Stamps::Aligned).then(|| self.bounds.to_latency());
        let remark = (given.is_none() && stamped > 0 && !is_complete)
            .then(|| format!("{} lack a controller's stamp: the recording's stamps are used", lacking()));
        let latency = match stamps {
            Stamps::Recorded => self.recorded.to_latency(),
            Stamps::Aligned => self.aligned.to_latency(),
            Stamps::Controller => self.controller.to_latency(),
        };
        Ok(Chosen { stamps, latency, bounds_ns: bounds.map(|bounds| (bounds.p50, bounds.max)), remark })
    }
}

impl Chosen {
    /// The stamps, in a sentence.
    pub fn text(&self) -> String {
        match (self.stamps, self.bounds_ns) {
            (Stamps::Recorded, _) => "stamps: the recording's".to_owned(),
            (Stamps::Controller, _) => "stamps: the controllers' own, as of one clock".to_owned(),
            (Stamps::Aligned, bounds) => {
                let (median_ns, max_ns) = bounds.unwrap_or_default();
                let (median, max) = (span(median_ns), span(max_ns));
                format!("stamps: the controllers', on the system's clock: ±{median}, at most ±{max}")
            }
        }
    }
}
