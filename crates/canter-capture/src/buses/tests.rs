use super::*;
use crate::queue::Queue;
use canter_io::{
    carrier::table::NETWORK,
    interface::{Counters, Kind},
};

/// A named interface that does not exist on this machine, and is down.
pub fn interface(name: &str, index: u32) -> Interface {
    Interface {
        name: name.to_owned(),
        index,
        mtu: 16,
        kind: Kind::Vxcan,
        up: false,
        running: false,
        echo: true,
        driver: None,
        qdisc: String::new(),
        tx_queue_len: 0,
        peer: None,
        controller: None,
        carrier: &NETWORK,
    }
}

fn counted(rx_frames: u64) -> Counters {
    Counters { rx_frames, ..Counters::default() }
}

/// Indexes that no interface has.
const CAN0: u32 = 1_000_001;
const OTHER: u32 = 1_000_002;

/// A recording of these interfaces, with no interface yet.
fn recording<R>(wanted: &str, steps: impl FnOnce(&mut Buses<'_>) -> R) -> (R, Vec<String>) {
    let (queue, live) = (Queue::new(1 << 20), Live::default());
    let wanted = vec![InterfaceFilters::parse(wanted).unwrap()];
    let result = steps(&mut Buses::new(&queue, &live, None, wanted, Vec::new(), false));
    (result, live.take_events().into_iter().map(|event| event.what).collect())
}

/// Receives frames of the interface with this index, and returns how many were recorded.
fn receive(buses: &mut Buses<'_>, index: u32, frames: usize) -> usize {
    let bytes = "123#1122".parse::<canter_frame::Frame>().unwrap().kernel_bytes()[..16].to_vec();
    let mut chunk = Chunk::new(false, frames);
    buses.copy_wanted(&mut chunk, (0..frames).map(|_| Captured::new(1_000, index, &bytes)));
    chunk.len()
}

#[test]
fn frames_of_an_interface_that_nobody_can_name_are_counted() {
    let ((), events) = recording("any", |buses| {
        assert_eq!(receive(buses, OTHER, 5), 0);
        assert_eq!((buses.unnamed, buses.list.len()), (5, 0));
    });
    assert_eq!(events, [""; 0]);
}

#[test]
fn they_are_counted_after_the_end_too_while_the_kernel_has_not_said_what_interfaces_there_are() {
    recording("any", |buses| {
        buses.end(false);
        assert_eq!(receive(buses, OTHER, 5), 0);
        assert_eq!(buses.unnamed, 5);
    });
}

#[test]
fn frames_of_an_interface_that_got_the_index_of_another_are_in_doubt() {
    let (mixed, events) = recording("can0", |buses| {
        buses.follow(vec![Change::Is(interface("can0", CAN0), counted(0))]);
        assert_eq!(receive(buses, CAN0, 5), 5);
        buses.follow(vec![
            Change::Gone(interface("can0", CAN0), counted(5)),
            Change::Is(interface("evil0", CAN0), counted(0)),
        ]);
        assert_eq!(receive(buses, CAN0, 3), 0, "frames of evil0 are not recorded as can0");
        buses.list[0].is_mixed
    });
    assert!(mixed && events.iter().any(|event| event.contains("evil0 has its index now")), "{events:?}");
}

#[test]
fn the_same_interface_that_returns_with_its_index_is_in_no_doubt() {
    let (mixed, _) = recording("can0", |buses| {
        let there = || Change::Is(interface("can0", CAN0), counted(0));
        buses.follow(vec![there(), Change::Gone(interface("can0", CAN0), counted(5)), there()]);
        assert_eq!((receive(buses, CAN0, 3), buses.list.len()), (3, 1));
        // One that comes later was never mistaken for it: its report precedes its frames.
        buses.follow(vec![Change::Gone(interface("can0", CAN0), counted(8))]);
        buses.follow(vec![Change::Is(interface("evil0", CAN0), counted(0))]);
        buses.list[0].is_mixed
    });
    assert!(!mixed);
}

#[test]
fn the_last_frames_of_an_interface_are_recorded_after_its_bus_has_returned_with_another_index() {
    let (seen, _) = recording("can0", |buses| {
        buses.follow(vec![Change::Is(interface("can0", CAN0), counted(0))]);
        buses.follow(vec![
            Change::Gone(interface("can0", CAN0), counted(5)),
            Change::Is(interface("can0", OTHER), counted(0)),
        ]);
        assert_eq!((receive(buses, CAN0, 5), receive(buses, OTHER, 2), buses.unnamed), (5, 2, 0));
        buses.list[0].tally.seen
    });
    assert_eq!(seen, 7);
}

#[test]
fn another_name_without_a_report_of_its_change_is_in_doubt() {
    let (mixed, _) = recording("can0", |buses| {
        buses.follow(vec![Change::Is(interface("can0", CAN0), counted(0))]);
        buses.note_present(interface("can7", CAN0), Some(FrameCounters::default()));
        assert!(!buses.list[0].is_mixed, "reported: it was renamed");
        buses.resync(vec![interface("evil0", CAN0)]);
        buses.list[0].is_mixed
    });
    assert!(mixed);
}
