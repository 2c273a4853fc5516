//! The profiles that a reader chooses from the matrix; initially those of the first condition with profiles.

use crate::report::figure::{Figure, View, Views};
use crate::report::latency::{LatencyRow, latency_row};
use crate::report::numbers::Numbers;
use crate::report::views::{Drawing, Sizes, drawing};
use crate::report::{profiles, ranking, verdict};
use serde::Serialize;

pub const FIGURE: Figure = Figure::new("explorer", include_str!("explorer.html"), Views::WholePage(views));

#[derive(Serialize)]
struct Explorer {
    condition: String,
    profiles: Drawing,
    rows: Vec<LatencyRow>,
}

/// Present when more than one condition has profiles.
fn views(all: &[Numbers<'_>], sizes: Sizes) -> Vec<View> {
    let groups = || all.iter().flat_map(|numbers| &numbers.latencies);
    let Some(group) = groups().find(|group| !group.rows.is_empty()).filter(|_| groups().count() > 1) else {
        return Vec::new();
    };
    let unit = group.unit();
    let row = |(n, row)| latency_row(group, row, n + 1, unit);
    vec![View::of(&Explorer {
        condition: verdict::capital(&ranking::full(group)),
        profiles: drawing(sizes, |size| profiles::draw(group, size)),
        rows: group.rows.iter().enumerate().map(row).collect(),
    })]
}
