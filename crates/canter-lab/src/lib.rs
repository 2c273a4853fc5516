//! canter's laboratory: [`lab`] is a machine with CAN that needs no CAN hardware, [`meter`] measures gateways, [`study`] repeats
//! the papers' experiments, [`report`] shows what came out.
#![forbid(unsafe_code)]

#[macro_use(eprint, eprintln, print, println)]
extern crate canter_cli;

mod analyzer;
pub mod lab;
pub mod meter;
pub mod report;
pub mod study;
