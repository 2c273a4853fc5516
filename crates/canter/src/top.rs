//! `canter top`: every bus and every identifier, live. `source` (frames) → `census` → `view` → `screen`, or a table. With
//! databases, a row of the census has its message and the last values of its signals (`names`).

mod census;
mod names;
mod screen;
mod view;

use crate::{
    databases::{self, Databases},
    live::Source,
};
use canter_cli::{
    duration,
    failure::{self, Exit, Failure},
    interrupt::interrupt_flag,
    options::Common,
    terminal::COLUMNS_MAX,
};
use canter_io::{
    Filters, Interface, InterfaceFilters, carrier::Access, clock, frame::BitRate, interface::Counters,
};
use canter_route::traffic::sender::{own_rate, parse_rate};
use canter_signals::Value;
use census::{Census, SETTLE_NS};
use clap::Args;
use crossterm::event::Event;
use names::{Names, Shown};
use screen::{Action, Screen};
use serde::Serialize;
use std::{
    io::{self, IsTerminal, Write},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use view::{Size, Sort, View, plain};

/// Longest wait for frames before a check of keys and signals.
const CHECK_PERIOD_NS: u64 = 30_000_000;

/// Show every bus and every identifier, live
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter top                          all interfaces, also those that appear later
  canter top can0 can1,100:700        two interfaces; of can1 only identifiers 100…1FF
  canter top can0 /dev/canchar2       an interface and a character device
  canter top --bitrate 500k           load of interfaces that have no bit rate
  canter top --once --json -          figures of one second, for a script
  canter top --interval 10s > top.txt    a table every 10 s
  canter top can0 --dbc car.dbc       the name of each message, and the values of its signals
  canter top --dbc car.dbc --filter EngineSpeed    one signal; or the name of a message
Keys: q quit, space pause, s sort, r reverse, / filter by bus, identifier or name, v values, b buses, z reset counts,
arrows scroll. Bytes and values that changed within the last second are highlighted. Load is in exact bits, with stuffing and interframe space.")]
pub struct Arguments {
    /// Interfaces with candump's filters, or `any` for all
    #[arg(value_name = "IFACE[,FILTERS]", default_value = "any", value_parser = InterfaceFilters::parse)]
    interfaces: Vec<InterfaceFilters>,
    /// Time between two updates of the rates
    #[arg(long, short, default_value = "1s", value_name = "TIME", value_parser = parse_interval)]
    interval: u64,
    /// Print one table after one interval, then end
    #[arg(long)]
    once: bool,
    /// Sort key of the rows
    #[arg(long, short, value_enum, default_value = "bus", value_name = "KEY")]
    sort: Sort,
    /// Show only rows whose bus, identifier or name contains this, and signals whose name contains it
    #[arg(long, short, default_value = "", hide_default_value = true, value_name = "TEXT")]
    filter: String,
    /// Bit rates of interfaces that have none: 500k,2M
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    bitrate: Option<BitRate>,
    /// Names of messages and values of signals: a DBC file for all buses, or for one; repeatable
    #[arg(long, value_name = "[IFACE=]FILE")]
    dbc: Vec<databases::Source>,
}

fn parse_interval(text: &str) -> Result<u64, String> {
    match duration::parse_ns(text)? {
        ns @ 100_000_000..=3_600_000_000_000 => Ok(ns),
        _ => Err("must be from 100ms to 60m".to_owned()),
    }
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    let stop = interrupt_flag()?;
    signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::clone(&stop))
        .map_err(|error| Failure::failed(format!("signals: {error}")))?;
    let view = View { sort: arguments.sort, filter: arguments.filter.clone(), ..View::default() };
    arguments.refuse_missing()?;
    let databases = Databases::open_with_remarks(&arguments.dbc, common.quiet)?;
    let names = Names::new(&databases);
    let source = Source::open(!arguments.only_devices())?;
    common.apply()?;
    let census = Census::new(clock::realtime_ns(), arguments.interval).with_names(&names);
    let next_ns = clock::monotonic_ns() + arguments.interval + SETTLE_NS;
    let mut top = Top { arguments: &arguments, source, census, next_ns };
    top.refresh_interfaces()?;
    if top.census.buses.is_empty() && (arguments.once || !io::stdout().is_terminal()) {
        if arguments.once {
            return Err(Failure::unable(format!("top: {}", view::NO_INTERFACE)));
        }
        eprintln!("canter: top: {}: waiting for one", view::NO_INTERFACE);
    }
    let on_screen = io::stdout().is_terminal() && io::stdin().is_terminal() && moves_its_cursor();
    if arguments.once || common.json.is_some() || common.quiet || !on_screen {
        top.tables(&view, common, &stop)
    } else {
        top.screen(view, &stop)
    }
}

