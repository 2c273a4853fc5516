//! The papers' experiments: a study file says what, a testbed runs it, a result file and a page come out.

mod ceiling;
mod definition;
mod testbed;

use crate::{
    failure::{self, Exit, Failure},
    lab::{Clock, Ended, Input, Machine, Streams},
    measure::{environment, result::ResultFile},
    meter::syscalls,
    options::Common,
    report, trouble,
};
use canter_io::Interface;
use clap::{Args, Subcommand};
use definition::{Kind, Study};
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// Run the experiments of the papers
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter study list
  canter study run 2014-fig4.2                         boots the lab, measures, writes a result file and a page
  canter study run 2014-fig4.1 2014-fig4.2 --out results/mine")]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// What there is
    List,
    /// Run experiments in the lab
    Run(RunArguments),
    /// Run one experiment on this very machine, as the lab's guest does
    #[command(hide = true)]
    Inside {
        /// Which
        name: String,
    },
}

#[derive(Args)]
struct RunArguments {
    /// Which experiments; `canter study list` names them
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Where the result files and the page go
    #[arg(long, value_name = "DIR", default_value = "canter-results")]
    out: PathBuf,
    /// The lab's kernel, instead of the study's
    #[arg(long, value_name = "KERNEL")]
    kernel: Option<String>,
    /// Hold the figures against the recorded ceilings; exit code 1 when one is passed
    #[arg(long)]
    ceilings: bool,
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    match arguments.action {
        Action::List => list(),
        Action::Run(run) => run_all(&run, common),
        Action::Inside { name } => inside(&name, common),
    }
}

fn list() -> failure::Result {
    for study in Study::all()? {
        println!("{:<18} {}", study.name, study.title);
    }
    Ok(Exit::Done)
}

/// Runs each in the lab and keeps its result as soon as it is there.
fn run_all(run: &RunArguments, common: &Common) -> failure::Result {
    let studies = run.names.iter().map(|name| Study::find(name)).collect::<failure::Result<Vec<_>>>()?;
    let mut results = Vec::new();
    for study in &studies {
        say(common, &format!("{}: {}", study.name, study.title));
        let result = in_lab(study, run, common)?;
        let path = run.out.join(format!("{}.json", study.name));
        result.save(&path)?;
        if !common.quiet {
            println!("{}", report::summary(&result));
        }
        say(common, &format!("{}: written", path.display()));
        results.push(result);
    }
    let kept = !run.ceilings || check_ceilings(&studies, &results);
    let page = run.out.join("report.html");
    write_page(&page, &results)?;
    say(common, &format!("{}: written", page.display()));
    let lost = results.iter().flat_map(|result| &result.series).any(|series| series.ledger.lost.total() > 0);
    Ok(match (kept, lost) {
        (false, _) => Exit::Failed,
        (true, true) => Exit::Lost,
        (true, false) => Exit::Done,
    })
}

/// Prints every ceiling beside its figure; whether all are kept.
fn check_ceilings(studies: &[Study], results: &[ResultFile]) -> bool {
    let mut kept = true;
    for (study, result) in studies.iter().zip(results) {
        for ceiling in &study.ceilings {
            let check = ceiling.check(result);
            kept &= check.is_kept();
            println!("{:<14} {check}", study.name);
        }
    }
    kept
}

fn write_page(path: &Path, results: &[ResultFile]) -> failure::Result<()> {
    std::fs::write(path, report::page(results)?).map_err(|error| trouble::of_file(path, "write", error))
}

/// Boots the study's machine, runs this same program inside, and reads the result from its output.
fn in_lab(study: &Study, run: &RunArguments, common: &Common) -> failure::Result<ResultFile> {
    let machine = Machine {
        kernel: run.kernel.clone().unwrap_or_else(|| study.lab.kernel.clone()),
        clock: if study.lab.clock == "virtual" { Clock::Virtual } else { Clock::Real },
        cpus: study.lab.cpus,
        bus: study.lab.bus,
        quiet: common.quiet,
        ..Machine::default()
    };
    let program =
        std::env::current_exe().map_err(|error| Failure::failed(format!("study: find canter: {error}")))?;
    let quiet = common.quiet.then(|| "--quiet".to_owned());
    let words = [program.to_string_lossy().into_owned(), "study".into(), "inside".into(), study.name.clone()];
    let command: Vec<String> = words.into_iter().chain(quiet).collect();
    let output = Output::default();
    let streams = || {
        output.clear(); // of a boot that failed
        Ok(Streams { stdin: Input::Null, stdout: Box::new(output.clone()), stderr: Box::new(io::stderr()) })
    };
    match machine.run_with(&command, streams)? {
        Ended::Exit(0 | 3) => {}
        Ended::Interrupted(_) => {
            return Err(Failure::new(Exit::Interrupted, format!("{}: interrupted", study.name)));
        }
        ended => {
            return Err(Failure::failed(format!(
                "{}: failed in the lab (exit code {})",
                study.name,
                ended.code()
            )));
        }
    }
    let failed =
        |error: serde_json::Error| Failure::failed(format!("{}: read the lab's result: {error}", study.name));
    let mut result: ResultFile = serde_json::from_slice(&output.take()).map_err(failed)?;
    result.command = std::env::args().collect::<Vec<_>>().join(" ");
    Ok(result)
}

/// Collects what the guest prints.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Output {
    fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Measures on this machine and prints the result file.
fn inside(name: &str, common: &Common) -> failure::Result {
    let study = Study::find(name)?;
    let (mut series, interfaces): (_, Vec<Interface>) = match &study.kind {
        Kind::Syscalls(setup) => syscalls::measure(setup)?,
        Kind::Latency(plan) => testbed::measure(&study, plan, common)?,
    };
    for one in &mut series {
        one.paper = study.paper_of(&one.method);
    }
    let result = environment::result(&study.name, &study.title, &interfaces, series);
    println!("{}", result.to_json());
    Ok(Exit::Done)
}

fn say(common: &Common, text: &str) {
    if !common.quiet {
        eprintln!("study: {text}");
    }
}
