//! docs/papers.md: every claim with its verdict, written by `canter study verdicts --page`.

use canter_measure::verdicts::{Verdicts, Word};

const HEAD: &str = "\
# The papers' claims, today
<!-- Written by `canter study verdicts RESULTS --page`: do not edit. Claims stand in studies/*.toml. -->
Each sentence of the papers on which canter builds, with a criterion and the verdict that the kept results give:
**reproduced** (the whole interval lies within the bounds), **refuted** (it lies outside), **undecided** (it contains a
bound, or the series cannot carry a judgement) or **not measurable here**. Bounds derive from the paper's own number and
stand in the study file. [studies.md](studies.md#claims) says how they are decided.

    canter study run 2011-fig8                  measures one of them again, in the lab
    canter study verdicts canter-results        decides every claim by what is in a folder

All times are of the lab's virtual clock, where an instruction takes 1 ns (or what a study says) and there are no caches and
no bus cycles: ratios are compared, not times.
";

pub fn of(verdicts: &Verdicts) -> String {
    let mut page = format!("{HEAD}\nOf {} claims: {}.\n", verdicts.claims.len(), super::counts(verdicts));
    for (title, claims) in verdicts.by_paper().into_iter().filter(|(title, _)| !title.is_empty()) {
        page += &format!("\n## {title}\n| where | the paper's claim | verdict | found here | study |\n");
        page += "| --- | --- | --- | --- | --- |\n";
        for claim in claims {
            let word = match claim.verdict {
                Word::Undecided | Word::NotMeasurable => claim.verdict.name().to_owned(),
                word => format!("**{}**", word.name()),
            };
            let found = format!("{}{}", claim.found, claim.numbers()).replace('|', "\\|");
            let boots = if claim.boots > 1 { format!("; {} boots", claim.boots) } else { String::new() };
            let (place, says, study) = (claim.place(), &claim.says, &claim.study);
            page += &format!("| {place} | {says} | {word} | {found}{boots} | `{study}` |\n");
        }
    }
    page
}
