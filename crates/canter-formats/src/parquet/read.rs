//! Parquet as canter writes it: a file, or a data set of them, `vehicle=V/date=YYYY-MM-DD/bus=can0/part-STAMP.parquet`.
//! The parts' frames are merged by stamp; a part is opened when the merge reaches the stamp in its name.
//!
//! Uses the column readers of the `parquet` crate, which may panic on a damaged file: the module `fence` turns a panic
//! into an error.

mod bounded;
mod columns;
mod fence;
mod layout;
mod thrift;

use crate::{
    format::{Context, Decode, Folder, Source},
    trouble::{Trouble, wrong},
};
use canter_frame::{BusId, Record};
use columns::Columns;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashSet, VecDeque},
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

const MAGIC: &[u8; 4] = b"PAR1";
/// The most levels of folders that are searched; a data set has three.
const DEPTH_MAX: usize = 8;

/// The decoder.
pub struct Parquet {
    /// Parts not opened yet, sorted by the stamps in their names.
    coming: VecDeque<Part>,
    /// The only part is the source itself.
    single: bool,
    open: Vec<Open>,
    order: BinaryHeap<Reverse<(u64, usize)>>,
    /// The names of the columns that are not read, of all parts so far.
    others: HashSet<String>,
    /// The part being read, for errors.
    at: String,
    /// Parts that were cut off, of which nothing can be read, and damaged ones when damage is skipped; and why. All other
    /// parts are read first.
    ended: Vec<(String, Trouble)>,
}

/// A file of a data set.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    first_ns: u64,
    path: PathBuf,
}

/// A part that is being read, and its next frame.
struct Open {
    name: String,
    bus: BusId,
    columns: Columns,
    head: Record,
}

pub fn looks_like(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// Returns the value of a partition in a path: for `bus` in `…/bus=can0/…` it is can0.
fn partition(path: &Path, key: &str) -> Option<String> {
    let value = |part: &str| Some(part.strip_prefix(key)?.strip_prefix('=')?.to_owned());
    let mut parts = path.parent()?.components().rev();
    let value = parts.find_map(|part| value(part.as_os_str().to_str()?))?;
    // Hive writes some bytes as a percent sign and two hex digits.
    let mut bytes = Vec::new();
    let mut rest = value.as_bytes();
    while let [first, more @ ..] = rest {
        let code = |hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok();
        let escaped = more.get(..2).filter(|_| *first == b'%').and_then(code);
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &more[2..] } else { more };
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Finds all parts below a folder, each once, whatever links lead to it; `known`: the files and folders found so far.
fn parts(folder: &Path, depth: usize, known: &mut HashSet<PathBuf>, found: &mut Vec<Part>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // A link that leads nowhere.
        let Ok(itself) = path.canonicalize() else { continue };
        if !known.insert(itself) {
            continue;
        }
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            if depth < DEPTH_MAX {
                parts(&path, depth + 1, known, found)?;
            }
        } else if let Some(name) = name.strip_suffix(".parquet")
            && !name.starts_with('.')
        {
            let stamp = name.strip_prefix("part-").and_then(|stamp| stamp.parse().ok());
            found.push(Part { first_ns: stamp.unwrap_or(0), path });
        }
    }
    Ok(())
}

impl Parquet {
    /// Reads one file, that of the source.
    pub fn file(path: &Path) -> Self {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Self::new(vec![Part { first_ns: 0, path }], true)
    }

    /// Opens a data set; `None` if the folder has no Parquet file.
    ///
    /// # Errors
    /// When a folder cannot be read, or when it has the frames of several vehicles.
    pub fn folder(folder: &Path) -> Result<Option<Folder>, Trouble> {
        let mut found = Vec::new();
        // Partitions may be above the folder that was given.
        let folder = folder.canonicalize()?;
        parts(&folder, 0, &mut HashSet::from([folder.clone()]), &mut found)?;
        let mut vehicles: Vec<_> = found.iter().map(|part| partition(&part.path, "vehicle")).collect();
        vehicles.sort();
        vehicles.dedup();
        if let [Some(first), .., _] = vehicles.as_slice() {
            return wrong(format!(
                "has the drives of {} vehicles (name one: its folder vehicle={first})",
                vehicles.len()
            ));
        }
        if found.is_empty() {
            return Ok(None);
        }
        let set = Self::new(found, false);
        Ok(Some(Folder { bytes: set.bytes(), decoder: Box::new(set) }))
    }

