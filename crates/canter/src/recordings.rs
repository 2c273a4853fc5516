//! Recordings as one: any number of files, of which only some are open at a time, merged by their stamps.

mod input;
mod merge;
mod outcome;

pub use input::{Inputs, Opening};
pub use merge::Merge;
pub use outcome::{Outcome, undated};
