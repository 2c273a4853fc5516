//@ machine: host --ignored
//@ in: all
//! The gateway without an operating system as a machine's only program: QEMU boots the image, and this program is the PC
//! beside it. It drives the machine's other cards through QEMU's test interface (`-qtest`: accesses to ports, from
//! outside), by the same driver crate.

#![cfg(has_bare_metal)]

use sja1000::{Controller, Frame, Identifier, Registers, boards::kvaser};
use std::{
    cell::RefCell,
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    process::{Child, ChildStdout, Command, Stdio},
    rc::Rc,
    time::{Duration, Instant},
};

const DEADLINE: Duration = Duration::from_secs(60);
/// The cards, by slot: two of the gateway's, two of the PC's, on the buses A and B by turns.
const CARDS: &[(u8, &str)] = &[(4, "A"), (5, "B"), (6, "A"), (7, "B")];
/// QEMU's exit codes for console::End.
const DONE: Option<i32> = Some(1);
const FAILED: Option<i32> = Some(3);

/// A machine that runs the image; ended when this is dropped.
struct Machine {
    qemu: Child,
    console: BufReader<ChildStdout>,
}

impl Machine {
    fn boot(cards: &[(u8, &str)], line: &str, options: &[&str]) -> Self {
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args("-M q35 -nodefaults -display none -no-reboot -cpu max -m 64M -serial stdio".split(' '))
            .args([
                "-device",
                "isa-debug-exit,iobase=0xf4",
                "-object",
                "can-bus,id=A",
                "-object",
                "can-bus,id=B",
            ])
            .args(["-kernel", env!("BARE_METAL_IMAGE"), "-append", line])
            .args(options);
        for (slot, bus) in cards {
            qemu.args(["-device", &format!("kvaser_pci,canbus={bus},addr={slot:#x}")]);
        }
        qemu.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut qemu = qemu.spawn().unwrap();
        let console = BufReader::new(qemu.stdout.take().unwrap());
        Self { qemu, console }
    }

