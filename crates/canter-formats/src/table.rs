//! THE REGISTER: the formats that this crate knows. A row is defined in its format's own file.

#[cfg(feature = "mdf")]
use crate::mdf;
#[cfg(feature = "parquet")]
use crate::parquet;
use crate::{asc, blf, candump_log, csv, format::Format, pcap, pcapng, screen, table_csv, trc};
use std::path::Path;

/// Every format, in the order in which a file is tried and in which formats are listed.
pub static FORMATS: &[Format] = &[
    candump_log::ROW,
    pcap::ROW,
    pcapng::ROW,
    asc::ROW,
    blf::ROW,
    #[cfg(feature = "mdf")]
    mdf::ROW,
    csv::ROW,
    #[cfg(feature = "parquet")]
    parquet::ROW,
    trc::ROW,
    screen::ROW,
    table_csv::PYTHON_CAN,
    table_csv::GVRET,
];

/// The formats that this build lacks, for a sentence that lists those that it has.
pub(crate) const WITHOUT: &str = match (cfg!(feature = "mdf"), cfg!(feature = "parquet")) {
    (true, true) => "",
    (true, false) => "; this build is without the feature `parquet`",
    (false, true) => "; this build is without the feature `mdf`",
    (false, false) => "; this build is without the features `mdf` and `parquet`",
};

/// The format of this name.
pub fn named<'a>(name: &str, formats: &'a [Format]) -> Option<&'a Format> {
    formats.iter().find(|format| format.name == name)
}

/// The format of a file by its name's end; `.zst` behind the extension is ignored.
pub fn by_extension(path: impl AsRef<Path>, formats: &[Format]) -> Option<&Format> {
    let name = path.as_ref().file_name()?.to_str()?.to_ascii_lowercase();
    let (_, extension) = name.strip_suffix(".zst").unwrap_or(&name).rsplit_once('.')?;
    formats.iter().find(|format| format.extensions.contains(&extension))
}

/// The usual extensions of some formats for a sentence, with `word` before the last: `.log, .pcapng or .asc`.
pub fn list_extensions(formats: &[Format], wanted: fn(&Format) -> bool, word: &str) -> String {
    let rows = formats.iter().filter(|format| wanted(format));
    listed(rows.filter_map(|row| Some(format!(".{}", row.extensions.first()?))).collect(), word)
}

/// The names of some formats for a sentence: `log, pcapng or asc`.
pub fn list_names(formats: &[Format], wanted: fn(&Format) -> bool, word: &str) -> String {
    listed(formats.iter().filter(|format| wanted(format)).map(|row| row.name.to_owned()).collect(), word)
}

/// The titles of some formats for a sentence: `candump log, pcapng and ASC`.
pub fn list_titles(formats: &[Format], wanted: fn(&Format) -> bool, word: &str) -> String {
    listed(formats.iter().filter(|format| wanted(format)).map(|row| row.title.to_owned()).collect(), word)
}

fn listed(words: Vec<String>, word: &str) -> String {
    match words.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} {word} {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_listed_for_a_sentence() {
        let list = |wanted| list_extensions(FORMATS, wanted, "or");
        assert_eq!(list(|format| format.append.is_some()), ".log or .pcapng");
        assert_eq!(list(|format| format.name == "blf"), ".blf");
        assert_eq!(list(|_| false), "");
        assert_eq!(list_names(FORMATS, |format| format.name == "gvret", "and"), "gvret");
        assert_eq!(list_titles(FORMATS, |format| format.append.is_some(), "and"), "candump log and pcapng");
    }

    fn name_by_extension(path: &str) -> Option<&'static str> {
        by_extension(Path::new(path), FORMATS).map(|format| format.name)
    }

    #[test]
    fn a_format_is_found_by_its_name_and_by_its_extension() {
        for format in FORMATS {
            assert_eq!(named(format.name, FORMATS).map(|found| found.title), Some(format.title));
            for extension in format.extensions {
                assert_eq!(name_by_extension(&format!("a.b/c.{extension}")), Some(format.name));
            }
        }
        assert_eq!(name_by_extension("DRIVE.LOG.zst"), Some("log"));
        assert_eq!(name_by_extension("log"), None);
        assert_eq!(name_by_extension("drive.zst"), None);
    }

    #[test]
    fn rows_are_consistent() {
        for format in FORMATS {
            let name = format.name;
            assert_eq!(format.recognise.is_some(), format.read.is_some(), "{name}");
            assert_eq!(format.write.is_some(), format.keeps.is_some(), "{name}");
            assert!(format.append.is_none() || format.grows, "{name}: what is recorded live only grows");
            assert!(!(format.grows && format.writes_folder()), "{name}: a folder cannot be piped");
        }
    }

    #[test]
    fn the_beginning_of_a_file_is_of_one_format_only() {
        let heads: [&[u8]; 12] = [
            b"(1700000000.000000) can0 123#\n",
            &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0],
            &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0],
            b"date Sun Nov 22 00:50:03.408 2026\n",
            b"LOGG\x90\0\0\0",
            b"MDF     4.11    canter  ",
            b"stamp,interface,id,extended,rtr,fd,brs,esi,error,dlc,len,data,direction\n",
            b"PAR1",
            b";$FILEVERSION=2.1\n",
            b" (000.000000)  can0  123   [2]  11 22\n",
            b"timestamp,arbitration_id,extended,remote,error,dlc,data\n",
            b"Time Stamp,ID,Extended,Dir,Bus,LEN,D1\n",
        ];
        for head in heads {
            let count = FORMATS.iter().filter(|row| row.recognise.is_some_and(|is| is(head))).count();
            let missing = !cfg!(feature = "mdf") && head.starts_with(b"MDF")
                || !cfg!(feature = "parquet") && head == b"PAR1";
            assert_eq!(count, usize::from(!missing), "{:?}", String::from_utf8_lossy(head));
        }
    }
}
