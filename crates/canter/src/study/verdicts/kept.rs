//! Verdicts kept beside the results that they rest on: `verdicts.json`.

use super::Verdict;
use crate::{
    failure::{self, Failure},
    measure::result::VERDICTS,
    study::claim::Word,
    trouble, whole_file,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::Path};

/// The version of the document.
const SCHEMA: u32 = 1;

/// The document, also that of `--json`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Kept {
    verdicts_schema: u32,
    claims: Vec<Record>,
}

/// One verdict with its numbers.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    study: String,
    claim: String,
    at: String,
    says: String,
    verdict: Word,
    figures: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    value: Option<f64>,
    /// The ends of the interval.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    high: Option<f64>,
    /// The bounds; no upper one when it is absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    from: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    to: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    paper: Option<f64>,
    boots: usize,
}

impl Kept {
    pub fn of(verdicts: &[Verdict<'_>]) -> Self {
        let finite = |value: f64| value.is_finite().then_some(value);
        let records = verdicts.iter().map(|verdict| {
            let outcome = &verdict.outcome;
            Record {
                study: verdict.study.name.clone(),
                claim: verdict.claim.name.clone(),
                at: verdict.at().to_owned(),
                says: verdict.claim.says.clone(),
                verdict: outcome.word,
                figures: outcome.figures.clone(),
                value: outcome.estimate.and_then(|estimate| finite(estimate.value)),
                low: outcome.estimate.and_then(|estimate| finite(estimate.low)),
                high: outcome.estimate.and_then(|estimate| finite(estimate.high)),
                from: outcome.bounds.and_then(|[from, _]| finite(from)),
                to: outcome.bounds.and_then(|[_, to]| finite(to)),
                paper: outcome.paper,
                boots: outcome.boots,
            }
        });
        Self { verdicts_schema: SCHEMA, claims: records.collect() }
    }

    pub fn write(&self, folder: &Path) -> failure::Result<()> {
        let text = serde_json::to_string_pretty(self).unwrap_or_default(); // strings and numbers only
        whole_file::write(&folder.join(VERDICTS), "write the verdicts", &(text + "\n"))
    }

    /// A folder's kept verdicts, if it has any.
    pub fn read(folder: &Path) -> failure::Result<Option<Self>> {
        let path = folder.join(VERDICTS);
        if !path.exists() {
            return Ok(None);
        }
        let fail = |why: String| Failure::failed(format!("{}: {why}", path.display()));
        let kept: Self = serde_json::from_str(&trouble::read_text(&path)?)
            .map_err(|error| fail(format!("not kept verdicts (canter study verdicts --keep): {error}")))?;
        match kept.verdicts_schema {
            SCHEMA => Ok(Some(kept)),
            other => Err(fail(format!("verdicts of schema {other}, this canter reads {SCHEMA}"))),
        }
    }

    /// A line for each claim whose verdict is another one now.
    pub fn differences(&self, verdicts: &[Verdict<'_>]) -> Vec<String> {
        let key = |study: &str, claim: &str| format!("{study}, {claim}");
        let before: BTreeMap<_, _> =
            self.claims.iter().map(|one| (key(&one.study, &one.claim), one.verdict)).collect();
        let now: BTreeMap<_, _> =
            verdicts.iter().map(|one| (key(&one.study.name, &one.claim.name), &one.outcome)).collect();
        let changed = now.iter().filter_map(|(name, outcome)| match before.get(name) {
            Some(word) if *word == outcome.word => None,
            Some(word) => Some(format!(
                "{name}: kept {}, now {}: {}",
                word.name(),
                outcome.word.name(),
                outcome.figures
            )),
            None => Some(format!("{name}: has no kept verdict, now {}", outcome.word.name())),
        });
        let gone = before.keys().filter(|name| !now.contains_key(*name));
        changed.chain(gone.map(|name| format!("{name}: kept, and no claim any more"))).collect()
    }
}
