//! Sorts the frames of several processors and rings by their stamps, within a window.
//!
//! Blocks arrive almost in order, so they are kept as a few *runs*, in each of which stamps only grow. Merging copies
//! nothing and compares each frame with one limit. A frame that arrives after younger frames were handed out is handed
//! out at once and counted as late; stamps are never changed.

use crate::chunk::Chunk;
use std::{collections::VecDeque, ops::Range};

/// How long a frame is held back for older frames, in ns of stamps.
pub const WINDOW_NS: u64 = 100_000_000;

/// Chunks whose stamps only grow: each chunk begins no earlier than the one before it ends.
struct Run {
    chunks: VecDeque<Chunk>,
    /// The position of the next frame in the first chunk.
    at: usize,
    /// The stamp of the last frame.
    last_ns: u64,
}

impl Run {
    /// The stamp of its next frame.
    fn head_ns(&self) -> u64 {
        self.chunks.front().map_or(u64::MAX, |chunk| chunk.stamp_ns(self.at))
    }
}

/// Chunks in runs, and the stamps of the frames handed out.
#[derive(Default)]
pub struct Merge {
    runs: Vec<Run>,
    /// The youngest stamp that was added.
    newest_ns: u64,
    /// The youngest stamp that was handed out.
    written_ns: u64,
    late: u64,
    /// Chunks whose frames were all handed out.
    spare: Vec<Chunk>,
    /// Bytes of chunks that were split off others: the caller does not count their memory.
    split_bytes: usize,
}

/// Consecutive frames of a chunk that are handed out together: either all of them are late or none.
pub struct Piece<'a> {
    pub chunk: &'a Chunk,
    pub places: Range<usize>,
    pub late: bool,
}

impl Merge {
    /// Adds the frames of a block, which may be from both sides of a clock step.
    pub fn add(&mut self, mut chunk: Chunk) {
        // Most are: looked at once, and nothing to be done.
        if !chunk.is_sorted() {
            while let Some(later) = chunk.split_where_clock_was_set_back(WINDOW_NS) {
                self.split_bytes += later.bytes();
                chunk.sort();
                self.add_ordered(chunk);
                chunk = later;
            }
            chunk.sort();
        }
        self.add_ordered(chunk);
    }

    fn add_ordered(&mut self, chunk: Chunk) {
        if chunk.len() == 0 {
            return;
        }
        let (first_ns, last_ns) = (chunk.stamp_ns(0), chunk.stamp_ns(chunk.len() - 1));
        self.newest_ns = self.newest_ns.max(last_ns);
        // The run that ends last before this chunk, so that the other runs can continue with older chunks.
        let fitting =
            self.runs.iter_mut().filter(|run| run.last_ns <= first_ns).max_by_key(|run| run.last_ns);
        match fitting {
            Some(run) => {
                run.chunks.push_back(chunk);
                run.last_ns = last_ns;
            }
            None => self.runs.push(Run { chunks: VecDeque::from([chunk]), at: 0, last_ns }),
        }
    }

