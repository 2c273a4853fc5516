//! Results become one page, a terminal summary, or a comparison. Reads only result files, and the verdicts beside them.

mod bars;
mod claims;
mod compare;
mod costs;
mod curves;
mod differing;
mod drawing;
mod family;
mod files;
mod functions;
mod heat;
mod history;
mod latency;
mod numbers;
mod page;
mod profiles;
mod ranking;
mod stages;
mod strips;
mod summary;
mod sweep;
mod table;
mod timechart;
mod varied;
mod verdict;
mod views;
mod ways;

use crate::analyzer::profile::Profile;
use canter_cli::failure::{self, Exit, Failure};
use canter_cli::{options::Common, terminal::Ink, trouble};
use canter_measure::{
    result::ResultFile,
    verdicts::{self, Verdicts, Word},
};
use clap::Args;
use compare::{Across, Bound, Comparison};
pub(crate) use files::FoundResults;
use history::History;
use numbers::Numbers;
use page::Beginning;
use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Show results: in the terminal, as one self-contained page, or one run against another
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter report results/mine                        verdict, tables and profiles in the terminal
  canter report results/mine -o page.html           one self-contained page
  canter report --compare before.json after.json    exit code 1 when something got worse
  canter report --compare before/ after/ --bound 2% -o page.html
  canter report --compare 6.1/ 6.12/ --across kernel
  canter report --history results/kernels -o page.html   the cost of a frame, kernel by kernel
  canter report --functions 6.1.json 6.12.json      which functions became dearer (canter lab --profile)
  git bisect run sh -c 'cargo build --release || exit 125; rm -rf after; \\
    target/release/canter study run 2014-fig4.2 --quiet --out after; case $? in 0|3) ;; *) exit 125 ;; esac; \\
    canter report --compare before after; case $? in 0) ;; 1) exit 1 ;; *) exit 125 ;; esac'
Exit code 0; with --compare 1 when something got worse, 2 when the runs cannot be compared or a file cannot be read, 5 when\ntoo few measurements decide: measure more frames, or repeat.")]
pub struct Arguments {
    /// Result files, or folders of them
    #[arg(required_unless_present_any = ["compare", "functions"])]
    results: Vec<PathBuf>,
    /// Write an HTML page
    #[arg(long, short, value_name = "PAGE")]
    output: Option<PathBuf>,
    /// Decide whether B is worse than A, each a result file or a folder; files of the same series are repeats
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with = "results", group = "kernels")]
    compare: Option<Vec<PathBuf>>,
    /// Show which functions execute more in B than in A, two files of `canter lab --profile --json`
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = ["results", "compare", "output"])]
    functions: Option<Vec<PathBuf>>,
    /// Show what a frame costs on each kernel of the results, and mark the steps
    #[arg(long, group = "kernels")]
    history: bool,
    /// How much longer a percentile of B may be; with --history, the change that is a step
    #[arg(long, default_value = "5%", value_name = "SHARE", requires = "kernels")]
    bound: Bound,
    /// Condition that may differ between A and B because the comparison is about it
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT", requires = "compare")]
    across: Vec<Across>,
}

/// One result for the terminal, 80 columns wide, ranked, with the paper's numbers beside ours; in colour when the
/// standard output is a terminal.
pub(crate) fn summary(result: &ResultFile) -> String {
    summary::of(&Numbers::of(result), table::DRAWINGS, Ink::for_stdout())
}

/// A profile for the terminal.
pub(crate) fn profile(profile: &Profile) -> String {
    functions::table(profile, Ink::for_stderr())
}

/// The accounts of the frames' ways in a result; empty without any.
pub(crate) fn stages(result: &ResultFile) -> String {
    stages::text(&result.series, Ink::for_stdout())
}

/// The page of all results, with the verdicts on the papers' claims, if there are any.
pub(crate) fn page(results: &[ResultFile], verdicts: &Verdicts) -> failure::Result<String> {
    let decided = verdicts.claims.iter().any(|claim| claim.verdict != Word::NotMeasured);
    render(results, if decided { Beginning::Claims(verdicts) } else { Beginning::Results })
}

fn render(results: &[ResultFile], beginning: Beginning<'_>) -> failure::Result<String> {
    let failed = |error| Failure::failed(format!("report: make the page: {error:#}"));
    page::render(results, beginning, table::DRAWINGS).map_err(failed)
}

/// Runs `canter report`.
pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    match (&arguments.compare, &arguments.functions) {
        (Some(sides), _) => compare(sides, &arguments, common),
        (None, Some(sides)) => differing_functions(sides),
        (None, None) if arguments.history => history(&arguments, common),
        (None, None) => show(&arguments, common),
    }
}

