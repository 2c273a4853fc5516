//! Recordings: writing and reading each format, in a file system in memory, from opening to the complete file.

use crate::file;
use canter_benches::{
    comparison::Comparisons,
    traffic::{BUSES, Traffic, interface},
};
use canter_formats::{FORMATS, RawRecord};

/// Measures every format that can be written, of classic and of FD frames.
pub fn bench(comparisons: &mut Comparisons) {
    let folder = file::folder();
    for (kind, traffic) in [("classic", Traffic::classic()), ("FD", Traffic::fd())] {
        for name in writable() {
            let path = folder.path().join(format!("{kind}.{name}"));
            comparisons.measure(&format!("write {name}, {kind}"), &traffic, || {
                file::write(&path, name, &traffic, |_| true);
            });
            file::write(&path, name, &traffic, |_| true);
            comparisons.measure(&format!("read {name}, {kind}"), &traffic, || {
                assert_eq!(file::read(&path), traffic.records.len() as u64);
            });
        }
    }
    append(comparisons, &Traffic::classic());
}

/// The formats that can be written, and one of them compressed.
fn writable() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().filter(|format| format.write.is_some()).map(|format| format.name).chain(["pcapng.zst"])
}

/// Measures what the recorder does of a frame as the kernel wrote it.
fn append(comparisons: &mut Comparisons, traffic: &Traffic) {
    for format in FORMATS.iter().filter(|format| format.append.is_some()) {
        let mut out = Vec::new();
        let make = format.append.expect("rows without it are left out");
        comparisons.measure(&format!("append {}", format.name), traffic, || {
            let mut appender = make(false);
            out.clear();
            appender.begin(&mut out);
            (0..BUSES).for_each(|bus| appender.interface(&mut out, &interface(bus)));
            let frames = traffic.bytes.chunks(traffic.mtu());
            for (record, bytes) in traffic.records.iter().zip(frames) {
                appender.frame(&mut out, &RawRecord::new(record.stamp_ns, record.bus, bytes), false);
            }
        });
    }
}
