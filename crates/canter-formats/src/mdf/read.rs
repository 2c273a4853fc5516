//! ASAM MDF4 bus logging: groups of CAN_DataFrame, CAN_RemoteFrame and CAN_ErrorFrame, as canter, asammdf and loggers
//! write them. Each group is read from its beginning to its end, all groups at the same time, and their frames are
//! merged by stamp. Unsorted data groups, in which records of several groups follow each other, are read as they were
//! logged; so are files whose logger was stopped before it had written counts and lengths (`UnFinMF`).

mod ahead;
mod blocks;
mod data;
mod group;
mod unsorted;

use crate::{
    channels::BusOfChannel,
    format::{Context, Decode, Flawed, Source},
    trouble::{Trouble, wrong},
};
use blocks::Blocks;
use canter_frame::{BusId, Record};
use group::{Group, Logged};
use std::{cmp::Reverse, collections::BinaryHeap};
use unsorted::Unsorted;

/// The offset of the header block.
const HEADER_AT: u64 = 64;
/// The name of the program in files that canter wrote.
const WRITTEN_HERE: &[u8] = b"canter  ";

/// The decoder.
#[derive(Default)]
pub struct Mdf {
    blocks: Option<Blocks>,
    groups: Option<Groups>,
}

/// Where frames come from.
enum Records {
    /// One group.
    Sorted(Box<Group>),
    /// Several, as they were logged.
    Unsorted(Unsorted),
}

impl Records {
    /// The name of the group, which canter's own files have.
    fn name(&self) -> &str {
        match self {
            Self::Sorted(group) => &group.layout.name,
            Self::Unsorted(_) => "",
        }
    }

    #[inline]
    fn next(&mut self, kernel_classes: bool, blocks: &mut Blocks) -> Result<Option<Logged>, Trouble> {
        match self {
            Self::Sorted(group) => group.next(kernel_classes, blocks),
            Self::Unsorted(unsorted) => unsorted.next(kernel_classes, blocks),
        }
    }

    /// Counts what is not read: records behind the stated number, or those that are no frames.
    fn count_unread(&mut self, blocks: &mut Blocks, context: &mut Context) -> Result<(), Trouble> {
        match self {
            Self::Sorted(group) => {
                let behind = group.count_records_behind(blocks)?;
                (0..behind).for_each(|_| context.flawed.count(Flawed::BEHIND));
            }
            Self::Unsorted(unsorted) => unsorted.count_others(context),
        }
        Ok(())
    }
}

/// The groups of the file, and the next frame of each.
struct Groups {
    start_ns: u64,
    /// canter wrote the file: groups have the names of interfaces, and error frames have the kernel's error classes.
    is_of_canter: bool,
    groups: Vec<Records>,
    /// The bus of each group, if canter wrote the file.
    buses: Vec<BusId>,
    channels: BusOfChannel,
    /// The next frame of each group.
    heads: Vec<Record>,
    /// The groups, by the stamp of their next frame.
    order: BinaryHeap<Reverse<(u64, usize)>>,
    /// Why a group has no more frames, although its data has not ended properly: the other groups are read first.
    ended: Option<Trouble>,
    /// What is wrong behind the frame that was taken last.
    failed: Option<Trouble>,
}

pub fn looks_like(head: &[u8]) -> bool {
    let name = head.first_chunk::<8>();
    name.is_some_and(|name| matches!(name, b"MDF     " | b"UnFinMF "))
}

/// Checks the file's first bytes, and returns whether canter wrote it.
fn identify(blocks: &mut Blocks) -> Result<bool, Trouble> {
    let mut head = [0; HEADER_AT as usize];
    blocks.read(0, &mut head)?;
    let version = u16::from_le_bytes([head[28], head[29]]);
    blocks.is_unfinished = head.starts_with(b"UnFinMF ");
    if !(400..500).contains(&version) {
        return wrong(format!(
            "is MDF {}.{:02}, not MDF 4 (asammdf converts it)",
            version / 100,
            version % 100
        ));
    }
    Ok(head[16..24] == *WRITTEN_HERE)
}

/// The stamp of a time in seconds since `start_ns`; `None`: it is before 1970, or too late for 64 bits.
#[inline]
fn stamp_ns(start_ns: u64, seconds: f64) -> Option<u64> {
    let ns = (seconds * 1e9).round();
    // Each of these numbers is below 2^63.
    if (0.0..9e18).contains(&ns) {
        return start_ns.checked_add(ns as u64);
    }
    let ns = ns.is_finite().then_some(ns as i128)?;
    u64::try_from(ns.saturating_add(start_ns.into())).ok()
}

impl Groups {
    /// Reads the groups of the file, and the first frame of each.
    fn open(blocks: &mut Blocks, context: &mut Context) -> Result<Self, Trouble> {
        let is_of_canter = identify(blocks)?;
        let header = blocks.block(HEADER_AT, b"HD")?;
        if is_of_canter && header.link(1) != 0 {
            // canter writes this block last: without it the end of the file is missing.
            blocks.shared_block(header.link(1), b"FH")?;
        }
        let groups = Self::list(header.link(0), blocks, context)?;
        let mut buses = Vec::new();
        for group in groups.iter().filter(|_| is_of_canter) {
            buses.push(context.names.number(group.name())?);
        }
        // hd_time_flags: bit 0, the start is the clock on the wall.
        let (stated_ns, is_local) = (header.u64(0), header.u8(12) & 1 != 0);
        let Some(start_ns) =
            (if is_local { context.zone.ns_of_wall_clock(stated_ns) } else { Some(stated_ns) })
        else {
            return wrong("begins outside of 1970…2554");
        };
        context.zone_used |= is_local;
        let mut opened = Self {
            start_ns,
            is_of_canter,
            heads: vec![Record::default(); groups.len()],
            groups,
            buses,
            channels: BusOfChannel::default(),
            order: BinaryHeap::new(),
            ended: None,
            failed: None,
        };
        (0..opened.groups.len()).try_for_each(|at| opened.read(at, blocks, context))?;
        Ok(opened)
    }

