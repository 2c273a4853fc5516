//! Results become one page and a terminal summary. Reads only result files.

use crate::{failure, options::Common};
use clap::Args;
use std::path::PathBuf;

/// Make one self-contained page of result files
#[derive(Args)]
pub struct Arguments {
    /// Result files, or folders of them
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// Where the page goes
    #[arg(long, short, default_value = "report.html")]
    output: PathBuf,
}

pub fn run(_arguments: Arguments, _common: &Common) -> failure::Result {
    Err(failure::Failure::unable("report: not there yet"))
}
