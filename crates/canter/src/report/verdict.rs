//! The verdict: what a result says, in a sentence or two made of its figures. First on the page, last in the
//! terminal, so that it is what one sees.

use crate::measure::result::{ClockKind, Cost, Latency, ResultFile, Series};
use crate::report::ranking::{self, Costs, Latencies, Row};
use crate::report::unit::{counted, grouped, span};

/// Up to so many conditions, each gets its own sentence.
const CONDITIONS_TOLD: usize = 3;

pub fn of(result: &ResultFile) -> String {
    let latencies = Latencies::of(result);
    let invalid = invalid(result);
    let valid = invalid.is_none();
    let mut sentences: Vec<String> = invalid.into_iter().collect();
    let many = latencies.len() > 1;
    for group in latencies.iter().take(CONDITIONS_TOLD) {
        sentences.push(fastest(group, many));
    }
    if latencies.len() > CONDITIONS_TOLD {
        sentences.push(format!("{} more conditions follow.", latencies.len() - CONDITIONS_TOLD));
    }
    let measured: Vec<&Series> = latencies.iter().flat_map(Latencies::series).collect();
    sentences.extend(losses(&measured).filter(|_| valid));
    sentences.extend(Costs::of(result).iter().map(cheapest));
    let missing = ranking::unavailable(result).len();
    if missing > 0 {
        sentences.push(format!("{} could not be measured.", counted(missing as u64, "method")));
    }
    sentences.retain(|sentence| !sentence.is_empty());
    if sentences.is_empty() { "Nothing was measured.".into() } else { sentences.join(" ") }
}

/// Why the figures prove nothing, when they do not.
pub fn invalid(result: &ResultFile) -> Option<String> {
    let unbalanced = ranking::unbalanced(result);
    let first = unbalanced.first()?;
    let others = match unbalanced.len() {
        1 => String::new(),
        n => format!(" and {} more", n - 1),
    };
    Some(format!(
        "Invalid: the ledger of {}{others} does not balance, so frames are unaccounted for.",
        ranking::label(first)
    ))
}

/// What a reader must know about the clock before comparing.
pub fn clock(kind: ClockKind) -> &'static str {
    match kind {
        ClockKind::Real => "",
        ClockKind::Virtual => {
            "Virtual clock: one nanosecond is one instruction; no caches, no bus cycles: compare as ratios."
        }
        ClockKind::Simulated => "Simulated bus: the times are the simulation's, of no machine.",
    }
}

fn fastest(group: &Latencies<'_>, tell_condition: bool) -> String {
    let user = group.rows.iter().find(|row| row.family.user_space());
    let Some(row) = user.or(group.rows.first()) else { return "No frame arrived.".into() };
    let who = if user.is_some() { "the fastest user-space pair is" } else { "the fastest is" };
    let mut sentence = format!("{who} {}, median {}", row.label(), span(row.figure.p50));
    sentence.push_str(&against_reference(group, row));
    let ledger = &row.series.ledger;
    if ledger.lost.total() > 0 {
        sentence.push_str(&format!(
            "; it lost {} of {}",
            grouped(ledger.lost.total()),
            counted(ledger.sent, "frame")
        ));
    }
    sentence.push('.');
    if tell_condition {
        let condition = ranking::describe(group.condition);
        return format!("{}: {sentence}", capital(&condition));
    }
    capital(&sentence)
}

fn against_reference(group: &Latencies<'_>, row: &Row<'_, Latency>) -> String {
    let (Some(reference), Some(ratio)) = (group.reference(), group.ratio(row)) else { return String::new() };
    if std::ptr::eq(reference.series, row.series) {
        return String::new();
    }
    let paper = group.paper_ratio(row).map(|ratio| format!("; the paper: {ratio}")).unwrap_or_default();
    format!(", {ratio} {} ({}{paper})", ranking::LATENCY_REFERENCE, span(reference.figure.p50))
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

/// `To receive a frame, ring ×64 is cheapest: 623 ns, 0.25× read. recvmmsg: 0.93× (the paper: 0.93×).`
fn cheapest(group: &Costs<'_>) -> String {
    let Some(row) = group.rows.first() else { return String::new() };
    let mut sentence = format!(
        "To {} a frame, {} is cheapest: {} {}",
        group.direction,
        row.label(),
        group.unit().signed(row.figure.total),
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

fn against(group: &Costs<'_>, row: &Row<'_, Cost>) -> String {
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
