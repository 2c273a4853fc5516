//! The ways of frames in a window: when each was sent and forwarded, and what was executed in between. A frame's way begins at
//! the sender's transmit function, or, on a bus where a frame takes time, when that bus delivers it; it ends at the next
//! transmit function, which is the gateway's. What the sender's driver executes up to its command to the chip counts as the
//! driver's and not as the meter's: the gateway's driver executes the same between the end of the way and its own command.

use super::{
    stage::{ALL, MARKS, Mark, STAGES, Stage},
    window::{CLOCK, Count, Event, FRAME, Window},
};

/// A frame of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The number of the frame, counted from 0.
    pub number: usize,
    pub begin_ns: u64,
    /// `None`: the gateway did not send it.
    pub end: Option<End>,
}

/// The end of a frame's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub time_ns: u64,
    /// The ns of each stage since the begin; their sum is the time since the begin.
    pub stages: [u64; STAGES],
}

impl End {
    /// The part of the way that is the meter's own.
    pub fn of_meter(&self) -> u64 {
        self.stages[Stage::Instrument as usize - 1]
    }
}

/// The ways of all frames, by their marks in the order of time. An error says why the window decides nothing.
pub fn ways(window: &Window) -> Result<Vec<Way>, String> {
    let mut ways = Vec::new();
    let mut frames = window.events.split(|event| event.mark == FRAME);
    frames.next(); // before the first frame
    for (number, events) in frames.enumerate() {
        if let Some(way) = way(number, events, window.shift)? {
            ways.push(way);
        }
    }
    // An instruction here and there is repeated after a fault; more often, the count is wrong.
    let drift_ns = window.drift_ns >> window.shift;
    if drift_ns > ways.len() as u64 {
        return Err(format!("its count and QEMU's clock differ by {drift_ns} instructions"));
    }
    Ok(ways)
}

/// The way of a frame by the events after its mark; `None`: it was never sent.
fn way(number: usize, events: &[Event], shift: u32) -> Result<Option<Way>, String> {
    let meaning = |event: &Event| MARKS.get((event.mark as usize).wrapping_sub(1)).map(|(_, mark)| *mark);
    let find = |from: usize, wanted: Mark| {
        events.iter().skip(from).position(|event| meaning(event) == Some(wanted)).map(|at| from + at)
    };
    let Some(sent) = find(0, Mark::Transmit) else { return Ok(None) };
    let begin = find(sent + 1, Mark::Delivery).unwrap_or(sent);
    let end = find(begin + 1, Mark::Transmit);
    if let Some(other) = find(sent + 1, Mark::Transmit).filter(|other| end.is_some_and(|end| *other < end)) {
        let (name, _) = MARKS[events[other].mark as usize - 1];
        return Err(format!("frame {number}: {name} ran before the bus had delivered the frame"));
    }
    if let Some(more) = end.and_then(|end| find(end + 1, Mark::Transmit)) {
        let (name, _) = MARKS[events[more].mark as usize - 1];
        return Err(format!(
            "frame {number}: {name} ran once more: something else sends, or the gateway took longer than the pause (a longer --gap)"
        ));
    }
    let begun = events[begin].count;
    let way = Way { number, begin_ns: begun.time_ns, end: None };
    let Some(end) = end else { return Ok(Some(way)) };
    if events[begin..=end].iter().any(|event| event.mark == CLOCK) {
        return Err(format!(
            "frame {number}: the analyzer learned the time only during its way (a longer --gap)"
        ));
    }
    let ended = events[end].count;
    let mut stages = stages(&begun, &ended, shift);
    let commands = |event: &&Event| meaning(event) == Some(Mark::Command) && event.cpu == events[begin].cpu;
    if let Some(command) = events[begin..end].iter().find(commands).filter(|_| begin == sent) {
        let [instrument, driver] = [Stage::Instrument, Stage::Driver].map(|stage| stage as usize - 1);
        let before = command.count.stages[instrument].saturating_sub(begun.stages[instrument]) << shift;
        stages[instrument] -= before;
        stages[driver] += before;
    }
    let (sum, took) = (stages.iter().sum::<u64>(), ended.time_ns.saturating_sub(begun.time_ns));
    if sum != took {
        return Err(format!("frame {number}: its stages take {sum} ns, and its way {took} ns"));
    }
    Ok(Some(Way { end: Some(End { time_ns: ended.time_ns, stages }), ..way }))
}

