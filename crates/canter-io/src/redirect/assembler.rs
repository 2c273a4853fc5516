//! eBPF instructions with labels for the places that jumps go to. Registers are 0…10, of which 10 is the stack's end,
//! 1…5 are undefined after a call, and 0 is the result of a call and of the program. linux/bpf.h, linux/bpf_common.h.

use crate::sys::bpf::Instruction;

/// A place that jumps go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

/// When to jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Always,
    /// The lower 32 bits are the constant.
    Equal,
    Different,
    /// A bit of the constant is in them.
    AnyBit,
}

/// How wide an access is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    Word,
    Double,
}

pub mod code {
    pub const LOAD_WORD: u8 = 0x61; // BPF_LDX | BPF_MEM | BPF_W
    pub const LOAD_DOUBLE: u8 = 0x79;
    pub const STORE_DOUBLE: u8 = 0x7b; // BPF_STX | BPF_MEM | BPF_DW
    pub const ATOMIC_ADD: u8 = 0xdb; // BPF_STX | BPF_ATOMIC | BPF_DW, constant BPF_ADD
    pub const CONSTANT_64: u8 = 0x18; // BPF_LD | BPF_IMM | BPF_DW: two instructions
    pub const COPY: u8 = 0xbf; // BPF_ALU64 | BPF_MOV | BPF_X
    pub const SET: u8 = 0xb7; // BPF_ALU64 | BPF_MOV | BPF_K
    pub const ADD: u8 = 0x07; // BPF_ALU64 | BPF_ADD | BPF_K
    pub const COPY_WORD: u8 = 0xbc; // BPF_ALU | BPF_MOV | BPF_X
    pub const AND_WORD: u8 = 0x54; // BPF_ALU | BPF_AND | BPF_K
    pub const JUMP: u8 = 0x05; // BPF_JMP | BPF_JA
    pub const IF_ABOVE: u8 = 0x2d; // BPF_JMP | BPF_JGT | BPF_X
    pub const IF_EQUAL: u8 = 0x16; // BPF_JMP32 | BPF_JEQ | BPF_K
    pub const IF_DIFFERENT: u8 = 0x56; // BPF_JMP32 | BPF_JNE | BPF_K
    pub const IF_ANY_BIT: u8 = 0x46; // BPF_JMP32 | BPF_JSET | BPF_K
    pub const CALL: u8 = 0x85; // BPF_JMP | BPF_CALL
    pub const EXIT: u8 = 0x95; // BPF_JMP | BPF_EXIT
}
use code::*;

/// A constant of 64 bits is the address of a table's first entry, by the table's descriptor and an offset.
pub const PSEUDO_MAP_VALUE: u8 = 2;

/// A program under construction.
#[derive(Default)]
pub struct Assembler {
    program: Vec<Instruction>,
    /// The position of each label, and whether a jump leads there.
    labels: Vec<(Option<usize>, bool)>,
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    pub fn label(&mut self) -> Label {
        self.labels.push((None, false));
        Label(self.labels.len() - 1)
    }

    /// Here; `false` when nothing jumps to it, for the kernel refuses instructions that are never reached.
    pub fn place(&mut self, label: Label) -> bool {
        let (place, used) = &mut self.labels[label.0];
        *place = Some(self.program.len());
        *used
    }

    fn push(&mut self, code: u8, destination: u8, source: u8, offset: i16, constant: i32) {
        let registers = if cfg!(target_endian = "little") {
            source << 4 | destination
        } else {
            destination << 4 | source
        };
        self.program.push(Instruction { code, registers, offset, constant });
    }

    pub fn copy(&mut self, destination: u8, source: u8) {
        self.push(COPY, destination, source, 0, 0);
    }

    pub fn set(&mut self, register: u8, constant: i32) {
        self.push(SET, register, 0, 0, constant);
    }

    pub fn add(&mut self, register: u8, constant: i32) {
        self.push(ADD, register, 0, 0, constant);
    }

    /// `destination = source & constant`, 32 bits.
    pub fn and_word(&mut self, destination: u8, source: u8, constant: u32) {
        self.push(COPY_WORD, destination, source, 0, 0);
        self.push(AND_WORD, destination, 0, 0, constant as i32);
    }

    pub fn load(&mut self, width: Width, destination: u8, base: u8, offset: i16) {
        let code = if width == Width::Word { LOAD_WORD } else { LOAD_DOUBLE };
        self.push(code, destination, base, offset, 0);
    }

    pub fn store_double(&mut self, base: u8, offset: i16, source: u8) {
        self.push(STORE_DOUBLE, base, source, offset, 0);
    }

    /// Adds 1 to the number at `offset` bytes of a table's entry; registers 1 and 2 are overwritten.
    pub fn count(&mut self, table: i32, offset: i32) {
        self.push(CONSTANT_64, 1, PSEUDO_MAP_VALUE, 0, table);
        self.push(0, 0, 0, 0, offset);
        self.set(2, 1);
        self.push(ATOMIC_ADD, 1, 2, 0, 0);
    }

    pub fn jump(&mut self, when: When, register: u8, constant: u32, label: Label) {
        let code = match when {
            When::Always => JUMP,
            When::Equal => IF_EQUAL,
            When::Different => IF_DIFFERENT,
            When::AnyBit => IF_ANY_BIT,
        };
        self.jump_by(code, register, 0, constant as i32, label);
    }

    /// Jumps when `register > other`, 64 bits.
    pub fn jump_above(&mut self, register: u8, other: u8, label: Label) {
        self.jump_by(IF_ABOVE, register, other, 0, label);
    }

    fn jump_by(&mut self, code: u8, register: u8, other: u8, constant: i32, label: Label) {
        self.labels[label.0].1 = true;
        self.jumps.push((self.program.len(), label));
        self.push(code, register, other, 0, constant);
    }

    pub fn call(&mut self, function: i32) {
        self.push(CALL, 0, 0, 0, function);
    }

    pub fn exit(&mut self) {
        self.push(EXIT, 0, 0, 0, 0);
    }

    /// The program. A program that is too long has wrong jumps: check its length.
    pub fn finish(mut self) -> Vec<Instruction> {
        for (at, label) in self.jumps {
            let target = self.labels[label.0].0.expect("every label has been placed");
            self.program[at].offset = (target as i64 - at as i64 - 1) as i16;
        }
        self.program
    }
}
