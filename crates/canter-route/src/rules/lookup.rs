//! Finds the rules that a frame matches. A standard identifier takes one look-up in a table, for any number of rules and
//! filters. An extended identifier that a filter names exactly takes one look-up in a hash; others take one in a hash for
//! each different mask, and a comparison with each inverse filter.
//!
//! A frame is looked up by its *key*: `can_id` with the FD kind in the bit that error frames have there.

use super::{Kinds, Matching, Policy, select};
use canter_io::{
    Filter, Frame,
    filter::INVERSE,
    frame::{EFF_FLAG, EFF_MASK, ERR_FLAG, RTR_FLAG, SFF_MASK},
};
use std::collections::HashMap;

/// Marks the key of an FD frame.
const FD: u32 = ERR_FLAG;
/// The bits of a key that are not of the identifier.
const FORMAT: u32 = EFF_FLAG | RTR_FLAG | FD;

/// The most rules that a route may have.
pub const RULES_MAX: usize = 16_384;

/// Numbers of rules that match, in the order of the file.
type Hits = Vec<u16>;

/// The result of a look-up: no rule, one rule, or a list of several (only with `match = "all"`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    None,
    One(u16),
    /// The number of a list; see [`Lookup::list`].
    Several(u32),
}

pub struct Lookup {
    matching: Matching,
    /// By identifier, RTR and kind.
    standard: Box<[Found]>,
    exact: ExactHash,
    masked: Vec<Group>,
    inverse: Vec<(u16, Filter, Kinds)>,
    lists: Vec<Hits>,
    /// The number of each list, while the tables are built.
    known: HashMap<Hits, u32>,
    /// Collects hits of several groups.
    scratch: Hits,
}

/// Filters with the same mask: the rules of each masked key.
struct Group {
    mask: u32,
    rules: HashMap<u32, Hits, Multiply>,
}

const SCRATCH: u32 = u32::MAX;

impl Lookup {
    pub fn new(policy: &Policy) -> Self {
        let mut lookup = Self {
            matching: policy.matching,
            standard: Box::default(),
            exact: ExactHash::default(),
            masked: Vec::new(),
            inverse: Vec::new(),
            lists: Vec::new(),
            known: HashMap::new(),
            scratch: Vec::new(),
        };
        let mut standard = vec![Hits::new(); 1 << 13];
        let mut exact: Vec<u32> = Vec::new();
        for (at, rule) in policy.rules.iter().enumerate() {
            let everything = [Filter { id: 0, mask: 0 }];
            let filters = if rule.filters.is_empty() { &everything[..] } else { &rule.filters };
            for filter in filters {
                note_standard(&mut standard, at as u16, filter, rule.kinds);
                lookup.note_extended(&mut exact, at as u16, filter, rule.kinds);
            }
        }
        lookup.standard = standard.into_iter().map(|hits| lookup.found(hits)).collect();
        // An exact key may match masks as well, so its result includes those rules.
        exact.sort_unstable();
        exact.dedup();
        let answers: Vec<_> = exact.iter().map(|&key| (key, lookup.hits(key))).collect();
        let answers = answers.into_iter().map(|(key, hits)| (key, lookup.found(hits))).collect::<Vec<_>>();
        lookup.exact = ExactHash::new(&answers);
        // Exact keys are in the hash, so their group is not needed.
        lookup.known = HashMap::new();
        lookup.masked.retain(|group| group.mask & EFF_MASK != EFF_MASK);
        lookup
    }

    /// The largest number of rules that a frame can match; 1 unless `match = "all"`.
    pub fn copies_max(&self) -> usize {
        let listed = self.lists.iter().map(Vec::len).max().unwrap_or(1);
        let collected = match self.matching {
            Matching::First => 1,
            Matching::All => {
                self.masked
                    .iter()
                    .map(|group| group.rules.values().map(Vec::len).max().unwrap_or(0))
                    .sum::<usize>()
                    + self.inverse.len()
            }
        };
        listed.max(collected).max(1)
    }

