//! The papers' experiments: a study file says what, a testbed runs it, a result file and a page come out.
//!
//! `definition` and `plan` read a study file, `unit` says what shares a boot, `campaign` runs units and keeps results,
//! `inside` measures: by `testbed` (the sender's side) and `side` (the gateway's, or `remote`), under a `load`.

mod amount;
mod campaign;
mod cards;
mod catalogue;
mod ceiling;
mod claim;
mod definition;
mod ethernet;
mod inside;
mod journal;
mod list;
mod load;
mod load_curve;
mod nodes;
mod pings;
mod plan;
mod preparation;
mod processor;
mod recording;
mod remote;
mod rules;
mod side;
mod testbed;
mod throughput;
mod tuning;
mod unit;
mod verdicts;
mod writes;

use crate::{analyzer::board::Board, lab, meter::instrument::InstrumentName};
use amount::{Amount, QUICK_FRAMES};
use campaign::Campaign;
use canter_cli::{
    failure::{self, Exit, Failure},
    options::Common,
    terminal::Ink,
    whole_file,
};
use canter_measure::result::ResultFile;
use ceiling::{Ceiling, Comparison, Measured};
use clap::{Args, Subcommand};
use definition::{Set, Study};
use journal::Journal;
use remote::{GREETING_TIMEOUT, Remote};
use side::{Local, Place, Side};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use testbed::Bed;
use unit::Unit;

/// Run the experiments of the papers
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter study list                                    all studies, and which can run here
  canter study run 2014-fig4.2                         boots the lab, measures, writes a result file and a page
  canter study run 2014-fig4.1 2014-fig4.2 --out results/mine
  canter study run --all --quick                       every figure of the papers, in less than an hour
  canter study run --all --out results/all             the same with the papers' numbers of frames; run again to continue
  canter study run --matrix                            every combination of the 2011 paper, overnight
  canter study run history-calls --kernel 6.12,7.3     two kernels, to be compared by canter report --compare
  canter study run my.toml --kernel ~/src/linux        your own study file on your own kernel
  canter study verdicts results/all                    what these results say of the papers' claims
On real hardware, wired as in the papers (docs/studies.md):
  canter study run 2011-fig8 --interfaces can0,can1,can2 --gateway can3,can4
  canter study run 2011-fig8 --interfaces can0,can1,can2 --gateway can0,can1 --gateway-by 'ssh pi'
  canter study run history-gateways --interfaces can0,can1,can2 --gateway can3,can4 --instrument hardware
Exit code 0; 1 when a study failed, a figure exceeded its ceiling or a verdict differs from the kept one; 3 when frames were lost.")]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List all studies, which can run here, and why the others cannot
    List,
    /// Run experiments in the lab, or on this machine
    Run(RunArguments),
    /// Decide the papers' claims by results
    Verdicts(verdicts::Arguments),
    /// Compare figures with all recorded ceilings and limits, as `make bench` does
    Ceilings {
        /// Folder with result files of studies and tables of benches; the comparison is written there as ceilings.tsv
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Start and end gateways by the orders on standard input, for a run on another machine
    #[command(hide = true)]
    Gateway { input: String, output: String },
    /// Replaced by --gateway-by
    #[command(hide = true)]
    Role {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Measure on this machine, as the lab's guest does
    #[command(hide = true)]
    Inside {
        /// Studies
        names: Vec<String>,
        #[arg(long, default_value_t)]
        amount: Amount,
        #[arg(long, default_value_t = 1)]
        boot: u32,
        /// Cases of a study that are known: NAME=0,1,5
        #[arg(long)]
        skip: Vec<inside::Skip>,
    },
    /// Keep this machine busy until killed
    #[command(hide = true)]
    Load {
        name: String,
        /// Destination of a stream
        #[arg(long)]
        to: Option<String>,
    },
}

#[derive(Args)]
struct RunArguments {
    /// Studies: names from `canter study list`, or study files (.toml)
    #[arg(required_unless_present_any = ["all", "matrix"], value_name = "NAME")]
    names: Vec<String>,
    /// Run every figure and table of the papers
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Run every combination of the 2011 paper's conditions
    #[arg(long, conflicts_with_all = ["names", "all"])]
    matrix: bool,
    /// Folder for the result files and the page
    #[arg(long, value_name = "DIR", default_value = "canter-results")]
    out: PathBuf,
    /// Kernels of the lab, instead of the studies' own; each has a result file with its name
    #[arg(long, value_name = "KERNEL", value_delimiter = ',', conflicts_with = "interfaces")]
    kernel: Vec<String>,
    /// Frames per series, instead of the studies' own number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Boots of each kernel, instead of the studies' own number; each has another seed of the jitter and its own result
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "interfaces")]
    boots: Option<u32>,
    /// Machines of the virtual clock at once; unless given, one for each processor, if the memory is enough
    #[arg(long, value_name = "N", conflicts_with = "interfaces")]
    jobs: Option<NonZero<usize>>,
    /// Model the time on this board too, in studies that the analyzer measures; the board is in the result's name
    #[arg(long, value_enum, value_name = "BOARD", conflicts_with = "interfaces")]
    cost: Option<Board>,
    /// At most 1000 frames per series, in one boot: enough for medians, not for worst cases
    #[arg(long, conflicts_with_all = ["count", "boots"])]
    quick: bool,
    /// Start again, and repeat what an interrupted run has finished
    #[arg(long)]
    again: bool,
    /// Measure on this machine instead of the lab: SEND sends, DIRECT takes the first stamp, ROUTED the second
    #[arg(long, value_name = "SEND,DIRECT,ROUTED", value_delimiter = ',', requires = "gateway")]
    interfaces: Vec<String>,
    /// With --interfaces: the gateway's two interfaces
    #[arg(long, value_name = "IN,OUT", requires = "interfaces", value_delimiter = ',')]
    gateway: Vec<String>,
    /// With --interfaces: who stamps frames, the kernel (socket) or the controllers (hardware)
    #[arg(long, value_enum, default_value_t = InstrumentName::Socket, requires = "interfaces", hide_possible_values = true)]
    instrument: InstrumentName,
    /// With --gateway: command that starts programs on the gateway's machine, where the same build of canter is installed
    #[arg(long, value_name = "COMMAND", requires = "gateway")]
    gateway_by: Option<String>,
    /// Replaced by --gateway-by
    #[arg(long, hide = true)]
    token_file: Option<PathBuf>,
    /// Compare the figures with the recorded ceilings; exit code 1 when a figure exceeds its ceiling
    #[arg(long)]
    ceilings: bool,
}

