//! The data of a measurement: a histogram while it runs, a result file when it ends, a profile to draw, the verdicts on claims.
#![forbid(unsafe_code)]

pub mod busy;
pub mod environment;
pub mod histogram;
pub mod identity;
pub mod profile;
pub mod result;
pub mod statistics;
pub mod timeline;
pub mod verdicts;
