//! Results become one page and a terminal summary. Reads only result files.

mod axis;
mod bars;
mod costs;
mod figure;
mod page;
mod profiles;
mod ranking;
mod summary;
mod svg;
pub mod unit;
mod verdict;

use crate::failure::{self, Exit, Failure};
use crate::{measure::result::ResultFile, options::Common, trouble};
use clap::Args;
use std::{fs, path::Path, path::PathBuf};

/// Make one self-contained page of result files
#[derive(Args)]
pub struct Arguments {
    /// Result files, or folders of them
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// Where the page goes
    #[arg(long, short, default_value = "report.html")]
    output: PathBuf,
}

/// One result as a table for the terminal, at most 100 columns wide, ranked, with the paper's figures beside ours.
pub fn summary(result: &ResultFile) -> String {
    summary::of(result)
}

/// The page that shows all of them.
pub fn page(results: &[ResultFile]) -> failure::Result<String> {
    page::render(results).map_err(|error| Failure::failed(format!("report: make the page: {error:#}")))
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    let mut found = Found::default();
    for path in &arguments.results {
        found.add(path);
    }
    let Found { results, mut refused, skipped } = found;
    for why in &skipped {
        eprintln!("canter: {why}: skipped");
    }
    if results.is_empty() {
        let why = if refused.is_empty() { None } else { Some(refused.swap_remove(0)) };
        let nothing = "report: no result file there (canter latency --json FILE writes one)";
        return Err(Failure::failed(why.unwrap_or_else(|| nothing.into())));
    }
    let output = &arguments.output;
    fs::write(output, page(&results)?).map_err(|error| trouble::of_file(output, "write the page", error))?;
    if !common.quiet {
        for result in &results {
            println!("{}", summary(result));
        }
        println!("{}", output.display());
    }
    for why in &refused {
        eprintln!("canter: {why}");
    }
    Ok(if refused.is_empty() { Exit::Done } else { Exit::Failed })
}

/// What the arguments led to.
#[derive(Default)]
struct Found {
    results: Vec<ResultFile>,
    /// Files that were named and cannot be read: the page is made of the others, the exit code tells.
    refused: Vec<String>,
    /// Files of a folder that are something else.
    skipped: Vec<String>,
}

impl Found {
    fn add(&mut self, path: &Path) {
        if path.is_dir() {
            return self.add_folder(path);
        }
        match ResultFile::load(path) {
            Ok(result) => self.results.push(result),
            Err(failure) => self.refused.push(failure.message),
        }
    }

    /// Its `*.json` and those of its folders, by name; links to folders are not followed.
    fn add_folder(&mut self, folder: &Path) {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return self.skipped.push(format!("{}: {error}", folder.display())),
        };
        let mut entries: Vec<_> = entries.flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.add_folder(&path);
            } else if path.extension().is_some_and(|extension| extension == "json") {
                match ResultFile::load(&path) {
                    Ok(result) => self.results.push(result),
                    Err(failure) => self.skipped.push(failure.message),
                }
            }
        }
    }
}
