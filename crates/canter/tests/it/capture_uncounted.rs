//@ machine: host
//@ also: all --kernel 6.1 --cpus 2
//@ or: --cpus 2
//! The account of `canter capture` where an interface's counters and its frames differ, without a guest: frames that no
//! counter counts, as drivers do not count error frames, and frames that are counted and lost on the way to the recorder.

use crate::namespaces::ran_in_namespaces;
use crate::recorder::*;
use crate::tun_bus::{TunBuses, Uncounted};
use canter_io::Frame;

/// A bus error: the form of a frame was wrong.
fn error_frame() -> Frame {
    let frame: Frame = "20000008#0000020000000000".parse().unwrap();
    assert!(frame.is_error());
    frame
}

#[test]
fn error_frames_that_no_counter_counts_are_recorded_and_leave_no_doubt() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("errors", "16M"), TunBuses::new("ua", 1));
    let errors = Uncounted::onto("ua0", "ub0");
    let file = disk.file("a.log");
    let capture = Capture::start(&["ua0", "-o", &file]);
    let mut senders = buses.senders();
    for part in 0..20 {
        send(&mut senders, part * 5, (part + 1) * 5);
        errors.send(&error_frame());
    }
    let ended = capture.stop();
    let account = account(&file);
    is_complete(&ended, &account);
    let bus = &account["buses"][0];
    let counts = ["in_file", "counted", "uncounted", "error_frames"].map(|name| bus[name].as_u64().unwrap());
    assert_eq!(counts, [120, 100, 20, 20], "{account}");
    assert_eq!(bus["errors"]["protocol-violation"], 20, "{account}");
    assert_eq!((&account["doubtful"], &account["lost"]["unaccounted"]), (&0.into(), &0.into()), "{account}");
}

/// Frames that are counted and do not arrive, beside error frames that arrive and are not counted.
struct Loss {
    lost: u64,
    errors: u64,
    /// The beginning of the verdict.
    verdict: &'static str,
    /// Frames that are lost for certain.
    unaccounted: u64,
    /// Frames that may be lost, too.
    doubtful: u64,
}

const LOSSES: [Loss; 4] = [
    Loss {
        lost: 5,
        errors: 0,
        verdict: "5 frames lost at an unknown place (5)",
        unaccounted: 5,
        doubtful: 0,
    },
    Loss {
        lost: 5,
        errors: 3,
        verdict: "2 frames lost at an unknown place (2); up to 3 more may be missing: as many echoes or error frames",
        unaccounted: 2,
        doubtful: 3,
    },
    Loss {
        lost: 5,
        errors: 5,
        verdict: "ambiguous: up to 5 frames of uc0 may be missing: as many echoes or error frames",
        unaccounted: 0,
        doubtful: 5,
    },
    Loss {
        lost: 5,
        errors: 8,
        verdict: "ambiguous: up to 5 frames of uc0 may be missing: as many echoes or error frames",
        unaccounted: 0,
        doubtful: 5,
    },
];

#[test]
fn a_loss_that_uncounted_frames_may_hide_is_told_as_a_doubt_and_never_as_complete() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("doubt", "16M"), TunBuses::new("uc", 1));
    let errors = Uncounted::onto("uc0", "ud0");
    let file = disk.file("a.log");
    for Loss { lost, errors: error_frames, verdict, unaccounted, doubtful } in LOSSES {
        let capture = Capture::start(&["uc0", "-o", &file, "--overwrite"]);
        send(&mut buses.senders(), 0, 100);
        (0..lost).for_each(|_| buses.lose(0));
        (0..error_frames).for_each(|_| errors.send(&error_frame()));
        let ended = capture.stop();
        let account = account(&file);
        let verdict_text = account["verdict"].as_str().unwrap();
        assert!(
            verdict_text.starts_with(verdict),
            "{lost} lost, {error_frames} error frames: {verdict_text}"
        );
        assert_eq!(account["complete"], false, "{account}");
        let code = if unaccounted > 0 { 3 } else { 0 }; // a doubt is no loss
        assert_eq!(ended.code, Some(code), "{}", ended.said);
        assert_eq!(
            (account["lost"]["unaccounted"].as_u64(), account["doubtful"].as_u64()),
            (Some(unaccounted), Some(doubtful)),
            "{account}"
        );
        assert_eq!(account["frames"], 100 + error_frames, "{account}");
    }
}

#[test]
fn error_frames_that_a_small_ring_loses_are_counted_by_the_ring_alone() {
    if ran_in_namespaces() {
        return;
    }
    // A ring that is bound; bound beside an interface that is not recorded; for two of three.
    for (name, exist, recorded) in [("ue", 1, 1), ("ug", 2, 1), ("ui", 3, 2)] {
        let (disk, buses) = (Disk::new(name, "16M"), TunBuses::new(name, exist));
        let errors = Uncounted::onto(&buses.names()[0], &format!("{name}x"));
        let file = disk.file("a.log");
        let names = buses.names();
        let mut arguments: Vec<&str> = names[..recorded].iter().map(String::as_str).collect();
        arguments.extend(["-o", &file, "--ring", "256K"]);
        let capture = Capture::start(&arguments);
        send(&mut buses.senders()[..1], 0, 100);
        capture.signal("STOP");
        (0..5000).for_each(|_| errors.send(&error_frame()));
        capture.signal("CONT");
        let ended = capture.stop();
        let account = account(&file);
        let lost = 5100 - account["frames"].as_u64().unwrap();
        assert!(lost > 1000, "{account}");
        assert_eq!((ended.code, account["lost"]["ring"].as_u64()), (Some(3), Some(lost)), "{}", ended.said);
        assert_eq!(account["lost"]["unaccounted"], 0, "{account}");
        let verdict = format!("{lost} frames lost at the ring ({lost})");
        assert!(account["verdict"].as_str().unwrap().starts_with(&verdict), "{account}");
    }
}

#[test]
fn frames_of_an_interface_whose_reports_the_kernel_has_dropped_are_never_complete() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("stray", "16M"), TunBuses::new("us", 1));
    let other = TunBuses::named(&["uo0".to_owned()]);
    let file = disk.file("a.log");
    let capture = Capture::start(&["any", "-o", &file]);
    send(&mut buses.senders(), 0, 100);
    capture.signal("STOP");
    drop_reports("uo0");
    let stray = TunBuses::named(&["ut0".to_owned()]);
    send(&mut stray.senders(), 0, 5);
    drop(stray);
    eventually("its interface is gone", || !std::path::Path::new("/sys/class/net/ut0").exists());
    capture.signal("CONT");
    let ended = capture.stop();
    let account = account(&file);
    let verdict = "ambiguous: up to 5 frames of all interfaces may be missing: as many came from interfaces whose names";
    assert!(account["verdict"].as_str().unwrap().starts_with(verdict), "{account:#}");
    assert_eq!((ended.code, &account["complete"], &account["doubtful"]), (Some(0), &false.into(), &5.into()));
    assert!(ended.said.contains("the kernel has dropped reports of changes"), "{}", ended.said);
    drop(other);
}