/// `canter report --history`: whatever cannot be read is named, and the others are shown.
fn history(arguments: &Arguments, common: &Common) -> failure::Result {
    let FoundResults { results, refused, .. } = FoundResults::of(&arguments.results)?;
    let history = History::from_results(&results, arguments.bound)?;
    let about = history::about(&results);
    write_page(&results, Beginning::History(&history), arguments, common)?;
    if !common.quiet {
        print(&history::text(&history, about, Ink::for_stdout()))?;
    }
    for why in &refused {
        eprintln!("canter: {why}");
    }
    Ok(if refused.is_empty() { Exit::Done } else { Exit::Failed })
}

fn show(arguments: &Arguments, common: &Common) -> failure::Result {
    let FoundResults { results, mut refused, with_verdicts, .. } = FoundResults::of(&arguments.results)?;
    let verdicts = arguments.output.as_ref().and_then(|_| verdicts(&with_verdicts, &mut refused));
    let beginning = verdicts.as_ref().map_or(Beginning::Results, Beginning::Claims);
    write_page(&results, beginning, arguments, common)?;
    if !common.quiet {
        let summaries: Vec<String> = results.iter().map(summary).collect();
        print(&summaries.join("\n"))?;
    }
    for why in &refused {
        eprintln!("canter: {why}");
    }
    Ok(if refused.is_empty() { Exit::Done } else { Exit::Failed })
}

/// The verdicts of the first folder that keeps any: a page has each claim once.
fn verdicts(folders: &[PathBuf], refused: &mut Vec<String>) -> Option<Verdicts> {
    let mut first = None;
    for folder in folders {
        match Verdicts::read(folder) {
            Ok(verdicts) if first.is_none() => first = verdicts,
            Ok(_) => refused.push(format!(
                "{}: not drawn: a page shows the verdicts of one folder only",
                folder.join(verdicts::FILE).display()
            )),
            Err(failure) => refused.push(failure.message),
        }
    }
    first
}

fn compare(sides: &[PathBuf], arguments: &Arguments, common: &Common) -> failure::Result {
    let [a, b] = sides else { return Err(Failure::new(Exit::Usage, "report: --compare takes two")) };
    let (a, b) = (side(a)?, side(b)?);
    let comparison = Comparison::of(&a, &b, arguments.bound, &arguments.across)?;
    let mut results = Vec::new();
    for (side, path, of_side) in [("A", &sides[0], a), ("B", &sides[1], b)] {
        results.extend(of_side.into_iter().map(|result| named(result, side, path)));
    }
    write_page(&results, Beginning::Comparison(&comparison), arguments, common)?;
    if !common.quiet {
        print(&compare::text(&comparison, Ink::for_stdout()))?;
    }
    Ok(comparison.exit())
}

fn differing_functions(sides: &[PathBuf]) -> failure::Result {
    let [a, b] = sides else { return Err(Failure::new(Exit::Usage, "report: --functions takes two")) };
    let (a, b) = (Profile::read(a)?, Profile::read(b)?);
    print(&functions::difference(&a, &b, Ink::for_stdout()))?;
    Ok(Exit::Done)
}

/// The results of one side. Whatever cannot be read could change the verdict, so that there is none.
fn side(path: &PathBuf) -> failure::Result<Vec<ResultFile>> {
    let unreadable = |why: String| Failure::new(Exit::Usage, why);
    let found =
        FoundResults::of(std::slice::from_ref(path)).map_err(|failure| unreadable(failure.message))?;
    match found.unreadable() {
        Some(why) => Err(unreadable(why.to_owned())),
        None => Ok(found.results),
    }
}

/// Tells the sides apart on the page.
fn named(mut result: ResultFile, side: &str, path: &Path) -> ResultFile {
    let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    result.study = format!("{side} ({file}) {}", result.study).trim_end().to_owned();
    result
}

fn write_page(
    results: &[ResultFile],
    beginning: Beginning<'_>,
    arguments: &Arguments,
    common: &Common,
) -> failure::Result<()> {
    let Some(output) = &arguments.output else { return Ok(()) };
    let page = render(results, beginning)?;
    fs::write(output, page).map_err(|error| trouble::file_failure(output, "write the page", error))?;
    if !common.quiet {
        eprintln!("report: {}: written", output.display());
    }
    Ok(())
}

/// A reader that has seen enough (`| head`) is no failure.
fn print(text: &str) -> failure::Result<()> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("standard output: write: {error}")))
        }
        _ => Ok(()),
    }
}
