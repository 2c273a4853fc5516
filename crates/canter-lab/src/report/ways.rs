//! The account of a frame's way: for each gateway a stacked bar of what the instructions of its median frame were executed for,
//! by the lab's analyzer. The meter's own instructions are taken off; the fastest is on top, and a diamond is the paper's ratio.

use crate::analyzer::stage::{ALL, Stage};
use crate::report::drawing::{Drawing, View, Views};
use crate::report::family::Family;
use crate::report::numbers::Numbers;
use crate::report::ranking::{self, Latencies, Ranked};
use crate::report::stages;
use canter_cli::terminal::{BOLD, Ink, PLAIN, Table, clip, paragraph};
use canter_cli::units;
use canter_io::carrier::table::{CANCHAR, NETWORK};
use canter_measure::drawing::axis::Scale;
use canter_measure::drawing::plot::{self, CHARACTER, WIDTH};
use canter_measure::drawing::svg::{Path, Svg};
use canter_measure::result::{ClockKind, Condition, Environment, Latency, Stages};
use canter_route::gateway::kind::{Method, Place};
use serde::Serialize;

pub const DRAWING: Drawing =
    Drawing { text, ..Drawing::new("ways", include_str!("ways.html"), Views::EachCondition(views)) };

/// The gateway with which all others are compared.
const REFERENCE: &str = "can-gw";
const TOP: f64 = 30.0;
const BOTTOM: f64 = 26.0;
const ROW: f64 = 24.0;
/// Half the height of a bar.
const HALF: f64 = 8.0;
/// The narrowest part of a bar that has its letter.
const LETTER: f64 = 13.0;
const NAMES_MAX: usize = 36;
/// The ends of the bars, and the columns beside them.
const RIGHT: f64 = WIDTH - 290.0;
const RATIO: f64 = RIGHT + 58.0;
const TIME: f64 = RIGHT + 126.0;
const NEEDS: f64 = RIGHT + 140.0;

/// The account of a gateway's median frame.
struct Way<'a> {
    row: &'a Ranked<'a, Latency>,
    stages: &'a Stages,
}

impl Way<'_> {
    /// The time of the median frame without the meter's own.
    fn ns(&self) -> u64 {
        self.stages.median_frame_ns.saturating_sub(self.stage_ns(Stage::Instrument))
    }

    fn stage_ns(&self, stage: Stage) -> u64 {
        self.stages.median_frame_ns_of(stage.name())
    }

    /// The time of the board's median frame; 0 without a model.
    fn board_ns(&self) -> u64 {
        self.stages.model.as_ref().map_or(0, |model| model.median_frame_ns)
    }

    /// The stages of the gateway itself that take time, in their order.
    fn parts(&self) -> impl Iterator<Item = (usize, Stage, u64)> + '_ {
        let all = ALL.iter().enumerate().filter(|(_, stage)| **stage != Stage::Instrument);
        all.map(|(n, &stage)| (n, stage, self.stage_ns(stage))).filter(|(.., ns)| *ns > 0)
    }
}

/// The accounts under one condition, the fastest first.
pub struct Ways<'a> {
    ways: Vec<Way<'a>>,
    clock: ClockKind,
}

impl<'a> Ways<'a> {
    /// The accounts of a group's series; none when no series has one.
    fn new(group: &'a Latencies<'_>, clock: ClockKind) -> Option<Self> {
        let way = |row: &'a Ranked<'_, Latency>| Some(Way { row, stages: row.series.stages.as_ref()? });
        let mut ways: Vec<Way<'_>> = group.rows.iter().filter_map(way).collect();
        ways.sort_by_key(Way::ns);
        (!ways.is_empty()).then_some(Self { ways, clock })
    }

    /// Adds the gateways of another study that are not here yet.
    fn add(&mut self, other: Self) {
        for way in other.ways {
            if self.ways.iter().all(|known| known.row.series.method != way.row.series.method) {
                self.ways.push(way);
            }
        }
        self.ways.sort_by_key(Way::ns);
    }

