//! The options that all commands share. The other options of a command are in its `Arguments`, so every option is defined
//! once.

use crate::{
    failure::{self, Failure},
    trouble, whole_file,
};
use canter_io::{Error, Filters, InterfaceFilters, TextError, thread};
use clap::Args;
use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// The common options.
#[derive(Args, Clone, Debug, Default)]
pub struct Common {
    /// Write the result as JSON to FILE (`-`: standard output)
    #[arg(long, value_name = "FILE", global = true, help_heading = "Common options")]
    pub json: Option<PathBuf>,
    /// Print errors only: no progress, no table
    #[arg(long, short, global = true, help_heading = "Common options")]
    pub quiet: bool,
    /// Run under SCHED_FIFO at this priority (1…99) with locked memory; observers run at priority 1
    #[arg(long, value_name = "PRIO", global = true, help_heading = "Common options",
          value_parser = clap::value_parser!(u8).range(1..=99))]
    pub realtime: Option<u8>,
    /// Run on this processor
    #[arg(long, value_name = "N", global = true, help_heading = "Common options")]
    pub cpu: Option<usize>,
    /// Print more; twice: print everything
    #[arg(long, short, action = clap::ArgAction::Count, global = true, help_heading = "Common options")]
    pub verbose: u8,
}

/// Reads filters of a command whose interfaces are arguments of their own.
pub fn parse_filters(text: &str) -> Result<Filters, String> {
    text.parse().map_err(|error: TextError| match InterfaceFilters::parse(text) {
        Ok(one) if text.contains(',') => {
            format!(
                "{text:?} begins with an interface: only filters belong here (leave out {:?})",
                one.interface
            )
        }
        _ => format!("{text:?}: {error}"),
    })
}

impl Common {
    /// Applies `--cpu` and `--realtime` to the calling thread and to all threads that it starts later. Before that,
    /// refuses a result file that cannot be written: the user learns it before the measurement, not after.
    pub fn apply(&self) -> failure::Result<()> {
        self.refuse_unwritable()?;
        if let Some(processor) = self.cpu {
            thread::pin(processor).map_err(|error| {
                let error = Error::new(format!("--cpu {processor}"), "pin", error);
                Failure::unable(error.hint("nproc prints the number of processors").to_string())
            })?;
        }
        if let Some(priority) = self.realtime {
            thread::lock_memory().and_then(|()| thread::set_realtime(priority)).map_err(|error| {
                let error = Error::new(format!("--realtime {priority}"), "set", error);
                let way_out = "needs CAP_SYS_NICE and CAP_IPC_LOCK: run as root";
                Failure::unable(error.hint(way_out).to_string())
            })?;
        }
        Ok(())
    }

    /// The file of `--json`; `None` without the option or when it is the standard output.
    fn json_file(&self) -> Option<&Path> {
        self.json.as_deref().filter(|path| path.as_os_str() != "-")
    }

    fn refuse_unwritable(&self) -> failure::Result<()> {
        let Some(path) = self.json_file() else { return Ok(()) };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if path.is_dir() {
            return Err(unwritten(path, io::ErrorKind::IsADirectory.into()));
        }
        fs::metadata(folder).map(drop).map_err(|error| unwritten(path, error))
    }

    /// Whether to print a table to the standard output: not with `--quiet` and not with `--json -`.
    pub fn shows_table(&self) -> bool {
        !self.quiet && self.json.as_ref().is_none_or(|path| path.as_os_str() != "-")
    }

    /// Writes a result's text to the file of `--json`, if given: whole or not at all.
    pub fn write_result(&self, text: &str) -> failure::Result<()> {
        match self.json_file() {
            // A device or a pipe must not be replaced by a file.
            Some(path) if path.is_file() || !path.exists() => {
                whole_file::write(path, "write the result", text)
            }
            _ => self.write_text(text),
        }
    }

    /// Writes `document` to the file of `--json`, if given.
    pub fn write_json(&self, document: &impl serde::Serialize) -> failure::Result<()> {
        if self.json.is_none() {
            return Ok(());
        }
        let text = serde_json::to_string_pretty(document)
            .map_err(|error| Failure::failed(format!("--json: {error}")))?;
        self.write_text(&(text + "\n"))
    }

    fn write_text(&self, text: &str) -> failure::Result<()> {
        match (&self.json, self.json_file()) {
            (None, _) => Ok(()),
            (_, Some(path)) => fs::write(path, text).map_err(|error| unwritten(path, error)),
            (Some(dash), None) => {
                io::stdout().write_all(text.as_bytes()).map_err(|error| unwritten(dash, error))
            }
        }
    }
}

fn unwritten(path: &Path, error: io::Error) -> Failure {
    trouble::file_failure(path, "write", error)
}
