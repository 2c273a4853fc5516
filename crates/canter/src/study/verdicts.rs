//! `canter study verdicts`: what results say of the papers' claims, each in one of four words.

mod kept;
mod page;

use super::{
    claim::{Claim, Evidence, Outcome, Word},
    definition::Study,
};
use crate::{
    failure::{self, Exit},
    measure::result::ResultFile,
    options::Common,
    report::Found,
    terminal::{self, Ink, Style},
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

/// A claim with its verdict.
pub struct Verdict<'a> {
    pub study: &'a Study,
    pub claim: &'a Claim,
    pub outcome: Outcome,
}

impl Verdict<'_> {
    /// Where the paper says it.
    pub fn at(&self) -> &str {
        self.claim.at.as_deref().unwrap_or_else(|| self.study.source())
    }
}

/// Every claim of these studies, decided by these results.
pub fn of<'a>(studies: &'a [Study], results: &[ResultFile]) -> Vec<Verdict<'a>> {
    let claims = studies.iter().flat_map(|study| study.claims.iter().map(move |claim| (study, claim)));
    let verdicts = claims.map(|(study, claim)| {
        let kernel = study.lab.kernels.first().map_or("", String::as_str);
        let evidence = Evidence { results, study: &study.name, kernel };
        Verdict { study, claim, outcome: claim.criterion.decide(&evidence) }
    });
    verdicts.collect()
}

/// How many verdicts there are of each word.
pub fn counts(verdicts: &[Verdict<'_>]) -> [(Word, usize); 4] {
    Word::ALL.map(|word| (word, verdicts.iter().filter(|verdict| verdict.outcome.word == word).count()))
}

pub fn run(arguments: &Arguments, common: &Common) -> failure::Result {
    let is_study = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "toml");
    let (own, results): (Vec<_>, Vec<_>) = arguments.paths.iter().partition(is_study);
    let mut studies = Study::all()?;
    for path in own {
        studies.push(Study::find(&path.to_string_lossy())?);
    }
    let folders: Vec<PathBuf> = results.into_iter().cloned().collect();
    let found = Found::of(&folders)?;
    if let Some(refused) = found.refused.first() {
        return Err(failure::Failure::failed(refused.clone()));
    }
    let verdicts = of(&studies, &found.results);
    if arguments.page {
        print!("{}", page::of(&verdicts));
        return Ok(Exit::Done);
    }
    let document = kept::Kept::of(&verdicts);
    common.write_json(&document)?;
    if common.shows_table() {
        print!("{}", table(&verdicts, Ink::of_stdout()));
    }
    let mut differs = false;
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        if arguments.keep {
            document.write(folder)?;
        } else if let Some(kept) = kept::Kept::read(folder)? {
            for difference in kept.differences(&verdicts) {
                eprintln!("canter: {}: {difference}", folder.display());
                differs = true;
            }
        }
    }
    Ok(if differs { Exit::Failed } else { Exit::Done })
}

/// A paragraph for each claim, and the counts.
fn table(verdicts: &[Verdict<'_>], ink: Ink) -> String {
    let mut out = String::new();
    for verdict in verdicts {
        let Outcome { word, figures, boots, .. } = &verdict.outcome;
        let style = match word {
            Word::Reproduced => terminal::GREEN,
            Word::Refuted => terminal::YELLOW,
            Word::Undecided | Word::NotMeasurable => Style::Faint,
        };
        let claim = format!("{}: {} ({})", verdict.at(), verdict.claim.says, verdict.study.name);
        terminal::paragraph(&mut out, &claim, "", ink, Style::Plain);
        let boots = match boots {
            0 => String::new(),
            1 => "; 1 boot".to_owned(),
            boots => format!("; {boots} boots"),
        };
        let numbers = numbers(&verdict.outcome);
        terminal::paragraph(
            &mut out,
            &format!("    {}: {figures}{numbers}{boots}", word.name()),
            "      ",
            ink,
            style,
        );
    }
    let counts = counts(verdicts).map(|(word, count)| format!("{count} {}", word.name()));
    out + "\n" + &counts.join(", ") + "\n"
}

/// `; between 2.66 and 2.69; the paper's 3, from 2 to 4.5`.
pub fn numbers(outcome: &Outcome) -> String {
    use super::claim::digits;
    let Some((estimate, [from, to])) = outcome.estimate.zip(outcome.bounds) else { return String::new() };
    let paper = outcome.paper.map(digits).unwrap_or_default();
    let bounds = match (from <= 0.0, to.is_finite()) {
        (true, _) => format!("at most {}", digits(to)),
        (_, false) => format!("at least {}", digits(from)),
        _ => format!("{} to {}", digits(from), digits(to)),
    };
    format!("; {} to {}; paper {paper}, bounds {bounds}", digits(estimate.low), digits(estimate.high))
}
