//! CSV with a column for each signal: time × signals. Each row has the last value of every signal, either at each frame
//! that changes one, or at each multiple of a period.

use super::{
    Arguments,
    long::quoted,
    output::{Row, Stream, Table, Tallies, count},
    wanted::Wanted,
};
use crate::databases::{Databases, number};
use canter_cli::{
    failure::{self, Exit, Failure},
    units,
};
use canter_signals::{Message, Value};
use std::{collections::HashMap, io::Write};

/// Rows without a frame that are written at most, one after the other: more are a jump of the stamps.
const HELD_ROWS_MAX: u64 = 1_000_000;

pub struct Wide {
    stream: Stream,
    /// The column of each wanted signal.
    columns: HashMap<*const Message, Vec<(usize, usize)>>,
    /// The bus that a message's values come from.
    bus_of_message: HashMap<*const Message, (usize, String)>,
    values: Vec<Option<Value>>,
    every_ns: Option<u64>,
    /// When the next row is due.
    due_ns: Option<u64>,
    tallies: Tallies,
    line: Vec<u8>,
}

/// The names of the columns: a signal's own where no other has it.
fn names(columns: &[(&Message, usize)]) -> Vec<String> {
    let signal = |&(message, at): &(&Message, usize)| message.signals[at].name.clone();
    let all: Vec<String> = columns.iter().map(signal).collect();
    let name = |(column, name): (&(&Message, usize), &String)| {
        let is_single = all.iter().filter(|other| *other == name).count() == 1;
        if is_single { name.clone() } else { format!("{}.{name}", column.0.name) }
    };
    columns.iter().zip(&all).map(name).collect()
}

impl Wide {
    pub fn new(arguments: &Arguments, databases: &Databases, wanted: &Wanted) -> failure::Result<Self> {
        let mut stream = Stream::open(&arguments.output, arguments.overwrite)?;
        let signals = wanted.columns(databases);
        let head: Vec<String> = names(&signals).iter().map(|name| quoted(name)).collect();
        stream.write(|out| writeln!(out, "stamp,{}", head.join(",")))?;
        let mut columns: HashMap<*const Message, Vec<(usize, usize)>> = HashMap::new();
        for (column, &(message, at)) in signals.iter().enumerate() {
            columns.entry(message).or_default().push((at, column));
        }
        Ok(Self {
            stream,
            columns,
            bus_of_message: HashMap::new(),
            values: vec![None; signals.len()],
            every_ns: arguments.every,
            due_ns: None,
            tallies: Tallies::new(),
            line: Vec::new(),
        })
    }

    fn write(&mut self, stamp_ns: u64) -> failure::Result<()> {
        let line = &mut self.line;
        line.clear();
        let mut put = || -> std::io::Result<()> {
            write!(line, "{}.{:09}", stamp_ns / 1_000_000_000, stamp_ns % 1_000_000_000)?;
            for value in &self.values {
                line.push(b',');
                if let Some(value) = value {
                    number::write_exact(line, *value)?;
                }
            }
            line.push(b'\n');
            Ok(())
        };
        let _ = put(); // memory takes everything
        self.stream.write(|out| out.write_all(line))
    }

    /// Writes the rows that are due before a stamp.
    fn hold(&mut self, stamp_ns: u64, every_ns: u64) -> failure::Result<()> {
        let due_ns = *self.due_ns.get_or_insert(stamp_ns.div_ceil(every_ns).saturating_mul(every_ns));
        let rows = stamp_ns.saturating_sub(due_ns).div_ceil(every_ns);
        if rows > HELD_ROWS_MAX {
            let gap = units::span(stamp_ns - due_ns);
            return Err(Failure::failed(format!(
                "--every: the stamps jump by {gap}, which would be {rows} rows"
            )));
        }
        for row in 0..rows {
            self.write(due_ns + row * every_ns)?;
        }
        self.due_ns = Some(due_ns + rows * every_ns);
        Ok(())
    }

    /// Refuses a second bus with the same message: its values would mix.
    fn refuse_second_bus(&mut self, row: &Row<'_>) -> failure::Result<()> {
        let (bus, name) =
            self.bus_of_message.entry(row.message).or_insert_with(|| (row.bus, row.name.to_owned()));
        if *bus == row.bus {
            return Ok(());
        }
        let message = &row.message.name;
        Err(Failure::new(
            Exit::Usage,
            format!("--wide: {message} is on {name} and on {} (--dbc {name}=FILE decodes one bus)", row.name),
        ))
    }
}

impl Table for Wide {
    fn row(&mut self, row: &Row<'_>) -> failure::Result<()> {
        self.refuse_second_bus(row)?;
        if let Some(every_ns) = self.every_ns.filter(|&every_ns| every_ns > 0) {
            self.hold(row.stamp_ns, every_ns)?;
        }
        let key: *const Message = row.message;
        let Some(columns) = self.columns.get(&key) else { return Ok(()) };
        let (values, message) = (&mut self.values, row.message);
        let mut has_value = false;
        let fit = message.visit(row.payload, |at, bits| {
            for &(_, column) in columns.iter().filter(|&&(place, _)| place == at) {
                values[column] = Some(message.signals[at].value(bits));
                has_value = true;
            }
        });
        count(&mut self.tallies, message, fit);
        if self.every_ns.is_none() && has_value { self.write(row.stamp_ns) } else { Ok(()) }
    }

    fn flush(&mut self) -> failure::Result<()> {
        self.stream.flush()
    }

    fn finish(mut self: Box<Self>) -> failure::Result<Tallies> {
        if let Some(due_ns) = self.due_ns {
            self.write(due_ns)?;
        }
        self.stream.finish()?;
        Ok(self.tallies)
    }
}
