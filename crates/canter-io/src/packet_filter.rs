//! Filters as a classic BPF program, for packet sockets and rings: they bypass the CAN stack, and without a program
//! every frame of the interface costs a slot in the ring.
//!
//! The program sees `struct can_frame` or `struct canfd_frame`, which begins with `can_id` in the machine's byte
//! order. BPF loads big-endian words, so on a little-endian machine the constants are swapped, not the frames.
//!
//! A conditional jump reaches 255 instructions. So filters are grouped in chunks that end with their verdict:
//! ```text
//!     txa            A = can_id
//!     and #mask
//!     jeq #id        → verdict
//!     …              further filters
//!     ja             → next chunk
//!     ret            verdict of this chunk: any filter matched (join: one did not)
//! ```
//! linux/filter.h: `struct sock_filter`, `SKF_AD_OFF`; Documentation/networking/filter.rst.

use std::fmt;

use canter_frame::{Filters, filter::Subscription, frame::ERR_FLAG};

/// One instruction, laid out as `struct sock_filter`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What it does.
    pub code: u16,
    /// How many instructions to skip when a condition is true.
    pub jt: u8,
    /// How many instructions to skip when it is false.
    pub jf: u8,
    /// The instruction's operand.
    pub k: u32,
}

// linux/filter.h: struct sock_filter.
const _: () = assert!(size_of::<Instruction>() == 8 && align_of::<Instruction>() == 4);
const _: () =
    assert!(std::mem::offset_of!(Instruction, jf) == 3 && std::mem::offset_of!(Instruction, k) == 4);

/// The longest program that the kernel takes (`BPF_MAXINSNS`). A socket may take less: the kernel accounts its
/// program to `net.core.optmem_max`, and answers ENOMEM.
pub const INSTRUCTIONS_MAX: usize = 4096;

/// What a packet socket must check in addition to the filters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Drop frames that carry this mark (`SO_MARK` of the socket that sent them): a gateway marks the frames it sends,
    /// and its rings do not receive them.
    pub drop_mark: Option<u32>,
    /// Pass only classic and FD frames by protocol, for a socket of `ETH_P_ALL`.
    pub check_protocol: bool,
}

/// More filters than a program can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TooLong {
    /// The number of filters.
    pub filters: usize,
    /// How many of them fit.
    pub filters_max: usize,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { filters, filters_max } = self;
        write!(f, "{filters} filters make a packet filter of more than {INSTRUCTIONS_MAX} instructions; ")?;
        write!(f, "the first {filters_max} fit")
    }
}

impl std::error::Error for TooLong {}

// linux/bpf_common.h and linux/filter.h
const LOAD_WORD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const X_IMMEDIATE: u16 = 0x01; // BPF_LDX | BPF_IMM
const ADD: u16 = 0x04; // BPF_ALU | BPF_ADD | BPF_K
const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
const JUMP: u16 = 0x05; // BPF_JMP | BPF_JA
const IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const IF_AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const IF_ANY_BIT: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K
const A_TO_X: u16 = 0x07; // BPF_MISC | BPF_TAX
const X_TO_A: u16 = 0x87; // BPF_MISC | BPF_TXA

const AD_PROTOCOL: u32 = 0xffff_f000; // SKF_AD_OFF + SKF_AD_PROTOCOL: in host byte order
const AD_INTERFACE: u32 = 0xffff_f000 + 8; // SKF_AD_OFF + SKF_AD_IFINDEX
const AD_MARK: u32 = 0xffff_f000 + 20; // SKF_AD_OFF + SKF_AD_MARK
const ETH_P_CAN: u32 = 0x000c;
const ETH_P_CANFD: u32 = 0x000d;

const CAN_ID: u32 = 0; // its offset in a frame
const ACCEPT: Instruction = step(RETURN, 0xffff); // bytes of the frame to keep: all
const DROP: Instruction = step(RETURN, 0);

/// As many filters as one conditional jump can leap over.
const CHUNK_FILTERS: usize = (u8::MAX as usize - 1) / 3;

const fn step(code: u16, k: u32) -> Instruction {
    Instruction { code, jt: 0, jf: 0, k }
}

const fn branch(code: u16, k: u32, jt: u8, jf: u8) -> Instruction {
    Instruction { code, jt, jf, k }
}

/// A constant as a load from a frame would give it.
const fn loaded(word: u32) -> u32 {
    word.to_be()
}

