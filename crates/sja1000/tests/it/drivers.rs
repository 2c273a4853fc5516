//! The drivers under test: this crate's controller as a program would use it, and canchar's code, which runs as a program
//! of user space (kernel/tests/sja1000) and reaches the chip by two pipes.

use crate::double::Shared;
use sja1000::{Bus, Controller, Frame, Identifier, Interrupts, Registers, boards::kvaser, register as r};
use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::OnceLock,
};

/// Where a controller is with its errors (ISO 11898-1), as the driver reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Active,
    Warning,
    Passive,
    BusOff,
    /// Not on the bus, or no chip answers.
    Stopped,
}

/// What a driver counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub overruns: u64,
    pub bus_offs: u64,
    /// Times that it was back after bus-off.
    pub recoveries: u64,
}

/// What a scenario asks of a driver.
pub trait Driver {
    /// Goes on the bus, or again after bus-off; false: it cannot.
    fn start(&mut self) -> bool;
    fn stop(&mut self);
    /// The chip interrupts; false: it was not this chip.
    fn interrupt(&mut self) -> bool;
    /// From now on the driver is polled: frames do not interrupt. Or again by interrupts.
    fn be_polled(&mut self, polled: bool);
    /// One look at the chip of a driver that is polled.
    fn poll(&mut self);
    /// False: no room, or not on the bus.
    fn send(&mut self, frame: &Frame) -> bool;
    /// What has arrived since the last call.
    fn received(&mut self) -> Vec<Frame>;
    fn state(&mut self) -> State;
    fn counts(&mut self) -> Counts;
}

// ------------------------------------------------------------------ the crate

/// A program over [`Controller`], as small as can be: each of its steps is a call of the crate.
pub struct Crate {
    controller: Controller<Shared>,
    received: Vec<Frame>,
    counts: Counts,
    state: State,
}

const INTERRUPTS: u8 = r::IR_RECEIVED | STATE_CHANGES | r::IR_OVERRUN;
const STATE_CHANGES: u8 = r::IR_WARNING | r::IR_PASSIVE;

impl Crate {
    pub fn new(chip: &Shared) -> Self {
        Self {
            controller: Controller::new(chip.clone()),
            received: Vec::new(),
            counts: Counts::default(),
            state: State::Stopped,
        }
    }

    fn state_of_chip(&mut self) -> State {
        let (status, errors) = (self.controller.status(), self.controller.error_counters());
        match errors.receive.max(errors.transmit) {
            _ if !self.controller.answers() => State::Stopped,
            _ if status.bus_off() => State::BusOff,
            128.. => State::Passive,
            _ if status.error_warning() => State::Warning,
            _ => State::Active,
        }
    }

    fn look(&mut self) {
        while self.controller.answers() && self.controller.status().received() {
            let frame = self.controller.take();
            self.received.push(frame);
        }
        if self.controller.answers() && self.controller.status().overrun() {
            self.controller.clear_overrun();
            self.counts.overruns += 1;
        }
        let now = self.state_of_chip();
        match (self.state, now) {
            (State::BusOff, State::BusOff) => {}
            (_, State::BusOff) => self.counts.bus_offs += 1,
            (State::BusOff, State::Active) => self.counts.recoveries += 1,
            _ => {}
        }
        self.state = now;
    }
}

impl Driver for Crate {
    fn start(&mut self) -> bool {
        let done = if self.state == State::BusOff {
            self.controller.recover().is_ok()
        } else {
            let bus: Bus = kvaser::PCICAN.bus(500_000).unwrap();
            self.controller.start(&bus).is_ok()
        };
        if !done {
            self.state = State::Stopped;
            return false;
        }
        self.controller.enable_interrupts(Interrupts(INTERRUPTS));
        self.state = self.state_of_chip();
        true
    }

    fn stop(&mut self) {
        let _ = self.controller.stop(); // of a card that was removed, too
        self.state = State::Stopped;
    }

    fn interrupt(&mut self) -> bool {
        if self.controller.interrupts() == Interrupts::NONE {
            return false;
        }
        self.look();
        true
    }

    fn be_polled(&mut self, polled: bool) {
        self.controller.enable_interrupts(Interrupts(if polled { STATE_CHANGES } else { INTERRUPTS }));
    }

    fn poll(&mut self) {
        self.look();
    }

    fn send(&mut self, frame: &Frame) -> bool {
        self.controller.transmit(frame)
    }

    fn received(&mut self) -> Vec<Frame> {
        std::mem::take(&mut self.received)
    }

    fn state(&mut self) -> State {
        self.state
    }

    fn counts(&mut self) -> Counts {
        self.counts
    }
}

// -------------------------------------------------------------------- canchar

/// The kernel module's core, built once for all tests.
pub fn build_canchar() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| build_program("driver"))
}

/// A program of kernel/tests/sja1000, by its name.
pub fn build_program(name: &str) -> String {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel/tests/sja1000/build.sh");
    let program = format!(concat!(env!("CARGO_TARGET_TMPDIR"), "/canchar_{}"), name);
    let done = Command::new(source).args([name, &program]).output().unwrap();
    assert!(done.status.success(), "{source}: {}", String::from_utf8_lossy(&done.stderr));
    program
}

/// `canchar`'s core with its SJA1000.
pub struct Canchar {
    chip: Shared,
    program: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    received: Vec<Frame>,
}

