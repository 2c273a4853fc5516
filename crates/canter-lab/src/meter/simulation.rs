//! Tests of the meter and the gateway in simulation: the same loops as on a machine, between two buses in memory, with
//! a gateway of known latency.

mod table;
mod testbed;

use super::experiment::Port;
use canter_io::{Frame, Identifier, frame::BitRate};
use canter_measure::matcher::LOST_NS;
use canter_measure::result::Lost;
use canter_route::traffic::pattern::Traffic;
use proptest::prelude::*;
use std::{collections::BTreeMap, io::ErrorKind};
use testbed::{MEGABIT, Measured, Random, Service, Testbed};

const MS: u64 = 1_000_000;

/// The latencies by number; the numbers must not have wrapped.
fn latencies(measured: &Measured) -> BTreeMap<u16, i64> {
    measured.arrivals.iter().map(|arrival| (arrival.number, arrival.latency_ns)).collect()
}

#[test]
fn between_idle_buses_the_latency_is_what_the_gateway_takes_to_the_nanosecond() {
    let classic = |id, data: &[u8]| Frame::classic(id, data).unwrap();
    let frames = [
        classic(Identifier::Sff(0x555), &[0, 0]), // least stuffing, except for the number
        classic(Identifier::Sff(0x000), &[0; 8]), // most
        classic(Identifier::Eff(0x1fff_ffff), &[0xff; 8]),
        classic(Identifier::Eff(0x0123_4567), &[1, 2, 3]),
        Frame::fd(Identifier::Sff(0x123), &[0; 64], canter_io::frame::BRS).unwrap(),
    ];
    let slow = BitRate { nominal: 125_000, data: 500_000 };
    for frame in frames {
        for rates in [[MEGABIT, MEGABIT], [MEGABIT, slow], [slow, MEGABIT], [slow, slow]] {
            let service = Service::one_at_a_time(34_567);
            let testbed = Testbed { frame, rates, ..Testbed::new(service, Traffic::OneAtATime, 20) };
            let measured = testbed.run();
            assert_eq!(measured.tally.received, 20);
            assert!(
                measured.arrivals.iter().all(|arrival| arrival.latency_ns == 34_567),
                "{frame:?} {rates:?}"
            );
        }
    }
}

#[test]
fn frames_lost_on_a_bus_are_counted_and_do_not_delay_others() {
    for bus in ["a", "b"] {
        let testbed = Testbed::new(Service::one_at_a_time(60_000), Traffic::Period(500_000), 300);
        testbed.world.set_fault(bus, |n| (u32::from(n % 10 != 0), 0));
        let measured = testbed.run();
        assert_eq!((measured.tally.received, measured.tally.lost), (270, 30));
        assert_eq!(measured.tally.lost_after_direct, if bus == "b" { 30 } else { 0 });
        assert_eq!(measured.ledger.lost, Lost { unaccounted: 30, ..Lost::default() });
        let lost = |number: u16| number % 10 == 9;
        let expected = (0..300).filter(|&number| !lost(number)).map(|number| (number, 60_000));
        assert_eq!(latencies(&measured), expected.collect());
    }
}

#[test]
fn frames_that_a_bus_repeats_are_counted_and_the_first_of_each_counts() {
    for bus in ["a", "b"] {
        let testbed = Testbed::new(Service::one_at_a_time(60_000), Traffic::Period(500_000), 300);
        testbed.world.set_fault(bus, |n| (if n % 10 == 3 { 3 } else { 1 }, 0));
        let measured = testbed.run();
        assert_eq!((measured.tally.received, measured.tally.lost), (300, 0));
        assert_eq!((measured.tally.duplicated, measured.tally.reordered), (60, 0));
        assert!(measured.arrivals.iter().all(|arrival| arrival.latency_ns == 60_000));
    }
}

#[test]
fn frames_that_a_bus_reorders_are_counted_and_only_those_held_back_behind_it_are_later() {
    for bus in ["a", "b"] {
        let testbed = Testbed::new(Service::batching(60_000), Traffic::Period(500_000), 300);
        testbed.world.set_fault(bus, |n| (1, if n % 10 == 5 { 1 } else { 0 }));
        let measured = testbed.run();
        assert_eq!((measured.tally.received, measured.tally.lost, measured.tally.duplicated), (300, 0, 0));
        assert_eq!(measured.tally.reordered, 30);
        let held = |number: u16| number % 10 == 4;
        for (number, latency_ns) in latencies(&measured) {
            let stuffing_ns = |number| testbed.frame(number).duration_ns(MEGABIT) as i64;
            let extra_ns = match bus {
                // It comes with its successor and the gateway handles the two at once; then it waits for the bus.
                "a" if held(number) => 6_000 + 3_000 + stuffing_ns(number + 1),
                "a" if number > 0 && held(number - 1) => 6_000,
                // It ends with its successor, a period later, which was longer or shorter by their stuff bits.
                "b" if held(number) => 500_000 + 2 * (stuffing_ns(number + 1) - stuffing_ns(number)),
                _ => 0,
            };
            assert_eq!(latency_ns, 60_000 + extra_ns, "{bus} {number}");
        }
    }
}

