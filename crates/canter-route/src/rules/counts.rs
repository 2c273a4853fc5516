//! The counts of a route's frames.

use super::engine::Outcome;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The account of the frames: `received + copied = transmitted + filtered + dropped`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub received: u64,
    /// Additional copies, forwarded because several rules matched.
    #[serde(default)]
    pub copied: u64,
    pub transmitted: u64,
    /// Excluded by rules or filters.
    pub filtered: u64,
    /// Selected but not sent; [`drops`](Self::drops) has the reasons.
    pub dropped: u64,
    /// Not received, because the gateway's receive queue was full.
    pub overrun: u64,
    #[serde(default)]
    pub drops: Drops,
}

/// Frames dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Drops {
    /// The output was full until the timeout, or the backlog was full.
    pub no_room: u64,
    /// The interface cannot carry such a frame, or the kernel refused it.
    pub refused: u64,
    /// Over the limit of its identifier.
    pub over_limit: u64,
    /// A rule made the frame longer than its kind allows.
    pub too_long: u64,
    /// The frame cannot be converted to the other kind.
    pub unconvertible: u64,
    /// Received, but not sent before the route stopped or failed.
    pub unsent: u64,
}

impl Drops {
    pub fn sum(&self) -> u64 {
        self.reasons().iter().map(|(_, count)| count).sum()
    }

    fn reasons(&self) -> [(&'static str, u64); 6] {
        [
            ("no room", self.no_room),
            ("refused", self.refused),
            ("over limit", self.over_limit),
            ("too long", self.too_long),
            ("unconvertible", self.unconvertible),
            ("unsent", self.unsent),
        ]
    }
}

impl Counts {
    /// Counts dropped frames under a reason.
    pub fn drop_as(&mut self, count: u64, reason: impl FnOnce(&mut Drops) -> &mut u64) {
        self.dropped += count;
        *reason(&mut self.drops) += count;
    }

    /// Adds the counts of the rules, and resets those.
    pub fn take(&mut self, outcome: &mut Outcome) {
        *self = self.with_outcome(outcome);
        *outcome = Outcome::default();
    }

    /// The sum with the counts of the rules.
    #[must_use]
    pub fn with_outcome(mut self, outcome: &Outcome) -> Self {
        let Outcome { filtered, copied, over_limit, too_long, unconvertible } = *outcome;
        self.filtered += filtered;
        self.copied += copied;
        self.drop_as(over_limit, |drops| &mut drops.over_limit);
        self.drop_as(too_long, |drops| &mut drops.too_long);
        self.drop_as(unconvertible, |drops| &mut drops.unconvertible);
        self
    }

    pub fn assert_balance(&self) {
        let Self { received, copied, transmitted, filtered, dropped, .. } = *self;
        assert_eq!(
            received + copied,
            transmitted + filtered + dropped,
            "every received frame is counted once: {self:?}"
        );
        assert_eq!(self.drops.sum(), dropped, "every dropped frame has a reason");
    }

    /// The sum with another route's.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let (a, b) = (&self.drops, &other.drops);
        Self {
            received: self.received + other.received,
            copied: self.copied + other.copied,
            transmitted: self.transmitted + other.transmitted,
            filtered: self.filtered + other.filtered,
            dropped: self.dropped + other.dropped,
            overrun: self.overrun + other.overrun,
            drops: Drops {
                no_room: a.no_room + b.no_room,
                refused: a.refused + b.refused,
                over_limit: a.over_limit + b.over_limit,
                too_long: a.too_long + b.too_long,
                unconvertible: a.unconvertible + b.unconvertible,
                unsent: a.unsent + b.unsent,
            },
        }
    }
}

/// The account without `overrun`, for frames of a recording.
pub struct Sums<'a>(&'a Counts);

impl Counts {
    pub fn without_overrun(&self) -> Sums<'_> {
        Sums(self)
    }
}

impl fmt::Display for Sums<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { received, copied, transmitted, filtered, dropped, drops, .. } = self.0;
        write!(f, "{received} received")?;
        if *copied > 0 {
            write!(f, " + {copied} copied")?;
        }
        write!(f, " = {transmitted} transmitted + {filtered} filtered + {dropped} dropped")?;
        let reasons = drops.reasons().into_iter().filter(|(_, count)| *count > 0);
        let list: Vec<_> = reasons.map(|(reason, count)| format!("{count} {reason}")).collect();
        if list.is_empty() { Ok(()) } else { write!(f, " ({})", list.join(", ")) }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {} lost before the gateway could read them", Sums(self), self.overrun)
    }
}
