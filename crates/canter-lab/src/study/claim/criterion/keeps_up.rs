//! Whether a gateway keeps up with a rate: it loses nothing, and the time that a frame takes does not grow.
//!
//! A queue that holds the whole flood loses nothing either, so a loss of 0 alone proves nothing.

use crate::study::claim::{
    evidence::Evidence,
    outcome::{Finding, Outcome},
    selector::Selector,
};
use canter_measure::{result::Timeline, verdicts::Quantity};
use serde::Deserialize;

/// A criterion: no frame is lost, and the last quarter's latencies are no more than `within` times the first quarter's.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeepsUp {
    of: Selector,
    #[serde(default = "twice")]
    within: f64,
}

fn twice() -> f64 {
    GROWTH
}

impl KeepsUp {
    pub fn check(&self) -> Result<(), String> {
        super::check_factor("keeps_up", self.within)
    }

    pub fn selectors(&self) -> Vec<Selector> {
        vec![self.of.clone()]
    }

    pub fn decide(&self, evidence: &Evidence<'_>) -> Result<Outcome, Outcome> {
        let found = evidence.late_ones_too(&self.of)?;
        let mut findings = Vec::new();
        let mut words = Vec::new();
        for one in &found {
            let (lost, sent) = (one.series.ledger.lost.total(), one.series.ledger.sent);
            words.push(format!("{lost} of {sent} lost"));
            if lost > 0 {
                findings.push(Finding::Outside);
                continue;
            }
            let quarters = one.series.timeline.as_ref().and_then(quarters);
            let Some([first, last]) = quarters else {
                return Err(Outcome::missing(format!(
                    "{}, but without latencies in order of time nobody knows whether a queue grew",
                    words.join(", ")
                )));
            };
            let grown = last > self.within * first;
            findings.push(if grown { Finding::Outside } else { Finding::Within });
            let [first, last] = [first, last].map(|ns| Quantity::Time.in_words(ns));
            words.push(format!("latency {first} in the first quarter, {last} in the last"));
        }
        let finding = findings.into_iter().collect();
        if finding != Finding::Within {
            evidence.all(&self.of)?; // frames that come late, in twos, may be what it does not carry
        }
        Ok(Outcome {
            finding,
            found: words.join(", "),
            estimate: None,
            bounds: None,
            paper: None,
            boots: found.len(),
            plot: None,
        })
    }
}

/// A queue grows when the latencies of the last quarter are longer than those of the first by more than this factor.
const GROWTH: f64 = 2.0;

/// Whether the latencies grow all the time, as in a queue that gets more frames than it gives.
pub fn queue_grows(timeline: &Timeline) -> bool {
    quarters(timeline).is_some_and(|[first, last]| last > GROWTH * first)
}

/// The medians, in ns, of the longest latencies of the slots of the first and of the last quarter of time.
fn quarters(timeline: &Timeline) -> Option<[f64; 2]> {
    let end = timeline.slots.last()?.number + 1;
    let median = |from: u64, to: u64| {
        let slots =
            timeline.slots.iter().filter(|slot| slot.arrived > 0 && (from..to).contains(&slot.number));
        let mut longest: Vec<u64> = slots.map(|slot| slot.max_ns).collect();
        longest.sort_unstable();
        longest.get(longest.len() / 2).map(|ns| *ns as f64)
    };
    Some([median(0, end.div_ceil(4))?, median(end - end.div_ceil(4), end)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_measure::result::Slot;

    #[test]
    fn the_quarters_are_those_of_time_and_not_of_slots_with_frames() {
        let slot = |number, max_ns| Slot { number, arrived: 1, min_ns: max_ns, max_ns, lost: 0 };
        let slots = vec![slot(0, 10), slot(1, 20), slot(2, 30), slot(11, 90)];
        let timeline = Timeline { slot_ns: 1, slots, load: Vec::new() };
        assert_eq!(quarters(&timeline), Some([20.0, 90.0]));
        assert_eq!(quarters(&Timeline::default()), None);
    }
}
