//! The seam: the type of a row of `table`, a load.

use super::super::ethernet::Ethernet;
use std::io;

/// A load of the machine, as a row.
pub struct LoadRow {
    /// The name in study files and results.
    pub name: &'static str,
    /// Whether the load needs two network cards.
    pub ethernet: bool,
    /// Why the load cannot work beside a gateway of this machine.
    pub check: fn() -> Result<(), String>,
    /// The commands that make the load; they get the Ethernet, if the load needs one.
    pub lines: fn(Option<&Ethernet>) -> Vec<LoadCommand>,
    /// The work of `canter study load NAME [--to ADDRESS]`; returns only on failure.
    pub work: &'static [(&'static str, Work)],
}

pub type Work = fn(to: Option<&str>) -> io::Result<()>;

/// A command of a load.
pub struct LoadCommand {
    pub words: Vec<String>,
    /// Whether the command runs on the gateway's machine, not on the other one.
    pub on_gateway: bool,
}

/// This program, as a word of a [`LoadCommand`].
pub const CANTER: &str = "canter";

impl LoadCommand {
    pub fn beside_gateway(words: &[&str]) -> Self {
        Self { words: words.iter().map(|&word| word.to_owned()).collect(), on_gateway: true }
    }

    /// The command of this program that does the work of a load.
    pub fn own(work: &str) -> Self {
        Self::beside_gateway(&[CANTER, "study", "load", work])
    }

    pub fn elsewhere(words: Vec<String>) -> Self {
        Self { words, on_gateway: false }
    }
}
