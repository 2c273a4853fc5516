//! The message and the signals of a frame, behind its line.

use crate::databases::{Databases, Wording};
use canter_cli::terminal::plain;
use canter_frame::Frame;
use canter_signals::{Codebook, Message, Payload, Transport, message::Fit};
use std::collections::HashMap;

/// Decodes the frames of all buses.
pub struct Signals<'a> {
    databases: &'a Databases,
    buses: HashMap<String, Bus<'a>>,
    wordings: HashMap<*const Message, Wording>,
    frames: u64,
    known_frames: u64,
}

/// The messages of a bus, and those that several frames carry.
struct Bus<'a> {
    codebook: Codebook<'a>,
    transport: Transport,
}

impl<'a> Signals<'a> {
    pub fn new(databases: &'a Databases) -> Self {
        Self { databases, buses: HashMap::new(), wordings: HashMap::new(), frames: 0, known_frames: 0 }
    }

    /// The text behind a frame, as `cantools decode --single-line` has it: ` :: Engine(Mode: Hot, Heat: 30 C)`. A message
    /// of several frames stands behind the last one. Empty: no database knows the frame.
    pub fn text(&mut self, interface: &str, frame: &Frame) -> String {
        if frame.is_error() || frame.is_rtr() {
            return String::new();
        }
        if !self.buses.contains_key(interface) {
            let bus = Bus { codebook: self.databases.codebook(interface), transport: Transport::default() };
            self.buses.insert(interface.to_owned(), bus);
        }
        let Some(bus) = self.buses.get_mut(interface) else { return String::new() };
        self.frames += 1;
        let mut text = String::new();
        if let Some(message) = bus.codebook.message(frame.id()) {
            text += &worded(&mut self.wordings, message, Payload::of_frame(frame));
        }
        if bus.codebook.has_groups()
            && Transport::carries(frame)
            && let Some(whole) = bus.transport.take(frame)
            && let Some(message) = bus.codebook.message(whole.id)
        {
            text += &worded(&mut self.wordings, message, Payload::of_bytes(&whole.data));
        }
        self.known_frames += u64::from(!text.is_empty());
        text
    }

    /// Whether frames came, and the databases know none of them.
    pub fn are_unknown(&self) -> bool {
        self.frames > 0 && self.known_frames == 0
    }
}

/// A message with its signals, and what the payload lacks.
fn worded(
    wordings: &mut HashMap<*const Message, Wording>,
    message: &Message,
    payload: Payload<'_>,
) -> String {
    let wording = wordings.entry(message).or_insert_with(|| Wording::complete(message));
    let worded = wording.worded(message, payload, false);
    let mut text = format!(" :: {}({})", plain(&message.name), worded.list());
    let Fit { missing, unselected } = worded.fit;
    if missing > 0 {
        text += &format!(" [too short: {missing} signals missing]");
    }
    if unselected > 0 {
        text += " [multiplexer value without signals]";
    }
    text
}
