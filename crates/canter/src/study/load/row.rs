//! The seam: what a load is. `table` has a row for each.

use super::super::ethernet::Ethernet;
use std::io;

/// A load.
pub struct Row {
    /// As study files and results have it.
    pub name: &'static str,
    /// Needs two network cards.
    pub ethernet: bool,
    /// The commands that make the load; the Ethernet is there when the load needs one.
    pub lines: fn(Option<&Ethernet>) -> Vec<Line>,
    /// What this program does as `canter study load NAME [--to ADDRESS]`; returns only when something fails.
    pub work: &'static [(&'static str, Work)],
}

pub type Work = fn(to: Option<&str>) -> io::Result<()>;

/// A command of a load.
pub struct Line {
    pub words: Vec<String>,
    /// Runs beside the gateway, not on the other machine.
    pub on_gateway: bool,
}

/// This program, as a word of a [`Line`].
pub const CANTER: &str = "canter";

impl Line {
    pub fn beside_gateway(words: &[&str]) -> Self {
        Self { words: words.iter().map(|&word| word.to_owned()).collect(), on_gateway: true }
    }

    /// This program doing one of the load's works.
    pub fn own(work: &str) -> Self {
        Self::beside_gateway(&[CANTER, "study", "load", work])
    }

    pub fn elsewhere(words: Vec<String>) -> Self {
        Self { words, on_gateway: false }
    }
}
