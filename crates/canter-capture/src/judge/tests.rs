use super::*;
use crate::account::Drops;
use proptest::prelude::*;

fn bus(counted: u64, seen: u64) -> Bus {
    Bus { name: "can0".to_owned(), counted: Some(counted), seen, ..Bus::default() }
}

/// A ring that has lost so many frames and receives from no other interface.
fn ring_of(frames: u64) -> RingLoss {
    RingLoss { frames, ..RingLoss::default() }
}

/// The counts of a recording by a ring that ended on request.
fn counts(ring: RingLoss, buses: &[Bus]) -> Counts<'_> {
    Counts { method: Method::Ring, buses, ring, backlog_lost: 0, unnamed: 0, inside: 0, failure: "" }
}

fn judged(ring_lost: u64, buses: &[Bus]) -> Judgement {
    judge(&counts(ring_of(ring_lost), buses))
}

fn sentence(ring_lost: u64, buses: &[Bus]) -> String {
    judged(ring_lost, buses).verdict.to_string()
}

fn ring_losses(judgement: &Judgement) -> Vec<Option<u64>> {
    judgement.buses.iter().map(|bus| bus.ring_lost).collect()
}

#[test]
fn equal_counts_are_complete() {
    assert_eq!(judged(0, &[bus(5, 5), bus(7, 7)]).verdict, Verdict::Complete);
    assert_eq!(judged(0, &[]).verdict, Verdict::Complete);
}

#[test]
fn more_frames_than_the_counters_explain_hide_as_many_losses() {
    assert_eq!(
        sentence(0, &[bus(5, 5), bus(7, 9)]),
        "ambiguous: up to 2 frames of can0 may be missing: as many were received that its counters do not explain"
    );
    // Of the nine, one is an error frame and one an echo.
    assert_eq!(judged(0, &[Bus { sent: 1, error_frames: 1, ..bus(7, 9) }]).verdict, Verdict::Complete);
}

#[test]
fn ring_losses_are_reported_by_bus_when_the_missing_frames_add_up() {
    let exact = judged(5, &[bus(10, 8), bus(10, 7)]);
    assert_eq!(exact.verdict.to_string(), "5 frames lost at the ring (5)");
    assert_eq!(ring_losses(&exact), [Some(2), Some(3)]);
    let unclear = judge(&counts(RingLoss { before_end: 5, ..ring_of(5) }, &[bus(10, 8), bus(10, 9)]));
    assert_eq!((unclear.lost.frames(), ring_losses(&unclear)), (5, vec![None, None]));
}

#[test]
fn what_a_ring_of_its_own_has_lost_is_lost_although_no_counter_shows_it() {
    // Error frames and echoes are in no counter.
    let ring = RingLoss { before_end: 5000, ..ring_of(5000) };
    let judgement = judge(&counts(ring, &[Bus { error_frames: 1268, ..bus(100, 1368) }]));
    assert_eq!(judgement.verdict.to_string(), "5000 frames lost at the ring (5000)");
    assert_eq!(ring_losses(&judgement), [None]);
}

#[test]
fn what_a_shared_ring_has_lost_beyond_the_counters_is_in_doubt() {
    let shared = |frames| RingLoss { before_end: frames, is_shared: true, ..ring_of(frames) };
    let judgement = judge(&counts(shared(5000), &[bus(100, 100)]));
    assert_eq!(
        judgement.verdict.to_string(),
        "ambiguous: up to 5000 frames of all interfaces may be missing: the ring has lost as many, of these or of interfaces \
         that are not recorded"
    );
    assert_eq!((judgement.doubtful, ring_losses(&judgement)), (5000, vec![None]));
    let judgement = judge(&counts(shared(500), &[bus(10, 0)]));
    assert_eq!((judgement.lost.ring, judgement.doubtful), (10, 490));
    assert_eq!(judge(&counts(shared(0), &[bus(10, 10)])).verdict, Verdict::Complete);
}

#[test]
fn losses_of_a_device_are_not_counted_as_losses_of_the_ring() {
    let device = Bus { own_lost: Some(3), is_device: true, ..bus(10, 7) };
    let buses = [bus(10, 8), device];
    let judgement = judge(&Counts { method: Method::RingAndDevices, ..counts(ring_of(2), &buses) });
    assert_eq!(ring_losses(&judgement), [Some(2), Some(3)]);
    assert_eq!(judgement.verdict.to_string(), "5 frames lost at the ring (2), the device's queue (3)");
}

