//! `canter report --compare A B`: whether the second run is slower than the first or loses more frames. The exit code
//! is the answer, for `git bisect run`.
//!
//! It compares percentiles and shares of lost frames, never single maxima: the greatest of n latencies depends more on
//! n than on the gateway. With at least four repeats of a series on both sides, it ranks the repeats (Mann–Whitney),
//! because runs differ from each other by more than frames within a run do. With fewer, it pools the frames of all
//! repeats. Pooling is valid in the virtual clock, where runs repeat exactly; in the real clock it ignores the spread
//! between runs, and the report states so.

mod pairing;
mod table;
mod view;

use canter_cli::failure::{self, Exit, Failure};
use canter_measure::result::{ClockKind, ResultFile, Series};
use canter_measure::statistics::{self, Confidence, Estimate};
pub use pairing::Across;
use pairing::Pair;
pub use table::{method, numbers, sentence, text};
pub use view::{ComparisonView, view};

/// The share by which a percentile may grow.
#[derive(Clone, Copy, Debug)]
pub struct Bound(pub f64);

impl std::str::FromStr for Bound {
    type Err = String;

    /// Reads `5%` or `0.5%`.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
        let number = number.filter(|number| (0.0..=1000.0).contains(number));
        number.map(|number| Self(number / 100.0)).ok_or_else(|| format!("{text:?} is not a share (5%)"))
    }
}

/// The result of comparing a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Regression,
    Improvement,
    /// The series is not worse by more than the bound.
    Same,
    /// The interval crosses the bound: worse or not cannot be decided.
    Undecided,
    OnlyInA,
    OnlyInB,
    /// The numbers of one side or both contradict each other.
    Invalid,
    /// The series was measured on neither side.
    Nothing,
}

/// One statistic of a series on both sides.
pub struct ComparedStatistic {
    pub name: &'static str,
    pub kind: StatisticKind,
    pub a: f64,
    pub b: f64,
    /// The change: B over A for times, B minus A for shares.
    pub change: Estimate,
    pub verdict: Decision,
}

/// The unit of a statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatisticKind {
    Ns,
    Share,
    /// The statistic of a curve, of which only the ratio has a meaning.
    Ratio,
}

/// The comparison of a series.
pub struct Compared {
    pub heading: String,
    pub label: String,
    pub verdict: Decision,
    pub statistics: Vec<ComparedStatistic>,
    /// The numbers of repeats of A and of B.
    pub repeats: [usize; 2],
    /// The reason, where the verdict needs one.
    pub note: String,
}

/// The comparison of two runs.
pub struct Comparison {
    pub series: Vec<Compared>,
    pub bound: Bound,
    pub clock: ClockKind,
}

impl Comparison {
    /// Compares two runs; refuses those that cannot be compared.
    pub fn of(a: &[ResultFile], b: &[ResultFile], bound: Bound, across: &[Across]) -> failure::Result<Self> {
        let refuse = |why: String| Failure::new(Exit::Usage, format!("report: not comparable: {why}"));
        let obstacles = pairing::obstacles(a, b, across);
        if !obstacles.is_empty() {
            return Err(refuse(obstacles.join("; ")));
        }
        let pairs = pairing::pairs(a, b);
        let limits = Limits { bound, confidence: Confidence::joint(pairs.len() * (PERCENTILES.len() + 1)) };
        let series: Vec<Compared> = pairs.iter().map(|pair| compare(pair, limits)).collect();
        let both = |one: &Compared| !one.statistics.is_empty() || one.verdict == Decision::Invalid;
        if !series.iter().any(both) {
            return Err(refuse("no series is in both runs".into()));
        }
        let clock = a.first().map(|result| result.environment.clock).unwrap_or_default();
        Ok(Self { series, bound, clock })
    }

    pub fn count(&self, verdict: Decision) -> usize {
        self.series.iter().filter(|series| series.verdict == verdict).count()
    }

    /// The exit code: 1 when a series got worse by more than the bound; else 2 when one is invalid; else 5 when one is
    /// undecided or was not measured in B.
    pub fn exit(&self) -> Exit {
        let any = |verdict| self.count(verdict) > 0;
        if any(Decision::Regression) {
            Exit::Failed
        } else if any(Decision::Invalid) {
            Exit::Usage
        } else if any(Decision::Undecided) || any(Decision::OnlyInA) {
            Exit::Undecided
        } else {
            Exit::Done
        }
    }
}

/// The limits that a change must exceed to count.
#[derive(Clone, Copy)]
struct Limits {
    bound: Bound,
    /// The confidence of each interval, such that many comparisons of equal runs give no false alarm.
    confidence: Confidence,
}

