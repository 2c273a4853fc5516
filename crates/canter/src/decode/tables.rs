//! THE REGISTER: which table a command line means.

use super::{
    Arguments,
    long::Long,
    measurement::Measurement,
    output::{Format, Table},
    text::Text,
    wanted::Wanted,
    wide::Wide,
};
use crate::databases::Databases;
use canter_cli::failure::{self, Exit, Failure};

/// The format of a command line.
pub fn format(arguments: &Arguments) -> failure::Result<Format> {
    let path = &arguments.output;
    let usage = |reason: &str| Err(Failure::new(Exit::Usage, format!("{}: {reason}", path.display())));
    let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
    let format = match (arguments.format, extension.as_deref()) {
        (Some(format), _) => format,
        (None, _) if path.as_os_str() == "-" => {
            if arguments.wide {
                Format::Csv
            } else {
                Format::Text
            }
        }
        (None, Some("csv")) => Format::Csv,
        (None, Some("mf4")) => Format::Mf4,
        (None, Some("txt")) => Format::Text,
        (None, Some("parquet")) => Format::Parquet,
        (None, _) => {
            return usage("unknown format (end the name in .csv, .mf4, .txt or .parquet, or give --format)");
        }
    };
    if format == Format::Parquet && !cfg!(feature = "parquet") {
        return usage("this build is without the feature `parquet`");
    }
    if arguments.wide && format != Format::Csv {
        return usage("--wide makes CSV (end the name in .csv, or give --format csv)");
    }
    if arguments.vehicle.is_some() && format != Format::Parquet {
        return usage("only Parquet stores --vehicle");
    }
    if matches!(format, Format::Parquet | Format::Mf4) && path.as_os_str() == "-" {
        return usage("this format needs a name (-o)");
    }
    Ok(format)
}

/// Opens the table of a command line.
pub fn open<'a>(
    arguments: &'a Arguments,
    format: Format,
    databases: &'a Databases,
    wanted: &'a Wanted,
) -> failure::Result<Box<dyn Table + 'a>> {
    Ok(match format {
        Format::Text => Box::new(Text::new(arguments, wanted)?),
        Format::Csv if arguments.wide => Box::new(Wide::new(arguments, databases, wanted)?),
        Format::Csv => Box::new(Long::new(arguments, wanted)?),
        Format::Mf4 => Box::new(Measurement::new(arguments, wanted)?),
        #[cfg(feature = "parquet")]
        Format::Parquet => Box::new(super::parquet::DataSet::new(arguments, wanted)?),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => unreachable!("refused by its name"),
    })
}
