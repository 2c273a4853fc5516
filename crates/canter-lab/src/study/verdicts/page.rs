//! docs/papers.md: every claim with its verdict, written by `canter study verdicts --page`.

use canter_measure::verdicts::{Verdict, Verdicts};

const HEAD: &str = "\
# The papers' claims, today
<!-- Written by `canter study verdicts RESULTS --page`: do not edit. Claims stand in studies/*.toml. -->
Each sentence of the papers on which canter builds, with a criterion and the verdict that the kept results give:

- **holds**: the whole interval lies within the bounds, by every instrument that measured it;
- **no longer so**: it lies outside, and the change of Linux since the paper that is the reason is named;
- **not by this instrument**: the lab's clock lacks the cost, or its machine the part, that the claim is about;
- **open**: the interval contains a bound, the cause is not known, two instruments disagree, or the series cannot
  carry a judgement;
- **not measured yet**: no kept series measured it.

Bounds derive from the paper's own number and stand in the study file. [studies.md](studies.md#claims) says how
claims are decided.

    canter study run 2011-fig8                  measures one of them again, in the lab
    canter study verdicts canter-results        decides every claim by what is in a folder

All times are of the lab's virtual clock, where an instruction takes 1 ns (or what a study says) and there are no caches
and no bus cycles: ratios are compared, not times. No statistic contains the instrument's own time.
";

pub fn of(verdicts: &Verdicts) -> String {
    let mut page = format!("{HEAD}\nOf {} claims: {}.\n", verdicts.claims.len(), super::counts(verdicts));
    for (title, mut claims) in verdicts.by_paper().into_iter().filter(|(title, _)| !title.is_empty()) {
        claims.sort_by_key(|claim| place_in_paper(claim.place()));
        page +=
            &format!("\n## {title}\n| where | the paper's claim | paper | here | verdict | measured by |\n");
        page += "| --- | --- | --- | --- | --- | --- |\n";
        for claim in claims {
            page += &row(claim);
        }
    }
    page
}

fn row(claim: &Verdict) -> String {
    let (place, says) = (claim.place(), &claim.says);
    let paper = match claim.paper {
        Some(_) => format!("{} ({})", claim.paper_in_words(), claim.bounds()),
        None => String::new(),
    };
    let second = claim.second.as_ref().map(ToString::to_string);
    let here: Vec<_> =
        [Some(claim.found.clone() + &claim.interval()), second].into_iter().flatten().collect();
    let here = here.join("; ").replace('|', "\\|");
    let cause = if claim.cause.is_empty() { String::new() } else { format!(": {}", claim.cause) };
    let basis = claim.basis();
    let basis = if basis.is_empty() { basis } else { format!("{basis}: ") };
    format!(
        "| {place} | {says} | {paper} | {here} | **{}**{cause} | {basis}`{}` |\n",
        claim.verdict.name(),
        claim.study
    )
}

/// Where a place stands in a paper: sections, tables and figures by their numbers, then what has none.
fn place_in_paper(place: &str) -> (usize, u32) {
    let kinds = ["section", "table", "figure"];
    let kind = kinds.iter().position(|kind| place.starts_with(kind)).unwrap_or(kinds.len());
    let words = || place.split(|c: char| !c.is_ascii_alphanumeric());
    let arabic = words().find_map(|word| word.parse().ok());
    let roman = ["I", "II", "III", "IV", "V", "VI"];
    let number = arabic.or_else(|| {
        let position = words().find_map(|word| roman.iter().position(|one| *one == word));
        position.map(|position| position as u32 + 1)
    });
    // Figure 4.3 comes after figure 4.2.
    let minor = place.split_once('.').and_then(|(_, minor)| minor.get(..1)?.parse::<u32>().ok()).unwrap_or(0);
    (kind, number.unwrap_or(0) * 10 + minor)
}
