//! The drawings of a page and of a terminal summary, in their order within each part.

use super::{costs, curves, drawing::Drawing, heat, latency, sweep};

pub static DRAWINGS: &[Drawing] =
    &[heat::DRAWING, sweep::DRAWING, curves::DRAWING, latency::DRAWING, costs::DRAWING];
