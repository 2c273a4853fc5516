//! What a measurement leaves behind: a histogram while it runs, a result file when it ends, a profile to look at, the verdicts on claims.

pub mod busy;
pub mod environment;
pub mod histogram;
pub mod profile;
pub mod result;
pub mod statistics;
pub mod timeline;
pub mod verdicts;
