//! The file of verdicts, `verdicts.json`: what results say of the papers' claims. `canter study verdicts --keep` writes it
//! beside the results, and `canter report` draws it.

use super::{
    identity::Build,
    result::{Layout, ResultFile},
};
use canter_cli::{
    failure::{self, Failure},
    trouble,
    units::{counted, digits, grouped},
    whole_file,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::Path};

/// The file's name in a folder of results. It is no result file.
pub const FILE: &str = "verdicts.json";

/// The version of the document.
const SCHEMA: u32 = 2;

/// The papers: how a claim's `at` begins, and their titles.
const PAPERS: [(&str, &str); 4] = [
    ("2010", "A Comparison of Linux CAN Drivers and their Applications (2010)"),
    ("2011", "Timing Analysis of a Linux-Based CAN-to-CAN Gateway (2011)"),
    ("2014", "Performance evaluation of Linux CAN-related system calls (2014)"),
    ("WCCD", "Wapice Custom CAN Driver"),
];

/// A verdict, without its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Word {
    /// The whole interval lies within the bounds, by every instrument that measured it.
    #[serde(rename = "holds")]
    Holds,
    /// The interval lies outside the bounds, because Linux has changed since the paper.
    #[serde(rename = "no longer so")]
    NoLonger,
    /// The interval lies outside the bounds or cannot be measured, because this clock lacks a cost or this machine a part.
    #[serde(rename = "not by this instrument")]
    NotByInstrument,
    /// The interval contains a bound, has no known cause, or the series cannot carry a judgement.
    #[serde(rename = "open")]
    Open,
    /// No series measured what the claim is about.
    #[serde(rename = "not measured yet")]
    NotMeasured,
}

impl Word {
    /// Every verdict, in the order of tables.
    pub const ALL: [Self; 5] =
        [Self::Holds, Self::NoLonger, Self::NotByInstrument, Self::Open, Self::NotMeasured];

    /// The verdict's text in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::NoLonger => "no longer so",
            Self::NotByInstrument => "not by this instrument",
            Self::Open => "open",
            Self::NotMeasured => "not measured yet",
        }
    }
}

/// The quantity of a drawn value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// A multiple of another value.
    Ratio,
    /// A share: 1 is all.
    Share,
    /// A time in ns.
    Time,
}

impl Quantity {
    /// No value is farther from 0, whatever a file says.
    const SHOWN_MAX: f64 = 1e15;

    /// A value in the unit of the axis.
    pub fn shown(self, value: f64) -> f64 {
        let shown = match self {
            Self::Ratio => value,
            Self::Share => value * 100.0,
            Self::Time => value / 1000.0,
        };
        shown.clamp(-Self::SHOWN_MAX, Self::SHOWN_MAX)
    }

    /// The text behind a value on the axis.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Ratio => "×",
            Self::Share => " %",
            Self::Time => " µs",
        }
    }

    /// A value with its unit.
    pub fn in_words(self, value: f64) -> String {
        format!("{}{}", digits(self.shown(value)), self.unit())
    }
}

/// What a verdict rests on, as it is drawn. An interval is `[value, low, high]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plot {
    /// The verdict's own number in its bounds.
    Number {
        /// The quantity of the number.
        quantity: Quantity,
    },
    /// Series that should ascend: each at least `apart` times the one before.
    Order {
        /// The quantity of all series.
        quantity: Quantity,
        /// The smallest allowed ratio of a series to the one before.
        apart: f64,
        /// The series in the order of the claim.
        #[serde(rename = "figures")]
        series: Vec<Labelled>,
    },
    /// A statistic against another number.
    Course {
        /// The quantity of the statistic.
        quantity: Quantity,
        /// The statistic's name.
        #[serde(rename = "figure")]
        statistic: String,
        /// The name of the other number, with its unit.
        against: String,
        /// The compared courses.
        lines: Vec<PlotLine>,
        /// What the criterion allows, at ascending values of the other number.
        allowed: Vec<Allowed>,
    },
}

/// A series with its interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Labelled {
    /// The name of the series in the drawing.
    pub label: String,
    /// `[value, low, high]`.
    #[serde(rename = "figure")]
    pub interval: [f64; 3],
}

/// A statistic at several values of another number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlotLine {
    /// The name of the line in the drawing.
    pub label: String,
    /// `[the other number, value, low, high]`, ascending.
    pub points: Vec<[f64; 4]>,
}

/// The allowed values at a value of the other number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Allowed {
    /// The other number.
    pub at: f64,
    /// The lowest allowed value.
    pub from: f64,
    /// The highest allowed value; absent: any value from `from` on is allowed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub to: Option<f64>,
}

