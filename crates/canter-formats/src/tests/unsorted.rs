//! MDF4 as loggers leave it: unfinished, with records of several groups one behind the other, payloads of variable length, and
//! cut off at any byte.

use super::seen;

/// A block: its type, its links and its data.
fn block(kind: &[u8; 2], links: &[u64], data: &[u8]) -> Vec<u8> {
    let length = 24 + 8 * links.len() + data.len();
    let mut block = [b"##", &kind[..], &[0; 4]].concat();
    block.extend((length as u64).to_le_bytes());
    block.extend((links.len() as u64).to_le_bytes());
    links.iter().for_each(|link| block.extend(link.to_le_bytes()));
    block.extend_from_slice(data);
    block.resize(block.len().next_multiple_of(8), 0);
    block
}

/// A file that grows, whose blocks know their offsets.
struct Growing(Vec<u8>);

impl Growing {
    fn put(&mut self, block: Vec<u8>) -> u64 {
        let at = self.0.len() as u64;
        self.0.extend(block);
        at
    }

    fn text(&mut self, text: &str) -> u64 {
        self.put(block(b"TX", &[], &[text.as_bytes(), &[0]].concat()))
    }

    /// A channel: kind, type, bit, byte, bits.
    fn channel(&mut self, next: u64, name: &str, place: [u32; 5], links: [u64; 3]) -> u64 {
        let [kind, data, bit, byte, bits] = place;
        let [members, conversion, values] = links;
        let name = self.text(name);
        let mut body = vec![kind as u8, u8::from(kind == 2), data as u8, bit as u8];
        [byte, bits, 0, 0].iter().for_each(|word| body.extend(word.to_le_bytes()));
        body.extend([0; 52]);
        self.put(block(b"CN", &[next, members, name, 0, conversion, values, 0, 0], &body))
    }

    fn group(&mut self, next: u64, first: u64, id: u64, flags: u16, bytes: u32) -> u64 {
        let mut body = [id.to_le_bytes(), [0; 8]].concat();
        body.extend(flags.to_le_bytes());
        body.extend([0; 6]);
        body.extend(bytes.to_le_bytes());
        body.extend([0; 4]);
        self.put(block(b"CG", &[next, first, 0, 0, 0, 0], &body))
    }
}

/// The records of a file: a frame of identifier 0x123 + n with n + 1 bytes, its payload, and after the second an error frame.
fn records(frames: u8) -> Vec<u8> {
    let (mut records, mut offset) = (Vec::new(), 0u64);
    for n in 0..frames {
        records.push(1);
        records.extend((f64::from(n) * 1e9).to_le_bytes());
        records.extend((0x123 + u32::from(n)).to_le_bytes());
        records.extend(offset.to_le_bytes());
        records.push(n + 1);
        records.push(2);
        records.extend(u32::from(n + 1).to_le_bytes());
        records.extend(vec![0xA0 | n; usize::from(n) + 1]);
        offset += 4 + u64::from(n) + 1;
        if n == 1 {
            records.push(3);
            records.extend((1.5e9f64).to_le_bytes());
            records.push(0);
        }
    }
    records
}

