//! An encoder that uses the appender of a format that can be recorded live.

use crate::format::{
    Append, Detail, Directions, Keeps, NotKept, Output, Sink, Stamps, WriteOptions, Written,
};
use canter_frame::{RawRecord, Record};
use std::io;

/// The encoder.
pub struct Appended {
    output: Output,
    format: Box<dyn Append>,
    /// Stamps are written in µs: their last three digits are lost.
    micros: bool,
    direction: bool,
    not_kept: NotKept,
}

impl Appended {
    pub fn new(
        mut output: Output,
        options: &WriteOptions,
        mut format: Box<dyn Append>,
        keeps: Keeps,
    ) -> Self {
        format.begin(output.buffer());
        let micros = keeps.stamps != Stamps::Ns && !options.ns;
        let direction = options.direction || keeps.direction == Directions::All;
        Self { output, format, micros, direction, not_kept: NotKept::default() }
    }
}

impl Sink for Appended {
    fn interface(&mut self, name: &str) -> io::Result<()> {
        self.format.interface(self.output.buffer(), name);
        Ok(())
    }

    #[inline]
    fn frame(&mut self, entry: &Record) -> io::Result<()> {
        let frame = &entry.frame;
        let bytes = frame.kernel_bytes();
        let direction = entry.direction.filter(|_| self.direction);
        if direction != entry.direction {
            self.not_kept.count(Detail::Direction);
        }
        let record =
            RawRecord { direction, ..RawRecord::new(entry.stamp_ns, entry.bus, &bytes[..frame.mtu()]) };
        self.format.frame(self.output.buffer(), &record, false);
        if self.micros && !entry.stamp_ns.is_multiple_of(1000) {
            self.not_kept.count(Detail::SubMicrosecond);
        }
        self.output.ready()
    }

    fn finish(self: Box<Self>) -> io::Result<Written> {
        Ok(Written { bytes: self.output.finish()?, files: 1, not_kept: self.not_kept })
    }
}