#[test]
fn a_gateway_that_never_forwards_is_given_up_after_the_first_frames() {
    for traffic in [Traffic::OneAtATime, Traffic::Period(120_000), Traffic::Flood] {
        let service = Service::one_at_a_time(60_000);
        let measured = Testbed { hangs_after: 0, ..Testbed::new(service, traffic, 1_000_000) }.run();
        assert_eq!(measured.tally.received, 0);
        assert!(measured.ledger.balances(), "{measured:?}");
        assert!(measured.end_ns < 4 * LOST_NS, "{traffic}: {} ns", measured.end_ns);
    }
}

#[test]
fn frames_left_by_a_gateway_that_hangs_are_lost_after_a_second() {
    for traffic in [Traffic::Period(120_000), Traffic::Period(500_000), Traffic::Load(50), Traffic::Flood] {
        let service = Service::one_at_a_time(20_000);
        let measured = Testbed { hangs_after: 500, ..Testbed::new(service, traffic, 1000) }.run();
        assert_eq!((measured.tally.received, measured.tally.lost_after_direct), (500, 500), "{traffic}");
        let last_ns = 2 * measured.arrivals.last().unwrap().passage.direct_ns;
        let waited_ns = measured.end_ns - last_ns;
        assert!((LOST_NS - 2 * MS..LOST_NS + LOST_NS / 5).contains(&waited_ns), "{traffic}: {waited_ns}");
    }
}

#[test]
fn a_dead_bus_ends_the_measurement() {
    for traffic in [Traffic::OneAtATime, Traffic::Period(120_000), Traffic::Flood] {
        let testbed = Testbed::new(Service::one_at_a_time(60_000), traffic, 1000);
        let measured = Testbed { dies: ("a", 0), ..testbed }.run();
        assert_eq!((measured.tally.received, measured.ledger.balances()), (0, true), "{traffic}");
        assert!(measured.end_ns < 4 * LOST_NS, "{traffic}: {} ns", measured.end_ns);
    }
}

#[test]
fn a_bus_that_dies_halfway_is_an_error_of_the_sender() {
    for traffic in [Traffic::Period(120_000), Traffic::Flood] {
        let testbed = Testbed::new(Service::one_at_a_time(20_000), traffic, 1000);
        let error = Testbed { dies: ("a", 20 * MS), ..testbed }.try_run().unwrap_err();
        assert_eq!((error.0, error.1.kind()), (Port::Send, ErrorKind::TimedOut), "{traffic}");
    }
}

#[test]
fn numbers_that_wrap_around_are_still_distinguished() {
    let service = Service { batch_frames: 8, ..Service::batching(40_000) };
    let measured = Testbed::new(service, Traffic::Flood, 66_000).run();
    let tally = measured.tally;
    assert_eq!((tally.sent, tally.received, tally.lost), (66_000, 66_000, 0));
    assert_eq!((tally.duplicated, tally.reordered, tally.stray), (0, 0, 0));
    assert!(measured.arrivals.iter().all(|arrival| arrival.latency_ns < 200_000));
}

#[test]
fn when_all_numbers_are_on_their_way_sending_pauses_until_some_are_lost() {
    let fast = BitRate::classic(100_000_000);
    let testbed = Testbed::new(Service::batching(1_000), Traffic::Flood, 66_000);
    let measured = Testbed { rates: [fast; 2], hangs_after: 100, ..testbed }.run();
    assert_eq!((measured.tally.received, measured.tally.lost_after_direct), (100, 65_900));
    assert!((2 * LOST_NS..5 * LOST_NS / 2).contains(&measured.end_ns), "{}", measured.end_ns);
}

#[test]
fn a_period_keeps_its_intended_times() {
    let testbed = Testbed::new(Service::one_at_a_time(20_000), Traffic::Period(120_000), 1000);
    let measured = testbed.run();
    assert_eq!(measured.ledger.late, 0);
    for arrival in measured.arrivals {
        let intended_ns = u64::from(arrival.number) * 120_000;
        let frame_ns = testbed.frame(arrival.number).duration_ns(MEGABIT);
        assert_eq!(arrival.passage.direct_ns, intended_ns + frame_ns);
    }
}

#[test]
fn a_meter_that_oversleeps_catches_up_and_does_not_drift() {
    let testbed = Testbed::new(Service::one_at_a_time(20_000), Traffic::Period(200_000), 2000);
    let measured = Testbed { oversleep_ns: 300_000, ..testbed }.run();
    assert_eq!(measured.tally.received, 2000);
    // It sleeps up to 300 µs too long, 15 tenths of the period.
    assert!((1000..2000).contains(&measured.ledger.late), "{}", measured.ledger.late);
    for arrival in measured.arrivals {
        let late_ns = arrival.passage.direct_ns - u64::from(arrival.number) * 200_000;
        assert!(late_ns < 300_000 + 3 * 70_000, "{}: {late_ns} ns", arrival.number);
    }
}

