//! The frames that all benches work on: a second of a car with 20 buses, the same in every run.

use canter_formats::{BusId, Frame, Identifier, Record};

/// The number of buses.
pub const BUSES: u32 = 20;
/// Frames of a second on all buses.
pub const FRAMES: usize = 20_000;
/// Identifiers of a bus.
const IDENTIFIERS: u32 = 50;
/// The buses from this one on have extended identifiers.
const EXTENDED_FROM: u32 = 18;
/// The stamp of the first frame, in nanoseconds since 1970.
const START_NS: u64 = 1_700_000_000_000_000_000;
const PERIOD_NS: u64 = 50_000;
/// A frame is later than its place in the period by less than this, so that frames stay in order.
const JITTER_NS: u64 = 40_000;

/// The frames, and the same as memcpy gets them.
pub struct Traffic {
    /// The frames in the order of their stamps.
    pub records: Vec<Record>,
    /// The frames as `struct can_frame` or `struct canfd_frame`, one behind the other.
    pub bytes: Vec<u8>,
}

/// Numbers that look random and are the same in every run (xorshift64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

impl Traffic {
    /// Classic frames of 8 bytes, one of each bus in turn.
    pub fn classic() -> Self {
        Self::new(1, |_| 8, Frame::classic)
    }

    /// FD frames of 8 to 64 bytes, one of each bus in turn.
    pub fn fd() -> Self {
        let lengths = [8, 16, 32, 64];
        Self::new(
            1,
            move |number| lengths[number as usize % lengths.len()],
            |id, data| Frame::fd(id, data, 0),
        )
    }

    /// Classic frames of 8 bytes, `run` of a bus before the next bus.
    pub fn in_runs(run: u32) -> Self {
        Self::new(run, |_| 8, Frame::classic)
    }

    fn new<E: std::fmt::Debug>(
        run: u32,
        length: impl Fn(u32) -> usize,
        frame: impl Fn(Identifier, &[u8]) -> Result<Frame, E>,
    ) -> Self {
        let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
        let records: Vec<Record> = (0..FRAMES as u32)
            .map(|at| {
                let (bus, turn) = (at / run % BUSES, at / (run * BUSES) * run + at % run);
                let number = turn % IDENTIFIERS;
                let data = payload(turn, number, numbers.next());
                let frame = frame(identifier(bus, number), &data[..length(number)]);
                Record {
                    stamp_ns: START_NS + u64::from(at) * PERIOD_NS + numbers.next() % JITTER_NS,
                    bus: BusId(bus),
                    frame: frame.expect("the identifier and the length fit"),
                    direction: None,
                }
            })
            .collect();
        let bytes = records.iter().flat_map(|record| kernel_bytes(&record.frame)).collect();
        Self { records, bytes }
    }

    /// The bytes of a frame in `bytes`.
    pub fn mtu(&self) -> usize {
        self.bytes.len() / self.records.len()
    }
}

/// The interface of a bus.
pub fn interface(bus: u32) -> String {
    format!("can{bus}")
}

/// The identifier of this number on a bus; no other bus has it.
pub fn identifier(bus: u32, number: u32) -> Identifier {
    let unique = 0x100 + bus * IDENTIFIERS + number;
    if bus < EXTENDED_FROM { Identifier::Sff(unique as u16) } else { Identifier::Eff(0x18FE_0000 | unique) }
}

/// The identifiers of all buses.
pub fn identifiers() -> impl Iterator<Item = Identifier> {
    (0..BUSES).flat_map(|bus| (0..IDENTIFIERS).map(move |number| identifier(bus, number)))
}

/// A counter, a value that moves, a checksum, and much that stays: the shape of a car's payloads.
fn payload(turn: u32, number: u32, random: u64) -> [u8; 64] {
    let mut data = [number as u8; 64];
    data[0] = (turn / IDENTIFIERS) as u8;
    data[1..3].copy_from_slice(&(2000 + (random % 16) as u16).to_be_bytes());
    data[7] = (random >> 32) as u8;
    data
}

fn kernel_bytes(frame: &Frame) -> Vec<u8> {
    frame.kernel_bytes()[..frame.mtu()].to_vec()
}
