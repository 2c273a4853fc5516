//! Formats of recordings as the command line names them: for `--format`, its help and its completions, and for the
//! refusals that list them. All of it comes from the rows of the table of formats.

use canter_formats::{FORMATS, Format, list_extensions};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Which formats a command takes.
type Wanted = fn(&Format) -> bool;

/// A format that can be recorded live.
pub fn is_live(format: &Format) -> bool {
    format.append.is_some()
}

/// A format that can be written.
pub fn is_written(format: &Format) -> bool {
    format.write.is_some()
}

/// A value of `--format` that can be recorded live.
pub fn recorded() -> impl TypedValueParser<Value = &'static Format> {
    parser(is_live)
}

/// A value of `--format` that can be written.
pub fn written() -> impl TypedValueParser<Value = &'static Format> {
    parser(is_written)
}

fn parser(wanted: Wanted) -> impl TypedValueParser<Value = &'static Format> {
    let rows = FORMATS.iter().filter(move |format| wanted(format));
    let names = rows.map(|format| PossibleValue::new(format.name).help(format.about));
    PossibleValuesParser::new(names).try_map(|name| {
        canter_formats::named(&name, FORMATS).ok_or_else(|| format!("{name:?} is not a format"))
    })
}

/// The format of a file by its name's end, if the command takes it.
pub fn by_extension(path: &std::path::Path, wanted: Wanted) -> Option<&'static Format> {
    canter_formats::by_extension(path, FORMATS).filter(|format| wanted(format))
}

/// The extensions of these formats, as a part of a sentence: `.log or .pcapng`.
pub fn extensions(wanted: Wanted) -> String {
    list_extensions(FORMATS, wanted, "or")
}

/// The help of `convert --output`.
pub fn output_help() -> String {
    let titles = FORMATS.iter().filter(|format| format.writes_folder()).map(|format| format.title);
    let folders = titles.collect::<Vec<_>>().join(" or ");
    let growing = list_extensions(FORMATS, |row| is_written(row) && row.grows, "and");
    format!("The file, or for {folders} the folder; {growing} also with .zst; `-`: standard output")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_listed_as_a_sentence_does() {
        assert_eq!(extensions(is_live), ".log or .pcapng");
        assert_eq!(extensions(is_written), ".log, .pcapng, .asc, .blf, .mf4, .csv or .parquet");
        assert_eq!(extensions(|format| format.name == "blf"), ".blf");
        let help = "The file, or for Parquet the folder; .log, .pcapng, .asc and .csv also with .zst; `-`: standard output";
        assert_eq!(output_help(), help);
    }
}
