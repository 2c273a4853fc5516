//! Finds, for every routed frame, the stamp of the same frame on the direct bus: by a unique number in the first two
//! payload bytes, which gateways do not change. Immune to loss, duplicates and reordering (the papers' method).

/// The number of values of two bytes. A number is reused only when its frame has arrived or is lost.
pub const NUMBERS: usize = 1 << 16;

/// After this time a frame without both stamps counts as lost.
pub const LOST_NS: u64 = 1_000_000_000;

/// A frame on its way.
#[derive(Clone, Copy, Debug, Default)]
struct Flight {
    /// The time of sending, by the meter's clock.
    sent_ns: u64,
    /// The frame's position in the order of sending.
    order: u64,
    direct_ns: Option<u64>,
    routed_ns: Option<u64>,
    /// Whether the frame is neither complete nor lost.
    open: bool,
    /// Whether the number has been used at least once.
    used: bool,
}

/// Counts of the frames so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Frames that were sent.
    pub sent: u64,
    /// Frames whose two stamps came in time.
    pub received: u64,
    /// Frames with one stamp or none after [`LOST_NS`].
    pub lost: u64,
    /// Lost frames with a direct stamp but no routed one.
    pub lost_after_direct: u64,
    /// Routed frames that arrived again.
    pub duplicated: u64,
    /// Routed frames that arrived after a later frame.
    pub reordered: u64,
    /// Frames whose number is not on its way: late frames, or frames of others.
    pub stray: u64,
}

/// A complete pair of stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The stamp on the direct bus.
    pub direct_ns: u64,
    /// The stamp on the routed bus.
    pub routed_ns: u64,
}

