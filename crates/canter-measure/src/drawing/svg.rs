//! A small SVG writer: deterministic output, all text escaped, all numbers finite.
//!
//! Colours, fonts and text anchors are classes of the page's style sheet, so that dark, light and print share
//! one drawing. Attributes are as HTML writes them: in quotes only where a value has spaces.

use std::fmt::Write;

/// A drawing that grows element by element.
pub struct Svg {
    body: String,
    width: f64,
    height: f64,
    title: String,
    description: String,
}

impl Svg {
    /// Begins a drawing; screen readers read `title`.
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        Self { body: String::new(), width, height, title: escape(title), description: String::new() }
    }

    /// The description for screen readers.
    pub fn describe(&mut self, description: &str) {
        self.description = format!("<desc>{}</desc>", escape(description));
    }

    /// Draws a line as a path: half the bytes of a `<line>`, of which a large page has thousands. Without a class, it leads
    /// to a badge.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.plain_path(class, &Path::through([from, to]));
    }

    /// Draws vertical lines at each `x` as one path, down and up in turn, which is the shortest.
    pub fn uprights(&mut self, class: &str, xs: impl IntoIterator<Item = f64>, (top, bottom): (f64, f64)) {
        let mut path = Path::default();
        for (x, from_top) in xs.into_iter().zip([true, false].into_iter().cycle()) {
            let (from, to) = if from_top { (top, bottom) } else { (bottom, top) };
            path.move_to(x, from);
            path.down_to(to);
        }
        self.plain_path(class, &path);
    }

    /// Draws horizontal lines at each `y` as one path, to the right and to the left in turn, which is the shortest.
    pub fn levels(&mut self, class: &str, ys: impl IntoIterator<Item = f64>, (left, right): (f64, f64)) {
        let mut path = Path::default();
        for (y, from_left) in ys.into_iter().zip([true, false].into_iter().cycle()) {
            let (from, to) = if from_left { (left, right) } else { (right, left) };
            path.move_to(from, y);
            path.across_to(to);
        }
        self.plain_path(class, &path);
    }

    /// A rectangle from its upper left corner; a negative size counts as 0.
    pub fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64)) {
        let [x, y, w, h] = [at.0, at.1, size.0.max(0.0), size.1.max(0.0)].map(number);
        self.element(format_args!("<rect{} x={x} y={y} width={w} height={h} />", Class(class)));
    }

    /// Groups the elements of `draw`; they inherit the class with its colour and dashes.
    pub fn group(&mut self, class: &str, draw: impl FnOnce(&mut Self)) {
        self.element(format_args!("<g{}>", Class(class)));
        draw(self);
        self.element(format_args!("</g>"));
    }

    /// A circle; without a class, a ring in the group's colour.
    pub fn circle(&mut self, class: &str, centre: (f64, f64), radius: f64) {
        let [x, y, r] = [centre.0, centre.1, radius].map(number);
        self.element(format_args!("<circle{} cx={x} cy={y} r={r} />", Class(class)));
    }

    /// Dots of one size as one path: a closed line of no length has round ends.
    pub fn dots(&mut self, class: &str, centres: impl IntoIterator<Item = (f64, f64)>) {
        let mut path = Path::default();
        for (x, y) in centres {
            path.move_to(x, y);
            path.d.push('z');
        }
        self.plain_path(class, &path);
    }

    /// Texts of one class side by side, each with its `x`.
    pub fn text_row(&mut self, class: &str, y: f64, texts: impl IntoIterator<Item = (f64, String)>) {
        self.texts(class, &format!("\"translate(0 {})\"", number(y)), 'x', texts);
    }

    /// Texts of one class below each other, each with its `y`.
    pub fn text_column(&mut self, class: &str, x: f64, texts: impl IntoIterator<Item = (f64, String)>) {
        self.texts(class, &format!("translate({})", number(x)), 'y', texts);
    }

    /// Texts in a group, whose transformation is their common coordinate.
    fn texts(
        &mut self,
        class: &str,
        transform: &str,
        axis: char,
        texts: impl IntoIterator<Item = (f64, String)>,
    ) {
        write!(self.body, "<g{} transform={transform}>", Class(class)).expect("a String takes everything");
        for (place, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            let (place, text) = (number(place), escape(&text));
            write!(self.body, "<text {axis}={place}>{text}</text>").expect("a String takes everything");
        }
        self.element(format_args!("</g>"));
    }

    /// A line of text; `class` says which side of it is at `at`.
    pub fn text(&mut self, class: &str, at: (f64, f64), text: &str) {
        if text.is_empty() {
            return;
        }
        let ([x, y], text) = ([at.0, at.1].map(number), escape(text));
        let x = if x == "0" { String::new() } else { format!(" x={x}") };
        self.element(format_args!("<text{}{x} y={y}>{text}</text>", Class(class)));
    }

    /// A path with the tooltip `tip`.
    pub fn path(&mut self, class: &str, path: &Path, tip: &str) {
        let (d, tip) = (&path.d, escape(tip));
        self.element(format_args!(r#"<path{} d="{d}"><title>{tip}</title></path>"#, Class(class)));
    }

    /// A path without a tooltip.
    pub fn plain_path(&mut self, class: &str, path: &Path) {
        let d = &path.d;
        if !d.is_empty() {
            self.element(format_args!(r#"<path{} d="{d}"/>"#, Class(class)));
        }
    }

    /// The shape around `at`, with the tooltip `tip`.
    pub fn shape(&mut self, class: &str, shape: Shape, at: (f64, f64), tip: &str) {
        let (class, tip) = (Class(class), escape(tip));
        match shape {
            Shape::Circle(r) => {
                let [x, y] = [at.0, at.1].map(number);
                self.element(format_args!(
                    "<circle{class} cx={x} cy={y} r={r}><title>{tip}</title></circle>"
                ));
            }
            Shape::Outline(from, steps) => {
                let [x, y] = [at.0 + from.0, at.1 + from.1].map(number);
                self.element(format_args!(r#"<path{class} d="M{x} {y}{steps}"><title>{tip}</title></path>"#));
            }
        }
    }

    /// A number in a disc that labels a line, in the group's colour. The style sheet knows the disc by its lack of a class and
    /// of a radius.
    pub fn badge(&mut self, centre: (f64, f64), label: usize) {
        let [x, y] = [centre.0, centre.1].map(number);
        self.element(format_args!("<circle cx={x} cy={y} />"));
        self.text("", (centre.0, centre.1 + 3.3), &label.to_string());
    }

    /// The whole `<svg>` element.
    pub fn finish(self) -> String {
        let Self { body, title, description, .. } = &self;
        let [w, h] = [self.width, self.height].map(number);
        let head = format!("<title>{title}</title>{description}");
        format!("<svg role=img viewBox=\"0 0 {w} {h}\">{head}\n{body}</svg>\n")
    }

    fn element(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.body, "{element}").expect("a String takes everything");
    }
}

/// What stands around a point.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A circle of this radius.
    Circle(f64),
    /// Relative steps of a path, from a place as seen from the point.
    Outline((f64, f64), &'static str),
}

impl Shape {
    /// The shape around the origin, as the `d` of a path.
    pub fn path(self) -> String {
        match self {
            Self::Circle(r) => {
                let across = 2.0 * r;
                format!("M-{r} 0a{r} {r} 0 1 0 {across} 0a{r} {r} 0 1 0 -{across} 0z")
            }
            Self::Outline((x, y), steps) => format!("M{x} {y}{steps}"),
        }
    }
}

/// The attribute `class` with the space before it; nothing without a class.
struct Class<'a>(&'a str);

impl std::fmt::Display for Class<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            "" => Ok(()),
            several if several.contains(' ') => write!(f, r#" class="{several}""#),
            one => write!(f, " class={one}"),
        }
    }
}

/// The width of the strokes of [`Path::uprights`], as the style sheet has it.
pub const STROKE: f64 = 2.0;

/// The `d` of a path, in relative steps of tenths of a pixel, which are the shortest to write.
#[derive(Default)]
pub struct Path {
    d: String,
    /// Where the path ends, in tenths.
    at: (i64, i64),
    /// The last command, which need not be repeated.
    command: char,
}

impl Path {
    /// Straight lines through these points.
    pub fn through(points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut path = Self::default();
        let mut points = points.into_iter();
        if let Some((x, y)) = points.next() {
            path.move_to(x, y);
        }
        points.for_each(|(x, y)| path.line_to(x, y));
        path
    }

    /// The mark of a paper's number, around its centre.
    pub fn diamond(x: f64, y: f64) -> Self {
        Self::around([(x - 5.0, y), (x, y - 5.0), (x + 5.0, y), (x, y + 5.0)])
    }

    /// Straight lines around an area.
    pub fn around(corners: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut path = Self::through(corners);
        path.d.push('z');
        path
    }

    /// Begins a new line here.
    pub fn move_to(&mut self, x: f64, y: f64) {
        let to = (tenths(x), tenths(y));
        let first = if self.d.is_empty() { 'M' } else { 'm' };
        self.step(first, &[to.0 - self.at.0, to.1 - self.at.1]);
        // A second pair of numbers would be a line.
        (self.at, self.command) = (to, '\0');
    }

    fn line_to(&mut self, x: f64, y: f64) {
        let to = (tenths(x), tenths(y));
        match (to.0 - self.at.0, to.1 - self.at.1) {
            (0, 0) => {}
            (across, 0) => self.step('h', &[across]),
            (0, down) => self.step('v', &[down]),
            (across, down) => self.step('l', &[across, down]),
        }
        self.at = to;
    }

    /// How far above or below this height the path is, in tenths.
    fn height_to(&self, y: f64) -> u64 {
        (tenths(y) - self.at.1).unsigned_abs()
    }

    /// Goes on horizontally.
    pub fn across_to(&mut self, x: f64) {
        self.step('h', &[tenths(x) - self.at.0]);
        self.at.0 = tenths(x);
    }

    /// Goes on vertically.
    pub fn down_to(&mut self, y: f64) {
        self.step('v', &[tenths(y) - self.at.1]);
        self.at.1 = tenths(y);
    }

    /// Vertical lines, each `(x, from, to)`, to whole pixels, of strokes two pixels wide, each begun at the end that is nearer
    /// to where the one before ended. Dots side by side are one horizontal line.
    pub fn uprights(lines: impl Iterator<Item = (f64, f64, f64)>) -> Self {
        let lines: Vec<_> = lines.map(|(x, from, to)| (x.round(), from.round(), to.round())).collect();
        let mut path = Self::default();
        let is_beside = |a: &(f64, f64, f64), b: &(f64, f64, f64)| {
            a.1 == b.1 && a.2 == b.2 && a.1 - a.2 == STROKE && b.0 - a.0 == STROKE
        };
        for side_by_side in lines.chunk_by(is_beside) {
            let [(x, from, to), .., (last, ..)] = *side_by_side else {
                let (x, from, to) = side_by_side[0];
                let (near, far) =
                    if path.height_to(from) <= path.height_to(to) { (from, to) } else { (to, from) };
                path.move_to(x, near);
                path.down_to(far);
                continue;
            };
            path.move_to(x - STROKE / 2.0, f64::midpoint(from, to));
            path.across_to(last + STROKE / 2.0);
        }
        path
    }

    fn step(&mut self, command: char, steps: &[i64]) {
        let is_new = command != self.command;
        if is_new {
            self.d.push(command);
        }
        for (n, &step) in steps.iter().enumerate() {
            let text = short(step);
            // A sign or a command keeps numbers apart, too.
            if !(is_new && n == 0 || text.starts_with('-')) {
                self.d.push(' ');
            }
            self.d.push_str(&text);
        }
        self.command = command;
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.d)
    }
}