    fn reference(&self) -> Option<&Way<'a>> {
        self.ways.iter().find(|way| way.row.series.method == REFERENCE)
    }

    /// The multiple of the reference's time.
    fn ratio(&self, way: &Way<'_>) -> Option<String> {
        units::ratio(way.ns(), self.reference()?.ns())
    }

    /// The board of which all ways have a model.
    fn board(&self) -> Option<&str> {
        let mut boards = self.ways.iter().map(|way| Some(way.stages.model.as_ref()?.board.as_str()));
        let first = boards.next()??;
        boards.all(|board| board == Some(first)).then_some(first)
    }

    /// The multiple of the reference's time on the board.
    fn board_ratio(&self, way: &Way<'_>) -> Option<String> {
        units::ratio(way.board_ns(), self.reference()?.board_ns())
    }

    /// The paper's time, scaled so that its reference is as long as ours.
    fn paper_ns(&self, way: &Way<'_>) -> Option<f64> {
        let reference = self.reference()?;
        let ratio = way.row.paper_ns()? as f64 / reference.row.paper_ns()? as f64;
        Some(ratio * reference.ns() as f64)
    }

    /// Which gateway to take of those that need nothing but Linux: one sentence.
    pub fn answer(&self) -> Option<String> {
        let stock: Vec<&Way<'_>> =
            self.ways.iter().filter(|way| needs(&way.row.series.method) == ANY).collect();
        let fastest = stock.first()?;
        let in_user_space = |wanted: fn(Family) -> bool| {
            let way = stock.iter().find(|way| way.row.family.user_space() && wanted(way.row.family))?;
            Some((ranking::label(way.row.series), self.ratio(way)?))
        };
        let spins = in_user_space(|family| family == Family::Spin);
        let sleeps = in_user_space(|family| family != Family::Spin);
        let mut sentence = format!(
            "Of what stock Linux offers, {} is the fastest gateway: {} a frame.",
            ranking::label(fastest.row.series),
            self.instructions(fastest.ns())
        );
        let user_space: Vec<String> = [
            spins.map(|(label, ratio)| format!("{label} takes {ratio} that with a processor kept busy")),
            sleeps.map(|(label, ratio)| format!("{label} {ratio} without")),
        ]
        .into_iter()
        .flatten()
        .collect();
        if fastest.row.family == Family::Kernel && !user_space.is_empty() {
            sentence += &format!(" In user space {}.", user_space.join(", "));
        }
        Some(sentence)
    }

    /// A time in words: in the virtual clock it is a number of instructions.
    fn instructions(&self, ns: u64) -> String {
        match self.clock {
            ClockKind::Virtual => format!("{} instructions", units::grouped(ns)),
            ClockKind::Real | ClockKind::Simulated => units::span(ns),
        }
    }
}

/// What every interface of Linux offers.
const ANY: &str = "any CAN interface";

/// What a gateway needs.
fn needs(method: &str) -> &'static str {
    let Ok(method) = method.parse::<Method>() else { return "" };
    let Some(pair) = method.pair else {
        return if method.kind.place == Place::Kernel { ANY } else { "SJA1000 cards, canbare" };
    };
    let carriers = [pair.receive.row.carriers, pair.transmit.row.carriers];
    let all_have = |name: &str| carriers.iter().all(|row| row.iter().any(|carrier| carrier.name == name));
    match () {
        () if all_have(NETWORK.name) => ANY,
        () if all_have(CANCHAR.name) => "the module canchar",
        () => "SJA1000 cards",
    }
}

#[derive(Serialize)]
pub struct WaysView {
    drawing: String,
    keys: Vec<Key>,
    /// The headings of the table's columns: the stages that occur.
    columns: Vec<&'static str>,
    rows: Vec<WayRow>,
    has_paper: bool,
    virtual_clock: bool,
    /// The board of the model, if there is one.
    board: Option<String>,
}

#[derive(Serialize)]
struct Key {
    class: String,
    letter: String,
    name: &'static str,
}

#[derive(Serialize)]
struct WayRow {
    gateway: String,
    ns: String,
    ratio: String,
    needs: &'static str,
    board_ns: String,
    board_ratio: String,
    stages: Vec<String>,
    meter: String,
}

