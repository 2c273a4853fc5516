//@ machine: host
//! Mistakes that newcomers make, as a table: each has one line that names the thing and the way out, and an exit code that
//! tells a script. Nothing is empty, ignored or a riddle.

use std::{
    fs,
    process::{Command, Stdio},
};

/// A command line, its exit code, and what its first line must have, in this order.
struct Mistake(&'static str, i32, &'static [&'static str]);

/// `drive.log` has can0 and can1, `d` is a folder with a copy of it, `drive2.log` exists, `car.toml` and `nosuch` do not.
const MISTAKES: &[Mistake] = &[
    // Words of other programs.
    Mistake(
        "captrue can0",
        2,
        &["captrue: no such command (did you mean capture?", "canter --help lists them)"],
    ),
    Mistake("walk can0", 2, &["walk: no such command (canter --help lists them)"]),
    Mistake("record any", 2, &["capture: --output <FILE>: is missing (-o drive.pcapng; canter dump prints"]),
    Mistake("candump nosuch0", 1, &["nosuch0: find: no such device"]),
    Mistake("show nosuch.log", 1, &["nosuch.log: open: no such file or directory"]),
    Mistake("info", 2, &["info: <FILE>: is missing"]),
    // Recording.
    Mistake("capture can0", 2, &["capture: --output <FILE>: is missing (-o drive.pcapng"]),
    Mistake(
        "capture can0 -o x.blf",
        2,
        &["x.blf: capture writes .log and .pcapng (", "canter convert makes blf of it)"],
    ),
    Mistake("capture can0 -o x.mf4", 2, &["x.mf4: capture writes .log and .pcapng"]),
    Mistake("capture can0 -o x.pcap", 2, &["x.pcap: unknown format (end the name in .log or .pcapng"]),
    Mistake(
        "capture can0\u{a0}can1 -o x.log",
        2,
        &["capture: <IFACE[,FILTERS]> \"can0 can1\": position 4: expected an interface"],
    ),
    Mistake(
        "capture can0,0G9 -o x.log",
        2,
        &["\"can0,0G9\": position 5: expected a filter: 123, 12345678, ID:MASK"],
    ),
    Mistake(
        "capture can0 -o x.log --duration 10",
        2,
        &["capture: --duration: \"10\" is not a duration (120us, 1.5ms, 5s, 1h30m)"],
    ),
    Mistake("capture can0 -o x.log --keep many", 2, &["capture: --keep \"many\": is not a whole number"]),
    Mistake(
        "capture can0 -o x.log --rotate-size 100XB",
        2,
        &["capture: --rotate-size: \"100XB\": not a size (100M, 100MB, 100MiB)"],
    ),
    Mistake("service check --config svc.toml", 2, &["svc.toml:4:15: ", "\"100XB\": not a size"]),
    // Converting.
    Mistake(
        "convert drive.log",
        2,
        &["convert: --output <OUT>: is missing (-o drive.blf, or -o - with --format)"],
    ),
    Mistake("convert drive.log x.blf", 2, &["convert: --output <OUT>: is missing"]),
    Mistake(
        "convert drive.log -o x.xlsx",
        2,
        &["x.xlsx: unknown format (end the name in .log, .pcapng, .asc"],
    ),
    Mistake(
        "convert drive.log -o -",
        2,
        &["-: the standard output has no name that tells the format (--format log, pcapng"],
    ),
    Mistake("convert drive.log -o drive.log", 2, &["drive.log: is also an input"]),
    Mistake("convert drive.log -o drive2.log", 1, &["drive2.log: exists (--overwrite replaces it)"]),
    Mistake(
        "convert drive.log -o p.log --filter 123",
        2,
        &["drive.log: no frame of 4 was selected (it has can0, can1; identifiers 0C9, 1A0, 18DA10F1)"],
    ),
    Mistake(
        "convert drive.log -o p.log --filter 123:7FF",
        2,
        &["drive.log: no frame of 4 was selected (it has can0, can1"],
    ),
    Mistake(
        "convert drive.log -o p.log --filter can9",
        2,
        &["drive.log: has no interface \"can9\" of --filter (it has can0, can1)"],
    ),
    Mistake(
        "convert drive.log -o p.log --interfaces can9=body",
        2,
        &["has no interface \"can9\" of --interfaces (it has can0, can1)"],
    ),
    Mistake(
        "convert drive.log -o p.log --from +5s --to +2s",
        2,
        &["--to: is not after --from: no frame can be selected"],
    ),
    Mistake(
        "convert drive.log -o p.log --from 1h",
        2,
        &["no frame of 4 was selected", "3.00 s from 2023-11-14T22:13:20.000Z"],
    ),
    Mistake(
        "convert drive.log -o p.log --from 2031-01-01",
        2,
        &["no frame of 4 was selected", "from 2023-11-14"],
    ),
    Mistake(
        "convert drive.log -o p.log --dbc car.dbc",
        2,
        &["convert: --dbc: no such option (canter convert --help lists them)"],
    ),
    Mistake(
        "convert d -o x.blf",
        1,
        &["d: open: is a folder without Parquet files (give its recordings by name)"],
    ),
    Mistake("convert nosuch.log -o x.blf", 1, &["nosuch.log: open: no such file or directory"]),
    // Routing and sending.
    Mistake(
        "gateway can0 can1 --method ring+wirte",
        2,
        &["gateway: --method", "wirte: method: no such transmitter (there are write, sendmmsg"],
    ),
    Mistake(
        "gateway can0 can1 --filter can0,123:7FF",
        2,
        &["gateway: --filter: \"can0,123:7FF\" begins with an interface", "leave out \"can0\""],
    ),
    Mistake("gateway can0", 2, &["gateway: <OUT>: is missing"]),
    Mistake(
        "replay drive.log can0=vcan0",
        2,
        &["drive.log: no frame of 4 was selected for sending (it has can0, can1; did you mean vcan0=can0?)"],
    ),
    Mistake("replay drive.log --from 2s --to 1s", 2, &["--to: is not after --from"]),
    Mistake("generate can0 --car nosuch.toml", 1, &["nosuch.toml: read: no such file or directory"]),
    // Results and what has none.
    Mistake(
        "report drive.log",
        1,
        &["drive.log: not a result file of canter (--json FILE writes one); canter info shows recordings"],
    ),
    Mistake("report --compare drive.log drive2.log", 2, &["drive.log: not a result file of canter"]),
    Mistake(
        "top --once",
        4,
        &["top: this machine has no CAN interface (ip link add vcan0 type vcan, or canter lab)"],
    ),
    Mistake("top drive.log", 2, &["drive.log: is a file, and top shows interfaces (canter info drive.log"]),
    Mistake("manual --completions bash --json x", 2, &["manual: --json: it writes no document"]),
    Mistake(
        "study load usb-stick",
        1,
        &["load usb-stick: writes to no stick but the lab's (canter lab --usb-stick)"],
    ),
    Mistake("study list --json -", 2, &["study list: --json: it writes no document"]),
    Mistake(
        "lab",
        2,
        &["lab: COMMAND: is missing (canter lab -- canter methods; canter lab alone is a shell"],
    ),
    Mistake("lab --json x -- true", 2, &["lab: --json, --realtime and --cpu are for the command inside"]),
    Mistake(
        "dump drive.log --json -",
        2,
        &["dump: --json: frames have no document (canter dump -L prints a log"],
    ),
    Mistake(
        "info drive.log --sort size",
        2,
        &["info: --sort: \"size\" is not known (there are bus, id, count"],
    ),
    Mistake(
        "info drive.log --filter can0\u{a0}can1",
        2,
        &["info: --filter", "position 4: expected an interface name"],
    ),
    Mistake(
        "analyze drive.log",
        2,
        &["drive.log: is a file, and analyze reads a virtual bus (canter convert drive.log"],
    ),
];

const DRIVE: &str = "(1700000000.000000) can0 0C9#11\n(1700000001.000000) can1 1A0#\n(1700000002.000000) can0 18DA10F1#22\n\
                     (1700000003.000000) can0 20000004#0000000000000000\n";

#[test]
fn each_mistake_has_one_line_that_names_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("d")).unwrap();
    for name in ["drive.log", "drive2.log", "d/drive.log"] {
        fs::write(path(name), DRIVE).unwrap();
    }
    let service =
        "[capture.all]\ninterfaces = [\"can0\"]\noutput = \"/tmp/x-{run}.log\"\nrotate-size = \"100XB\"\n";
    fs::write(path("svc.toml"), service).unwrap();
    let mut faults = Vec::new();
    for Mistake(line, code, parts) in MISTAKES {
        // A no-break space stands for a blank inside a word.
        let words: Vec<String> = line.split(' ').map(|word| word.replace('\u{a0}', " ")).collect();
        let output = Command::new(env!("CARGO_BIN_EXE_canter"))
            .args(&words)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // `replay` prints its remarks before.
        let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("replay: ")).collect();
        let mut rest = lines.first().copied().unwrap_or_default();
        let in_order = parts.iter().all(|part| match rest.split_once(part) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        });
        // The second line is an example of the same command.
        let is_example = lines.get(1).is_none_or(|line| line.starts_with("  canter "));
        let leaks = ["error:", "os error", "Usage:", "at line 1 column", "panicked"]
            .iter()
            .any(|word| said.contains(word));
        let begins = lines.first().is_some_and(|line| line.starts_with("canter: "));
        if output.status.code() != Some(*code)
            || !(begins && in_order && is_example && !leaks)
            || lines.len() > 2
            || !output.stdout.is_empty()
        {
            faults.push(format!("canter {line} → {:?}\n{said}", output.status.code()));
        }
    }
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), MISTAKES.len(), faults.join("\n"));
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 4, "a mistake leaves no file: {names:?}");
}

#[test]
fn a_word_for_help_is_a_request() {
    for words in [&["capture", "help"][..], &["capture", "--help"], &["help", "capture"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_canter")).args(words).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{words:?}: {output:?}");
        assert!(text.contains("Usage: canter capture [OPTIONS]"), "{words:?}: {text}");
    }
}
