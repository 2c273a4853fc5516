use super::*;
use proptest::prelude::*;

fn added(frames: &[(u64, u32)]) -> Bounds {
    let mut bounds = Bounds::default();
    frames.iter().for_each(|&(stamp_ns, bound_ns)| bounds.add(stamp_ns, bound_ns));
    bounds
}

/// The bound of the second in which a frame was stamped.
fn bound_at(spans: &[BoundSpan], stamp_ns: u64) -> u32 {
    spans.iter().rev().find(|span| span.from_ns <= stamp_ns).map_or(0, |span| span.bound_ns)
}

#[test]
fn seconds_of_nearly_the_same_bound_are_one_span() {
    let second = |n: u64| 1_790_000_000_000_000_000 + n * SECOND_NS;
    let bounds = added(&[
        (second(0) + 5, 16_000_000),
        (second(0) + 7, 20_000_000),
        (second(1) + 1, 9_000),
        (second(2) + 1, 7_000),
        (second(3) + 1, 2_000),
    ]);
    let spans: Vec<(u64, u32)> = bounds.spans().iter().map(|span| (span.from_ns, span.bound_ns)).collect();
    assert_eq!(spans, [(second(0), 20_971_520), (second(1), 10_240), (second(3), 2_048)]);
    assert_eq!(Bounds::default().spans(), []);
}

#[test]
fn a_long_recording_keeps_a_limited_number_of_true_bounds() {
    let frames: Vec<(u64, u32)> =
        (0..5000).map(|n| (n * SECOND_NS, if n % 2 == 0 { 1000 } else { 9000 })).collect();
    let spans = added(&frames).spans();
    assert_eq!(spans.len(), SPANS_MAX);
    assert!(frames.iter().all(|&(stamp_ns, bound_ns)| bound_ns <= bound_at(&spans, stamp_ns)));
}

proptest! {
    #[test]
    fn no_frame_has_a_greater_bound_than_its_second(frames in prop::collection::vec((0u64..3_000_000_000, any::<u32>()), 0..60)) {
        let mut now_ns = 0;
        let frames: Vec<(u64, u32)> = frames.iter().map(|&(pause_ns, bound_ns)| {
            now_ns += pause_ns;
            (now_ns, bound_ns)
        }).collect();
        let spans = added(&frames).spans();
        for &(stamp_ns, bound_ns) in &frames {
            prop_assert!(bound_ns <= bound_at(&spans, stamp_ns), "{stamp_ns}: {bound_ns}, {spans:?}");
        }
        prop_assert!(spans.is_sorted_by_key(|span| span.from_ns));
    }
}
