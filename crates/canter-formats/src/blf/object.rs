//! BLF objects that hold frames. Their layouts are those of python-can and of Vector's own files.

use super::layout::{APP_TEXT, CAN_ERROR_EXT, CAN_FD_MESSAGE, CAN_MESSAGE};
use crate::{
    channels,
    fields::{error_frame, fd_length},
    format::Flawed,
    linktype::Order,
    trouble::{Trouble, wrong},
};
use canter_frame::{
    Direction, Frame,
    frame::{BRS, EFF_FLAG, EFF_MASK, ERR_FLAG, ESI, FDF, RTR_FLAG, SFF_MASK, len_of_dlc},
};

const CAN_ERROR: u32 = 2;
const CAN_MESSAGE2: u32 = 86;
const CAN_FD_MESSAGE_64: u32 = 101;
const CAN_FD_ERROR_64: u32 = 104;

/// Directions: a frame was received, sent, or given to the controller for sending; of a frame that was then sent there is
/// another object.
const RECEIVED: u8 = 0;
const SENT: u8 = 1;
const REQUESTED: u8 = 2;

const LE: Order = Order::Little;
/// Bytes of `CAN_MESSAGE2` after the data: the length of the frame in ns and in bits.
const MESSAGE2_TAIL_BYTES: usize = 8;

/// The content of an object.
pub enum Object {
    Frame {
        channel: u32,
        direction: Option<Direction>,
        frame: Frame,
        /// The kind of flaw, if the fields of the frame contradict each other.
        flaw: Option<&'static str>,
    },
    Name(u32, String),
    Other(&'static str),
}

/// Reads an object. `head_bytes` is the length of its header, which is not in `body`.
pub fn read(kind: u32, body: &[u8], head_bytes: usize) -> Result<Object, Trouble> {
    let bare_error =
        |channel| Some(Object::Frame { channel, direction: None, frame: error_frame(), flaw: None });
    let mut found = match kind {
        CAN_MESSAGE => classic(body, body.len()),
        CAN_MESSAGE2 => classic(body, body.len().saturating_sub(MESSAGE2_TAIL_BYTES)),
        CAN_FD_MESSAGE => fd_message(body),
        CAN_FD_MESSAGE_64 => fd_message_64(body, head_bytes),
        CAN_ERROR_EXT => error(body),
        CAN_ERROR => bare_error(LE.half(body, 0).into()),
        CAN_FD_ERROR_64 => bare_error(body.first().copied().unwrap_or_default().into()),
        APP_TEXT => Some(app_text(body).unwrap_or(Object::Other("other objects"))),
        _ => Some(Object::Other("other objects")),
    };
    if let Some(Object::Frame { flaw, .. }) = &mut found {
        *flaw = flaw.or((body.len() > body_bytes_max(kind)).then_some(Flawed::OBJECT));
    }
    found.map_or_else(|| wrong(format!("an object of type {kind} that is too short (a damaged file?)")), Ok)
}

/// The most bytes of an object behind its header; a longer one has swallowed others, or is of another type.
fn body_bytes_max(kind: u32) -> usize {
    match kind {
        CAN_MESSAGE => 16,
        CAN_MESSAGE2 => 16 + MESSAGE2_TAIL_BYTES,
        CAN_FD_MESSAGE => 88,
        CAN_ERROR_EXT => 32,
        _ => usize::MAX,
    }
}

/// The fields of a frame object.
struct Parts<'a> {
    channel: u32,
    /// [`RECEIVED`], [`SENT`], [`REQUESTED`].
    direction: u8,
    id: u32,
    remote: bool,
    /// [`FDF`], [`BRS`], [`ESI`].
    flags: u8,
    dlc: u8,
    /// How many bytes of data the object claims; in objects without this field that of the DLC.
    claimed: usize,
    /// The bytes of data that the object has.
    data: &'a [u8],
}

impl Parts<'_> {
    /// The frame, which is never shorter than any of the fields says: where they contradict each other, it is flawed.
    fn frame(&self) -> Object {
        if self.direction == REQUESTED {
            return Object::Other("requests to send (TxRq)");
        }
        let mut flaw = None;
        let mut frame = Frame::default();
        let wide = self.id & EFF_FLAG == 0 && self.id & EFF_MASK > SFF_MASK;
        let extended = self.id & EFF_FLAG != 0 || wide;
        frame.can_id = self.id & EFF_MASK | if extended { EFF_FLAG } else { 0 };
        // More than 8 bytes are an FD frame, marked as one or not.
        frame.flags = self.flags | if self.claimed > 8 && !self.remote { FDF } else { 0 };
        let remote = self.remote && !frame.is_fd();
        let dlc_len = if frame.is_fd() { len_of_dlc(self.dlc.min(15)) } else { self.dlc.min(8).into() };
        let claimed = if remote { dlc_len } else { self.claimed };
        let len = claimed.max(dlc_len).min(64);
        frame.len = if frame.is_fd() { fd_length(len) } else { len as u8 };
        if !frame.is_fd() && len == 8 && (9..=15).contains(&self.dlc) {
            frame.len8_dlc = self.dlc;
        }
        if remote {
            frame.can_id |= RTR_FLAG;
        } else {
            let count = self.data.len().min(claimed).min(len);
            frame.data[..count].copy_from_slice(&self.data[..count]);
            flaw = (count < claimed).then_some(Flawed::DATA);
        }
        if self.dlc > 15 || claimed != dlc_len {
            flaw = flaw.or(Some(Flawed::LENGTH));
        }
        flaw = flaw.or(wide.then_some(Flawed::IDENTIFIER));
        flaw = flaw.or((self.remote && !remote).then_some(Flawed::REMOTE_FD));
        let direction = Some(if self.direction == RECEIVED { Direction::Received } else { Direction::Sent });
        Object::Frame { channel: self.channel, direction, frame, flaw }
    }
}