/// Whether the terminal understands more than lines: not Emacs' shell or a log of a CI, which say `dumb` or nothing.
fn moves_its_cursor() -> bool {
    std::env::var("TERM").is_ok_and(|term| !term.is_empty() && term != "dumb")
}

/// The columns of a printed table: the terminal's, but no more than documents have.
fn table_columns() -> usize {
    let size = if io::stdout().is_terminal() { crossterm::terminal::size().ok() } else { None };
    size.map_or(COLUMNS_MAX, |(columns, _)| usize::from(columns)).clamp(1, COLUMNS_MAX)
}

impl Arguments {
    /// Refuses named interfaces that do not exist; one that is down is accepted.
    fn refuse_missing(&self) -> failure::Result<()> {
        for wanted in self.interfaces.iter().filter(|wanted| wanted.interface != "any") {
            let name = &wanted.interface;
            let is_file = Path::new(name).metadata().is_ok_and(|about| about.is_file() || about.is_dir());
            let found = Interface::find(name).map_err(|error| match is_file {
                true => {
                    let reason = "is a file, and top shows interfaces";
                    Failure::new(
                        Exit::Usage,
                        format!("{name}: {reason} (canter info {name}, canter dump {name})"),
                    )
                }
                false => error.into(),
            });
            let carrier = found?.carrier;
            if carrier.access == Access::Process {
                return Err(Failure::unable(format!("{name}: top: {} has no sockets", carrier.about)));
            }
        }
        Ok(())
    }

    /// The named character devices that exist; the list of network interfaces does not contain them.
    fn devices(&self) -> impl Iterator<Item = Interface> {
        let named = self.interfaces.iter().filter(|wanted| wanted.interface.starts_with("/dev/"));
        named.filter_map(|wanted| Interface::find(&wanted.interface).ok())
    }

    /// Whether only character devices are named.
    fn only_devices(&self) -> bool {
        self.interfaces.iter().all(|wanted| wanted.interface.starts_with("/dev/"))
    }

    /// The argument that selects an interface, by its name or by `any`.
    fn selection(&self, name: &str) -> Option<&InterfaceFilters> {
        let named = |name: &str| self.interfaces.iter().find(|wanted| wanted.interface == name);
        named(name).or_else(|| named("any"))
    }
}

struct Top<'a> {
    arguments: &'a Arguments,
    source: Source,
    census: Census<'a>,
    /// When the next interval ends, in CLOCK_MONOTONIC.
    next_ns: u64,
}

impl<'a> Top<'a> {
    /// Reads the interfaces and their counters from the kernel.
    fn refresh_interfaces(&mut self) -> failure::Result<()> {
        let interfaces = Interface::list()?;
        let wanted = interfaces.iter().filter(|one| self.arguments.selection(&one.name).is_some());
        let mut wanted: Vec<Interface> = wanted.cloned().collect();
        wanted.extend(self.arguments.devices());
        self.source.follow(&wanted)?;
        for interface in &wanted {
            // An interface that is deleted between the two requests is marked as gone the next time.
            let counters = interface.counters().unwrap_or(Counters::default());
            let filters = self.arguments.selection(&interface.name).map(|wanted| wanted.filters.clone());
            let filters = filters.filter(|filters| *filters != Filters::default());
            let rate = own_rate(interface).or(self.arguments.bitrate);
            self.census.update_bus(interface.clone(), filters, rate, counters);
        }
        self.census.mark_gone(|index| wanted.iter().any(|one| one.index == index));
        Ok(())
    }

