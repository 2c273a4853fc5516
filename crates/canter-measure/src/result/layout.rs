//! The layout of result files and verdicts: readable, and comparable line by line.

use serde::Serialize;
use std::{io, io::Write};

/// JSON with one field and one object per line, and numbers and short strings of a list side by side.
#[derive(Default)]
pub struct Layout {
    open: Vec<Open>,
}

/// The container of the next value.
enum Open {
    Object,
    List { values: usize, of_objects: bool },
}

impl Layout {
    /// Values of a list per line.
    const VALUES_PER_LINE: usize = 8;

    /// A document of plain structures of numbers and strings, with a newline at its end.
    pub fn document(document: &impl Serialize) -> String {
        let mut json = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut json, Self::default());
        document
            .serialize(&mut serializer)
            .expect("plain structures of numbers and strings, written to memory");
        json.push(b'\n');
        String::from_utf8(json).expect("serde_json writes UTF-8")
    }

    fn line(&self, writer: &mut (impl Write + ?Sized)) -> io::Result<()> {
        write!(writer, "\n{:1$}", "", 2 * self.open.len())
    }
}

impl serde_json::ser::Formatter for Layout {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open.push(Open::List { values: 0, of_objects: false });
        writer.write_all(b"[")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        let Some(Open::List { values, of_objects }) = self.open.last_mut() else { return Ok(()) };
        *values += 1;
        if *values > 1 && *values % Self::VALUES_PER_LINE == 1 && !*of_objects {
            self.line(writer)?;
        }
        Ok(())
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if let Some(Open::List { of_objects: true, .. }) = self.open.pop() {
            self.line(writer)?;
        }
        writer.write_all(b"]")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if let Some(Open::List { of_objects, .. }) = self.open.last_mut() {
            *of_objects = true;
            self.line(writer)?;
        }
        self.open.push(Open::Object);
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open.pop();
        self.line(writer)?;
        writer.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        self.line(writer)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}
