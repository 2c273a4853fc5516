//! Recordings, of which only some are open at a time: there may be more recordings than file descriptors, or than memory
//! for their buffers. Each is opened at first, for the stamp of its first frame, and stays open while there is room. To
//! make room, the open recording whose next frame is the latest is closed; it is opened again when its turn comes.

use super::outcome::Outcome;
use canter_cli::{
    failure::{self, Failure},
    trouble::recording_failure,
};
use canter_formats::{Reader, Zone};
use canter_frame::{BusId, ControllerStamp, Record};
use std::{fs, path::PathBuf};

/// The most inputs that are open at a time: their buffers take 64 MiB.
const OPEN_MAX: usize = 256;
/// File descriptors of an open input: a file is read from two places.
const DESCRIPTORS: usize = 2;

/// How inputs are opened.
#[derive(Clone, Default)]
pub struct Opening {
    /// Skip what is damaged.
    pub salvage: bool,
    /// The zone of dates without one.
    pub zone: Option<Zone>,
}

/// An input.
struct Input {
    path: PathBuf,
    /// The reader, while the input is open: it has not ended and did not have to make room.
    reader: Option<Reader>,
    /// The next frame; `None` at the end.
    head: Option<Record>,
    /// The controller's stamp of `head`, if the recording has one.
    head_controller: Option<ControllerStamp>,
    /// Frames read so far, `head` included.
    frames: u64,
    /// The names of the buses, from a reader that was closed.
    names: Vec<String>,
    /// The bytes read, from a reader that was closed.
    bytes: u64,
    /// What is known after the last frame.
    outcome: Option<Outcome>,
}

/// All inputs.
pub struct Inputs {
    opening: Opening,
    inputs: Vec<Input>,
    /// The inputs that are open and can be opened again: no pipes.
    open: Vec<usize>,
    open_max: usize,
    size: u64,
    /// The controller's stamp of the frame that was taken last, if its recording has one.
    taken_controller: Option<ControllerStamp>,
    /// Why an input cannot be read any further. [`Inputs::check`] returns it after the last frame before the damage.
    failure: Option<Failure>,
}

/// How many inputs may be open: they take at most half of the file descriptors that the process may have.
fn open_max() -> usize {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let soft = files.and_then(|rest| rest.split_ascii_whitespace().next()?.parse::<usize>().ok());
    soft.map_or(OPEN_MAX, |soft| (soft / 2 / DESCRIPTORS).clamp(1, OPEN_MAX))
}

/// The sort key of a name: numbers at its end count as numbers.
pub fn natural_order(name: &str) -> (&str, u64, &str) {
    let word = name.trim_end_matches(|last: char| last.is_ascii_digit());
    (word, name[word.len()..].parse().unwrap_or(0), name)
}

impl Inputs {
    /// Opens each input and reads its first frame.
    pub fn open(paths: &[PathBuf], opening: Opening) -> failure::Result<Self> {
        let mut inputs = Self {
            opening,
            inputs: Vec::new(),
            open: Vec::new(),
            open_max: open_max(),
            size: 0,
            taken_controller: None,
            failure: None,
        };
        for path in paths {
            inputs.inputs.push(Input {
                path: path.clone(),
                reader: None,
                head: None,
                head_controller: None,
                frames: 0,
                names: Vec::new(),
                bytes: 0,
                outcome: None,
            });
            let at = inputs.inputs.len() - 1;
            let reader = inputs.reader(at)?;
            inputs.size += reader.size();
            inputs.inputs[at].reader = Some(reader);
            inputs.advance(at)?;
        }
        Ok(inputs)
    }

    /// Opens an input from its beginning.
    fn reader(&mut self, at: usize) -> failure::Result<Reader> {
        let path = &self.inputs[at].path;
        let can_be_opened_again = path.as_os_str() != "-" && (path.is_file() || path.is_dir());
        if can_be_opened_again {
            self.make_room();
            self.open.push(at);
        }
        let reader = canter_formats::open(&self.inputs[at].path)?.salvage(self.opening.salvage);
        Ok(match &self.opening.zone {
            Some(zone) => reader.zone(zone.clone()),
            None => reader,
        })
    }

    /// Closes the open input whose next frame is the latest.
    fn make_room(&mut self) {
        if self.open.len() < self.open_max {
            return;
        }
        let stamp = |&at: &usize| self.inputs[at].head.map(|head| head.stamp_ns);
        let latest = (0..self.open.len()).max_by_key(|&place| stamp(&self.open[place]));
        let Some(place) = latest else { return };
        let input = &mut self.inputs[self.open.swap_remove(place)];
        if let Some(reader) = input.reader.take() {
            (input.names, input.bytes) = (reader.names().to_vec(), reader.bytes());
        }
    }

