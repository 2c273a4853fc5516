//! The papers' claims on the page: how many there are of each verdict, and each claim by its paper, with its plot.

mod plots;

use canter_measure::result::ResultFile;
use canter_measure::verdicts::{Verdict, Verdicts, Word};
use serde::Serialize;

/// The claims for the template.
#[derive(Serialize)]
pub struct ClaimsView {
    count: usize,
    counts: Vec<Count>,
    /// The sentences of the first screen.
    headlines: Vec<Headline>,
    papers: Vec<Paper>,
    /// Whether the verdicts rest on other results than those of the page.
    stale: bool,
}

#[derive(Serialize)]
struct Count {
    word: WordView,
    count: usize,
}

#[derive(Serialize)]
struct WordView {
    name: &'static str,
    /// The class of the verdict's colour, and the name of its filter.
    class: &'static str,
    /// A sign that identifies the verdict without colours.
    sign: &'static str,
}

/// A claim in a sentence, with the paper's number and ours.
#[derive(Serialize)]
struct Headline {
    id: String,
    says: String,
    at: String,
    paper: String,
    here: String,
    word: WordView,
}

#[derive(Serialize)]
struct Paper {
    title: &'static str,
    tiles: Vec<Tile>,
    claims: Vec<Claim>,
}

/// A figure or table of a paper, with a mark for each claim.
#[derive(Serialize)]
struct Tile {
    place: String,
    marks: Vec<TileMark>,
}

#[derive(Serialize)]
struct TileMark {
    id: String,
    says: String,
    word: WordView,
}

#[derive(Serialize)]
struct Claim {
    id: String,
    name: String,
    says: String,
    place: String,
    study: String,
    /// The id of the section with the study's results, if the page has it.
    section: String,
    word: WordView,
    /// The numbers that decided, in words, or why there are none.
    found: String,
    /// The change of Linux or the missing cost that explains the verdict.
    cause: String,
    /// What the second instrument found.
    second: String,
    /// The frames, boots, kernels and instruments that it rests on.
    basis: String,
    plot: String,
}

fn word(word: Word) -> WordView {
    let (class, sign) = match word {
        Word::Holds => ("holds", "✓"),
        Word::NoLonger => ("no-longer", "↻"),
        Word::NotByInstrument => ("not-by-instrument", "∅"),
        Word::Open => ("open", "?"),
        Word::NotMeasured => ("not-measured", "–"),
    };
    WordView { name: word.name(), class, sign }
}

/// The claims of a page with these results; `sections` are the studies of its sections, with their ids.
pub fn view(verdicts: &Verdicts, results: &[ResultFile], sections: &[(&str, &str)]) -> ClaimsView {
    let papers = verdicts.by_paper().into_iter().map(|(title, claims)| Paper {
        title: if title.is_empty() { "Other claims" } else { title },
        tiles: tiles(&claims),
        claims: claims.into_iter().map(|verdict| claim(verdict, sections)).collect(),
    });
    let counts = verdicts.counts().map(|(one, count)| Count { word: word(one), count });
    ClaimsView {
        count: verdicts.claims.len(),
        counts: counts.into(),
        headlines: verdicts.claims.iter().filter(|claim| claim.headline).map(headline).collect(),
        papers: papers.collect(),
        stale: !verdicts.rest_on(results),
    }
}

/// The claim's anchor on the page.
fn id(verdict: &Verdict) -> String {
    format!("claim-{}-{}", verdict.study, verdict.claim)
}

fn headline(verdict: &Verdict) -> Headline {
    let here = match verdict.value.filter(|_| verdict.from.is_some()) {
        Some(value) => format!("{}{}", verdict.in_words(value), verdict.interval().replace("; ", " (") + ")"),
        None => verdict.found.clone(),
    };
    Headline {
        id: id(verdict),
        says: verdict.says.clone(),
        at: verdict.at.clone(),
        paper: verdict.paper_in_words(),
        here,
        word: word(verdict.verdict),
    }
}

/// The figures and tables of a paper, in the order of their first claims.
fn tiles(claims: &[&Verdict]) -> Vec<Tile> {
    let mut tiles: Vec<Tile> = Vec::new();
    for claim in claims {
        let place = if claim.place().is_empty() { &claim.at } else { claim.place() };
        let mark = TileMark { id: id(claim), says: claim.says.clone(), word: word(claim.verdict) };
        match tiles.iter_mut().find(|tile| tile.place == *place) {
            Some(tile) => tile.marks.push(mark),
            None => tiles.push(Tile { place: place.to_owned(), marks: vec![mark] }),
        }
    }
    tiles
}

fn claim(verdict: &Verdict, sections: &[(&str, &str)]) -> Claim {
    let section = sections.iter().find(|(study, _)| *study == verdict.study);
    let place = verdict.place();
    Claim {
        id: id(verdict),
        name: verdict.claim.clone(),
        says: verdict.says.clone(),
        place: if place.is_empty() { verdict.at.clone() } else { place.to_owned() },
        study: verdict.study.clone(),
        section: section.map(|(_, id)| (*id).to_owned()).unwrap_or_default(),
        word: word(verdict.verdict),
        found: format!("{}{}", verdict.found, verdict.numbers()),
        cause: verdict.cause.clone(),
        second: verdict.second.as_ref().map(ToString::to_string).unwrap_or_default(),
        basis: verdict.basis(),
        plot: plots::of(verdict),
    }
}
