//! CSV with a row for each value.

use super::{
    Arguments,
    output::{Row, Stream, Table, Tallies, count},
    wanted::Wanted,
};
use crate::databases::number;
use canter_cli::failure;
use canter_signals::Message;
use std::collections::HashMap;

const HEAD: &str = "stamp,bus,message,signal,value,unit,text";

pub struct Long<'a> {
    stream: Stream,
    wanted: &'a Wanted,
    /// The text between stamp, bus and value, and behind the value, of each signal that is wanted.
    messages: HashMap<*const Message, Vec<Option<(String, String)>>>,
    rows: Vec<u8>,
    tallies: Tallies,
}

/// A field, in quotes if it has a quote, a comma or a line break.
pub fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn fields(message: &Message, wanted: &Wanted) -> Vec<Option<(String, String)>> {
    let places = wanted.places(message);
    let field = |(at, signal): (usize, &canter_signals::Signal)| {
        let before = format!("{},{},", quoted(&message.name), quoted(&signal.name));
        places.contains(&at).then(|| (before, format!(",{},", quoted(&signal.unit))))
    };
    message.signals.iter().enumerate().map(field).collect()
}

impl<'a> Long<'a> {
    pub fn new(arguments: &Arguments, wanted: &'a Wanted) -> failure::Result<Self> {
        let mut stream = Stream::open(&arguments.output, arguments.overwrite)?;
        stream.write(|out| writeln!(out, "{HEAD}"))?;
        Ok(Self { stream, wanted, messages: HashMap::new(), rows: Vec::new(), tallies: Tallies::new() })
    }
}

impl Table for Long<'_> {
    fn row(&mut self, row: &Row<'_>) -> failure::Result<()> {
        let message = row.message;
        let fields = self.messages.entry(message).or_insert_with(|| fields(message, self.wanted));
        let (seconds, ns) = (row.stamp_ns / 1_000_000_000, row.stamp_ns % 1_000_000_000);
        let begin = format!("{seconds}.{ns:09},{},", quoted(row.name));
        let rows = &mut self.rows;
        rows.clear();
        let fit = message.visit(row.payload, |at, bits| {
            let Some(Some((before, behind))) = fields.get(at) else { return };
            let signal = &message.signals[at];
            rows.extend_from_slice(begin.as_bytes());
            rows.extend_from_slice(before.as_bytes());
            let _ = number::write_exact(rows, signal.value(bits)); // memory takes everything
            rows.extend_from_slice(behind.as_bytes());
            if let Some(text) = signal.choice(bits) {
                rows.extend_from_slice(quoted(text).as_bytes());
            }
            rows.push(b'\n');
        });
        count(&mut self.tallies, message, fit);
        self.stream.write(|out| out.write_all(rows))
    }

    fn flush(&mut self) -> failure::Result<()> {
        self.stream.flush()
    }

    fn finish(self: Box<Self>) -> failure::Result<Tallies> {
        self.stream.finish()?;
        Ok(self.tallies)
    }
}
