//@ machine: host
//! docs/papers.md is what `canter study verdicts --page` prints of the kept results, and the verdicts are the kept ones.

use std::{fs, path::Path, process::Command};

/// The kept results that the page shows.
const RESULTS: &str = "results/2026-11-26-lab-all";
/// The matrix, whose page is its own.
const MATRIX: &str = "results/2026-11-27-matrix";

fn verdicts(arguments: &[&str]) -> std::process::Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_canter"));
    command.current_dir(root).args(["study", "verdicts"]).args(arguments).output().unwrap()
}

#[test]
fn the_page_of_the_papers_is_written_by_the_program() {
    let printed = verdicts(&[RESULTS, MATRIX, "--page"]);
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/papers.md")).unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let differs = page.lines().zip(printed.lines()).find(|(kept, now)| kept != now);
    assert!(
        page == printed,
        "docs/papers.md is not what `canter study verdicts {RESULTS} {MATRIX} --page` prints; first difference: {differs:#?}"
    );
}

#[test]
fn the_kept_verdicts_are_those_of_the_kept_results() {
    let checked = verdicts(&[RESULTS, MATRIX, "--quiet"]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn a_verdict_that_differs_from_the_kept_one_is_named_and_exits_1() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(RESULTS);
    let folder = tempfile::tempdir().unwrap();
    fs::copy(root.join("2011-fig13.json"), folder.path().join("2011-fig13.json")).unwrap();
    let folder = folder.path().to_str().unwrap();
    assert!(verdicts(&[folder, "--keep", "--quiet"]).status.success());
    assert!(verdicts(&[folder]).status.success(), "as kept");
    let path = Path::new(folder).join("verdicts.json");
    let kept = fs::read_to_string(&path).unwrap();
    let at = kept.find("\"claim\": \"user-space\"").unwrap();
    let changed = format!("{}{}", &kept[..at], kept[at..].replacen("\"holds\"", "\"open\"", 1));
    assert_ne!(changed, kept);
    fs::write(&path, changed).unwrap();
    let now = verdicts(&[folder]);
    assert_eq!(now.status.code(), Some(1));
    let stderr = String::from_utf8(now.stderr).unwrap();
    assert!(stderr.contains("2011-fig13, user-space: kept open, now holds"), "{stderr}");
    fs::write(&path, "{ \"verdicts_schema\": 2").unwrap();
    let cut = verdicts(&[folder]);
    assert_eq!(cut.status.code(), Some(1));
    assert_eq!(String::from_utf8(cut.stderr).unwrap().lines().count(), 1);
}

#[test]
fn the_readme_has_the_number_of_verdicts_of_each_kind() {
    let printed = String::from_utf8(verdicts(&[RESULTS, MATRIX]).stdout).unwrap();
    let counts = printed.lines().last().unwrap();
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&readme).contains(&format!("{counts}.")), "README.md does not say: {counts}");
}

#[test]
fn json_has_the_five_words() {
    // Every claim is measured in the kept results; by the matrix alone most are not.
    let words_in = |results: &[&str]| -> Vec<String> {
        let printed = verdicts(&[results, &["--json", "-"]].concat());
        let document: serde_json::Value = serde_json::from_slice(&printed.stdout).unwrap();
        let claims = document["claims"].as_array().unwrap();
        claims.iter().map(|claim| claim["verdict"].as_str().unwrap().to_owned()).collect()
    };
    let found = [words_in(&[RESULTS, MATRIX]), words_in(&[MATRIX])].concat();
    let words = ["holds", "no longer so", "not by this instrument", "open", "not measured yet"];
    assert!(found.iter().all(|word| words.contains(&word.as_str())));
    assert!(words.iter().all(|word| found.iter().any(|one| one == word)), "each occurs");
}

/// `study, claim` and the class of its verdict, of each claim that a page has.
fn claims_of_page(page: &str) -> Vec<(String, String)> {
    let items = page.split("<li class=\"claim ").skip(1);
    let claims = items.map(|item| {
        let (class, rest) = item.split_once("\" id=\"claim-").unwrap();
        let (name, _) = rest.split_once('"').unwrap();
        (name.to_owned(), class.to_owned())
    });
    claims.collect()
}

/// `study, claim` and the class of its verdict, of each claim that the program judges now.
fn claims_now() -> Vec<(String, String)> {
    let printed = verdicts(&[RESULTS, MATRIX, "--json", "-"]);
    let document: serde_json::Value = serde_json::from_slice(&printed.stdout).unwrap();
    let text = |claim: &serde_json::Value, key: &str| claim[key].as_str().unwrap().to_owned();
    let claim = |claim: &serde_json::Value| {
        let word = text(claim, "verdict");
        let class = ["holds", "no-longer", "not-by-instrument", "open", "not-measured"]
            .into_iter()
            .find(|class| word.replace("this ", "").replace(' ', "-").starts_with(class));
        let class = class.unwrap_or_else(|| panic!("{word}")).to_owned();
        (format!("{}-{}", text(claim, "study"), text(claim, "claim")), class)
    };
    document["claims"].as_array().unwrap().iter().map(claim).collect()
}

#[test]
fn every_claim_stands_once_on_the_report_s_page_with_the_same_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let mut command = Command::new(env!("CARGO_BIN_EXE_canter"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let made =
        command.current_dir(&root).args(["report", RESULTS, "--quiet", "-o"]).arg(&page).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let kept = root.join(RESULTS).join("report.html");
    let mut expected = claims_now();
    expected.sort();
    for path in [page, kept] {
        let page = fs::read_to_string(&path).unwrap();
        let mut shown = claims_of_page(&page);
        shown.sort();
        let update = format!(
            "canter study verdicts {RESULTS} {MATRIX} --keep; canter report {RESULTS} -o {RESULTS}/report.html"
        );
        assert_eq!(shown, expected, "{}: made by: {update}", path.display());
        assert!(page.len() < 600_000, "{}: {} bytes", path.display(), page.len());
        assert!(
            !page.contains("These verdicts rest on other results"),
            "{}: made by: {update}",
            path.display()
        );
    }
}