impl Canchar {
    pub fn new(program: &str, chip: &Shared) -> Self {
        let mut program = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let commands = program.stdin.take().unwrap();
        let answers = BufReader::new(program.stdout.take().unwrap());
        Self { chip: chip.clone(), program, commands, answers, received: Vec::new() }
    }

    /// Runs a command, serves its accesses to registers, and returns its numbers.
    fn run(&mut self, command: &str) -> Vec<i64> {
        writeln!(self.commands, "{command}").unwrap();
        loop {
            let mut line = String::new();
            self.answers.read_line(&mut line).unwrap();
            let mut words = line.split_whitespace();
            let kind = words.next().unwrap_or_else(|| panic!("{command}: the program has ended"));
            let numbers: Vec<i64> = words.map(|word| word.parse().unwrap()).collect();
            match (kind, &numbers[..]) {
                ("r", &[register]) => {
                    let value = self.chip.read(register as u8);
                    writeln!(self.commands, "{value}").unwrap();
                }
                ("w", &[register, value]) => self.chip.write(register as u8, value as u8),
                ("i", _) => {
                    let active = self.chip.0.borrow().interrupts();
                    writeln!(self.commands, "{}", u8::from(active)).unwrap();
                }
                ("u", _) => self
                    .chip
                    .0
                    .borrow_mut()
                    .mistakes
                    .push(format!("{command}: an interrupt without a handler")),
                ("=", _) => return numbers,
                _ => panic!("{command}: {line}"),
            }
        }
    }
}

impl Drop for Canchar {
    fn drop(&mut self) {
        let _ = self.program.kill(); // it may have ended
        let _ = self.program.wait();
    }
}

/// The flags of `struct can_frame`'s `can_id`.
const EXTENDED: u32 = 0x8000_0000;
const REMOTE: u32 = 0x4000_0000;
const ERROR: u32 = 0x2000_0000;

fn can_id(frame: &Frame) -> u32 {
    let id = match frame.identifier {
        Identifier::Standard(id) => id.into(),
        Identifier::Extended(id) => id | EXTENDED,
    };
    id | if frame.remote { REMOTE } else { 0 }
}

fn frame_of(can_id: u32, len: u8, data: &[i64]) -> Frame {
    let id = match can_id {
        id if id & EXTENDED != 0 => Identifier::Extended(id & 0x1fff_ffff),
        id => Identifier::Standard((id & 0x7ff) as u16),
    };
    if can_id & REMOTE != 0 {
        return Frame::remote(id, len);
    }
    Frame::data(id, &data.iter().map(|byte| *byte as u8).collect::<Vec<_>>())
}

impl Driver for Canchar {
    fn start(&mut self) -> bool {
        self.run("start") == [0]
    }

    fn stop(&mut self) {
        self.run("stop");
    }

    fn interrupt(&mut self) -> bool {
        self.run("interrupt") == [1]
    }

    fn be_polled(&mut self, polled: bool) {
        self.run(if polled { "mask" } else { "unmask" });
    }

    fn poll(&mut self) {
        self.run("poll");
    }

    fn send(&mut self, frame: &Frame) -> bool {
        let mut command = format!("write {} {}", can_id(frame), frame.len);
        for byte in &frame.data[..usize::from(frame.len)] {
            command += &format!(" {byte}");
        }
        self.run(&command) == [0]
    }

    fn received(&mut self) -> Vec<Frame> {
        let numbers = self.run("read");
        let mut rest = &numbers[..];
        while let [can_id, len, data @ ..] = rest {
            let (data, after) = data.split_at(*len as usize);
            if *can_id as u32 & ERROR == 0 {
                self.received.push(frame_of(*can_id as u32, *len as u8, data));
            }
            rest = after;
        }
        std::mem::take(&mut self.received)
    }

    fn state(&mut self) -> State {
        match self.run("state")[..] {
            [0] => State::Active,
            [1] => State::Warning,
            [2] => State::Passive,
            [3] => State::BusOff,
            _ => State::Stopped,
        }
    }

    fn counts(&mut self) -> Counts {
        let [_, _, overruns, bus_offs, recoveries, _] = self.run("counts")[..] else { panic!("counts") };
        Counts { overruns: overruns as u64, bus_offs: bus_offs as u64, recoveries: recoveries as u64 }
    }
}

/// What only canchar has: a queue, counts of it, and a restart after a time.
impl Canchar {
    /// Frames that were on the bus, that were aborted in the controller, and that were discarded from the queue.
    pub fn fates(&mut self) -> [i64; 3] {
        let [sent, aborted, _, _, _, lost] = self.run("counts")[..] else { panic!("counts") };
        [sent, aborted, lost]
    }

    /// From now on the chip interrupts within the driver's calls, too, wherever interrupts are on.
    pub fn wire_line(&mut self) {
        self.run("line");
    }

    /// A time after which it goes on the bus again by itself.
    pub fn set_restart(&mut self) {
        self.run("restart_ms 100");
    }

    /// Tells the driver that its restart time is over; false: the driver was not waiting for it.
    pub fn restart_time_is_over(&mut self) -> bool {
        self.run("restart") == [1]
    }

    /// The error frames in its queue, by their class.
    pub fn error_classes(&mut self) -> Vec<u32> {
        let numbers = self.run("read");
        let (mut rest, mut classes) = (&numbers[..], Vec::new());
        while let [can_id, len, data @ ..] = rest {
            let can_id = *can_id as u32;
            if can_id & ERROR != 0 {
                classes.push(can_id & 0x1ff);
            }
            rest = &data[*len as usize..];
        }
        classes
    }
}