fn compare(pair: &Pair<'_>, limits: Limits) -> Compared {
    let measured = |series: &&&Series| series.unavailable.is_empty();
    let [a, b] = [&pair.a, &pair.b].map(|side| side.iter().filter(measured).copied().collect::<Vec<_>>());
    let fault = [("A", &a), ("B", &b)]
        .into_iter()
        .find_map(|(name, side)| Some(format!("{name}: {}", side.iter().find_map(|series| series.fault())?)));
    let late = a.iter().chain(&b).find_map(|series| series.lateness(Series::LATE_ONE_IN));
    let mut compared = Compared {
        heading: pair.heading.clone(),
        label: pair.label.clone(),
        verdict: Decision::Nothing,
        statistics: Vec::new(),
        repeats: [a.len(), b.len()],
        note: String::new(),
    };
    let reason = |side: &[&Series]| side.first().map(|series| series.unavailable.clone()).unwrap_or_default();
    match (fault, a.is_empty(), b.is_empty()) {
        (_, true, true) => compared.note = reason(&pair.a),
        (_, true, false) => (compared.verdict, compared.note) = (Decision::OnlyInB, reason(&pair.a)),
        (_, false, true) => (compared.verdict, compared.note) = (Decision::OnlyInA, reason(&pair.b)),
        (Some(fault), ..) => (compared.verdict, compared.note) = (Decision::Invalid, fault),
        (None, false, false) => {
            compared.statistics = statistics(&a, &b, limits);
            compared.verdict = overall(&compared.statistics);
            if let Some(late) = late {
                (compared.verdict, compared.note) = (Decision::Undecided, late);
            }
        }
    }
    compared
}

/// The verdict of the worst statistic; if none is worse, of the best.
fn overall(statistics: &[ComparedStatistic]) -> Decision {
    let order = [Decision::Regression, Decision::Undecided, Decision::Improvement, Decision::Same];
    let first =
        order.into_iter().find(|&verdict| statistics.iter().any(|statistic| statistic.verdict == verdict));
    first.unwrap_or(Decision::Nothing)
}

/// The percentiles that are compared, where there are enough latencies.
const PERCENTILES: [(&str, u64); 3] = [("p50", 500), ("p99", 990), ("p99.9", 999)];

fn statistics(a: &[&Series], b: &[&Series], limits: Limits) -> Vec<ComparedStatistic> {
    let mut statistics: Vec<ComparedStatistic> = PERCENTILES
        .iter()
        .filter_map(|&(name, per_mille)| percentile(a, b, name, per_mille, limits))
        .collect();
    statistics.extend(cost(a, b, limits.bound));
    statistics.extend(curve(a, b, limits.bound));
    statistics.extend(loss(a, b, limits.confidence));
    statistics
}

fn percentile(
    a: &[&Series],
    b: &[&Series],
    name: &'static str,
    per_mille: u64,
    Limits { bound, confidence }: Limits,
) -> Option<ComparedStatistic> {
    let [all_a, all_b] = [a, b].map(pairing::together);
    let [whole_a, whole_b] = [&all_a, &all_b].map(|all| statistics::percentile(all, per_mille, confidence));
    let (whole_a, whole_b) = (whole_a?, whole_b?);
    let each = |side: &[&Series]| -> Vec<f64> {
        let latencies = side.iter().filter_map(|series| series.latency_ns.as_ref());
        latencies.map(|latency| (latency.at_per_mille(per_mille).max(1) as f64).ln()).collect()
    };
    let ranked = statistics::shift(&each(a), &each(b));
    let change = match ranked {
        Some(Estimate { value, low, high }) => {
            Estimate { value: value.exp(), low: low.exp(), high: high.exp() }
        }
        None => whole_b.ratio_to(whole_a),
    };
    let statistic = of_ratio(name, StatisticKind::Ns, [whole_a.value, whole_b.value], change, bound);
    // The tail of a few frames is known less exactly than the bound asks for: only a greater change is told.
    let blurred = whole_a.high / whole_a.low.max(1.0) > 1.0 + bound.0;
    Some(statistic)
        .filter(|statistic| per_mille == 500 || !blurred || statistic.verdict != Decision::Undecided)
}

fn of_ratio(
    name: &'static str,
    kind: StatisticKind,
    [a, b]: [f64; 2],
    change: Estimate,
    bound: Bound,
) -> ComparedStatistic {
    let (most, least) = (1.0 + bound.0, 1.0 / (1.0 + bound.0));
    let verdict = match change {
        Estimate { low, .. } if low > most => Decision::Regression,
        Estimate { high, .. } if high < least => Decision::Improvement,
        Estimate { high, .. } if high <= most => Decision::Same, // or better
        _ => Decision::Undecided,
    };
    ComparedStatistic { name, kind, a, b, change, verdict }
}

