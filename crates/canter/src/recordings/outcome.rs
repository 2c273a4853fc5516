//! What is known of a recording after its last frame.

use canter_formats::Reader;
use serde::Serialize;
use std::collections::BTreeMap;

/// A recording that was read to its end, or as far as it can be read.
#[derive(Debug, Serialize)]
pub struct Outcome {
    pub file: String,
    pub format: &'static str,
    pub frames: u64,
    /// Entries that are neither classic nor FD frames.
    pub skipped: BTreeMap<&'static str, u64>,
    /// Frames whose fields contradict each other.
    pub flawed: BTreeMap<&'static str, u64>,
    /// Lost frames that the recording reports.
    pub lost: u64,
    /// Events that the recording reports: causes of its windows, clocks that were set.
    pub events: Vec<Event>,
    /// Events that are not in `events`.
    pub events_left_out: u64,
    /// Whether the stamps count from a date without a time zone.
    pub zone_used: bool,
    /// Where the recording ends, if it ends in the middle of an entry.
    #[serde(skip)]
    pub cut: Option<String>,
    /// What was skipped because it is damaged.
    #[serde(skip)]
    pub salvaged: Option<String>,
}

/// An event that a recording reports.
#[derive(Debug, Serialize)]
pub struct Event {
    pub at_ns: u64,
    pub what: String,
}

impl Event {
    fn new(event: &canter_formats::format::Event) -> Self {
        Self { at_ns: event.stamp_ns, what: event.what.clone() }
    }
}

impl Outcome {
    pub fn new(reader: &Reader) -> Self {
        Self {
            file: reader.path().to_owned(),
            format: reader.format().name,
            frames: reader.frames(),
            skipped: reader.skipped().iter().collect(),
            flawed: reader.flawed().iter().collect(),
            lost: reader.lost(),
            events: reader.events().list().iter().map(Event::new).collect(),
            events_left_out: reader.events().left_out(),
            zone_used: reader.zone_used(),
            cut: reader.cut().map(str::to_owned),
            salvaged: reader.salvaged(),
        }
    }

    /// Remarks about the recording: where it is cut off, entries that are not frames and what became of them, losses that
    /// it reports.
    pub fn remarks(&self, fate: &str) -> Vec<String> {
        let file = &self.file;
        let mut remarks = Vec::new();
        remarks.extend(self.cut.as_ref().map(|cut| format!("{cut}: all frames before were read")));
        remarks.extend(self.salvaged.as_ref().map(|skipped| format!("salvaged: {skipped}")));
        remarks.extend(self.skipped.iter().map(|(entry, count)| format!("{file}: {count} {entry}: {fate}")));
        remarks.extend(self.flawed.iter().map(|(kind, count)| format!("{file}: {count} {kind}")));
        if self.lost > 0 {
            remarks.push(format!("{file}: {} frames were lost during the recording", self.lost));
        }
        remarks
    }

    /// Whether frames are missing, or may not be whole.
    pub fn is_doubtful(&self) -> bool {
        self.cut.is_some() || self.salvaged.is_some() || !self.flawed.is_empty()
    }
}

/// A line about recordings whose dates name no time zone, when none was given; `None` when there are none.
pub fn undated(outcomes: &[Outcome]) -> Option<String> {
    let dated: Vec<&Outcome> = outcomes.iter().filter(|one| one.zone_used).collect();
    let [first, more @ ..] = &dated[..] else { return None };
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    Some(format!(
        "the date of {}{more} names no time zone: taken as UTC (--zone local, Europe/Prague or +01:00)",
        first.file
    ))
}