/// A claim of a paper with its verdict and its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The name of the study whose results decide.
    pub study: String,
    /// The claim's name within its study.
    pub claim: String,
    /// Where the paper says it: `2011, figure 8`.
    pub at: String,
    /// The claim in a sentence.
    pub says: String,
    /// Whether it is one of the sentences on a page's first screen.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub headline: bool,
    /// What the results say of the claim.
    pub verdict: Word,
    /// What was found, in words, or why nothing was.
    #[serde(rename = "figures")]
    pub found: String,
    /// The number that the verdict rests on, if it is one number.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub value: Option<f64>,
    /// The lower end of the interval.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub low: Option<f64>,
    /// The upper end of the interval.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub high: Option<f64>,
    /// The lower bound; absent: the verdict does not rest on one number.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<f64>,
    /// The upper bound; absent: none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub to: Option<f64>,
    /// The paper's number.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub paper: Option<f64>,
    /// The change of Linux, or the missing cost, that explains a verdict of that kind.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub cause: String,
    /// What a second instrument found, for claims that name one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub second: Option<Second>,
    /// The number of boots of the results that decided.
    pub boots: usize,
    /// The largest number of frames of a series that decided.
    #[serde(default)]
    pub frames: u64,
    /// The kernels of the results that decided: `6.12-rt`.
    #[serde(default)]
    pub kernels: Vec<String>,
    /// The instruments of the series that decided.
    #[serde(default)]
    pub instruments: Vec<String>,
    /// The days on which these series were measured, UTC: `2026-11-25`.
    #[serde(default)]
    pub days: Vec<String>,
    /// The drawing of what the verdict rests on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub plot: Option<Plot>,
}

/// The finding of a claim's second instrument.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// The study whose results gave it.
    pub study: String,
    /// Whether it decides as the first instrument does; absent: it has no result.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agrees: Option<bool>,
    /// What was found, in words, or why nothing was.
    pub found: String,
}

impl std::fmt::Display for Second {
    /// States agreement: `agrees: probe-gateways, 2.56`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let agreement = match self.agrees {
            Some(true) => "agrees",
            Some(false) => "disagrees",
            None => "has no result",
        };
        write!(f, "{} {agreement}: {}", self.study, self.found)
    }
}

impl Verdict {
    /// The place within the paper: `figure 8`.
    pub fn place(&self) -> &str {
        self.at.split_once(", ").map_or("", |(_, place)| place)
    }

    /// The verdict's basis: `1 000 frames, 5 boots, kernel 6.12, wire, 2026-11-25`; empty when it rests on no series.
    pub fn basis(&self) -> String {
        if self.boots == 0 {
            return String::new();
        }
        let boots = counted(self.boots as u64, "boot");
        let kernels = self.kernels.join(" and ");
        let instruments = self.instruments.join(" and ");
        let frames = format!("{} frames", grouped(self.frames));
        let parts = [frames, boots, format!("kernel {kernels}"), instruments, self.days.join(" and ")];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// `; 2.66 to 2.69; paper 3, bounds 2 to 4.5`; empty when the verdict does not rest on one number.
    pub fn numbers(&self) -> String {
        let interval = self.interval();
        if interval.is_empty() {
            return interval;
        }
        format!("{interval}; paper {}, bounds {}", self.paper_in_words(), self.bounds())
    }

    /// `; 2.66 to 2.69`; empty when the verdict does not rest on one number.
    pub fn interval(&self) -> String {
        if self.value.is_none() || self.from.is_none() {
            return String::new();
        }
        let [low, high] = [self.low, self.high].map(|end| self.in_words(end.unwrap_or(f64::INFINITY)));
        format!("; {low} to {high}")
    }

    /// The bounds: `2 to 4.5`, `at least 2`; empty when the verdict does not rest on one number.
    pub fn bounds(&self) -> String {
        match (self.from, self.to) {
            (None, _) => String::new(),
            (Some(from), None) => format!("at least {}", self.in_words(from)),
            (Some(from), Some(to)) if from <= 0.0 => format!("at most {}", self.in_words(to)),
            (Some(from), Some(to)) => format!("{} to {}", self.in_words(from), self.in_words(to)),
        }
    }

    /// The paper's number; empty when the verdict does not rest on one.
    pub fn paper_in_words(&self) -> String {
        self.paper.map(|paper| self.in_words(paper)).unwrap_or_default()
    }

    /// A value of the verdict's number: a time has its unit.
    pub fn in_words(&self, value: f64) -> String {
        match self.plot {
            Some(Plot::Number { quantity: Quantity::Time }) if value.is_finite() => {
                Quantity::Time.in_words(value)
            }
            _ => digits(value),
        }
    }
}

/// The document `verdicts.json`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Verdicts {
    verdicts_schema: u32,
    /// The results that decided, as [`identity`] names them.
    #[serde(default)]
    results: Vec<String>,
    /// The commit of the program whose criteria decided; empty when it was built outside a repository.
    #[serde(default)]
    criteria: String,
    /// The commits of the programs that measured.
    #[serde(default)]
    runs: Vec<String>,
    /// The claims with their verdicts, in the order of the studies.
    pub claims: Vec<Verdict>,
}

