//! What the analyzer has seen between the opening and the closing of a window.

use super::stage::STAGES;
use canter_measure::work::{COUNTS, Work};

/// The first line of a result: the version of the protocol.
const VERSION: &str = "canter analyzer 3";
/// The mark of an event that a program in the guest has asked for.
pub const FRAME: u32 = 0;
/// The mark of the event from which on the clock is exact.
pub const CLOCK: u32 = 0xffff;
/// The mark of the event that a driver outside the kernel begins to send a frame.
pub const SEND: u32 = 0xfffe;
/// The mark of the event that the gateway's program runs for the first time since [`FRAME`].
pub const USER: u32 = 0xfffd;

/// A window's contents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    pub events: Vec<Event>,
    /// The state at the closing.
    pub end: Count,
    /// By function of the kernel.
    pub functions: Vec<Executed>,
    /// By block of user programs.
    pub user: Vec<Executed>,
    /// The sum of all differences between the count of instructions and QEMU's clock.
    pub drift_ns: u64,
    /// The duration of an instruction: 2^shift ns.
    pub shift: u32,
    /// Linux has the processors below this number; any other runs without Linux.
    pub processors: u32,
}

/// What was executed at an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    pub address: u64,
    pub work: Work,
}

/// Time, and instructions since the opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub time_ns: u64,
    /// The time in which no processor executed anything.
    pub idle_ns: u64,
    /// The instructions of interrupts and soft interrupts, which are in `stages` too.
    pub aside: u64,
    /// How often a function of the kernel was entered, without the instrument's.
    pub entries: u64,
    pub stages: [u64; STAGES],
    /// By stage. What is no instruction is 0 unless the machine has costs.
    pub work: [Work; STAGES],
}

/// A marked instruction was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub mark: u32,
    pub cpu: u32,
    pub count: Count,
}

impl Window {
    /// Reads a result of the plugin. An error says what makes it useless.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        if lines.next() != Some(VERSION) {
            return Err(format!("its result does not begin with `{VERSION}`"));
        }
        let mut window = Self::default();
        for line in lines {
            window.line(line).ok_or_else(|| format!("its result has the line `{line}`"))??;
        }
        Ok(window)
    }

    /// Takes a line; `None` when it is malformed.
    fn line(&mut self, line: &str) -> Option<Result<(), String>> {
        let mut words = line.split(' ');
        let kind = words.next()?;
        if matches!(kind, "f" | "u") {
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let instructions = words.next()?.parse().ok()?;
            let [work] = work([instructions], &numbers(words)?)?;
            let places = if kind == "f" { &mut self.functions } else { &mut self.user };
            places.push(Executed { address, work });
            return Some(Ok(()));
        }
        let numbers = numbers(words)?;
        match (kind, &numbers[..]) {
            ("overflow", [0]) | ("depth", [_]) => {}
            ("drift", [ns]) => self.drift_ns = *ns,
            ("overflow", [count]) => {
                return Some(Err(format!("{count} events did not fit its memory (measure fewer frames)")));
            }
            ("shift", [shift]) => self.shift = u32::try_from(*shift).ok()?,
            ("end", counts) => self.end = count(counts)?,
            ("e", [mark, cpu, counts @ ..]) => {
                let [mark, cpu] = [*mark, *cpu].map(u32::try_from);
                self.events.push(Event { mark: mark.ok()?, cpu: cpu.ok()?, count: count(counts)? });
            }
            _ => return None,
        }
        Some(Ok(()))
    }
}

fn numbers<'a>(words: impl Iterator<Item = &'a str>) -> Option<Vec<u64>> {
    words.map(|word| word.parse().ok()).collect()
}

fn count(numbers: &[u64]) -> Option<Count> {
    let [time_ns, idle_ns, aside, entries, rest @ ..] = numbers else { return None };
    let (stages, costs) = rest.split_first_chunk()?;
    let work = work(*stages, costs)?;
    Some(Count {
        time_ns: *time_ns,
        idle_ns: *idle_ns,
        aside: *aside,
        entries: *entries,
        stages: *stages,
        work,
    })
}

/// Instructions with the other counts of each, which are missing unless the machine has costs.
fn work<const N: usize>(instructions: [u64; N], costs: &[u64]) -> Option<[Work; N]> {
    if costs.is_empty() {
        return Some(instructions.map(|instructions| Work { instructions, ..Work::default() }));
    }
    let (costs, []) = costs.as_chunks::<{ COUNTS - 1 }>() else { return None };
    let costs: &[[u64; COUNTS - 1]; N] = costs.try_into().ok()?;
    Some(std::array::from_fn(|at| {
        let [code, data, memory, registers, entries] = costs[at];
        Work::from_counts([instructions[at], code, data, memory, registers, entries])
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "canter analyzer 3\ndrift 0\noverflow 0\ndepth 12\nshift 0\n";

    #[test]
    fn a_result_is_read_and_a_damaged_one_is_refused_with_the_reason() {
        let zeros = "0 ".repeat(STAGES);
        let zeros = zeros.trim_end();
        let text = format!(
            "{HEAD}end 90 5 3 2 {zeros}\ne 1 0 70 5 3 1 {zeros}\nf ffffffff81000000 12\nu 401000 3\n"
        );
        let window = Window::parse(&text).unwrap();
        assert_eq!((window.end.time_ns, window.events[0].count.time_ns), (90, 70));
        assert_eq!((window.end.aside, window.end.entries, window.events[0].count.entries), (3, 2, 1));
        let user = Executed { address: 0x40_1000, work: Work::from_counts([3, 0, 0, 0, 0, 0]) };
        assert_eq!((window.functions[0].work.instructions, window.user[0]), (12, user));
        for (from, to, why) in [
            ("overflow 0", "overflow 2", "2 events did not fit"),
            ("f ffffffff81000000 12", "f ffffffff81000000", "has the line"),
            ("analyzer 3", "analyzer 2", "does not begin"),
            ("u 401000 3", "u 401000 3 1 2 3 4", "has the line"),
            ("e 1 0 70 5", "e 1 0 70", "has the line"),
        ] {
            let error = Window::parse(&text.replace(from, to)).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_machine_with_costs_has_them_for_each_stage_and_function() {
        let zeros = "0 ".repeat(STAGES);
        let costs: Vec<_> = (0..STAGES).map(|stage| format!("{stage} 2 3 4 5")).collect();
        let text =
            format!("{HEAD}end 90 5 3 2 {zeros}{}\nf ffffffff81000000 12 9 8 7 6 5\n", costs.join(" "));
        let window = Window::parse(&text).unwrap();
        assert_eq!(window.end.work[6], Work::from_counts([0, 6, 2, 3, 4, 5]));
        assert_eq!(window.functions[0].work, Work::from_counts([12, 9, 8, 7, 6, 5]));
        assert!(Window::parse(&text.replacen("0 2 3 4 5 ", "", 1)).is_err());
    }
}
