//! The outline of a profile: its steps as a path in logarithms, simplified below the visible resolution. The page
//! defines it once, and each figure draws it, scaled to its axes.
//!
//! A step's corner is at (100 000 · lg t in ns, −1000 · lg m). Numbers in a path are relative, so most are short.

use canter_measure::profile::Profile;
use std::fmt::Write;

/// Path units of a decade.
pub const DECADE: (f64, f64) = (100_000.0, -1_000.0);
/// A profile without losses ends just below one frame, so that the last frame's step can be seen.
pub const LEAST_FRAMES: f64 = 0.7;
/// The size of the largest figure with profiles, in pixels.
const FIGURE: (f64, f64) = (880.0, 330.0);
/// The largest deviation of the outline, in pixels.
const TOLERANCE: f64 = 0.5;

type Point = (i64, i64);

/// The `d` of the path.
pub fn path(profile: &Profile) -> String {
    let points = thinned(&apart(corners(profile)));
    let mut d = String::new();
    let mut at = (0, 0);
    for (n, &(x, y)) in points.iter().enumerate() {
        let (dx, dy) = (x - at.0, y - at.1);
        let written = match (n, dx, dy) {
            (0, ..) => write!(d, "M{x} {y}"),
            (_, _, 0) => write!(d, "h{dx}"),
            (_, 0, _) => write!(d, "v{dy}"),
            _ => write!(d, "l{dx} {dy}"),
        };
        written.expect("a String takes everything");
        at = (x, y);
    }
    d
}

/// Both corners of every step, the first and the last exact.
fn corners(profile: &Profile) -> Vec<Point> {
    let x = |t: u64| ((t.max(1) as f64).log10() * DECADE.0).round() as i64;
    let y = |m: u64| (if m == 0 { LEAST_FRAMES } else { m as f64 }.log10() * DECADE.1).round() as i64;
    let mut level = y(profile.count);
    let mut corners = Vec::with_capacity(2 * profile.steps.len());
    for &(t, m) in &profile.steps {
        corners.push((x(t), level));
        level = y(m);
        corners.push((x(t), level));
    }
    corners.dedup();
    corners
}

/// Removes steps closer to each other than a tenth of a pixel, so that simplifying a million steps stays fast.
fn apart(corners: Vec<Point>) -> Vec<Point> {
    let (Some(&first), Some(&last)) = (corners.first(), corners.last()) else { return corners };
    let least = |extent: i64, pixels: f64| (extent as f64 / pixels / 10.0) as i64;
    let (dx, dy) = (least(last.0 - first.0, FIGURE.0), least(last.1 - first.1, FIGURE.1));
    let mut kept = vec![first];
    for &corner in &corners[1..] {
        let before = kept[kept.len() - 1];
        if corner.0 - before.0 > dx || corner.1 - before.1 > dy || corner == last {
            kept.push(corner);
        }
    }
    kept
}

/// Douglas and Peucker's algorithm: removes every corner that is closer than the tolerance to the line without it.
fn thinned(corners: &[Point]) -> Vec<Point> {
    let (Some(&first), Some(&last)) = (corners.first(), corners.last()) else { return Vec::new() };
    let width = (last.0 - first.0).max(1) as f64;
    let height = (last.1 - first.1).max(1) as f64;
    let pixels = |point: Point| (point.0 as f64 / width * FIGURE.0, point.1 as f64 / height * FIGURE.1);
    let mut keep = vec![false; corners.len()];
    keep[0] = true;
    keep[corners.len() - 1] = true;
    let mut open = vec![(0, corners.len() - 1)];
    while let Some((from, to)) = open.pop() {
        let line = (pixels(corners[from]), pixels(corners[to]));
        let between = (from + 1..to).map(|n| (n, distance(pixels(corners[n]), line)));
        let Some((n, far)) = between.max_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
        if far > TOLERANCE {
            keep[n] = true;
            open.push((from, n));
            open.push((n, to));
        }
    }
    corners.iter().zip(keep).filter(|(_, keep)| *keep).map(|(corner, _)| *corner).collect()
}

/// The distance of a point from the straight line through two others.
fn distance(point: (f64, f64), (a, b): ((f64, f64), (f64, f64))) -> f64 {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let length = dx.hypot(dy);
    if length == 0.0 {
        return (point.0 - a.0).hypot(point.1 - a.1);
    }
    ((point.0 - a.0) * dy - (point.1 - a.1) * dx).abs() / length
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_steps_are_drawn_exactly() {
        let profile = Profile { count: 10, steps: vec![(1_000, 1), (100_000, 0)] };
        assert_eq!(path(&profile), "M300000 -1000v1000h200000v155");
        let lost = Profile { count: 100, steps: vec![(10, 10)] };
        assert_eq!(path(&lost), "M100000 -2000v1000");
        assert_eq!(path(&Profile::default()), "");
    }

    #[test]
    fn a_hundred_thousand_steps_become_a_few() {
        let steps = (0..100_000_u64).map(|n| (10_000 + 3 * n, 99_999 - n)).collect();
        let d = path(&Profile { count: 100_000, steps });
        assert!(d.len() < 1_500, "{} bytes", d.len());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_corner_moves_by_more_than_the_tolerance(steps in prop::collection::btree_map(1_000..90_000_000_u64, 1..50_u64, 2..300)) {
            let count: u64 = steps.values().sum();
            let mut left = count;
            let steps = steps.into_iter().map(|(t, n)| { left -= n; (t, left) }).collect();
            let all = corners(&Profile { count, steps });
            let kept = thinned(&all);
            prop_assert_eq!(kept.first(), all.first());
            prop_assert_eq!(kept.last(), all.last());
            let width = (all[all.len() - 1].0 - all[0].0).max(1) as f64;
            let height = (all[all.len() - 1].1 - all[0].1).max(1) as f64;
            let pixels = |p: Point| (p.0 as f64 / width * FIGURE.0, p.1 as f64 / height * FIGURE.1);
            for &corner in &all {
                let near = kept.windows(2).filter(|pair| pair[0].0 <= corner.0 && corner.0 <= pair[1].0);
                let least = near.map(|pair| distance(pixels(corner), (pixels(pair[0]), pixels(pair[1]))));
                let least = least.min_by(f64::total_cmp).unwrap_or(f64::MAX);
                prop_assert!(least <= TOLERANCE + 1e-9, "{:?} is {} pixels off", corner, least);
            }
        }
    }
}