/// Reads a text as a study file; `name` is its name in the error.
pub fn check_study_file(name: &str, text: &str) -> failure::Result<()> {
    Study::read(name, text).map(drop)
}

/// Reads a text as the journal of an unfinished run; `path` is its name in the error.
pub fn check_journal(path: &Path, text: &str) -> failure::Result<()> {
    Journal::of_text(path, text).map(drop)
}

/// Runs `canter study`.
pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    match arguments.action {
        Action::List => list::print(),
        Action::Run(run) => run_all(&run, common),
        Action::Verdicts(verdicts) => verdicts::run(&verdicts, common),
        Action::Ceilings { folder } => compare_with_ceilings(&folder),
        Action::Gateway { input, output } => remote::serve(input, output),
        Action::Role { .. } => Err(replaced("study role")),
        Action::Inside { names, amount, boot, skip } => {
            let studies = find_all(&names, amount)?.into_iter().map(|study| study.in_boot(boot));
            inside::in_guest(&studies.collect::<Vec<_>>(), &skip)
        }
        Action::Load { name, to } => {
            common.apply()?;
            load::work(&name, to.as_deref()).map(|()| Exit::Done)
        }
    }
}

/// The path of this program, for the parts of a study that are subprocesses.
fn program() -> failure::Result<PathBuf> {
    std::env::current_exe().map_err(|error| Failure::failed(format!("study: find canter: {error}")))
}

/// The error that a process of this program has printed, as the reason why this machine cannot.
fn unable(printed: &str) -> Failure {
    Failure::unable(printed.trim().trim_start_matches("canter: "))
}

fn find_all(names: &[String], amount: Amount) -> failure::Result<Vec<Study>> {
    names.iter().map(|name| Study::find(name).map(|study| study.with_frames(amount))).collect()
}

impl RunArguments {
    fn amount(&self) -> Amount {
        match self.count {
            Some(count) => Amount::Exactly(count),
            None if self.quick => Amount::AtMost(QUICK_FRAMES),
            None => Amount::Own,
        }
    }

    fn boots(&self) -> Option<u32> {
        if self.quick { Some(1) } else { self.boots }
    }
}

