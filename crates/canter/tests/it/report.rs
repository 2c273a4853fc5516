//@ machine: host
//! `canter report` from outside: small result files in `tests/golden` become drawings and tables that are
//! compared with those kept there. `UPDATE=1 cargo test -p canter --test it report::` rewrites them; inspect the difference.

mod claims;

use crate::synthetic;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

const RESULTS: [&str; 6] = ["fig4.1", "fig4.2", "hostile", "one-frame", "empty", "all-kinds"];

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn canter(arguments: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_canter")).arg("report").args(arguments).output().expect("canter starts")
}

/// The page of one golden result, and what the terminal showed.
fn report(name: &str) -> (String, String) {
    let folder = tempfile::tempdir().expect("a folder for the page");
    let page = folder.path().join("page.html");
    let output = canter(&[&golden(&format!("{name}.json")), Path::new("-o"), &page]);
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let summary = String::from_utf8(output.stdout).expect("UTF-8");
    let page = fs::read_to_string(page).expect("the page is there");
    (page, summary)
}

fn drawings(page: &str) -> String {
    let parts = page.split("<svg role").skip(1);
    parts
        .map(|part| format!("<svg role{}</svg>\n", part.split("</svg>").next().unwrap_or_default()))
        .collect()
}

fn compare(name: &str, now: &str) {
    let path = golden(name);
    let mut kept = fs::read_to_string(&path).unwrap_or_default();
    // Only what differs, because other tests read the files at the same time.
    if env::var_os("UPDATE").is_some() && kept != now {
        fs::write(&path, now).expect("the golden file can be written");
        kept = now.to_owned();
    }
    let first = kept.lines().zip(now.lines()).find(|(kept, now)| kept != now);
    assert!(kept == now, "{}: not what was kept; first difference: {first:#?}", path.display());
}

/// The golden result has one drawing of every kind. `UPDATE=1` writes it again, with the other golden files.
#[test]
fn the_result_of_all_kinds_is_the_generator_s() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut all: Vec<serde_json::Value> = Vec::new();
    for name in synthetic::showcase(folder.path()) {
        let text = fs::read_to_string(folder.path().join(format!("{name}.json"))).expect("a file");
        all.push(serde_json::from_str(&text).expect("JSON"));
    }
    let mut first = all.remove(0);
    // A few of each: the kept files are to be read.
    let series = first["series"].as_array_mut().expect("series");
    series.truncate(16);
    for file in all {
        series.extend(file["series"].as_array().expect("series").iter().take(6).cloned());
    }
    first["study"] = "all-kinds".into();
    compare("all-kinds.json", &(first.to_string() + "\n"));
}

#[test]
fn drawings_are_those_that_were_kept() {
    for name in RESULTS.into_iter().filter(|&name| name != "empty") {
        compare(&format!("{name}.svg"), &drawings(&report(name).0));
    }
}

#[test]
fn summaries_are_those_that_were_kept() {
    for name in RESULTS {
        compare(&format!("{name}.txt"), &report(name).1);
    }
}

#[test]
fn a_page_needs_nothing_but_itself() {
    for name in RESULTS {
        let (page, _) = report(name);
        for outside in ["http:", "https:", "url(", "@import", "<link", "<script", "<img", "<iframe"] {
            assert!(!page.contains(outside), "{name}: {outside}");
        }
        assert!(page.starts_with("<!doctype html>"), "{name}: {}", &page[..40]);
    }
}