/// The medians by the model of a board, beside those of the clock; empty without a model.
fn text(numbers: &Numbers<'_>, ink: Ink) -> String {
    let clock = numbers.result.environment.clock;
    let mut out = String::new();
    for ways in numbers.latencies.iter().filter_map(|group| Ways::new(group, clock)) {
        let Some(board) = ways.board() else { continue };
        paragraph(&mut out, &format!("By the model of {board}, without the meter's own:"), 0, ink, BOLD);
        let ratio = format!("× {REFERENCE}");
        let mut table = Table::new(&["<gateway", "instructions", &ratio, &format!("ns on {board}"), &ratio]);
        for way in &ways.ways {
            let cells = [
                ranking::label(way.row.series),
                units::grouped(way.ns()),
                ways.ratio(way).unwrap_or_default(),
                units::grouped(way.board_ns()),
                ways.board_ratio(way).unwrap_or_default(),
            ];
            table.row(cells.map(|cell| (cell, PLAIN)));
        }
        table.print(&mut out, ink);
    }
    out
}

fn views(numbers: &Numbers<'_>) -> Vec<View> {
    let clock = numbers.result.environment.clock;
    let views = numbers.latencies.iter().filter_map(|group| Ways::new(group, clock));
    views.map(|ways| View::of(&view(&ways))).collect()
}

/// The accounts of the machine with most gateways, for the first screen of a page. Studies whose machines, senders and frames
/// are the same share it, because their gateways differ in nothing but their methods.
pub fn of_all<'a>(all: &'a [Numbers<'a>]) -> Option<Ways<'a>> {
    let mut found: Vec<(Setting<'a>, Ways<'a>)> = Vec::new();
    for numbers in all {
        let environment = &numbers.result.environment;
        for group in numbers.latencies.iter().filter(|group| ranking::idle(&group.condition.load) == "none") {
            let Some(ways) = Ways::new(group, environment.clock) else { continue };
            let setting = Setting::new(environment, group.condition);
            match found.iter_mut().find(|(other, _)| *other == setting) {
                Some((_, other)) => other.add(ways),
                None => found.push((setting, ways)),
            }
        }
    }
    let ways = found.into_iter().map(|(_, ways)| ways).filter(|ways| ways.reference().is_some());
    ways.max_by_key(|ways| ways.ways.len())
}

/// What accounts share that can be compared.
#[derive(PartialEq)]
struct Setting<'a> {
    kernel: String,
    shift: &'a str,
    processors: u32,
    interfaces: &'a [String],
    len: u32,
    variant: &'a str,
}

impl<'a> Setting<'a> {
    fn new(environment: &'a Environment, condition: &'a Condition) -> Self {
        Self {
            kernel: environment.flavour(),
            shift: environment.word("canter.shift="),
            processors: environment.processors,
            interfaces: &condition.interfaces,
            len: condition.len,
            variant: &condition.variant,
        }
    }
}

pub fn view(ways: &Ways<'_>) -> WaysView {
    let occurs = |stage: Stage| ways.ways.iter().any(|way| way.stage_ns(stage) > 0);
    let shown: Vec<(usize, Stage)> = ALL
        .iter()
        .copied()
        .enumerate()
        .filter(|&(_, stage)| stage != Stage::Instrument && occurs(stage))
        .collect();
    let key = |&(n, stage): &(usize, Stage)| Key {
        class: format!("stage-{n}"),
        letter: stages::letter(stage).to_string(),
        name: stage.name(),
    };
    let row = |way: &Way<'_>| WayRow {
        gateway: ranking::label(way.row.series),
        ns: units::grouped(way.ns()),
        ratio: ways.ratio(way).unwrap_or_default(),
        needs: needs(&way.row.series.method),
        board_ns: units::grouped(way.board_ns()),
        board_ratio: ways.board_ratio(way).unwrap_or_default(),
        stages: shown.iter().map(|&(_, stage)| units::grouped(way.stage_ns(stage))).collect(),
        meter: units::grouped(way.stage_ns(Stage::Instrument)),
    };
    WaysView {
        drawing: draw(ways),
        keys: shown.iter().map(key).collect(),
        columns: shown.iter().map(|(_, stage)| stage.name()).collect(),
        rows: ways.ways.iter().map(row).collect(),
        has_paper: ways.ways.iter().any(|way| ways.paper_ns(way).is_some()),
        virtual_clock: ways.clock == ClockKind::Virtual,
        board: ways.board().map(str::to_owned),
    }
}

