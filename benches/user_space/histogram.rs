//! The histogram of latencies: a value of each frame.

use canter_benches::{comparison::Comparisons, traffic::Traffic};
use canter_measure::histogram::Histogram;

/// Measures recording latencies between 1 and 100 µs.
pub fn bench(comparisons: &mut Comparisons) {
    let traffic = Traffic::classic();
    let mut histogram = Histogram::new();
    comparisons.measure("histogram: record", &traffic, || {
        for record in &traffic.records {
            histogram.record(1_000 + (record.stamp_ns % 99_000) as i64);
        }
    });
}
