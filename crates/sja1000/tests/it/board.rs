//@ machine: host
//! canchar's driver of a card with several chips, which QEMU lacks: kernel/tests/sja1000/board.c, with the module's own code.

use crate::drivers::build_program;
use std::process::Command;

#[test]
fn canchar_never_lets_a_chip_interrupt_before_it_has_a_handler() {
    let done = Command::new(build_program("board")).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(String::from_utf8_lossy(&done.stdout), "ok\n");
}