/// A number in tenths; one that is not finite is 0.
fn tenths(value: f64) -> i64 {
    if value.is_finite() { (value * 10.0).round() as i64 } else { 0 }
}

/// Tenths as a number of a path, which needs no 0 before the point.
fn short(tenths: i64) -> String {
    let text = in_tenths(tenths);
    text.strip_prefix("0.")
        .map(|part| format!(".{part}"))
        .or_else(|| text.strip_prefix("-0.").map(|part| format!("-.{part}")))
        .unwrap_or(text)
}

/// Rounds to a tenth of a pixel.
fn number(value: f64) -> String {
    in_tenths(tenths(value))
}

fn in_tenths(tenths: i64) -> String {
    let (whole, tenth) = (tenths.unsigned_abs() / 10, tenths.unsigned_abs() % 10);
    let sign = if tenths < 0 { "-" } else { "" };
    if tenth == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{tenth}") }
}

/// Escapes a text for element content and attributes in double quotes. Control characters are not allowed in XML at all.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ if character.is_control() && character != '\n' => out.push('\u{fffd}'),
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_finite() {
        let all = [0.0, -0.01, 1.04, -1.06, 12.0, f64::NAN, f64::INFINITY].map(number);
        assert_eq!(all, ["0", "0", "1", "-1.1", "12", "0", "0"]);
    }

    #[test]
    fn a_path_is_short_and_ends_where_its_points_do() {
        let path = Path::through([
            (10.04, 20.0),
            (10.0, 25.5),
            (12.0, 25.5),
            (11.5, 25.0),
            (11.0, 24.0),
            (11.0, 24.04),
        ]);
        assert_eq!(path.to_string(), "M10 20v5.5h2l-.5-.5-.5-1");
        let path = Path::uprights([(1.2, 9.0, 4.0), (3.0, 9.0, 5.0)].into_iter());
        assert_eq!(path.to_string(), "M1 4v5m2 0v-4");
    }

    #[test]
    fn text_cannot_leave_its_element() {
        let mut svg = Svg::new(1.0, 1.0, "\"><script>");
        svg.text("a", (0.0, 0.0), "</text><script>'\u{1b}");
        let svg = svg.finish();
        assert!(
            !svg.contains("<script>") && svg.contains("&lt;/text&gt;&lt;script&gt;&#39;\u{fffd}"),
            "{svg}"
        );
    }
}
