//! `make lint`: what the doc comments and the documents of the repository must be.

use crate::{comments, documents, keys::output};
use std::fs;

/// Prints what is wrong with doc comments and with documents; false when anything is.
pub fn check() -> Result<bool, String> {
    let comments = list("*.rs", "doc comments that do not stand alone", comments::leaning)?;
    let documents = list("*.md", "lines of documents that are too long", documents::too_long)?;
    Ok(comments + documents == 0)
}

/// Prints the findings in files with their lines, and how many there are.
fn list(files: &str, what: &str, findings: fn(&str) -> Vec<(usize, &str)>) -> Result<usize, String> {
    let files = output("git", &["ls-files", files]).ok_or("git ls-files: failed (run this in a clone)")?;
    let mut count = 0;
    for file in files.lines() {
        let text = fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
        for (line, found) in findings(&text) {
            println!("{file}:{line}: {found}");
            count += 1;
        }
    }
    println!("{count} {what}");
    Ok(count)
}
