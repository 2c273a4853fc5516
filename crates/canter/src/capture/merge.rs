//! One order for all: frames of several processors and rings, merged by their stamps within a window.
//!
//! Blocks come almost in order, so they are kept as a few *runs*, each of blocks that continue one another; merging
//! copies nothing and compares a frame with one limit. A frame that comes when younger ones are written already is
//! written at once and counted as late: stamps are never rewritten.

use super::chunk::Chunk;
use canter_io::capture_ring::Record;
use std::collections::VecDeque;

/// How long a frame is held back at least for older ones.
pub const WINDOW_NS: u64 = 100_000_000;

/// Chunks, each beginning no earlier than its predecessor ends.
struct Run {
    chunks: VecDeque<Chunk>,
    /// The next frame of the first chunk.
    at: usize,
    /// The stamp of the last frame.
    last_ns: u64,
}

impl Run {
    /// The stamp of its next frame.
    fn head_ns(&self) -> u64 {
        self.chunks.front().map_or(u64::MAX, |chunk| chunk.record(self.at).stamp_ns)
    }
}

/// The merge.
#[derive(Default)]
pub struct Merge {
    runs: Vec<Run>,
    /// The youngest stamp that came.
    newest_ns: u64,
    /// The youngest stamp that was handed out.
    written_ns: u64,
    late: u64,
}

impl Merge {
    /// Takes what came in a block.
    pub fn add(&mut self, mut chunk: Chunk) {
        if chunk.len() == 0 {
            return;
        }
        chunk.sort();
        let (first_ns, last_ns) = (chunk.record(0).stamp_ns, chunk.record(chunk.len() - 1).stamp_ns);
        self.newest_ns = self.newest_ns.max(last_ns);
        // The run that ends last before it, so that the others stay open for what is older.
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

    /// Hands out, in order, every frame that no older one can precede any more, with whether it is late: all frames
    /// below `complete_ns` have come.
    pub fn ripe(&mut self, complete_ns: u64, each: impl FnMut(&Record<'_>, bool)) -> usize {
        self.hand_out(self.newest_ns.saturating_sub(WINDOW_NS).min(complete_ns), each)
    }

    /// The same once nothing has come for a while, so that no frame can be on its way for longer.
    pub fn quiet(&mut self, complete_ns: u64, each: impl FnMut(&Record<'_>, bool)) -> usize {
        self.hand_out(complete_ns, each)
    }

    /// Hands out all. Answers, as `ripe`, how many bytes of memory were given back.
    pub fn all(&mut self, each: impl FnMut(&Record<'_>, bool)) -> usize {
        self.hand_out(u64::MAX, each)
    }

    /// The clock was set: hands out all, and what comes from now on is in an order of its own.
    pub fn restart(&mut self, each: impl FnMut(&Record<'_>, bool)) -> usize {
        let bytes = self.all(each);
        (self.newest_ns, self.written_ns) = (0, 0);
        bytes
    }

    /// Frames handed out behind younger ones.
    pub fn late(&self) -> u64 {
        self.late
    }

    fn hand_out(&mut self, until_ns: u64, mut each: impl FnMut(&Record<'_>, bool)) -> usize {
        let mut bytes = 0;
        while let Some((first, limit_ns)) = self.first(until_ns) {
            let (run, late_ones, written_ns) = (&mut self.runs[first], &mut self.late, &mut self.written_ns);
            while let Some(chunk) = run.chunks.front() {
                let until = chunk.until(limit_ns).max(run.at);
                chunk.each(run.at..until, |record| {
                    let late = record.stamp_ns < *written_ns;
                    *late_ones += u64::from(late);
                    *written_ns = record.stamp_ns.max(*written_ns);
                    each(record, late);
                });
                run.at = until;
                if run.at < chunk.len() {
                    break;
                }
                bytes += chunk.bytes();
                run.chunks.pop_front();
                run.at = 0;
            }
            self.runs.retain(|run| !run.chunks.is_empty());
        }
        bytes
    }

    /// The run with the oldest frame, if that is ripe, and up to which stamp it is ahead of the others.
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
    use proptest::prelude::*;

    fn chunk(fd: bool, stamps: &[u64]) -> Chunk {
        let mut chunk = Chunk::new(fd, stamps.len());
        for &stamp_ns in stamps {
            let bytes = &[0; 72][..if fd { 72 } else { 16 }];
            assert!(chunk.push(&Record::new(stamp_ns, 0, bytes)));
        }
        chunk
    }

    fn all(merge: &mut Merge) -> Vec<u64> {
        let mut stamps = Vec::new();
        merge.all(|record, _| stamps.push(record.stamp_ns));
        stamps
    }

    #[test]
    fn frames_wait_for_older_ones_as_long_as_the_window() {
        let mut merge = Merge::default();
        let mut out = Vec::new();
        merge.add(chunk(false, &[10, 30, WINDOW_NS + 20]));
        assert_eq!(
            merge.ripe(u64::MAX, |record, _| out.push(record.stamp_ns)),
            0,
            "the chunk is still in use"
        );
        assert_eq!(out, [10]);
        merge.add(chunk(false, &[3 * WINDOW_NS]));
        merge.ripe(15, |record, _| out.push(record.stamp_ns));
        assert_eq!(out, [10], "a ring still holds older ones");
        merge.add(chunk(true, &[25, 40]));
        assert_eq!(all(&mut merge), [25, 30, 40, WINDOW_NS + 20, 3 * WINDOW_NS]);
        assert_eq!(merge.late(), 0);
    }

    #[test]
    fn a_frame_behind_younger_ones_is_handed_out_and_counted_as_late() {
        let mut merge = Merge::default();
        let mut out = Vec::new();
        merge.add(chunk(false, &[100, 200]));
        all(&mut merge);
        merge.add(chunk(false, &[150, 250]));
        merge.all(|record, late| out.push((record.stamp_ns, late)));
        assert_eq!((out.as_slice(), merge.late()), (&[(150, true), (250, false)][..], 1));
        merge.restart(|_, _| ());
        merge.add(chunk(false, &[1]));
        assert_eq!(
            (all(&mut merge).as_slice(), merge.late()),
            (&[1][..], 1),
            "a clock set back makes none late"
        );
    }

    proptest! {
        #[test]
        fn what_comes_within_the_window_leaves_in_order_and_whole(
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
                freed += merge.ripe(u64::MAX, |record, late| got.push((record.stamp_ns, late)));
            }
            freed += merge.all(|record, late| got.push((record.stamp_ns, late)));
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