/// The ns of each stage between two counts.
fn stages(begun: &Count, ended: &Count, shift: u32) -> [u64; STAGES] {
    let mut stages = [0; STAGES];
    for (stage, ns) in ALL.iter().zip(&mut stages) {
        let at = *stage as usize - 1;
        *ns = ended.stages[at].saturating_sub(begun.stages[at]) << shift;
        if *stage == Stage::Idle {
            *ns += ended.idle_ns.saturating_sub(begun.idle_ns);
        }
    }
    stages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(mark: u32, time_ns: u64, driver: u64, idle_ns: u64) -> Event {
        let mut stages = [0; STAGES];
        stages[Stage::Driver as usize - 1] = driver;
        Event { mark, cpu: 0, count: Count { time_ns, idle_ns, stages } }
    }

    fn number(mark: Mark) -> u32 {
        1 + MARKS.iter().position(|(_, one)| *one == mark).unwrap() as u32
    }

    fn found(events: Vec<Event>) -> Result<Vec<Way>, String> {
        ways(&Window { events, ..Window::default() })
    }

    #[test]
    fn a_way_ends_at_the_second_transmission_and_closes_exactly() {
        let (sends, delivers) = (number(Mark::Transmit), number(Mark::Delivery));
        let card = vec![event(FRAME, 0, 0, 0), event(sends, 10, 1, 0), event(sends, 110, 91, 10)];
        let [way] = &found(card.clone()).unwrap()[..] else { panic!("one frame") };
        let end = way.end.unwrap();
        assert_eq!((way.begin_ns, end.time_ns, end.stages.iter().sum::<u64>()), (10, 110, 100));
        let mut wire = card.clone();
        wire.insert(2, event(delivers, 60, 41, 10));
        assert_eq!(found(wire).unwrap()[0].begin_ns, 60);
        // Lost, and never sent.
        assert_eq!(found(card[..2].to_vec()).unwrap()[0].end, None);
        assert!(found(card[..1].to_vec()).unwrap().is_empty());
    }

    #[test]
    fn what_the_senders_driver_does_before_its_command_is_the_drivers() {
        let (sends, commands) = (number(Mark::Transmit), number(Mark::Command));
        let with = |mut event: Event, instrument: u64, cpu: u32| {
            event.count.stages[Stage::Instrument as usize - 1] = instrument;
            Event { cpu, ..event }
        };
        let sent = [with(event(FRAME, 0, 0, 0), 0, 0), with(event(sends, 10, 0, 0), 0, 0)];
        // Another card's command, on another processor, is no sign of the sender's.
        let others = with(event(commands, 20, 5, 0), 5, 1);
        let own = with(event(commands, 50, 10, 0), 30, 0);
        let again = with(event(commands, 80, 20, 0), 50, 0);
        let end = with(event(sends, 110, 40, 0), 60, 1);
        let events = [&sent[..], &[others, own, again, end]].concat();
        let stages = found(events).unwrap()[0].end.unwrap().stages;
        let stage_ns = |stage: Stage| stages[stage as usize - 1];
        assert_eq!((stage_ns(Stage::Driver), stage_ns(Stage::Instrument)), (40 + 30, 30));
    }

    #[test]
    fn what_does_not_fit_a_frames_way_makes_the_window_invalid() {
        let sends = number(Mark::Transmit);
        let way = [event(FRAME, 0, 0, 0), event(sends, 10, 1, 0), event(sends, 110, 101, 0)];
        let with = |more: Event, at: usize| {
            let mut events = way.to_vec();
            events.insert(at, more);
            found(events).unwrap_err()
        };
        assert!(with(event(sends, 120, 111, 0), 3).contains("once more"));
        assert!(with(event(CLOCK, 50, 50, 0), 2).contains("only during its way"));
        let drifting = Window { events: way.to_vec(), drift_ns: 2, ..Window::default() };
        assert!(ways(&drifting).unwrap_err().contains("differ by 2 instructions"));
        let mut short = way;
        short[2].count.stages[1] -= 1;
        assert_eq!(found(short.to_vec()).unwrap_err(), "frame 0: its stages take 99 ns, and its way 100 ns");
    }
}
