//! The selected frames of recordings, merged: what commands read that only look at them.

use super::{Choice, Files, Inputs, Merge, Outcome, Selection, progress, undated};
use canter_cli::{failure, options::Common};
use canter_frame::{BusId, ControllerStamp, Record};
use indicatif::ProgressBar;
use std::path::PathBuf;

/// Frames between two steps of the progress bar.
const STEP_FRAMES: u64 = 1 << 14;

/// The selected frames.
pub struct Selected<'a> {
    merge: Merge,
    choice: Choice<'a>,
    progress: ProgressBar,
    files: Files,
    zone_given: bool,
}

/// What is known after the last frame.
pub struct Ending {
    pub outcomes: Vec<Outcome>,
    /// Frames that were read, selected or not.
    pub read: u64,
    /// Frames whose stamp is older than that of the frame before.
    pub backwards: u64,
    pub remarks: Vec<String>,
    /// The names of all buses of the recordings, before they were renamed.
    pub names: Vec<String>,
}

impl<'a> Selected<'a> {
    /// Opens the recordings, those of folders too.
    pub fn open(
        command: &str,
        paths: &[PathBuf],
        selection: &'a Selection,
        common: &Common,
    ) -> failure::Result<Self> {
        let choice = Choice::new(selection)?;
        let files = Files::find(paths)?;
        let inputs = Inputs::open(&files.paths, selection.opening())?;
        common.apply()?;
        let progress = progress(command, inputs.size(), common);
        let zone_given = selection.zone.is_some();
        Ok(Self { merge: Merge::new(inputs, None), choice, progress, files, zone_given })
    }

    /// Finds the next selected frame, [`record`](Self::record); `false`: there is none.
    #[inline]
    pub fn next(&mut self) -> failure::Result<bool> {
        while let Some(input) = self.merge.next()? {
            if self.choice.read().is_multiple_of(STEP_FRAMES) {
                self.progress.set_position(self.merge.bytes());
            }
            let chosen = self.choice.bus(input, self.merge.record(), |bus| self.merge.name(input, bus));
            if let Some(bus) = chosen {
                self.merge.put_onto(bus);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The frame that was found last; its bus is that of [`name`](Self::name).
    #[inline]
    pub fn record(&self) -> &Record {
        self.merge.record()
    }

    /// The controller's stamp of the frame that was found last, if its recording has one.
    #[inline]
    pub fn controller_stamp(&self) -> Option<ControllerStamp> {
        self.merge.controller_stamp()
    }

    /// The name of a bus.
    pub fn name(&self, bus: BusId) -> &str {
        self.choice.name(bus)
    }

    /// The names of all buses of the recordings, under their new names. Complete after the last frame.
    pub fn names(&self) -> Vec<String> {
        self.choice.renamed_all(&self.merge)
    }

    /// Closes the recordings after the last frame.
    ///
    /// # Errors
    /// When the options selected nothing.
    pub fn finish(self) -> failure::Result<Ending> {
        self.progress.finish_and_clear();
        self.choice.check(&self.merge, &self.files.paths)?;
        let names = self.merge.names();
        let (read, backwards) = (self.choice.read(), self.merge.backwards());
        let outcomes = self.merge.into_inputs().outcomes();
        let mut remarks: Vec<String> = outcomes.iter().flat_map(|one| one.remarks("not counted")).collect();
        remarks.extend(undated(&outcomes).filter(|_| !self.zone_given));
        if self.files.left_out > 0 {
            let left_out = self.files.left_out;
            remarks.push(format!("{left_out} files of the folder are not named as recordings: left out"));
        }
        if backwards > 0 {
            remarks.push(format!("{backwards} stamps go backwards (canter convert --sort 1s sorts them)"));
        }
        Ok(Ending { outcomes, read, backwards, remarks, names })
    }
}
