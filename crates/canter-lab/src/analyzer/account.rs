//! The ways of frames in a window: when each was sent and forwarded, and what was executed in between. A frame's way begins at
//! the sender's transmit function, or, on a bus where a frame takes time, when that bus delivers it; it ends at the next
//! transmit function, which is the gateway's. What the sender's driver executes up to its command to the chip counts as the
//! driver's and not as the meter's: the gateway's driver executes the same between the end of the way and its own command. A
//! gateway whose driver is outside the kernel marks that command, and its way is from command to command.

use super::{
    stage::{ALL, MARKS, Mark, STAGES, Stage},
    window::{CLOCK, Count, Event, FRAME, SEND, USER, Window},
};
use canter_measure::work::Work;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    pub time_ns: u64,
    /// The ns of each stage since the begin; their sum is the time since the begin.
    pub stages: [u64; STAGES],
    /// The work of each stage.
    pub work: [Work; STAGES],
    /// The time in which no processor executed anything, which `stages` has as idle.
    pub waited_ns: u64,
    /// How often a function of the kernel was entered.
    pub entries: u64,
    pub reception: Option<Reception>,
}

/// The first part of a frame's way: from its arrival at the gateway's controller until the gateway's program runs. Only of a
/// program that sleeps until then, and where the arrival is seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reception {
    /// Without what the meter executes meanwhile.
    pub time_ns: u64,
    /// The part of it in interrupts and soft interrupts.
    pub aside_ns: u64,
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
        if let Some(way) = way(number, events, window)? {
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
fn way(number: usize, events: &[Event], window: &Window) -> Result<Option<Way>, String> {
    let find = |from: usize, wanted: Mark| {
        events.iter().skip(from).position(|event| meaning(event) == Some(wanted)).map(|at| from + at)
    };
    let Some(sent) = find(0, Mark::Transmit) else { return Ok(None) };
    let delivered = find(sent + 1, Mark::Delivery);
    let end = find(delivered.unwrap_or(sent) + 1, Mark::Transmit);
    if let Some(other) = find(sent + 1, Mark::Transmit).filter(|other| end.is_some_and(|end| *other < end)) {
        let name = name(&events[other]);
        return Err(format!("frame {number}: {name} ran before the bus had delivered the frame"));
    }
    if let Some(more) = end.and_then(|end| find(end + 1, Mark::Transmit)) {
        let name = name(&events[more]);
        return Err(format!(
            "frame {number}: {name} ran once more: something else sends, or the gateway took longer than the pause (a longer --gap)"
        ));
    }
    let Some(end) = end else {
        let begin_ns = events[delivered.unwrap_or(sent)].count.time_ns;
        return Ok(Some(Way { number, begin_ns, end: None }));
    };
    let is_command = |event: &&Event| meaning(event) == Some(Mark::Command) && event.cpu == events[sent].cpu;
    let command = events[sent..end].iter().find(is_command).filter(|_| delivered.is_none());
    // A driver outside the kernel marks its command, so the way begins at the sender's.
    let begin = match command {
        Some(command) if events[end].mark == SEND => command,
        _ => &events[delivered.unwrap_or(sent)],
    };
    if events[sent..=end].iter().any(|event| event.mark == CLOCK) {
        return Err(format!(
            "frame {number}: the analyzer learned the time only during its way (a longer --gap)"
        ));
    }
    let parts =
        Parts { begin, command, arrived: delivered.map(|at| &events[at]).or(command), end: &events[end] };
    let running = events[sent..end].iter().find(|event| event.mark == USER);
    let end = parts.account(running, window).map_err(|why| format!("frame {number}: {why}"))?;
    Ok(Some(Way { number, begin_ns: begin.count.time_ns, end: Some(end) }))
}

/// The events of a frame's way that is complete.
struct Parts<'a> {
    begin: &'a Event,
    /// The sender's driver commands its chip to send.
    command: Option<&'a Event>,
    /// The frame is at the gateway's controller.
    arrived: Option<&'a Event>,
    end: &'a Event,
}