    /// Opens an input again and reads what was read before.
    #[cold]
    fn reopen(&mut self, at: usize) -> failure::Result<()> {
        let mut reader = self.reader(at)?;
        let input = &mut self.inputs[at];
        let mut last = None;
        for _ in 0..input.frames {
            last = reader.next_record().map_err(recording_failure)?;
        }
        if last != input.head {
            let message = format!("{}: read: was changed meanwhile", input.path.display());
            return Err(Failure::failed(message));
        }
        input.reader = Some(reader);
        Ok(())
    }

    /// The stamp of an input's next frame; `None` at its end.
    pub fn stamp_ns(&self, at: usize) -> Option<u64> {
        Some(self.inputs[at].head?.stamp_ns)
    }

    /// Takes an input's next frame; `false`: there is none.
    #[inline]
    pub fn take(&mut self, at: usize, taken: &mut Record) -> failure::Result<bool> {
        let input = &self.inputs[at];
        self.taken_controller = input.head_controller;
        let Some(head) = &input.head else { return Ok(false) };
        *taken = *head;
        if input.reader.is_none() {
            self.reopen(at)?;
        }
        if let Err(failure) = self.advance(at) {
            self.inputs[at].head = None;
            self.failure = Some(failure);
        }
        Ok(true)
    }

    /// The controller's stamp of the frame that was taken last, if its recording has one.
    #[inline]
    pub fn controller_stamp(&self) -> Option<ControllerStamp> {
        self.taken_controller
    }

    /// Fails when an input cannot be read any further.
    #[inline]
    pub fn check(&mut self) -> failure::Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Reads the next frame; an input that has ended is closed.
    #[inline]
    fn advance(&mut self, at: usize) -> failure::Result<()> {
        let input = &mut self.inputs[at];
        let Some(reader) = &mut input.reader else { return Ok(()) };
        input.head = reader.next_ref().map_err(recording_failure)?.copied();
        input.head_controller = reader.controller_stamp();
        match input.head {
            Some(_) => input.frames += 1,
            None => self.close(at),
        }
        Ok(())
    }

    #[cold]
    fn close(&mut self, at: usize) {
        let input = &mut self.inputs[at];
        if let Some(reader) = input.reader.take() {
            (input.names, input.bytes) = (reader.names().to_vec(), reader.bytes());
            input.outcome = Some(Outcome::new(&reader));
        }
        self.open.retain(|&open| open != at);
    }

    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// The name of a bus of an input.
    pub fn name(&self, at: usize, bus: BusId) -> &str {
        let input = &self.inputs[at];
        let names = input.reader.as_ref().map_or(&input.names[..], Reader::names);
        names.get(bus.index()).map_or("?", String::as_str)
    }

    /// The names of the buses of all inputs, sorted: can2 before can10.
    pub fn names(&self) -> Vec<String> {
        let lists = self.inputs.iter().map(|one| one.reader.as_ref().map_or(&one.names[..], Reader::names));
        let mut names: Vec<String> = lists.flatten().cloned().collect();
        names.sort_by(|one, other| natural_order(one).cmp(&natural_order(other)));
        names.dedup();
        names
    }

    /// Bytes of all inputs.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes read from all inputs.
    pub fn bytes(&self) -> u64 {
        self.inputs.iter().map(|input| input.reader.as_ref().map_or(input.bytes, Reader::bytes)).sum()
    }

    /// What is known of each input after all have ended.
    pub fn outcomes(self) -> Vec<Outcome> {
        self.inputs.into_iter().filter_map(|input| input.outcome).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_that_had_to_make_room_continue_where_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let path = |at: usize| folder.path().join(at.to_string());
        for at in 0..5 {
            // The buses have other names from the second frame on.
            let line = |n: usize| format!("({n}.00000{at}) can{} 00{n}#0{at}\n", if n > 1 { at } else { 9 });
            fs::write(path(at), (1..=4).map(line).collect::<String>()).unwrap();
        }
        let mut inputs = Inputs::open(&[], Opening::default()).unwrap();
        inputs.open_max = 2;
        let paths: Vec<PathBuf> = (0..5).map(path).collect();
        let opened = Inputs::open(&paths, Opening::default()).unwrap();
        let mut inputs = Inputs { inputs: opened.inputs, open: opened.open, ..inputs };
        while inputs.open.len() > 2 {
            inputs.open_max = inputs.open.len();
            inputs.make_room();
        }
        inputs.open_max = 2;
        for n in 1..=4 {
            for at in 0..5 {
                assert_eq!(inputs.stamp_ns(at), Some(n * 1_000_000_000 + at as u64 * 1000));
                let mut record = Record::default();
                assert!(inputs.take(at, &mut record).unwrap());
                assert_eq!(record.frame.to_string(), format!("00{n}#0{at}"));
                let bus = if n > 1 { at } else { 9 };
                assert_eq!(inputs.name(at, record.bus), format!("can{bus}"));
                assert!(inputs.open.len() <= 2);
            }
        }
        assert_eq!(inputs.stamp_ns(0), None);
        let outcomes = inputs.outcomes();
        assert_eq!(outcomes.iter().map(|outcome| outcome.frames).collect::<Vec<_>>(), [4; 5]);
    }
}
