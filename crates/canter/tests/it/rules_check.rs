//@ machine: host
//! `canter rules check`: what rules would do with a recording. It needs no CAN.

use crate::{
    rules::{file, rules},
    testbed::{DEADLINE, canter},
};

#[test]
fn a_recording_shows_what_the_rules_would_do() {
    let log = file(
        "(1.000000) can0 123#11\n(1.000100) can0 123#12\n(1.010000) can0 123#13\n(1.1) x\n"
            .replace("(1.1) x\n", "(1.020000) can1 123#14\n# note\n(1.030000) can0 500#\n")
            .as_str(),
    );
    let text = "[[route]]\nfrom = \"can0\"\nto = \"can1\"\n[[route.rule]]\nname = \"slow\"\nfilter = [\"123\"]\nlimit = \"1/10ms\"\nset = { id = \"124\" }\n[[route.rule]]\nfilter = [\"600\"]\n";
    let text = file(text);
    let [text, log] = [&text, &log].map(|file| file.path().to_str().unwrap());
    let checked = rules(&["check", text, log]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let expected = "can0 → can1\n  4 received = 2 transmitted + 1 filtered + 1 dropped (1 over limit)\n  \
        slow    line 4    3 matched, 2 forwarded, 2 changed\n          can-gw cannot apply it: can-gw cannot limit rates\n  \
        rule 2  line 9    never used\n";
    assert_eq!(checked.stdout, expected);
    let frames = rules(&["check", text, log, "--frames"]);
    assert_eq!(frames.stdout, "(0000000001.000000) can1 124#11\n(0000000001.010000) can1 124#13\n");
    let json = rules(&["check", text, log, "--json", "-"]).json();
    assert_eq!(
        (&json[0]["counts"]["drops"]["over_limit"], &json[0]["rules"][1]["matched"]),
        (&1.into(), &0.into())
    );
    let broken = file("(1.000000) can0 12#\n");
    let broken = rules(&["check", text, broken.path().to_str().unwrap()]);
    assert_eq!(broken.code, Some(1), "{broken:?}");
    assert!(broken.complaint().contains(": line 1: position 16: expected an identifier"), "{broken:?}");
}

#[test]
fn rules_by_signals_change_the_frames_that_decode_shows() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let database = "BO_ 291 Engine: 8 ECU\n SG_ Speed : 11|14@0+ (0.25,0) [0|4000] \"rpm\" X\n SG_ Gear : 0|3@1+ (1,0) [0|0] \"\" X\n\nVAL_ 291 Gear 1 \"Park\" ;\n";
    let dbc = put("car.dbc", database);
    let text = put(
        "rules.toml",
        "dbc = [\"car.dbc\"]\n[[route]]\nfrom = \"can0\"\nto = \"can1\"\nset = { Speed = 900.25, Gear = \"Park\" }\n",
    );
    let log = put(
        "drive.log",
        "(1.000000) can0 123#FFFFFFFFFFFFFFFF\n(1.000100) can0 124#12\n(1.000200) can0 123#0000000000000000\n",
    );
    let checked = rules(&["check", &text, &log]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.stdout.contains("3 received = 2 transmitted + 1 filtered"), "{checked:?}");
    assert!(!checked.stdout.contains("can-gw cannot apply"), "{checked:?}");
    let frames = put("out.log", &rules(&["check", &text, &log, "--frames"]).stdout);
    let decoded = canter(&["decode", &frames, "--dbc", &dbc, "--one-line"]).ended(DEADLINE);
    assert_eq!(decoded.stdout.matches("Engine(Speed: 900.25 rpm, Gear: Park)").count(), 2, "{decoded:?}");
    let raw = std::fs::read_to_string(&frames).unwrap();
    // Bits outside of both signals stay.
    assert!(raw.contains("123#F9") && raw.contains("123#01"), "{raw}");
    let wrong = put("wrong.toml", "dbc = [\"car.dbc\"]\n[[rule]]\nset = { Sped = 1 }\n");
    let refused = rules(&["check", &wrong]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused
            .complaint()
            .contains("wrong.toml:3:9: set: no message has the signal Sped (did you mean Speed?)"),
        "{refused:?}"
    );
}
