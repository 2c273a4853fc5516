//! Mirrors of kernel headers that the libc crate does not have, with their sizes asserted.

pub mod can_gw;
pub mod canbare;
pub mod canchar;
pub mod canprobe;
pub mod canwire;
