//! Criteria: what series must show for a claim to hold. Bounds derive from the paper's own number and a factor.

mod course;
mod keeps_up;
mod knee;
mod line;
mod measured;
mod order;
mod ratio;
mod share;
mod time;

pub use course::Course;
pub use keeps_up::KeepsUp;
pub use knee::Knee;
pub use line::Line;
pub use measured::Measured;
pub use order::Order;
pub use ratio::{LostShare, Ratio};
pub use share::Share;
pub use time::Time;

use super::{evidence::Evidence, outcome::Outcome, selector::Selector};
use canter_cli::units::digits;
use canter_measure::verdicts::{self, Allowed, Plot, Quantity};
use serde::Deserialize;

#[derive(Clone, Debug)]
pub enum Criterion {
    /// The ratio of one statistic to another.
    Ratio(Box<Ratio>),
    /// A statistic is a time that the paper states.
    Time(Box<Time>),
    /// A statistic that is a share.
    Share(Box<Share>),
    /// Statistics of several series ascend.
    Order(Order),
    /// A statistic stays, rises or rises in a straight line while a number is varied.
    Course(Course),
    /// The cost of a system call grows in a straight line with the number of frames.
    Line(Line),
    /// The period from which on no frames are lost.
    Knee(Box<Knee>),
    /// The share of lost frames.
    Lost(Box<LostShare>),
    /// Nothing is lost, and no queue grows.
    KeepsUp(KeepsUp),
    /// At least a number of series is measured and valid.
    Measured(Measured),
    /// Nothing here decides the claim: the claim's `lacks` or `unmeasured` says why.
    Nothing,
}

/// The side on which the paper's number bounds a statistic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundSide {
    /// The statistic is between the paper's number divided and multiplied by the factor.
    #[default]
    About,
    AtLeast,
    AtMost,
}

/// The paper's number, and how far a statistic may be from it.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub paper: f64,
    pub within: f64,
    pub side: BoundSide,
}

impl Bounds {
    pub fn check(self) -> Result<(), String> {
        match self.paper >= 0.0 && self.paper.is_finite() && self.within >= 1.0 && self.within.is_finite() {
            true => Ok(()),
            false => Err("paper: a number from 0 on; within: a factor of at least 1".to_owned()),
        }
    }

    /// The lowest and the highest value that reproduce the paper's.
    pub fn range(self) -> [f64; 2] {
        let (least, most) = (self.paper / self.within, self.paper * self.within);
        match self.side {
            BoundSide::About => [least, most],
            BoundSide::AtLeast => [least, f64::INFINITY],
            BoundSide::AtMost => [0.0, most],
        }
    }
}

impl Criterion {
    /// The outcome of the criterion with these results.
    pub fn decide(&self, evidence: &Evidence<'_>) -> Outcome {
        let outcome = match self {
            Self::Ratio(ratio) => ratio.decide(evidence),
            Self::Time(time) => time.decide(evidence),
            Self::Share(share) => share.decide(evidence),
            Self::Order(order) => order.decide(evidence),
            Self::Course(course) => course.decide(evidence),
            Self::Line(line) => line.decide(evidence),
            Self::Knee(knee) => knee.decide(evidence),
            Self::Lost(lost) => lost.decide(evidence),
            Self::KeepsUp(keeps_up) => keeps_up.decide(evidence),
            Self::Measured(measured) => measured.decide(evidence),
            Self::Nothing => Err(Outcome::missing(String::new())),
        };
        outcome.unwrap_or_else(|nothing_found| nothing_found)
    }

    /// The series that the criterion compares.
    pub fn selectors(&self) -> Vec<Selector> {
        match self {
            Self::Ratio(ratio) => ratio.selectors(),
            Self::Time(time) => time.selectors(),
            Self::Share(share) => share.selectors(),
            Self::Order(order) => order.selectors(),
            Self::Course(course) => course.selectors(),
            Self::Line(line) => line.selectors(),
            Self::Knee(knee) => knee.selectors(),
            Self::Lost(lost) => lost.selectors(),
            Self::KeepsUp(keeps_up) => keeps_up.selectors(),
            Self::Measured(measured) => measured.selectors(),
            Self::Nothing => Vec::new(),
        }
    }

    /// The error of a criterion that contradicts itself.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Ratio(ratio) => ratio.bounds().check(),
            Self::Time(time) => time.check(),
            Self::Share(share) => share.check(),
            Self::Order(order) => order.check(),
            Self::Course(course) => course.check(),
            Self::Line(line) => line.check(),
            Self::Knee(knee) => knee.check(),
            Self::Lost(lost) => lost.bounds().check(),
            Self::KeepsUp(keeps_up) => keeps_up.check(),
            Self::Measured(measured) => measured.check(),
            Self::Nothing => Ok(()),
        }
    }
}

/// The minimum number of points of a line.
const POINTS: usize = 3;

/// Refuses a factor that allows no value.
fn check_factor(criterion: &str, within: f64) -> Result<(), String> {
    match within > 1.0 {
        true => Ok(()),
        false => Err(format!("{criterion}: within: a factor above 1")),
    }
}

/// Values as multiples of those on a straight line, which a factor allows on both sides.
fn beside_a_line(statistic: &str, against: &str, lines: Vec<verdicts::PlotLine>, within: f64) -> Plot {
    let points = || lines.iter().flat_map(|line| &line.points).map(|point| point[0]);
    let ends = [points().fold(f64::INFINITY, f64::min), points().fold(0.0, f64::max)];
    let allowed = ends.map(|at| Allowed { at, from: 1.0 / within, to: Some(within) }).to_vec();
    let statistic = format!("{statistic}, as a multiple of the straight line");
    Plot::Course { quantity: Quantity::Ratio, statistic, against: against.to_owned(), lines, allowed }
}