impl Parts<'_> {
    /// What was executed between the ends. `running`: the gateway's program runs.
    fn account(&self, running: Option<&Event>, window: &Window) -> Result<End, String> {
        let (begun, ended) = (self.begin.count, self.end.count);
        let mut stages = stages(&begun, &ended, window.shift);
        let mut work: [Work; STAGES] = std::array::from_fn(|at| ended.work[at] - begun.work[at]);
        let [instrument, driver, own] =
            [Stage::Instrument, Stage::Driver, Stage::Gateway].map(|stage| stage as usize - 1);
        if let Some(command) = self.command {
            let before = command.count.stages[instrument].saturating_sub(begun.stages[instrument]);
            stages[instrument] -= before << window.shift;
            stages[driver] += before << window.shift;
            let before = command.count.work[instrument] - begun.work[instrument];
            work[instrument] = work[instrument] - before;
            work[driver] = work[driver] + before;
        }
        let (sum, took) = (stages.iter().sum::<u64>(), ended.time_ns.saturating_sub(begun.time_ns));
        if sum != took {
            return Err(format!("its stages take {sum} ns, and its way {took} ns"));
        }
        if self.end.mark == SEND && self.end.cpu >= window.processors {
            // A gateway without Linux has its processor to itself; Linux is the sender's machine.
            let own_ns = stages[own];
            stages = [0; STAGES];
            (stages[own], stages[instrument]) = (own_ns, sum - own_ns);
            let own_work = work[own];
            work = [Work::default(); STAGES];
            work[own] = own_work;
            return Ok(End { time_ns: ended.time_ns, stages, work, ..End::default() });
        }
        let reception = self
            .arrived
            .zip(running)
            .and_then(|(arrived, running)| reception(&arrived.count, &running.count, window.shift));
        let entries = ended.entries.saturating_sub(begun.entries);
        let waited_ns = ended.idle_ns.saturating_sub(begun.idle_ns);
        Ok(End { time_ns: ended.time_ns, stages, work, waited_ns, entries, reception })
    }
}

fn meaning(event: &Event) -> Option<Mark> {
    match event.mark {
        SEND => Some(Mark::Transmit),
        mark => MARKS.get((mark as usize).wrapping_sub(1)).map(|(_, mark)| *mark),
    }
}

/// The function whose mark it is.
fn name(event: &Event) -> &'static str {
    let marked = MARKS.get((event.mark as usize).wrapping_sub(1));
    marked.map_or("the driver outside the kernel", |(name, _)| name)
}

/// The reception between these counts; `None`: the program ran before the frame arrived.
fn reception(arrived: &Count, running: &Count, shift: u32) -> Option<Reception> {
    let stages = stages(arrived, running, shift);
    let time_ns = stages.iter().sum::<u64>() - stages[Stage::Instrument as usize - 1];
    let aside_ns = running.aside.checked_sub(arrived.aside)? << shift;
    (running.time_ns > arrived.time_ns).then_some(Reception { time_ns, aside_ns })
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
        Event { mark, cpu: 0, count: Count { time_ns, idle_ns, stages, ..Count::default() } }
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
    fn a_driver_outside_the_kernel_is_measured_from_command_to_command() {
        let (sends, commands) = (number(Mark::Transmit), number(Mark::Command));
        let counted = |mut event: Event, own: u64, cpu: u32| {
            event.count.stages[Stage::Gateway as usize - 1] = own;
            Event { cpu, ..event }
        };
        let window = |cpu| Window {
            events: vec![
                event(FRAME, 0, 0, 0),
                event(sends, 10, 10, 0),
                event(commands, 40, 40, 0),
                counted(event(SEND, 100, 70, 0), 30, cpu),
            ],
            processors: 1,
            ..Window::default()
        };
        let end_on = |cpu| ways(&window(cpu)).unwrap()[0].end.unwrap();
        let stage_ns = |end: End, stage: Stage| end.stages[stage as usize - 1];
        let under_linux = end_on(0);
        assert_eq!((stage_ns(under_linux, Stage::Driver), stage_ns(under_linux, Stage::Gateway)), (30, 30));
        let without = end_on(1);
        assert_eq!((stage_ns(without, Stage::Gateway), without.of_meter()), (30, 30));
    }

    #[test]
    fn a_reception_ends_when_the_gateways_program_runs() {
        let (sends, commands) = (number(Mark::Transmit), number(Mark::Command));
        let aside = |mut event: Event, aside: u64| {
            event.count.aside = aside;
            event
        };
        let mut events = vec![
            event(FRAME, 0, 0, 0),
            event(sends, 10, 10, 0),
            event(commands, 40, 40, 0),
            aside(event(USER, 90, 90, 0), 35),
            aside(event(sends, 100, 100, 0), 35),
        ];
        let reception = |events: Vec<Event>| found(events).unwrap()[0].end.unwrap().reception;
        assert_eq!(reception(events.clone()), Some(Reception { time_ns: 50, aside_ns: 35 }));
        // A program that spins runs before the frame arrives.
        events.swap(2, 3);
        (events[2].count.time_ns, events[3].count.time_ns) = (30, 40);
        assert_eq!(reception(events), None);
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
