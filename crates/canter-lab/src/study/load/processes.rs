//! Processes that compute and ask the kernel for nothing: what is left of a processor for everybody else is its share.

use super::row::{LoadCommand, LoadRow};
use std::{hint, io, iter};

/// "10 processes that use all of the processor" (Wapice Custom CAN Driver, table 1).
const PROCESSES: usize = 10;

pub const LOAD: LoadRow = LoadRow {
    name: "busy-processes",
    ethernet: false,
    check: || Ok(()),
    lines: |_| iter::repeat_with(|| LoadCommand::own("busy-process")).take(PROCESSES).collect(),
    work: &[("busy-process", |_| compute())],
};

/// Without `thread::relax`: an emulator leaves its translated code at each of its instructions, and a virtual machine
/// may give the processor away.
fn compute() -> io::Result<()> {
    let mut count = 0u64;
    loop {
        count = hint::black_box(count.wrapping_add(1));
    }
}