    /// Reads the data groups from `next` on, and returns those of CAN frames.
    fn list(mut next: u64, blocks: &mut Blocks, context: &mut Context) -> Result<Vec<Records>, Trouble> {
        let mut groups = Vec::new();
        while next != 0 {
            let data_group = blocks.block(next, b"DG")?;
            next = data_group.link(0);
            let (first, data) = (data_group.link(1), data_group.link(2));
            if first == 0 {
                continue;
            }
            let id_bytes = match data_group.u8(0) {
                size @ (0 | 1 | 2 | 4 | 8) => usize::from(size),
                size => return wrong(format!("record identifiers of {size} bytes (a damaged file?)")),
            };
            if let Some(records) = Self::records(first, id_bytes, data, blocks, context)? {
                groups.push(records);
            }
        }
        for _ in 0..blocks.without_link(HEADER_AT, b"DG") {
            context.skipped.count("data groups to which no link leads (a damaged file?)");
        }
        Ok(groups)
    }

    /// The records of a data group; `None` if they are no CAN frames.
    fn records(
        first: u64,
        id_bytes: usize,
        data: u64,
        blocks: &mut Blocks,
        context: &mut Context,
    ) -> Result<Option<Records>, Trouble> {
        let channel_group = blocks.shared_block(first, b"CG")?;
        if channel_group.link(0) != 0 && id_bytes > 0 {
            let unsorted = Unsorted::open(id_bytes, first, data, blocks)?;
            if !unsorted.has_frames() {
                context.skipped.count("groups that are no CAN frames");
                return Ok(None);
            }
            return Ok(Some(Records::Unsorted(unsorted)));
        }
        let channel_group = blocks.block(first, b"CG")?;
        let group = Group::open(&channel_group, id_bytes, data, blocks)?;
        if group.is_none() && channel_group.u64(8) > 0 {
            context.skipped.count("groups that are no CAN frames");
        }
        Ok(group.map(|group| Records::Sorted(Box::new(group))))
    }

    /// Reads a group's next frame.
    fn read(&mut self, at: usize, blocks: &mut Blocks, context: &mut Context) -> Result<(), Trouble> {
        let logged = match self.groups[at].next(self.is_of_canter, blocks) {
            Ok(Some(logged)) => logged,
            Ok(None) => {
                return self.groups[at].count_unread(blocks, context);
            }
            // The other groups may be complete.
            Err(trouble) if matches!(trouble, Trouble::Cut) || context.salvage => {
                self.ended.get_or_insert(trouble);
                return Ok(());
            }
            Err(other) => return Err(other),
        };
        let Some(stamp_ns) = stamp_ns(self.start_ns, logged.seconds) else {
            return wrong("a stamp outside of 1970…2554");
        };
        let bus = match self.is_of_canter {
            true => self.buses[at],
            false => self.channels.number(logged.channel, &mut context.names)?,
        };
        if let Some(flaw) = logged.flaw {
            context.flawed.count(flaw);
        }
        let (frame, direction) = (logged.frame, logged.direction);
        self.heads[at] = Record { stamp_ns, bus, frame, direction };
        self.order.push(Reverse((stamp_ns, at)));
        Ok(())
    }
}

impl Decode for Mdf {
    fn next(
        &mut self,
        source: &mut Source,
        context: &mut Context,
        entry: &mut Record,
    ) -> Result<bool, Trouble> {
        if self.blocks.is_none() {
            self.blocks = Some(Blocks::new(source.whole_file()?));
        }
        let Some(blocks) = &mut self.blocks else { return Ok(false) };
        if self.groups.is_none() {
            self.groups = Some(Groups::open(blocks, context)?);
        }
        let Some(groups) = &mut self.groups else { return Ok(false) };
        if let Some(trouble) = groups.failed.take() {
            return Err(trouble);
        }
        match groups.order.pop() {
            Some(Reverse((_, at))) => {
                *entry = groups.heads[at];
                groups.failed = groups.read(at, blocks, context).err();
                Ok(true)
            }
            None => groups.ended.take().map_or(Ok(false), Err),
        }
    }

    fn place(&self, _source: &Source) -> String {
        format!("byte {}", self.blocks.as_ref().map_or(0, |blocks| blocks.at))
    }
}

#[cfg(test)]
mod tests {
    use super::stamp_ns;

    #[test]
    fn a_stamp_is_within_64_bits_of_ns_since_1970() {
        for (start_ns, seconds, stamp) in [
            (5, 1.5, Some(1_500_000_005)),
            (5, -1e-9, Some(4)),
            (5, -6e-9, None),
            (0, 1e10, Some(10_000_000_000_000_000_000)),
            (0, 2e10, None),
            (10_000_000_000_000_000_000, 8.9e9, None),
            (0, f64::NAN, None),
            (0, f64::INFINITY, None),
        ] {
            assert_eq!(stamp_ns(start_ns, seconds), stamp, "{start_ns} {seconds}");
        }
    }
}