    /// Hands out, in order, every frame that can no longer be preceded by another: it is older than the window, and all
    /// frames with stamps below `complete_ns` have been added. Returns the memory of the
    /// finished chunks in bytes.
    pub fn hand_out_complete(&mut self, complete_ns: u64, each: impl FnMut(Piece<'_>)) -> usize {
        self.hand_out(self.newest_ns.saturating_sub(WINDOW_NS).min(complete_ns), each)
    }

    /// Hands out without the window, when no chunk has arrived for some time.
    pub fn hand_out_after_pause(&mut self, complete_ns: u64, each: impl FnMut(Piece<'_>)) -> usize {
        self.hand_out(complete_ns, each)
    }

    /// Hands out all frames. Returns the bytes of memory of the chunks that are finished.
    pub fn hand_out_all(&mut self, each: impl FnMut(Piece<'_>)) -> usize {
        self.hand_out(u64::MAX, each)
    }

    /// After a clock step: hands out all frames, and starts a new order.
    pub fn restart(&mut self, each: impl FnMut(Piece<'_>)) -> usize {
        let bytes = self.hand_out_all(each);
        (self.newest_ns, self.written_ns) = (0, 0);
        bytes
    }

    /// After the clock was set back: hands out the frames with stamps after `now_ns`, which are from before that. Otherwise
    /// they would wait until the clock reaches their stamps again.
    pub fn hand_out_future(&mut self, now_ns: u64, each: impl FnMut(Piece<'_>)) -> usize {
        if self.runs.iter().all(|run| run.last_ns <= now_ns) {
            return 0;
        }
        let mut earlier = Self::default();
        for run in &mut self.runs {
            let is_future = |chunk: &&Chunk| chunk.stamp_ns(0) > now_ns;
            let count = run.chunks.iter().rev().take_while(is_future).count();
            let chunks = run.chunks.split_off(run.chunks.len() - count);
            let at = if run.chunks.is_empty() { std::mem::take(&mut run.at) } else { 0 };
            earlier.runs.push(Run { chunks, at, last_ns: run.last_ns });
            run.last_ns = run.chunks.back().map_or(0, |chunk| chunk.stamp_ns(chunk.len() - 1)).min(now_ns);
        }
        self.runs.retain(|run| !run.chunks.is_empty());
        earlier.runs.retain(|run| !run.chunks.is_empty());
        let bytes = earlier.hand_out_all(each);
        self.spare.append(&mut earlier.spare);
        (self.newest_ns, self.written_ns) = (self.newest_ns.min(now_ns), self.written_ns.min(now_ns));
        self.without_split(bytes)
    }

    /// These bytes without those of split chunks.
    fn without_split(&mut self, bytes: usize) -> usize {
        let split = self.split_bytes.min(bytes);
        self.split_bytes -= split;
        bytes - split
    }

    /// The chunks that were finished since the last call.
    pub fn spare(&mut self) -> impl Iterator<Item = Chunk> {
        self.spare.drain(..)
    }

    /// Frames that were added and not handed out.
    pub fn frames(&self) -> u64 {
        let in_run = |run: &Run| run.chunks.iter().map(Chunk::len).sum::<usize>() - run.at;
        self.runs.iter().map(in_run).sum::<usize>() as u64
    }

    /// Frames handed out after younger ones.
    pub fn late(&self) -> u64 {
        self.late
    }

    fn hand_out(&mut self, until_ns: u64, mut each: impl FnMut(Piece<'_>)) -> usize {
        let mut bytes = 0;
        while let Some((first, limit_ns)) = self.first(until_ns) {
            let run = &mut self.runs[first];
            while let Some(chunk) = run.chunks.front() {
                let until = chunk.until(limit_ns).max(run.at);
                // A chunk is sorted, so its late frames come first.
                let late =
                    if chunk.stamp_ns(run.at) < self.written_ns { chunk.before(self.written_ns) } else { 0 };
                let in_time = late.clamp(run.at, until);
                self.late += (in_time - run.at) as u64;
                for (places, late) in [(run.at..in_time, true), (in_time..until, false)] {
                    if !places.is_empty() {
                        each(Piece { chunk, places, late });
                    }
                }
                if until > run.at {
                    self.written_ns = self.written_ns.max(chunk.stamp_ns(until - 1));
                }
                run.at = until;
                if run.at < chunk.len() {
                    break;
                }
                bytes += chunk.bytes();
                self.spare.extend(run.chunks.pop_front());
                run.at = 0;
            }
            self.runs.retain(|run| !run.chunks.is_empty());
        }
        self.without_split(bytes)
    }

    /// The run with the oldest frame, if its stamp is at most `until_ns`, and the stamp up to which its frames precede those
    /// of all other runs.
    fn first(&self, until_ns: u64) -> Option<(usize, u64)> {
        let (mut best, mut best_ns, mut second_ns) = (None, u64::MAX, u64::MAX);
        for (at, run) in self.runs.iter().enumerate() {
            let head_ns = run.head_ns();
            if best.is_none() || head_ns < best_ns {
                (second_ns, best_ns, best) = (best_ns, head_ns, Some(at));
            } else {
                second_ns = second_ns.min(head_ns);
            }
        }
        best.filter(|_| best_ns <= until_ns).map(|at| (at, second_ns.min(until_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::Hold as _;
    use canter_frame::{BusId, RawRecord};
    use proptest::prelude::*;

    fn chunk(fd: bool, stamps: &[u64]) -> Chunk {
        let mut chunk = Chunk::new(fd, stamps.len());
        for &stamp_ns in stamps {
            let bytes = &[0; 72][..if fd { 72 } else { 16 }];
            assert!(chunk.hold(&RawRecord::new(stamp_ns, BusId(0), bytes)));
        }
        chunk
    }

    /// Collects the frames of pieces: their stamps, and whether they are late.
    fn collect_into(got: &mut Vec<(u64, bool)>) -> impl FnMut(Piece<'_>) {
        |Piece { chunk, places, late }| got.extend(places.map(|at| (chunk.stamp_ns(at), late)))
    }

    fn all(merge: &mut Merge) -> Vec<u64> {
        let mut got = Vec::new();
        merge.hand_out_all(collect_into(&mut got));
        got.into_iter().map(|one| one.0).collect()
    }

    #[test]
    fn frames_wait_for_older_ones_as_long_as_the_window() {
        let mut merge = Merge::default();
        let mut out = Vec::new();
        merge.add(chunk(false, &[10, 30, WINDOW_NS + 20]));
        assert_eq!(merge.hand_out_complete(u64::MAX, collect_into(&mut out)), 0, "the chunk is still in use");
        assert_eq!((out.as_slice(), merge.spare().count()), (&[(10, false)][..], 0));
        merge.add(chunk(false, &[3 * WINDOW_NS]));
        merge.hand_out_complete(15, collect_into(&mut out));
        assert_eq!(out, [(10, false)], "a ring may still hold older frames");
        merge.add(chunk(true, &[25, 40]));
        assert_eq!(all(&mut merge), [25, 30, 40, WINDOW_NS + 20, 3 * WINDOW_NS]);
        assert_eq!((merge.late(), merge.spare().count()), (0, 3));
    }

    #[test]
    fn a_frame_behind_younger_ones_is_handed_out_and_counted_as_late() {
        let mut merge = Merge::default();
        let mut out = Vec::new();
        merge.add(chunk(false, &[100, 200]));
        all(&mut merge);
        merge.add(chunk(false, &[150, 250]));
        merge.hand_out_all(collect_into(&mut out));
        assert_eq!((out.as_slice(), merge.late()), (&[(150, true), (250, false)][..], 1));
        merge.restart(|_| ());
        merge.add(chunk(false, &[1]));
        assert_eq!(
            (all(&mut merge).as_slice(), merge.late()),
            (&[1][..], 1),
            "a clock set back makes none late"
        );
    }

    #[test]
    fn after_the_clock_was_set_back_no_frame_of_another_lane_waits_for_the_clock_to_catch_up() {
        const HOUR: u64 = 3_600_000_000_000;
        let (mut merge, mut out, mut freed) = (Merge::default(), Vec::new(), 0);
        let blocks = [
            chunk(false, &[HOUR + 1, HOUR + 3, 10, 30]), // a block from both sides of the step
            chunk(true, &[HOUR + 2, HOUR + 4]),          // the other lane's block is handed over later
            chunk(true, &[20, 40]),
        ];
        let given: usize = blocks.iter().map(Chunk::bytes).sum();
        for block in blocks {
            merge.add(block);
            freed += merge.hand_out_future(1_000, collect_into(&mut out));
            freed += merge.hand_out_complete(0, collect_into(&mut out));
        }
        let early: Vec<u64> = out.iter().map(|one| one.0).collect();
        assert_eq!(early, [HOUR + 1, HOUR + 3, HOUR + 2, HOUR + 4], "nothing waits an hour");
        freed += merge.hand_out_complete(1_000, collect_into(&mut out));
        freed += merge.hand_out_all(collect_into(&mut out));
        let later: Vec<u64> = out.iter().skip(4).map(|one| one.0).collect();
        assert_eq!((later.as_slice(), merge.late()), (&[10, 20, 30, 40][..], 0));
        assert_eq!(freed, given, "memory of a split block is released once");
    }

    proptest! {
        #[test]
        fn frames_that_arrive_within_the_window_are_all_handed_out_in_order(
            gaps in prop::collection::vec((0..WINDOW_NS / 4, 0..WINDOW_NS / 2, any::<bool>()), 1..300),
            size in 1usize..9,
        ) {
            // Stamps, each jittered by less than half the window, in arrival order by lane.
            let mut now = WINDOW_NS;
            let mut arrivals: Vec<(bool, u64)> = Vec::new();
            for (gap, jitter, fd) in gaps {
                now += gap / size as u64;
                arrivals.push((fd, now - jitter));
            }
            let mut want: Vec<u64> = arrivals.iter().map(|&(_, stamp)| stamp).collect();
            want.sort_unstable();
            let (mut merge, mut got, mut freed, mut given) = (Merge::default(), Vec::new(), 0, 0);
            for part in arrivals.chunks(size) {
                for fd in [false, true] {
                    let stamps: Vec<u64> = part.iter().filter(|one| one.0 == fd).map(|one| one.1).collect();
                    if !stamps.is_empty() {
                        let chunk = chunk(fd, &stamps);
                        given += chunk.bytes();
                        merge.add(chunk);
                    }
                }
                freed += merge.hand_out_complete(u64::MAX, collect_into(&mut got));
            }
            freed += merge.hand_out_all(collect_into(&mut got));
            prop_assert_eq!(merge.late(), got.iter().filter(|one| one.1).count() as u64);
            let in_time: Vec<u64> = got.iter().filter(|one| !one.1).map(|one| one.0).collect();
            prop_assert!(in_time.is_sorted());
            let mut got: Vec<u64> = got.into_iter().map(|one| one.0).collect();
            if merge.late() == 0 {
                prop_assert_eq!(&got, &want);
            }
            got.sort_unstable();
            prop_assert_eq!(got, want);
            prop_assert_eq!(freed, given);
        }
    }
}
