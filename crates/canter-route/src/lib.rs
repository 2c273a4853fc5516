//! Gateways between CAN interfaces: [`rules`] choose and change frames, [`gateway`] forwards them by any method, [`traffic`]
//! is what they are tried with, [`canwire`] names virtual wires.
#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "for canter's own crates")]

#[macro_use(eprintln, println)]
extern crate canter_cli;

pub mod canwire;
pub mod gateway;
pub mod rules;
pub mod traffic;