/// The direction in the flags of the older objects (`CAN_MSG_DIR` of Vector's header).
fn direction_of(flags: u8) -> u8 {
    match flags & 0x0f {
        direction @ (RECEIVED | REQUESTED) => direction,
        other => other & SENT,
    }
}

fn fd_flags(edl: bool, brs: bool, esi: bool) -> u8 {
    if edl { FDF | if brs { BRS } else { 0 } | if esi { ESI } else { 0 } } else { 0 }
}

/// Reads `CAN_MESSAGE`, or `CAN_MESSAGE2`, which has the same fields and more after them; the data ends at `end`.
fn classic(body: &[u8], end: usize) -> Option<Object> {
    let head: &[u8; 8] = body.first_chunk()?;
    let (channel, flags, dlc) = (LE.half(head, 0).into(), head[2], head[3]);
    let data = body.get(8..end.min(16)).unwrap_or_default();
    let (direction, remote) = (direction_of(flags), flags & 0x80 != 0);
    let parts = Parts {
        channel,
        direction,
        id: LE.word(head, 4),
        remote,
        flags: 0,
        dlc,
        claimed: dlc.min(8).into(),
        data,
    };
    Some(parts.frame())
}

fn fd_message(body: &[u8]) -> Option<Object> {
    let head: &[u8; 20] = body.first_chunk()?;
    let (channel, flags, dlc) = (LE.half(head, 0).into(), head[2], head[3]);
    let (fd, claimed) = (head[13], usize::from(head[14]));
    let data = body.get(20..).unwrap_or_default();
    let (direction, remote) = (direction_of(flags), flags & 0x80 != 0);
    let flags = fd_flags(fd & 1 != 0, fd & 2 != 0, fd & 4 != 0);
    Some(Parts { channel, direction, id: LE.word(head, 4), remote, flags, dlc, claimed, data }.frame())
}

fn fd_message_64(body: &[u8], head_bytes: usize) -> Option<Object> {
    let head: &[u8; 40] = body.first_chunk()?;
    let (channel, dlc, claimed) = (head[0].into(), head[1], usize::from(head[2]));
    let (flags, direction, extra) = (LE.word(head, 12), head[34], usize::from(head[35]));
    // The offset of the extra part counts from the object's start.
    let end = if extra > 0 { extra.saturating_sub(head_bytes).min(body.len()) } else { body.len() };
    let data = body.get(40..end).unwrap_or_default();
    let remote = flags & 0x10 != 0;
    let flags = fd_flags(flags & 0x1000 != 0, flags & 0x2000 != 0, flags & 0x4000 != 0);
    Some(Parts { channel, direction, id: LE.word(head, 4), remote, flags, dlc, claimed, data }.frame())
}

/// Reads an error frame. canter and python-can can store the kernel's error class and data in it and leave the error codes
/// 0; then class and data are read.
fn error(body: &[u8]) -> Option<Object> {
    let head: &[u8; 32] = body.first_chunk()?;
    let channel = LE.half(head, 0).into();
    let plain = LE.word(head, 4) == 0 && head[8] == 0 && head[9] == 0;
    let (mut frame, mut flaw) = (error_frame(), None);
    if plain {
        frame.can_id = ERR_FLAG | LE.word(head, 16) & EFF_MASK;
        frame.len = head[10].min(8);
        frame.data[..8].copy_from_slice(&head[24..]);
        flaw = (head[10] > 8).then_some(Flawed::LENGTH);
    }
    Some(Object::Frame { channel, direction: None, frame, flaw })
}

fn app_text(body: &[u8]) -> Option<Object> {
    let length = LE.word(body, 8) as usize;
    let text = String::from_utf8_lossy(body.get(16..)?.get(..length)?).into_owned();
    let (channel, name) = channels::parse_note(text.trim_end_matches('\0'))?;
    Some(Object::Name(channel, name.to_owned()))
}
