//! What series show of a criterion, before anybody asks why.

use canter_measure::statistics::Estimate;

/// The place of what was measured, in a criterion's bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The whole interval lies within the bounds.
    Within,
    /// The whole interval lies outside the bounds.
    Outside,
    /// The interval contains a bound, or the series cannot carry a judgement.
    Unclear,
    /// No series measured it.
    Missing,
}

impl Finding {
    /// The place of an interval in bounds.
    pub fn judge(estimate: Estimate, [from, to]: [f64; 2]) -> Self {
        if estimate.low >= from && estimate.high <= to {
            Self::Within
        } else if estimate.high < from || estimate.low > to {
            Self::Outside
        } else {
            Self::Unclear
        }
    }
}

/// The finding of several comparisons that must all hold: one outside puts all outside, one unclear leaves all unclear.
impl FromIterator<Finding> for Finding {
    fn from_iter<I: IntoIterator<Item = Self>>(findings: I) -> Self {
        let findings: Vec<_> = findings.into_iter().collect();
        let worst = [Self::Missing, Self::Outside, Self::Unclear];
        worst.into_iter().find(|worst| findings.contains(worst)).unwrap_or(Self::Within)
    }
}
