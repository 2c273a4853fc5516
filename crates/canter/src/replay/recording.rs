//! The recordings that are replayed, as one, with the names of all their buses.

use crate::recordings::{Inputs, Merge, Opening, Outcome, undated};
use canter_cli::failure;
use canter_io::Frame;
use std::path::PathBuf;

/// A recorded frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub stamp_ns: u64,
    /// The index of the bus in [`Recordings::buses`].
    pub bus: usize,
    pub frame: Frame,
}

/// Several files as one recording, in the order of their stamps; frames of the same file keep their order.
pub struct Recordings {
    merge: Merge,
    /// The names of all buses so far.
    pub buses: Vec<String>,
}

/// What is known of the files after their last frame.
pub struct Remarks {
    /// Remarks: where a file is cut off, entries that are not frames, losses that a file reports, dates without a zone.
    pub notes: Vec<String>,
    /// Whether frames of a file are missing, because it is cut off or damaged, or may not be whole.
    pub incomplete: bool,
}

impl Recordings {
    pub fn open(paths: &[PathBuf], opening: Opening) -> failure::Result<Self> {
        Ok(Self { merge: Merge::new(Inputs::open(paths, opening)?, None), buses: Vec::new() })
    }

    /// The oldest of the files' next frames.
    pub fn next(&mut self) -> failure::Result<Option<Recorded>> {
        let Some(input) = self.merge.next()? else { return Ok(None) };
        let entry = self.merge.record();
        let name = self.merge.name(input, entry.bus);
        let known = self.buses.iter().position(|known| known == name);
        let bus = known.unwrap_or(self.buses.len());
        if known.is_none() {
            self.buses.push(name.to_owned());
        }
        Ok(Some(Recorded { stamp_ns: entry.stamp_ns, bus, frame: entry.frame }))
    }

    /// The names of the buses, and remarks about the files.
    pub fn close(self, zone_given: bool) -> (Vec<String>, Remarks) {
        let outcomes = self.merge.into_inputs().outcomes();
        let mut notes: Vec<String> = outcomes.iter().flat_map(|one| one.remarks("not sent")).collect();
        notes.extend(undated(&outcomes).filter(|_| !zone_given));
        (self.buses, Remarks { notes, incomplete: outcomes.iter().any(Outcome::is_doubtful) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn all_formats_that_convert_writes_are_replayed() {
        use canter_formats::{FORMATS, WriteOptions, Writer};
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("in.log");
        fs::write(&input, "(1.000000) can0 001#\n(2.000000) can1 002#11\n").unwrap();
        for format in FORMATS.iter().filter(|format| format.write.is_some()) {
            let path = folder.path().join(format.name);
            let options = WriteOptions { ns: true, ..WriteOptions::new(format, &path) };
            let mut reader = canter_formats::open(&input).unwrap();
            let mut writer = Writer::open(&options).unwrap();
            ["can0", "can1"].iter().for_each(|name| assert!(writer.interface(name).is_ok()));
            while let Some(entry) = reader.next_record().unwrap() {
                writer.frame(&entry).unwrap();
            }
            writer.finish().unwrap();
            let (mut recordings, mut order) =
                (Recordings::open(&[path], Opening::default()).unwrap(), Vec::new());
            while let Some(next) = recordings.next().unwrap() {
                order.push((next.stamp_ns, recordings.buses[next.bus].clone(), next.frame.to_string()));
            }
            let want = [(1_000_000_000, "can0", "001#"), (2_000_000_000, "can1", "002#11")];
            assert_eq!(order, want.map(|(at, bus, frame)| (at, bus.into(), frame.into())), "{}", format.name);
        }
    }

    #[test]
    fn the_frame_before_damage_is_read_before_the_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "(1.000000) can0 001#\n(2.000000) can0 002#\n(3.000000) ?\n(4.000000) can0 004#\n")
            .unwrap();
        let read = |salvage| {
            let mut recordings =
                Recordings::open(std::slice::from_ref(&path), Opening { salvage, zone: None }).unwrap();
            let mut order = Vec::new();
            loop {
                match recordings.next() {
                    Ok(Some(next)) => order.push(next.frame.can_id),
                    Ok(None) => return (order, recordings.close(false).1.incomplete),
                    Err(failure) => {
                        assert!(failure.message.ends_with("; --salvage skips what is damaged"), "{failure}");
                        return (order, true);
                    }
                }
            }
        };
        assert_eq!(read(false), (vec![1, 2], true));
        assert_eq!(read(true), (vec![1, 2, 4], true));
    }

    #[test]
    fn files_are_merged_by_their_stamps_and_keep_their_own_order() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let a = file("a", "(1.000000) can0 001#\n(3.000000) can1 002#\n(2.000000) can0 003#\n");
        let b = file("b", "# nothing\n(2.000000) can1 004#\n(2.500000) can7 005#\n");
        let mut recordings = Recordings::open(&[a, b], Opening::default()).unwrap();
        let mut order = Vec::new();
        while let Some(next) = recordings.next().unwrap() {
            order.push((next.frame.can_id, next.bus));
        }
        assert_eq!(order, [(1, 0), (4, 1), (5, 2), (2, 1), (3, 0)]);
        assert_eq!(recordings.buses, ["can0", "can1", "can7"]);
    }

    #[test]
    fn a_date_without_a_zone_is_utc_unless_one_is_given_and_that_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.asc");
        let text =
            "date Mon Nov 23 12:00:00.000 pm 2026\nbase hex  timestamps absolute\n1.000000 1 123 Rx d 1 11\n";
        fs::write(&path, text).unwrap();
        let read = |zone: Option<canter_formats::Zone>| {
            let given = zone.is_some();
            let opening = Opening { zone, ..Opening::default() };
            let mut recordings = Recordings::open(std::slice::from_ref(&path), opening).unwrap();
            let stamp_ns = recordings.next().unwrap().unwrap().stamp_ns;
            assert_eq!(recordings.next().unwrap(), None);
            (stamp_ns, recordings.close(given).1.notes)
        };
        let (utc_ns, notes) = read(None);
        assert!(notes.len() == 1 && notes[0].contains("names no time zone: taken as UTC"), "{notes:?}");
        let (east_ns, notes) = read(Some("+01:00".parse().unwrap()));
        assert_eq!((utc_ns - east_ns, notes), (3_600_000_000_000, Vec::new()));
    }
}
