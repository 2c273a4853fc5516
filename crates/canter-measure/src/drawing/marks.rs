//! Marks that differ in shape as well as in colour.

use super::svg::Svg;

/// Outlines around the origin: circle, square, triangle, diamond.
const SHAPES: [&str; 4] = [
    "M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0z",
    "M-3.3 -3.3h6.6v6.6h-6.6z",
    "M0 -4.4l4.2 7.4h-8.4z",
    "M0 -4.8l4.8 4.8l-4.8 4.8l-4.8 -4.8z",
];
const CROSS: &str = "M-3.6 -3.6l7.2 7.2M-3.6 3.6l7.2 -7.2";
const RING: &str = "M-6.6 0a6.6 6.6 0 1 0 13.2 0a6.6 6.6 0 1 0 -13.2 0z";

/// The outline of the `n`-th of several things; from the fifth on, only the colour differs.
pub fn shape(n: usize) -> &'static str {
    SHAPES[n % SHAPES.len()]
}

/// The class of the mark's colour.
pub fn class(n: usize) -> String {
    format!("hue-{}", n % 7)
}

/// The `n`-th mark with a tooltip.
pub fn draw(svg: &mut Svg, n: usize, at: (f64, f64), tip: &str) {
    svg.placed(&format!("mark {}", class(n)), shape(n), at, tip);
}

/// A cross where there is nothing to draw.
pub fn cross(svg: &mut Svg, at: (f64, f64), tip: &str) {
    svg.placed("cross", CROSS, at, tip);
}

/// A ring around a mark that needs attention.
pub fn ring(svg: &mut Svg, at: (f64, f64), tip: &str) {
    svg.placed("ring", RING, at, tip);
}
