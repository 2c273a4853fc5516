//! What the analyzer has seen between the opening and the closing of a window.

use super::stage::STAGES;

/// The first line of a result: the version of the protocol.
const VERSION: &str = "canter analyzer 2";
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
    /// Instructions by function of the kernel: address and number.
    pub functions: Vec<[u64; 2]>,
    /// Instructions of user programs by block: address and number.
    pub user: Vec<[u64; 2]>,
    /// The sum of all differences between the count of instructions and QEMU's clock.
    pub drift_ns: u64,
    /// The duration of an instruction: 2^shift ns.
    pub shift: u32,
    /// Linux has the processors below this number; any other runs without Linux.
    pub processors: u32,
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
            let entry = [address, words.next()?.parse().ok()?];
            if kind == "f" {
                self.functions.push(entry)
            } else {
                self.user.push(entry)
            }
            return Some(Ok(()));
        }
        let numbers: Vec<u64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
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

fn count(numbers: &[u64]) -> Option<Count> {
    let [time_ns, idle_ns, aside, entries, stages @ ..] = numbers else { return None };
    let stages = stages.try_into().ok()?;
    Some(Count { time_ns: *time_ns, idle_ns: *idle_ns, aside: *aside, entries: *entries, stages })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "canter analyzer 2\ndrift 0\noverflow 0\ndepth 12\nshift 0\n";

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
        assert_eq!((window.functions[0][1], window.user[0]), (12, [0x40_1000, 3]));
        for (from, to, why) in [
            ("overflow 0", "overflow 2", "2 events did not fit"),
            ("f ffffffff81000000 12", "f ffffffff81000000", "has the line"),
            ("analyzer 2", "analyzer 1", "does not begin"),
            ("e 1 0 70 5", "e 1 0 70", "has the line"),
        ] {
            let error = Window::parse(&text.replace(from, to)).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
