//! What the benches of canter's user space have in common: the frames that they work on, and the ratio to memcpy by which
//! they state what a frame costs.

pub mod comparison;
pub mod traffic;
