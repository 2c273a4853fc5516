//! The formats that recordings have, log and pcapng, of frames that have a direction.

use super::{DIRECTION, NS_CUT, NotKept, Options, Sink, Target, Written, output::Output};
use crate::{Format, Kind};
use canter_frame::RawRecord;
use canter_frame::{BusId, Record};
use std::io;

/// The writer.
pub struct Recorded {
    output: Output,
    format: Box<dyn Format>,
    target: Target,
    ns: bool,
    direction: bool,
    not_kept: NotKept,
}

impl Recorded {
    pub fn new(mut output: Output, options: &Options) -> io::Result<Self> {
        let kind = if options.target == Target::Log { Kind::Log } else { Kind::Pcapng };
        let mut format = kind.writer(options.ns);
        format.begin(output.buffer());
        let Options { target, ns, .. } = *options;
        let direction = options.direction || target == Target::Pcapng;
        Ok(Self { output, format, target, ns, direction, not_kept: NotKept::default() })
    }
}

impl Sink for Recorded {
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
            self.not_kept.count(DIRECTION);
        }
        let record =
            RawRecord { direction, ..RawRecord::new(entry.stamp_ns, entry.bus, &bytes[..frame.mtu()]) };
        self.format.frame(self.output.buffer(), &record, false);
        if self.target == Target::Log && !self.ns && !entry.stamp_ns.is_multiple_of(1000) {
            self.not_kept.count(NS_CUT);
        }
        self.output.ready()
    }

    fn channel(&self, _bus: BusId) -> Option<u32> {
        None
    }

    fn finish(self: Box<Self>) -> io::Result<Written> {
        Ok(Written { bytes: self.output.finish()?, files: 1, not_kept: self.not_kept })
    }
}
