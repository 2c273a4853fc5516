//! Marks that differ in shape as well as in colour.

use super::svg::{Shape, Svg};

/// Circle, square, triangle, diamond.
const SHAPES: [Shape; 4] = [
    Shape::Circle(3.6),
    Shape::Outline((-3.3, -3.3), "h6.6v6.6h-6.6z"),
    Shape::Outline((0.0, -4.4), "l4.2 7.4h-8.4z"),
    Shape::Outline((0.0, -4.8), "l4.8 4.8-4.8 4.8-4.8-4.8z"),
];
const CROSS: Shape = Shape::Outline((-3.6, -3.6), "l7.2 7.2m-7.2 0l7.2-7.2");
const RING: Shape = Shape::Circle(6.6);

/// The outline of the `n`-th of several things; from the fifth on, only the colour differs.
pub fn shape(n: usize) -> Shape {
    SHAPES[n % SHAPES.len()]
}

/// The class of the mark's colour.
pub fn class(n: usize) -> String {
    format!("hue-{}", n % 7)
}

/// The `n`-th mark with a tooltip.
pub fn draw(svg: &mut Svg, n: usize, at: (f64, f64), tip: &str) {
    svg.shape(&format!("mark {}", class(n)), shape(n), at, tip);
}

/// A cross where there is nothing to draw.
pub fn cross(svg: &mut Svg, at: (f64, f64), tip: &str) {
    svg.shape("cross", CROSS, at, tip);
}

/// A ring around a mark that needs attention.
pub fn ring(svg: &mut Svg, at: (f64, f64), tip: &str) {
    svg.shape("ring", RING, at, tip);
}