#[test]
fn a_ledger_that_does_not_balance_is_marked_and_others_are_not() {
    let (page, summary) = report("hostile");
    assert!(page.contains(r#"<section id="r1" class=invalid>"#));
    assert!(page.contains(r#" unbalanced">"#) && page.contains("frames: 1 missing"));
    let summary = summary.replace('\n', " ");
    assert!(
        summary.contains("Invalid, not drawn: read/spin+write: its ledger does not balance"),
        "{summary}"
    );
    let drawn = drawings(&page);
    assert!(!drawn.contains(">read/spin+write<"), "an invalid series is not drawn");
    assert!(!report("fig4.2").0.contains("class=invalid"));
}

#[test]
fn names_cannot_leave_their_place() {
    let (page, summary) = report("hostile");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;"), "the name is shown");
    assert!(!page.contains("<script>alert") && !page.contains("<img") && !page.contains("<b>names"));
    assert!(!page.contains('\u{1b}') && !summary.contains('\u{1b}'));
}

#[test]
fn what_could_not_be_measured_is_listed_with_the_reason() {
    let (page, summary) = report("fig4.2");
    for text in [&page, &summary] {
        assert!(text.contains("canchar/chip-poll+canchar") && text.contains("no such device"));
    }
}

#[test]
fn a_folder_gives_its_results_and_names_what_it_skips() {
    let folder = tempfile::tempdir().expect("a folder");
    let (deep, page) = (folder.path().join("a/b"), folder.path().join("page.html"));
    fs::create_dir_all(&deep).expect("folders");
    fs::copy(golden("fig4.2.json"), deep.join("1.json")).expect("a copy");
    fs::write(folder.path().join("other.json"), "{}").expect("a file");
    fs::write(folder.path().join("notes.txt"), "hello").expect("a file");
    let output = canter(&[folder.path(), Path::new("-o"), &page, Path::new("--quiet")]);
    assert_eq!((output.status.code(), output.stdout), (Some(0), Vec::new()));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.lines().count() == 1 && stderr.contains("other.json: not a result file"), "{stderr}");
}

#[test]
fn nothing_usable_is_one_line_and_exit_code_1() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.html");
    for nothing in [folder.path(), &golden("no-such.json"), &golden("fig4.2.txt")] {
        let output = canter(&[nothing, Path::new("-o"), &page]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), stderr.lines().count()), (Some(1), 1), "{stderr}");
        assert!(!page.exists());
    }
}

#[test]
fn a_named_file_that_cannot_be_read_fails_the_report_but_not_the_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.html");
    let output = canter(&[&golden("fig4.2.json"), &golden("fig4.2.txt"), Path::new("-o"), &page]);
    assert_eq!(output.status.code(), Some(1));
    assert!(page.exists() && String::from_utf8_lossy(&output.stderr).contains("fig4.2.txt"));
}

#[test]
fn bad_input_is_one_line_that_says_what_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = fs::read_to_string(golden("fig4.2.json")).expect("a golden result");
    let half = whole[..whole.len() / 2].to_owned();
    let cases = [
        ("", "is empty"),
        (half.as_str(), "is cut off"),
        ("<!doctype html><p>hello", "not a result file"),
        ("{\"some\": \"json\"}", "not a result file"),
        (
            &whole.replace("\"schema\": 1", "\"schema\": 2"),
            "schema 2, this canter reads 1 (use a newer canter)",
        ),
        (&whole.replacen("\"count\": ", "\"count\": NaN, \"x\": ", 1), "not a result file"),
        (&whole.replacen("\"count\": ", "\"count\": -", 1), "damaged"),
    ];
    for (text, says) in cases {
        let path = folder.path().join("bad.json");
        fs::write(&path, text).expect("a file");
        let other = golden("fig4.2.json");
        let compared = vec![Path::new("--compare"), &path, &other];
        for (arguments, code) in [(vec![path.as_path()], 1), (compared, 2)] {
            let output = canter(&arguments);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!((output.status.code(), stderr.lines().count()), (Some(code), 1), "{stderr}");
            assert!(
                stderr.contains(says) && stderr.contains("bad.json") && output.stdout.is_empty(),
                "{stderr}"
            );
        }
    }
}

#[test]
fn without_a_page_it_prints_and_in_80_columns() {
    for name in RESULTS {
        let output = canter(&[&golden(&format!("{name}.json"))]);
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(output.status.success() && !text.is_empty() && output.stderr.is_empty());
        assert!(!text.contains('\u{1b}'), "no colour where no terminal is");
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{name}: {line}");
        }
    }
}