    /// Counts received frames, for [`CHECK_PERIOD_NS`] at most; returns whether an interval has ended.
    fn receive(&mut self) -> failure::Result<bool> {
        let now_ns = clock::monotonic_ns();
        let left_ns = self.next_ns.saturating_sub(now_ns);
        let census = &mut self.census;
        self.source.next(left_ns.min(CHECK_PERIOD_NS), |received| census.count(&received))?;
        if clock::monotonic_ns() < self.next_ns {
            return Ok(false);
        }
        let lost = self.source.lost();
        self.census.end_interval(clock::realtime_ns(), lost);
        // Absolute, so that intervals do not drift; after a stall, from now.
        let now_ns = clock::monotonic_ns();
        let expected_ns = self.next_ns + self.arguments.interval;
        self.next_ns = if expected_ns > now_ns { expected_ns } else { now_ns + self.arguments.interval };
        self.refresh_interfaces()?;
        Ok(true)
    }

    /// Prints a table or a document every interval.
    fn tables(&mut self, view: &View, common: &Common, stop: &AtomicBool) -> failure::Result {
        let columns = table_columns();
        while !stop.load(Ordering::Acquire) {
            if !self.receive()? {
                continue;
            }
            if common.shows_table() {
                let text = plain(&view.lines(&self.census, Size::table(columns)));
                let mut out = io::stdout().lock();
                let between = if self.arguments.once { "" } else { "\n" };
                if let Err(error) = write!(out, "{text}{between}").and_then(|()| out.flush()) {
                    // The reader, such as `head`, has closed the pipe.
                    let closed = error.kind() == io::ErrorKind::BrokenPipe;
                    return if closed {
                        Ok(Exit::Done)
                    } else {
                        Err(Failure::failed(format!("top: write: {error}")))
                    };
                }
            }
            common.write_json(&Document::new(&self.census, view))?;
            if self.arguments.once {
                break;
            }
        }
        Ok(Exit::Done)
    }

    fn screen(&mut self, mut view: View, stop: &AtomicBool) -> failure::Result {
        let failed = |error: io::Error| Failure::failed(format!("top: terminal: {error}"));
        let screen = Screen::take().map_err(failed)?;
        let mut frozen: Option<Census<'a>> = None;
        let mut redraw = true;
        while !stop.load(Ordering::Acquire) {
            let shown = frozen.as_ref().unwrap_or(&self.census);
            if redraw {
                screen.draw(&view.lines(shown, screen.size())).map_err(failed)?;
            }
            let interval_ended = self.receive()?;
            redraw = interval_ended && frozen.is_none();
            while let Some(event) = screen.event().map_err(failed)? {
                match self.handle(&event, &mut view, &mut frozen, screen.size()) {
                    Action::Quit => return Ok(Exit::Done),
                    action => redraw |= action != Action::Nothing,
                }
            }
        }
        Ok(Exit::Done)
    }

    fn handle(
        &mut self,
        event: &Event,
        view: &mut View,
        frozen: &mut Option<Census<'a>>,
        size: Size,
    ) -> Action {
        let shown = frozen.as_ref().unwrap_or(&self.census);
        let rows = view.items(shown, size).len();
        let page = view.room(shown, size).max(1);
        let action = screen::press(view, event, rows, page);
        if action == Action::ResetCounts {
            self.census.reset(clock::realtime_ns());
        }
        if view.paused != frozen.is_some() {
            *frozen = view.paused.then(|| self.census.clone());
        }
        action
    }
}

