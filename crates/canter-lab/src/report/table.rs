//! The drawings of a page and of a terminal summary, in their order within each part.

use super::{costs, curves, drawing::Drawing, heat, latency, sweep, ways};

pub static DRAWINGS: &[Drawing] =
    &[heat::DRAWING, sweep::DRAWING, curves::DRAWING, ways::DRAWING, latency::DRAWING, costs::DRAWING];
