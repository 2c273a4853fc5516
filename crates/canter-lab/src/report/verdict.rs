//! The verdict: one or two sentences computed from a result's numbers. First on the page and last in the terminal,
//! where readers look first.

use crate::report::numbers::Numbers;
use crate::report::ranking::{self, Costs, Latencies, Ranked};
use canter_cli::units::{self, counted, grouped, span};
use canter_measure::result::{ClockKind, Cost, Latency, ResultFile, Series};
use std::collections::BTreeMap;

/// Medians that differ by less than one part in this number are given without their conditions.
const CLOSE: u64 = 20;
/// The maximum number of conditions that get a sentence each.
const CONDITIONS_LISTED: usize = 3;

pub fn of(numbers: &Numbers<'_>) -> String {
    let Numbers { result, latencies, costs, .. } = numbers;
    let invalid = invalid(result);
    let valid = invalid.is_none();
    let mut sentences: Vec<String> = invalid.into_iter().collect();
    let conditions: Vec<_> = latencies.iter().map(|group| group.condition).collect();
    let conditions = ranking::distinguish(&conditions);
    if latencies.len() <= CONDITIONS_LISTED {
        sentences.extend(latencies.iter().zip(&conditions).map(|(group, under)| fastest(group, under)));
    } else {
        sentences.extend(matrix(latencies, &conditions));
    }
    let measured: Vec<&Series> = latencies.iter().flat_map(Latencies::series).collect();
    sentences.extend(losses(&measured).filter(|_| valid));
    sentences.extend(costs.iter().map(cheapest));
    sentences.extend(result.series.iter().filter_map(steepest).take(CONDITIONS_LISTED));
    let missing = ranking::missing(result).len();
    if missing > 0 {
        sentences.push(format!("{} could not be measured.", counted(missing as u64, "method")));
    }
    sentences.retain(|sentence| !sentence.is_empty());
    if sentences.is_empty() { "Nothing was measured.".into() } else { sentences.join(" ") }
}

/// A sentence about series whose numbers contradict each other, if there are any.
pub fn invalid(result: &ResultFile) -> Option<String> {
    let faulty = ranking::faulty(result);
    let (first, why) = faulty.first()?;
    let others = match faulty.len() {
        1 => String::new(),
        n => format!(" {} more series are invalid.", n - 1),
    };
    Some(format!("Invalid, not drawn: {}: {why}.{others}", ranking::label(first)))
}

/// A note about the clock, for readers who compare results.
pub fn clock(kind: ClockKind) -> &'static str {
    match kind {
        ClockKind::Real => "",
        ClockKind::Virtual => {
            "Virtual clock: it counts instructions, without caches and bus cycles: compare ratios, not times."
        }
        ClockKind::Simulated => "Simulated bus: the times come from the simulation, not from a machine.",
    }
}

/// The sentence about the fastest method, with the condition if there are several.
fn fastest(group: &Latencies<'_>, condition: &str) -> String {
    let user = group.rows.iter().find(|row| row.family.user_space());
    let user = user.filter(|_| group.quantity.is_empty());
    let Some(row) = user.or(group.rows.first()) else {
        return if group.faulty.is_empty() { "No frame arrived.".into() } else { String::new() };
    };
    let finish = |sentence: String| match condition {
        "" => format!("{}.", capital(&sentence)),
        _ => format!("{}: {sentence}.", capital(condition)),
    };
    let mut sentence = match group.rows.len() {
        1 => {
            let (p50, max) = (span(row.measured.p50), span(row.measured.max));
            return finish(format!(
                "the median {} of {} is {p50}, the worst {max}",
                group.quantity(),
                row.label()
            ));
        }
        _ if !group.quantity.is_empty() => {
            format!(
                "the shortest {} is by {}, median {}",
                group.quantity,
                row.label(),
                span(row.measured.p50)
            )
        }
        _ => {
            let subject = if user.is_some() { "the fastest user-space pair is" } else { "the fastest is" };
            format!("{subject} {}, median {}", row.label(), span(row.measured.p50))
        }
    };
    sentence.push_str(&against_reference(group, row));
    let ledger = &row.series.ledger;
    if ledger.lost.total() > 0 {
        sentence.push_str(&format!(
            "; it lost {} of {}",
            grouped(ledger.lost.total()),
            counted(ledger.sent, "frame")
        ));
    }
    finish(sentence)
}

