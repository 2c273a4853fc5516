//! The processor's load against the frame rate, one curve per method, from the loads in series with a time chart
//! ("Wapice Custom CAN Driver", figures 3, 4 and 6).

use canter_measure::result::{Condition, Curve, Series, Timeline};

/// The minimum number of rates for a curve.
const RATES_MIN: usize = 3;

/// A curve for each method that was measured at several periods.
pub fn of(series: &[Series]) -> Vec<Series> {
    let mut curves: Vec<Series> = Vec::new();
    for one in series.iter().filter(|one| one.condition.traffic == "period") {
        let Some(load) = one.timeline.as_ref().and_then(mean) else { continue };
        let Some(rate) = 1_000_000_000_u64.checked_div(one.condition.period_ns) else { continue };
        let condition = Condition { traffic: String::new(), period_ns: 0, ..one.condition.clone() };
        points_of(&mut curves, one, condition, empty).push([rate, load]);
    }
    for curve in curves.iter_mut().filter_map(|series| series.curve.as_mut()) {
        curve.points.sort_unstable();
        curve.points.dedup_by_key(|point| point[0]);
    }
    curves.retain(|series| series.curve.as_ref().is_some_and(|curve| curve.points.len() >= RATES_MIN));
    curves
}

/// The points of the curve of this method and condition, which is added unless it exists.
pub fn points_of<'a>(
    curves: &'a mut Vec<Series>,
    one: &Series,
    condition: Condition,
    empty: fn() -> Curve,
) -> &'a mut Vec<[u64; 2]> {
    let is_it = |curve: &Series| curve.method == one.method && curve.condition == condition;
    let place = curves.iter().position(is_it).unwrap_or_else(|| {
        let (method, paper_name) = (one.method.clone(), one.paper_name.clone());
        curves.push(Series { method, paper_name, condition, ..Series::default() });
        curves.len() - 1
    });
    &mut curves[place].curve.get_or_insert_with(empty).points
}

/// A quantity against the number of buses.
pub fn against_buses(quantity: &str, unit: &str, points: Vec<[u64; 2]>) -> Curve {
    Curve {
        quantity: quantity.to_owned(),
        unit: unit.to_owned(),
        decimals: 0,
        against: "buses".to_owned(),
        against_unit: String::new(),
        points,
    }
}

fn empty() -> Curve {
    Curve {
        quantity: "processor load".to_owned(),
        unit: "%".to_owned(),
        decimals: 1,
        against: "rate".to_owned(),
        against_unit: "frames/s".to_owned(),
        points: Vec::new(),
    }
}

/// The load over the whole time, in tenths of a per cent; `None`: the series was too short.
fn mean(timeline: &Timeline) -> Option<u64> {
    let mut before_ns = 0;
    let busy: u64 = timeline
        .load
        .iter()
        .map(|&[ns, per_mille]| {
            let passed_ns = ns - before_ns;
            before_ns = ns;
            passed_ns * per_mille
        })
        .sum();
    busy.checked_div(before_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(method: &str, period_ns: u64, load: &[[u64; 2]]) -> Series {
        let condition =
            Condition { traffic: "period".to_owned(), period_ns, frames: 9, ..Condition::default() };
        let timeline = Some(Timeline { load: load.to_vec(), ..Timeline::default() });
        Series { method: method.to_owned(), condition, timeline, ..Series::default() }
    }

    #[test]
    fn a_method_at_three_rates_is_a_curve() {
        let all = [
            series("a", 1_000_000, &[[100, 100], [400, 500]]),
            series("a", 100_000, &[[100, 900]]),
            series("a", 500_000, &[[100, 600]]),
            series("b", 1_000_000, &[[100, 1]]),
            series("c", 1_000_000, &[]),
        ];
        let curves = of(&all);
        let curve = curves[0].curve.as_ref().unwrap();
        assert_eq!((curves.len(), curves[0].method.as_str()), (1, "a"), "one rate is none");
        assert_eq!(curve.points, [[1000, 400], [2000, 600], [10_000, 900]]);
    }
}
