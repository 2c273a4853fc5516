//@ machine: host
//! Terminals that are narrow, dumb or absent, no locale, a full disk, and a file that grows while it is read: each command
//! answers, and none hangs.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

/// No command here takes longer, or it hangs.
const LIMIT: &str = "120";

/// A message for one of the identifiers of [`log`].
const DBC: &str = "VERSION \"\"\nNS_ :\nBS_:\nBU_: A\nBO_ 256 M: 4 A\n SG_ S : 0|8@1+ (1,0) [0|255] \"\" A\n";

fn log(path: &Path, frames: u32) {
    let mut file = File::create(path).unwrap();
    for n in 0..frames {
        writeln!(
            file,
            "(17000000{:02}.{:06}) can0 {:03X}#{n:08X}",
            n / 100 % 60,
            n % 100 * 10_000,
            0x100 + n % 7
        )
        .unwrap();
    }
}

/// Runs a line of shell in a folder with drive.log, in which `canter` is the program.
fn shell(folder: &Path, line: &str) -> Output {
    let mut command = Command::new("timeout");
    let path = Path::new(env!("CARGO_BIN_EXE_canter")).parent().unwrap().display().to_string();
    command.args([LIMIT, "bash", "-c", line]).current_dir(folder).stdin(Stdio::null());
    command.env("PATH", format!("{path}:{}", std::env::var("PATH").unwrap()));
    // The terminal alone decides on colours, not who runs the tests.
    for name in ["CI", "CLICOLOR", "CLICOLOR_FORCE", "NO_COLOR"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    assert_ne!(output.status.code(), Some(124), "{line}: hangs");
    output
}

/// What a command prints on a terminal of this kind and width, and its exit code.
#[track_caller]
fn on_terminal(folder: &Path, term: &str, columns: u32, command: &str) -> (String, Option<i32>) {
    let line = format!("stty rows 10 cols {columns}; TERM={term} {command}");
    let output = shell(folder, &format!("script -qec '{line}' /dev/null"));
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    log(&folder.path().join("drive.log"), 2000);
    folder
}

#[test]
fn a_dumb_terminal_gets_lines_without_escape_sequences() {
    let folder = folder();
    for command in [
        "canter dump drive.log -n 3",
        "canter info drive.log",
        "canter doctor",
        "canter methods",
        "canter --help",
    ] {
        let (text, _) = on_terminal(folder.path(), "dumb", 80, command);
        assert!(!text.is_empty() && !text.contains('\u{1b}'), "{command}: {text:?}");
    }
    // Without an interface `top` prints a table too; with one, a table each interval.
    let (text, _) = on_terminal(folder.path(), "dumb", 80, "timeout -s INT 3 canter top; true");
    assert!(!text.is_empty() && !text.contains('\u{1b}'), "{text:?}");
    let (text, code) = on_terminal(folder.path(), "xterm", 80, "canter dump drive.log -n 3");
    assert!(text.contains('\u{1b}') && code == Some(0), "colours on a terminal that has them: {text:?}");
    let (text, _) = on_terminal(folder.path(), "xterm", 80, "env NO_COLOR=1 canter dump drive.log -n 3");
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn forty_columns_show_the_same_numbers() {
    let folder = folder();
    let (narrow, code) = on_terminal(folder.path(), "dumb", 40, "canter info drive.log");
    assert_eq!(code, Some(0), "{narrow}");
    assert!(narrow.contains("2 000 frames"), "{narrow}");
    for command in ["canter --help", "canter capture --help", "canter doctor", "canter methods"] {
        let (text, code) = on_terminal(folder.path(), "dumb", 40, command);
        assert!(matches!(code, Some(0..5)) && !text.is_empty(), "{command}: {code:?}: {text}");
    }
}

#[test]
fn without_a_locale_or_an_environment_the_output_is_the_same() {
    let folder = folder();
    let program = env!("CARGO_BIN_EXE_canter");
    for line in ["info drive.log", "dump drive.log -n 9", "convert drive.log -o - --format asc"] {
        let usual = shell(folder.path(), &format!("LC_ALL=C.UTF-8 '{program}' {line}"));
        let bare = shell(folder.path(), &format!("env -i '{program}' {line}"));
        assert_eq!(bare.status.code(), Some(0), "{bare:?}");
        assert_eq!(bare.stdout, usual.stdout, "{line}");
    }
}

#[test]
fn without_a_terminal_what_needs_one_says_so() {
    let folder = folder();
    let output = shell(folder.path(), "canter lab | cat; exit ${PIPESTATUS[0]}");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("needs a terminal"), "{output:?}");
}

/// A limit on the size of files stands for a disk that is full: write(2) fails in the middle, with another error.
#[test]
fn a_file_that_cannot_grow_is_one_line_and_leaves_no_half_output() {
    let folder = folder();
    log(&folder.path().join("long.log"), 100_000);
    for name in ["out.log", "out.blf", "out.mf4", "out.pcapng", "out.asc", "out.csv", "out.parquet"] {
        let line = format!("trap '' XFSZ; ulimit -f 16; canter convert -q long.log -o {name}");
        let output = shell(folder.path(), &line);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(said.starts_with("canter: ") && said.lines().count() == 1, "{name}: {said}");
        assert!(said.contains("file too large"), "{name}: {said}");
        // A data set is a folder of folders: none of them is left either.
        let left = shell(folder.path(), &format!("find {name} 2> /dev/null"));
        assert!(left.stdout.is_empty(), "half an output is left: {left:?}");
    }
    let line = "trap '' XFSZ; ulimit -f 0; canter decode drive.log --dbc any.dbc -q -o signals.parquet";
    fs::write(folder.path().join("any.dbc"), DBC).unwrap();
    let output = shell(folder.path(), line);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("file too large"), "{said}");
    assert!(!folder.path().join("signals.parquet").exists(), "{said}");
}

#[test]
fn a_file_that_grows_while_it_is_read_is_answered() {
    let folder = folder();
    let path = folder.path().join("drive.log");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = OpenOptions::new().append(true).open(&path).unwrap();
            while !done.load(Ordering::Relaxed) {
                let lines = "(1700000099.000000) can0 123#11\n".repeat(100);
                file.write_all(lines.as_bytes()).unwrap();
                thread::sleep(Duration::from_millis(1)); // a writer slower than the readers
            }
        });
        for command in ["info drive.log", "dump drive.log -n 5000", "convert -q drive.log -o - --format log"]
        {
            let output =
                shell(folder.path(), &format!("canter {command} | tail -n 1; exit ${{PIPESTATUS[0]}}"));
            let code = output.status.code();
            // 3: the last line was not whole when it was read.
            assert!(code == Some(0) || code == Some(3), "{command}: {output:?}");
            assert!(!output.stdout.is_empty(), "{command}");
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(fs::metadata(&path).unwrap().len() > 100_000);
}
