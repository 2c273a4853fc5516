//! `canter report` from outside: small result files in `tests/golden` become drawings and tables that are
//! compared with those kept there. `UPDATE=1 cargo test --test report` writes them anew; look at the difference.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

const RESULTS: [&str; 5] = ["fig4.1", "fig4.2", "hostile", "one-frame", "empty"];

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn canter(arguments: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_canter")).arg("report").args(arguments).output().expect("canter starts")
}

/// The page of one golden result, and what the terminal showed above the page's path.
fn report(name: &str) -> (String, String) {
    let folder = tempfile::tempdir().expect("a folder for the page");
    let page = folder.path().join("page.html");
    let output = canter(&[&golden(&format!("{name}.json")), Path::new("-o"), &page]);
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let terminal = String::from_utf8(output.stdout).expect("UTF-8");
    let (summary, path) = terminal.trim_end().rsplit_once('\n').expect("a summary and a path");
    assert_eq!(Path::new(path), page);
    let page = fs::read_to_string(page).expect("the page is there");
    (page.replace("&#x2f;", "/"), summary.to_owned()) // the templates escape slashes too
}

fn drawings(page: &str) -> String {
    let parts = page.split("<svg role").skip(1);
    parts
        .map(|part| format!("<svg role{}</svg>\n", part.split("</svg>").next().unwrap_or_default()))
        .collect()
}

fn compare(name: &str, now: &str) {
    let path = golden(name);
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, now).expect("the golden file can be written");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let first = kept.lines().zip(now.lines()).find(|(kept, now)| kept != now);
    assert!(kept == now, "{}: not what was kept; first difference: {first:#?}", path.display());
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
    assert!(page.contains(r#"<section id="result-1" class="invalid">"#));
    assert!(page.contains(r#"<tr class="unbalanced">"#) && page.contains("1 missing"));
    assert!(summary.contains("Invalid: the ledger of read/spin+write does not balance"), "{summary}");
    assert!(!report("fig4.2").0.contains(r#"class="invalid""#));
}

#[test]
fn names_cannot_leave_their_place() {
    let (page, summary) = report("hostile");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;"), "the name is shown");
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("<b>names"));
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
