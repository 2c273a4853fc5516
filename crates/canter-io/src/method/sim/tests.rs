//! The simulated bus against the rules of CAN.

use super::*;
use crate::Identifier;

fn open(name: &str) -> (World, Box<dyn Transmit>, Box<dyn Receive>) {
    let interface = Interface::find(&format!("sim:{name}/a")).unwrap();
    let sender = transmitter(&interface, &TransmitOptions::default()).unwrap();
    let receiver = receiver(&interface, &ReceiveOptions::default()).unwrap();
    (world(name), sender, receiver)
}

fn frame(id: u16) -> Frame {
    Frame::classic(Identifier::Sff(id), &[id as u8]).unwrap()
}

#[test]
fn a_frame_arrives_when_its_last_bit_has_passed_and_not_before() {
    let (world, mut sender, mut receiver) = open("end-of-frame");
    let mut batch = Batch::new(4);
    assert_eq!(sender.transmit(&[frame(0x123)]).unwrap(), 1);
    let end = frame(0x123).duration_ns(BitRate { nominal: 1_000_000, data: 1_000_000 });
    world.advance(end - 1);
    assert_eq!(receiver.receive(&mut batch).unwrap(), 0);
    world.advance(end);
    assert_eq!(receiver.receive(&mut batch).unwrap(), 1);
    assert_eq!(batch.meta()[0].stamp_ns, end);
}

#[test]
fn of_two_that_wait_the_lower_identifier_goes_first() {
    let (world, mut first, mut receiver) = open("arbitration");
    let interface = Interface::find("sim:arbitration/a").unwrap();
    let mut second = transmitter(&interface, &TransmitOptions::default()).unwrap();
    first.transmit(&[frame(0x300), frame(0x200)]).unwrap();
    second.transmit(&[frame(0x100)]).unwrap();
    world.advance(1_000_000);
    let mut batch = Batch::new(4);
    receiver.receive(&mut batch).unwrap();
    let ids: Vec<_> = batch.frames().iter().map(|frame| frame.can_id).collect();
    assert_eq!(ids, [0x100, 0x300, 0x200]);
}

/// Data before RTR, SFF before EFF of the same first 11 bits, FD as classic.
#[test]
fn frames_with_the_same_first_bits_go_as_their_formats_do() {
    let order = ["122#R", "123#00", "123#R", "048C0000#00", "048C0000#R", "048C0001##500"];
    let (world, _, mut receiver) = open("formats");
    let interface = Interface::find("sim:formats/a").unwrap();
    let mut senders: Vec<_> =
        order.map(|_| transmitter(&interface, &TransmitOptions::default()).unwrap()).into();
    for (sender, text) in senders.iter_mut().zip(order.iter().rev()) {
        sender.transmit(&[text.parse().unwrap()]).unwrap();
    }
    world.advance(2_000_000);
    let mut batch = Batch::new(8);
    receiver.receive(&mut batch).unwrap();
    let got: Vec<_> = batch.frames().iter().map(ToString::to_string).collect();
    assert_eq!(got, order);
}

#[test]
fn back_to_back_frames_do_not_drift_at_rates_whose_bits_are_no_whole_ns() {
    let (world, mut sender, mut receiver) = open("drift");
    world.set_bit_rate("a", BitRate::classic(83_333));
    let one = frame(0x123);
    sender.transmit(&[one; SEND_QUEUE_FRAMES]).unwrap();
    world.advance(1_000_000_000);
    let mut batch = Batch::new(SEND_QUEUE_FRAMES);
    receiver.receive(&mut batch).unwrap();
    let bits = u64::from(one.bits().total() + INTERFRAME_BITS) * SEND_QUEUE_FRAMES as u64 - 3;
    let exact_ns = bits * 1_000_000_000 / 83_333;
    assert!(batch.meta().last().unwrap().stamp_ns.abs_diff(exact_ns) <= 1);
}

use proptest::prelude::*;

