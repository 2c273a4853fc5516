//! The page: a drawing for each signal over the same time, and a table of the signals. One file without scripts.

use super::trace::Trace;
use canter_cli::terminal::plain;
use canter_measure::drawing::{
    axis::Scale,
    marks,
    plot::{self, WIDTH},
    svg::{Path, Svg, escape},
};

const HEIGHT: f64 = 170.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = HEIGHT - 24.0;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--faint:#6e7781;--line:#d0d7de;--paper:#fff}\
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--faint:#8b949e;--line:#30363d;--paper:#0d1117}}\
body{font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:64rem;margin:2rem auto;padding:0 1rem}\
svg{width:100%;height:auto;display:block;font:12px system-ui,sans-serif;fill:var(--ink)}\
.tick{fill:var(--faint)}.middle{text-anchor:middle}.end{text-anchor:end}\
.grid{stroke:var(--line);fill:none}.trace{fill:none;stroke-width:1.3;stroke-linejoin:round}\
.hue-0{stroke:#0969da}.hue-1{stroke:#bc4c00}.hue-2{stroke:#1a7f37}.hue-3{stroke:#8250df}.hue-4{stroke:#bf3989}.hue-5{stroke:#9a6700}.hue-6{stroke:#57606a}\
table{border-collapse:collapse;margin-top:1rem}td,th{padding:.2rem .8rem;text-align:right;border-bottom:1px solid var(--line)}\
td:first-child,th:first-child{text-align:left}";

/// The page of these traces.
pub fn page(title: &str, traces: &[Trace]) -> String {
    let end_ns = traces.iter().map(Trace::end_ns).max().unwrap_or(0).max(1);
    let drawings: String = traces.iter().enumerate().map(|(n, trace)| drawing(n, trace, end_ns)).collect();
    let rows: String = traces.iter().map(row).collect();
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\n<style>{STYLE}</style>\n\
         <h1>{title}</h1>\n{drawings}\
         <table><tr><th>signal</th><th>bus</th><th>values</th><th>lowest</th><th>mean</th><th>highest</th><th>last</th>\
         <th>unit</th></tr>\n{rows}</table>\n<p>canter {}</p></html>\n",
        env!("CARGO_PKG_VERSION")
    )
}

fn row(trace: &Trace) -> String {
    let texts = [
        plain(&trace.name),
        plain(&trace.bus),
        format!("{}{}", trace.count, trace.not_drawn()),
        trace.text(trace.low()),
        trace.text(trace.mean()),
        trace.text(trace.high()),
        trace.text(trace.last()),
        plain(&trace.unit),
    ];
    let cells: String = texts.iter().map(|text| format!("<td>{}</td>", escape(text))).collect();
    format!("<tr>{cells}</tr>\n")
}

/// A trace over the time from 0 to `end_ns`.
fn drawing(n: usize, trace: &Trace, end_ns: u64) -> String {
    let (low, high) = (trace.low(), trace.high());
    let title = format!("{} on {}", plain(&trace.name), plain(&trace.bus));
    let mut svg = Svg::new(WIDTH, HEIGHT, &title);
    svg.describe(&format!(
        "{} values from {} to {} {}",
        trace.count,
        trace.text(low),
        trace.text(high),
        plain(&trace.unit)
    ));
    let unit = if trace.unit.is_empty() { String::new() } else { format!(", {}", plain(&trace.unit)) };
    svg.text("name", (LEFT, TOP - 10.0), &format!("{title}{unit}"));
    let x = Scale::linear((0.0, end_ns as f64), (LEFT, RIGHT));
    plot::time_axis(&mut svg, &x, plot::labels_max(RIGHT - LEFT), (TOP, BOTTOM));
    // A constant is a line in the middle.
    let margin = if high > low { 0.0 } else { low.abs().max(1.0) };
    let y = Scale::linear((low - margin, high + margin), (BOTTOM, TOP));
    let levels = if high > low { vec![low, (low + high) / 2.0, high] } else { vec![low] };
    svg.levels("grid", levels.iter().map(|&level| y.at(level)), (LEFT, RIGHT));
    for level in levels.into_iter().filter(|level| level.is_finite()) {
        svg.text("tick end", (LEFT - 8.0, y.at(level) + 4.0), &trace.text(level));
    }
    let points = trace.intervals().flat_map(|(middle, interval)| {
        let at = x.at(middle);
        [(at, y.at(interval.low)), (at, y.at(interval.high)), (at, y.at(interval.last))]
    });
    svg.plain_path(&format!("trace {}", marks::class(n)), &Path::through(points));
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::databases::number::Digits;

    #[test]
    fn a_page_has_a_drawing_and_a_row_for_each_signal_and_loads_nothing() {
        let mut trace = Trace::new("Engine.<Speed>".into(), "can0".into(), "rpm".into(), Digits::Decimals(1));
        (0..1000).for_each(|n| trace.push(n * 10_000_000, n as f64 / 2.0));
        let constant = {
            let mut constant =
                Trace::new("Engine.Mode".into(), "can0".into(), String::new(), Digits::Decimals(0));
            constant.push(0, 3.0);
            constant
        };
        let page = page("drive & more", &[trace, constant]);
        assert_eq!(page.matches("<svg ").count(), 2);
        assert!(page.contains("<td>Engine.&lt;Speed&gt;</td><td>can0</td><td>1000</td><td>0.0</td><td>249.8</td><td>499.5</td>"), "{page}");
        assert!(page.contains("drive &amp; more"));
        assert!(!page.contains("http") && !page.contains("<script"));
    }
}
