//! MDF4 of signals: a channel group for each message of each bus, with a channel for each signal, its unit, and an
//! invalidation bit where a frame does not have the signal. asammdf opens it as it opens any measurement.

use super::{
    Arguments,
    output::{Row, Table, Tallies, count, output_failure},
    wanted::Wanted,
};
use canter_cli::failure::{self, Failure};
use canter_formats::measurement::{Channel, File, GroupId, Number};
use canter_signals::Column;
use std::path::PathBuf;

pub struct Measurement<'a> {
    path: PathBuf,
    file: File,
    wanted: &'a Wanted,
    /// The group of each message, by bus and by its place in the bus's codebook.
    groups: Vec<Vec<Option<Group>>>,
    start_ns: Option<u64>,
    tallies: Tallies,
}

struct Group {
    id: GroupId,
    /// The column of each signal of the message.
    columns: Vec<Option<usize>>,
    values: Vec<Option<Number>>,
}

impl<'a> Measurement<'a> {
    pub fn new(arguments: &Arguments, wanted: &'a Wanted) -> failure::Result<Self> {
        let path = arguments.output.clone();
        let file = File::create(&path, arguments.overwrite).map_err(|error| output_failure(&path, error))?;
        Ok(Self { path, file, wanted, groups: Vec::new(), start_ns: None, tallies: Tallies::new() })
    }

    #[cold]
    fn add(&mut self, row: &Row<'_>) {
        let places = self.wanted.places(row.message);
        let channels = places.iter().filter_map(|&at| {
            let signal = row.message.signals.get(at)?;
            let number = match signal.column() {
                Column::Integer => Number::Signed(0),
                Column::Unsigned => Number::Unsigned(0),
                Column::Float => Number::Double(0.0),
            };
            Some(Channel { name: signal.name.clone(), unit: signal.unit.clone(), number })
        });
        let channels: Vec<Channel> = channels.collect();
        let columns = (0..row.message.signals.len()).map(|at| places.iter().position(|&place| place == at));
        let group = Group {
            columns: columns.collect(),
            values: vec![None; channels.len()],
            id: self.file.group(&row.message.name, row.name, channels),
        };
        if self.groups.len() <= row.bus {
            self.groups.resize_with(row.bus + 1, Vec::new);
        }
        let places = &mut self.groups[row.bus];
        if places.len() <= row.place {
            places.resize_with(row.place + 1, || None);
        }
        places[row.place] = Some(group);
    }
}

impl Table for Measurement<'_> {
    fn row(&mut self, row: &Row<'_>) -> failure::Result<()> {
        if !matches!(self.groups.get(row.bus).and_then(|places| places.get(row.place)), Some(Some(_))) {
            self.add(row);
        }
        let Some(group) = &mut self.groups[row.bus][row.place] else { return Ok(()) };
        let start_ns = *self.start_ns.get_or_insert(row.stamp_ns);
        group.values.fill(None);
        let fit = row.message.visit(row.payload, |at, bits| {
            let Some(Some(column)) = group.columns.get(at) else { return };
            let signal = &row.message.signals[at];
            group.values[*column] = Some(match signal.column() {
                Column::Integer => Number::Signed(signal.whole(bits)),
                Column::Unsigned => Number::Unsigned(signal.whole(bits) as u64),
                Column::Float => Number::Double(signal.float(bits)),
            });
        });
        count(&mut self.tallies, row.message, fit);
        // Stamps before the first frame are kept, as negative times.
        let since_ns = row.stamp_ns.wrapping_sub(start_ns).cast_signed();
        let pushed = self.file.push(group.id, since_ns as f64 / 1e9, &group.values);
        pushed.map_err(|error| output_failure(&self.path, error))
    }

    fn finish(self: Box<Self>) -> failure::Result<Tallies> {
        let Some(start_ns) = self.start_ns else {
            return Err(Failure::failed(format!(
                "{}: no signal was decoded: nothing written",
                self.path.display()
            )));
        };
        self.file.finish(start_ns).map_err(|error| output_failure(&self.path, error))?;
        Ok(self.tallies)
    }
}
