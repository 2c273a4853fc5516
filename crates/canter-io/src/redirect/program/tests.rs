//! Runs the program in a small interpreter with the kernel's results.

use super::super::assembler::{PSEUDO_MAP_VALUE, code::*};
use super::*;
use crate::{Frame, frame::EFF_FLAG, frame::RTR_FLAG};
use proptest::prelude::*;

const OUTPUT: u32 = 7;
const TABLE: i32 = 5;
const STEPS_MAX: usize = 100_000;
/// Where the buffer and the table are.
const BUFFER: u64 = 0x1000;
const NUMBERS: u64 = 0x9000;

struct Machine {
    registers: [u64; 11],
    buffer: Vec<u8>,
    protocol: u32,
    numbers: [u64; COUNTERS],
    redirected: Option<u64>,
}

impl Machine {
    fn new(buffer: &[u8], protocol: u32) -> Self {
        let (buffer, numbers) = (buffer.to_vec(), [0; COUNTERS]);
        Self { registers: [0; 11], buffer, protocol, numbers, redirected: None }
    }

    /// The program's result. Every access must be inside of the buffer.
    fn run(&mut self, program: &[Instruction]) -> i32 {
        let mut at = 0usize;
        for _ in 0..STEPS_MAX {
            let Instruction { code, registers, offset, constant } = program[at];
            let (to, from) = (usize::from(registers & 15), usize::from(registers >> 4));
            let (a, b) = (self.registers[to], self.registers[from]);
            at += 1;
            let word = a as u32;
            let jumps = match code {
                JUMP => true,
                IF_ABOVE => a > b,
                IF_EQUAL => word == constant as u32,
                IF_DIFFERENT => word != constant as u32,
                IF_ANY_BIT => word & constant as u32 != 0,
                _ => false,
            };
            if jumps {
                at = at.checked_add_signed(offset.into()).unwrap();
            }
            match code {
                COPY => self.registers[to] = b,
                COPY_WORD => self.registers[to] = u64::from(b as u32),
                SET => self.registers[to] = i64::from(constant) as u64,
                ADD => self.registers[to] = a.wrapping_add_signed(constant.into()),
                AND_WORD => self.registers[to] = u64::from(word & constant as u32),
                LOAD_WORD if from == 6 => self.registers[to] = self.known(offset).into(),
                LOAD_WORD => self.registers[to] = u32::from_ne_bytes(*self.bytes(b, offset)).into(),
                LOAD_DOUBLE => self.registers[to] = u64::from_ne_bytes(*self.bytes(b, offset)),
                STORE_DOUBLE => *self.bytes(a, offset) = b.to_ne_bytes(),
                CONSTANT_64 => {
                    assert_eq!((from as u8, constant), (PSEUDO_MAP_VALUE, TABLE));
                    self.registers[to] = NUMBERS + program[at].constant as u64;
                    at += 1;
                }
                ATOMIC_ADD => self.numbers[((a - NUMBERS) / 8) as usize] += b,
                CALL => self.call(constant),
                EXIT => return self.registers[0] as i32,
                JUMP | IF_ABOVE | IF_EQUAL | IF_DIFFERENT | IF_ANY_BIT => {}
                other => panic!("code {other:#x}"),
            }
        }
        panic!("does not end");
    }

    fn known(&self, offset: i16) -> u32 {
        match offset {
            LEN => self.buffer.len() as u32,
            PROTOCOL => self.protocol,
            DATA => BUFFER as u32,
            DATA_END => BUFFER as u32 + self.buffer.len() as u32,
            other => panic!("offset {other}"),
        }
    }

    fn bytes<const N: usize>(&mut self, base: u64, offset: i16) -> &mut [u8; N] {
        let at = (base.wrapping_add_signed(offset.into()) - BUFFER) as usize;
        (&mut self.buffer[at..at + N]).try_into().unwrap()
    }

    fn call(&mut self, function: i32) {
        let [_, first, second, ..] = self.registers;
        self.registers[0] = match function {
            CHANGE_TAIL => {
                assert!(second >= u64::from(ROOM), "the kernel keeps what is in front of the network header");
                self.buffer.truncate(second as usize);
                0
            }
            REDIRECT => {
                self.redirected = Some(first);
                7
            }
            other => panic!("function {other}"),
        };
        for register in 1..=5 {
            self.registers[register] = 0xdead;
        }
    }
}

/// A buffer as a driver makes it, and one of this machine's own.
fn buffers(can_id: u32, bytes: usize) -> [Vec<u8>; 2] {
    let body = (4..bytes).map(|at| at as u8);
    let frame: Vec<u8> = can_id.to_ne_bytes().into_iter().chain(body).collect();
    [[&[0xee; ROOM as usize][..], &frame].concat(), frame]
}

/// Numbers of [`COUNTERS`], and whether the frame has been redirected.
fn outcome(program: &[Instruction], buffer: &[u8], protocol: u32) -> ([u64; COUNTERS], bool) {
    let mut machine = Machine::new(buffer, protocol);
    let verdict = machine.run(program);
    if machine.redirected.is_some() {
        assert_eq!((verdict, machine.redirected), (7, Some(OUTPUT.into())));
        assert_eq!(machine.buffer, buffer[ROOM as usize..], "the frame as it was, at the buffer's begin");
    } else {
        assert_eq!(verdict, GOES_ON);
        assert_eq!(machine.buffer, buffer, "what stays is not touched");
    }
    (machine.numbers, machine.redirected.is_some())
}

