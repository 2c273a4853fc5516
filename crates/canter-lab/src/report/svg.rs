//! A small SVG writer: deterministic output, all text escaped, all numbers finite.
//!
//! Colours, fonts and text anchors are classes of the page's style sheet, so that dark, light and print share
//! one drawing.

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
    /// `title` is read by screen readers.
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        Self { body: String::new(), width, height, title: escape(title), description: String::new() }
    }

    /// The description for screen readers.
    pub fn describe(&mut self, description: &str) {
        self.description = format!("<desc>{}</desc>", escape(description));
    }

    /// As a path: half the bytes of a `<line>`, of which a large page has thousands.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let mut path = Path::default();
        path.move_to(from.0, from.1);
        match number(from.0) == number(to.0) {
            true => path.down_to(to.1),
            false if number(from.1) == number(to.1) => path.across_to(to.0),
            false => path.line_to(to.0, to.1),
        }
        self.plain_path(class, &path);
    }

    /// Parallel lines as one path: vertical ones at each `x`.
    pub fn uprights(&mut self, class: &str, xs: impl IntoIterator<Item = f64>, (top, bottom): (f64, f64)) {
        let mut path = Path::default();
        for x in xs {
            path.move_to(x, top);
            path.down_to(bottom);
        }
        self.plain_path(class, &path);
    }

    /// Parallel lines as one path: horizontal ones at each `y`.
    pub fn levels(&mut self, class: &str, ys: impl IntoIterator<Item = f64>, (left, right): (f64, f64)) {
        let mut path = Path::default();
        for y in ys {
            path.move_to(left, y);
            path.across_to(right);
        }
        self.plain_path(class, &path);
    }

    pub fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64)) {
        let [x, y, w, h] = [at.0, at.1, size.0.max(0.0), size.1.max(0.0)].map(number);
        self.element(format_args!(r#"<rect class="{class}" x="{x}" y="{y}" width="{w}" height="{h}"/>"#));
    }

    /// Groups the elements of `draw`; they inherit the class with its colour and dashes.
    pub fn group(&mut self, class: &str, draw: impl FnOnce(&mut Self)) {
        self.element(format_args!(r#"<g class="{class}">"#));
        draw(self);
        self.element(format_args!("</g>"));
    }

    /// Groups the elements of `draw`, with every x multiplied by `x.0` and moved by `x.1`; y likewise.
    pub fn stretched(&mut self, x: (f64, f64), y: (f64, f64), draw: impl FnOnce(&mut Self)) {
        let (a, e) = (precise(x.0), precise(x.1));
        let (d, f) = (precise(y.0), precise(y.1));
        self.element(format_args!(r#"<g transform="matrix({a} 0 0 {d} {e} {f})">"#));
        draw(self);
        self.element(format_args!("</g>"));
    }

    /// A path that is defined elsewhere, with the tooltip `tip`.
    pub fn reuse(&mut self, class: &str, id: &str, tip: &str) {
        let (id, tip) = (escape(id), escape(tip));
        self.element(format_args!(r##"<use class="{class}" href="#{id}"><title>{tip}</title></use>"##));
    }

    pub fn circle(&mut self, class: &str, centre: (f64, f64), radius: f64) {
        let [x, y, r] = [centre.0, centre.1, radius].map(number);
        self.element(format_args!(r#"<circle class="{class}" cx="{x}" cy="{y}" r="{r}"/>"#));
    }

    pub fn text(&mut self, class: &str, at: (f64, f64), text: &str) {
        if text.is_empty() {
            return;
        }
        let ([x, y], text) = ([at.0, at.1].map(number), escape(text));
        self.element(format_args!(r#"<text class="{class}" x="{x}" y="{y}">{text}</text>"#));
    }

    /// A path with the tooltip `tip`.
    pub fn path(&mut self, class: &str, path: &Path, tip: &str) {
        let (d, tip) = (&path.0, escape(tip));
        self.element(format_args!(r#"<path class="{class}" d="{d}"><title>{tip}</title></path>"#));
    }

    pub fn plain_path(&mut self, class: &str, path: &Path) {
        let d = &path.0;
        if !d.is_empty() {
            self.element(format_args!(r#"<path class="{class}" d="{d}"/>"#));
        }
    }

    /// The outline `d` around the origin, moved to `at`, with the tooltip `tip`.
    pub fn placed(&mut self, class: &str, d: &str, at: (f64, f64), tip: &str) {
        let ([x, y], tip) = ([at.0, at.1].map(number), escape(tip));
        let place = format!("translate({x} {y})");
        self.element(format_args!(
            r#"<path class="{class}" d="{d}" transform="{place}"><title>{tip}</title></path>"#
        ));
    }

    /// A number in a disc that labels a line, in the group's colour.
    pub fn badge(&mut self, centre: (f64, f64), number: usize) {
        self.circle("badge", centre, 7.5);
        self.text("badge-text", (centre.0, centre.1 + 3.3), &number.to_string());
    }

    pub fn finish(self) -> String {
        let Self { body, title, description, .. } = &self;
        let [w, h] = [self.width, self.height].map(number);
        let head = format!("<title>{title}</title>{description}");
        format!("<svg role=\"img\" viewBox=\"0 0 {w} {h}\">{head}\n{body}</svg>\n")
    }

    fn element(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.body, "{element}").expect("a String takes everything");
    }
}

/// The `d` of a path.
#[derive(Default)]
pub struct Path(pub String);

impl Path {
    pub fn move_to(&mut self, x: f64, y: f64) {
        self.step('M', &[x, y]);
    }

    pub fn line_to(&mut self, x: f64, y: f64) {
        self.step('L', &[x, y]);
    }

    pub fn across_to(&mut self, x: f64) {
        self.step('H', &[x]);
    }

    pub fn down_to(&mut self, y: f64) {
        self.step('V', &[y]);
    }

    /// Vertical lines, each `(x, from, to)`, to whole pixels: relative steps are short.
    pub fn uprights(lines: impl Iterator<Item = (f64, f64, f64)>) -> Self {
        let mut path = String::new();
        let mut at = (0, 0);
        for (x, from, to) in lines {
            let [x, from, to] = [x, from, to].map(|pixel| pixel.round() as i64);
            write!(path, "m{} {}v{}", x - at.0, from - at.1, to - from).expect("a String takes everything");
            at = (x, to);
        }
        Self(path)
    }

    fn step(&mut self, command: char, numbers: &[f64]) {
        self.0.push(command);
        let numbers: Vec<String> = numbers.iter().copied().map(number).collect();
        self.0.push_str(&numbers.join(" "));
    }
}

/// Seven digits, for factors of large coordinates.
fn precise(value: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return "0".into();
    }
    let digits = (6 - value.abs().log10().floor() as i32).clamp(0, 15) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Rounds to a tenth of a pixel; a number that is not finite becomes 0.
fn number(value: f64) -> String {
    let tenths = if value.is_finite() { (value * 10.0).round() as i64 } else { 0 };
    let (whole, tenth) = (tenths.unsigned_abs() / 10, tenths.unsigned_abs() % 10);
    let sign = if tenths < 0 { "-" } else { "" };
    if tenth == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{tenth}") }
}

/// For element content and attributes in double quotes. Control characters are not allowed in XML at all.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ if character.is_control() => out.push('\u{fffd}'),
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