    /// The rules that a data or RTR frame matches.
    #[inline]
    pub fn find(&mut self, frame: &Frame) -> Found {
        let key = frame.can_id & !FD | if frame.is_fd() { FD } else { 0 };
        if key & EFF_FLAG == 0 {
            return self.standard[standard_place(key)];
        }
        if let Some(found) = self.exact.get(key) {
            return found;
        }
        if self.masked.is_empty() && self.inverse.is_empty() {
            return Found::None;
        }
        self.find_masked(key)
    }

    /// The rules of a [`Found::Several`].
    pub fn list(&self, number: u32) -> &[u16] {
        if number == SCRATCH { &self.scratch } else { &self.lists[number as usize] }
    }

    fn find_masked(&mut self, key: u32) -> Found {
        if self.matching == Matching::First {
            let masked = self.masked.iter().filter_map(|group| group.get(key)?.first());
            let inverse = self.inverse.iter().filter(|entry| passes(entry, key)).map(|(rule, ..)| rule);
            return masked.chain(inverse).min().map_or(Found::None, |&rule| Found::One(rule));
        }
        let mut hits = std::mem::take(&mut self.scratch);
        hits.clear();
        self.collect(key, &mut hits);
        self.scratch = hits;
        match self.scratch[..] {
            [] => Found::None,
            [rule] => Found::One(rule),
            _ => Found::Several(SCRATCH),
        }
    }

    /// All rules that match an extended frame.
    fn hits(&self, key: u32) -> Hits {
        let mut hits = Hits::new();
        self.collect(key, &mut hits);
        hits
    }

    fn collect(&self, key: u32, hits: &mut Hits) {
        for group in &self.masked {
            hits.extend(group.get(key).into_iter().flatten());
        }
        hits.extend(self.inverse.iter().filter(|entry| passes(entry, key)).map(|(rule, ..)| rule));
        hits.sort_unstable();
        hits.dedup(); // several filters of one rule
    }

    fn found(&mut self, mut hits: Hits) -> Found {
        hits.dedup();
        match hits[..] {
            [] => Found::None,
            [rule] => Found::One(rule),
            [rule, ..] if self.matching == Matching::First => Found::One(rule),
            _ => {
                if let Some(&known) = self.known.get(&hits) {
                    return Found::Several(known);
                }
                let number = self.lists.len() as u32;
                self.known.insert(hits.clone(), number);
                self.lists.push(hits);
                Found::Several(number)
            }
        }
    }

    /// Notes a filter for extended frames, and in `exact` the keys that it names.
    fn note_extended(&mut self, exact: &mut Vec<u32>, rule: u16, filter: &Filter, kinds: Kinds) {
        if filter.id & INVERSE != 0 {
            self.inverse.push((rule, *filter, kinds));
            return;
        }
        let mask = select::effective_mask(filter);
        if mask & EFF_FLAG != 0 && filter.id & EFF_FLAG == 0 {
            return; // standard frames only
        }
        let kind_mask = if kinds.classic && kinds.fd { 0 } else { FD };
        let kind = if kinds.fd { FD & kind_mask } else { 0 };
        let (mask, key) = (mask | kind_mask, filter.id & mask & !FD | kind);
        let group = match self.masked.iter_mut().position(|group| group.mask == mask) {
            Some(at) => &mut self.masked[at],
            None => {
                self.masked.push(Group { mask, rules: HashMap::default() });
                let last = self.masked.len() - 1;
                &mut self.masked[last]
            }
        };
        let rules = group.rules.entry(key).or_default();
        if rules.last() != Some(&rule) {
            rules.push(rule);
        }
        if mask & EFF_MASK == EFF_MASK {
            let flags = [0, RTR_FLAG, FD, RTR_FLAG | FD].map(|flags| key & EFF_MASK | EFF_FLAG | flags);
            exact.extend(flags.into_iter().filter(|named| named & mask == key));
        }
    }
}

