//! A comparison in the terminal: a sentence, then one line per statistic.

use super::{Compared, ComparedStatistic, Comparison, Decision, StatisticKind};
use canter_cli::terminal::{self, BOLD, FAINT, GREEN, Ink, PLAIN, RED, Style, Table, YELLOW};
use canter_cli::units;
use canter_measure::result::ClockKind;

impl Decision {
    pub fn name(self) -> &'static str {
        match self {
            Self::Regression => "worse",
            Self::Improvement => "better",
            Self::Same => "same",
            Self::Undecided => "undecided",
            Self::OnlyInA => "only in A",
            Self::OnlyInB => "only in B",
            Self::Invalid => "invalid",
            Self::Nothing => "unavailable",
        }
    }

    /// The class of the verdict's style on the page.
    pub fn class(self) -> &'static str {
        match self {
            Self::Regression | Self::Invalid => "bad",
            Self::Improvement => "good",
            Self::Undecided | Self::OnlyInA | Self::OnlyInB => "open",
            Self::Same | Self::Nothing => "",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Regression | Self::Invalid => RED,
            Self::Improvement => GREEN,
            Self::Undecided | Self::OnlyInA | Self::OnlyInB => YELLOW,
            Self::Same | Self::Nothing => PLAIN,
        }
    }
}

/// The whole comparison, at most 80 columns wide.
pub fn text(comparison: &Comparison, ink: Ink) -> String {
    let mut out = String::new();
    let both: Vec<&Compared> =
        comparison.series.iter().filter(|series| !series.statistics.is_empty()).collect();
    for group in both.chunk_by(|a, b| a.heading == b.heading) {
        terminal::paragraph(&mut out, &format!("{}:", group[0].heading), 0, ink, PLAIN);
        table(&mut out, group, ink);
    }
    for series in comparison.series.iter().filter(|series| series.statistics.is_empty()) {
        let note = if series.note.is_empty() { String::new() } else { format!(" ({})", series.note) };
        let line = format!("{}, {}: {}{note}", series.heading, series.label, series.verdict.name());
        terminal::paragraph(&mut out, &line, 4, ink, series.verdict.style());
    }
    let bad = comparison.count(Decision::Regression) + comparison.count(Decision::Invalid) > 0;
    let style = if bad { RED } else { BOLD };
    terminal::paragraph(&mut out, &sentence(comparison), 0, ink, style);
    terminal::paragraph(&mut out, &method(comparison), 0, ink, FAINT);
    out
}

fn table(out: &mut String, group: &[&Compared], ink: Ink) {
    let mut table = Table::new(&["<series", "<statistic", "A", "B", "B to A", "95 % interval", "<verdict"]);
    for series in group {
        for (n, statistic) in series.statistics.iter().enumerate() {
            let [a, b, change, interval] = numbers(statistic);
            let label = if n == 0 { series.label.clone() } else { String::new() };
            let verdict = statistic.verdict;
            let plain = |text: String| (text, PLAIN);
            table.row([
                plain(label),
                plain(statistic.name.to_owned()),
                plain(a),
                plain(b),
                (change, verdict.style()),
                plain(interval),
                (verdict.name().to_owned(), verdict.style()),
            ]);
        }
    }
    table.print(out, ink);
}

/// The formatted cells of a statistic: A, B, the change and its interval.
pub fn numbers(statistic: &ComparedStatistic) -> [String; 4] {
    let change = &statistic.change;
    let exact = change.low == change.high;
    match statistic.kind {
        StatisticKind::Ns | StatisticKind::Ratio => {
            let ns = |value: f64| {
                if statistic.kind == StatisticKind::Ns { units::span(value as u64) } else { String::new() }
            };
            let times = |value: f64| format!("{value:.3}×");
            let interval = format!("{:.3}…{:.3}×", change.low, change.high);
            [
                ns(statistic.a),
                ns(statistic.b),
                times(change.value),
                if exact { String::new() } else { interval },
            ]
        }
        StatisticKind::Share => {
            let percent = |value: f64| format!("{:.2} %", value * 100.0);
            let signed = |value: f64| format!("{:+.2}", value * 100.0);
            let interval = format!("{}…{} %", signed(change.low), signed(change.high));
            [percent(statistic.a), percent(statistic.b), format!("{} %", signed(change.value)), interval]
        }
    }
}

/// `1 of 9 series is worse by more than 5 %: ring+ring (p50 1.093×). …`
pub fn sentence(comparison: &Comparison) -> String {
    let both = comparison.series.iter().filter(|series| !series.statistics.is_empty()).count();
    let bound = format!("{} %", (comparison.bound.0 * 1e4).round() / 100.0);
    let worse = comparison.count(Decision::Regression);
    let mut sentence = match worse {
        0 if both == 0 => "Nothing could be compared".to_owned(),
        0 => format!("Nothing is worse by more than {bound} in {both} compared series"),
        _ => {
            let verb = if worse == 1 { "is" } else { "are" };
            format!("{worse} of {both} series {verb} worse by more than {bound}: {}", worst(comparison))
        }
    };
    for (verdict, what) in [
        (Decision::Improvement, "better"),
        (Decision::Same, "the same"),
        (Decision::Undecided, "undecided: measure more frames, or repeat"),
        (Decision::OnlyInA, "only in A"),
        (Decision::OnlyInB, "only in B"),
        (Decision::Invalid, "invalid"),
    ] {
        let count = comparison.count(verdict);
        if count > 0 {
            sentence.push_str(&format!("; {count} {what}"));
        }
    }
    sentence + "."
}

/// The three statistics that got worse most.
fn worst(comparison: &Comparison) -> String {
    let worse = |statistic: &&ComparedStatistic| statistic.verdict == Decision::Regression;
    let mut all: Vec<(&str, &ComparedStatistic)> = (comparison.series.iter())
        .flat_map(|series| {
            series.statistics.iter().filter(worse).map(|statistic| (series.label.as_str(), statistic))
        })
        .collect();
    all.sort_by(|(_, a), (_, b)| b.change.value.total_cmp(&a.change.value));
    let named = all
        .iter()
        .take(3)
        .map(|(label, statistic)| format!("{label} ({} {})", statistic.name, numbers(statistic)[2]));
    let named: Vec<String> = named.collect();
    let more = if all.len() > 3 { ", …" } else { "" };
    format!("{}{more}", named.join(", "))
}

/// The sentence about the test and what it ignores.
pub fn method(comparison: &Comparison) -> String {
    let both: Vec<&Compared> =
        comparison.series.iter().filter(|series| !series.statistics.is_empty()).collect();
    let ranked = both.iter().filter(|series| series.repeats.iter().all(|&repeats| repeats >= 4)).count();
    if both.is_empty() {
        return String::new();
    }
    let mut text = match ranked {
        n if n == both.len() => "Test: ranks of the repeats (Mann–Whitney).".to_owned(),
        0 => "Test: order statistics of the frames.".to_owned(),
        _ => "Test: ranks of the repeats (Mann–Whitney); with fewer than four repeats per side, order \
        statistics of the frames."
            .to_owned(),
    };
    if ranked < both.len() && comparison.clock == ClockKind::Real {
        text.push_str(" These intervals ignore the spread between runs: repeat at least four times.");
    }
    text
}
