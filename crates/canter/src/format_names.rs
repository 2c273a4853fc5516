//! Formats of recordings as the command line names them, for `--format`, its help and its completions.

use canter_formats::{Kind, write::Target};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// The formats that can be recorded live.
pub fn recorded() -> impl TypedValueParser<Value = Kind> {
    let names = Kind::ALL.map(|kind| PossibleValue::new(kind.name()).help(kind.about()));
    PossibleValuesParser::new(names).try_map(|name| find(&Kind::ALL, &name, Kind::name))
}

/// The formats that can be written.
pub fn written() -> impl TypedValueParser<Value = Target> {
    let names = Target::ALL.map(|target| PossibleValue::new(target.name()).help(target.about()));
    PossibleValuesParser::new(names).try_map(|name| find(&Target::ALL, &name, Target::name))
}

fn find<T: Copy>(all: &[T], name: &str, name_of: fn(T) -> &'static str) -> Result<T, String> {
    all.iter().copied().find(|&one| name_of(one) == name).ok_or_else(|| format!("{name:?} is no format"))
}