fn any_frame() -> impl Strategy<Value = Frame> {
    let id = prop_oneof![
        (0x120..0x124u16).prop_map(Identifier::Sff),
        (0x120..0x124u32, 0..3u32).prop_map(|(base, low)| Identifier::Eff(base << 18 | low)),
    ];
    (id, 0..3u8, prop::collection::vec(any::<u8>(), 0..=8)).prop_map(|(id, kind, data)| match kind {
        0 => Frame::classic(id, &data).unwrap(),
        1 => Frame::rtr(id, data.len() as u8).unwrap(),
        _ => Frame::fd(id, &data, crate::frame::BRS).unwrap(),
    })
}

proptest! {
    /// Checks the carried frames against the rules: which frames waited when each started, and when it could start.
    #[test]
    fn whoever_waits_when_a_frame_starts_has_lost_arbitration_to_it(
        seed in any::<u64>(),
        sends in prop::collection::vec((0..4usize, 0..200_000u64, any_frame()), 1..30),
    ) {
        let name = format!("rules-{seed}");
        let (world, first, mut receiver) = open(&name);
        let rate = BitRate { nominal: 500_000, data: 2_000_000 };
        world.set_bit_rate("a", rate);
        let interface = Interface::find(&format!("sim:{name}/a")).unwrap();
        let more = (1..4).map(|_| transmitter(&interface, &TransmitOptions::default()).unwrap());
        let mut senders: Vec<_> = std::iter::once(first).chain(more).collect();
        let mut waiting: Vec<VecDeque<(u64, Frame)>> = vec![VecDeque::new(); 4];
        for (sender, gap_ns, frame) in sends {
            world.advance(world.now_ns() + gap_ns);
            if senders[sender].transmit(&[frame]).unwrap() == 1 {
                waiting[sender].push_back((world.now_ns(), frame));
            }
        }
        world.advance(world.now_ns() + 100_000_000);
        lock(&WORLDS).remove(&name);
        let mut batch = Batch::new(64);
        receiver.receive(&mut batch).unwrap();
        prop_assert_eq!(batch.len(), waiting.iter().map(VecDeque::len).sum::<usize>());
        let mut free_ns = 0;
        for (frame, meta) in batch.iter() {
            let start_ns = meta.stamp_ns - frame.duration_ns(rate);
            let ready = waiting.iter().filter_map(|queue| queue.front());
            let earliest_ns = ready.clone().map(|(since_ns, _)| *since_ns).min().unwrap();
            prop_assert_eq!(start_ns, free_ns.max(earliest_ns));
            let best = ready.filter(|(since_ns, _)| *since_ns <= start_ns).map(|(_, one)| one.arbitration()).min();
            prop_assert_eq!(Some(frame.arbitration()), best);
            let is_it = |(since_ns, one): &(u64, Frame)| *since_ns <= start_ns && one == frame;
            let from = waiting.iter_mut().find(|queue| queue.front().is_some_and(is_it));
            prop_assert!(from.is_some_and(|queue| queue.pop_front().is_some()));
            free_ns = meta.stamp_ns + 6_000; // three bits
        }
    }
}

#[test]
fn a_full_queue_returns_a_short_count() {
    let (_, mut sender, _) = open("full");
    assert_eq!(sender.transmit(&[frame(1); 64]).unwrap(), SEND_QUEUE_FRAMES);
    assert_eq!(sender.transmit(&[frame(1)]).unwrap(), 0);
}

#[test]
fn faults_lose_repeat_and_reorder() {
    let (world, mut sender, mut receiver) = open("faults");
    world.set_fault("a", |n| match n {
        2 => (0, 0),
        3 => (2, 0),
        4 => (1, 1),
        _ => (1, 0),
    });
    sender.transmit(&[frame(1), frame(2), frame(3), frame(4), frame(5)]).unwrap();
    world.advance(1_000_000);
    let mut batch = Batch::new(16);
    receiver.receive(&mut batch).unwrap();
    let ids: Vec<_> = batch.frames().iter().map(|frame| frame.can_id).collect();
    assert_eq!(ids, [1, 3, 3, 5, 4]);
}
