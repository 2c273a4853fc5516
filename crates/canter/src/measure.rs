//! What a measurement leaves behind.

pub mod result;
