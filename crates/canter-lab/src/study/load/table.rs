//! The loads, in the order in which messages name them; the first row is no load.

use super::{cpu, disk, ethernet, processes, row::LoadRow, usb_stick};

const NONE: LoadRow =
    LoadRow { name: "none", ethernet: false, check: || Ok(()), lines: |_| Vec::new(), work: &[] };

pub static LOADS: &[LoadRow] = &[
    NONE,
    processes::LOAD,
    cpu::SOCKETS,
    cpu::PIPES,
    ethernet::RECEIVE,
    ethernet::SMALL,
    ethernet::SEND,
    ethernet::TCP,
    disk::LOAD,
    usb_stick::LOAD,
];
