//! Applies the rules of a route to a batch and returns the frames to send. Frames are changed in place when each frame
//! matches at most one rule.

use super::{
    Convert, Policy,
    edit::Edit,
    limit::Limiter,
    lookup::{Found, Lookup},
};
use canter_io::{
    Batch, Frame, Meta,
    frame::{BRS, FDF},
};
use serde::{Deserialize, Serialize};

/// Counts of the frames that rules removed or added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Matched by no rule, or by one that drops.
    pub filtered: u64,
    /// Additional copies, because several rules forwarded the frame.
    pub copied: u64,
    /// Over the limit of their identifier.
    pub over_limit: u64,
    /// A change made the frame longer than its kind allows (can-gw: deleted).
    pub too_long: u64,
    /// The frame cannot be converted: more than 8 bytes, or RTR.
    pub unconvertible: u64,
}

/// The counts of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleCounts {
    /// Frames that the rule matched.
    pub matched: u64,
    /// Matched frames that were forwarded.
    pub forwarded: u64,
    /// Forwarded frames that the rule changed.
    pub changed: u64,
}

/// A rule, prepared for the frame path.
struct Action {
    /// The rule's name in reports.
    label: String,
    /// The rule has a name of its own, not that of its place in the file.
    is_named: bool,
    drop: bool,
    limiter: Option<Limiter>,
    classic: Option<Edit>,
    fd: Option<Edit>,
    convert: Option<Convert>,
    counts: RuleCounts,
}

pub struct Engine {
    lookup: Lookup,
    actions: Vec<Action>,
    limits: bool,
    /// Counts of rules that [`inherit`](Self::inherit) found no heir for.
    replaced: Vec<(String, RuleCounts)>,
    /// The outgoing frames when a frame may become several; empty otherwise.
    copies: Vec<Frame>,
    copies_max: usize,
    ready: usize,
    pub outcome: Outcome,
}

/// Why a rule does not forward a frame.
enum Kept {
    Filtered,
    OverLimit,
    TooLong,
    Unconvertible,
}

impl Engine {
    /// An engine for batches of up to `batch_frames`.
    pub fn new(policy: &Policy, batch_frames: usize) -> Self {
        let lookup = Lookup::new(policy);
        let action = |(at, rule): (usize, &super::Rule)| Action {
            label: rule.label(at),
            is_named: !rule.name.is_empty(),
            drop: rule.drop,
            limiter: rule.limit.map(Limiter::new),
            classic: Edit::new(&rule.change, false),
            fd: Edit::new(&rule.change, true),
            convert: rule.convert,
            counts: RuleCounts::default(),
        };
        let copies_max = lookup.copies_max();
        let copies = if copies_max > 1 { Vec::with_capacity(batch_frames * copies_max) } else { Vec::new() };
        Self {
            lookup,
            actions: policy.rules.iter().enumerate().map(action).collect(),
            limits: policy.rules.iter().any(|rule| rule.limit.is_some()),
            replaced: Vec::new(),
            copies,
            copies_max,
            ready: 0,
            outcome: Outcome::default(),
        }
    }

    /// Whether its rules need the time.
    pub fn needs_time(&self) -> bool {
        self.limits
    }

    /// The name and counts of each rule: those of the policy in its order, then those of replaced rules.
    pub fn counts(&self) -> Vec<(String, RuleCounts)> {
        let rules = self.actions.iter().map(|action| (action.label.clone(), action.counts));
        rules.chain(self.replaced.iter().cloned()).collect()
    }

    /// Takes over the counts of another engine's rules, and how much of their limits is used up. A rule is the same when
    /// it has the same name, or the same place and no name.
    pub fn inherit(&mut self, old: &mut Self) {
        self.replaced.append(&mut old.replaced);
        for gone in old.actions.drain(..) {
            let heir = self.actions.iter_mut().find(|action| action.is_heir_of(&gone));
            let Some(heir) = heir else {
                add_counts(&mut self.replaced, gone.label + " (replaced)", gone.counts);
                continue;
            };
            heir.counts.add(gone.counts);
            if let (Some(limiter), Some(used)) = (&mut heir.limiter, gone.limiter) {
                limiter.inherit(used);
            }
        }
    }

