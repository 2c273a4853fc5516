//! What a measurement leaves behind: a histogram while it runs, a result file when it ends, a profile to look at, the verdicts on claims.
#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "for canter's own crates")]

pub mod busy;
pub mod environment;
pub mod histogram;
pub mod identity;
pub mod profile;
pub mod result;
pub mod statistics;
pub mod timeline;
pub mod verdicts;