fn draw(ways: &Ways<'_>) -> String {
    let longest =
        ways.ways.iter().map(|way| ranking::label(way.row.series).chars().count()).max().unwrap_or(0);
    let left = CHARACTER * longest.clamp(8, NAMES_MAX) as f64 + 12.0;
    let bottom = TOP + ROW * ways.ways.len() as f64;
    let mut svg =
        Svg::new(WIDTH, bottom + BOTTOM, "What the instructions of the median frame were executed for");
    svg.describe(&description(ways));
    let most = ways.ways.iter().map(|way| ways.paper_ns(way).unwrap_or(0.0).max(way.ns() as f64));
    let scale = Scale::linear((0.0, most.fold(1.0, f64::max) * 1.03), (left, RIGHT));
    axis(&mut svg, ways, &scale, bottom);
    svg.text("head end", (RATIO, TOP - 12.0), &format!("× {REFERENCE}"));
    svg.text("head end", (TIME, TOP - 12.0), "ns");
    svg.text("head", (NEEDS, TOP - 12.0), "needs");
    let middle = |n: usize| TOP + ROW * (n as f64 + 0.5);
    for (n, way) in ways.ways.iter().enumerate() {
        let y = middle(n);
        bar(&mut svg, way, &ranking::label(way.row.series), &scale, y);
        if let Some(paper) = ways.paper_ns(way) {
            let tip = format!("the paper: {}", way.row.paper_ns().map(units::round_span).unwrap_or_default());
            svg.path("diamond", &Path::diamond(scale.at(paper), y), &tip);
        }
    }
    let mut column = |class, x, text: &dyn Fn(&Way<'_>) -> String| {
        let rows = ways.ways.iter().enumerate();
        svg.text_column(class, x, rows.map(|(n, way)| (middle(n) + 4.2, text(way))));
    };
    column("name", 0.0, &|way| clip(&ranking::label(way.row.series), NAMES_MAX));
    column("value strong end", RATIO, &|way| ways.ratio(way).unwrap_or_default());
    column("value end", TIME, &|way| units::grouped(way.ns()));
    column("value faint", NEEDS, &|way| needs(&way.row.series.method).to_owned());
    svg.finish()
}

/// Vertical lines at round times, and a strong one at the reference.
fn axis(svg: &mut Svg, ways: &Ways<'_>, scale: &Scale, bottom: f64) {
    plot::time_axis(svg, scale, plot::labels_max(300.0), (TOP, bottom));
    if let Some(reference) = ways.reference() {
        let x = scale.at(reference.ns() as f64);
        svg.line("reference", (x, TOP), (x, bottom));
    }
}

fn description(ways: &Ways<'_>) -> String {
    let one = |way: &Way<'_>| format!("{} {} ns", ranking::label(way.row.series), units::grouped(way.ns()));
    plot::first_few(ways.ways.iter().map(one), ", ")
}

