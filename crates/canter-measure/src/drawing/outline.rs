//! The outline of a profile in pixels: its steps, without the corners that nobody could see.

use super::axis::Scale;
use super::svg::Path;
use crate::profile::Profile;

/// The largest deviation of the outline, in pixels.
const TOLERANCE: f64 = 0.5;
/// Corners closer to each other than this many pixels are one, so that simplifying a million steps stays fast.
const CLOSE: f64 = 0.1;

type Point = (f64, f64);

/// The outline of a profile along both scales.
pub fn path(profile: &Profile, x: &Scale, y: &Scale) -> Path {
    Path::through(thinned(&apart(&corners(profile, x, y))))
}

/// Both corners of every step.
fn corners(profile: &Profile, x: &Scale, y: &Scale) -> Vec<Point> {
    let mut level = y.at(profile.count as f64);
    let mut corners = Vec::with_capacity(2 * profile.steps.len());
    for &(t, m) in &profile.steps {
        let t = x.at(t.max(1) as f64);
        corners.push((t, level));
        level = y.at(m as f64);
        corners.push((t, level));
    }
    corners
}

/// The corners without those that are close to the one before; the first and the last stay.
fn apart(corners: &[Point]) -> Vec<Point> {
    let (Some(&first), Some(&last)) = (corners.first(), corners.last()) else { return Vec::new() };
    let mut kept = vec![first];
    for &corner in &corners[1..] {
        let before = kept[kept.len() - 1];
        if corner.0 - before.0 > CLOSE || corner.1 - before.1 > CLOSE || corner == last {
            kept.push(corner);
        }
    }
    kept
}

/// Douglas and Peucker's algorithm: removes every corner that is closer than the tolerance to the line without it.
fn thinned(corners: &[Point]) -> Vec<Point> {
    if corners.is_empty() {
        return Vec::new();
    }
    let mut keep = vec![false; corners.len()];
    keep[0] = true;
    keep[corners.len() - 1] = true;
    let mut open = vec![(0, corners.len() - 1)];
    while let Some((from, to)) = open.pop() {
        let line = (corners[from], corners[to]);
        let between = (from + 1..to).map(|n| (n, distance(corners[n], line)));
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
fn distance(point: Point, (a, b): (Point, Point)) -> f64 {
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

    /// The axes of a drawing 900 pixels wide and 300 high.
    fn axes() -> (Scale, Scale) {
        (Scale::logarithmic((1e3, 1e9), (0.0, 900.0)), Scale::logarithmic((1.0, 1e6), (300.0, 0.0)))
    }

    fn drawn(profile: &Profile) -> String {
        let (x, y) = axes();
        path(profile, &x, &y).to_string()
    }

    #[test]
    fn few_steps_are_drawn_exactly() {
        let profile = Profile { count: 1000, steps: vec![(1_000, 100), (1_000_000, 0)] };
        assert_eq!(drawn(&profile), "M0 150v50h450v100");
        let lost = Profile { count: 100, steps: vec![(10_000, 10)] };
        assert_eq!(drawn(&lost), "M150 200v50");
        assert_eq!(drawn(&Profile::default()), "");
    }

    #[test]
    fn a_hundred_thousand_steps_become_a_few() {
        let steps = (0..100_000_u64).map(|n| (10_000 + 3 * n, 99_999 - n)).collect();
        let d = drawn(&Profile { count: 100_000, steps });
        assert!(d.len() < 1_500, "{} bytes", d.len());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_corner_moves_by_more_than_the_tolerance(steps in prop::collection::btree_map(1_000..90_000_000_u64, 1..50_u64, 2..300)) {
            let count: u64 = steps.values().sum();
            let mut left = count;
            let steps = steps.into_iter().map(|(t, n)| { left -= n; (t, left) }).collect();
            let (x, y) = axes();
            let all = corners(&Profile { count, steps }, &x, &y);
            let kept = thinned(&all);
            prop_assert_eq!(kept.first(), all.first());
            prop_assert_eq!(kept.last(), all.last());
            for &corner in &all {
                let near = kept.windows(2).filter(|pair| pair[0].0 <= corner.0 && corner.0 <= pair[1].0);
                let least = near.map(|pair| distance(corner, (pair[0], pair[1])));
                let least = least.min_by(f64::total_cmp).unwrap_or(f64::MAX);
                prop_assert!(least <= TOLERANCE + 1e-9, "{:?} is {} pixels off", corner, least);
            }
        }
    }
}
