//! The data of a measurement: stamps of one frame on two buses, a histogram while it runs, a result file when it ends, a profile
//! to draw and what drawings are made of, the verdicts on claims.
#![forbid(unsafe_code)]

pub mod busy;
pub mod drawing;
pub mod environment;
pub mod histogram;
pub mod identity;
pub mod matcher;
pub mod profile;
pub mod result;
pub mod statistics;
pub mod timeline;
pub mod verdicts;
pub mod work;