/// A folder with repeated runs of one method: the latencies of each run's `n` frames are near one value, in ns.
fn runs(medians: &[f64], change: impl Fn(&mut serde_json::Value)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut random = synthetic::Random(0x2545_f491_4f6c_dd1d);
    for (n, &ns) in medians.iter().enumerate() {
        let latencies = (0..1000).map(|_| random.latency(ns)).collect();
        let condition = synthetic::condition("one-at-a-time", "none");
        let mut file = synthetic::file(
            "x",
            "x",
            "6.12.1-amd64",
            vec![synthetic::series("can-gw", condition, latencies, 0)],
        );
        change(&mut file);
        fs::write(folder.path().join(format!("{n}.json")), file.to_string()).expect("a run");
    }
    folder
}

fn compare_runs(a: &Path, b: &Path, more: &[&str]) -> (Option<i32>, String) {
    let more = more.iter().map(Path::new);
    let arguments: Vec<&Path> = [Path::new("--compare"), a, b].into_iter().chain(more).collect();
    let output = canter(&arguments);
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).expect("UTF-8");
    (output.status.code(), text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn a_comparison_ends_as_git_bisect_wants_it() {
    let before = runs(&[12_000.0; 5], |_| {});
    let slower = runs(&[13_500.0; 5], |_| {});
    let (code, text) = compare_runs(before.path(), slower.path(), &[]);
    assert!(
        code == Some(1) && text.contains("1 of 1 series is worse by more than 5 %: can-gw (p50 1.12"),
        "{text}"
    );
    assert!(text.contains("ranks of the repeats"), "{text}");
    let (code, text) = compare_runs(before.path(), slower.path(), &["--bound", "20%"]);
    assert!(code == Some(0) && text.contains("Nothing is worse by more than 20 %"), "{text}");
    let (code, text) = compare_runs(slower.path(), before.path(), &[]);
    assert!(code == Some(0) && text.contains("1 better"), "{text}");
    let (code, _) = compare_runs(before.path(), before.path(), &[]);
    assert_eq!(code, Some(0));
}

#[test]
fn a_gateway_that_loses_all_is_worse_and_what_cannot_be_decided_or_read_is_neither_good_nor_bad() {
    let before = runs(&[12_000.0], |_| {});
    let silent = runs(&[12_000.0], |file| {
        let series = &mut file["series"][0];
        let sent = series["ledger"]["sent"].clone();
        series["ledger"]["received"] = 0.into();
        series["ledger"]["lost"]["gateway"] = sent;
        for field in ["count", "min", "p50", "p90", "p99", "p999", "max"] {
            series["latency_ns"][field] = 0.into();
        }
        series["latency_ns"]["buckets"] = serde_json::json!([]);
    });
    let (code, text) = compare_runs(before.path(), silent.path(), &[]);
    assert!(code == Some(1) && text.contains("lost"), "{code:?} {text}");
    let (code, text) = compare_runs(before.path(), runs(&[12_600.0], |_| {}).path(), &[]);
    assert!(code == Some(5) && text.contains("1 undecided"), "{code:?} {text}");
    let broken = runs(&[12_000.0], |_| {});
    fs::write(broken.path().join("cut.json"), "{ \"schema\": 1, \"series\": [").expect("it writes");
    let (code, text) = compare_runs(before.path(), broken.path(), &[]);
    assert!(code == Some(2) && text.contains("cut.json: is cut off"), "{code:?} {text}");
    let (code, _) = compare_runs(before.path(), &before.path().join("no-such-folder"), &[]);
    assert_eq!(code, Some(2));
}

#[test]
fn runs_that_cannot_be_compared_are_refused_and_nothing_is_drawn() {
    let here = runs(&[12_000.0], |_| {});
    let page = here.path().join("page.html");
    let cases: [(&str, &str, &str); 4] = [
        ("clock", "real", "clock: virtual and real"),
        ("kernel", "6.13.0-amd64 #1", "--across kernel"),
        ("processors", "4", "--across machine"),
        ("cmdline", "canter.clock=virtual canter.shift=2", "canter.shift"),
    ];
    for (field, value, says) in cases {
        let other = runs(&[12_000.0], |file| {
            let number = value.parse::<u64>().map(serde_json::Value::from);
            file["environment"][field] = number.unwrap_or_else(|_| value.into());
        });
        let (code, text) = compare_runs(here.path(), other.path(), &["-o", &page.to_string_lossy()]);
        assert!(code == Some(2) && text.contains("not comparable") && text.contains(says), "{text}");
        assert!(!page.exists());
    }
    let other = runs(&[12_000.0], |file| file["environment"]["kernel"] = "6.13.0-amd64 #1".into());
    assert_eq!(compare_runs(here.path(), other.path(), &["--across", "kernel"]).0, Some(0));
    let elsewhere = runs(&[12_000.0], |file| file["series"][0]["method"] = "ring+ring".into());
    let (code, text) = compare_runs(here.path(), elsewhere.path(), &[]);
    assert!(code == Some(2) && text.contains("no series is in both"), "{text}");
}

#[test]
fn a_series_of_one_run_only_is_told_and_a_broken_one_is_not_compared() {
    let a = runs(&[12_000.0], |_| {});
    let b = runs(&[12_000.0], |file| {
        let mut more = file["series"][0].clone();
        more["method"] = "ring+ring".into();
        file["series"].as_array_mut().expect("series").push(more);
    });
    let (code, text) = compare_runs(a.path(), b.path(), &[]);
    assert!(
        code == Some(0) && text.contains("ring+ring: only in B") && text.contains("1 only in B"),
        "{text}"
    );
    let (code, text) = compare_runs(b.path(), a.path(), &[]);
    assert!(code == Some(5) && text.contains("ring+ring: only in A"), "{text}");
    let broken = runs(&[12_000.0], |file| file["series"][0]["ledger"]["received"] = 7.into());
    let (code, text) = compare_runs(a.path(), broken.path(), &[]);
    assert!(code == Some(2) && text.contains("invalid") && text.contains("does not balance"), "{text}");
    let page = a.path().join("page.html");
    compare_runs(a.path(), b.path(), &["-o", &page.to_string_lossy()]);
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.contains("B compared with A") && page.contains("only in B"));
}

