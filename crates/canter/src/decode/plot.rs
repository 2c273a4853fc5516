//! `canter plot`: signals over time, as lines of blocks in the terminal and as a page of its own.

mod page;
mod trace;

use super::{
    decode,
    decoder::Decoder,
    frames::Frames,
    output::{Row, Stream, Table, Tallies, count},
    report,
    wanted::Wanted,
};
use crate::databases::{Databases, Source, number::Digits};
use crate::recordings::Selection;
use canter_cli::{
    failure::{self, Exit, Failure},
    interrupt::interrupt_flag,
    options::Common,
    terminal::{BOLD, Ink, plain},
};
use canter_signals::Message;
use clap::Args;
use std::{cell::RefCell, collections::HashMap, path::PathBuf, rc::Rc};
use trace::Trace;

/// Characters of a line of blocks.
const BLOCKS: usize = 40;
/// Signals that are drawn at most.
const TRACES_MAX: usize = 64;

/// Plot signals over time, in the terminal and as a page
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter plot drive.mf4 --dbc car.dbc EngineSpeed                     lines of blocks in the terminal
  canter plot drive.mf4 --dbc car.dbc EngineSpeed VehicleSpeed -o plot.html    and a page
The page is one file without scripts and without anything to load. Its memory does not grow with the recording: of values that
are closer than a pixel it keeps the lowest and the highest.")]
pub struct Arguments {
    /// The recording; `-` is the standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Signals: Signal, Message.Signal, or Message.* for all of a message
    #[arg(value_name = "SIGNAL", required = true)]
    signals: Vec<String>,
    /// A database: a DBC file for all buses, or for one; repeatable
    #[arg(long, value_name = "[IFACE=]FILE", required = true)]
    dbc: Vec<Source>,
    /// The page
    #[arg(long, short, value_name = "PAGE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    selection: Selection,
}

pub fn run(mut arguments: Arguments, common: &Common) -> failure::Result {
    let databases = Databases::open_with_remarks(&arguments.dbc, common.quiet)?;
    arguments.selection.resolve(&databases)?;
    let wanted = Wanted::new(&arguments.signals, &databases)?;
    let inputs = std::slice::from_ref(&arguments.input);
    let mut frames = Frames::open("plot", inputs, &arguments.selection, common)?;
    let page = arguments.output.as_ref().map(|path| Stream::open(path, arguments.overwrite)).transpose()?;
    let stop = interrupt_flag()?;
    let traces: Rc<RefCell<Traces>> = Rc::default();
    let mut table: Box<dyn Table> =
        Box::new(Plot { wanted: &wanted, traces: Rc::clone(&traces), tallies: Tallies::new() });
    let mut decoder = Decoder::new(&databases, &wanted);
    let interrupted = decode(&mut frames, &mut decoder, &mut *table, &stop)?;
    if interrupted && !frames.is_live() {
        return Err(Failure::new(Exit::Interrupted, format!("{}: interrupted", arguments.input.display())));
    }
    let tallies = table.finish()?;
    let traces = std::mem::take(&mut traces.borrow_mut().list);
    if common.shows_table() {
        print!("{}", lines(&traces, Ink::for_stdout()));
    }
    if let Some(mut page) = page.filter(|_| !traces.is_empty()) {
        let title = format!("{}: signals", arguments.input.display());
        let text = page::page(&title, &traces);
        page.write(|out| out.write_all(text.as_bytes()))?;
        page.finish()?;
    }
    report::close(decoder.coverage(), &tallies, frames.finish()?, common)
}

/// The traces of all signals, in the order in which they were found.
#[derive(Default)]
struct Traces {
    list: Vec<Trace>,
    /// The trace of each signal of a message on a bus.
    places: HashMap<(usize, *const Message), Vec<Option<usize>>>,
    start_ns: Option<u64>,
}

/// The table that traces are made of.
struct Plot<'a> {
    wanted: &'a Wanted,
    traces: Rc<RefCell<Traces>>,
    tallies: Tallies,
}

impl Traces {
    fn add(&mut self, row: &Row<'_>, wanted: &Wanted) -> failure::Result<()> {
        let places = wanted.places(row.message);
        if self.list.len() + places.len() > TRACES_MAX {
            return Err(Failure::new(
                Exit::Usage,
                format!("plot: more than {TRACES_MAX} signals (name fewer)"),
            ));
        }
        let mut traces = vec![None; row.message.signals.len()];
        for at in places {
            let signal = &row.message.signals[at];
            traces[at] = Some(self.list.len());
            let name = format!("{}.{}", row.message.name, signal.name);
            self.list.push(Trace::new(name, row.name.to_owned(), signal.unit.clone(), Digits::new(signal)));
        }
        self.places.insert((row.bus, std::ptr::from_ref(row.message)), traces);
        Ok(())
    }
}

impl Table for Plot<'_> {
    fn row(&mut self, row: &Row<'_>) -> failure::Result<()> {
        let traces = &mut *self.traces.borrow_mut();
        let key = (row.bus, std::ptr::from_ref(row.message));
        if !traces.places.contains_key(&key) {
            traces.add(row, self.wanted)?;
        }
        let start_ns = *traces.start_ns.get_or_insert(row.stamp_ns);
        let Some(places) = traces.places.get(&key) else { return Ok(()) };
        let list = &mut traces.list;
        let fit = row.message.visit(row.payload, |at, bits| {
            if let Some(Some(place)) = places.get(at) {
                list[*place].push(row.stamp_ns.saturating_sub(start_ns), row.message.signals[at].float(bits));
            }
        });
        count(&mut self.tallies, row.message, fit);
        Ok(())
    }

    fn finish(self: Box<Self>) -> failure::Result<Tallies> {
        Ok(self.tallies)
    }
}

/// A line of blocks for each trace.
fn lines(traces: &[Trace], ink: Ink) -> String {
    let mut text = String::new();
    let end_ns = traces.iter().map(Trace::end_ns).max().unwrap_or(0);
    for trace in traces {
        let (low, high) = (trace.text(trace.low()), trace.text(trace.high()));
        let blocks = trace.blocks(BLOCKS, end_ns);
        let unit = if trace.unit.is_empty() { String::new() } else { format!(" {}", plain(&trace.unit)) };
        text += &format!(
            "{} on {}: {} value{}{}, {low} to {high}{unit}\n  {blocks}\n",
            ink.paint(BOLD, &plain(&trace.name)),
            plain(&trace.bus),
            trace.count,
            if trace.count == 1 { "" } else { "s" },
            trace.not_drawn(),
        );
    }
    text
}
