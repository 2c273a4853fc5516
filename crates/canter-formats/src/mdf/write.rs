//! ASAM MDF4 bus logging: a channel group for each bus and kind of frame, sorted, in data blocks that are transposed and
//! deflated.
//!
//! Written here and not by a crate: mdf4-rs 0.3 stores a frame as an array of bytes without the members that the bus
//! logging standard names, and mf4-rs 3.8 has no bus logging; neither compresses its output.
//!
//! Data is written first. The blocks that describe it follow at the end, because only then the counts are known; the
//! header, which has a fixed place, is rewritten to link to them.

mod blocks;
mod group;
pub mod measurement;
mod records;

use crate::{
    channels::ChannelOfBus,
    fields::Fields,
    format::{Detail, NotKept, Output, Sink, Written},
};
use blocks::{Block, align, data_group, text};
use canter_frame::{BusId, Direction, Record};
use group::{Group, Kind};
use std::io;

const IDENTIFICATION_BYTES: u64 = 64;

/// The encoder.
pub struct Mdf {
    output: Output,
    channels: ChannelOfBus,
    names: Vec<String>,
    /// Four groups for each interface, in the order of `Kind`.
    groups: Vec<Group>,
    start_ns: Option<u64>,
    not_kept: NotKept,
}

fn identification() -> Vec<u8> {
    let mut block = Vec::with_capacity(IDENTIFICATION_BYTES as usize);
    block.extend_from_slice(b"MDF     4.11    canter  ");
    block.extend_from_slice(&[0; 4]);
    block.extend_from_slice(&411u16.to_le_bytes());
    block.resize(IDENTIFICATION_BYTES as usize, 0);
    block
}

/// Returns the header block: links to the first data group and the file history, and the start of the recording.
fn head(data_group: u64, history: u64, start_ns: u64) -> Vec<u8> {
    let block = Block::new(b"HD", &[data_group, history, 0, 0, 0, 0]);
    // The time is in UTC: no offset, no local time.
    block.u64(start_ns).bytes(&[0; 4]).bytes(&[0; 4]).bytes(&[0; 16]).done()
}

impl Mdf {
    pub fn new(mut output: Output) -> io::Result<Self> {
        output.buffer().extend_from_slice(&identification());
        output.buffer().extend_from_slice(&head(0, 0, 0));
        let (channels, not_kept) = (ChannelOfBus::default(), NotKept::default());
        Ok(Self { output, channels, names: Vec::new(), groups: Vec::new(), start_ns: None, not_kept })
    }
}

/// Writes the file's history, which the standard requires; returns its offset.
fn history(output: &mut Output, command: &str, start_ns: u64) -> u64 {
    let version = env!("CARGO_PKG_VERSION");
    let comment = format!(
        "<FHcomment><TX>{command}</TX><tool_id>canter</tool_id><tool_vendor>canter</tool_vendor>\
         <tool_version>{version}</tool_version></FHcomment>"
    );
    let comment = text(output, b"MD", &comment);
    let place = align(output);
    let block = Block::new(b"FH", &[0, comment]).u64(start_ns).bytes(&[0; 8]).done();
    output.buffer().extend_from_slice(&block);
    place
}

impl Sink for Mdf {
    fn interface(&mut self, name: &str) -> io::Result<()> {
        if self.channels.add(name) > u8::MAX.into() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{name}: a file of this format has at most {} buses (choose some of them)", u8::MAX),
            ));
        }
        self.names.push(name.to_owned());
        self.groups.extend(Kind::ALL.map(Group::new));
        Ok(())
    }

    #[inline]
    fn frame(&mut self, entry: &Record) -> io::Result<()> {
        let start_ns = *self.start_ns.get_or_insert(entry.stamp_ns);
        let fields = Fields::from_frame(&entry.frame);
        let kind = Kind::from_fields(&fields);
        if entry.direction.is_none() && !fields.error {
            self.not_kept.count(Detail::DirectionUnknown);
        }
        let Some(group) = self.groups.get_mut(entry.bus.index() * Kind::ALL.len() + kind as usize) else {
            return Ok(());
        };
        // Stamps before the first frame are kept, as negative times.
        let since = entry.stamp_ns.wrapping_sub(start_ns).cast_signed();
        let seconds = since as f64 / 1e9;
        let sent = entry.direction == Some(Direction::Sent);
        let channel = u8::try_from(self.channels.known(entry.bus)).unwrap_or(0); // more are refused
        group.push(seconds, channel, &fields, sent, &entry.frame);
        if group.is_full() {
            group.write(&mut self.output)?;
        }
        Ok(())
    }

    fn channel(&self, bus: BusId) -> Option<u32> {
        self.channels.channel(bus)
    }

    fn finish(mut self: Box<Self>) -> io::Result<Written> {
        let mut next = 0;
        let kinds = Kind::ALL.len();
        for (place, mut group) in std::mem::take(&mut self.groups).into_iter().enumerate().rev() {
            if group.count() == 0 {
                continue;
            }
            let name = &self.names[place / kinds];
            let data = group.finish(&mut self.output)?;
            let channel_group = group.describe(&mut self.output, name);
            next = data_group(&mut self.output, next, channel_group, data);
        }
        let start_ns = self.start_ns.unwrap_or(0);
        let history = history(&mut self.output, "canter convert", start_ns);
        align(&mut self.output);
        self.output.patch(IDENTIFICATION_BYTES, &head(next, history, start_ns))?;
        Ok(Written { bytes: self.output.finish()?, files: 1, not_kept: self.not_kept })
    }
}
