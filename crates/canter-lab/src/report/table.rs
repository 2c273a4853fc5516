//! The figures of a page and of a terminal summary, in their order within each part.

use super::{costs, curves, figure::Figure, heat, latency, sweep};

pub static FIGURES: &[Figure] =
    &[heat::FIGURE, sweep::FIGURE, curves::FIGURE, latency::FIGURE, costs::FIGURE];