/// The stages of a way side by side, with a letter where there is room.
fn bar(svg: &mut Svg, way: &Way<'_>, label: &str, scale: &Scale, y: f64) {
    let (mut before_ns, mut letters) = (0, Vec::new());
    for (n, stage, ns) in way.parts() {
        let [from, to] = [before_ns, before_ns + ns].map(|ns| scale.at(ns as f64));
        before_ns += ns;
        let (top, bottom) = (y - HALF, y + HALF);
        let outline = Path::around([(from, top), (to, top), (to, bottom), (from, bottom)]);
        let tip = format!("{label}: {} {} ns", stage.name(), units::grouped(ns));
        svg.path(&format!("part stage-{n}"), &outline, &tip);
        if to - from >= LETTER {
            letters.push((f64::midpoint(from, to), stages::letter(stage).to_string()));
        }
    }
    svg.text_row("letter middle", y + 4.0, letters);
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_measure::result::{self, Model, Paper, ResultFile, Series};

    /// A gateway whose median frame takes `gateway_ns` and 50 ns of the meter.
    fn series(method: &str, gateway_ns: u64, paper_ns: u64) -> Series {
        let stage = |stage: Stage, ns| result::Stage {
            name: stage.name().to_owned(),
            median_frame_ns: ns,
            total_ns: ns,
        };
        let sum = gateway_ns + 50;
        let stages = vec![stage(Stage::Gateway, gateway_ns), stage(Stage::Instrument, 50)];
        let stages = Stages { frames: 1, median_frame_ns: sum, total_ns: sum, stages, ..Stages::default() };
        let [min, p50, p90, p99, p999, max] = [gateway_ns; 6];
        let buckets = vec![[gateway_ns, 1]];
        let latency = Latency { count: 1, min, p50, p90, p99, p999, max, negative: 0, buckets };
        let paper = (paper_ns > 0).then(|| Paper { ns: paper_ns, ..Paper::default() });
        Series {
            method: method.to_owned(),
            stages: Some(stages),
            latency_ns: Some(latency),
            paper,
            ..Series::default()
        }
    }

    fn result(series: Vec<Series>) -> ResultFile {
        let environment = Environment { clock: ClockKind::Virtual, ..Environment::default() };
        ResultFile {
            schema: result::SCHEMA,
            study: String::new(),
            title: String::new(),
            command: String::new(),
            environment,
            series,
        }
    }

    #[test]
    fn studies_of_one_machine_share_a_drawing_without_the_meters_share() {
        let results = [
            result(vec![series("read+write", 4000, 180_000), series("can-gw", 2000, 49_000)]),
            result(vec![series("canchar+canchar", 1000, 0), series("ring/spin+write", 3000, 0)]),
        ];
        let all = Numbers::of_all(&results);
        let ways = of_all(&all).unwrap();
        let view = view(&ways);
        let rows: Vec<_> =
            view.rows.iter().map(|row| (row.gateway.as_str(), row.ratio.as_str(), row.needs)).collect();
        assert_eq!(
            rows,
            [
                ("canchar+canchar", "0.50×", "the module canchar"),
                ("can-gw", "1.00×", ANY),
                ("ring/spin+write", "1.50×", ANY),
                ("read+write", "2.00×", ANY),
            ]
        );
        assert_eq!((view.columns, view.rows[0].meter.as_str()), (vec!["gateway's own"], "50"));
        assert_eq!(
            ways.answer().unwrap(),
            "Of what stock Linux offers, can-gw is the fastest gateway: 2\u{202f}000 instructions a frame. In user space \
             ring/spin+write takes 1.50× that with a processor kept busy, read+write 2.00× without."
        );
    }

    #[test]
    fn a_model_of_a_board_stands_beside_the_clock() {
        let on_board = |method: &str, ns, board: &str, median_frame_ns| {
            let mut series = series(method, ns, 0);
            let model = Model { board: board.to_owned(), median_frame_ns, ..Model::default() };
            series.stages.as_mut().unwrap().model = Some(model);
            series
        };
        let both = |other: &str| {
            [result(vec![
                on_board("can-gw", 2000, "mpc5200", 40_000),
                on_board("read+write", 4000, other, 100_000),
            ])]
        };
        let (results, mixed) = (both("mpc5200"), both("desktop"));
        let all = Numbers::of_all(&results);
        let view = view(&of_all(&all).unwrap());
        assert_eq!((view.board.as_deref(), view.rows[1].board_ratio.as_str()), (Some("mpc5200"), "2.50×"));
        let said = text(&all[0], Ink::none());
        let last: Vec<_> = said.trim_end().lines().last().unwrap().split_whitespace().collect();
        assert_eq!(last, ["read+write", "4", "000", "2.00×", "100", "000", "2.50×"], "{said}");
        assert_eq!(text(&Numbers::of_all(&mixed)[0], Ink::none()), "");
    }

    #[test]
    fn without_an_account_there_is_no_drawing() {
        let results = [result(vec![Series { stages: None, ..series("can-gw", 2000, 0) }])];
        assert!(of_all(&Numbers::of_all(&results)).is_none());
    }
}
