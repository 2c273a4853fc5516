//@ machine: host --ignored
//@ needs: target/python target/python-can target/vblf
//! Other programs read every frame that `canter convert` writes, and it reads every frame that they write. Needs no CAN, but
//! tshark, can-utils and what the second line lists.

use canter_io::{
    Direction, Frame, Identifier, LogLine,
    frame::{ERR_FLAG, len_of_dlc},
};
use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

const BUSES: [&str; 3] = ["can0", "can1", "can2"];
const START_NS: u64 = 1_700_000_000_123_000_000;

/// A frame of the test's recording.
#[derive(Clone, Copy)]
struct Sample {
    stamp_ns: u64,
    bus: usize,
    frame: Frame,
    direction: Option<Direction>,
}

/// 10 000 frames, equal each time: classic, FD, RTR and error frames of three buses. Without `ns`, stamps are whole µs.
fn samples(ns: bool) -> Vec<Sample> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % below
    };
    let mut stamp_ns = START_NS;
    let mut sample = |_| {
        stamp_ns += if ns { 1 + random(99_999) } else { 1000 * (1 + random(100)) };
        let id = if random(2) == 0 {
            Identifier::Sff(random(0x800) as u16)
        } else {
            Identifier::Eff(random(0x2000_0000) as u32)
        };
        let bytes: Vec<u8> = (0..64).map(|_| random(256) as u8).collect();
        let mut frame = match random(8) {
            0 => Frame::rtr(id, random(9) as u8),
            // An empty FD frame in an ASC file is a remote frame to python-can.
            1..=3 => Frame::fd(id, &bytes[..len_of_dlc(1 + random(15) as u8)], random(4) as u8),
            _ => Frame::classic(id, &bytes[..random(9) as usize]),
        }
        .unwrap();
        let mut direction = Some(if random(2) == 0 { Direction::Received } else { Direction::Sent });
        if random(20) == 0 {
            frame = Frame::classic(Identifier::Sff(0), &bytes[..8]).unwrap();
            frame.can_id = ERR_FLAG | 1 << random(9);
            direction = None;
        }
        Sample { stamp_ns, bus: random(3) as usize, frame, direction }
    };
    (0..10_000).map(&mut sample).collect()
}

/// A folder with the recording in it.
struct Place {
    folder: TempDir,
    samples: Vec<Sample>,
}

impl Place {
    fn new(ns: bool) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap(), samples: samples(ns) };
        let mut text = String::new();
        for &Sample { stamp_ns, bus, frame, direction } in &place.samples {
            let line = LogLine { stamp_ns, interface: BUSES[bus], frame, direction };
            writeln!(text, "{line:.9}").unwrap();
        }
        fs::write(place.path("in.log"), text).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn converted(&self, from: &str, to: &str, options: &[&str]) -> PathBuf {
        let (from, to) = (self.path(from), self.path(to));
        let mut canter = Command::new(env!("CARGO_BIN_EXE_canter"));
        output(canter.arg("convert").arg(&from).arg("-o").arg(&to).args(options));
        to
    }

    /// The samples as lines. `line` changes each to what a reader sees; false: the reader is known not to see it.
    fn lines(&self, line: impl Fn(&Sample, &mut Seen) -> bool) -> Vec<String> {
        let mut lines = Vec::new();
        for sample in &self.samples {
            let mut seen = Seen::new(sample);
            if line(sample, &mut seen) {
                lines.push(seen.to_string());
            }
        }
        lines
    }
}

/// A frame as a reader prints it.
struct Seen {
    stamp_ns: u64,
    bus: String,
    id: u32,
    extended: bool,
    kind: char,
    fd: [u8; 3],
    len: u8,
    data: String,
    direction: char,
}

fn letter(direction: Option<Direction>) -> char {
    match direction {
        None => '-',
        Some(Direction::Received) => 'R',
        Some(Direction::Sent) => 'T',
    }
}

fn hex(data: &[u8]) -> String {
    if data.is_empty() { "-".to_owned() } else { data.iter().map(|byte| format!("{byte:02X}")).collect() }
}