/// System calls: one statistic per repeat.
fn cost(a: &[&Series], b: &[&Series], bound: Bound) -> Option<ComparedStatistic> {
    let each = |side: &[&Series]| -> Vec<f64> {
        side.iter().filter_map(|series| Some((series.cost_ns.as_ref()?.total.max(1) as f64).ln())).collect()
    };
    let (a, b) = (each(a), each(b));
    let middle = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    let (middle_a, middle_b) = (middle(&a)?, middle(&b)?);
    let change = statistics::shift(&a, &b).unwrap_or(Estimate::exact(middle_b - middle_a));
    let change = Estimate { value: change.value.exp(), low: change.low.exp(), high: change.high.exp() };
    Some(of_ratio("total", StatisticKind::Ns, [middle_a.exp(), middle_b.exp()], change, bound))
}

/// Curves: the ratio at every point that both have.
fn curve(a: &[&Series], b: &[&Series], bound: Bound) -> Option<ComparedStatistic> {
    let (a, b) = (a.first()?.curve.as_ref()?, b.first()?.curve.as_ref()?);
    let point_of_a = |x: u64| a.points.iter().find(|point| point[0] == x).map(|point| point[1].max(1) as f64);
    let ratios: Vec<f64> =
        b.points.iter().filter_map(|p| Some(p[1].max(1) as f64 / point_of_a(p[0])?)).collect();
    let middle = *ratios.get(ratios.len() / 2)?;
    let change = statistics::median(&ratios).unwrap_or(Estimate::exact(middle));
    Some(of_ratio("curve", StatisticKind::Ratio, [1.0, change.value], change, bound))
}

