//! Latency profiles, overlaid: for each t, how many frames took longer. Steps, logarithmic in the number of
//! frames; every line ends at its worst case, which carries the method's number.

use crate::measure::profile::Profile;
use crate::report::axis::{Scale, make_room};
use crate::report::figure::{self, Size};
use crate::report::ranking::Latencies;
use crate::report::svg::{Path, Svg};
use crate::report::{bars, unit};

const TOP: f64 = 34.0;
const BOTTOM: f64 = 62.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 16.0;
/// Just below one frame, so that the last frame's step can be seen.
const LEAST_FRAMES: f64 = 0.7;

struct Plot {
    x: Scale,
    y: Scale,
    right: f64,
    bottom: f64,
}

pub fn draw(group: &Latencies<'_>, size: Size) -> String {
    let profiles: Vec<Profile> = group.rows.iter().map(|row| Profile::of(row.figure)).collect();
    let height = if size == Size::Wide { 420.0 } else { 330.0 };
    let plot = plot(group, &profiles, (size.width() - RIGHT, height - BOTTOM));
    let mut svg = Svg::new(size.width(), height, "Latency profiles: how many frames took longer than t");
    grid(&mut svg, &plot);
    figure::floor_line(&mut svg, &plot.x, bars::floor(group), (TOP, plot.bottom));
    for (n, profile) in profiles.iter().enumerate().rev() {
        let row = &group.rows[n];
        let tip = format!("{}: worst {}", row.label(), unit::span(row.figure.max));
        svg.path(&format!("line {}", row.class()), &steps(profile, &plot), &tip);
    }
    worst_cases(&mut svg, group, &profiles, &plot);
    svg.finish()
}

fn plot(group: &Latencies<'_>, profiles: &[Profile], (right, bottom): (f64, f64)) -> Plot {
    let steps = || profiles.iter().flat_map(|profile| &profile.steps).map(|step| step.0);
    let least = steps().min().unwrap_or(0);
    let most = steps().max().unwrap_or(1);
    let logarithmic = figure::spread_too_wide(least, most);
    let count = profiles.iter().map(|profile| profile.count).max().unwrap_or(1).max(1);
    let least = bars::floor(group).unwrap_or(least).min(least); // a floor stays in sight
    let x = if logarithmic {
        figure::time_scale((least, most), (LEFT, right), true)
    } else {
        let least = least as f64; // the interesting part need not begin at 0
        let margin = ((most as f64 - least) * 0.04).max(most as f64 * 0.02).max(2.0);
        Scale::linear(((least - margin).max(0.0), most as f64 + margin), (LEFT, right))
    };
    let y = Scale::logarithmic((LEAST_FRAMES, count as f64 * 1.3), (bottom, TOP));
    Plot { x, y, right, bottom }
}

fn grid(svg: &mut Svg, plot: &Plot) {
    svg.text("head", (0.0, 10.0), "frames that took longer than t");
    for tick in plot.y.ticks(7) {
        let y = plot.y.at(tick);
        svg.line("grid", (LEFT, y), (plot.right, y));
        svg.text("tick end", (LEFT - 6.0, y + 4.0), &unit::grouped(tick.round() as u128));
    }
    figure::time_axis(svg, &plot.x, Size::ticks(plot.right - LEFT), (TOP, plot.bottom + 32.0));
    svg.line("axis", (LEFT, plot.bottom), (plot.right, plot.bottom));
    svg.text("tick end", (LEFT - 6.0, plot.bottom + 26.0), "worst");
}

/// Steps closer than half a pixel to the one before are left out: a million buckets make a small page too.
fn steps(profile: &Profile, plot: &Plot) -> Path {
    let mut path = Path::default();
    let mut at = (LEFT, plot.y.at(profile.count as f64));
    path.move_to(at.0, at.1);
    for (n, &(t, slower)) in profile.steps.iter().enumerate() {
        let last = n + 1 == profile.steps.len();
        let to = (plot.x.at(t as f64), if last { plot.bottom } else { plot.y.at(slower as f64) });
        if !last && to.0 - at.0 < 0.5 && to.1 - at.1 < 0.5 {
            continue;
        }
        path.across_to(to.0);
        path.down_to(to.1);
        at = to;
    }
    path
}

fn worst_cases(svg: &mut Svg, group: &Latencies<'_>, profiles: &[Profile], plot: &Plot) {
    let worst = |profile: &Profile| profile.steps.last().map_or(0, |step| step.0);
    let ends: Vec<f64> = profiles.iter().map(|profile| plot.x.at(worst(profile) as f64)).collect();
    let badges = make_room(&ends, 17.0, (LEFT + 8.0, plot.right - 8.0));
    for (n, (&end, &badge)) in ends.iter().zip(&badges).enumerate() {
        let class = group.rows[n].class();
        svg.line(&format!("leader {class}"), (end, plot.bottom), (badge, plot.bottom + 15.0));
        svg.badge(&class, (badge, plot.bottom + 22.0), n + 1);
    }
}