/// A program that passes what [`Filters::matches`] passes, to be attached with `SO_ATTACH_FILTER`.
///
/// # Errors
/// When there are more filters than fit into [`INSTRUCTIONS_MAX`]; about 1350 do.
pub fn program(filters: &Filters, options: Options) -> Result<Vec<Instruction>, TooLong> {
    let program = assemble(filters, options);
    if program.len() <= INSTRUCTIONS_MAX {
        return Ok(program);
    }
    let mut fewer = filters.clone();
    while assemble(&fewer, options).len() > INSTRUCTIONS_MAX {
        let spare = assemble(&fewer, options).len() - INSTRUCTIONS_MAX;
        fewer.list.truncate(fewer.list.len() - spare.div_ceil(6));
    }
    Err(TooLong { filters: filters.list.len(), filters_max: fewer.list.len() })
}

/// A program that drops frames with this mark and passes all others: an unfiltered ring needs this where its own
/// frames are echoed.
pub fn drop_mark(mark: u32) -> Vec<Instruction> {
    vec![step(LOAD_WORD, AD_MARK), branch(IF_EQUAL, mark, 0, 1), DROP, ACCEPT]
}

/// A program that drops the frames of the interfaces with these indexes and passes all others; the kernel takes at
/// most 2047 of them.
pub fn leave_out(indexes: &[u32]) -> Vec<Instruction> {
    let each = indexes.iter().flat_map(|&index| [branch(IF_EQUAL, index, 0, 1), DROP]);
    std::iter::once(step(LOAD_WORD, AD_INTERFACE)).chain(each).chain([ACCEPT]).collect()
}

fn assemble(filters: &Filters, options: Options) -> Vec<Instruction> {
    let mut program = Vec::new();
    if let Some(mark) = options.drop_mark {
        program.extend([step(LOAD_WORD, AD_MARK), branch(IF_EQUAL, mark, 0, 1), DROP]);
    }
    if options.check_protocol {
        program.push(step(LOAD_WORD, AD_PROTOCOL));
        program.extend([branch(IF_EQUAL, ETH_P_CAN, 2, 0), branch(IF_EQUAL, ETH_P_CANFD, 1, 0), DROP]);
    }
    let data = data_frames(filters);
    program.extend([step(LOAD_WORD, CAN_ID), branch(IF_ANY_BIT, loaded(ERR_FLAG), 0, 1)]);
    program.push(step(JUMP, data.len() as u32));
    program.extend(data);
    program.extend(error_frames(filters));
    program
}

/// For a data or RTR frame, whose `can_id` is in A. Ends with a verdict.
fn data_frames(filters: &Filters) -> Vec<Instruction> {
    if filters.list.is_empty() {
        return vec![ACCEPT];
    }
    let all = filters.needed() > 1;
    let mut tests = Vec::new();
    for filter in &filters.list {
        tests.push(match filter.subscription() {
            Subscription::Error { .. } if all => return vec![DROP], // which a data frame cannot match
            Subscription::Error { .. } => continue,
            Subscription::Equal { id, mask } => (id, mask, true),
            Subscription::Different { id, mask } => (id, mask, false),
        });
    }

    let (leave, stay) = if all { (DROP, ACCEPT) } else { (ACCEPT, DROP) };
    let mut program = vec![step(A_TO_X, 0)];
    for chunk in tests.chunks(CHUNK_FILTERS) {
        for (index, &(id, mask, equal)) in chunk.iter().enumerate() {
            let to_verdict = (3 * (chunk.len() - 1 - index) + 1) as u8; // the other filters and `ja`
            let (jt, jf) = if equal == all { (0, to_verdict) } else { (to_verdict, 0) };
            program.extend([step(X_TO_A, 0), step(AND, loaded(mask)), branch(IF_EQUAL, loaded(id), jt, jf)]);
        }
        program.extend([step(JUMP, 1), leave]);
    }
    program.push(stay);
    program
}