/// An unfinished file with these records: the bus of all frames is a constant, the time counts in ns.
fn file(records: &[u8]) -> Vec<u8> {
    let mut file = Growing(b"UnFinMF 4.11    logger  ".to_vec());
    file.0.extend([0, 0, 0, 0, 0x9B, 1]);
    file.0.resize(64, 0);
    file.0[60] = 0x25;
    let head = file.put(block(b"HD", &[0; 6], &[0; 32])) as usize;
    let linear = |a: f64, b: f64| {
        let mut body = vec![1, 0, 0, 0, 0, 0, 2, 0];
        body.extend([0; 16]);
        body.extend(a.to_le_bytes());
        body.extend(b.to_le_bytes());
        block(b"CC", &[0; 4], &body)
    };
    let (in_ns, third) = (file.put(linear(0.0, 1e-9)), file.put(linear(3.0, 0.0)));
    let payloads = file.group(0, 0, 2, 1, 0);
    let name = |part: &str| format!("CAN_DataFrame.{part}");
    let data = file.channel(0, &name("DataBytes"), [1, 10, 0, 12, 64], [0, 0, payloads]);
    let length = file.channel(data, &name("DataLength"), [0, 0, 0, 20, 8], [0; 3]);
    let id = file.channel(length, &name("ID"), [0, 0, 0, 8, 32], [0; 3]);
    let bus = file.channel(id, &name("BusChannel"), [6, 0, 0, 0, 0], [0, third, 0]);
    let frame = file.channel(0, "CAN_DataFrame", [0, 10, 0, 8, 104], [bus, 0, 0]);
    let time = file.channel(frame, "Timestamp", [2, 4, 0, 0, 64], [0, in_ns, 0]);
    let frames = file.group(payloads, time, 1, 6, 21);
    let kind = file.channel(0, "CAN_ErrorFrame.ErrorType", [0, 0, 0, 8, 8], [0; 3]);
    let error = file.channel(0, "CAN_ErrorFrame", [0, 10, 0, 8, 8], [kind, 0, 0]);
    let time = file.channel(error, "Timestamp", [2, 4, 0, 0, 64], [0, in_ns, 0]);
    let errors = file.group(frames, time, 3, 6, 9);
    let mut group = vec![1];
    group.resize(8, 0);
    let list = file.put(block(b"DG", &[0, errors, 0, 0], &group)) as usize;
    let data = file.put(block(b"DT", &[], &[]));
    file.0[head + 24..head + 32].copy_from_slice(&(list as u64).to_le_bytes());
    file.0[list + 40..list + 48].copy_from_slice(&data.to_le_bytes());
    file.0.extend_from_slice(records);
    file.0
}

const EXPECTED: [&str; 5] = [
    "0 can2 123#A0",
    "1000 can2 124#A1A1",
    "1500 can0 20000080#0000000000000000",
    "2000 can2 125#A2A2A2",
    "3000 can2 126#A3A3A3A3",
];

fn lines(bytes: &[u8]) -> Vec<String> {
    let frames = seen(bytes).frames;
    frames.iter().map(|(stamp, bus, frame, _)| format!("{} {bus} {frame}", stamp / 1_000_000)).collect()
}

#[test]
fn an_unfinished_unsorted_file_is_read_as_it_was_logged() {
    let bytes = file(&records(4));
    assert_eq!(lines(&bytes), EXPECTED);
    let all = seen(&bytes);
    assert!(!all.cut && all.error.is_none(), "{:?}", all.error);
}

#[test]
fn a_file_that_ends_anywhere_has_its_whole_records_and_is_reported() {
    let (records, head) = (records(4), file(&[]).len());
    let bytes = file(&records);
    let mut boundaries = 0;
    for end in 0..=records.len() {
        let cut = seen(&bytes[..head + end]);
        assert!(cut.error.is_none(), "{end}: {:?}", cut.error);
        let found = lines(&bytes[..head + end]);
        assert_eq!(found, EXPECTED[..found.len()], "{end}");
        // A frame without its payload is no whole record.
        boundaries += u32::from(!cut.cut);
    }
    assert_eq!(boundaries, 6, "before the first record and behind each of five");
}

#[test]
fn zeros_of_a_power_cut_are_a_cut() {
    let bytes = [file(&records(4)), vec![0; 100]].concat();
    assert_eq!(lines(&bytes), EXPECTED);
    assert!(seen(&bytes).cut);
}

#[test]
fn no_damage_makes_it_panic_or_mixes_payloads() {
    let bytes = file(&records(4));
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7F, 0xFF, bytes[at] ^ 1] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            let _ = seen(&damaged);
        }
    }
    let mut records = records(4);
    let offset = 14 + 21 + 5 + 1 - 7; // of the second frame's payload
    records[offset] ^= 1;
    let damaged = seen(&file(&records));
    assert!(
        damaged.error.is_some()
            || damaged
                .frames
                .iter()
                .all(|(_, _, frame, _)| frame.data().iter().all(|byte| *byte & 0xF0 == 0xA0 || *byte == 0))
    );
}
