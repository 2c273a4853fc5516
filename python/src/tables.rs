//! Recordings as tables of Arrow: `canter.read` and `canter.decode`. Frames become columns here, and Python gets the
//! columns by Arrow's C data interface, so no frame and no value is ever a Python object.

mod columns;
mod recording;
mod signals;

use arrow_array::{RecordBatch, RecordBatchIterator, ffi_stream::FFI_ArrowArrayStream};
use arrow_schema::SchemaRef;
use columns::Columns;
use pyo3::{
    exceptions::{PyOSError, PyValueError},
    prelude::*,
    types::PyCapsule,
};
use recording::{Moment, Recording, Selection};
use signals::Signals;
use std::{collections::HashMap, io};

/// Frames that are read between two looks for signals of the process, such as Ctrl-C.
const CHECK_FRAMES: usize = 1 << 18;

/// A table, which pyarrow and other libraries take by the Arrow PyCapsule interface.
#[pyclass(frozen, module = "canter._native")]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }
}

#[pymethods]
impl Table {
    /// The stream of the table's batches; the requested schema is a wish that the interface allows to ignore.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }
}

/// What Python chose of a recording: buses, and times in ns, each since 1970 or since the first frame.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Choice {
    buses: Option<Vec<String>>,
    start: Option<(bool, u64)>,
    end: Option<(bool, u64)>,
    salvage: bool,
    zone: Option<String>,
}

impl Choice {
    fn selection(self) -> PyResult<Selection> {
        let moment =
            |(since_first, ns)| if since_first { Moment::SinceFirst(ns) } else { Moment::Absolute(ns) };
        let zone = self.zone.map(|text| text.parse().map_err(|error| format!("zone: {text:?}: {error}")));
        Ok(Selection {
            buses: self.buses,
            start: self.start.map(moment),
            end: self.end.map(moment),
            salvage: self.salvage,
            zone: zone.transpose().map_err(PyValueError::new_err)?,
        })
    }
}

/// The frames of a recording as a table, and remarks about the recording.
#[pyfunction]
pub fn read(py: Python<'_>, path: std::path::PathBuf, choice: Choice) -> PyResult<(Table, Vec<String>)> {
    let selection = choice.selection()?;
    let mut recording = py.detach(|| Recording::open(&path, &selection)).map_err(refused)?;
    let mut columns = Columns::default();
    while py.detach(|| recording.take(CHECK_FRAMES, |record| columns.push(record))).map_err(refused)? {
        py.check_signals()?;
    }
    recording.refuse_unknown_bus().map_err(PyValueError::new_err)?;
    let (schema, batches) =
        columns.finish(recording.names()).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((Table::new(schema, batches), recording.remarks("not read")))
}

/// The decoded tables by message, the frames that a database knows, all data frames, and remarks.
type Decoded = (Vec<(String, Table)>, u64, u64, Vec<String>);

/// The signals of a recording: a table for each message. `databases` are files, each with its bus or for all buses.
#[pyfunction]
pub fn decode(
    py: Python<'_>,
    path: std::path::PathBuf,
    databases: Vec<(Option<String>, std::path::PathBuf)>,
    signals: Option<Vec<String>>,
    choice: Choice,
) -> PyResult<Decoded> {
    let selection = choice.selection()?;
    let open = |(bus, path): &(Option<String>, std::path::PathBuf)| {
        let database = canter_signals::Database::open(path).map_err(|error| match error {
            canter_signals::DatabaseError::Io(_, ref source) => system(source, &error),
            _ => PyValueError::new_err(format!("{error} (is it a DBC?)")),
        })?;
        let remarks: Vec<String> =
            database.remarks.iter().map(|remark| format!("{}: {remark}", path.display())).collect();
        Ok(((bus.clone(), database), remarks))
    };
    let opened: Vec<_> = databases.iter().map(open).collect::<PyResult<_>>()?;
    let (databases, remarks): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
    let mut remarks: Vec<String> = remarks.into_iter().flatten().collect();
    let mut recording = py.detach(|| Recording::open(&path, &selection)).map_err(refused)?;
    let mut decoder = Signals::new(&databases, signals.as_deref()).map_err(PyValueError::new_err)?;
    while py
        .detach(|| recording.take_named(CHECK_FRAMES, |name, record| decoder.push(name, record)))
        .map_err(refused)?
    {
        py.check_signals()?;
    }
    recording.refuse_unknown_bus().map_err(PyValueError::new_err)?;
    remarks.extend(recording.remarks("not decoded"));
    remarks.extend(decoder.remarks());
    let (known, frames) = decoder.counts();
    let names = recording.names().to_vec();
    let tables = py.detach(|| decoder.finish(&names));
    let tables = tables.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let tables = unique_names(tables).into_iter();
    let tables = tables.map(|(name, (schema, batches))| (name, Table::new(schema, batches))).collect();
    Ok((tables, known, frames, remarks))
}

/// Names by which each table is found: where two messages have one name, the later one's has its number.
fn unique_names<T>(tables: Vec<(String, T)>) -> Vec<(String, T)> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let unique = |(name, table): (String, T)| {
        let count = seen.entry(name.clone()).and_modify(|count| *count += 1).or_insert(1);
        let name = if *count > 1 { format!("{name} {count}") } else { name };
        (name, table)
    };
    tables.into_iter().map(unique).collect()
}

/// The exception of a recording that cannot be read: OSError with its errno, or ValueError.
fn refused(error: canter_formats::Error) -> PyErr {
    match &error {
        canter_formats::Error::Io { source, .. } => system(source, &error),
        _ => PyValueError::new_err(error.to_string()),
    }
}

fn system(source: &io::Error, error: &dyn std::fmt::Display) -> PyErr {
    match source.raw_os_error() {
        Some(number) => PyOSError::new_err((number, error.to_string())),
        None => PyOSError::new_err(error.to_string()),
    }
}
