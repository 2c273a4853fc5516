//! `canter study verdicts`: what results say of the papers' claims, each in one of four words.

mod page;

use super::{
    claim::{Claim, Evidence, Outcome, Word},
    definition::Study,
};
use crate::report::FoundResults;
use canter_cli::{
    failure::{self, Exit},
    options::Common,
    terminal::{self, FAINT, Ink, PLAIN},
};
use canter_measure::{
    result::ResultFile,
    verdicts::{Verdict, Verdicts},
};
use clap::Args;
use std::path::PathBuf;

/// `canter study verdicts`
#[derive(Args)]
pub struct Arguments {
    /// Result files, folders of them, and study files (.toml) beside those that canter knows
    #[arg(required = true, value_name = "RESULTS")]
    paths: Vec<PathBuf>,
    /// Keep the verdicts in the folder, as verdicts.json: later calls compare with them
    #[arg(long)]
    keep: bool,
    /// Print docs/papers.md instead: a table of every claim
    #[arg(long, conflicts_with_all = ["keep", "json"])]
    page: bool,
}

/// Every claim of these studies, decided by these results.
pub fn of(studies: &[Study], results: &[ResultFile]) -> Verdicts {
    let claims = studies.iter().flat_map(|study| study.claims.iter().map(move |claim| (study, claim)));
    let verdicts = claims.map(|(study, claim)| {
        let kernel = study.lab.kernels.first().map_or("", String::as_str);
        let evidence = Evidence { results, study: &study.name, kernel };
        verdict(study, claim, claim.criterion.decide(&evidence))
    });
    Verdicts::new(verdicts.collect(), results)
}

fn verdict(study: &Study, claim: &Claim, outcome: Outcome) -> Verdict {
    let finite = |value: f64| value.is_finite().then_some(value);
    Verdict {
        study: study.name.clone(),
        claim: claim.name.clone(),
        at: claim.at.as_deref().unwrap_or_else(|| study.source()).to_owned(),
        says: claim.says.clone(),
        verdict: outcome.word,
        found: outcome.found,
        value: outcome.estimate.and_then(|estimate| finite(estimate.value)),
        low: outcome.estimate.and_then(|estimate| finite(estimate.low)),
        high: outcome.estimate.and_then(|estimate| finite(estimate.high)),
        from: outcome.bounds.and_then(|[from, _]| finite(from)),
        to: outcome.bounds.and_then(|[_, to]| finite(to)),
        paper: outcome.paper,
        boots: outcome.boots,
        plot: outcome.plot.map(|plot| *plot),
    }
}

pub fn run(arguments: &Arguments, common: &Common) -> failure::Result {
    let is_study = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "toml");
    let (own, results): (Vec<_>, Vec<_>) = arguments.paths.iter().partition(is_study);
    let mut studies = Study::all()?;
    for path in own {
        studies.push(Study::find(&path.to_string_lossy())?);
    }
    let folders: Vec<PathBuf> = results.into_iter().cloned().collect();
    let found = FoundResults::of(&folders)?;
    if let Some(refused) = found.refused.first() {
        return Err(failure::Failure::failed(refused.clone()));
    }
    let verdicts = of(&studies, &found.results);
    if arguments.page {
        print!("{}", page::of(&verdicts));
        return Ok(Exit::Done);
    }
    common.write_json(&verdicts)?;
    if common.shows_table() {
        print!("{}", table(&verdicts, Ink::for_stdout()));
    }
    let mut differs = false;
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        if arguments.keep {
            verdicts.write(folder)?;
        } else if let Some(kept) = Verdicts::read(folder)? {
            for difference in kept.differences(&verdicts) {
                eprintln!("canter: {}: {difference}", folder.display());
                differs = true;
            }
        }
    }
    Ok(if differs { Exit::Failed } else { Exit::Done })
}

/// A paragraph for each claim, and the counts.
fn table(verdicts: &Verdicts, ink: Ink) -> String {
    let mut out = String::new();
    for claim in &verdicts.claims {
        let style = match claim.verdict {
            Word::Reproduced => terminal::GREEN,
            Word::Refuted => terminal::YELLOW,
            Word::Undecided | Word::NotMeasurable => FAINT,
        };
        let says = format!("{}: {} ({})", claim.at, claim.says, claim.study);
        terminal::paragraph(&mut out, &says, 0, ink, PLAIN);
        let boots = match claim.boots {
            0 => String::new(),
            1 => "; 1 boot".to_owned(),
            boots => format!("; {boots} boots"),
        };
        let found = format!("    {}: {}{}{boots}", claim.verdict.name(), claim.found, claim.numbers());
        terminal::paragraph(&mut out, &found, 6, ink, style);
    }
    out + "\n" + &counts(verdicts) + "\n"
}

/// `32 reproduced, 18 refuted, …`.
fn counts(verdicts: &Verdicts) -> String {
    verdicts.counts().map(|(word, count)| format!("{count} {}", word.name())).join(", ")
}
