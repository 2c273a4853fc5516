//@ machine: --bus wire --net --usb-stick --clock virtual
//@ in: all
//! Every load of a study: it starts, is named in the result, and the gateway hands on each frame beside it (study.rs has
//! those that the papers used most).

use crate::{
    study::{inside, study},
    testbed::{alone, canter, series},
};
use std::time::Duration;

/// The names, as the refusal of another one lists them.
fn loads(folder: &tempfile::TempDir) -> Vec<String> {
    let file = study(
        folder,
        "unknown",
        "wire",
        "methods = [\"can-gw\"]\nlens = [8]\ncount = 1\nloads = [\"naps\"]\n",
    );
    let ended = canter(&["study", "inside", &file]).ended(Duration::from_secs(10));
    let complaint = ended.complaint();
    let (_, list) = complaint.split_once("naps: no such load (").unwrap_or_else(|| panic!("{complaint}"));
    let (list, _) = list.split_once(')').unwrap();
    list.split(", ").map(str::to_owned).collect()
}

#[test]
#[ignore = "needs the lab: make test ONLY=study_loads"]
fn beside_every_load_each_frame_is_handed_on() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let loads = loads(&folder);
    assert!(loads.len() >= 9, "{loads:?}");
    let text = format!("methods = [\"can-gw\"]\nlens = [8]\ncount = 5\nloads = {loads:?}\n");
    let measured = series(&inside(&study(&folder, "loads", "wire", &text)));
    let told: Vec<_> = measured.iter().map(|one| one["condition"]["load"].as_str().unwrap()).collect();
    assert_eq!(told, loads);
    for one in &measured {
        assert_eq!((&one["unavailable"], &one["ledger"]["received"]), (&"".into(), &5.into()), "{one}");
    }
}