impl Group {
    #[inline]
    fn get(&self, key: u32) -> Option<&Hits> {
        self.rules.get(&(key & self.mask))
    }
}

fn passes((_, filter, kinds): &(u16, Filter, Kinds), key: u32) -> bool {
    let mask = select::effective_mask(filter);
    let right_kind = if key & FD == 0 { kinds.classic } else { kinds.fd };
    right_kind && key & !FD & mask != filter.id & !INVERSE & mask
}

/// Notes a filter for standard frames of both kinds, data and remote.
fn note_standard(standard: &mut [Hits], rule: u16, filter: &Filter, kinds: Kinds) {
    let mask = select::effective_mask(filter);
    let inverse = filter.id & INVERSE != 0;
    let id = filter.id & !INVERSE;
    for format in [0, RTR_FLAG, FD, RTR_FLAG | FD] {
        if !(if format & FD == 0 { kinds.classic } else { kinds.fd }) {
            continue;
        }
        // The bits above a standard identifier are 0 in its frames.
        let above = mask & (FORMAT | EFF_MASK & !SFF_MASK) & !FD;
        let format_fits = format & !FD & above == id & above;
        if !inverse && !format_fits {
            continue;
        }
        // An exact filter selects one entry, others all entries under their mask.
        let free = if inverse { SFF_MASK } else { !mask & SFF_MASK };
        let base = if inverse { 0 } else { id & mask & SFF_MASK };
        let mut part = 0;
        loop {
            let key = base | part | format;
            if !inverse || key & !FD & mask != id & mask {
                let hits = &mut standard[standard_place(key)];
                if hits.last() != Some(&rule) {
                    hits.push(rule);
                }
            }
            part = part.wrapping_sub(free) & free; // the next subset of the free bits
            if part == 0 {
                break;
            }
        }
    }
}

/// Identifier, then RTR (bit 30), then FD (bit 29).
#[inline]
fn standard_place(key: u32) -> usize {
    (key & SFF_MASK | (key & (RTR_FLAG | FD)) >> 18) as usize
}

/// A hash of keys and results, at most half full, with multiplicative hashing.
#[derive(Default)]
struct ExactHash {
    slots: Box<[(u32, Found)]>,
    shift: u32,
}

/// No extended frame has this key.
const FREE: u32 = 0;

impl ExactHash {
    fn new(answers: &[(u32, Found)]) -> Self {
        if answers.is_empty() {
            return Self::default();
        }
        let places = (2 * answers.len()).next_power_of_two();
        let mut hash = Self {
            slots: vec![(FREE, Found::None); places].into_boxed_slice(),
            shift: 32 - places.trailing_zeros(),
        };
        for &(key, found) in answers {
            let mut at = hash.place(key);
            while hash.slots[at].0 != FREE {
                at = (at + 1) & (places - 1);
            }
            hash.slots[at] = (key, found);
        }
        hash
    }

    #[inline]
    fn place(&self, key: u32) -> usize {
        (multiplied(key) >> self.shift) as usize
    }