#[test]
fn losses_of_sockets_are_those_that_each_has_counted() {
    let buses = [Bus { own_lost: Some(3), ..bus(10, 7) }, Bus { own_lost: Some(0), ..bus(10, 8) }];
    let judgement = judge(&Counts { method: Method::Sockets, ..counts(RingLoss::default(), &buses) });
    assert_eq!(judgement.verdict.to_string(), "5 frames lost at the sockets (3), an unknown place (2)");
    assert_eq!(ring_losses(&judgement), [Some(3), Some(0)]);
}

#[test]
fn ambiguous_frames_of_one_bus_hide_no_loss_of_another() {
    let buses = [Bus { ambiguous: 7, ..bus(10, 15) }, bus(10, 7)];
    let judgement = judged(0, &buses);
    let more = "up to 2 more may be missing: as many came too close to the start or end";
    let expected = format!("3 frames lost at an unknown place (3); {more}");
    assert!(judgement.verdict.to_string().starts_with(&expected), "{}", judgement.verdict);
    assert_eq!(judgement.doubtful, 2);
}

#[test]
fn what_the_ring_counted_beyond_the_counters_is_no_longer_in_doubt() {
    let mut echoing = Bus { sent: 20, ..bus(100, 60) };
    let of_ring = |frames, bus: &Bus| {
        let judgement = judged(frames, std::slice::from_ref(bus));
        let has_more = judgement.verdict.to_string().contains("more may be missing");
        (judgement.lost.frames(), judgement.doubtful, has_more)
    };
    // 40 are missing, or up to 60, if some of those that were seen were echoes.
    assert_eq!(of_ring(40, &echoing), (40, 20, true));
    assert_eq!(of_ring(53, &echoing), (53, 7, true));
    assert_eq!(of_ring(60, &echoing), (60, 0, false));
    echoing.sent = 0;
    assert_eq!(of_ring(40, &echoing), (40, 0, false));
}

#[test]
fn what_cannot_be_proved_is_ambiguous_and_not_complete() {
    let verdict = |bus: Bus| judged(0, &[bus]).verdict;
    // Every sent frame has an echo, and no error frame is counted: nothing can hide a loss.
    assert_eq!(verdict(Bus { sent: 4, error_frames: 1, ..bus(10, 15) }), Verdict::Complete);
    let doubt =
        |frames, cause| Verdict::Ambiguous(vec![Doubt { bus: Some("can0".to_owned()), frames, cause }]);
    // A frame at the end, and one of ten is missing: the numbers are the same.
    assert_eq!(verdict(Bus { ambiguous: 1, ..bus(10, 10) }), doubt(1, Cause::CloseToLimit));
    // Two of the four sent frames have no echo, or two received frames are missing.
    assert_eq!(verdict(Bus { sent: 4, ..bus(10, 12) }), doubt(2, Cause::Uncounted));
    assert_eq!(verdict(Bus { sent: 4, ..bus(10, 10) }), Verdict::Complete, "no echo at all");
    assert_eq!(verdict(Bus { ambiguous: 2, ..bus(10, 12) }), Verdict::Complete, "both were counted later");
}

#[test]
fn a_backlog_full_of_ethernet_frames_is_no_loss_of_the_recording() {
    let sentence = |driver_lost| {
        let buses = [Bus { driver_lost, ..bus(5, 5) }];
        judge(&Counts { backlog_lost: 9, ..counts(RingLoss::default(), &buses) }).verdict.to_string()
    };
    assert_eq!(sentence(2), "2 frames lost at the backlog (2)");
    assert_eq!(sentence(0), "complete");
}

#[test]
fn frames_that_one_bus_has_dropped_explain_no_missing_frame_of_another() {
    let buses = [Bus { driver_lost: 3, ..bus(10, 10) }, bus(10, 7)];
    let judgement = judge(&Counts { backlog_lost: 9, ..counts(RingLoss::default(), &buses) });
    assert_eq!(
        (judgement.lost.backlog, judgement.lost.unaccounted, judgement.doubtful),
        (3, 3, 0),
        "{}",
        judgement.verdict
    );
}

