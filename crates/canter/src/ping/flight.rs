//! The frames on their way: when each ping sends, which answer belongs to which frame, and which frames are lost. It
//! uses no clock and no bus.

use canter_io::Frame;

/// The plan of a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The number of parallel pings.
    pub pings: usize,
    /// Frames per ping; `None`: without end.
    pub count: Option<u64>,
    /// The time between two frames of a ping; 0: each frame is sent when the previous one is answered or lost.
    pub interval_ns: u64,
    /// The timeout of an answer.
    pub timeout_ns: u64,
}

/// A received answer.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub ping: usize,
    /// The number in the frame.
    pub number: u16,
    /// The time of arrival, ns.
    pub at_ns: u64,
    pub frame: Frame,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Send {
        ping: usize,
        number: u16,
    },
    Lost {
        ping: usize,
        number: u16,
    },
    /// Wait for an answer, at most until this time in ns.
    Wait {
        ns: u64,
    },
    Done,
}

#[derive(Clone, Copy, Default)]
struct Ping {
    sent: u64,
    due_ns: u64,
    /// The number of the frame on its way, and when it was sent.
    under_way: Option<(u16, u64)>,
}

pub struct Flight {
    plan: Plan,
    pings: Vec<Ping>,
    strays: u64,
}

impl Flight {
    pub fn new(plan: Plan) -> Self {
        Self { plan, pings: vec![Ping::default(); plan.pings], strays: 0 }
    }

    /// The next step at `now_ns`.
    pub fn next(&mut self, now_ns: u64) -> Step {
        let mut wait_ns = u64::MAX;
        let mut done = true;
        for (at, ping) in self.pings.iter_mut().enumerate() {
            let more = self.plan.count.is_none_or(|count| ping.sent < count);
            match ping.under_way {
                Some((number, sent_ns)) => {
                    let end_ns = sent_ns.saturating_add(self.plan.timeout_ns);
                    if now_ns >= end_ns {
                        ping.under_way = None;
                        return Step::Lost { ping: at, number };
                    }
                    wait_ns = wait_ns.min(end_ns - now_ns);
                }
                None if !more => continue,
                None if now_ns >= ping.due_ns => return Step::Send { ping: at, number: ping.sent as u16 },
                None => wait_ns = wait_ns.min(ping.due_ns - now_ns),
            }
            done = false;
        }
        if done { Step::Done } else { Step::Wait { ns: wait_ns } }
    }

    /// The frame of [`Step::Send`] has been sent; the next one is due `extra_ns` later than the interval says.
    pub fn sent(&mut self, ping: usize, number: u16, at_ns: u64, extra_ns: u64) {
        let ping = &mut self.pings[ping];
        // A late ping does not catch up: that would be a burst.
        let late = ping.sent == 0 || at_ns >= ping.due_ns.saturating_add(self.plan.interval_ns);
        let from_ns = if late { at_ns } else { ping.due_ns };
        ping.due_ns = from_ns.saturating_add(self.plan.interval_ns).saturating_add(extra_ns);
        ping.sent += 1;
        ping.under_way = Some((number, at_ns));
    }

    /// The round-trip time in ns, if the answer is that of the frame on its way.
    pub fn answered(&mut self, answer: &Answer) -> Option<u64> {
        let ping = self.pings.get_mut(answer.ping)?;
        match ping.under_way {
            Some((number, sent_ns)) if number == answer.number => {
                ping.under_way = None;
                Some(answer.at_ns.saturating_sub(sent_ns))
            }
            _ => {
                self.strays += 1;
                None
            }
        }
    }

    /// Frames sent, without those still on their way.
    pub fn sent_count(&self) -> u64 {
        self.pings.iter().map(|ping| ping.sent - u64::from(ping.under_way.is_some())).sum()
    }

