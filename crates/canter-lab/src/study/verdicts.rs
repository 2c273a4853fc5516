//! `canter study verdicts`: what results say of the papers' claims, each in one of five words.

mod page;

use super::{
    claim::{Claim, Evidence, Finding},
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
    verdicts::{Second, Verdict, Verdicts, Word},
};
use clap::Args;
use std::path::PathBuf;

/// `canter study verdicts`
#[derive(Args)]
pub struct Arguments {
    /// Result files, folders of them, and study files (.toml) beside those that canter knows
    #[arg(required = true, value_name = "RESULTS")]
    paths: Vec<PathBuf>,
    /// Keep the verdicts in the (first) folder, as verdicts.json: later calls compare with them
    #[arg(long)]
    keep: bool,
    /// Print docs/papers.md instead: a table of every claim
    #[arg(long, conflicts_with_all = ["keep", "json"])]
    page: bool,
}

/// Every claim of these studies, decided by these results.
pub fn decide(studies: &[Study], results: &[ResultFile]) -> Verdicts {
    let claims = studies.iter().flat_map(|study| study.claims.iter().map(move |claim| (study, claim)));
    let verdicts = claims.map(|(study, claim)| verdict(study, claim, studies, results));
    Verdicts::new(verdicts.collect(), results)
}

/// The results that a study's claims rest on.
fn evidence<'a>(study: &'a Study, results: &'a [ResultFile]) -> Evidence<'a> {
    let kernel = study.lab.kernels.first().map_or("", String::as_str);
    Evidence { results, study: &study.name, kernel }
}

fn verdict(study: &Study, claim: &Claim, studies: &[Study], results: &[ResultFile]) -> Verdict {
    let finite = |value: f64| value.is_finite().then_some(value);
    let own = evidence(study, results);
    let outcome = claim.criterion.decide(&own);
    let (mut word, mut cause) = claim.word(outcome.finding);
    let second = claim.second.as_ref().map(|name| second(name, claim, outcome.finding, studies, results));
    if second.as_ref().is_some_and(|second| second.agrees == Some(false)) {
        (word, cause) = (Word::Open, "the two instruments disagree");
    }
    let basis = own.basis(&claim.criterion.selectors());
    Verdict {
        study: study.name.clone(),
        claim: claim.name.clone(),
        at: claim.at.as_deref().unwrap_or_else(|| study.source()).to_owned(),
        says: claim.says.clone(),
        headline: claim.headline,
        verdict: word,
        found: outcome.found,
        value: outcome.estimate.and_then(|estimate| finite(estimate.value)),
        low: outcome.estimate.and_then(|estimate| finite(estimate.low)),
        high: outcome.estimate.and_then(|estimate| finite(estimate.high)),
        from: outcome.bounds.and_then(|[from, _]| finite(from)),
        to: outcome.bounds.and_then(|[_, to]| finite(to)),
        paper: outcome.paper,
        cause: cause.to_owned(),
        second,
        boots: outcome.boots,
        frames: basis.frames,
        kernels: basis.kernels.into_iter().collect(),
        instruments: basis.instruments.into_iter().collect(),
        days: basis.days.into_iter().collect(),
        plot: outcome.plot.map(|plot| *plot),
    }
}

/// What the study of the claim's second instrument finds.
fn second(name: &str, claim: &Claim, first: Finding, studies: &[Study], results: &[ResultFile]) -> Second {
    let Some(study) = studies.iter().find(|study| study.name == *name) else {
        return Second { study: name.to_owned(), agrees: None, found: "no such study".to_owned() };
    };
    let outcome = claim.criterion.decide(&evidence(study, results));
    let agrees = match outcome.finding {
        Finding::Within | Finding::Outside => Some(outcome.finding == first),
        Finding::Unclear | Finding::Missing => None,
    };
    Second { study: name.to_owned(), agrees, found: outcome.found }
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
    let verdicts = decide(&studies, &found.results);
    if arguments.page {
        print!("{}", page::of(&verdicts));
        return Ok(Exit::Done);
    }
    common.write_json(&verdicts)?;
    if common.shows_table() {
        print!("{}", table(&verdicts, Ink::for_stdout()));
    }
    let mut differs = false;
    for folder in folders.iter().filter(|folder| folder.is_dir()).take(1) {
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
            Word::Holds => terminal::GREEN,
            Word::NoLonger => terminal::YELLOW,
            Word::NotByInstrument | Word::Open | Word::NotMeasured => FAINT,
        };
        let says = format!("{}: {} ({})", claim.at, claim.says, claim.study);
        terminal::paragraph(&mut out, &says, 0, ink, PLAIN);
        let parts = [claim.found.clone() + &claim.numbers(), claim.cause.clone(), claim.basis()];
        let second = claim.second.as_ref().map(ToString::to_string);
        let parts: Vec<_> = parts.into_iter().chain(second).filter(|part| !part.is_empty()).collect();
        let found = format!("    {}: {}", claim.verdict.name(), parts.join("; "));
        terminal::paragraph(&mut out, &found, 6, ink, style);
    }
    out + "\n" + &counts(verdicts) + "\n"
}

/// How many claims have each verdict: `32 hold, 18 no longer so, …`.
fn counts(verdicts: &Verdicts) -> String {
    let counted = |(word, count)| match (word, count) {
        (Word::Holds, 1) => "1 holds".to_owned(),
        (Word::Holds, count) => format!("{count} hold"),
        (word, count) => format!("{count} {}", word.name()),
    };
    verdicts.counts().map(counted).join(", ")
}
