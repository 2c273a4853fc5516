//! The delay profile of a recording on a terminal: what became of the frames, and how many took longer than a time.

use super::{
    reading::{Gateway, Reading},
    runs::Tally,
    stamps::Chosen,
};
use crate::recordings::identifier;
use canter_cli::units::{self, Unit, counted, grouped};
use canter_frame::frame::{EFF_FLAG, EFF_MASK};
use canter_measure::profile::Profile;

/// Identifiers that a line lists.
const LISTED_MAX: usize = 6;

/// The text. `on_bus` says that the frames' time on the routed bus is subtracted.
pub fn text(
    gateway: &Gateway,
    reading: &Reading,
    forwarded: &[(u32, Tally)],
    chosen: &Chosen,
    on_bus: bool,
) -> String {
    let sum = Tally::sum(forwarded.iter().map(|(_, tally)| tally));
    let mut out = format!("{} → {}: {}\n", gateway.direct, gateway.routed, counted(sum.direct, "frame"));
    let mut line = |count: u64, what: &str| {
        if count > 0 {
            out += &format!("  {:>11}  {what}\n", grouped(count));
        }
    };
    line(sum.matched, "arrived");
    line(sum.unclear, "arrived, their delay is unclear: a frame with the same data is lost");
    line(
        sum.lost,
        &format!("lost or later than {}: {}", units::span(reading.delay_max_ns), losers(forwarded)),
    );
    let all = Tally::sum(reading.found.tallies.values());
    line(all.direct - sum.direct, "not forwarded: no frame of their identifiers came out");
    let (direct, routed) = (&gateway.direct, &gateway.routed);
    line(reading.other_way, &format!("on both buses go the other way, from {routed} to {direct}"));
    line(reading.found.strange, &format!("on {} only: of other nodes, or arrived again", gateway.routed));
    out += &delays(chosen, sum.lost, on_bus);
    out.replace('\u{202f}', " ")
}

/// The identifiers with losses, most first.
fn losers(forwarded: &[(u32, Tally)]) -> String {
    let mut losers: Vec<&(u32, Tally)> = forwarded.iter().filter(|(_, tally)| tally.lost > 0).collect();
    losers.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.lost));
    let name = |(id, tally): &&(u32, Tally)| {
        format!("{} ({})", identifier(id & (EFF_FLAG | EFF_MASK)), grouped(tally.lost))
    };
    let mut text = losers.iter().take(LISTED_MAX).map(name).collect::<Vec<_>>().join(", ");
    if losers.len() > LISTED_MAX {
        text += ", …";
    }
    text
}

fn delays(chosen: &Chosen, lost: u64, on_bus: bool) -> String {
    let latency = &chosen.latency;
    if latency.count == 0 {
        return String::new();
    }
    let unit = Unit::for_smallest([latency.min.max(1), latency.p50]);
    let figures = [
        ("min", latency.min),
        ("p50", latency.p50),
        ("p90", latency.p90),
        ("p99", latency.p99),
        ("p99.9", latency.p999),
        ("max", latency.max),
    ];
    let (mut head, mut row) = (format!("\n  {:8}", "delay"), format!("  {:8}", unit.name));
    for (name, ns) in figures {
        let number = unit.number(ns);
        let width = number.chars().count().max(name.len()) + 2;
        head += &format!("{name:>width$}");
        row += &format!("{number:>width$}");
    }
    let meaning = if on_bus {
        "between both stamps, without the frame's time on the routed bus"
    } else {
        "between both stamps; --bitrate subtracts the frame's time on the routed bus"
    };
    let mut out = format!("{head}\n{row}\n  {meaning}\n  {}\n", chosen.text());
    if latency.negative > 0 {
        let negative = counted(latency.negative, "delay");
        out += &format!("  {negative} below 0 by the stamps, counted as 0\n");
    }
    out += "\n";
    let profile = Profile::new(latency, lost);
    out += "  slower than     frames      share\n";
    for t_ns in steps(latency.p50, latency.max) {
        let slower = profile.slower_than(t_ns);
        let share = slower as f64 / profile.count.max(1) as f64 * 100.0;
        out += &format!("  {:>11}  {:>9}  {share:>7.3} %\n", units::round_span(t_ns), grouped(slower));
    }
    out
}

/// The round times, 1, 2 and 5 of each power of ten, around the median and the maximum.
fn steps(from_ns: u64, to_ns: u64) -> Vec<u64> {
    let round = (0..=9).flat_map(|power| [1, 2, 5].map(|digit| digit * 10u64.pow(power)));
    round.filter(|&ns| ns >= from_ns / 2 && ns < to_ns.saturating_mul(2)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_a_profile_are_round_and_reach_from_the_median_to_the_maximum() {
        assert_eq!(steps(150, 2_100), [100, 200, 500, 1_000, 2_000]);
    }
}