    /// Applies the rules to all frames of a batch, received at the time that `arrival` returns, which is asked only for
    /// rules with limits. [`outgoing`](Self::outgoing) returns the frames to send.
    pub fn apply(&mut self, batch: &mut Batch, arrival: impl Fn(&Meta) -> u64) {
        if self.copies_max > 1 {
            return self.apply_with_copies(batch, arrival);
        }
        let (frames, meta) = batch.frames_mut_and_meta();
        let mut ready = 0;
        for at in 0..frames.len() {
            let forwarded = match self.lookup.find(&frames[at]) {
                Found::One(rule) => {
                    self.actions[usize::from(rule)].apply(&mut frames[at], || arrival(&meta[at]))
                }
                _ => Err(Kept::Filtered),
            };
            match forwarded {
                Ok(()) => {
                    if ready != at {
                        frames[ready] = frames[at];
                    }
                    ready += 1;
                }
                Err(kept) => self.outcome.count(kept),
            }
        }
        self.ready = ready;
    }

    fn apply_with_copies(&mut self, batch: &Batch, arrival: impl Fn(&Meta) -> u64) {
        self.copies.clear();
        for (frame, meta) in batch.iter() {
            let found = self.lookup.find(frame);
            let one;
            let rules = match found {
                Found::None => &[][..],
                Found::One(rule) => {
                    one = [rule];
                    &one[..]
                }
                Found::Several(list) => self.lookup.list(list),
            };
            if rules.is_empty() {
                self.outcome.count(Kept::Filtered);
            }
            self.outcome.copied += rules.len().saturating_sub(1) as u64;
            for &rule in rules {
                let mut copy = *frame;
                match self.actions[usize::from(rule)].apply(&mut copy, || arrival(meta)) {
                    Ok(()) => self.copies.push(copy),
                    Err(kept) => self.outcome.count(kept),
                }
            }
        }
        self.ready = self.copies.len();
    }

    /// The frames to send after the last [`apply`](Self::apply) on this batch.
    pub fn outgoing<'a>(&'a self, batch: &'a Batch) -> &'a [Frame] {
        if self.copies_max > 1 { &self.copies } else { &batch.frames()[..self.ready] }
    }

    /// The number of these frames.
    pub fn ready(&self) -> usize {
        self.ready
    }
}

impl Outcome {
    #[cold] // keeps the path of forwarded frames straight
    fn count(&mut self, kept: Kept) {
        *match kept {
            Kept::Filtered => &mut self.filtered,
            Kept::OverLimit => &mut self.over_limit,
            Kept::TooLong => &mut self.too_long,
            Kept::Unconvertible => &mut self.unconvertible,
        } += 1;
    }
}

impl RuleCounts {
    fn add(&mut self, other: Self) {
        self.matched += other.matched;
        self.forwarded += other.forwarded;
        self.changed += other.changed;
    }
}

/// Adds counts to those of this label.
fn add_counts(list: &mut Vec<(String, RuleCounts)>, label: String, counts: RuleCounts) {
    match list.iter_mut().find(|(name, _)| *name == label) {
        Some((_, sum)) => sum.add(counts),
        None => list.push((label, counts)),
    }
}

impl Action {
    fn is_heir_of(&self, other: &Self) -> bool {
        (&self.label, self.is_named) == (&other.label, other.is_named)
    }

    #[inline]
    fn apply(&mut self, frame: &mut Frame, arrival: impl Fn() -> u64) -> Result<(), Kept> {
        self.counts.matched += 1;
        if self.drop {
            return Err(Kept::Filtered);
        }
        if let Some(limiter) = &mut self.limiter
            && !limiter.passes(frame, arrival())
        {
            return Err(Kept::OverLimit);
        }
        if let Some(edit) = if frame.is_fd() { &self.fd } else { &self.classic } {
            edit.apply(frame).map_err(|_| Kept::TooLong)?;
            self.counts.changed += 1;
        }
        if let Some(kind) = self.convert {
            convert(frame, kind)?;
        }
        self.counts.forwarded += 1;
        Ok(())
    }
}

