//! A data group with several channel groups, whose records follow each other as they were logged, each behind the
//! identifier of its group. Payloads of variable length are records of a group of their own.
//!
//! The records of frames and those of payloads are in the same order, so that a frame waits for the next payload, or a
//! payload for the next frame; nothing is copied to another file.

use super::{
    blocks::{Block, Blocks},
    data::Data,
    group::{Layout, Logged, copy, number},
};
use crate::{
    format::Context,
    trouble::{Trouble, wrong},
};
use std::collections::VecDeque;

/// The longest record accepted, in bytes.
const RECORD_BYTES_MAX: u64 = 64 << 10;
/// Frames that wait for their payloads at most: more are a damaged file.
const WAITING_MAX: usize = 1 << 16;

/// The records of one identifier.
struct Member {
    id: u64,
    /// The offset of the group's description, to which the channel of the payloads links.
    at: u64,
    kind: Kind,
    /// Records read, and how many the group states.
    read: u64,
    stated: u64,
}

enum Kind {
    Frames(Box<Frames>),
    /// Payloads of variable length: the offset of the next one, and those whose frame has not come yet.
    Payloads {
        passed: u64,
        waiting: VecDeque<(u64, Vec<u8>)>,
    },
    /// Records of this many bytes that are no CAN frames.
    Others(usize),
}

struct Frames {
    layout: Layout,
    /// The place of the member with the payloads.
    payloads: Option<usize>,
    /// Records whose payload has not come yet.
    waiting: VecDeque<Vec<u8>>,
}

/// The data group.
pub struct Unsorted {
    data: Data,
    id_bytes: usize,
    members: Vec<Member>,
    /// The member whose frame may be complete.
    ready: Option<usize>,
}

impl Unsorted {
    /// The channel groups from `first` on, with their records in `data`.
    pub fn open(id_bytes: usize, mut first: u64, data: u64, blocks: &mut Blocks) -> Result<Self, Trouble> {
        let mut members = Vec::new();
        while first != 0 {
            let block = blocks.block(first, b"CG")?;
            members.push(Member::open(first, &block, blocks)?);
            first = block.link(0);
        }
        for at in 0..members.len() {
            let Kind::Frames(frames) = &members[at].kind else { continue };
            let values = frames.layout.values();
            if values == 0 {
                continue;
            }
            let found = members
                .iter()
                .position(|member| member.at == values && matches!(member.kind, Kind::Payloads { .. }));
            let Some(found) = found else {
                return wrong("payloads outside of an unsorted group (asammdf's MDF(…).save(…) sorts it)");
            };
            if let Kind::Frames(frames) = &mut members[at].kind {
                frames.payloads = Some(found);
            }
        }
        Ok(Self { data: Data::new(data), id_bytes, members, ready: None })
    }

    /// Whether a group has CAN frames.
    pub fn has_frames(&self) -> bool {
        self.members.iter().any(|member| matches!(member.kind, Kind::Frames(_)))
    }

    /// Counts records that are no CAN frames.
    pub fn count_others(&self, context: &mut Context) {
        let others = self.members.iter().filter(|member| matches!(member.kind, Kind::Others(_)));
        (0..others.map(|member| member.read).sum())
            .for_each(|_| context.skipped.count("records that are no CAN frames"));
    }

    /// Reads the next frame.
    pub fn next(&mut self, kernel_classes: bool, blocks: &mut Blocks) -> Result<Option<Logged>, Trouble> {
        loop {
            if let Some(at) = self.ready.take()
                && let Some(logged) = self.complete(at, kernel_classes)?
            {
                self.ready = Some(at);
                return Ok(Some(logged));
            }
            if self.data.has_ended(blocks)? {
                return self.end(blocks);
            }
            let id = number(self.data.take(self.id_bytes, blocks)?);
            let Some(at) = self.members.iter().position(|member| member.id == id) else {
                // A card that lost its power may have zeros where the next records would be.
                if blocks.is_unfinished {
                    return Err(Trouble::Cut);
                }
                return wrong(format!("a record of the unknown group {id} (a damaged file?)"));
            };
            if let Some(logged) = self.read(at, kernel_classes, blocks)? {
                return Ok(Some(logged));
            }
        }
    }

