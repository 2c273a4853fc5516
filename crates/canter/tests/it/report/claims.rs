//! The page of results that have verdicts beside them: counts, and a plot for each claim.

use super::{canter, compare, synthetic};
use std::{fs, path::Path, process::Output};

/// The page of a folder, and what was printed beside it.
fn page_of(folder: &Path) -> (String, Output) {
    let page = folder.join("page.html");
    let output = canter(&[folder, Path::new("-o"), &page, Path::new("--quiet")]);
    (fs::read_to_string(&page).unwrap_or_default(), output)
}

fn made() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    synthetic::claims::write(folder.path());
    folder
}

/// A part of the page, from one text up to another.
fn between<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    let (_, rest) = page.split_once(from).unwrap_or_else(|| panic!("the page has {from}"));
    rest.split_once(to).unwrap_or_else(|| panic!("{to} follows {from}")).0
}

#[test]
fn the_claims_are_those_that_were_kept() {
    let (page, output) = page_of(made().path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    compare("claims.html", between(&page, "<section class=claims id=\"claims\">", "</section>"));
}

#[test]
fn the_page_begins_with_the_counts_of_verdicts_which_lead_to_the_claims() {
    let (page, _) = page_of(made().path());
    let header = between(&page, "<header>", "</header>");
    for (class, count) in
        [("holds", 6), ("no-longer", 1), ("not-by-instrument", 1), ("open", 4), ("not-measured", 1)]
    {
        let link = format!("<a class=\"{class}\" href=\"#{class}\"><strong>{count}</strong>");
        assert!(header.contains(&link), "{link}: {header}");
        assert_eq!(page.matches(&format!("<li class=\"claim {class}\"")).count(), count);
        assert_eq!(page.matches(&format!("id=\"{class}\"")).count(), 1, "the link has one target");
    }
    assert!(!header.contains("class=verdicts"));
}

#[test]
fn names_of_claims_and_gateways_cannot_leave_their_place() {
    let (page, _) = page_of(made().path());
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "the sentence is shown");
    for escaped in ["<script>alert", "<img", "<b>", "</text><script>", "\u{1b}"] {
        assert!(!page.contains(escaped), "{escaped}");
    }
}

#[test]
fn verdicts_of_other_results_are_marked() {
    let folder = made();
    let (page, _) = page_of(folder.path());
    assert!(!page.contains("rest on other results"));
    let path = folder.path().join("1.json");
    let later = fs::read_to_string(&path).expect("a result").replace("2026-11-21T21", "2026-11-21T22");
    fs::write(&path, later).expect("it writes");
    assert!(page_of(folder.path()).0.contains("These verdicts rest on other results"));
}

#[test]
fn without_verdicts_the_page_has_no_claims() {
    let folder = made();
    fs::remove_file(folder.path().join("verdicts.json")).expect("it was there");
    let (page, output) = page_of(folder.path());
    assert!(output.status.success());
    for part in ["<section class=claims", "class=counts"] {
        assert!(!page.contains(part), "{part}");
    }
    assert!(between(&page, "<header>", "</header>").contains("class=verdicts"));
}

#[test]
fn verdicts_that_cannot_be_read_fail_the_report_but_not_the_page() {
    let folder = made();
    let whole = fs::read_to_string(folder.path().join("verdicts.json")).expect("verdicts");
    for (text, says) in [
        (whole[..whole.len() / 2].to_owned(), "not kept verdicts"),
        (whole.replace("\"verdicts_schema\":2", "\"verdicts_schema\":1"), "verdicts of schema 1"),
    ] {
        fs::write(folder.path().join("verdicts.json"), text).expect("it writes");
        let (page, output) = page_of(folder.path());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), stderr.lines().count()), (Some(1), 1), "{stderr}");
        assert!(stderr.contains("verdicts.json") && stderr.contains(says), "{stderr}");
        assert!(page.contains("class=verdicts") && !page.contains("<section class=claims"));
    }
}

#[test]
fn the_verdicts_of_a_second_folder_are_named_and_not_drawn() {
    let (one, two) = (made(), made());
    let page = one.path().join("page.html");
    let output = canter(&[one.path(), two.path(), Path::new("-o"), &page, Path::new("--quiet")]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.contains(&*two.path().join("verdicts.json").to_string_lossy()), "{stderr}");
    let page = fs::read_to_string(page).expect("a page");
    assert_eq!(page.matches("<li class=\"claim").count(), 13);
    assert!(page.contains("These verdicts rest on other results"));
}