#[test]
fn a_load_uses_its_share_of_the_bus() {
    for (percent, len) in [(10, 2), (50, 2), (50, 8), (90, 2), (100, 2)] {
        let testbed = Testbed::new(Service::batching(20_000), Traffic::Load(percent), 2000);
        let frame = Frame::classic(Identifier::Sff(0x123), &vec![0x55; len]).unwrap();
        let testbed = Testbed { frame, ..testbed };
        let measured = testbed.run();
        let ends = measured.arrivals.iter().map(|arrival| arrival.passage.direct_ns);
        let taken = measured.arrivals.iter().map(|arrival| testbed.frame(arrival.number));
        let taken_ns: u64 = taken.map(|frame| frame.duration_with_interframe_ns(MEGABIT)).sum();
        let share = taken_ns as f64 / ends.max().unwrap() as f64 * 100.0;
        assert!((share - f64::from(percent)).abs() < 0.2, "{share} % of {percent} % with {len} bytes");
    }
}

#[test]
fn a_slow_output_bus_fills_the_queues_in_front_of_it_and_nothing_else_is_lost() {
    let service = Service::batching(20_000);
    let testbed = Testbed::new(service, Traffic::Period(120_000), 2000);
    let rates = [MEGABIT, BitRate::classic(250_000)];
    let measured = Testbed { rates, queue_frames: 32, ..testbed }.run();
    let lost = measured.ledger.lost;
    assert!(lost.socket > 800 && lost.total() == lost.socket, "{lost:?}");
    let bus_rate =
        measured.tally.received * 1_000_000_000 / measured.arrivals.last().unwrap().passage.routed_ns;
    assert!((3_600..4_000).contains(&bus_rate), "{bus_rate} frames/s of 65 bits at 250 kbit/s");
}

#[test]
fn a_dead_output_bus_makes_the_gateway_drop_every_frame_after_a_second() {
    let testbed = Testbed::new(Service::one_at_a_time(20_000), Traffic::Period(100 * MS), 60);
    let measured = Testbed { dies: ("b", 950 * MS), ..testbed }.run();
    assert_eq!((measured.tally.received, measured.counts.transmitted), (10, 20)); // ten in the interface's queue
    assert!(measured.ledger.balances());
    // The queue is full at 2.0 s. From 3.0 s on no frame waits any more, so none that is old would go out.
    assert_eq!((measured.counts.received, measured.counts.dropped), (60, 40));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn the_ledger_balances_for_any_losses_repeats_and_delays(seed: u64) {
        let testbed = random_testbed(&mut Random(seed));
        let measured = testbed.run();
        let (ledger, counts, tally) = (measured.ledger, measured.counts, measured.tally);
        prop_assert!(ledger.balances(), "{ledger:?}");
        prop_assert_eq!(tally.sent, tally.received + tally.lost);
        prop_assert_eq!(counts.received, counts.transmitted + counts.filtered + counts.dropped);
        prop_assert_eq!(measured.arrivals.len() as u64, tally.received);
        let least_ns = testbed.service.first_ns as i64;
        prop_assert!(measured.arrivals.iter().all(|arrival| arrival.latency_ns >= least_ns));
        let long_ns = (tally.lost + 40) * (LOST_NS + LOST_NS / 5);
        prop_assert!(measured.end_ns < long_ns, "{} ns for {:?}", measured.end_ns, tally);
    }
}

/// A random gateway, traffic, queue and faults.
fn random_testbed(random: &mut Random) -> Testbed {
    let service = Service {
        first_ns: random.below(200_000),
        further_ns: random.below(50_000),
        jitter_ns: random.below(20_000),
        batch_frames: 1 + random.below(64) as usize,
    };
    let traffic = match random.below(4) {
        0 => Traffic::OneAtATime,
        1 => Traffic::Period(20_000 + random.below(500_000)),
        2 => Traffic::Load(1 + random.below(100) as u32),
        _ => Traffic::Flood,
    };
    let testbed = Testbed::new(service, traffic, 1 + random.below(300));
    for bus in ["a", "b"] {
        let (fault, seed) = (random.below(200), random.next());
        testbed.world.set_fault(bus, move |n| match Random(seed ^ n).below(fault + 5) {
            0 => (0, 0),
            1 => (2, 0),
            2 => (1, 1 + (n % 5) as usize),
            3 => (2, 1),
            _ => (1, 0),
        });
    }
    let rate = |random: &mut Random| {
        BitRate::classic(*[100_000, 500_000, 1_000_000].get(random.below(3) as usize).unwrap())
    };
    Testbed {
        rates: [rate(random), rate(random)],
        queue_frames: 1 + random.below(100) as u32,
        gather: random.below(2) == 0,
        hangs_after: if random.below(4) == 0 { random.below(100) } else { u64::MAX },
        oversleep_ns: random.below(2) * random.below(1_000_000),
        seed: random.next(),
        ..testbed
    }
}
