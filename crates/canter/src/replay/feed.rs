//! The thread that reads ahead: selects frames of the recordings and gives each its time and destination. A short stall of
//! the disk delays no frame.

use super::{
    recording::{Recorded, Recordings},
    timeline::{Oddities, Pace, Timeline},
};
use crate::recordings::{Opening, TimePoint};
use canter_cli::failure;
use canter_io::{Filters, Frame};
use canter_route::traffic::assignment::Assignment;
use serde::Serialize;
use std::{path::PathBuf, sync::mpsc::SyncSender};

/// Frames per chunk.
const CHUNK_FRAMES: usize = 1024;
/// Chunks that are read ahead: 32 768 frames, 3 MB.
pub const CHUNKS: usize = 32;

/// Which frames are replayed, when and where to.
#[derive(Clone)]
pub struct Plan {
    pub files: Vec<PathBuf>,
    pub opening: Opening,
    pub assignment: Assignment,
    pub filters: Option<Filters>,
    pub pace: Pace,
    /// Start; `None`: the first frame.
    pub from: Option<TimePoint>,
    /// End, exclusive.
    pub to: Option<TimePoint>,
    /// Number of rounds; `None`: forever.
    pub rounds: Option<u64>,
}

impl Plan {
    /// The stamps of the start and the end.
    fn range_ns(&self, first_ns: u64) -> (u64, u64) {
        let zone = self.opening.zone.clone().unwrap_or_default();
        let ns = |point: TimePoint| point.ns(first_ns, &zone);
        (self.from.map_or(0, ns), self.to.map_or(u64::MAX, ns))
    }
}

/// A frame to send.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// When the frame is due, in ns from the start; `None`: at once.
    pub at_ns: Option<u64>,
    /// The index of the destination.
    pub destination: usize,
    pub frame: Frame,
}

/// Frames, and the destinations that occur for the first time.
#[derive(Default)]
pub struct Chunk {
    pub destinations: Vec<String>,
    pub items: Vec<Item>,
}

/// Counts of all frames that were read: `read = passed + unassigned + filtered + outside + error_frames`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tally {
    pub read: u64,
    /// Frames passed on to the player.
    pub passed: u64,
    /// Frames of buses without a destination.
    pub unassigned: u64,
    /// Frames that `--filter` excludes.
    pub filtered: u64,
    /// Frames before `--from` or after `--to`.
    pub outside: u64,
    /// Error frames: a driver's reports, which cannot be sent.
    pub error_frames: u64,
    pub rounds: u64,
    #[serde(flatten)]
    pub oddities: Oddities,
    /// The buses of the recording.
    pub buses: Vec<String>,
    /// Remarks about the files.
    pub notes: Vec<String>,
    /// Whether frames of a file are missing, or may not be whole.
    pub incomplete: bool,
}

/// Reads until the end, or until the player has ended.
pub struct Feed {
    plan: Plan,
    timeline: Timeline,
    destinations: Vec<String>,
    chunk: Chunk,
    tally: Tally,
    out: SyncSender<Chunk>,
}

/// The player has ended and receives no more chunks.
struct PlayerEnded;

impl Feed {
    pub fn new(plan: Plan, out: SyncSender<Chunk>) -> Self {
        let timeline = Timeline::new(plan.pace);
        Self {
            plan,
            timeline,
            destinations: Vec::new(),
            chunk: Chunk::default(),
            tally: Tally::default(),
            out,
        }
    }

    /// Reads all rounds. An error of a file is returned after the frames before it were passed on.
    pub fn run(mut self, first: Recordings) -> (Tally, Option<failure::Failure>) {
        let mut recordings = Ok(first);
        let mut failure = None;
        while self.plan.rounds.is_none_or(|rounds| self.tally.rounds < rounds) {
            let played = match recordings {
                Ok(recordings) => self.round(recordings),
                Err(error) => Err(error),
            };
            match played {
                Ok(Some(passed)) => {
                    self.tally.rounds += 1;
                    if passed == 0 {
                        break; // further rounds would have no frames either
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
            recordings = Recordings::open(&self.plan.files, self.plan.opening.clone());
        }
        let _ = self.hand_over(); // a player that has ended does not need the rest
        self.tally.oddities = self.timeline.oddities;
        (self.tally, failure)
    }

    /// Reads the recording once; returns the number of frames that were passed on. `None`: the player has ended.
    fn round(&mut self, mut recordings: Recordings) -> failure::Result<Option<u64>> {
        self.timeline.restart();
        let (before, mut range) = (self.tally.passed, None);
        while let Some(recorded) = recordings.next()? {
            self.tally.read += 1;
            let (from_ns, to_ns) = *range.get_or_insert_with(|| self.plan.range_ns(recorded.stamp_ns));
            if recorded.stamp_ns < from_ns || recorded.stamp_ns >= to_ns {
                self.tally.outside += 1;
                continue;
            }
            let name = &recordings.buses[recorded.bus];
            if self.take(&recorded, name)
                && self.chunk.items.len() == CHUNK_FRAMES
                && self.hand_over().is_err()
            {
                self.tally.buses = recordings.buses;
                return Ok(None);
            }
        }
        let (buses, remarks) = recordings.close(self.plan.opening.zone.is_some());
        self.tally.buses = buses;
        self.tally.notes = remarks.notes;
        self.tally.incomplete = remarks.incomplete;
        Ok(Some(self.tally.passed - before))
    }

    /// Appends a frame to the chunk if it is selected.
    fn take(&mut self, recorded: &Recorded, bus: &str) -> bool {
        let frame = recorded.frame;
        // The timeline advances with every frame, selected or not, so pauses between selected frames are kept.
        let at_ns = if let Pace::Stamps { .. } = self.plan.pace {
            self.timeline.due_ns(recorded.stamp_ns)
        } else {
            None
        };
        let count = if frame.is_error() {
            &mut self.tally.error_frames
        } else if self.plan.filters.as_ref().is_some_and(|filters| !filters.matches(&frame)) {
            &mut self.tally.filtered
        } else if let Some(name) = self.plan.assignment.destination(bus) {
            let known = self.destinations.iter().position(|known| known == name);
            let destination = known.unwrap_or_else(|| {
                self.destinations.push(name.to_owned());
                self.chunk.destinations.push(name.to_owned());
                self.destinations.len() - 1
            });
            let at_ns = at_ns.or_else(|| self.timeline.due_ns(recorded.stamp_ns));
            self.chunk.items.push(Item { at_ns, destination, frame });
            self.tally.passed += 1;
            return true;
        } else {
            &mut self.tally.unassigned
        };
        *count += 1;
        false
    }

    fn hand_over(&mut self) -> Result<(), PlayerEnded> {
        self.out.send(std::mem::take(&mut self.chunk)).map_err(|_| PlayerEnded)
    }
}
