//! One statistic as a multiple of another, and the share of lost frames, which is a statistic too.

use super::{BoundSide, Bounds, digits};
use crate::study::claim::{
    evidence::{self, Evidence, Sample},
    outcome::{Outcome, Word},
    selector::Selector,
    statistic::Statistic,
};
use canter_measure::{
    statistics::{self, Confidence, Estimate},
    verdicts::{Plot, Quantity},
};
use serde::Deserialize;

/// The ratio of `of`, or of its excess over `less`, to `over`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratio {
    #[serde(rename = "figure")]
    statistic: Statistic,
    /// The statistic of `over`, if it is another one.
    #[serde(rename = "over_figure")]
    over_statistic: Option<Statistic>,
    of: Selector,
    /// The properties in which this series differs from `of`.
    over: Selector,
    /// The properties in which this series differs from `of`.
    less: Option<Selector>,
    paper: f64,
    within: f64,
    #[serde(default)]
    side: BoundSide,
    /// Whether the instrument's floor is subtracted from every statistic.
    #[serde(default)]
    less_floor: bool,
}

impl Ratio {
    pub fn bounds(&self) -> Bounds {
        Bounds { paper: self.paper, within: self.within, side: self.side }
    }

    pub fn decide(&self, evidence: &Evidence<'_>) -> Result<Outcome, Outcome> {
        let over_statistic = self.over_statistic.unwrap_or(self.statistic);
        let sample = |selector: &Selector, statistic| {
            evidence.sample(&selector.on(&self.of), statistic, self.less_floor)
        };
        let of = sample(&self.of, self.statistic)?;
        let over = sample(&self.over, over_statistic)?;
        let less = self.less.as_ref().map(|less| sample(less, self.statistic)).transpose()?;
        let quotient = |of: Estimate, less: Option<Estimate>, over: Estimate| {
            less.map_or(of, |less| of.minus(less)).ratio_to(over)
        };
        let each: Vec<_> = of
            .boots
            .iter()
            .flat_map(|(file, of)| {
                let less = less.as_ref().map(|less| less.beside(*file)[0]);
                over.beside(*file).into_iter().map(move |over| quotient(*of, less, over))
            })
            .collect();
        let mut estimate = evidence::together(&each);
        if [Some(&of), Some(&over), less.as_ref()]
            .into_iter()
            .flatten()
            .any(|sample| !sample.elsewhere.is_empty())
        {
            let [of, over] = [&of, &over].map(Sample::estimate);
            let less = less.as_ref().map_or(Estimate::exact(0.0), Sample::estimate);
            estimate.low = estimate.low.min((of.low - less.high) / over.high.max(f64::MIN_POSITIVE));
            estimate.high = estimate.high.max((of.high - less.low) / over.low.max(f64::MIN_POSITIVE));
        }
        let parts = [Some(&of), less.as_ref(), Some(&over)].into_iter().flatten();
        let quantity = self.statistic.quantity();
        let parts: Vec<_> = parts.map(|sample| quantity.in_words(sample.estimate().value)).collect();
        let bounds = self.bounds().range();
        let found = match parts.as_slice() {
            [of, less, over] => format!("({of} − {less}) / {over} = {}", digits(estimate.value)),
            parts => format!("{} = {}", parts.join(" / "), digits(estimate.value)),
        };
        Ok(Outcome {
            word: Word::judge(estimate, bounds),
            found,
            estimate: Some(estimate),
            bounds: Some(bounds),
            paper: Some(self.paper),
            boots: of.boots.len().min(over.boots.len()),
            plot: Some(Box::new(Plot::Number { quantity: Quantity::Ratio })),
        })
    }
}

impl Sample {
    /// The estimate of the same boot as `file`; of all boots, if that boot has none.
    fn beside(&self, file: usize) -> Vec<Estimate> {
        let same = self.boots.iter().find(|(other, _)| *other == file);
        same.map_or_else(|| self.boots.iter().map(|(_, one)| *one).collect(), |(_, one)| vec![*one])
    }
}

/// The share of frames that were lost. A paper's 0 means none at all.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LostShare {
    of: Selector,
    paper: f64,
    #[serde(default = "exactly")]
    within: f64,
    #[serde(default)]
    side: BoundSide,
}

fn exactly() -> f64 {
    1.0
}

impl LostShare {
    pub fn bounds(&self) -> Bounds {
        Bounds { paper: self.paper, within: self.within, side: self.side }
    }

    pub fn decide(&self, evidence: &Evidence<'_>) -> Result<Outcome, Outcome> {
        let found = evidence.all(&self.of)?;
        let lost: u64 = found.iter().map(|one| one.series.ledger.lost.total()).sum();
        let sent: u64 = found.iter().map(|one| one.series.ledger.sent).sum();
        let nothing = || Outcome::nothing_found(Word::NotMeasurable, "no frame was sent".to_owned());
        let share = statistics::share(lost, sent, Confidence::ONE).ok_or_else(nothing)?;
        let bounds = self.bounds().range();
        // That none of so many was lost is a fact, and what the paper says of its own frames, too.
        let word = if self.paper == 0.0 {
            Word::judge(Estimate::exact(share.value), bounds)
        } else {
            Word::judge(share, bounds)
        };
        Ok(Outcome {
            word,
            found: format!("{lost} of {sent} lost"),
            estimate: Some(share),
            plot: Some(Box::new(Plot::Number { quantity: Quantity::Share })),
            bounds: Some(bounds),
            paper: Some(self.paper),
            boots: found.iter().map(|one| one.file).collect::<std::collections::BTreeSet<_>>().len(),
        })
    }
}
