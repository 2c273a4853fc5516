//! What canter's user space costs a frame, in ratios to memcpy: `make bench-user-space`. No CAN is needed.

mod batch;
mod file;
mod formats;
mod histogram;
mod merge;
mod ring;
mod rules;
mod signals;

use canter_benches::comparison::Comparisons;
use std::io;

fn main() -> io::Result<()> {
    let mut comparisons = Comparisons::new();
    for bench in [
        batch::bench,
        ring::bench,
        rules::bench,
        signals::bench,
        formats::bench,
        merge::bench,
        histogram::bench,
    ] {
        bench(&mut comparisons);
    }
    comparisons.finish()
}