/// For an error frame, whose `can_id` is in A. Ends with a verdict.
fn error_frames(filters: &Filters) -> Vec<Instruction> {
    let listed = filters.list.iter().map(|filter| filter.subscription());
    let masks = listed.chain(filters.error_subscription()).filter_map(|subscription| match subscription {
        Subscription::Error { mask } => Some(mask),
        _ => None,
    });
    let needed = filters.needed();
    if needed == 1 {
        let wanted = masks.fold(0, |sum, mask| sum | mask);
        return vec![branch(IF_ANY_BIT, loaded(wanted), 0, 1), ACCEPT, DROP];
    }
    let masks: Vec<u32> = masks.collect();
    if masks.len() < needed {
        return vec![DROP];
    }
    // Joined error filters are rare, but the kernel accepts them: counts the matches in X.
    let mut program = vec![step(X_IMMEDIATE, 0)];
    for mask in masks {
        program.extend([step(LOAD_WORD, CAN_ID), branch(IF_ANY_BIT, loaded(mask), 0, 3)]);
        program.extend([step(X_TO_A, 0), step(ADD, 1), step(A_TO_X, 0)]);
    }
    program.extend([step(X_TO_A, 0), branch(IF_AT_LEAST, needed as u32, 0, 1), ACCEPT, DROP]);
    program
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_frame::{
        Filter, Frame, InterfaceFilters,
        filter::INVERSE,
        frame::{EFF_FLAG, RTR_FLAG},
    };
    use proptest::prelude::*;

    /// The kernel's metadata of a frame.
    #[derive(Clone, Copy)]
    struct Packet<'a> {
        bytes: &'a [u8],
        mark: u32,
        protocol: u32,
        interface: u32,
    }

    /// How many bytes the program keeps. Also checks what the kernel's checker requires: forward jumps
    /// only, all of them inside, and a return at the end.
    fn run(program: &[Instruction], packet: Packet<'_>) -> u32 {
        assert_eq!(program[program.len() - 1].code, RETURN);
        let (mut a, mut x, mut at) = (0u32, 0u32, 0usize);
        loop {
            let Instruction { code, jt, jf, k } = program[at];
            at += 1;
            let choose = |condition: bool| usize::from(if condition { jt } else { jf });
            match code {
                LOAD_WORD => {
                    a = match k {
                        AD_MARK => packet.mark,
                        AD_PROTOCOL => packet.protocol,
                        AD_INTERFACE => packet.interface,
                        offset => match packet.bytes.get(offset as usize..offset as usize + 4) {
                            Some(&[p, q, r, s]) => u32::from_be_bytes([p, q, r, s]),
                            _ => return 0,
                        },
                    }
                }
                X_IMMEDIATE => x = k,
                ADD => a = a.wrapping_add(k),
                AND => a &= k,
                JUMP => at += k as usize,
                IF_EQUAL => at += choose(a == k),
                IF_AT_LEAST => at += choose(a >= k),
                IF_ANY_BIT => at += choose(a & k != 0),
                A_TO_X => x = a,
                X_TO_A => a = x,
                RETURN => return k,
                other => panic!("code {other:#x}"),
            }
        }
    }

    fn verdict(program: &[Instruction], can_id: u32) -> bool {
        let bytes = can_id.to_ne_bytes();
        run(program, Packet { bytes: &bytes, mark: 0, protocol: ETH_P_CAN, interface: 1 }) != 0
    }

    #[test]
    fn interfaces_that_are_left_out_are_dropped_and_all_others_pass() {
        for (indexes, dropped) in
            [(&[][..], [false, false, false]), (&[3], [false, false, true]), (&[3, 1], [true, false, true])]
        {
            let program = leave_out(indexes);
            let is_dropped = |interface| {
                run(&program, Packet { bytes: &[0; 16], mark: 0, protocol: ETH_P_CAN, interface }) == 0
            };
            assert_eq!([1, 2, 3].map(is_dropped), dropped, "{indexes:?}");
        }
        assert!(leave_out(&vec![7; 2047]).len() <= INSTRUCTIONS_MAX);
    }

    fn frame_of(can_id: u32) -> Frame {
        let mut frame = Frame::default();
        frame.can_id = can_id;
        frame
    }

    /// Few values, so that filters and frames meet.
    fn can_id() -> impl Strategy<Value = u32> {
        let low = prop_oneof![Just(0x123), Just(0x124), Just(0x1fff_f123), 0..8u32, 0..=0x1fff_ffffu32];
        let flags =
            prop_oneof![Just(0), Just(EFF_FLAG), Just(RTR_FLAG), Just(ERR_FLAG), Just(EFF_FLAG | RTR_FLAG)];
        (low, flags).prop_map(|(low, flags)| low | flags)
    }

    fn filters(most: usize) -> impl Strategy<Value = Filters> {
        let mask = prop_oneof![
            8 => Just(0x7ff),
            8 => Just(0xc000_07ff),
            8 => Just(0xdfff_ffff),
            4 => Just(0),
            4 => any::<u32>().prop_map(|mask| mask & !ERR_FLAG),
            1 => any::<u32>(),
        ];
        let filter = (can_id(), mask, any::<bool>())
            .prop_map(|(id, mask, inverse)| Filter { id: id ^ if inverse { INVERSE } else { 0 }, mask });
        let error_mask = prop_oneof![Just(0), Just(4), Just(0xffff_ffff), any::<u32>()];
        (prop::collection::vec(filter, 0..most), error_mask, any::<bool>())
            .prop_map(|(list, error_mask, join)| Filters { list, error_mask, join })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn the_program_passes_what_the_filters_pass(
            filters in filters(6), ids in prop::collection::vec(can_id(), 8)
        ) {
            let program = program(&filters, Options::default()).unwrap();
            for can_id in ids {
                let frame = frame_of(can_id);
                prop_assert_eq!(verdict(&program, can_id), filters.matches(&frame), "{:08X} {}", can_id, filters);
            }
        }

        #[test]
        fn what_the_notation_holds_reads_back(mut filters in filters(6)) {
            for filter in &mut filters.list {
                filter.mask &= !ERR_FLAG;
            }
            prop_assert_eq!(filters.to_string().parse::<Filters>().unwrap(), filters);
        }

        #[test]
        fn no_text_makes_the_filter_parser_panic(text in "[0-9a-fA-Fx:~,#jJ \\PC]{0,24}") {
            let _ = text.parse::<Filters>();
            let _ = InterfaceFilters::parse(&text);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(50))]
        #[test]
        fn long_lists_jump_right(filters in filters(400), ids in prop::collection::vec(can_id(), 20)) {
            let program = program(&filters, Options { drop_mark: Some(7), check_protocol: true }).unwrap();
            for can_id in ids {
                let frame = frame_of(can_id);
                prop_assert_eq!(verdict(&program, can_id), filters.matches(&frame));
            }
        }
    }

    #[test]
    fn the_last_filter_of_a_long_list_is_heard() {
        for join in [false, true] {
            for count in [1, CHUNK_FILTERS, CHUNK_FILTERS + 1, 3 * CHUNK_FILTERS, 1000] {
                // Any: only the last one matches. All: only the last one does not.
                let mut list = vec![Filter { id: if join { 0x123 } else { 0x124 }, mask: 0x7ff }; count];
                list[count - 1].id = if join { 0x124 } else { 0x123 };
                let filters = Filters { list, error_mask: 0, join };
                let program = program(&filters, Options::default()).unwrap();
                assert_eq!(verdict(&program, 0x123), !join, "{count}");
            }
        }
    }

    #[test]
    fn marked_frames_and_other_protocols_are_dropped_when_asked() {
        let bytes = 0x123u32.to_ne_bytes();
        for (drop_mark, check_protocol, mark, protocol, passes) in [
            (None, false, 7, 0x0800, true),
            (Some(7), false, 7, 0x0800, false),
            (Some(7), false, 0, 0x0800, true),
            (Some(7), false, 8, 0x0800, true), // another program's
            (None, true, 7, 0x0800, false),
            (None, true, 7, ETH_P_CAN, true),
            (Some(7), true, 0, ETH_P_CANFD, true),
            (Some(7), true, 0, 0x000e, false), // CAN XL
            (Some(7), true, 7, ETH_P_CANFD, false),
        ] {
            let program = program(&Filters::default(), Options { drop_mark, check_protocol }).unwrap();
            let kept = run(&program, Packet { bytes: &bytes, mark, protocol, interface: 1 });
            assert_eq!(kept != 0, passes, "{drop_mark:?} {check_protocol} {mark} {protocol:#x}");
        }
    }

    #[test]
    fn the_short_program_drops_one_mark_and_nothing_else() {
        for (mark, passes) in [(0, true), (7, false), (8, true)] {
            let kept =
                run(&drop_mark(7), Packet { bytes: &[0; 16], mark, protocol: ETH_P_CAN, interface: 1 });
            assert_eq!(kept != 0, passes, "{mark}");
        }
    }

    #[test]
    fn a_packet_without_an_identifier_is_dropped() {
        let program = program(&Filters::default(), Options::default()).unwrap();
        assert_eq!(run(&program, Packet { bytes: &[0; 3], mark: 0, protocol: ETH_P_CAN, interface: 1 }), 0);
    }

    #[test]
    fn too_many_filters_are_refused_with_the_number_that_fits() {
        let filter = Filter { id: 0x123, mask: 0x7ff };
        for options in [Options::default(), Options { drop_mark: Some(7), check_protocol: true }] {
            let filters = Filters { list: vec![filter; 5000], ..Filters::default() };
            let TooLong { filters: asked, filters_max } = program(&filters, options).unwrap_err();
            assert_eq!(asked, 5000);
            let fits = |count| {
                program(&Filters { list: vec![filter; count], ..Filters::default() }, options).is_ok()
            };
            assert!(fits(filters_max) && !fits(filters_max + 1), "{filters_max}");
        }
    }
}
