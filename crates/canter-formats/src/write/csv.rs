//! CSV: a line a frame, columns as in the Parquet data set, for spreadsheets and scripts.

use super::{NotKept, Sink, Written, output::Output};
use crate::hex;
use canter_frame::Direction;
use canter_frame::{BusId, Record};
use std::io;

pub const HEAD: &[u8] = b"stamp,interface,id,extended,rtr,fd,brs,esi,error,dlc,len,data,direction\n";

/// The writer.
pub struct Csv {
    output: Output,
    names: Vec<Vec<u8>>,
}

impl Csv {
    pub fn new(mut output: Output) -> io::Result<Self> {
        output.buffer().extend_from_slice(HEAD);
        Ok(Self { output, names: Vec::new() })
    }
}

/// A field, in quotes where it would be taken for more than one.
fn quoted(name: &str) -> Vec<u8> {
    if name.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", name.replace('"', "\"\"")).into_bytes()
    } else {
        name.as_bytes().to_vec()
    }
}

impl Sink for Csv {
    fn interface(&mut self, name: &str) -> io::Result<()> {
        self.names.push(quoted(name));
        Ok(())
    }

    #[inline]
    fn frame(&mut self, entry: &Record) -> io::Result<()> {
        let fields = super::super::fields::Fields::of(&entry.frame);
        let out = self.output.buffer();
        hex::decimal(out, entry.stamp_ns / 1_000_000_000, 1);
        out.push(b'.');
        hex::decimal(out, entry.stamp_ns % 1_000_000_000, 9);
        out.push(b',');
        out.extend_from_slice(self.names.get(entry.bus.index()).map_or(b"?", Vec::as_slice));
        out.push(b',');
        hex::number(out, fields.id, if fields.extended || fields.error { 8 } else { 3 });
        for flag in [fields.extended, fields.rtr, fields.fd, fields.brs, fields.esi, fields.error] {
            out.extend_from_slice(if flag { b",1" } else { b",0" });
        }
        out.push(b',');
        hex::decimal(out, fields.dlc.into(), 1);
        out.push(b',');
        hex::decimal(out, fields.len.into(), 1);
        out.push(b',');
        entry.frame.data().iter().for_each(|&byte| hex::byte(out, byte));
        out.extend_from_slice(match entry.direction {
            None => b",\n",
            Some(Direction::Received) => b",R\n",
            Some(Direction::Sent) => b",T\n",
        });
        self.output.ready()
    }

    fn channel(&self, _bus: BusId) -> Option<u32> {
        None
    }

    fn finish(self: Box<Self>) -> io::Result<Written> {
        Ok(Written { bytes: self.output.finish()?, files: 1, not_kept: NotKept::default() })
    }
}