    /// The next line of the console, without `bare: `; it stays empty where the machine has ended.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.console.read_line(&mut line).unwrap();
        line.trim().strip_prefix("bare: ").unwrap_or(&line).to_owned()
    }

    /// The rest of the console, and the exit code.
    fn ended(mut self) -> (String, Option<i32>) {
        let since = Instant::now();
        loop {
            if let Some(status) = self.qemu.try_wait().unwrap() {
                let mut rest = String::new();
                self.console.read_to_string(&mut rest).unwrap();
                return (rest, status.code());
            }
            assert!(since.elapsed() < DEADLINE, "the image does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

/// QEMU's test interface: a line each way (docs/devel/testing/qtest.rst of QEMU).
struct Outside {
    to: UnixStream,
    from: BufReader<UnixStream>,
}

impl Outside {
    /// Where the machine has ended, all bits are 1, as where there is no card.
    fn ask(&mut self, command: &str) -> u32 {
        let mut answer = String::new();
        let answered = writeln!(self.to, "{command}").and_then(|()| self.from.read_line(&mut answer));
        if !matches!(answered, Ok(1..)) {
            return u32::MAX;
        }
        let value = answer.trim().strip_prefix("OK").unwrap_or_else(|| panic!("{command}: {answer}"));
        u32::from_str_radix(value.trim().trim_start_matches("0x"), 16).unwrap_or(0)
    }

    /// The first port of a card's first controller.
    fn ports_of(&mut self, slot: u8) -> u16 {
        const REGION_1: u32 = 0x14;
        self.ask(&format!("outl 0xcf8 {:#x}", 1 << 31 | u32::from(slot) << 11 | REGION_1));
        (self.ask("inl 0xcfc") & !3) as u16
    }
}

/// A controller's registers, from outside.
struct FromOutside {
    outside: Rc<RefCell<Outside>>,
    first: u16,
}

impl Registers for FromOutside {
    fn read(&mut self, register: u8) -> u8 {
        self.outside.borrow_mut().ask(&format!("inb {:#x}", self.first + u16::from(register))) as u8
    }

    fn write(&mut self, register: u8, value: u8) {
        let at = self.first + u16::from(register);
        self.outside.borrow_mut().ask(&format!("outb {at:#x} {value:#x}"));
    }
}

fn controller(outside: &Rc<RefCell<Outside>>, slot: u8) -> Controller<FromOutside> {
    let first = outside.borrow_mut().ports_of(slot);
    let mut controller = Controller::new(FromOutside { outside: Rc::clone(outside), first });
    controller.start(&kvaser::PCICAN.bus(250_000).unwrap()).unwrap();
    controller
}

/// Every kind of frame that the emulated controllers hand on: of remote ones they know only those that ask for nothing.
fn frame(number: u32) -> Frame {
    let bytes = number.wrapping_mul(0x9e37_79b9).to_le_bytes().repeat(2);
    let len = (number % 9) as usize;
    let identifier = match number % 2 {
        0 => Identifier::Standard((number * 37 % 0x800) as u16),
        _ => Identifier::Extended(number * 0x1_2345 % 0x2000_0000),
    };
    if number % 10 == 9 { Frame::remote(identifier, 0) } else { Frame::data(identifier, &bytes[..len]) }
}

#[test]
#[ignore = "starts QEMU: make test ONLY=bare_metal_image"]
fn every_frame_that_is_sent_from_outside_comes_out_as_it_was() {
    const FRAMES: u32 = 300;
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("qtest");
    let listener = UnixListener::bind(&socket).unwrap();
    let outside = format!("unix:{}", socket.display());
    let options = ["-qtest", &outside, "-qtest-log", "/dev/null"];
    let mut machine = Machine::boot(CARDS, &format!("bitrate=250000 frames={}", FRAMES + 1), &options);
    let (to, _) = listener.accept().unwrap();
    to.set_read_timeout(Some(DEADLINE)).unwrap();
    assert_eq!(machine.line(), "4 cards; frames from 00:04.0 to 00:05.0 at 250000 bit/s");
    let from = BufReader::new(to.try_clone().unwrap());
    let outside = Rc::new(RefCell::new(Outside { to, from }));
    let (mut sender, mut receiver) = (controller(&outside, 6), controller(&outside, 7));
    for number in 0..FRAMES {
        assert!(sender.transmit(&frame(number)));
        let since = Instant::now();
        let came = loop {
            match receiver.receive() {
                Some(came) => break came,
                None => assert!(since.elapsed() < DEADLINE, "frame {number} does not come"),
            }
        };
        assert_eq!(came, frame(number));
        assert!(!sender.status().received(), "it sends back where it receives");
    }
    let _ = sender.transmit(&frame(FRAMES)); // ends it, perhaps before it can answer
    let (output, code) = machine.ended();
    let all = FRAMES + 1;
    let account =
        format!("bare: {all} received = {all} transmitted + 0 dropped; 0 overruns, 0 times off the bus\n");
    assert_eq!((output.as_str(), code), (account.as_str(), DONE));
}

/// In the virtual clock an instruction is a ns, and the image's clock counts those.
#[test]
#[ignore = "starts QEMU: make test ONLY=bare_metal_image"]
fn a_frame_takes_at_most_350_instructions() {
    let mut machine = Machine::boot(CARDS, "measure=200 len=8", &["-icount", "shift=0,sleep=off"]);
    machine.line();
    let found = machine.line();
    let (output, code) = machine.ended();
    assert!(found.starts_with("200 frames of 8 bytes, 0 lost; ticks each: min "), "{found}");
    let max: u32 = found.rsplit(' ').next().unwrap().parse().unwrap();
    assert!((100..=350).contains(&max), "{found}");
    assert!(output.starts_with("bare: 200 received = 200 transmitted + 0 dropped;"), "{output}");
    assert_eq!(code, DONE);
}

#[test]
#[ignore = "starts QEMU: make test ONLY=bare_metal_image"]
fn what_it_cannot_do_it_says_in_a_line() {
    for (cards, line, why) in [
        (&CARDS[..0], "", "card 0: there are 0 Kvaser PCI cards"),
        (&CARDS[..1], "", "card 1: there are 1 Kvaser PCI cards"),
        (
            CARDS,
            "bitrate=1234567",
            "card 0, 1234567 bit/s: the bit rate cannot be made from the controller's clock",
        ),
        (
            CARDS,
            "speed=5",
            "speed=5: not bitrate=, from=, to=, frames=, measure=, send=, receive=, len= and a number",
        ),
    ] {
        let mut machine = Machine::boot(cards, line, &[]);
        assert_eq!(machine.line(), why);
        assert_eq!(machine.ended(), (String::new(), FAILED), "{line}");
    }
}