impl Passage {
    /// The latency: the time between both stamps, less `taken_ns`, the time on the wires that is none of the gateway's.
    pub fn latency_ns(self, taken_ns: u64) -> i64 {
        let latency_ns = i128::from(self.routed_ns) - i128::from(self.direct_ns) - i128::from(taken_ns);
        latency_ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

/// The table of stamps.
pub struct Matcher {
    flights: Box<[Flight]>,
    /// The oldest frame that may still be open.
    oldest: u64,
    /// The position of the routed frame that was sent last.
    latest_routed: Option<u64>,
    open: usize,
    tally: Tally,
}

impl Default for Matcher {
    fn default() -> Self {
        Self::new()
    }
}

impl Matcher {
    /// A table without frames.
    pub fn new() -> Self {
        let flights = vec![Flight::default(); NUMBERS].into_boxed_slice();
        Self { flights, oldest: 0, latest_routed: None, open: 0, tally: Tally::default() }
    }

    /// The counts so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The number of frames on their way.
    pub fn open(&self) -> usize {
        self.open
    }

    /// The number for the next frame; `None` while the frame that used it last is still on its way.
    pub fn next_number(&self) -> Option<u16> {
        let number = self.tally.sent as usize % NUMBERS;
        if self.flights[number].open { None } else { Some(number as u16) }
    }

    /// Announces the frame with [`next_number`](Self::next_number). Call this before sending: stamps may come while
    /// the sending call runs.
    pub fn sending(&mut self, now_ns: u64) {
        let order = self.tally.sent;
        self.flights[order as usize % NUMBERS] =
            Flight { sent_ns: now_ns, order, direct_ns: None, routed_ns: None, open: true, used: true };
        self.tally.sent += 1;
        self.open += 1;
    }

    /// Withdraws the last announced frame, which was not sent.
    pub fn not_sent(&mut self) {
        self.tally.sent -= 1;
        self.open -= 1;
        self.flights[self.tally.sent as usize % NUMBERS] = Flight::default();
    }

    /// Notes that frame `number` of a scheduled sender was seen on the direct bus: it was sent, and so were the frames between
    /// the last known one and this one: the meter's queue has lost them.
    pub fn sent_up_to(&mut self, number: u16, now_ns: u64) {
        let ahead = number.wrapping_sub(self.tally.sent as u16);
        if usize::from(ahead) >= NUMBERS / 2 {
            return; // behind the last known frame: a stray
        }
        for _ in 0..=ahead {
            if self.next_number().is_none() {
                self.expire(now_ns);
            }
            if self.next_number().is_some() {
                self.sending(now_ns);
            }
        }
    }

    /// Notes a frame's stamp of the direct bus; returns both stamps when the other one is known.
    pub fn direct(&mut self, number: u16, stamp_ns: u64) -> Option<Passage> {
        let flight = &mut self.flights[usize::from(number)];
        if !flight.open || flight.direct_ns.is_some() {
            self.tally.stray += 1;
            return None;
        }
        flight.direct_ns = Some(stamp_ns);
        self.complete(number)
    }

    /// Notes a frame's stamp of the routed bus; returns both stamps when the other one is known.
    pub fn routed(&mut self, number: u16, stamp_ns: u64) -> Option<Passage> {
        let flight = &mut self.flights[usize::from(number)];
        if flight.used && flight.routed_ns.is_some() {
            self.tally.duplicated += 1;
            return None;
        }
        if !flight.open {
            self.tally.stray += 1;
            return None;
        }
        flight.routed_ns = Some(stamp_ns);
        let order = flight.order;
        match self.latest_routed {
            Some(latest) if latest > order => self.tally.reordered += 1,
            _ => self.latest_routed = Some(order),
        }
        self.complete(number)
    }

    fn complete(&mut self, number: u16) -> Option<Passage> {
        let flight = &mut self.flights[usize::from(number)];
        let (Some(direct_ns), Some(routed_ns)) = (flight.direct_ns, flight.routed_ns) else { return None };
        flight.open = false;
        self.open -= 1;
        self.tally.received += 1;
        Some(Passage { direct_ns, routed_ns })
    }

    /// Counts frames as lost that were sent more than [`LOST_NS`] ago.
    pub fn expire(&mut self, now_ns: u64) {
        while self.oldest < self.tally.sent {
            let flight = &mut self.flights[self.oldest as usize % NUMBERS];
            let current = flight.order == self.oldest; // otherwise its number is reused, so the frame has ended
            if current && flight.open {
                if now_ns.saturating_sub(flight.sent_ns) < LOST_NS {
                    return;
                }
                flight.open = false;
                self.open -= 1;
                self.tally.lost += 1;
                self.tally.lost_after_direct += u64::from(flight.direct_ns.is_some());
            }
            self.oldest += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn send(matcher: &mut Matcher, now_ns: u64) -> u16 {
        let number = matcher.next_number().unwrap();
        matcher.sending(now_ns);
        number
    }

    #[test]
    fn a_latency_is_the_difference_of_both_stamps_less_the_time_on_the_wires() {
        let latency_ns =
            |direct_ns, routed_ns, taken_ns| Passage { direct_ns, routed_ns }.latency_ns(taken_ns);
        assert_eq!(latency_ns(1_000, 1_900, 0), 900);
        assert_eq!(latency_ns(1_000, 1_900, 700), 200);
        assert_eq!(latency_ns(1_000, 1_900, 1_000), -100, "earlier than a frame could come");
        assert_eq!(latency_ns(u64::MAX, 0, u64::MAX), i64::MIN);
        assert_eq!(latency_ns(0, u64::MAX, 0), i64::MAX);
    }

    #[test]
    fn a_frame_with_one_stamp_is_lost_after_a_second_and_not_before() {
        let mut matcher = Matcher::new();
        let number = send(&mut matcher, 5);
        assert_eq!(matcher.direct(number, 10), None);
        matcher.expire(5 + LOST_NS - 1);
        assert_eq!(matcher.tally().lost, 0);
        matcher.expire(5 + LOST_NS);
        assert_eq!((matcher.tally().lost, matcher.tally().lost_after_direct), (1, 1));
        assert_eq!(matcher.routed(number, 2 * LOST_NS), None);
        assert_eq!(matcher.tally().stray, 1);
    }

    #[test]
    fn frames_of_a_schedule_count_as_sent_when_seen_and_gaps_as_lost() {
        let mut matcher = Matcher::new();
        for number in [0, 1, 4] {
            matcher.sent_up_to(number, 10);
            matcher.direct(number, 10);
            matcher.routed(number, 20);
        }
        matcher.sent_up_to(2, 30); // behind: a stray
        assert_eq!((matcher.tally().sent, matcher.tally().received, matcher.open()), (5, 3, 2));
        matcher.expire(10 + LOST_NS);
        assert_eq!((matcher.tally().lost, matcher.tally().lost_after_direct), (2, 0));
    }

    #[test]
    fn the_numbers_of_a_schedule_may_wrap_around() {
        let mut matcher = Matcher::new();
        for order in 0..70_000u32 {
            matcher.sent_up_to(order as u16, u64::from(order));
            matcher.direct(order as u16, u64::from(order));
            matcher.routed(order as u16, u64::from(order) + 1);
        }
        let tally = matcher.tally();
        assert_eq!(
            (tally.sent, tally.received, tally.duplicated, tally.reordered, tally.stray),
            (70_000, 70_000, 0, 0, 0)
        );
    }

    #[test]
    fn duplicates_and_reordering_are_counted_and_change_no_latency() {
        let mut matcher = Matcher::new();
        let (a, b) = (send(&mut matcher, 0), send(&mut matcher, 1));
        matcher.direct(a, 10);
        matcher.direct(b, 20);
        assert_eq!(matcher.routed(b, 30), Some(Passage { direct_ns: 20, routed_ns: 30 }));
        assert_eq!(matcher.routed(a, 40), Some(Passage { direct_ns: 10, routed_ns: 40 }));
        assert_eq!(matcher.routed(a, 50), None);
        let tally = matcher.tally();
        assert_eq!((tally.received, tally.duplicated, tally.reordered, tally.lost), (2, 1, 1, 0));
    }

    #[test]
    fn a_number_is_not_used_again_while_its_frame_is_on_its_way() {
        let mut matcher = Matcher::new();
        for _ in 0..NUMBERS {
            send(&mut matcher, 0);
        }
        assert_eq!(matcher.next_number(), None);
        matcher.direct(0, 1);
        matcher.routed(0, 2);
        assert_eq!(matcher.next_number(), Some(0));
        matcher.expire(LOST_NS);
        assert_eq!(matcher.tally().received + matcher.tally().lost, matcher.tally().sent);
    }

    proptest! {
        #[test]
        fn every_frame_ends_as_received_or_lost(
            events in prop::collection::vec((0u8..4, 0u16..200, 1u64..400_000_000), 1..400)
        ) {
            let mut matcher = Matcher::new();
            let mut now_ns = 0;
            for (event, number, step) in events {
                now_ns += step;
                match event {
                    0 => { send(&mut matcher, now_ns); }
                    1 => { matcher.direct(number, now_ns); }
                    2 => { matcher.routed(number, now_ns); }
                    _ => matcher.expire(now_ns),
                }
                let tally = matcher.tally();
                prop_assert_eq!(tally.sent, tally.received + tally.lost + matcher.open() as u64);
            }
            matcher.expire(now_ns + LOST_NS);
            prop_assert_eq!(matcher.open(), 0);
        }
    }
}
