//! The loads, in the order in which messages name them; the first row is no load.

use super::{cpu, disk, ethernet, row::LoadRow};

const NONE: LoadRow = LoadRow { name: "none", ethernet: false, lines: |_| Vec::new(), work: &[] };

pub static LOADS: &[LoadRow] = &[
    NONE,
    cpu::SOCKETS,
    cpu::PIPES,
    ethernet::RECEIVE,
    ethernet::SMALL,
    ethernet::SEND,
    ethernet::TCP,
    disk::LOAD,
];