/// The document of `--json`.
#[derive(Serialize)]
struct Document {
    /// Time since counting began, in ns.
    elapsed_ns: u64,
    /// Frames that this program did not receive.
    lost: u64,
    /// Frames of identifiers without a row.
    beyond: u64,
    buses: Vec<BusDocument>,
    identifiers: Vec<RowDocument>,
}

#[derive(Serialize)]
struct BusDocument {
    interface: String,
    state: String,
    bitrate: Option<u32>,
    load_percent: Option<f64>,
    frames_per_s: f64,
    frames: u64,
    errors: u64,
    lost: u64,
}

#[derive(Serialize)]
struct RowDocument {
    interface: String,
    /// The last frame, in candump's notation; or the message that frames carried together, in the same notation.
    frame: String,
    /// The name of the message, by the databases of `--dbc`; null: they do not know the identifier.
    name: Option<String>,
    /// The last value of each signal; null without a name.
    signals: Option<Vec<SignalDocument>>,
    /// Frames that were shorter than their message.
    short_frames: u64,
    /// Frames with a multiplexer value that selects no signal.
    unselected_frames: u64,
    count: u64,
    frames_per_s: f64,
    /// The median time between two frames.
    period_ns: Option<u64>,
    jitter_ns: Option<u64>,
    longest_ns: Option<u64>,
    missing: Option<u64>,
}

#[derive(Serialize)]
struct SignalDocument {
    name: String,
    /// A number; `"NaN"`, `"inf"` or `"-inf"`, which JSON lacks as numbers.
    value: serde_json::Value,
    unit: String,
    /// The text of the value in the value table.
    text: Option<String>,
    /// When the value was in a frame, in ns of CLOCK_REALTIME.
    stamp_ns: u64,
}

impl SignalDocument {
    fn new(shown: &Shown<'_>) -> Self {
        let value = match shown.signal.value(shown.bits) {
            Value::Integer(value) => value.into(),
            Value::Unsigned(value) => value.into(),
            Value::Float(value) if value.is_finite() => value.into(),
            Value::Float(value) => value.to_string().into(),
        };
        Self {
            name: shown.signal.name.clone(),
            value,
            unit: shown.signal.unit.clone(),
            text: shown.signal.choice(shown.bits).map(str::to_owned),
            stamp_ns: shown.stamp_ns,
        }
    }
}

impl Document {
    fn new(census: &Census<'_>, view: &View) -> Self {
        let bus = |bus: &census::Bus| BusDocument {
            interface: bus.interface.name.clone(),
            state: bus.state(),
            bitrate: bus.rate.map(|rate| rate.nominal),
            load_percent: bus.load_percent,
            frames_per_s: bus.frames_per_s,
            frames: bus.frames,
            errors: bus.errors(),
            lost: bus.lost(),
        };
        let row = |(key, row): &(&census::Key, &census::Row<'_>)| RowDocument {
            interface: census
                .buses
                .get(&key.interface)
                .map_or(String::new(), |bus| bus.interface.name.clone()),
            frame: view::notation(key, &row.last),
            name: row.signals.as_ref().map(|signals| signals.message.name.clone()),
            signals: row
                .signals
                .as_ref()
                .map(|_| view.signals(census, key, row).iter().map(SignalDocument::new).collect()),
            short_frames: row.signals.as_ref().map_or(0, |signals| signals.short),
            unselected_frames: row.signals.as_ref().map_or(0, |signals| signals.unselected),
            count: row.count,
            frames_per_s: row.frames_per_s,
            period_ns: row.period.map(|period| period.median_ns),
            jitter_ns: row.period.map(|period| period.jitter_ns),
            longest_ns: row.longest_ns(),
            missing: row.period.and_then(|period| period.missing),
        };
        Self {
            elapsed_ns: census.now_ns.saturating_sub(census.since_ns),
            lost: census.lost,
            beyond: census.beyond,
            buses: census.buses.values().map(bus).collect(),
            identifiers: view.rows(census).iter().map(row).collect(),
        }
    }
}
