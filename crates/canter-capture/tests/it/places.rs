//@ machine: host
//! The places where a recording loses frames, in the documentation as in the account.

use canter_capture::Lost;

#[test]
fn the_path_of_a_frame_in_the_documentation_has_every_place_of_a_loss() {
    let page = include_str!("../../../../docs/capture.md");
    let path = page.split("## ").find(|section| section.starts_with("The path of a frame")).unwrap();
    let account = serde_json::to_value(Lost::default()).unwrap();
    let places: Vec<&String> = account.as_object().unwrap().keys().collect();
    assert!(places.len() > 8, "{places:?}");
    for place in places {
        assert!(path.contains(&format!("`lost.{place}`")), "docs/capture.md has no `lost.{place}`");
    }
}
