//! Decoded messages for people: a line with the frame, then a line for each signal, aligned. Or one line for each frame, in
//! cantools' notation.

use super::{
    Arguments,
    output::{Row, Stream, Table, Tallies, count},
    wanted::Wanted,
};
use crate::databases::Wording;
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
    messages: HashMap<*const Message, Wording>,
    tallies: Tallies,
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
        let wording = self
            .messages
            .entry(message)
            .or_insert_with(|| Wording::new(message, &self.wanted.places(message)));
        let (ink, one_line, width) = (self.ink, self.one_line, wording.width);
        let worded = wording.worded(message, row.payload, self.numbers);
        count(&mut self.tallies, message, worded.fit);
        self.stream.write(|out| {
            write!(out, "{}.{:06} {name}  ", stamp_ns / 1_000_000_000, stamp_ns % 1_000_000_000 / 1000)?;
            match row.frame {
                Some(frame) => write!(out, "{frame}  ")?,
                None => write!(out, "{} bytes transported  ", row.payload.len())?,
            }
            write!(out, "{}", ink.paint(BOLD, &plain(&message.name)))?;
            if one_line {
                return writeln!(out, "({})", worded.list());
            }
            writeln!(out)?;
            for (name, text) in &worded.signals {
                let blank = width - name.chars().count().min(width);
                writeln!(out, "    {}{:blank$}  {text}", ink.paint(FAINT, name), "")?;
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