fn convert(frame: &mut Frame, kind: Convert) -> Result<(), Kept> {
    match (kind, frame.is_fd()) {
        (Convert::Classic, false) | (Convert::Fd | Convert::FdBrs, true) => return Ok(()),
        (Convert::Classic, true) if frame.len > 8 => return Err(Kept::Unconvertible),
        (Convert::Classic, true) => frame.flags = 0,
        (_, false) if frame.is_rtr() => return Err(Kept::Unconvertible),
        (Convert::Fd, false) => frame.flags = FDF,
        (Convert::FdBrs, false) => frame.flags = FDF | BRS,
    }
    frame.len8_dlc = 0;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Change, Limit, Matching, Rule, select};
    use super::*;
    use canter_io::netlink::can_gw::Modification;
    use proptest::prelude::*;

    fn through(policy: &Policy, frames: &[&str]) -> (Vec<String>, Outcome) {
        let mut engine = Engine::new(policy, 16);
        let mut batch = Batch::new(16);
        frames.iter().for_each(|frame| batch.push(&frame.parse().unwrap(), Meta::default()));
        engine.apply(&mut batch, |_| 0);
        assert_eq!(engine.ready(), engine.outgoing(&batch).len());
        (engine.outgoing(&batch).iter().map(Frame::to_string).collect(), engine.outcome)
    }

    fn rule(filter: &str) -> Rule {
        Rule { filters: select::parse(filter).unwrap(), ..Rule::default() }
    }

    #[test]
    fn the_first_rule_has_a_frame_or_every_one_has_a_copy() {
        let renamed = |to| Change { set: Modification::from_id(to), ..Change::default() };
        let rules = vec![
            Rule { drop: true, ..rule("100") },
            Rule { change: renamed(0x200), ..rule("100-10F") },
            rule("000-7FF"),
        ];
        let first = Policy { matching: Matching::First, rules };
        let (out, outcome) = through(&first, &["100#", "101#", "300#", "00000100#"]);
        assert_eq!(out, ["200#", "300#"]);
        assert_eq!(outcome, Outcome { filtered: 2, ..Outcome::default() });
        let (out, outcome) = through(&Policy { matching: Matching::All, ..first }, &["100#", "101#", "300#"]);
        assert_eq!(out, ["200#", "100#", "200#", "101#", "300#"]);
        assert_eq!(outcome, Outcome { filtered: 1, copied: 3, ..Outcome::default() });
    }

    #[test]
    fn a_frame_is_made_one_of_the_other_kind_where_its_length_allows() {
        let convert = |kind| Policy {
            rules: vec![Rule { convert: Some(kind), ..Rule::default() }],
            ..Policy::default()
        };
        let fd = format!("123##1{}", "11".repeat(12));
        let (out, outcome) = through(&convert(Convert::Classic), &["123##1AABB", &fd, "124#11"]);
        assert_eq!((out, outcome.unconvertible), (vec!["123#AABB".to_owned(), "124#11".to_owned()], 1));
        let (out, outcome) =
            through(&convert(Convert::FdBrs), &["123#1122334455667788_C", "123#R", "124##0"]);
        assert_eq!(
            (out, outcome.unconvertible),
            (vec!["123##51122334455667788".to_owned(), "124##4".to_owned()], 1)
        );
        assert_eq!(through(&convert(Convert::Fd), &["12345678#11"]).0, ["12345678##411"]);
    }

    #[test]
    fn frames_over_a_limit_or_too_long_are_counted() {
        let len = Modification { len: Some(16), ..Modification::default() };
        let rules = vec![
            Rule { limit: Some(Limit { period_ns: 1000, burst: 1 }), ..rule("100") },
            Rule { change: Change { or: len, ..Change::default() }, ..rule("101") },
        ];
        let (out, outcome) =
            through(&Policy { rules, ..Policy::default() }, &["100#", "100#", "101#11", "100#"]);
        assert_eq!(out, ["100#"]);
        assert_eq!(outcome, Outcome { over_limit: 2, too_long: 1, ..Outcome::default() });
    }

    #[test]
    fn rules_that_are_read_again_keep_their_counts_and_limits() {
        let limit = Some(Limit { period_ns: 1000, burst: 1 });
        let named = |name: &str, filter| Rule { name: name.to_owned(), ..rule(filter) };
        let policy = |rules| Policy { rules, ..Policy::default() };
        let old = vec![Rule { limit, ..named("motor", "100") }, named("gone", "101"), rule("102")];
        let new = vec![rule("102"), Rule { limit, ..named("motor", "100-10F") }, named("new", "103")];
        let mut engine = Engine::new(&policy(old), 16);
        let mut batch = Batch::new(16);
        for frame in ["100#", "101#", "101#", "102#"] {
            batch.push(&frame.parse().unwrap(), Meta::default());
        }
        engine.apply(&mut batch, |_| 5000);
        let mut renewed = Engine::new(&policy(new), 16);
        renewed.inherit(&mut engine);
        batch.clear();
        batch.push(&"100#".parse().unwrap(), Meta::default());
        renewed.apply(&mut batch, |_| 5100);
        assert_eq!(renewed.outcome.over_limit, 1, "the limit was used up before");
        let counts: Vec<_> = renewed.counts().into_iter().map(|(name, rule)| (name, rule.matched)).collect();
        let expected =
            [("rule 1", 0), ("motor", 2), ("new", 0), ("gone (replaced)", 2), ("rule 3 (replaced)", 1)];
        assert_eq!(counts, expected.map(|(name, count)| (name.to_owned(), count)));
    }

    fn any_rule() -> impl Strategy<Value = Rule> {
        const FILTERS: &[&str] = &["100", "100-103", "~101", "00000100", "100:700"];
        const CONVERSIONS: &[Option<Convert>] =
            &[None, None, Some(Convert::Classic), Some(Convert::Fd), Some(Convert::FdBrs)];
        let filters = prop::collection::vec(prop::sample::select(FILTERS), 0..3);
        let convert = prop::sample::select(CONVERSIONS);
        let len = prop_oneof![Just(None), (0u8..70).prop_map(Some)];
        let limit = prop_oneof![Just(None), (1u64..100, 1u32..3).prop_map(Some)];
        (filters, convert, len, limit, any::<bool>()).prop_map(|(filters, convert, len, limit, drop)| Rule {
            filters: filters.iter().flat_map(|filter| select::parse(filter).unwrap()).collect(),
            drop,
            convert,
            limit: limit.map(|(period_ns, burst)| Limit { period_ns, burst }),
            change: Change { or: Modification { len, ..Modification::default() }, ..Change::default() },
            ..Rule::default()
        })
    }

    proptest! {
        #[test]
        fn every_frame_is_counted_once(
            rules in prop::collection::vec(any_rule(), 0..5), all: bool,
            frames in prop::collection::vec((0u32..5, 0usize..6), 0..40), gap_ns in 0u64..60,
        ) {
            const BODIES: [&str; 6] = ["#", "#R3", "#1122334455667788", "#1122334455667788_C", "##0", "##1112233445566778899AABBCC"];
            let matching = if all { Matching::All } else { Matching::First };
            let mut engine = Engine::new(&Policy { matching, rules }, 16);
            let (mut sent, mut now_ns) = (0, 0);
            for part in frames.chunks(16) {
                let mut batch = Batch::new(16);
                for (id, body) in part {
                    let frame: Frame = format!("{:03X}{}", 0x0ff + id, BODIES[*body]).parse().unwrap();
                    batch.push(&frame, Meta::default());
                }
                engine.apply(&mut batch, |_| now_ns);
                let outgoing = engine.outgoing(&batch);
                prop_assert_eq!(engine.ready(), outgoing.len());
                let fits = outgoing.iter().all(|frame| usize::from(frame.len) <= frame.mtu() - 8);
                prop_assert!(fits, "no frame is longer than its kind allows");
                sent += outgoing.len() as u64;
                now_ns += gap_ns;
            }
            let Outcome { filtered, copied, over_limit, too_long, unconvertible } = engine.outcome;
            let ends = sent + filtered + over_limit + too_long + unconvertible;
            prop_assert_eq!(frames.len() as u64 + copied, ends, "{:?}", engine.outcome);
            let counts = engine.counts();
            prop_assert_eq!(counts.iter().map(|(_, rule)| rule.forwarded).sum::<u64>(), sent);
            prop_assert!(counts.iter().all(|(_, rule)| rule.matched >= rule.forwarded));
        }
    }
}