/// Whether more frames are lost. Any loss beyond chance is a regression, however small.
fn loss(a: &[&Series], b: &[&Series], confidence: Confidence) -> Option<ComparedStatistic> {
    let counts = |series: &&Series| (series.ledger.lost.total(), series.ledger.sent);
    let sum = |side: &[&Series]| side.iter().map(counts).fold((0, 0), |(l, s), (m, t)| (l + m, s + t));
    let ((lost_a, sent_a), (lost_b, sent_b)) = (sum(a), sum(b));
    if lost_a + lost_b == 0 {
        return None;
    }
    let (whole_a, whole_b) =
        (statistics::share(lost_a, sent_a, confidence)?, statistics::share(lost_b, sent_b, confidence)?);
    let each = |side: &[&Series]| -> Vec<f64> {
        side.iter().map(counts).map(|(lost, sent)| lost as f64 / sent.max(1) as f64).collect()
    };
    let change = statistics::shift(&each(a), &each(b)).unwrap_or_else(|| whole_b.minus(whole_a));
    let verdict = match change {
        Estimate { low, .. } if low > 0.0 => Decision::Regression,
        Estimate { high, .. } if high < 0.0 => Decision::Improvement,
        _ => Decision::Same,
    };
    Some(ComparedStatistic {
        name: "lost",
        kind: StatisticKind::Share,
        a: whole_a.value,
        b: whole_b.value,
        change,
        verdict,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_measure::histogram::Histogram;
    use canter_measure::result::{Environment, Ledger, Lost, SCHEMA};

    /// A run of one method: frames of about `ns`, of which `lost` did not arrive.
    fn series(ns: i64, lost: u64) -> Series {
        let mut histogram = Histogram::new();
        (0..1000).for_each(|n| histogram.record(ns + n * 7919 % 997 * ns / 50_000));
        let ledger = Ledger {
            sent: 1000 + lost,
            received: 1000,
            lost: Lost { socket: lost, ..Lost::default() },
            ..Ledger::default()
        };
        Series {
            method: "can-gw".into(),
            latency_ns: Some(histogram.to_latency()),
            ledger,
            ..Series::default()
        }
    }

    fn run(series: Vec<Series>) -> Vec<ResultFile> {
        let (study, title, command) = Default::default();
        let environment = Environment { clock: ClockKind::Virtual, ..Environment::default() };
        vec![ResultFile { schema: SCHEMA, study, title, command, environment, series }]
    }

    fn verdict(a: Vec<Series>, b: Vec<Series>) -> Decision {
        let comparison = Comparison::of(&run(a), &run(b), Bound(0.05), &[]);
        comparison.unwrap_or_else(|failure| panic!("{failure}")).series[0].verdict
    }

    #[test]
    fn slower_beyond_the_bound_is_a_regression_and_less_is_not() {
        assert_eq!(verdict(vec![series(10_000, 0)], vec![series(11_000, 0)]), Decision::Regression);
        assert_eq!(verdict(vec![series(10_000, 0)], vec![series(10_300, 0)]), Decision::Same);
        assert_eq!(verdict(vec![series(10_000, 0)], vec![series(9_000, 0)]), Decision::Improvement);
    }

    #[test]
    fn a_single_late_frame_is_no_regression() {
        let mut late = series(10_000, 0);
        let latency = late.latency_ns.as_mut().expect("it has latencies");
        let last = latency.buckets.last_mut().expect("it has buckets");
        last[1] -= 1;
        latency.buckets.push([90_000_000, 1]);
        latency.max = 90_000_000;
        assert_eq!(verdict(vec![series(10_000, 0)], vec![late]), Decision::Same);
    }

    #[test]
    fn lost_frames_are_a_regression_unless_chance_explains_them() {
        assert_eq!(verdict(vec![series(10_000, 0)], vec![series(10_000, 40)]), Decision::Regression);
        assert_eq!(verdict(vec![series(10_000, 0)], vec![series(10_000, 1)]), Decision::Same);
    }

    #[test]
    fn a_gateway_that_loses_every_frame_is_a_regression() {
        // A measurement ends when none of the first frames arrives.
        let ledger =
            Ledger { sent: 3, lost: Lost { unaccounted: 3, ..Lost::default() }, ..Ledger::default() };
        let latency_ns = Some(Histogram::new().to_latency());
        let silent = Series { latency_ns, ledger, ..series(10_000, 0) };
        assert_eq!(verdict(vec![series(10_000, 0)], vec![silent]), Decision::Regression);
    }

    #[test]
    fn a_thousand_comparisons_of_equal_runs_give_no_alarm_and_one_planted_change_is_found() {
        // Exponential latencies above a base, by a fixed generator: skewed, and another sample in every series.
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut sample = |method: usize, by: f64| {
            let mut histogram = Histogram::new();
            for _ in 0..1000 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let uniform = (state >> 11) as f64 / (1_u64 << 53) as f64;
                histogram.record((by * (10_000.0 - 500.0 * (1.0 - uniform).ln())) as i64);
            }
            let ledger = Ledger { sent: 1000, received: 1000, ..Ledger::default() };
            let latency_ns = Some(histogram.to_latency());
            Series { method: format!("m{method}"), latency_ns, ledger, ..Series::default() }
        };
        let mut side =
            |by: f64| (0..1000).map(|n| sample(n, if n == 500 { by } else { 1.0 })).collect::<Vec<_>>();
        let (a, b) = (run(side(1.0)), run(side(1.02)));
        let comparison =
            Comparison::of(&a, &b, Bound(0.005), &[]).unwrap_or_else(|failure| panic!("{failure}"));
        let worse: Vec<_> = comparison
            .series
            .iter()
            .filter(|one| one.verdict == Decision::Regression)
            .map(|one| &*one.label)
            .collect();
        assert_eq!(worse, ["m500"]);
    }

    #[test]
    fn repeats_that_spread_are_ranked_and_not_taken_together() {
        // Every run has a thousand frames, and the runs differ from each other by more than the sides do.
        let a = [9_000, 10_000, 11_000, 12_000].map(|ns| series(ns, 0)).to_vec();
        let b = [9_900, 10_900, 11_900, 12_900].map(|ns| series(ns, 0)).to_vec();
        assert_eq!(verdict(a.clone(), b), Decision::Undecided);
        let b = [15_000, 16_000, 14_000, 15_500].map(|ns| series(ns, 0)).to_vec();
        assert_eq!(verdict(a, b), Decision::Regression);
    }

    #[test]
    fn invalid_series_are_not_compared() {
        let broken = Series { ledger: Ledger { sent: 7, ..Ledger::default() }, ..series(10_000, 0) };
        let comparison = Comparison::of(&run(vec![series(10_000, 0)]), &run(vec![broken]), Bound(0.05), &[]);
        let comparison = comparison.unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!((comparison.series[0].verdict, comparison.exit()), (Decision::Invalid, Exit::Usage));
        assert!(comparison.series[0].statistics.is_empty());
    }

    #[test]
    fn a_series_whose_frames_were_late_decides_nothing() {
        let mut late = series(20_000, 0);
        late.ledger.late = 2;
        assert_eq!(verdict(vec![series(10_000, 0)], vec![late]), Decision::Undecided);
    }

    #[test]
    fn a_bound_is_a_share() {
        assert!(matches!("5%".parse::<Bound>(), Ok(Bound(bound)) if (bound - 0.05).abs() < 1e-12));
        for text in ["", "%", "five", "-1%", "NaN", "inf"] {
            assert!(text.parse::<Bound>().is_err(), "{text}");
        }
    }
}
