//! What a drawing on a page is made of: SVG, axes, marks and outlines.

pub mod axis;
pub mod marks;
pub mod outline;
pub mod plot;
pub mod svg;
