//! Formats of recordings as the command line names them: for `--format`, its help and its completions, and for errors that
//! list them. All texts come from the rows of the table of formats.

use canter_formats::{FORMATS, Format, format::Stamps, list_extensions, list_names, list_titles};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Selects the formats that a command accepts.
type Accepts = fn(&Format) -> bool;

/// Whether a format can be recorded live.
pub fn is_live(format: &Format) -> bool {
    format.append.is_some()
}

/// Whether a format can be written.
pub fn is_written(format: &Format) -> bool {
    format.write.is_some()
}

/// The parser of `--format`, for formats that can be recorded live.
pub fn recorded() -> impl TypedValueParser<Value = &'static Format> {
    parser(is_live)
}

/// The parser of `--format`, for formats that can be written.
pub fn written() -> impl TypedValueParser<Value = &'static Format> {
    parser(is_written)
}

fn parser(accepts: Accepts) -> impl TypedValueParser<Value = &'static Format> {
    let rows = FORMATS.iter().filter(move |format| accepts(format));
    let names = rows.map(|format| PossibleValue::new(format.name).help(format.about));
    PossibleValuesParser::new(names).try_map(|name| {
        canter_formats::named(&name, FORMATS).ok_or_else(|| format!("{name:?} is not a format"))
    })
}

/// The format of a file by its name's extension, if the command accepts it.
pub fn find(path: &std::path::Path, accepts: Accepts) -> Option<&'static Format> {
    canter_formats::by_extension(path, FORMATS).filter(|format| accepts(format))
}

/// The extensions of these formats, as part of a sentence: `.log or .pcapng`.
pub fn extensions(accepts: Accepts) -> String {
    list_extensions(FORMATS, accepts, "or")
}

/// The names of the formats that can be written into a pipe, as part of a sentence: `log, pcapng or csv`.
pub fn growing() -> String {
    list_names(FORMATS, |row| is_written(row) && row.grows, "or")
}

/// What `canter convert` is for.
pub fn conversions() -> String {
    let both = list_titles(FORMATS, is_written, "and");
    let read = list_titles(FORMATS, |row| row.read.is_some() && !is_written(row), "and");
    format!("Convert recordings: {both}; read {read}, too")
}

/// The help of `convert --ns`.
pub fn ns_help() -> String {
    let is_longer =
        |row: &Format| row.keeps.is_some_and(|kept| matches!(kept.stamps, Stamps::Us | Stamps::UsFromFirst));
    format!("In {}, stamps of 9 digits instead of 6", list_extensions(FORMATS, is_longer, "and"))
}

/// The help of `convert --output`.
pub fn output_help() -> String {
    let titles = FORMATS.iter().filter(|format| format.writes_folder()).map(|format| format.title);
    let folders: String = titles.map(|title| format!(", or for {title} the folder")).collect();
    let growing = list_extensions(FORMATS, |row| is_written(row) && row.grows, "and");
    format!("The file{folders}; {growing} also with .zst; `-`: standard output")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_listed_as_in_a_sentence() {
        assert_eq!(extensions(is_live), ".log or .pcapng");
        assert_eq!(extensions(is_written), ".log, .pcapng, .asc, .blf, .mf4, .csv or .parquet");
        assert_eq!(extensions(|format| format.name == "blf"), ".blf");
        let help = "The file, or for Parquet the folder; .log, .pcapng, .asc and .csv also with .zst; `-`: standard output";
        assert_eq!(output_help(), help);
        assert_eq!(growing(), "log, pcapng, asc or csv");
        assert_eq!(ns_help(), "In .log and .asc, stamps of 9 digits instead of 6");
    }
}