impl Seen {
    fn new(sample: &Sample) -> Self {
        let frame = &sample.frame;
        Self {
            stamp_ns: sample.stamp_ns,
            bus: BUSES[sample.bus].to_owned(),
            id: frame.can_id & 0x1fff_ffff,
            extended: frame.is_eff(),
            kind: if frame.is_error() {
                'e'
            } else if frame.is_rtr() {
                'r'
            } else {
                'd'
            },
            fd: [frame.flags >> 2 & 1, frame.flags & 1, frame.flags >> 1 & 1],
            len: frame.len,
            data: hex(frame.data()),
            direction: letter(sample.direction),
        }
    }

    /// Makes it an error frame of which a reader or format keeps nothing but its presence.
    fn bare_error(&mut self) {
        (self.id, self.extended, self.len, self.data, self.direction) = (0, true, 0, "-".to_owned(), 'R');
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { stamp_ns, bus, id, kind, fd: [fd, brs, esi], len, data, direction, .. } = self;
        let width = if self.extended { 'x' } else { 's' };
        write!(f, "{stamp_ns} {bus} {id:X} {width} {kind} {fd} {brs} {esi} {len} {data} {direction}")
    }
}

#[track_caller]
fn output(command: &mut Command) -> String {
    let done = command.output().unwrap();
    let (said, text) = (String::from_utf8_lossy(&done.stderr), String::from_utf8_lossy(&done.stdout));
    assert!(done.status.success(), "{command:?}: {said}");
    text.into_owned()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn python(script: &str, arguments: &[&Path]) -> Vec<String> {
    let script = root().join("crates/canter/tests/peers").join(script);
    let mut python = Command::new(root().join("target/python/bin/python"));
    lines_of(&output(python.env("TZ", "UTC").arg(script).args(arguments)))
}

fn read(reader: &str, file: &Path) -> Vec<String> {
    python("read.py", &[Path::new(reader), file])
}

/// The frames of each of at least two files, by one start of Python.
fn read_each(reader: &str, files: &[PathBuf]) -> Vec<Vec<String>> {
    let words: Vec<&Path> =
        [Path::new(reader)].into_iter().chain(files.iter().map(PathBuf::as_path)).collect();
    let mut read = Vec::new();
    for line in python("read.py", &words) {
        match line.strip_prefix("FILE ") {
            Some(path) => {
                assert_eq!(Path::new(path), files[read.len()]);
                read.push(Vec::new());
            }
            None => read.last_mut().unwrap().push(line),
        }
    }
    assert_eq!(read.len(), files.len());
    read
}

fn lines_of(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// Names the first frame that differs.
#[track_caller]
fn assert_same(reader: &str, got: &[String], want: &[String]) {
    for (at, (got, want)) in got.iter().zip(want).enumerate() {
        assert_eq!(got, want, "{reader}, frame {at}");
    }
    assert_eq!(got.len(), want.len(), "{reader}");
}

/// The frames that tshark reads, with the fields of our lines; a field that tshark does not have is blank.
fn tshark(file: &Path) -> Vec<[String; 11]> {
    let fields = "frame.time_epoch frame.interface_name can.id can.flags.xtd can.flags.rtr can.flags.err can.len \
                  canfd.flags.brs canfd.flags.esi data.data frame.packet_flags_direction";
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(file).args(["-T", "fields"]);
    fields.split_whitespace().for_each(|field| {
        tshark.args(["-e", field]);
    });
    let row = |line: &str| {
        let mut row = line.split('\t').map(str::to_owned);
        std::array::from_fn(|_| row.next().unwrap_or_default())
    };
    output(&mut tshark).lines().map(row).collect()
}

/// A row of tshark as our line.
fn line_of_tshark([time, bus, id, xtd, rtr, err, len, brs, esi, data, direction]: &[String; 11]) -> String {
    let (seconds, ns) = time.split_once('.').unwrap();
    let blank = |text: &String| if text.is_empty() { "-".to_owned() } else { text.to_uppercase() };
    let kind = match (err.as_str(), rtr.as_str()) {
        ("1", _) => 'e',
        (_, "1") => 'r',
        _ => 'd',
    };
    Seen {
        stamp_ns: format!("{seconds}{ns:0<9}").parse().unwrap(),
        bus: if bus.is_empty() { "-" } else { bus }.to_owned(),
        id: id.parse().unwrap_or(0),
        extended: xtd == "1",
        kind,
        fd: [u8::from(!brs.is_empty()), brs.parse().unwrap_or(0), esi.parse().unwrap_or(0)],
        len: len.parse().unwrap(),
        // It shows the room for a remote frame's data as data, and what errors tell as fields.
        data: if kind == 'd' { blank(data) } else { "-".to_owned() },
        direction: match direction.as_str() {
            "0x00000001" => 'R',
            "0x00000002" => 'T',
            _ => '-',
        },
    }
    .to_string()
}

fn tshark_lines(file: &Path) -> Vec<String> {
    tshark(file).iter().map(line_of_tshark).collect()
}

/// Removes what tshark does not show of error frames.
fn as_tshark(seen: &mut Seen) {
    if seen.kind == 'e' {
        (seen.id, seen.data) = (0, "-".to_owned());
    }
}

#[test]
#[ignore = "needs other programs: make test ONLY=convert_peers"]
fn tshark_reads_every_frame_of_a_pcapng_to_the_ns() {
    let place = Place::new(true);
    let want = place.lines(|_, seen| {
        as_tshark(seen);
        true
    });
    assert_same("tshark", &tshark_lines(&place.converted("in.log", "out.pcapng", &[])), &want);
}

#[test]
#[ignore = "needs other programs: make test ONLY=convert_peers"]
fn tshark_reads_every_frame_of_a_log() {
    let place = Place::new(false);
    let want = place.lines(|_, seen| {
        as_tshark(seen);
        // Its reader of logs tells neither.
        (seen.bus, seen.direction) = ("-".to_owned(), '-');
        true
    });
    assert_same("tshark", &tshark_lines(&place.converted("in.log", "out.log", &[])), &want);
}

#[test]
#[ignore = "needs other programs: make test ONLY=convert_peers"]
fn tshark_reads_the_frames_of_a_blf() {
    let place = Place::new(true);
    let file = place.converted("in.log", "out.blf", &[]);
    let got: Vec<String> = tshark(&file)
        .iter()
        .map(|row| {
            let mut row = row.clone();
            // tshark 4.0 does not tell FD frames of a BLF from others.
            (row[7], row[8]) = (String::new(), String::new());
            line_of_tshark(&row)
        })
        .collect();
    let want = place.lines(|sample, seen| {
        (seen.bus, seen.fd) = (format!("CAN-{}", sample.bus + 1), [0; 3]);
        seen.kind != 'e' // of those, tshark 4.0 reads none
    });
    assert_same("tshark", &got, &want);
    assert!(output(Command::new("capinfos").arg(&file)).contains("Vector Informatik Binary Logging Format"));
}

#[test]
#[ignore = "needs other programs: make test ONLY=convert_peers"]
fn python_can_reads_every_frame_of_a_log_an_asc_and_a_blf() {
    let place = Place::new(false);
    let log = place.lines(|_, seen| {
        match seen.kind {
            // It takes error frames for such by the class of bus errors only, and for data frames else.
            'e' if seen.id & 0x80 == 0 => (seen.kind, seen.extended, seen.direction) = ('d', true, 'R'),
            'e' => {
                seen.bare_error();
                seen.bus = "None".to_owned();
            }
            _ => {}
        }
        true
    });
    assert_same("log", &read("python_can", &place.converted("in.log", "out.log", &["--direction"])), &log);
    let asc = place.lines(|sample, seen| {
        seen.bus = sample.bus.to_string();
        if seen.kind == 'e' {
            seen.bare_error();
        }
        true
    });
    assert_same("asc", &read("python_can", &place.converted("in.log", "out.asc", &[])), &asc);
    let blf = place.lines(|sample, seen| {
        seen.bus = sample.bus.to_string();
        if seen.kind == 'e' {
            (seen.extended, seen.direction) = (true, 'R');
        }
        true
    });
    assert_same("blf", &read("python_can", &place.converted("in.log", "out.blf", &[])), &blf);
}

#[test]
#[ignore = "needs other programs: make test ONLY=convert_peers"]
fn vblf_reads_every_frame_of_a_blf_to_the_ns() {
    let place = Place::new(true);
    let want = place.lines(|sample, seen| {
        seen.bus = (sample.bus + 1).to_string();
        true
    });
    assert_same("vblf", &read("vblf", &place.converted("in.log", "out.blf", &[])), &want);
}

#[test]
#[ignore = "needs other programs: make test ONLY=convert_peers"]
fn asammdf_reads_every_frame_of_an_mf4_as_bus_logging() {
    let place = Place::new(false);
    let want = place.lines(|sample, seen| {
        seen.bus = format!("{}/{}", BUSES[sample.bus], sample.bus + 1);
        if seen.kind == 'e' {
            seen.direction = 'R';
        }
        true
    });
    assert_same("asammdf", &read("mdf", &place.converted("in.log", "out.mf4", &[])), &want);
}

#[test]
#[ignore = "needs other programs: make test ONLY=convert_peers"]
fn pyarrow_and_duckdb_read_every_frame_of_a_data_set_to_the_ns() {
    let place = Place::new(true);
    let set = place.converted("in.log", "set", &["--format", "parquet", "--vehicle", "V 17/a"]);
    let want = place.lines(|_, _| true);
    assert_same("pyarrow", &read("pyarrow", &set), &want);
    assert_same("duckdb", &read("duckdb", &set), &want);
}

#[test]
#[ignore = "needs other programs: make test ONLY=convert_peers"]
fn python_reads_every_frame_of_a_csv_to_the_ns() {
    let place = Place::new(true);
    let want = place.lines(|_, _| true);
    assert_same("csv", &read("csv", &place.converted("in.log", "out.csv", &[])), &want);
}

/// The frames of a log as lines, with stamps from `START_NS` on as if `first_ns` were the first.
fn lines_of_log(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    let line = |line: &str| {
        let LogLine { stamp_ns, interface, frame, direction } = LogLine::parse(line).unwrap().unwrap();
        let bus = BUSES.iter().position(|name| *name == interface).unwrap();
        Seen::new(&Sample { stamp_ns, bus, frame, direction }).to_string()
    };
    text.lines().map(line).collect()
}

/// Frames without their stamps, for tools that do not keep the date, and error frames without the fields that an ASC lacks.
fn without_stamps(lines: &[String]) -> Vec<String> {
    let frame = |line: &String| {
        let frame = line.split_once(' ').unwrap().1;
        let words: Vec<&str> = frame.split(' ').collect();
        if words[3] == "e" { format!("{} error", words[0]) } else { frame.to_owned() }
    };
    lines.iter().map(frame).collect()
}

/// asc2log adds the time of day to each stamp, because it knows dates in a German locale only; a sum of exactly 1 000 000 µs
/// keeps its seven digits.
fn carry_seconds_over(log: &Path) {
    let line = |line: &str| match line.split_once(".1000000)") {
        Some((stamp, rest)) => format!("({}.000000){rest}\n", stamp[1..].parse::<u64>().unwrap() + 1),
        None => format!("{line}\n"),
    };
    fs::write(log, fs::read_to_string(log).unwrap().lines().map(line).collect::<String>()).unwrap();
}

/// The time of each stamp since the first one, in ns.
fn steps(lines: &[String]) -> Vec<u64> {
    let stamps: Vec<u64> =
        lines.iter().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
    stamps.iter().map(|stamp| stamp - stamps[0]).collect()
}

#[test]
#[ignore = "needs other programs: make test ONLY=convert_peers"]
fn can_utils_read_our_logs_and_our_asc_and_we_read_theirs() {
    let place = Place::new(false);
    let log = place.converted("in.log", "out.log", &["--direction"]);
    output(Command::new("log2asc").arg("-I").arg(&log).arg("-O").arg(place.path("theirs.asc")).args(BUSES));
    let back = lines_of_log(&place.converted("theirs.asc", "theirs-asc.log", &["--direction"]));
    let want = place.lines(|_, _| true);
    assert_same("log2asc", &without_stamps(&back), &without_stamps(&want));
    assert_eq!(steps(&back), steps(&want));

    let asc = place.converted("in.log", "out.asc", &[]);
    output(Command::new("asc2log").arg("-I").arg(asc).arg("-O").arg(place.path("theirs.log")));
    carry_seconds_over(&place.path("theirs.log"));
    let back = lines_of_log(&place.converted("theirs.log", "back.log", &["--direction"]));
    assert_same("asc2log", &without_stamps(&back), &without_stamps(&want));
    assert_eq!(steps(&back), steps(&want));
}

/// python-can reads of a log's error frames neither channel nor content: a recording without them, its log and lines.
fn place_without_errors() -> (Place, PathBuf, Vec<String>) {
    let mut place = Place::new(false);
    place.samples.retain(|sample| !sample.frame.is_error());
    let text = fs::read_to_string(place.path("in.log")).unwrap();
    let frames: Vec<&str> = text.lines().filter(|line| !line.contains(" 20000")).collect();
    fs::write(place.path("in.log"), frames.join("\n") + "\n").unwrap();
    let log = place.converted("in.log", "plain.log", &["--direction"]);
    let want = place.lines(|_, _| true);
    (place, log, want)
}

#[test]
#[ignore = "needs other programs: make test ONLY=convert_peers"]
fn we_read_every_frame_of_the_objects_that_newer_tools_of_vector_write() {
    let (place, log, want) = place_without_errors();
    python("write_blf.py", &[&log, &place.path("newer.blf")]);
    let back = lines_of_log(&place.converted("newer.blf", "back.log", &["--direction", "--ns"]));
    assert_same("vblf's CAN_MESSAGE2 and CAN_FD_MESSAGE_64", &without_stamps(&back), &without_stamps(&want));
    assert_eq!(steps(&back), steps(&want));
}

#[test]
#[ignore = "needs other programs: make test ONLY=convert_peers"]
fn we_read_every_frame_of_an_asc_and_a_blf_of_python_can() {
    let (place, log, want) = place_without_errors();
    for name in ["theirs.asc", "theirs.blf"] {
        python("write.py", &[&log, &place.path(name)]);
        let back = lines_of_log(&place.converted(name, "back.log", &["--direction", "--ns", "--overwrite"]));
        // Its floating stamps are off by parts of a µs.
        let back = rounded_to_us(&back);
        assert_same(name, &without_stamps(&back), &without_stamps(&want));
        assert_eq!(steps(&back), steps(&want), "{name}");
        // In an ASC it cuts the first stamp off to the ms.
        assert_eq!(back[0] == want[0], name == "theirs.blf");
    }
}

/// Lines with stamps of whole µs, as floating numbers of others have them.
fn rounded_to_us(lines: &[String]) -> Vec<String> {
    let line = |line: &String| {
        let (stamp, rest) = line.split_once(' ').unwrap();
        format!("{} {rest}", (stamp.parse::<u64>().unwrap() + 500) / 1000 * 1000)
    };
    lines.iter().map(line).collect()
}

#[test]
#[ignore = "needs other programs: make test ONLY=convert_peers"]
fn we_read_every_frame_of_an_mf4_of_python_can_and_of_asammdf() {
    let (place, log, want) = place_without_errors();
    // python-can has channels from 0 on, which the standard has not.
    let names = "channel0=can0,can0=can1,can1=can2";
    python("write.py", &[&log, &place.path("theirs.mf4")]);
    let theirs = place.converted("theirs.mf4", "theirs.log", &["--direction", "--ns", "--interfaces", names]);
    assert_same("python-can", &rounded_to_us(&lines_of_log(&theirs)), &want);

    let ours = place.converted("in.log", "ours.mf4", &[]);
    python("rewrite.py", &[&ours, &place.path("anew.mf4")]);
    let anew = place.converted("anew.mf4", "anew.log", &["--direction", "--ns"]);
    assert_same("asammdf", &lines_of_log(&anew), &want);
}

#[test]
#[ignore = "needs other programs: make test ONLY=convert_peers"]
fn we_read_an_mf4_whose_payloads_are_of_variable_length_and_apart() {
    let mut place = Place::new(false);
    place.samples.retain(|sample| {
        let plain = !sample.frame.is_error() && !sample.frame.is_rtr();
        plain && sample.frame.data().last().is_some_and(|&last| last != 0)
    });
    let text: String = place
        .samples
        .iter()
        .map(|&Sample { stamp_ns, bus, frame, direction }| {
            format!("{}\n", LogLine { stamp_ns, interface: BUSES[bus], frame, direction })
        })
        .collect();
    fs::write(place.path("plain.log"), text).unwrap();
    python("write_mdf.py", &[&place.path("plain.log"), &place.path("apart.mf4")]);
    let back = place.converted("apart.mf4", "apart.log", &["--direction", "--ns"]);
    assert_same("asammdf", &rounded_to_us(&lines_of_log(&back)), &place.lines(|_, _| true));
}

#[test]
#[ignore = "needs other programs: make test ONLY=convert_peers"]
fn we_read_a_part_of_a_data_set_that_pyarrow_has_written_anew() {
    let place = Place::new(true);
    let set = place.converted("in.log", "set", &["--format", "parquet", "--vehicle", "V1"]);
    let bus = fs::read_dir(set.join("vehicle=V1")).unwrap().next().unwrap().unwrap().path().join("bus=can1");
    let part = fs::read_dir(bus).unwrap().next().unwrap().unwrap().path();
    python("rewrite.py", &[&part, &place.path("anew.parquet")]);
    let names = ["--direction", "--ns", "--interfaces", "any=can1"];
    let back = lines_of_log(&place.converted("anew.parquet", "back.log", &names));
    assert_same("pyarrow", &back, &place.lines(|sample, _| sample.bus == 1));
}

/// Asks the question of docs/formats.md, on drives whose losses are known.
#[test]
#[ignore = "needs other programs: make test ONLY=convert_peers"]
fn the_documented_question_finds_the_lost_periods_of_a_fleet() {
    let folder = tempfile::tempdir().unwrap();
    let drive = |vehicle: &str, day: u64, lost: &[u64]| {
        let mut text = String::new();
        for period in (0..500).filter(|period| !lost.contains(period)) {
            // A period of 10 ms, with jitter; other frames between.
            let us = 1_700_000_000_000_000 + day * 86_400_000_000 + period * 10_000 + period * 7919 % 400;
            let (seconds, us) = (us / 1_000_000, us % 1_000_000);
            writeln!(text, "({seconds}.{us:06}) can0 123#{:04X}", period).unwrap();
            writeln!(text, "({seconds}.{us:06}) can0 00000123#00").unwrap();
            writeln!(text, "({seconds}.{us:06}) can1 123#").unwrap();
        }
        let log = folder.path().join(format!("{vehicle}-{day}.log"));
        fs::write(&log, text).unwrap();
        let mut canter = Command::new(env!("CARGO_BIN_EXE_canter"));
        canter.arg("convert").arg(log).args([
            "--format",
            "parquet",
            "--vehicle",
            vehicle,
            "--filter",
            "can0",
        ]);
        output(canter.arg("-o").arg(folder.path().join("fleet")));
    };
    drive("V1", 0, &[]);
    drive("V2", 0, &[10, 11, 12, 100]);
    drive("V2", 3, &[7]);
    drive("V3", 1, &[250]);

    let page = fs::read_to_string(root().join("docs/formats.md")).unwrap();
    let query = page.split_once("```sql\n").unwrap().1.split_once("```").unwrap().0;
    let script = "import duckdb, sys\nfor row in duckdb.sql(sys.argv[1]).fetchall(): print(*row)";
    let mut python = Command::new(root().join("target/python/bin/python"));
    let answer = output(python.current_dir(folder.path()).args(["-c", script, query]));
    let rows: Vec<Vec<&str>> = answer.lines().map(|line| line.split(' ').collect()).collect();
    let counts: Vec<String> = rows.iter().map(|row| row[..4].join(" ")).collect();
    assert_eq!(counts, ["V2 can0 3 5", "V3 can0 1 1"], "{answer}");
    let longest: f64 = rows[0][4].parse().unwrap();
    assert!((39.0..41.0).contains(&longest), "{answer}");
}

/// Converts a recording that may have faults; returns the exit code, the log and the standard error.
fn converted_with_code(from: &Path, to: &Path) -> (Option<i32>, String, String) {
    let mut canter = Command::new(env!("CARGO_BIN_EXE_canter"));
    let done =
        canter.arg("convert").arg(from).arg("-o").arg(to).args(["--direction", "--ns"]).output().unwrap();
    let text = fs::read_to_string(to).unwrap_or_default();
    (done.status.code(), text, String::from_utf8(done.stderr).unwrap())
}

/// The lines of a log whose interfaces are `can` and a channel's number, as our lines with that number.
fn lines_by_channel(log: &str) -> Vec<Seen> {
    let line = |line: &str| {
        let LogLine { stamp_ns, interface, frame, direction } = LogLine::parse(line).unwrap().unwrap();
        let bus = interface.strip_prefix("can").unwrap().to_owned();
        Seen { bus, ..Seen::new(&Sample { stamp_ns, bus: 0, frame, direction }) }
    };
    log.lines().map(line).collect()
}

/// How canter reads a file of python-can's tests, compared with python-can.
enum Reads {
    /// Every frame as python-can reads it.
    Same,
    /// Every frame as python-can reads it, but for fields: as python-can has them, and as canter does.
    But(&'static [(&'static str, &'static str)]),
    /// No frame: canter counts the entries as something else.
    Skips(&'static str),
    /// No frame: canter refuses the file with this message.
    Refuses(&'static str),
}

/// python-can's recordings, how canter ends, and what it reads otherwise. What python-can calls the length of a classic
/// frame is its DLC, as if it were FD's.
const PYTHON_CANS: &[(&str, i32, Reads)] = &[
    ("issue_1256.asc", 0, Reads::Same),
    // A DLC of D has 8 bytes in a classic frame (ISO 11898-1); python-can says 32.
    ("issue_1299.asc", 0, Reads::But(&[("s d 0 0 0 32 55AA", "s d 0 0 0 8 55AA")])),
    // The object has 48 bytes of the 64 that it claims: canter counts it.
    ("issue_1905.blf", 3, Reads::Same),
    // A remote frame in a CANFD line without the mark of FD: see test_CanFdRemoteMessage.asc.
    ("logfile.asc", 0, Reads::But(&[("x r 1 0 0 5", "x r 0 0 0 5")])),
    ("logfile_errorframes.asc", 0, Reads::Same),
    // A classic frame with a DLC of 40 (hex), which has four bits.
    ("single_frame.asc", 1, Reads::Refuses("single_frame.asc: line 6: a frame without DLC")),
    ("single_frame_us_locale.asc", 0, Reads::Same),
    ("test_CanErrorFrameExt.blf", 0, Reads::Same),
    ("test_CanErrorFrames.asc", 0, Reads::Same),
    ("test_CanFdMessage.asc", 0, Reads::Same),
    // Vector's objects of example values: their direction is 2, a request to send.
    ("test_CanFdMessage.blf", 0, Reads::Skips("2 requests to send (TxRq)")),
    ("test_CanFdMessage64.asc", 0, Reads::Same),
    // Marked as FD and as remote, which no frame is (ISO 11898-1). canter takes the mark with data.
    (
        "test_CanFdMessage64.blf",
        3,
        Reads::But(&[(
            "15555555 s r 1 1 1 64 - T",
            "15555555 x d 1 1 1 64 000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3F T",
        )]),
    ),
    // Its flags have the mark of a remote frame and not that of FD; python-can takes every CANFD line for FD.
    ("test_CanFdRemoteMessage.asc", 0, Reads::But(&[("r 1 0 1 5", "r 0 0 0 5")])),
    ("test_CanMessage.asc", 0, Reads::Same),
    // By its name, python-can reads it with stamps from its beginning.
    ("test_CanMessage.asc.gz", 0, Reads::Same),
    ("test_CanMessage.blf", 0, Reads::Skips("2 requests to send (TxRq)")),
    ("test_CanMessage.trc", 0, Reads::Same),
    ("test_CanMessage2.blf", 0, Reads::Skips("2 requests to send (TxRq)")),
    // It takes no date of a file of version 1.0.
    ("test_CanMessage_V1_0_BUS1.trc", 0, Reads::Skips("1 status messages")),
    ("test_CanMessage_V1_1.trc", 0, Reads::Same),
    ("test_CanMessage_V1_3.trc", 0, Reads::Same),
    ("test_CanMessage_V2_0_BUS1.trc", 0, Reads::Same),
    ("test_CanMessage_V2_1.trc", 0, Reads::Same),
    ("test_CanRemoteMessage.asc", 0, Reads::Same),
];

#[test]
#[ignore = "needs other programs: make test ONLY=convert_peers"]
fn we_read_the_recordings_of_python_cans_tests_like_python_can() {
    let folder = root().join("target/python-can/test/data");
    let ours = |name: &String| [".asc", ".blf", ".gz", ".trc"].iter().any(|end| name.ends_with(end));
    let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(ours).collect();
    names.sort();
    assert_eq!(names, PYTHON_CANS.iter().map(|(name, ..)| *name).collect::<Vec<_>>());
    let place = tempfile::tempdir().unwrap();
    let mut ours = Vec::new();
    for (name, code, reads) in PYTHON_CANS {
        let (got, log, said) =
            converted_with_code(&folder.join(name), &place.path().join(format!("{name}.log")));
        assert_eq!(got, Some(*code), "{name}: {said}");
        assert_eq!(said.contains("doubtful"), *code == 3, "{name}: {said}");
        let but: &[_] = match reads {
            Reads::Refuses(message) | Reads::Skips(message) => {
                assert!(said.contains(message), "{name}: {said}");
                continue;
            }
            Reads::Same => &[],
            Reads::But(but) => but,
        };
        let mut frames = lines_by_channel(&log);
        frames.iter_mut().filter(|frame| frame.kind == 'e').for_each(Seen::bare_error);
        ours.push((name, but, frames.iter().map(Seen::to_string).collect::<Vec<_>>()));
    }
    // It reads an unpacked file with dates, as ours.
    let files: Vec<_> =
        ours.iter().map(|(name, ..)| folder.join(name.strip_suffix(".gz").unwrap_or(name))).collect();
    for ((name, but, frames), theirs) in ours.iter().zip(read_each("python_can", &files)) {
        let theirs: Vec<String> = theirs.iter().map(|line| stated(line, but)).collect();
        assert!(!theirs.is_empty(), "{name}");
        assert_same(name, &rounded_to_us(frames), &rounded_to_us(&theirs));
    }
}

/// A line of python-can as canter reads it; an error frame keeps nothing but its presence.
fn stated(line: &str, but: &[(&str, &str)]) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    if words[4] == "e" {
        return format!("{} {} 0 x e 0 0 0 0 - R", words[0], words[1]);
    }
    but.iter().fold(line.to_owned(), |line, (theirs, ours)| line.replace(theirs, ours))
}

/// Objects of Vector's own files, which vblf's tests hold one by one, and between any two of them a global marker, whose
/// length of 81 bytes nothing pads.
#[test]
#[ignore = "needs other programs: make test ONLY=convert_peers"]
fn we_read_the_frames_of_vectors_objects_between_markers_that_are_not_padded() {
    let data = root().join("target/vblf/tests/data");
    let object = |name: &str| {
        let mut object = fs::read(data.join(format!("{name}.lobj"))).unwrap();
        if ["CAN_MESSAGE", "CAN_MESSAGE2", "CAN_FD_MESSAGE"].contains(&name) {
            // Of their example values, the direction is a request to send; here the frames were received.
            assert_eq!(object[34], 0x22);
            object[34] = 0x20;
        }
        object
    };
    let frames = [
        "CAN_MESSAGE",
        "CAN_MESSAGE2",
        "CAN_FD_MESSAGE",
        "CAN_FD_MESSAGE_64",
        "CAN_ERROR",
        "CAN_ERROR_EXT",
        "CAN_FD_ERROR_64",
    ];
    let marker = object("GLOBAL_MARKER");
    assert_eq!(marker.len(), 81);
    let objects: Vec<u8> = frames.iter().flat_map(|name| [object(name), marker.clone()].concat()).collect();
    let mut head = vec![0; 144];
    head[..4].copy_from_slice(b"LOGG");
    head[4] = 144;
    let mut container =
        [&b"LOBJ\x10\0\x01\0"[..], &(32 + objects.len() as u32).to_le_bytes(), &[10, 0, 0, 0]].concat();
    container.extend([0; 8]);
    container.extend((objects.len() as u32).to_le_bytes());
    container.extend([0; 4]);
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("objects.blf");
    fs::write(&file, [head, container, objects].concat()).unwrap();

    let (code, log, said) = converted_with_code(&file, &place.path().join("objects.log"));
    // Three of the frames have example values that contradict each other.
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("skipped: 7 other objects") && said.contains("doubtful: "), "{said}");
    let line = |frame: &Seen| match frame {
        Seen { kind: 'e', stamp_ns, bus, .. } => {
            format!("{stamp_ns} {} error", bus.parse::<u32>().unwrap() + 1)
        }
        Seen { stamp_ns, bus, id, data, direction, .. } => {
            format!("{stamp_ns} {} {id:X} {data} {direction}", bus.parse::<u32>().unwrap() + 1)
        }
    };
    let mut frames: Vec<String> = lines_by_channel(&log).iter().map(line).collect();
    let mut theirs = read("vector", &file);
    assert_eq!(theirs.len(), 7);
    // All have the same stamps but one.
    frames.sort();
    theirs.sort();
    assert_same("vblf", &frames, &theirs);
}
