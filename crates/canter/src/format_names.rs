//! Formats of recordings as the command line names them: for `--format`, its help and its completions, and for errors that
//! list them. All texts come from the rows of the table of formats.

use canter_formats::{FORMATS, Format, list_extensions};
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
    list_extensions(FORMATS, |row| is_written(row) && row.grows, "or").replace('.', "")
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
    }
}
