//! Decoded messages for people: a line with the frame, then a line for each signal, aligned. Or one line for each frame, in
//! cantools' notation.

use super::{
    Arguments, number,
    output::{Row, Stream, Table, Tallies, count},
    wanted::Wanted,
};
use canter_cli::{
    failure,
    terminal::{BOLD, FAINT, Ink, plain},
};
use canter_signals::Message;
use std::collections::HashMap;

pub struct Text<'a> {
    stream: Stream,
    wanted: &'a Wanted,
    one_line: bool,
    numbers: bool,
    ink: Ink,
    messages: HashMap<*const Message, Layout>,
    tallies: Tallies,
}

/// How a message is printed.
struct Layout {
    places: Vec<Option<Place>>,
    /// The width of the longest name of a signal.
    width: usize,
}

struct Place {
    decimals: Option<usize>,
    name: String,
    unit: String,
}

impl Layout {
    fn new(message: &Message, wanted: &Wanted) -> Self {
        let places = wanted.places(message);
        let place = |at: usize| {
            let signal = &message.signals[at];
            let unit =
                if signal.unit.is_empty() { String::new() } else { format!(" {}", plain(&signal.unit)) };
            Place { decimals: number::decimals(signal), name: plain(&signal.name), unit }
        };
        let width = places.iter().map(|&at| message.signals[at].name.chars().count()).max().unwrap_or(0);
        let places = (0..message.signals.len()).map(|at| places.contains(&at).then(|| place(at))).collect();
        Self { places, width }
    }
}

impl<'a> Text<'a> {
    pub fn new(arguments: &Arguments, wanted: &'a Wanted) -> failure::Result<Self> {
        let is_stdout = arguments.output.as_os_str() == "-";
        Ok(Self {
            stream: Stream::open(&arguments.output, arguments.overwrite)?,
            wanted,
            one_line: arguments.one_line,
            numbers: arguments.numbers,
            ink: if is_stdout { Ink::for_stdout() } else { Ink::none() },
            messages: HashMap::new(),
            tallies: Tallies::new(),
        })
    }
}

impl Table for Text<'_> {
    fn row(&mut self, row: &Row<'_>) -> failure::Result<()> {
        let Row { stamp_ns, message, name, .. } = *row;
        let layout = self.messages.entry(message).or_insert_with(|| Layout::new(message, self.wanted));
        let (ink, numbers, one_line) = (self.ink, self.numbers, self.one_line);
        let mut signals: Vec<(&Place, String)> = Vec::with_capacity(layout.places.len());
        let fit = message.visit(row.payload, |at, bits| {
            let Some(Some(place)) = layout.places.get(at) else { return };
            let signal = &message.signals[at];
            let text = match signal.choice(bits).filter(|_| !numbers) {
                Some(choice) => plain(choice).replace('\n', " "),
                None => number::readable(signal.value(bits), place.decimals) + &place.unit,
            };
            signals.push((place, text));
        });
        count(&mut self.tallies, message, fit);
        let width = layout.width;
        self.stream.write(|out| {
            write!(out, "{}.{:06} {name}  ", stamp_ns / 1_000_000_000, stamp_ns % 1_000_000_000 / 1000)?;
            match row.frame {
                Some(frame) => write!(out, "{frame}  ")?,
                None => write!(out, "{} bytes transported  ", row.payload.len())?,
            }
            write!(out, "{}", ink.paint(BOLD, &plain(&message.name)))?;
            if one_line {
                let list = signals.iter().map(|(place, text)| format!("{}: {text}", place.name));
                return writeln!(out, "({})", list.collect::<Vec<_>>().join(", "));
            }
            writeln!(out)?;
            for (place, text) in &signals {
                let blank = width - place.name.chars().count().min(width);
                writeln!(out, "    {}{:blank$}  {text}", ink.paint(FAINT, &place.name), "")?;
            }
            Ok(())
        })
    }

    fn flush(&mut self) -> failure::Result<()> {
        self.stream.flush()
    }

    fn finish(self: Box<Self>) -> failure::Result<Tallies> {
        self.stream.finish()?;
        Ok(self.tallies)
    }
}
