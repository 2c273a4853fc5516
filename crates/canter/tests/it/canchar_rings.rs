//@ machine: host
//! The module's ring between two threads of a program, without the module.

use crate::{canchar::build, testbed::start};
use std::time::Duration;

#[test]
fn rings_keep_frames_whole_under_the_thread_sanitizer() {
    let program = build("ring_test", &["-O1", "-g", "-pthread", "-fsanitize=thread", "-Wno-tsan"]);
    let ended = start(&program, &[]).ended(Duration::from_secs(300));
    assert!(ended.code == Some(0) && !ended.stdout.contains("not ok"), "{ended:?}");
}
