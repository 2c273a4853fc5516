//! Four senders race on a wire and on the simulated bus of canter-io's tests: frames and their times must be equal to the
//! nanosecond.

use super::*;

/// Numbers by chance, the same for a seed (SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % bound
    }

    /// A random frame of a sender. No other sender has its identifiers: two nodes must not send the same one.
    fn frame(&mut self, sender: u64) -> Frame {
        let base = self.below(16) as u32 * 8 + sender as u32 + 0x100;
        let id = match self.below(2) {
            0 => Identifier::Sff(base as u16),
            _ => Identifier::Eff(base << 18 | self.below(4) as u32),
        };
        let data: Vec<u8> = (0..self.below(9))
            .map(|_| [0, 0xff, 0x55, self.below(256) as u8][self.below(4) as usize])
            .collect();
        match self.below(4) {
            0 => Frame::rtr(id, data.len() as u8).unwrap(),
            1 => Frame::fd(id, &data, if self.below(2) == 0 { BRS } else { 0 }).unwrap(),
            _ => Frame::classic(id, &data).unwrap(),
        }
    }
}

const SENDERS: usize = 4;
/// As many as fit into a socket's send buffer.
const FRAMES: usize = 200;

/// What the simulated bus makes of senders that all have frames from the start: frames with their ends.
fn simulated(queues: &[Vec<Frame>], rate: BitRate) -> Vec<(Frame, u64)> {
    let interface = Interface::find("sim:wire-test/bus").unwrap();
    let world = sim::world("wire-test");
    world.set_bit_rate("bus", rate);
    let options = ReceiveOptions { queue_frames: Some(10_000), ..ReceiveOptions::default() };
    let mut receiver: Box<dyn Receive> = method("sim").open(&interface, &options).unwrap();
    let transmit = "sim".parse::<TransmitMethod>().unwrap();
    let mut senders: Vec<Box<dyn Transmit>> =
        queues.iter().map(|_| transmit.open(&interface, &TransmitOptions::default()).unwrap()).collect();
    let mut left: Vec<&[Frame]> = queues.iter().map(Vec::as_slice).collect();
    loop {
        for (sender, left) in senders.iter_mut().zip(&mut left) {
            let taken = sender.transmit(left).unwrap();
            *left = &left[taken..];
        }
        let Some(next_ns) = world.next_ns() else { break };
        world.advance(next_ns);
    }
    let mut batch = Batch::new(10_000);
    receiver.receive(&mut batch).unwrap();
    batch.iter().map(|(frame, meta)| (*frame, meta.stamp_ns)).collect()
}

/// A babbling node holds the bus until every sender has its queue full of frames; then arbitration alone decides, frame
/// by frame, and the simulated bus of the other tests must be of the same opinion to the nanosecond.
#[test]
#[ignore = "needs the lab: make test ONLY=wire"]
fn the_simulated_bus_and_the_wire_carry_the_same_frames_in_the_same_order_at_the_same_times() {
    let _alone = alone();
    let rate = BitRate { nominal: 500_000, data: 2_000_000 };
    let mut chance = Chance(2014);
    let queues: Vec<Vec<Frame>> =
        (0..SENDERS).map(|sender| (0..FRAMES).map(|_| chance.frame(sender as u64)).collect()).collect();
    let simulated = simulated(&queues, rate);
    let shortest_ns = simulated.windows(2).map(|ends| ends[1].1 - ends[0].1).min().unwrap();
    // A wire that was late has waited, and says so. One that was late by a whole frame has decided who is next before the
    // sender could offer another frame. Only one that kept its time can be compared.
    let in_time = (0..10).map(|_| race(&queues)).find(|(records, slips)| {
        let late_ns = records.iter().map(|record| record.late_ns).max().unwrap();
        eprintln!("{slips} slips, at most {late_ns} ns late, shortest frame {shortest_ns} ns");
        *slips == 0 && u64::from(late_ns) < shortest_ns
    });
    let (records, _) = in_time.expect("a race that kept its time");
    let zero_ns = records[0].sof_ns;
    for (at, (record, (frame, end_ns))) in records.iter().zip(&simulated).enumerate() {
        assert_eq!(record.error, None, "{at}: {record:?}");
        assert_eq!((record.frame, record.end_ns - zero_ns), (*frame, *end_ns), "frame {at}: {record:?}");
    }
    let contended = records.iter().filter(|record| record.pending.count_ones() > 1).count();
    assert!(contended > SENDERS * FRAMES / 2, "{contended} frames had a rival");
}

/// Lets four nodes send their queues at once; what was on the wire, and how often it slipped.
fn race(queues: &[Vec<Frame>]) -> (Vec<Record>, u64) {
    let names = ["t0", "t1", "t2", "t3"];
    let timing = BitTiming::fd(500_000, 2_000_000);
    let nodes = Nodes::up(&[&names[..], &["t4", "t5"]].concat(), "T", &timing);
    let mut tap = Tap::open("T").unwrap();
    let babble: Frame = "000#".parse().unwrap();
    wire::babble("t4", &babble, None).unwrap();
    let write = "write".parse::<TransmitMethod>().unwrap();
    let mut senders = Vec::new();
    for (name, frames) in names.iter().zip(queues) {
        let interface = Interface::find(name).unwrap();
        let mut sender = write.open(&interface, &TransmitOptions::default().without_waiting()).unwrap();
        assert_eq!(sender.transmit(frames).unwrap(), FRAMES, "{name} takes them all");
        senders.push(sender); // closed only when all has been sent
    }
    let before = wire::bus("T").unwrap().stats.slips;
    while tap.next_record().is_some() {} // the babble so far
    wire::stop_babbling("t4").unwrap();
    let mut records = Vec::new();
    eventually("all frames are through", || {
        records.extend(std::iter::from_fn(|| tap.next_record()).filter(|record| record.frame != babble));
        records.len() >= SENDERS * FRAMES
    });
    let slips = wire::bus("T").unwrap().stats.slips - before;
    drop(nodes);
    assert_eq!((records.len(), tap.missed()), (SENDERS * FRAMES, 0));
    (records, slips)
}
