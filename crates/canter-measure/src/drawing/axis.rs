//! Axes: maps values to pixels, chooses ticks, and moves labels apart.

/// Maps values to pixels, linearly or by logarithm. Every value, even NaN, maps to a pixel on the axis.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    logarithmic: bool,
}

impl Scale {
    /// A linear axis: `low` becomes pixel `from`, `high` pixel `to`.
    pub fn linear((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        Self { low, high: if high > low { high } else { low * 1.001 + 1.0 }, from, to, logarithmic: false }
    }

    /// A logarithmic axis for values above 0: `low` becomes pixel `from`, `high` pixel `to`.
    pub fn logarithmic((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let low = low.max(1e-3);
        Self { low, high: if high > low { high } else { low * 10.0 }, from, to, logarithmic: true }
    }

    /// The pixel of a value; values outside of the range lie at its ends.
    pub fn at(&self, value: f64) -> f64 {
        let value = if value.is_finite() { value.clamp(self.low, self.high) } else { self.low };
        let share = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share * (self.to - self.from)
    }

    /// Whether a value is on the axis.
    pub fn covers(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Round values along the axis, at most about `most` of them. They are integers, because all values are counts.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        // Within one decade there are too few powers of ten.
        let powers = self.logarithmic && self.high / self.low >= 10.0;
        let ticks = if powers { self.decades(most) } else { self.round_steps(most) };
        let shown = |tick: f64| self.covers(tick) && tick.fract() == 0.0;
        ticks.into_iter().filter(|&tick| shown(tick)).collect()
    }

    /// Round values along an axis of ratios, at most about `most` of them.
    pub fn fractions(&self, most: usize) -> Vec<f64> {
        self.round_steps(most).into_iter().filter(|&tick| self.covers(tick)).collect()
    }

    fn round_steps(&self, most: usize) -> Vec<f64> {
        let rough = (self.high - self.low) / most.max(1) as f64;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|n| n * power).into_iter().find(|&step| step >= rough);
        let step = step.unwrap_or(10.0 * power);
        let first = (self.low / step).ceil();
        (0..=most + 1).map(|n| (first + n as f64) * step).collect()
    }

    fn decades(&self, most: usize) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let decades = usize::try_from(last - first).unwrap_or(0).max(1);
        let within: &[f64] = match most / decades {
            0 | 1 => &[1.0],
            2 => &[1.0, 3.0],
            _ => &[1.0, 2.0, 5.0],
        };
        let every = decades.div_ceil(most.max(1));
        let powers = (first..=last).step_by(every.max(1)).map(|power| 10_f64.powi(power));
        powers.flat_map(|power| within.iter().map(move |n| n * power)).collect()
    }
}

/// Moves labels apart to at least `gap`, each as little as possible, within `low…high`. Returns the positions in the
/// order of `wanted`. Too many labels for the space are spread evenly.
pub fn make_room(wanted: &[f64], gap: f64, (low, high): (f64, f64)) -> Vec<f64> {
    let gap = gap.min((high - low) / (wanted.len().max(2) - 1) as f64);
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    // A cluster is a run of touching labels: (number of labels, average wanted position of its first one).
    let mut clusters: Vec<(usize, f64)> = Vec::new();
    for &label in &order {
        let mut cluster = (1, wanted[label]);
        while let Some(&(n, start)) = clusters.last() {
            if start + n as f64 * gap <= cluster.1 {
                break;
            }
            let both = (n + cluster.0) as f64;
            let start = (start * n as f64 + (cluster.1 - n as f64 * gap) * cluster.0 as f64) / both;
            cluster = (n + cluster.0, start);
            clusters.pop();
        }
        clusters.push(cluster);
    }
    let spread = clusters.iter().flat_map(|&(n, start)| (0..n).map(move |i| start + i as f64 * gap));
    let mut placed: Vec<f64> = spread.collect();
    push_inside(&mut placed, gap, (low, high));
    let mut answer = vec![low; wanted.len()];
    order.into_iter().zip(placed).for_each(|(label, at)| answer[label] = at);
    answer
}

fn push_inside(placed: &mut [f64], gap: f64, (low, high): (f64, f64)) {
    let mut least = low;
    for at in placed.iter_mut() {
        *at = at.max(least);
        least = *at + gap;
    }
    let mut most = high;
    for at in placed.iter_mut().rev() {
        *at = at.min(most);
        most = *at - gap;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round() {
        let linear = Scale::linear((0.0, 47.0), (0.0, 100.0));
        assert_eq!(linear.ticks(5), [0.0, 10.0, 20.0, 30.0, 40.0]);
        let logarithmic = Scale::logarithmic((0.6, 3200.0), (0.0, 100.0));
        assert_eq!(logarithmic.ticks(5), [1.0, 10.0, 100.0, 1000.0]);
        let within_a_decade = Scale::logarithmic((11_000.0, 31_000.0), (0.0, 100.0));
        assert_eq!(within_a_decade.ticks(5), [15_000.0, 20_000.0, 25_000.0, 30_000.0]);
    }

    #[test]
    fn labels_move_apart_as_little_as_possible() {
        assert_eq!(make_room(&[50.0, 20.0, 50.0], 10.0, (0.0, 100.0)), [45.0, 20.0, 55.0]);
        assert_eq!(make_room(&[99.0, 100.0], 10.0, (0.0, 100.0)), [90.0, 100.0]);
        assert_eq!(make_room(&[], 10.0, (0.0, 100.0)), [0.0; 0]);
    }

    proptest! {
        #[test]
        fn a_scale_returns_a_pixel_on_the_axis(low: f64, high: f64, value: f64, logarithmic: bool) {
            let make = if logarithmic { Scale::logarithmic } else { Scale::linear };
            let (low, high) = (low.abs().min(1e20), high.abs().min(1e20));
            let scale = make((low, high), (10.0, 20.0));
            prop_assert!((10.0..=20.0).contains(&scale.at(value)));
            prop_assert!(scale.ticks(6).len() < 40);
        }

        #[test]
        fn labels_keep_their_distance(wanted in prop::collection::vec(0.0..300.0_f64, 0..30)) {
            let mut placed = make_room(&wanted, 16.0, (0.0, 300.0));
            placed.sort_by(f64::total_cmp);
            let gap = 16_f64.min(300.0 / (wanted.len().max(2) - 1) as f64);
            prop_assert!(placed.windows(2).all(|pair| pair[1] - pair[0] > gap - 1e-6), "{placed:?}");
            prop_assert!(placed.iter().all(|at| (-1e-6..300.1).contains(at)));
        }
    }
}