    /// The end of the data: frames without payload, or fewer records than were stated, are missing.
    fn end(&self, blocks: &Blocks) -> Result<Option<Logged>, Trouble> {
        let is_short = |member: &Member| match &member.kind {
            Kind::Frames(frames) => {
                !frames.waiting.is_empty() || !blocks.is_unfinished && member.read < member.stated
            }
            _ => false,
        };
        if self.members.iter().any(is_short) { Err(Trouble::Cut) } else { Ok(None) }
    }

    /// Reads a record; the frame, if it is complete in itself.
    fn read(
        &mut self,
        at: usize,
        kernel_classes: bool,
        blocks: &mut Blocks,
    ) -> Result<Option<Logged>, Trouble> {
        let member = &mut self.members[at];
        member.read += 1;
        match &mut member.kind {
            Kind::Others(bytes) => self.data.take(*bytes, blocks).map(|_| None),
            Kind::Payloads { passed, waiting } => {
                let length = number(self.data.take(4, blocks)?);
                if length > RECORD_BYTES_MAX || waiting.len() == WAITING_MAX {
                    return wrong(format!("a payload of {length} bytes (a damaged file?)"));
                }
                waiting.push_back((*passed, self.data.take(length as usize, blocks)?.to_vec()));
                *passed += 4 + length;
                self.ready = self.frames_of(at);
                Ok(None)
            }
            Kind::Frames(frames) => {
                let record = self.data.take(frames.layout.record_bytes, blocks)?;
                if frames.payloads.is_none() {
                    return frames.layout.logged(record, kernel_classes, |_, _| Ok(0)).map(Some);
                }
                if frames.waiting.len() == WAITING_MAX {
                    return wrong("frames without payloads (a damaged file?)");
                }
                frames.waiting.push_back(record.to_vec());
                self.ready = Some(at);
                Ok(None)
            }
        }
    }

    /// The member whose frames have their payloads in this one.
    fn frames_of(&self, payloads: usize) -> Option<usize> {
        let has = |member: &Member| matches!(&member.kind, Kind::Frames(frames) if frames.payloads == Some(payloads));
        self.members.iter().position(has)
    }

    /// The oldest frame of a member, if its payload has come.
    fn complete(&mut self, at: usize, kernel_classes: bool) -> Result<Option<Logged>, Trouble> {
        let Kind::Frames(frames) = &self.members[at].kind else { return Ok(None) };
        let Some(place) = frames.payloads.filter(|_| !frames.waiting.is_empty()) else { return Ok(None) };
        let Kind::Payloads { waiting, .. } = &mut self.members[place].kind else { return Ok(None) };
        let Some((offset, payload)) = waiting.pop_front() else { return Ok(None) };
        let Kind::Frames(frames) = &mut self.members[at].kind else { return Ok(None) };
        let Some(record) = frames.waiting.pop_front() else { return Ok(None) };
        let logged = frames.layout.logged(&record, kernel_classes, |stated, bytes| {
            if stated != offset {
                return wrong("a frame whose payload is another one's (a damaged file?)");
            }
            copy(bytes, &payload);
            Ok(payload.len())
        });
        logged.map(Some)
    }
}

/// CG: the group has payloads of variable length.
const VARIABLE_LENGTH: u8 = 1;

impl Member {
    fn open(at: u64, block: &Block, blocks: &mut Blocks) -> Result<Self, Trouble> {
        let (id, stated) = (block.u64(0), block.u64(8));
        let bytes = u64::from(block.u32(24)) + u64::from(block.u32(28));
        let kind = if block.u8(16) & VARIABLE_LENGTH != 0 {
            Kind::Payloads { passed: 0, waiting: VecDeque::new() }
        } else if let Some(layout) = Layout::open(block, blocks)? {
            Kind::Frames(Box::new(Frames { layout, payloads: None, waiting: VecDeque::new() }))
        } else if bytes <= RECORD_BYTES_MAX {
            Kind::Others(bytes as usize)
        } else {
            return wrong(format!("records of {bytes} bytes (a damaged file?)"));
        };
        Ok(Self { id, at, kind, read: 0, stated })
    }
}