/// Two sentences for many conditions: the method that is fastest most often with the range of its median, and the worst
/// latency with its condition.
fn matrix(groups: &[Latencies<'_>], conditions: &[String]) -> Vec<String> {
    let mut wins: BTreeMap<String, usize> = BTreeMap::new();
    for row in groups.iter().filter_map(|group| group.rows.first()) {
        *wins.entry(ranking::label(row.series)).or_default() += 1;
    }
    let contested =
        groups.iter().any(|group| group.rows.iter().any(|row| row.repeat == 0) && group.rows.len() > 1);
    let often = wins.iter().max_by_key(|(_, wins)| **wins).map(|(label, wins)| {
        let range = medians(groups, conditions, label);
        let conditions = counted(groups.len() as u64, "condition");
        match contested {
            true => format!("Fastest in {wins} of {conditions}: {label}, median {range}."),
            false => format!("The median {} of {label} is {range}.", groups[0].quantity()),
        }
    });
    let rows = groups.iter().zip(conditions);
    let rows = rows.flat_map(|(group, under)| group.rows.iter().map(move |row| (group, under, row)));
    let worst = rows.max_by_key(|(.., row)| row.measured.max).map(|(group, under, row)| {
        let whose = [row.label(), under.clone()].into_iter().filter(|part| !part.is_empty());
        let whose = whose.collect::<Vec<_>>().join(", ");
        format!("The longest {} is {} ({whose}).", group.quantity(), span(row.measured.max))
    });
    often.into_iter().chain(worst).collect()
}

/// `3.71 µs (1 filter, SFF) to 18.0 µs (2 048 filters, masked EFF)`.
fn medians(groups: &[Latencies<'_>], conditions: &[String], label: &str) -> String {
    let all = groups.iter().zip(conditions).filter_map(|(group, under)| {
        let row = group.rows.iter().find(|row| ranking::label(row.series) == label)?;
        Some((row.measured.p50, under))
    });
    let with_condition = |(ns, under): (u64, &String)| match under.as_str() {
        "" => span(ns),
        under => format!("{} ({under})", span(ns)),
    };
    let (least, most) = (all.clone().min_by_key(|one| one.0), all.max_by_key(|one| one.0));
    let close = |least: u64, most: u64| most - least <= least / CLOSE;
    match (least, most) {
        (Some(least), Some(most)) if span(least.0) == span(most.0) => {
            format!("{} under all conditions", span(least.0))
        }
        (Some(least), Some(most)) if close(least.0, most.0) => {
            format!("{} to {}", span(least.0), span(most.0))
        }
        (Some(least), Some(most)) => {
            format!("{} to {}", with_condition(least), with_condition(most))
        }
        _ => String::new(),
    }
}

/// `The processor load of read+write is at most 97.0 %, at rate 21 277 frames/s.`
fn steepest(series: &Series) -> Option<String> {
    let curve = series.curve.as_ref().filter(|_| series.unavailable.is_empty())?;
    let [against, most] = curve.points.iter().max_by_key(|point| point[1])?;
    let most = units::measured(*most, curve.decimals, &curve.unit);
    let against = units::measured(*against, 0, &curve.against_unit);
    let (quantity, label) = (&curve.quantity, ranking::label(series));
    Some(format!("The {quantity} of {label} is at most {most}, at {} {against}.", curve.against))
}

fn against_reference(group: &Latencies<'_>, row: &Ranked<'_, Latency>) -> String {
    let (Some(reference), Some(ratio)) = (group.reference(), group.ratio(row)) else { return String::new() };
    if std::ptr::eq(reference.series, row.series) {
        return String::new();
    }
    let paper = group.paper_ratio(row).map(|ratio| format!("; the paper: {ratio}")).unwrap_or_default();
    format!(", {ratio} {} ({}{paper})", group.reference_name(), span(reference.measured.p50))
}

fn losses(measured: &[&Series]) -> Option<String> {
    let sum =
        |of: fn(&Series) -> u64| measured.iter().fold(0_u64, |sum, series| sum.saturating_add(of(series)));
    let sent = sum(|series| series.ledger.sent);
    let lost = sum(|series| series.ledger.lost.total());
    let worst = measured.iter().max_by_key(|series| series.ledger.lost.total())?;
    Some(match (sent, lost) {
        (0, _) => String::new(),
        (_, 0) => format!("None of {} was lost.", counted(sent, "frame")),
        _ => format!(
            "{} of {} {} lost, most by {} ({} of {}).",
            grouped(lost),
            counted(sent, "frame"),
            if lost == 1 { "was" } else { "were" },
            ranking::label(worst),
            grouped(worst.ledger.lost.total()),
            grouped(worst.ledger.sent)
        ),
    })
}

/// `To receive a frame, the calls of ring ×64 cost least: 23 ns, 0.02× read. recvmmsg: 0.93× (the paper: 0.93×).`
fn cheapest(group: &Costs<'_>) -> String {
    let Some(row) = group.rows.first() else { return String::new() };
    let mut sentence = format!(
        "To {} a frame, the calls of {} cost least: {} {}",
        group.direction,
        row.label(),
        group.unit().number(row.measured.per_frame),
        group.unit().name
    );
    sentence.push_str(&against(group, row));
    sentence.push('.');
    let mmsg = group.rows.iter().find(|row| row.series.method.ends_with("mmsg"));
    if let Some(mmsg) = mmsg.filter(|mmsg| !std::ptr::eq(mmsg.series, row.series)) {
        let compared = against(group, mmsg);
        sentence.push_str(&format!(" {} takes{}.", mmsg.label(), compared.trim_start_matches(',')));
    }
    sentence
}

fn against(group: &Costs<'_>, row: &Ranked<'_, Cost>) -> String {
    let (Some(reference), Some(ratio)) = (group.reference(), group.ratio(row)) else { return String::new() };
    if std::ptr::eq(reference.series, row.series) {
        return String::new();
    }
    let paper = group.paper_ratio(row).map(|ratio| format!(" (the paper: {ratio})")).unwrap_or_default();
    format!(", {ratio} {}{paper}", reference.series.method)
}

pub fn capital(sentence: &str) -> String {
    let mut characters = sentence.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}