/// Runs each unit and keeps its result as soon as it is complete.
fn run_all(run: &RunArguments, common: &Common) -> failure::Result {
    if run.token_file.is_some() {
        return Err(replaced("--token-file"));
    }
    let names = match (run.all, run.matrix) {
        (true, _) => unit::names_of(Set::Figure)?,
        (_, true) => unit::names_of(Set::Matrix)?,
        _ => run.names.clone(),
    };
    let amount = run.amount();
    let studies = find_all(&names, amount)?.into_iter();
    let studies = studies.map(|study| study.on_board(run.cost)).collect::<failure::Result<Vec<_>>>()?;
    if let Some(Study { name, kind: definition::Kind::Missing(why), .. }) =
        studies.iter().find(|study| matches!(study.kind, definition::Kind::Missing(_)))
    {
        return Err(Failure::unable(format!("{name}: {why}")));
    }
    unit::check_kernels(&run.kernel)?;
    let here = !run.interfaces.is_empty();
    let units: Vec<Unit> =
        studies.iter().flat_map(|study| unit::planned(study, &run.kernel, here, run.boots())).collect();
    let journal = Journal::open(&run.out, &units, amount, run.again)?;
    let kept = units.iter().filter(|unit| journal.is_done(unit)).count();
    if kept > 0 && !common.quiet {
        eprintln!(
            "study: goes on with an interrupted run, {kept} of {} are there (--again: anew)",
            units.len()
        );
    }
    let (results, failures) = if here {
        on_this_machine(run, &units, journal, common)?
    } else {
        in_lab(run, units, journal, amount, common)?
    };
    let lost = results.iter().flat_map(|result| &result.series).any(|series| series.ledger.lost.total() > 0);
    let exceeded = run.ceilings && !check_ceilings(results)?;
    Ok(match (exceeded || !failures.is_empty(), lost) {
        (true, _) => Exit::Failed,
        (false, true) => Exit::Lost,
        (false, false) => Exit::Done,
    })
}

type Finished = (Vec<ResultFile>, Vec<String>);

fn in_lab(
    run: &RunArguments,
    units: Vec<Unit>,
    journal: Journal,
    amount: Amount,
    common: &Common,
) -> failure::Result<Finished> {
    let left = |units: &[Unit]| units.iter().filter(|unit| !journal.is_done(unit)).cloned().collect();
    let boots = unit::boots(left(&units))?;
    let campaign = Campaign::new(&run.out, journal, &units, boots.len() as u64, common.quiet)?;
    campaign.run(&boots, amount, run.jobs.map_or_else(lab::machines_at_once, NonZero::get))?;
    campaign.finish()
}

fn on_this_machine(
    run: &RunArguments,
    units: &[Unit],
    journal: Journal,
    common: &Common,
) -> failure::Result<Finished> {
    let [send, direct, routed] = &run.interfaces[..] else {
        return Err(Failure::new(Exit::Usage, "--interfaces: three names, SEND,DIRECT,ROUTED"));
    };
    let [input, output] = &run.gateway[..] else {
        return Err(replaced(&format!("--gateway {}: not two names, IN,OUT; a host", run.gateway.join(","))));
    };
    if !matches!(run.instrument, InstrumentName::Socket | InstrumentName::Hardware) {
        return Err(Failure::new(Exit::Usage, "--instrument: socket or hardware, with --interfaces"));
    }
    let mut up = vec![send.clone(), direct.clone(), routed.clone()];
    let (mut side, null): (Box<dyn Side>, _) = match &run.gateway_by {
        Some(by) => (Box::new(Remote::start(by, [input, output], GREETING_TIMEOUT)?), None),
        None => {
            up.extend([input.clone(), output.clone()]);
            let place = Place { input: input.clone(), output: output.clone(), ..Place::default() };
            (Box::new(Local::new(place)?), Some(input.clone()))
        }
    };
    let bed = Bed {
        send: send.clone(),
        direct: Some(direct.clone()),
        routed: routed.clone(),
        up,
        // The controllers' stamps have no floor.
        null: null.filter(|_| run.instrument == InstrumentName::Socket),
        instrument: run.instrument,
        ..Bed::default()
    };
    let todo: Vec<&Unit> = units.iter().filter(|unit| !journal.is_done(unit)).collect();
    let campaign = Campaign::new(&run.out, journal, units, 0, common.quiet)?;
    for unit in todo {
        campaign.here(unit, &bed, &mut *side)?;
        if side.is_lost() {
            break;
        }
    }
    campaign.finish()
}

/// The refusal of a command line that gave orders over TCP.
fn replaced(what: &str) -> Failure {
    let way = "is replaced by --gateway IN,OUT --gateway-by 'ssh HOST' of canter study run";
    Failure::new(Exit::Usage, format!("{what} {way}"))
}

/// Prints the ceilings of these results; returns whether all are kept.
fn check_ceilings(results: Vec<ResultFile>) -> failure::Result<bool> {
    let comparison = Comparison::of_measured(&Ceiling::all()?, &Measured::of_results(results));
    print!("{}", comparison.text(Ink::for_stdout()));
    Ok(comparison.is_kept())
}

/// Prints all ceilings beside what is in a folder.
fn compare_with_ceilings(folder: &Path) -> failure::Result {
    let comparison = Comparison::of_all(&Ceiling::all()?, folder)?;
    whole_file::write(&folder.join("ceilings.tsv"), "write the comparison", &comparison.to_tsv())?;
    print!("{}", comparison.text(Ink::for_stdout()));
    Ok(if comparison.is_kept() { Exit::Done } else { Exit::Failed })
}
