//! The thread that reads ahead: recordings → what is wanted of them, with its time and where it goes. A disk that is slow
//! for a moment delays no frame.

use super::{
    recording::{Recorded, Recordings},
    timeline::{Oddities, Pace, Timeline},
};
use crate::{failure, traffic::assignment::Assignment};
use canter_io::{Filters, Frame};
use serde::Serialize;
use std::{path::PathBuf, sync::mpsc::SyncSender};

/// Frames a chunk.
const CHUNK_FRAMES: usize = 1024;
/// Chunks that are read ahead: 32 768 frames, 3 MB.
pub const CHUNKS: usize = 32;

/// What is replayed of a recording.
#[derive(Clone)]
pub struct Plan {
    pub files: Vec<PathBuf>,
    pub assignment: Assignment,
    pub filters: Option<Filters>,
    pub pace: Pace,
    /// Since the first frame of all, in ns of the recording: from here, and before there.
    pub from_ns: u64,
    pub to_ns: u64,
    /// How often; `None`: for ever.
    pub rounds: Option<u64>,
}

/// A frame that is to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// In ns from the start; `None`: at once.
    pub at_ns: Option<u64>,
    /// The place of its destination.
    pub destination: usize,
    pub frame: Frame,
}

/// Some frames, and the destinations that are new with them.
#[derive(Default)]
pub struct Chunk {
    pub destinations: Vec<String>,
    pub items: Vec<Item>,
}

/// What became of the frames that were read: `read = passed + unassigned + filtered + outside + error_frames`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tally {
    pub read: u64,
    /// Handed on to be sent.
    pub passed: u64,
    /// Of buses that go nowhere.
    pub unassigned: u64,
    /// Not wanted by `--filter`.
    pub filtered: u64,
    /// Before `--from` or after `--to`.
    pub outside: u64,
    /// Reports of a driver: nothing that can be sent.
    pub error_frames: u64,
    pub rounds: u64,
    #[serde(flatten)]
    pub oddities: Oddities,
    /// The buses of the recording.
    pub buses: Vec<String>,
    /// What is said of the files.
    pub notes: Vec<String>,
}

/// Reads until the end, or until nobody listens.
pub struct Feed {
    plan: Plan,
    timeline: Timeline,
    destinations: Vec<String>,
    chunk: Chunk,
    tally: Tally,
    out: SyncSender<Chunk>,
}

/// Nobody listens any more.
struct Ended;

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

    /// All rounds. What is wrong with a file comes after the frames before it.
    pub fn run(mut self, first: Recordings) -> (Tally, Option<failure::Failure>) {
        let mut recordings = Ok(first);
        let mut failure = None;
        while self.plan.rounds.is_none_or(|rounds| self.tally.rounds < rounds) {
            let played = match recordings {
                Ok(recordings) => self.round(recordings),
                Err(error) => Err(error),
            };
            match played {
                Ok(Ok(wanted)) => {
                    self.tally.rounds += 1;
                    if wanted == 0 {
                        break; // for ever would be for ever nothing
                    }
                }
                Ok(Err(Ended)) => break,
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
            recordings = Recordings::open(&self.plan.files);
        }
        let _ = self.hand_over(); // nobody listens: nobody misses it
        self.tally.oddities = self.timeline.oddities;
        (self.tally, failure)
    }

    /// The recording once; answers how many of its frames are to be sent.
    fn round(&mut self, mut recordings: Recordings) -> failure::Result<Result<u64, Ended>> {
        self.timeline.restart();
        let (before, mut begin_ns) = (self.tally.passed, None);
        while let Some(recorded) = recordings.next()? {
            self.tally.read += 1;
            let begin_ns = *begin_ns.get_or_insert(recorded.stamp_ns);
            let since_ns = recorded.stamp_ns.saturating_sub(begin_ns);
            if since_ns < self.plan.from_ns || since_ns >= self.plan.to_ns {
                self.tally.outside += 1;
                continue;
            }
            let name = &recordings.buses[recorded.bus];
            if self.take(&recorded, name)
                && self.chunk.items.len() == CHUNK_FRAMES
                && self.hand_over().is_err()
            {
                self.tally.buses = recordings.buses;
                return Ok(Err(Ended));
            }
        }
        self.tally.notes = recordings.notes();
        self.tally.buses = recordings.buses;
        Ok(Ok(self.tally.passed - before))
    }

    /// Puts a frame into the chunk if it is wanted.
    fn take(&mut self, recorded: &Recorded, bus: &str) -> bool {
        let frame = recorded.frame;
        // Time goes on with every frame, sent or not: a pause in what is sent is a pause.
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

    fn hand_over(&mut self) -> Result<(), Ended> {
        self.out.send(std::mem::take(&mut self.chunk)).map_err(|_| Ended)
    }
}
