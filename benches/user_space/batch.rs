//! A gateway's batches: frames in, and some of them out.

use canter_benches::{comparison::Comparisons, traffic::Traffic};
use canter_io::{
    Batch,
    batch::{BATCH_FRAMES, Meta},
};

/// Measures batches, of classic and of FD frames.
pub fn bench(comparisons: &mut Comparisons) {
    for (kind, traffic) in [("classic", Traffic::classic()), ("FD", Traffic::fd())] {
        let mut batch = Batch::new(BATCH_FRAMES);
        comparisons.measure(&format!("batch: push, {kind}"), &traffic, || {
            for records in traffic.records.chunks(BATCH_FRAMES) {
                batch.clear();
                for record in records {
                    let meta = Meta { stamp_ns: record.stamp_ns, ..Meta::default() };
                    batch.push(&record.frame, meta);
                }
            }
        });
        comparisons.measure(&format!("batch: push, retain half, {kind}"), &traffic, || {
            for records in traffic.records.chunks(BATCH_FRAMES) {
                batch.clear();
                records.iter().for_each(|record| batch.push(&record.frame, Meta::default()));
                batch.retain(|frame, _| frame.data[0] % 2 == 0);
            }
        });
    }
}
