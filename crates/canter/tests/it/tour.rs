//@ machine: --bus wire --clock virtual
//! docs/tour.md in the lab: every command of its `console` blocks runs in order and must print the page's lines.

use crate::{
    testbed::{DEADLINE, alone, program, start},
    tour_page::{Step, lines, matches_page, steps},
};
use std::{fs, path::Path, time::Duration};

/// Timeout of a command: in the virtual clock time passes while the guest waits for a program from the host's disk.
const LIMIT: Duration = DEADLINE.saturating_mul(10);

#[test]
#[ignore = "needs the lab: make test ONLY=tour"]
fn every_command_of_the_tour_prints_the_lines_of_the_page() {
    let _alone = alone();
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let steps = steps(&fs::read_to_string(root.join("docs/tour.md")).unwrap());
    assert!(steps.len() >= 8, "{steps:?}");
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("docs")).unwrap();
    fs::copy(root.join("docs/car.toml"), folder.path().join("docs/car.toml")).unwrap();
    let programs = Path::new(program()).parent().unwrap().display();
    for Step { command, output } in steps {
        let script = format!(
            "cd {} && PATH={programs}:$PATH && exec 2>&1 && set -eo pipefail\n{command}",
            folder.path().display()
        );
        let ended = start("bash", &["-c", &script]).ended(LIMIT);
        let printed = lines(&ended.stdout);
        assert_eq!(ended.code, Some(0), "{command}\n{}", ended.stdout);
        assert!(
            matches_page(&output, &printed),
            "{command}\n{}\nthe page has\n{}",
            ended.stdout,
            output.join("\n")
        );
    }
}
