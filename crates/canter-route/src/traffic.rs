//! Traffic: when the next frame is due, its content, and how it is sent in time.

pub mod assignment;
pub mod car;
pub mod content;
pub mod pattern;
pub mod random;
pub mod recipe;
pub mod schedule;
pub mod sender;
pub mod source;
pub mod template;
