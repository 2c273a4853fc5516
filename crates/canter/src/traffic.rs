//! What sends, in one place: when the next frame is due, and what it looks like.

pub mod pattern;
pub mod template;
