//! A recording with the frames that were chosen of it: by their buses and their times.

use canter_formats::{Reader, Record, Result, Zone};
use std::path::Path;

/// A time, in ns.
#[derive(Clone, Copy, Debug)]
pub enum Moment {
    /// Since 1970.
    Absolute(u64),
    /// Since the recording's first frame.
    SinceFirst(u64),
}

/// What is chosen.
#[derive(Debug, Default)]
pub struct Selection {
    /// The names of buses; `None`: all.
    pub buses: Option<Vec<String>>,
    /// The first stamp that is chosen.
    pub start: Option<Moment>,
    /// The first stamp that is not chosen any more.
    pub end: Option<Moment>,
    /// Whether damage is skipped.
    pub salvage: bool,
    /// The zone of dates without one.
    pub zone: Option<Zone>,
}

/// A recording that is being read.
pub struct Recording<'s> {
    reader: Reader,
    selection: &'s Selection,
    /// The chosen stamps, once the first frame is known.
    range_ns: Option<(u64, u64)>,
    /// Whether each bus is chosen.
    is_chosen: Vec<bool>,
}

impl<'s> Recording<'s> {
    pub fn open(path: &Path, selection: &'s Selection) -> Result<Self> {
        let mut reader = canter_formats::open(path)?.salvage(selection.salvage);
        if let Some(zone) = &selection.zone {
            reader = reader.zone(zone.clone());
        }
        Ok(Self { reader, selection, range_ns: None, is_chosen: Vec::new() })
    }

    /// Passes the chosen ones of the next `count` frames; `false`: there are no more.
    pub fn take(&mut self, count: usize, mut each: impl FnMut(&Record)) -> Result<bool> {
        self.take_named(count, |_, record| each(record))
    }

    /// Passes the chosen ones of the next `count` frames, each with the name of its bus; `false`: there are no more.
    pub fn take_named(&mut self, count: usize, mut each: impl FnMut(&str, &Record)) -> Result<bool> {
        for _ in 0..count {
            let Some(record) = self.reader.next_record()? else { return Ok(false) };
            if self.is_chosen(&record) {
                each(self.reader.name(record.bus), &record);
            }
        }
        Ok(true)
    }

    fn is_chosen(&mut self, record: &Record) -> bool {
        let bus = record.bus.index();
        while self.is_chosen.len() <= bus {
            let name = self.reader.names().get(self.is_chosen.len());
            let buses = self.selection.buses.as_ref();
            let chosen = buses.is_none_or(|buses| name.is_some_and(|name| buses.contains(name)));
            self.is_chosen.push(chosen);
        }
        let (start_ns, end_ns) = *self.range_ns.get_or_insert_with(|| {
            let stamp_ns = |moment: Moment| match moment {
                Moment::Absolute(ns) => ns,
                Moment::SinceFirst(ns) => record.stamp_ns.saturating_add(ns),
            };
            let Selection { start, end, .. } = self.selection;
            (start.map_or(0, stamp_ns), end.map_or(u64::MAX, stamp_ns))
        });
        let is_in_time = record.stamp_ns >= start_ns && (record.stamp_ns < end_ns || end_ns == u64::MAX);
        is_in_time && self.is_chosen[bus]
    }

    /// The names of the recording's buses, by their number.
    pub fn names(&self) -> &[String] {
        self.reader.names()
    }

    /// Refuses a chosen bus that the recording does not have.
    pub fn refuse_unknown_bus(&self) -> std::result::Result<(), String> {
        let names = self.names();
        let unknown = self.selection.buses.iter().flatten().find(|bus| !names.contains(bus));
        unknown.map_or(Ok(()), |bus| {
            Err(format!("{}: has no bus {bus:?} (it has {})", self.reader.path(), names.join(", ")))
        })
    }

    /// What a program must know of the recording: that it is cut off or damaged, and what in it is no frame.
    pub fn remarks(&self, fate: &str) -> Vec<String> {
        let file = self.reader.path();
        let mut remarks = Vec::new();
        remarks.extend(self.reader.cut().map(|cut| format!("{cut}: all frames before were read")));
        remarks.extend(self.reader.salvaged().map(|skipped| format!("salvaged: {skipped}")));
        remarks.extend(
            self.reader.skipped().iter().map(|(kind, count)| format!("{file}: {count} {kind}: {fate}")),
        );
        remarks.extend(self.reader.flawed().iter().map(|(kind, count)| format!("{file}: {count} {kind}")));
        if self.reader.lost() > 0 {
            remarks.push(format!("{file}: {} frames were lost during the recording", self.reader.lost()));
        }
        if self.reader.zone_used() && self.selection.zone.is_none() {
            remarks
                .push(format!("{file}: its date names no time zone: taken as UTC (zone=\"Europe/Prague\")"));
        }
        remarks
    }
}
