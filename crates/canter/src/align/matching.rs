//! Finds the frames that two recordings of one bus have in common: by runs of frames that each recording has once, in the same
//! order in both.

use std::collections::HashMap;

/// A frame of a recording: a number for its identifier and content, and its stamp in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    pub content: u64,
    pub stamp_ns: u64,
}

/// How many frames in a row are compared: values that repeat seldom repeat so long.
const RUN: usize = 8;

/// The stamps of a frame in both recordings, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    pub a_ns: u64,
    pub b_ns: u64,
}

/// The frames that both recordings have for certain, in their order.
pub fn pairs(a: &[Heard], b: &[Heard]) -> Vec<Pair> {
    let (of_a, of_b) = (unique_runs(a), unique_runs(b));
    let mut places: Vec<(usize, usize)> =
        of_a.iter().filter_map(|(run, &at)| Some((at, *of_b.get(run)?))).collect();
    places.sort_unstable();
    let kept = longest_ascent(&places.iter().map(|(_, at)| *at).collect::<Vec<_>>());
    let pair = |at: usize| {
        let (in_a, in_b) = places[at];
        Pair { a_ns: a[in_a].stamp_ns, b_ns: b[in_b].stamp_ns }
    };
    kept.into_iter().map(pair).collect()
}

/// The runs that occur once, each with the place of its last frame.
fn unique_runs(frames: &[Heard]) -> HashMap<u64, usize> {
    let mut places: HashMap<u64, Option<usize>> = HashMap::new();
    for (at, run) in frames.windows(RUN).enumerate() {
        let mix =
            |sum: u64, one: &Heard| (sum ^ one.content).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        let number = run.iter().fold(0, mix);
        places.entry(number).and_modify(|place| *place = None).or_insert(Some(at + RUN - 1));
    }
    places.into_iter().filter_map(|(number, place)| Some((number, place?))).collect()
}

/// The places of the longest part of a list that only ascends.
fn longest_ascent(list: &[usize]) -> Vec<usize> {
    // The place of the lowest end of an ascent of each length, and for each element the one before it.
    let (mut ends, mut before): (Vec<usize>, Vec<Option<usize>>) = (Vec::new(), vec![None; list.len()]);
    for (at, value) in list.iter().enumerate() {
        let length = ends.partition_point(|&end| list[end] < *value);
        before[at] = length.checked_sub(1).map(|shorter| ends[shorter]);
        if length == ends.len() {
            ends.push(at);
        } else {
            ends[length] = at;
        }
    }
    let mut ascent: Vec<usize> = std::iter::successors(ends.last().copied(), |&at| before[at]).collect();
    ascent.reverse();
    ascent
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(contents: &[u64], shift_ns: u64) -> Vec<Heard> {
        let frame = |(at, &content): (usize, &u64)| Heard { content, stamp_ns: at as u64 * 1000 + shift_ns };
        contents.iter().enumerate().map(frame).collect()
    }

    #[test]
    fn frames_pair_across_losses_and_different_beginnings() {
        let all: Vec<u64> = (0..100).map(|at| at * at % 97 + at).collect();
        let a = heard(&all[..80], 0);
        let mut b = heard(&all, 5_000_000);
        b.drain(40..43); // lost there
        b.drain(..20); // begun later
        let found = pairs(&a, &b);
        assert!(found.len() > 40 && found.iter().all(|pair| pair.b_ns - pair.a_ns == 5_000_000), "{found:?}");
    }

    #[test]
    fn frames_that_only_repeat_pair_with_none() {
        let same: Vec<u64> = (0..100).map(|at| at % 5).collect();
        assert_eq!(pairs(&heard(&same, 0), &heard(&same, 7)), []);
    }

    #[test]
    fn the_longest_ascent_leaves_out_what_is_out_of_order() {
        assert_eq!(longest_ascent(&[3, 50, 4, 5, 1, 6]), [0, 2, 3, 5]);
        assert_eq!(longest_ascent(&[]), Vec::<usize>::new());
    }
}
