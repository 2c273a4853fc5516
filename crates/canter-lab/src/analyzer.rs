//! The analyzer as a program in the guest sees it: a plugin of QEMU (carried/analyzer/analyzer.c) that executes no instruction
//! of the guest. `symbols` tells the plugin the kernel's functions, whose `stage` is a row of a table; `session` opens and
//! closes windows; `window` is what the plugin has seen in one; `account` makes the ways of frames of it, `profile` a list of
//! functions, and `board` of the `work` of each the time where caches take some.

pub mod account;
pub mod board;
mod elf;
pub mod profile;
pub mod session;
pub mod stage;
pub mod symbols;
pub mod window;
