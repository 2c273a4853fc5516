//! How much of the traffic the databases know.

use canter_frame::{Frame, Identifier};
use canter_signals::{Codebook, Transport};
use serde::Serialize;
use std::collections::HashMap;

/// Counts of identifiers and frames. Remote and error frames have no signals.
#[derive(Clone, Debug, Serialize)]
pub struct Coverage {
    /// Identifiers of the traffic, of each bus.
    pub identifiers: u64,
    /// Identifiers that a database knows.
    pub known_identifiers: u64,
    pub frames: u64,
    pub known_frames: u64,
    /// Frames that are parts of a transported message that a database knows.
    pub transported: u64,
    /// Transported messages that are not complete.
    pub broken: u64,
    /// Remote and error frames.
    pub others: u64,
    #[serde(skip)]
    standard: Box<[u64]>,
    #[serde(skip)]
    extended: HashMap<u32, u64>,
}

impl Default for Coverage {
    fn default() -> Self {
        Self {
            identifiers: 0,
            known_identifiers: 0,
            frames: 0,
            known_frames: 0,
            transported: 0,
            broken: 0,
            others: 0,
            standard: vec![0; 0x800].into(),
            extended: HashMap::new(),
        }
    }
}

impl Coverage {
    #[inline]
    pub fn count(&mut self, frame: &Frame) {
        match frame.id() {
            Identifier::Sff(id) => self.standard[usize::from(id) & 0x7FF] += 1,
            Identifier::Eff(id) => *self.extended.entry(id).or_default() += 1,
        }
    }

    /// Sums up what was counted.
    pub fn settle(&mut self, codebook: &Codebook<'_>) {
        let standard =
            self.standard.iter().enumerate().map(|(id, &frames)| (Identifier::Sff(id as u16), frames));
        let extended = self.extended.iter().map(|(&id, &frames)| (Identifier::Eff(id), frames));
        for (id, frames) in standard.chain(extended).filter(|&(_, frames)| frames > 0) {
            let is_known = codebook.place(id).is_some();
            self.identifiers += 1;
            self.frames += frames;
            if is_known {
                self.known_identifiers += 1;
                self.known_frames += frames;
            } else if self.transported > 0 && is_transport(id) {
                self.known_identifiers += 1;
            }
        }
        // Where the database has the protocol's own groups too, their frames are known already.
        self.known_frames = self.frames.min(self.known_frames + self.transported);
    }

    pub fn add(&mut self, other: &Self) {
        self.identifiers += other.identifiers;
        self.known_identifiers += other.known_identifiers;
        self.frames += other.frames;
        self.known_frames += other.known_frames;
        self.transported += other.transported;
        self.broken += other.broken;
        self.others += other.others;
    }
}

fn is_transport(id: Identifier) -> bool {
    Frame::classic(id, &[]).is_ok_and(|frame| Transport::carries(&frame))
}