    /// Late, duplicate and unrelated answers.
    pub fn strays(&self) -> u64 {
        self.strays
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn plan(pings: usize, count: u64, interval_ns: u64) -> Plan {
        Plan { pings, count: Some(count), interval_ns, timeout_ns: 10 * MS }
    }

    fn answer(ping: usize, number: u16, at_ns: u64) -> Answer {
        Answer { ping, number, at_ns, frame: Frame::default() }
    }

    #[test]
    fn a_ping_sends_at_its_interval_and_stops_after_its_count() {
        let mut flight = Flight::new(plan(1, 2, 5 * MS));
        assert_eq!(flight.next(100), Step::Send { ping: 0, number: 0 });
        flight.sent(0, 0, 100, 0);
        assert_eq!(flight.next(100), Step::Wait { ns: 10 * MS });
        assert_eq!(flight.answered(&answer(0, 0, 100 + MS)), Some(MS));
        assert_eq!(flight.next(100 + MS), Step::Wait { ns: 4 * MS });
        assert_eq!(flight.next(100 + 5 * MS), Step::Send { ping: 0, number: 1 });
        flight.sent(0, 1, 100 + 5 * MS, 0);
        assert_eq!(flight.answered(&answer(0, 1, 100 + 6 * MS)), Some(MS));
        assert_eq!((flight.next(100 + 6 * MS), flight.sent_count()), (Step::Done, 2));
    }

    #[test]
    fn a_late_answer_is_counted_and_does_not_answer_a_later_frame() {
        let mut flight = Flight::new(plan(1, 2, 0));
        flight.sent(0, 0, 0, 0);
        assert_eq!(flight.next(10 * MS), Step::Lost { ping: 0, number: 0 });
        assert_eq!(flight.next(10 * MS), Step::Send { ping: 0, number: 1 });
        flight.sent(0, 1, 10 * MS, 0);
        assert_eq!(flight.answered(&answer(0, 0, 11 * MS)), None);
        assert_eq!(flight.answered(&answer(0, 1, 12 * MS)), Some(2 * MS));
        assert_eq!(flight.answered(&answer(0, 1, 13 * MS)), None);
        assert_eq!((flight.strays(), flight.sent_count()), (2, 2));
    }

    #[test]
    fn a_late_ping_sends_no_burst() {
        let mut flight = Flight::new(plan(1, 3, MS));
        flight.sent(0, 0, 0, 0);
        assert!(flight.answered(&answer(0, 0, 7 * MS)).is_some());
        assert_eq!(flight.next(7 * MS), Step::Send { ping: 0, number: 1 });
        flight.sent(0, 1, 7 * MS, 0);
        assert!(flight.answered(&answer(0, 1, 7 * MS + 1)).is_some());
        assert_eq!(flight.next(7 * MS + 1), Step::Wait { ns: MS - 1 });
    }

    proptest! {
        /// Every frame is answered or lost, for any answers at any times, and the run ends.
        #[test]
        fn every_frame_is_answered_or_lost(
            pings in 1_usize..5,
            count in 1_u64..20,
            interval in 0..3 * MS,
            delays in proptest::collection::vec(0..20 * MS, 1..50),
        ) {
            let mut flight = Flight::new(plan(pings, count, interval));
            let (mut now, mut answered, mut lost, mut at) = (1, 0, 0, 0);
            let mut coming: Vec<Answer> = Vec::new();
            loop {
                match flight.next(now) {
                    Step::Done => break,
                    Step::Lost { .. } => lost += 1,
                    Step::Send { ping, number } => {
                        flight.sent(ping, number, now, 0);
                        coming.push(answer(ping, number, now + delays[at % delays.len()]));
                        at += 1;
                    }
                    Step::Wait { ns } => {
                        prop_assert!(ns > 0);
                        coming.sort_by_key(|answer| std::cmp::Reverse(answer.at_ns));
                        match coming.last() {
                            Some(first) if first.at_ns <= now + ns => {
                                now = now.max(first.at_ns);
                                answered += u64::from(flight.answered(first).is_some());
                                coming.pop();
                            }
                            _ => now += ns,
                        }
                    }
                }
            }
            prop_assert_eq!(flight.sent_count(), pings as u64 * count);
            prop_assert_eq!(answered + lost, pings as u64 * count);
        }
    }
}
