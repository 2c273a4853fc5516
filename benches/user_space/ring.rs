//! A recorder's ring in memory: the frames of blocks as the kernel lays them out (`TPACKET_V3`).

use canter_benches::{comparison::Comparisons, traffic::Traffic};
use canter_io::capture_ring::{BLOCK_BYTES, Block};
use std::hint::black_box;

/// `struct tpacket_block_desc`: the number of frames, and where the first is.
const COUNT_AT: usize = 12;
const FIRST_AT: usize = 16;
const FIRST: usize = 48;
/// `struct tpacket3_hdr` and the address: of each frame's place the next one, the stamp, the length, the start, the interface.
const NEXT_AT: usize = 0;
const STAMP_AT: usize = 4;
const LENGTH_AT: usize = 12;
const START_AT: usize = 24;
const INTERFACE_AT: usize = 52;
const HEADER_BYTES: usize = 96;

/// Measures reading a second of traffic, of classic and of FD frames.
pub fn bench(comparisons: &mut Comparisons) {
    for (kind, traffic) in [("classic", Traffic::classic()), ("FD", Traffic::fd())] {
        let ring = ring(&traffic);
        let captured = || {
            ring.chunks_exact(BLOCK_BYTES).flat_map(|bytes| Block::in_memory(bytes, kind == "FD").records())
        };
        assert!(captured().map(|one| one.frame()).eq(traffic.records.iter().map(|record| record.frame)));
        comparisons.measure(&format!("ring: read, {kind}"), &traffic, || {
            for one in captured() {
                black_box((one.stamp_ns, one.interface, one.frame()));
            }
        });
    }
}

/// The frames in blocks, one block behind the other.
fn ring(traffic: &Traffic) -> Vec<u8> {
    let mtu = traffic.mtu();
    let place = (HEADER_BYTES + mtu).next_multiple_of(16);
    let frames: Vec<_> = traffic.records.iter().zip(traffic.bytes.chunks_exact(mtu)).collect();
    let blocks = frames.chunks((BLOCK_BYTES - FIRST) / place);
    blocks
        .flat_map(|frames| {
            let mut block = vec![0; BLOCK_BYTES];
            put(&mut block, COUNT_AT, frames.len() as u32);
            put(&mut block, FIRST_AT, FIRST as u32);
            for (place, (record, bytes)) in block[FIRST..].chunks_exact_mut(place).zip(frames) {
                put(place, NEXT_AT, place.len() as u32);
                put(place, STAMP_AT, (record.stamp_ns / 1_000_000_000) as u32);
                put(place, STAMP_AT + 4, (record.stamp_ns % 1_000_000_000) as u32);
                put(place, LENGTH_AT, mtu as u32);
                put(place, START_AT, HEADER_BYTES as u32);
                put(place, INTERFACE_AT, 1);
                place[HEADER_BYTES..HEADER_BYTES + mtu].copy_from_slice(bytes);
            }
            block
        })
        .collect()
}

fn put(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
}
