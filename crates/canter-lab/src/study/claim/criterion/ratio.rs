//! One statistic as a multiple of another, and the share of lost frames, which is a statistic too.

use super::{BoundSide, Bounds, digits};
use crate::study::claim::{
    evidence::{self, Evidence, FoundSeries, Sample},
    outcome::{Finding, Outcome},
    selector::Selector,
    statistic::Statistic,
};
use canter_cli::units;
use canter_measure::{
    statistics::{self, Confidence, Estimate},
    verdicts::{Plot, Quantity},
};
use serde::Deserialize;

/// The ratio of `of`, or of its excess over `less`, to `over`, or to its excess over `over_less`.
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
    /// The properties in which this series differs from `of`.
    over_less: Option<Selector>,
    /// A time that both statistics contain and no software takes, in ns, which is taken off both: that of the frames' bits.
    #[serde(default)]
    less_ns: u32,
    paper: f64,
    within: f64,
    #[serde(default)]
    side: BoundSide,
}

impl Ratio {
    pub fn bounds(&self) -> Bounds {
        Bounds { paper: self.paper, within: self.within, side: self.side }
    }

    pub fn selectors(&self) -> Vec<Selector> {
        let others = [Some(&self.over), self.less.as_ref(), self.over_less.as_ref()].into_iter().flatten();
        others.map(|other| other.on(&self.of)).chain([self.of.clone()]).collect()
    }

    pub fn decide(&self, evidence: &Evidence<'_>) -> Result<Outcome, Outcome> {
        let over_statistic = self.over_statistic.unwrap_or(self.statistic);
        let less_ns = f64::from(self.less_ns);
        let of_software = |one: Estimate| one.minus(Estimate::exact(less_ns));
        let of = Excess::sample(evidence, &self.of, self.less.as_ref(), &self.of, self.statistic)?;
        let over = Excess::sample(evidence, &self.over, self.over_less.as_ref(), &self.of, over_statistic)?;
        let mut each = Vec::new();
        for (file, _) in &of.value.boots {
            let of = of.in_boot(*file);
            let over = over.in_boot(*file);
            if over.iter().any(|over| over.low <= less_ns) && self.less_ns > 0 {
                return Err(Outcome::unclear(format!("a time within less_ns = {}", self.less_ns)));
            }
            let ratios = |of: Estimate| over.iter().map(move |over| of.ratio_to(of_software(*over)));
            each.extend(of.iter().flat_map(|of| ratios(of_software(*of))));
        }
        let estimate = evidence::together(&each);
        let bounds = self.bounds().range();
        let quantity = self.statistic.quantity();
        let less = match self.less_ns {
            0 => String::new(),
            less_ns => format!(", each less {} of bits", units::span(less_ns.into())),
        };
        Ok(Outcome {
            finding: Finding::judge(estimate, bounds),
            found: format!(
                "{} / {}{less} = {}",
                of.in_words(quantity),
                over.in_words(quantity),
                digits(estimate.value)
            ),
            estimate: Some(estimate),
            bounds: Some(bounds),
            paper: Some(self.paper),
            boots: of.value.boots.len().min(over.value.boots.len()),
            plot: Some(Box::new(Plot::Number { quantity: Quantity::Ratio })),
        })
    }
}

/// A statistic of a series, or what it exceeds that of another series by.
struct Excess {
    value: Sample,
    less: Option<Sample>,
}

impl Excess {
    fn sample(
        evidence: &Evidence<'_>,
        value: &Selector,
        less: Option<&Selector>,
        base: &Selector,
        statistic: Statistic,
    ) -> Result<Self, Outcome> {
        let sample = |selector: &Selector| evidence.sample(&selector.on(base), statistic);
        Ok(Self { value: sample(value)?, less: less.map(sample).transpose()? })
    }

    /// The estimates that belong to a boot: its own, or those of all boots when that boot has none.
    fn in_boot(&self, file: usize) -> Vec<Estimate> {
        let less = self.less.as_ref().map(|less| less.beside(file)[0]);
        let values = self.value.beside(file).into_iter();
        values.map(|value| less.map_or(value, |less| value.minus(less))).collect()
    }

    fn in_words(&self, quantity: Quantity) -> String {
        let value = quantity.in_words(self.value.estimate().value);
        match &self.less {
            None => value,
            Some(less) => format!("({value} − {})", quantity.in_words(less.estimate().value)),
        }
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
    /// A series that must lose none, by the properties in which it differs from `of`: when it loses frames too, the load
    /// was more than anything here carries, and the loss says nothing of `of`.
    control: Option<Selector>,
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

    pub fn selectors(&self) -> Vec<Selector> {
        let control = self.control.iter().map(|control| control.on(&self.of));
        control.chain([self.of.clone()]).collect()
    }

    pub fn decide(&self, evidence: &Evidence<'_>) -> Result<Outcome, Outcome> {
        let found = evidence.all(&self.of)?;
        let [lost, sent] = counts(&found);
        if let Some(control) = &self.control {
            let selector = control.on(&self.of);
            let [control_lost, control_sent] = counts(&evidence.late_ones_too(&selector)?);
            if control_lost > 0 {
                return Err(Outcome::unclear(format!(
                    "{lost} of {sent} lost, but the control {control} loses {control_lost} of {control_sent} too: \
                     an overload of the machine"
                )));
            }
        }
        let nothing = || Outcome::missing("no frame was sent".to_owned());
        let share = statistics::share(lost, sent, Confidence::ONE).ok_or_else(nothing)?;
        let (mut lost_by_it, mut spared_by_it) = (0, 0);
        for one in &found {
            spared_by_it += one.series.ledger.late;
            lost_by_it += if loses_no_more(one) { 0 } else { one.series.ledger.late };
        }
        let [lost_by_it, spared_by_it] = [lost_by_it, spared_by_it].map(|late| late as f64 / sent as f64);
        let share = Estimate {
            low: (share.low - lost_by_it).max(0.0),
            high: (share.high + spared_by_it).min(1.0),
            ..share
        };
        let bounds = self.bounds().range();
        // A claim of zero loss is decided by the count, not by an interval.
        let finding = if self.paper == 0.0 {
            Finding::judge(Estimate::exact(share.value), bounds)
        } else {
            Finding::judge(share, bounds)
        };
        Ok(Outcome {
            finding,
            found: format!("{lost} of {sent} lost"),
            estimate: Some(share),
            plot: Some(Box::new(Plot::Number { quantity: Quantity::Share })),
            bounds: Some(bounds),
            paper: Some(self.paper),
            boots: found.iter().map(|one| one.file).collect::<std::collections::BTreeSet<_>>().len(),
        })
    }
}

/// Whether late frames cannot have caused losses. A virtual wire hands a frame over late when its only processor could do nothing
/// else either: a controller would have had the frame in time, and its FIFO been as full when the processor looked.
fn loses_no_more(one: &FoundSeries<'_>) -> bool {
    one.series.instrument() == "wire" && one.result.environment.processors == 1
}

/// The lost and the sent frames of several series.
fn counts(found: &[FoundSeries<'_>]) -> [u64; 2] {
    found.iter().fold([0, 0], |[lost, sent], one| {
        [lost + one.series.ledger.lost.total(), sent + one.series.ledger.sent]
    })
}
