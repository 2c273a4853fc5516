//@ machine: host
//! canchar where QEMU and one processor do not lead, in programs of kernel/tests/sja1000 with the module's own code: a card
//! with several chips (board.c), and what another processor does between two steps (virtual.c).

use crate::drivers::build_program;
use std::process::Command;

fn passes(name: &str) {
    let done = Command::new(build_program(name)).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(String::from_utf8_lossy(&done.stdout), "ok\n");
}

#[test]
fn canchar_never_lets_a_chip_interrupt_without_a_handler_and_leaves_nothing_behind_when_binding_fails() {
    passes("board");
}

#[test]
fn canchar_bears_what_another_processor_does_between_two_of_its_steps() {
    passes("virtual");
}
