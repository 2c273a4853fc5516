//! Where frames come from: recordings, merged by stamp, or interfaces.

use crate::{
    live::Source,
    recordings::{Ending, Selected, Selection},
};
use canter_cli::{
    failure::{self, Exit, Failure},
    options::Common,
    trouble::refuse_down,
};
use canter_frame::{BusId, Record};
use canter_io::{Filters, Interface};
use std::path::{Path, PathBuf};

/// Longest wait for frames before a check of signals.
const CHECK_PERIOD_NS: u64 = 50_000_000;

pub enum Frames<'a> {
    Recordings(Box<Selected<'a>>),
    Interfaces(Live),
}

pub struct Live {
    source: Source,
    /// The interfaces with the filters of their frames, as [`Selection::filters_of`] answers them.
    interfaces: Vec<(Interface, Option<Vec<Filters>>)>,
}

impl<'a> Frames<'a> {
    /// Opens the inputs: all are recordings, or all are interfaces.
    pub fn open(
        command: &str,
        inputs: &[PathBuf],
        selection: &'a Selection,
        common: &Common,
    ) -> failure::Result<Self> {
        let is_interface = |path: &&PathBuf| is_interface(path);
        let interfaces: Vec<_> = inputs.iter().filter(is_interface).collect();
        if interfaces.is_empty() {
            let selected = Selected::open(command, inputs, selection, common)?;
            return Ok(Self::Recordings(Box::new(selected)));
        }
        if let Some(recording) = inputs.iter().find(|path| !is_interface(path)) {
            let reason = format!("{}: is a recording beside interfaces (decode either)", recording.display());
            return Err(Failure::new(Exit::Usage, reason));
        }
        if selection.from.is_some() || selection.to.is_some() {
            return Err(Failure::new(
                Exit::Usage,
                "--from and --to select frames of recordings, not of interfaces",
            ));
        }
        let find = |path: &PathBuf| -> failure::Result<Interface> {
            let interface = Interface::find(&path.to_string_lossy())?;
            refuse_down(&interface)?;
            Ok(interface)
        };
        let interfaces: Vec<Interface> = interfaces.into_iter().map(find).collect::<Result<_, _>>()?;
        let has_sockets = interfaces.iter().any(|interface| !interface.name.starts_with("/dev/"));
        let mut source = Source::open(has_sockets)?;
        source.follow(&interfaces)?;
        common.apply()?;
        let selected = |interface: Interface| {
            let filters = selection.filters_of(&interface.name);
            (interface, filters)
        };
        let interfaces = interfaces.into_iter().map(selected).collect();
        Ok(Self::Interfaces(Live { source, interfaces }))
    }

    /// Passes the next frames with the number and the name of their bus; `None` after the last one.
    #[inline]
    pub fn next(
        &mut self,
        mut take: impl FnMut(usize, &str, &Record) -> failure::Result<()>,
    ) -> failure::Result<Option<()>> {
        match self {
            Self::Recordings(selected) => {
                if !selected.next()? {
                    return Ok(None);
                }
                let record = selected.record();
                take(record.bus.index(), selected.name(record.bus), record)?;
                Ok(Some(()))
            }
            Self::Interfaces(live) => live.next(take),
        }
    }

    pub fn is_live(&self) -> bool {
        matches!(self, Self::Interfaces(_))
    }

    /// What is known of the recordings after the last frame.
    pub fn finish(self) -> failure::Result<Option<Ending>> {
        match self {
            Self::Recordings(selected) => selected.finish().map(Some),
            Self::Interfaces(_) => Ok(None),
        }
    }
}

impl Live {
    fn next(
        &mut self,
        mut take: impl FnMut(usize, &str, &Record) -> failure::Result<()>,
    ) -> failure::Result<Option<()>> {
        let Self { source, interfaces } = self;
        let mut failed = None;
        source.next(CHECK_PERIOD_NS, |received| {
            let place = interfaces.iter().position(|(one, _)| one.index == received.interface);
            let Some(bus) = place else { return };
            let (interface, filters) = &interfaces[bus];
            let passes =
                |all: &Vec<Filters>| all.is_empty() || all.iter().any(|one| one.matches(&received.frame));
            let is_selected = filters.as_ref().is_some_and(passes);
            if failed.is_none() && is_selected {
                let (stamp_ns, frame) = (received.stamp_ns, received.frame);
                let record = Record { stamp_ns, bus: BusId(bus as u32), frame, direction: None };
                failed = take(bus, &interface.name, &record).err();
            }
        })?;
        failed.map_or(Ok(Some(())), Err)
    }
}

/// Whether a word names an interface: a file of that name comes first.
fn is_interface(path: &Path) -> bool {
    let name = path.to_string_lossy();
    name.starts_with("/dev/can") || (!path.exists() && name != "-" && Interface::find(&name).is_ok())
}
