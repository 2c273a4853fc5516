//@ machine: --bare-metal --bus probe
//@ in: all
//! The method bare-metal on a kernel that begins to take signed modules only, which it does until it is booted again.

use crate::testbed::{DEADLINE, Watched, canter, cards};
use std::fs;

#[test]
#[ignore = "needs the lab: make test ONLY=bare_metal_enforced"]
fn an_image_is_refused_where_modules_need_a_signature() {
    let _watched = Watched::alone();
    cards();
    fs::write("/sys/module/module/parameters/sig_enforce", "1").unwrap();
    let ended = canter(&["gateway", "can3", "can4", "--method", "bare-metal"]).ended(DEADLINE);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.complaint().contains("signed modules only"), "{ended:?}");
}
