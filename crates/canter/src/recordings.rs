//! Recordings as one: any number of files, of which only some are open at a time, merged by their stamps.

mod folder;
mod frame_filter;
mod input;
mod merge;
mod outcome;
mod progress;
mod selected;
mod selection;
mod time_point;

pub use folder::Files;
pub use frame_filter::{FrameFilter, parse_filters};
pub use input::{Inputs, Opening, natural_order};
pub use merge::Merge;
pub use outcome::{Outcome, undated};
pub use progress::progress;
pub use selected::{Ending, Selected};
pub use selection::{Choice, Selection, identifier, utc};
pub use time_point::TimePoint;