    #[inline]
    fn get(&self, key: u32) -> Option<Found> {
        if self.slots.is_empty() {
            return None;
        }
        let mut at = self.place(key);
        loop {
            let (have, found) = self.slots[at];
            if have == key {
                return Some(found);
            }
            if have == FREE {
                return None;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }
}

/// Fibonacci hashing: 2³² divided by the golden ratio.
#[inline]
fn multiplied(key: u32) -> u32 {
    (key ^ key >> 15).wrapping_mul(0x9e37_79b1)
}

/// The hasher of this module for the standard library's table.
#[derive(Clone, Copy, Default)]
struct Multiply(u64);

impl std::hash::BuildHasher for Multiply {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        Self(0)
    }
}

impl std::hash::Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(byte.into());
        }
    }

    fn write_u32(&mut self, key: u32) {
        let key = u64::from(key) ^ self.0.rotate_left(5);
        // The table takes its place from the low bits and a tag from the high ones.
        self.0 = (key ^ key >> 15).wrapping_mul(0x9e37_79b9_7f4a_7c15).swap_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::super::Rule;
    use super::*;
    use proptest::prelude::*;

    fn filter() -> impl Strategy<Value = Filter> {
        // Few identifiers and masks, so that filters meet.
        let id = (0u32..4, any::<[bool; 3]>()).prop_map(|(id, [extended, remote, inverse])| {
            let flag = |on, flag| if on { flag } else { 0 };
            id | flag(extended, EFF_FLAG) | flag(remote, RTR_FLAG) | flag(inverse, INVERSE)
        });
        const MASKS: &[u32] =
            &[0, 1, 0x7ff, 0xc000_07ff, 0x8000_0001, 0xdfff_ffff, 0x1fff_ffff, 0x9fff_ffff, 0x4000_0002];
        (id, prop::sample::select(MASKS)).prop_map(|(id, mask)| Filter { id, mask })
    }

    fn rule() -> impl Strategy<Value = Rule> {
        let kinds = prop::sample::select(&[(true, true), (true, false), (false, true)][..]);
        (prop::collection::vec(filter(), 0..3), kinds).prop_map(|(filters, (classic, fd))| Rule {
            filters,
            kinds: Kinds { classic, fd },
            ..Rule::default()
        })
    }

    /// Compares with every filter of every rule.
    fn slowly(policy: &Policy, frame: &Frame) -> Vec<u16> {
        let matches = |rule: &Rule| {
            let kind = if frame.is_fd() { rule.kinds.fd } else { rule.kinds.classic };
            kind && (rule.filters.is_empty() || rule.filters.iter().any(|filter| filter.matches(frame)))
        };
        let hits = policy.rules.iter().enumerate().filter(|(_, rule)| matches(rule));
        let most = if policy.matching == Matching::First { 1 } else { usize::MAX };
        hits.map(|(at, _)| at as u16).take(most).collect()
    }

    proptest! {
        #[test]
        fn the_tables_find_the_same_rules_as_a_comparison_with_every_filter(
            rules in prop::collection::vec(rule(), 0..8), all: bool, ids in prop::collection::vec(0u32..6, 1..20),
        ) {
            let matching = if all { Matching::All } else { Matching::First };
            let policy = Policy { matching, rules };
            let mut lookup = Lookup::new(&policy);
            let most = lookup.copies_max();
            for id in ids {
                for text in [format!("{id:03X}#"), format!("{id:08X}#"), format!("{id:03X}#R"), format!("{id:08X}#R2"),
                             format!("{id:03X}##0"), format!("{id:08X}##1AA")] {
                    let frame: Frame = text.parse().unwrap();
                    let found = match lookup.find(&frame) {
                        Found::None => vec![],
                        Found::One(rule) => vec![rule],
                        Found::Several(number) => lookup.list(number).to_vec(),
                    };
                    prop_assert!(found.len() <= most);
                    prop_assert_eq!(found, slowly(&policy, &frame), "{}", text);
                }
            }
        }
    }

    #[test]
    fn ten_thousand_exact_rules_are_each_found() {
        let filters = |at: u32| vec![Filter { id: (at * 7919) & EFF_MASK | EFF_FLAG, mask: 0xdfff_ffff }];
        let rules: Vec<_> = (0..10_000).map(|at| Rule { filters: filters(at), ..Rule::default() }).collect();
        let mut lookup = Lookup::new(&Policy { rules, ..Policy::default() });
        for at in 0..10_000u32 {
            let frame: Frame = format!("{:08X}#", (at * 7919) & EFF_MASK).parse().unwrap();
            assert_eq!(lookup.find(&frame), Found::One(at as u16));
        }
        assert_eq!(lookup.find(&"1FFFFFFF#".parse().unwrap()), Found::None);
    }
}