/// Few values, so that filters and frames meet.
fn can_id() -> impl Strategy<Value = u32> {
    let low = prop_oneof![Just(0x123), Just(0x124), Just(0x1fff_f123), 0..8u32, 0..=0x1fff_ffffu32];
    let flags =
        prop_oneof![Just(0), Just(EFF_FLAG), Just(RTR_FLAG), Just(ERR_FLAG), Just(EFF_FLAG | RTR_FLAG)];
    (low, flags).prop_map(|(low, flags)| low | flags)
}

fn rule() -> impl Strategy<Value = Rule> {
    let mask = prop_oneof![Just(0x7ff), Just(0xc000_07ff), Just(0xdfff_ffff), Just(0), any::<u32>()];
    let filter = (can_id(), mask, any::<bool>()).prop_map(|(id, mask, inverse)| {
        let id = if inverse { id | crate::filter::INVERSE } else { id & !crate::filter::INVERSE };
        Filter { id, mask }
    });
    let list = prop::collection::vec(filter, 0..5);
    (list, any::<[bool; 4]>()).prop_map(|(list, [join, classic, fd, pass])| {
        let filters = Filters { list, error_mask: 0, join };
        Rule { filters, classic, fd, pass }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn it_hands_on_what_the_first_rule_that_matches_says(
        rules in prop::collection::vec(rule(), 0..4), ids in prop::collection::vec(can_id(), 6), output_takes_fd: bool
    ) {
        let program = assemble(&rules, output_takes_fd, OUTPUT, TABLE);
        for can_id in ids {
            let mut frame = Frame::default();
            frame.can_id = can_id;
            for (bytes, protocol) in [(16, CLASSIC), (72, FD)] {
                let fd = bytes == 72;
                let first = rules.iter().find(|rule| {
                    (if fd { rule.fd } else { rule.classic }) && rule.filters.matches(&frame)
                });
                let wanted = first.is_some_and(|rule| rule.pass);
                for (buffer, can) in buffers(can_id, bytes).iter().zip([!fd || output_takes_fd, false]) {
                    let expected = match (frame.is_error(), wanted, can) {
                        (true, ..) => ([0, 0, 0], false),
                        (_, false, _) => ([0, 1, 0], false),
                        (_, true, true) => ([1, 0, 0], true),
                        (_, true, false) => ([0, 0, 1], false),
                    };
                    prop_assert_eq!(outcome(&program, buffer, protocol), expected, "{:08X} {:?}", can_id, rules);
                }
            }
        }
    }

    #[test]
    fn what_is_no_frame_is_left_alone(buffer in prop::collection::vec(any::<u8>(), 0..100), protocol: bool) {
        let program = assemble(&[Rule::passing(Filters::default())], true, OUTPUT, TABLE);
        let protocol = if protocol { CLASSIC } else { FD };
        let whole = if protocol == CLASSIC { 16 } else { 72 };
        prop_assume!(buffer.len() != whole && buffer.len() != whole + ROOM as usize);
        prop_assert_eq!(outcome(&program, &buffer, protocol), ([0, 0, 1], false));
        prop_assert_eq!(outcome(&program, &buffer, 0x0008), ([0, 0, 0], false));
    }
}

#[test]
fn no_instruction_is_out_of_reach() {
    // The kernel's checker refuses a program that has one.
    let everything = Rule::passing(Filters::default());
    let nothing = Rule { pass: false, ..everything.clone() };
    let some = Rule::passing("123:7FF,200~700".parse().unwrap());
    for rules in [vec![], vec![everything.clone()], vec![nothing.clone(), everything], vec![some, nothing]] {
        for output_takes_fd in [true, false] {
            let program = assemble(&rules, output_takes_fd, OUTPUT, TABLE);
            let (mut reached, mut open) = (vec![false; program.len()], vec![0]);
            while let Some(at) = open.pop() {
                if std::mem::replace(&mut reached[at], true) {
                    continue;
                }
                let Instruction { code, offset, .. } = program[at];
                if [JUMP, IF_ABOVE, IF_EQUAL, IF_DIFFERENT, IF_ANY_BIT].contains(&code) {
                    open.push((at as i64 + 1 + i64::from(offset)) as usize);
                }
                if code != JUMP && code != EXIT {
                    open.push(at + if code == CONSTANT_64 { 2 } else { 1 });
                }
            }
            let second_halves = program.iter().filter(|one| one.code == CONSTANT_64).count();
            assert_eq!(reached.iter().filter(|reached| !**reached).count(), second_halves, "{rules:?}");
        }
    }
}

#[test]
fn as_many_filters_as_a_program_holds_are_all_looked_at() {
    let rules = |count| {
        let mut list = vec![Filter { id: 0x124, mask: 0x7ff }; count];
        list[count - 1].id = 0x123;
        [Rule::passing(Filters { list, ..Filters::default() })]
    };
    let program = assemble(&rules(4980), true, OUTPUT, TABLE);
    assert!(program.len() <= INSTRUCTIONS_MAX && program.len() > INSTRUCTIONS_MAX - 200, "{}", program.len());
    let [received, _] = buffers(0x123, 16);
    assert_eq!(outcome(&program, &received, CLASSIC), ([1, 0, 0], true));
    assert_eq!(outcome(&program, &buffers(0x125, 72)[0], FD), ([0, 1, 0], false));
}
