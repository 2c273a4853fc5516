//! Which message a frame is: by the databases of its bus, after J1939's transport has put long messages together.

use super::{
    coverage::Coverage,
    output::{Row, Table},
    wanted::Wanted,
};
use crate::databases::Databases;
use canter_cli::failure;
use canter_frame::{Frame, Record};
use canter_signals::{Codebook, Message, Payload, Transport};

/// The decoder of all buses.
pub struct Decoder<'a> {
    databases: &'a Databases,
    wanted: &'a Wanted,
    buses: Vec<Option<Bus<'a>>>,
}

/// A bus: its messages, its transfers, and what was counted.
struct Bus<'a> {
    codebook: Codebook<'a>,
    /// Whether a message has a wanted signal.
    is_wanted: Vec<bool>,
    transport: Transport,
    coverage: Coverage,
}

impl<'a> Decoder<'a> {
    pub fn new(databases: &'a Databases, wanted: &'a Wanted) -> Self {
        Self { databases, wanted, buses: Vec::new() }
    }

    #[cold]
    fn add(&mut self, bus: usize, name: &str) {
        let codebook = self.databases.codebook(name);
        let is_wanted = codebook
            .messages()
            .iter()
            .map(|message| self.wanted.is_all() || !self.wanted.places(message).is_empty());
        let is_wanted = is_wanted.collect();
        if self.buses.len() <= bus {
            self.buses.resize_with(bus + 1, || None);
        }
        self.buses[bus] =
            Some(Bus { codebook, is_wanted, transport: Transport::default(), coverage: Coverage::default() });
    }

    /// Takes the next frame, and gives its message to the table.
    #[inline]
    pub fn take(
        &mut self,
        bus: usize,
        name: &str,
        record: &Record,
        table: &mut dyn Table,
    ) -> failure::Result<()> {
        if !matches!(self.buses.get(bus), Some(Some(_))) {
            self.add(bus, name);
        }
        let Some(Some(known)) = self.buses.get_mut(bus) else { return Ok(()) };
        let frame = &record.frame;
        if frame.is_error() || frame.is_rtr() {
            known.coverage.others += 1;
            return Ok(());
        }
        known.coverage.count(frame);
        let origin = Origin { stamp_ns: record.stamp_ns, bus, name };
        if let Some(place) = known.codebook.place(frame.id())
            && known.is_wanted[place]
        {
            let (message, payload) = (known.codebook.messages()[place], Payload::of_frame(frame));
            table.row(&origin.row(place, message, payload, Some(frame)))?;
        }
        if known.codebook.has_groups() && Transport::carries(frame) {
            return known.transported(frame, &origin, table);
        }
        Ok(())
    }

    /// What the databases know of all buses.
    pub fn coverage(&self) -> Coverage {
        let mut sum = Coverage::default();
        for bus in self.buses.iter().flatten() {
            let mut coverage = bus.coverage.clone();
            coverage.settle(&bus.codebook);
            coverage.broken = bus.transport.broken;
            sum.add(&coverage);
        }
        sum
    }
}

/// Where and when a frame was.
struct Origin<'a> {
    stamp_ns: u64,
    bus: usize,
    name: &'a str,
}

impl<'a> Origin<'a> {
    #[inline]
    fn row(
        &self,
        place: usize,
        message: &'a Message,
        payload: Payload<'a>,
        frame: Option<&'a Frame>,
    ) -> Row<'a> {
        Row { stamp_ns: self.stamp_ns, bus: self.bus, name: self.name, place, message, payload, frame }
    }
}

impl Bus<'_> {
    /// Takes a frame of the transport protocol; a message that is complete goes to the table.
    fn transported(
        &mut self,
        frame: &Frame,
        origin: &Origin<'_>,
        table: &mut dyn Table,
    ) -> failure::Result<()> {
        let Some(whole) = self.transport.take(frame) else { return Ok(()) };
        let Some(place) = self.codebook.place(whole.id) else { return Ok(()) };
        self.coverage.transported += whole.frames;
        if !self.is_wanted[place] {
            return Ok(());
        }
        let (message, payload) = (self.codebook.messages()[place], Payload::of_bytes(&whole.data));
        table.row(&origin.row(place, message, payload, None))
    }
}