#[test]
fn a_dropped_frame_that_was_counted_before_is_lost_once() {
    let verdict = |drops, ring_lost| {
        let buses = [Bus { driver_lost: 3, drops, ..bus(10, 7) }];
        let judgement = judge(&Counts { backlog_lost: 9, ..counts(ring_of(ring_lost), &buses) });
        (judgement.lost.frames(), judgement.doubtful, judgement.verdict.to_string())
    };
    // A vcan counts a frame before the backlog drops it, a vxcan does not count it.
    assert_eq!(verdict(Drops::Counted, 0), (3, 0, "3 frames lost at the backlog (3)".to_owned()));
    let both = "6 frames lost at the backlog (3), an unknown place (3)".to_owned();
    assert_eq!(verdict(Drops::Uncounted, 0), (6, 0, both));
    let more = "3 frames lost at the backlog (3); up to 3 more may be missing: \
                as many were dropped that its driver may have counted as received, or not";
    assert_eq!(verdict(Drops::Unknown, 0), (3, 3, more.to_owned()));
    // What the ring has lost explains the missing frames already.
    let ring = "6 frames lost at the backlog (3), the ring (3)".to_owned();
    assert_eq!(verdict(Drops::Unknown, 3), (6, 0, ring));
}

#[test]
fn unexplained_losses_are_reported_at_an_unknown_place() {
    assert_eq!(sentence(1, &[bus(10, 7)]), "3 frames lost at the ring (1), an unknown place (2)");
}

#[test]
fn frames_that_nobody_could_name_and_mixed_frames_are_never_complete() {
    let buses = [bus(10, 10)];
    let judgement = judge(&Counts { unnamed: 4, ..counts(RingLoss::default(), &buses) });
    assert_eq!(
        (judgement.doubtful, judgement.verdict.to_string()),
        (
            4,
            "ambiguous: up to 4 frames of all interfaces may be missing: \
            as many came from interfaces whose names the kernel did not tell in time"
                .to_owned()
        )
    );
    let judgement = judged(0, &[bus(5, 5), Bus { is_mixed: true, ..bus(10, 10) }]);
    assert_eq!(
        (judgement.doubtful, judgement.verdict.to_string()),
        (
            10,
            "ambiguous: up to 10 frames of can0 may be missing: \
            another interface got its index, and as many may be frames of that one"
                .to_owned()
        )
    );
}

#[test]
fn overruns_are_events_and_never_frames() {
    let judgement = judged(0, &[Bus { overrun_events: 3, disk_lost: 2, ..bus(10, 10) }]);
    assert_eq!(judgement.lost.frames(), 2);
    assert!(judgement.verdict.to_string().starts_with("incomplete: at least 3 overrun events"));
}

#[test]
fn a_failure_and_frames_without_a_place_are_never_complete() {
    let buses = [bus(10, 10)];
    let judgement = judge(&Counts { failure: "can0: receive: no", ..counts(RingLoss::default(), &buses) });
    assert_eq!(judgement.verdict.to_string(), "incomplete: can0: receive: no");
    let judgement = judge(&Counts { inside: 3, ..counts(RingLoss::default(), &buses) });
    assert_eq!(judgement.verdict.to_string(), "incomplete: 3 frames unaccounted inside canter");
    let removed = judged(0, &[Bus { counted: None, ..bus(0, 10) }]);
    assert_eq!(
        removed.verdict.to_string(),
        "incomplete: counters of can0 unknown (removed, or not to be read)"
    );
}

proptest! {
    #[test]
    fn missing_frames_are_never_complete(
        ring in 0u64..9, is_shared: bool, counts_of_buses in prop::collection::vec((0u64..100, 0u64..100), 0..6),
    ) {
        let buses: Vec<Bus> = counts_of_buses.iter().map(|&(counted, seen)| bus(counted, seen)).collect();
        let judgement = judge(&counts(RingLoss { frames: ring, before_end: ring, is_shared }, &buses));
        let missing: u64 = buses.iter().map(Bus::missing).sum();
        let surplus: u64 = buses.iter().map(Bus::surplus).sum();
        let (lost, doubtful) = if is_shared { (missing, ring.saturating_sub(missing)) } else { (missing.max(ring), 0) };
        prop_assert_eq!(judgement.lost.frames(), lost);
        prop_assert_eq!(judgement.verdict.is_complete(), lost + doubtful + surplus == 0);
        prop_assert_eq!(judgement.verdict.is_ambiguous(), lost == 0 && doubtful + surplus > 0);
    }
}