    fn new(mut parts: Vec<Part>, single: bool) -> Self {
        parts.sort();
        Self {
            coming: parts.into(),
            single,
            open: Vec::new(),
            order: BinaryHeap::new(),
            others: HashSet::new(),
            at: String::new(),
            ended: Vec::new(),
        }
    }

    /// Bytes of all parts.
    fn bytes(&self) -> u64 {
        self.coming.iter().filter_map(|part| Some(part.path.metadata().ok()?.len())).sum()
    }

    /// Opens the next part.
    fn open(&mut self, source: &mut Source, context: &mut Context) -> Result<(), Trouble> {
        let Some(Part { path, .. }) = self.coming.pop_front() else { return Ok(()) };
        let file = if self.single {
            source.whole_file()?.file
        } else {
            self.at = format!("{}: ", path.display());
            let file = File::open(&path)?;
            source.count(file.metadata()?.len());
            file
        };
        let name = partition(&path, "bus").unwrap_or_else(|| "any".to_owned());
        let columns = match Columns::open(file) {
            Err(trouble) if matches!(trouble, Trouble::Cut) || context.salvage => {
                self.ended.push((self.at.clone(), trouble));
                return Ok(());
            }
            columns => columns?,
        };
        for other in columns.others() {
            if self.others.insert(other) {
                context.skipped.count("other columns");
            }
        }
        let bus = context.names.number(&name)?;
        self.open.push(Open { name: self.at.clone(), bus, columns, head: Record::default() });
        self.read(self.open.len() - 1, context)
    }

    /// Reads an open part's next frame.
    fn read(&mut self, at: usize, context: &mut Context) -> Result<(), Trouble> {
        let part = &mut self.open[at];
        match part.columns.next(&mut part.head, context) {
            Ok(true) => {
                part.head.bus = part.bus;
                self.order.push(Reverse((part.head.stamp_ns, at)));
            }
            Ok(false) => part.columns.close(),
            Err(trouble) if context.salvage => self.ended.push((part.name.clone(), trouble)),
            Err(trouble) => {
                self.at.clone_from(&part.name);
                return Err(trouble);
            }
        }
        Ok(())
    }

    /// Whether the next part may have the next frame.
    fn is_due(&self) -> bool {
        let first = self.coming.front().map(|part| part.first_ns);
        match (first, self.order.peek()) {
            (Some(first_ns), Some(Reverse((stamp_ns, _)))) => first_ns <= *stamp_ns,
            (first, _) => first.is_some(),
        }
    }
}

impl Decode for Parquet {
    fn next(
        &mut self,
        source: &mut Source,
        context: &mut Context,
        entry: &mut Record,
    ) -> Result<bool, Trouble> {
        while self.is_due() {
            self.open(source, context)?;
        }
        let Some(Reverse((_, at))) = self.order.pop() else {
            let Some((part, trouble)) = self.ended.pop() else { return Ok(false) };
            self.at = part;
            return Err(trouble);
        };
        *entry = self.open[at].head;
        self.read(at, context)?;
        Ok(true)
    }

    fn place(&self, _source: &Source) -> String {
        let rows: u64 =
            self.open.iter().filter(|part| part.name == self.at).map(|part| part.columns.rows()).sum();
        format!("{}row {rows}", self.at)
    }

    /// To the next part that could not be read whole.
    fn resume(&mut self, _source: &mut Source) -> io::Result<bool> {
        Ok(!self.ended.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_read_from_a_path_and_percent_signs_are_decoded() {
        let path = Path::new("/data/bus=x/vehicle=V%2017%2Fa/date=2026-11-22/bus=can%/part-1.parquet");
        let value = |key| partition(path, key);
        assert_eq!(value("vehicle").as_deref(), Some("V 17/a"));
        assert_eq!(value("bus").as_deref(), Some("can%"), "the partition nearest to the file");
        assert_eq!(value("driver"), None);
    }
}