#[test]
fn environments_that_differ_are_marked() {
    let folder = runs(&[12_000.0, 12_000.0], |_| {});
    let page = folder.path().join("page.html");
    let page_with = |change: &dyn Fn(&mut serde_json::Value)| {
        let other = runs(&[12_000.0], change);
        canter(&[folder.path(), other.path(), Path::new("-o"), &page, Path::new("--quiet")]);
        fs::read_to_string(&page).expect("a page")
    };
    assert!(!page_with(&|_| {}).contains("<mark>"));
    let other_flavour = page_with(&|file| file["environment"]["kernel"] = "6.1.5-rt-amd64 #1".into());
    assert!(other_flavour.contains("<mark>differ</mark> in: Kernel."));
    assert_eq!(
        other_flavour.matches("<dd>6.1.5-rt-amd64 #1").count(),
        1,
        "once, as headings have the flavour"
    );
    let other_build = page_with(&|file| file["environment"]["kernel"] = "6.12.2-amd64 #1".into());
    assert!(other_build.contains("<mark>6.12.2-amd64 #1</mark>"), "headings do not tell it");
    let other_words = page_with(&|file| file["environment"]["cmdline"] = "canter.shift=3 nohz=off".into());
    assert!(other_words.contains("<mark>canter.shift=3 nohz=off</mark>"), "only what others do not have");
    let fewer_words = page_with(&|file| file["environment"]["cmdline"] = "quiet".into());
    assert!(fewer_words.contains("<mark>quiet, without canter.shift=0</mark>"), "and what it lacks");
}

#[test]
fn a_matrix_of_653_series_makes_a_page_below_2_mb() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = env::var_os("KEEP").map(PathBuf::from); // to look at it
    let page = kept.clone().unwrap_or(folder.path().into()).join("matrix.html");
    synthetic::matrix(folder.path(), 600);
    let output = canter(&[folder.path(), Path::new("-o"), &page, Path::new("--quiet")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = fs::read_to_string(page).expect("the page is there");
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert_eq!(page.matches("\" id=s").count(), synthetic::MATRIX);
    if let Some(kept) = kept {
        synthetic::matrix(&kept, 600);
        fs::create_dir_all(kept.join("showcase")).expect("a folder");
        synthetic::showcase(&kept.join("showcase"));
    }
}
