//! docs/papers.md: every claim with its verdict, written by `canter study verdicts --page`.

use super::{Verdict, counts, numbers};
use crate::study::claim::Word;

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

const PAPERS: [(&str, &str); 4] = [
    ("2010", "A Comparison of Linux CAN Drivers and their Applications (2010)"),
    ("2011", "Timing Analysis of a Linux-Based CAN-to-CAN Gateway (2011)"),
    ("2014", "Performance evaluation of Linux CAN-related system calls (2014)"),
    ("WCCD", "Wapice Custom CAN Driver"),
];

pub fn of(verdicts: &[Verdict<'_>]) -> String {
    let counts = counts(verdicts).map(|(word, count)| format!("{count} {}", word.name()));
    let mut page = format!("{HEAD}\nOf {} claims: {}.\n", verdicts.len(), counts.join(", "));
    for (key, title) in PAPERS {
        page += &format!("\n## {title}\n| where | the paper's claim | verdict | figures here | study |\n");
        page += "| --- | --- | --- | --- | --- |\n";
        let of_paper = verdicts.iter().filter(|verdict| verdict.at().starts_with(key));
        for verdict in of_paper {
            let place = verdict.at().split_once(", ").map_or("", |(_, place)| place);
            let outcome = &verdict.outcome;
            let word = match outcome.word {
                Word::Undecided | Word::NotMeasurable => outcome.word.name().to_owned(),
                word => format!("**{}**", word.name()),
            };
            let figures = format!("{}{}", outcome.figures, numbers(outcome)).replace('|', "\\|");
            let boots = if outcome.boots > 1 { format!("; {} boots", outcome.boots) } else { String::new() };
            let (says, study) = (&verdict.claim.says, &verdict.study.name);
            page += &format!("| {place} | {says} | {word} | {figures}{boots} | `{study}` |\n");
        }
    }
    page
}
