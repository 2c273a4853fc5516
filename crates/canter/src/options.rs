//! The command line: every option is defined once, here or in its command's `Arguments`.

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Measures, routes and captures CAN on Linux.
#[derive(Parser)]
#[command(name = "canter", version, propagate_version = true, max_term_width = 100)]
pub struct Options {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

/// What every command understands.
#[derive(Args, Clone, Debug, Default)]
pub struct Common {
    /// Write the result as JSON to FILE (`-`: standard output)
    #[arg(long, value_name = "FILE", global = true, help_heading = "Common options")]
    pub json: Option<PathBuf>,
    /// No progress, no table: only errors
    #[arg(long, short, global = true, help_heading = "Common options")]
    pub quiet: bool,
    /// Run under SCHED_FIFO at this priority (1…99), memory locked
    #[arg(long, value_name = "PRIO", global = true, help_heading = "Common options",
          value_parser = clap::value_parser!(u8).range(1..=99))]
    pub realtime: Option<u8>,
    /// Run on this processor
    #[arg(long, value_name = "N", global = true, help_heading = "Common options")]
    pub cpu: Option<usize>,
    /// Say more; twice: say everything
    #[arg(long, short, action = clap::ArgAction::Count, global = true, help_heading = "Common options")]
    pub verbose: u8,
}

#[derive(Subcommand)]
pub enum Command {
    Lab(crate::lab::Arguments),
    Report(crate::report::Arguments),
}
