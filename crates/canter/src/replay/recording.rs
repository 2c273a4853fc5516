//! The recordings that are replayed: several files are merged by their stamps.

use crate::{
    failure::{self, Failure},
    trouble::of_recording,
};
use canter_formats::Reader;
use canter_io::Frame;
use std::path::PathBuf;

/// A recorded frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub stamp_ns: u64,
    /// The index of its bus in [`Recordings::buses`].
    pub bus: usize,
    pub frame: Frame,
}

/// Several files as one recording, in the order of their stamps; frames of the same file keep their order.
pub struct Recordings {
    readers: Vec<Reader>,
    /// The next frame of each file, when it has one.
    heads: Vec<Option<Recorded>>,
    /// The names of all buses so far.
    pub buses: Vec<String>,
    /// Why a file cannot be read any further: an error after the frame before the damage.
    failure: Option<Failure>,
}

impl Recordings {
    pub fn open(paths: &[PathBuf], salvage: bool) -> failure::Result<Self> {
        let open = |path| canter_formats::open(path).map(|reader| reader.salvage(salvage));
        let readers = paths.iter().map(open).collect::<canter_formats::Result<Vec<_>>>()?;
        let heads = vec![None; readers.len()];
        let mut recordings = Self { readers, heads, buses: Vec::new(), failure: None };
        for at in 0..recordings.readers.len() {
            recordings.read(at)?;
        }
        Ok(recordings)
    }

    /// The oldest of the files' next frames.
    pub fn next(&mut self) -> failure::Result<Option<Recorded>> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let stamps =
            self.heads.iter().enumerate().filter_map(|(at, head)| Some((head.as_ref()?.stamp_ns, at)));
        let Some((_, at)) = stamps.min() else { return Ok(None) };
        let next = self.heads[at].take();
        self.failure = self.read(at).err();
        Ok(next)
    }

    /// Remarks about the files: where one is cut off, entries that are not frames, and losses that it reports.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for reader in &self.readers {
            let path = reader.path();
            notes.extend(reader.cut().map(|cut| format!("{cut}: all frames before were read")));
            notes.extend(reader.salvaged().map(|skipped| format!("salvaged: {skipped}")));
            notes.extend(
                reader.skipped().iter().map(|(entry, count)| format!("{path}: {count} {entry}: not sent")),
            );
            notes.extend(reader.flawed().iter().map(|(kind, count)| format!("{path}: {count} {kind}")));
            if reader.lost() > 0 {
                notes.push(format!("{path}: {} frames were lost during the recording", reader.lost()));
            }
        }
        notes
    }

    /// Whether frames of a file are missing, because it is cut off or damaged, or may not be whole.
    pub fn is_incomplete(&self) -> bool {
        let flawed = |reader: &Reader| reader.flawed().iter().next().is_some();
        self.readers
            .iter()
            .any(|reader| flawed(reader) || reader.cut().is_some() || reader.salvaged().is_some())
    }

    fn read(&mut self, at: usize) -> failure::Result<()> {
        let reader = &mut self.readers[at];
        self.heads[at] = match reader.next_record().map_err(of_recording)? {
            None => None,
            Some(entry) => {
                let name = reader.name(entry.bus);
                let known = self.buses.iter().position(|known| known == name);
                let bus = known.unwrap_or_else(|| {
                    self.buses.push(name.to_owned());
                    self.buses.len() - 1
                });
                Some(Recorded { stamp_ns: entry.stamp_ns, bus, frame: entry.frame })
            }
        };
        Ok(())
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
            let (mut recordings, mut order) = (Recordings::open(&[path], false).unwrap(), Vec::new());
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
            let mut recordings = Recordings::open(std::slice::from_ref(&path), salvage).unwrap();
            let mut order = Vec::new();
            loop {
                match recordings.next() {
                    Ok(Some(next)) => order.push(next.frame.can_id),
                    Ok(None) => return (order, recordings.is_incomplete()),
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
        let mut recordings = Recordings::open(&[a, b], false).unwrap();
        let mut order = Vec::new();
        while let Some(next) = recordings.next().unwrap() {
            order.push((next.frame.can_id, next.bus));
        }
        assert_eq!(order, [(1, 0), (4, 1), (5, 2), (2, 1), (3, 0)]);
        assert_eq!(recordings.buses, ["can0", "can1", "can7"]);
    }
}
