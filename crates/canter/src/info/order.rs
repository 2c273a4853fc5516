//! The order of identifiers.

use super::census::{Census, Key, Row};
use crate::recordings::natural_order;
use canter_frame::frame::{EFF_FLAG, EFF_MASK, RTR_FLAG};
use clap::ValueEnum;

/// Sort key of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Bus, then identifier
    #[default]
    Bus,
    /// Identifier
    Id,
    /// Number of frames, highest first
    Count,
    /// Median time between frames, shortest first
    Period,
    /// Spread of the time between frames, widest first
    Jitter,
    /// Longest time between two frames, longest first
    Gap,
    /// Frames probably missing, most first
    Missing,
}

/// The rows of a census, sorted.
pub fn sorted(census: &Census, sort: Sort, reverse: bool) -> Vec<(&Key, &Row)> {
    let mut places: Vec<usize> = (0..census.buses.len()).collect();
    places.sort_by_key(|&at| natural_order(&census.buses[at].name));
    let mut order_of_bus = vec![0u64; places.len()];
    for (order, &at) in places.iter().enumerate() {
        order_of_bus[at] = order as u64;
    }
    let mut rows: Vec<(&Key, &Row)> = census.rows.iter().collect();
    rows.sort_by_cached_key(|(key, row)| {
        let (bus, id) = (order_of_bus[key.bus], id_order(key.id));
        let first = match sort {
            Sort::Bus => bus,
            Sort::Id => id,
            Sort::Count => u64::MAX - row.count,
            Sort::Period => row.period().map_or(u64::MAX, |period| period.median_ns),
            Sort::Jitter => u64::MAX - row.period().map_or(0, |period| period.jitter_ns),
            Sort::Gap => u64::MAX - row.longest_ns(),
            Sort::Missing => u64::MAX - row.period().and_then(|period| period.missing).unwrap_or(0),
        };
        (first, bus, id)
    });
    if reverse {
        rows.reverse();
    }
    rows
}

/// Standard identifiers come before extended ones, as numbers, and data frames before remote ones.
fn id_order(id: u32) -> u64 {
    u64::from(id & EFF_FLAG != 0) << 33 | u64::from(id & EFF_MASK) << 1 | u64::from(id & RTR_FLAG != 0)
}