/// The field that says how to read the others.
#[derive(Deserialize)]
struct Head {
    verdicts_schema: u32,
}

/// A result file's study, kernel and date: a later measurement has another date.
fn identity(result: &ResultFile) -> String {
    let environment = &result.environment;
    [result.study.as_str(), &environment.flavour(), &environment.date].join(" ")
}

fn identities(results: &[ResultFile]) -> Vec<String> {
    let mut all: Vec<String> = results.iter().map(identity).collect();
    all.sort();
    all
}

impl Verdicts {
    /// Verdicts that rest on these results.
    pub fn new(claims: Vec<Verdict>, results: &[ResultFile]) -> Self {
        let mut runs: Vec<_> = results.iter().map(|result| result.environment.commit.clone()).collect();
        runs.sort();
        runs.dedup();
        let criteria = Build::current().commit.to_owned();
        Self { verdicts_schema: SCHEMA, results: identities(results), criteria, runs, claims }
    }

    /// Whether each of these results is one that the verdicts rest on. They may rest on more.
    pub fn rest_on(&self, results: &[ResultFile]) -> bool {
        let mut others = self.results.clone();
        identities(results).iter().all(|one| {
            let place = others.iter().position(|other| other == one);
            place.map(|place| others.swap_remove(place)).is_some()
        })
    }

    /// The number of claims with each verdict.
    pub fn counts(&self) -> [(Word, usize); 5] {
        let count = |word| self.claims.iter().filter(|claim| claim.verdict == word).count();
        Word::ALL.map(|word| (word, count(word)))
    }

    /// The papers' titles and claims. Claims of no paper follow, without a title.
    pub fn by_paper(&self) -> Vec<(&'static str, Vec<&Verdict>)> {
        let paper = |claim: &&Verdict| PAPERS.iter().position(|(key, _)| claim.at.starts_with(key));
        let claims_of = |wanted| self.claims.iter().filter(|claim| paper(claim) == wanted).collect();
        let papers = PAPERS.iter().enumerate().map(|(n, (_, title))| (*title, claims_of(Some(n))));
        papers.chain([("", claims_of(None))]).filter(|(_, claims): &(_, Vec<_>)| !claims.is_empty()).collect()
    }

    /// The document as [`Verdicts::write`] writes it.
    pub fn to_json(&self) -> String {
        Layout::document(self)
    }

    /// Writes [`FILE`] into a folder.
    pub fn write(&self, folder: &Path) -> failure::Result<()> {
        whole_file::write(&folder.join(FILE), "write the verdicts", &self.to_json())
    }

    /// A folder's verdicts, if it has any.
    pub fn read(folder: &Path) -> failure::Result<Option<Self>> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        Self::parse(&path, &trouble::read_text(&path)?).map(Some)
    }

    /// Parses the document; `path` is its name in errors.
    pub fn parse(path: &Path, text: &str) -> failure::Result<Self> {
        let fail = |why: String| Failure::failed(format!("{}: {why}", path.display()));
        let not_verdicts = |error| fail(format!("not kept verdicts (canter study verdicts --keep): {error}"));
        let head: Head = serde_json::from_str(text).map_err(not_verdicts)?;
        match head.verdicts_schema {
            SCHEMA => serde_json::from_str(text).map_err(not_verdicts),
            other => Err(fail(format!(
                "verdicts of schema {other}, this canter reads {SCHEMA} (canter study verdicts FOLDER --keep decides again)"
            ))),
        }
    }

    /// A line for each claim whose verdict is another one now.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let by_name = |claims: &[Verdict]| -> BTreeMap<String, Verdict> {
            claims.iter().map(|one| (format!("{}, {}", one.study, one.claim), one.clone())).collect()
        };
        let (before, now) = (by_name(&self.claims), by_name(&now.claims));
        let changed = now.iter().filter_map(|(name, now)| {
            let (word, found) = (now.verdict.name(), &now.found);
            match before.get(name) {
                Some(kept) if kept.verdict == now.verdict => None,
                Some(kept) => Some(format!("{name}: kept {}, now {word}: {found}", kept.verdict.name())),
                None => Some(format!("{name}: has no kept verdict, now {word}")),
            }
        });
        let gone = before.keys().filter(|name| !now.contains_key(*name));
        changed.chain(gone.map(|name| format!("{name}: kept, and no claim any more"))).collect()
    }
}
