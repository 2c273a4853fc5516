//! A clock with costs: what a frame's way, or a program, would take on a board whose caches, registers and entries into the
//! kernel take time. A model: nothing is fetched ahead, no instruction is cheaper or dearer than another, and the code is that
//! of x86-64.

use super::{
    account::End,
    stage::{ALL, Stage},
};
use canter_measure::{
    result::{Model, ModelStage},
    work::{Times, Work},
};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The boards that `canter lab --cost` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Board {
    /// PowerPC e300 of 400 MHz, the board of 2010 to 2014
    Mpc5200,
    /// ARM of 1.5 GHz, as on a Raspberry Pi 4
    CortexA72,
    /// x86-64 of 4 GHz
    Desktop,
}

/// A cache's size, its lines of a set, and the bytes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache(pub u32, pub u32, pub u32);

/// What a board's processor has and takes. docs/analyzer.md says from where each number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    pub code: Cache,
    pub data: Cache,
    pub second: Option<Cache>,
    pub times: Times,
}

impl Board {
    /// The board's word in options and result files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mpc5200 => "mpc5200",
            Self::CortexA72 => "cortex-a72",
            Self::Desktop => "desktop",
        }
    }

    /// The board of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::value_variants().iter().copied().find(|board| board.name() == name)
    }

    pub fn parameters(self) -> Parameters {
        const KIB: u32 = 1024;
        match self {
            Self::Mpc5200 => Parameters {
                code: Cache(16 * KIB, 4, 32),
                data: Cache(16 * KIB, 4, 32),
                second: None,
                times: Times {
                    instruction_ps: 3_000,
                    second_ps: 0,
                    memory_ps: 120_000,
                    register_ps: 200_000,
                    entry_ps: 250_000,
                },
            },
            Self::CortexA72 => Parameters {
                code: Cache(48 * KIB, 3, 64),
                data: Cache(32 * KIB, 2, 64),
                second: Some(Cache(1024 * KIB, 16, 64)),
                times: Times {
                    instruction_ps: 600,
                    second_ps: 10_000,
                    memory_ps: 120_000,
                    register_ps: 150_000,
                    entry_ps: 100_000,
                },
            },
            Self::Desktop => Parameters {
                code: Cache(32 * KIB, 8, 64),
                data: Cache(48 * KIB, 12, 64),
                second: Some(Cache(2048 * KIB, 16, 64)),
                times: Times {
                    instruction_ps: 100,
                    second_ps: 3_500,
                    memory_ps: 20_000,
                    register_ps: 500_000,
                    entry_ps: 50_000,
                },
            },
        }
    }

    /// The caches as arguments of the plugin, each behind a comma.
    pub fn plugin_arguments(self) -> String {
        let Parameters { code, data, second, .. } = self.parameters();
        let caches = [("l1i", Some(code)), ("l1d", Some(data)), ("l2", second)];
        let argument = |(name, cache): (&str, Option<Cache>)| {
            cache.map(|Cache(bytes, ways, line)| format!(",{name}={bytes}:{ways}:{line}"))
        };
        caches.into_iter().filter_map(argument).collect()
    }

    /// The time that this work takes, in whole ns.
    pub fn time_ns(self, work: &Work) -> u64 {
        self.parameters().times.total_ps(work).div_ceil(1000)
    }

    /// The frame that is the median on this board; `None` when none arrived.
    pub fn model(self, ends: &[End]) -> Option<Model> {
        let mut ends: Vec<_> = ends.iter().map(|end| (self.way_ns(end), end)).collect();
        ends.sort_by_key(|(way_ns, _)| *way_ns);
        let (median_frame_ns, median) = *ends.get(ends.len().checked_sub(1)? / 2)?;
        let stages = ALL.iter().map(|stage| self.stage(*stage, median)).filter(|stage| stage.time_ns > 0);
        Some(Model {
            board: self.name().to_owned(),
            times: self.parameters().times,
            median_frame_ns,
            stages: stages.collect(),
        })
    }

    /// A frame's way without what the instrument executes.
    fn way_ns(self, end: &End) -> u64 {
        let own = ALL.iter().filter(|stage| **stage != Stage::Instrument);
        own.map(|stage| self.stage(*stage, end).time_ns).sum()
    }

    fn stage(self, stage: Stage, end: &End) -> ModelStage {
        let work = end.work[stage as usize - 1];
        let waited_ns = if stage == Stage::Idle { end.waited_ns } else { 0 };
        ModelStage { name: stage.name().to_owned(), time_ns: self.time_ns(&work) + waited_ns, work }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_frame_is_the_boards_and_leaves_the_instrument_out() {
        let way = |instructions: u64, memory: u64, of_meter: u64| {
            let mut end = End { waited_ns: 1000, ..End::default() };
            end.work[Stage::Gateway as usize - 1] = Work { instructions, memory, ..Work::default() };
            end.work[Stage::Instrument as usize - 1].instructions = of_meter;
            end
        };
        // In instructions the third is the slowest, on the board the second.
        let model = Board::CortexA72.model(&[way(100, 1, 0), way(90, 9, 0), way(200, 1, 9999)]).unwrap();
        let its = Board::CortexA72.parameters().times;
        let expected_ns = 1000 + (200 * its.instruction_ps + its.memory_ps) / 1000;
        assert_eq!((model.median_frame_ns, model.board.as_str()), (expected_ns, "cortex-a72"));
        let names: Vec<_> = model.stages.iter().map(|stage| stage.name.as_str()).collect();
        assert_eq!(names, ["gateway's own", "instrument", "idle"]);
        assert_eq!(Board::Desktop.model(&[]), None);
    }

    #[test]
    fn a_board_is_known_by_its_name_and_tells_the_plugin_its_caches() {
        for board in Board::value_variants() {
            assert_eq!(Board::named(board.name()), Some(*board));
            let value = board.to_possible_value().unwrap();
            assert_eq!(value.get_name(), board.name());
        }
        assert_eq!(Board::named("z80"), None);
        assert_eq!(Board::Mpc5200.plugin_arguments(), ",l1i=16384:4:32,l1d=16384:4:32");
        assert!(Board::CortexA72.plugin_arguments().ends_with(",l2=1048576:16:64"));
    }
}
