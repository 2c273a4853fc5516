//@ machine: host
//! The tables of docs/formats.md say of each format what its row says.

use canter_formats::{
    FORMATS, Format,
    format::{BusLabel, Directions, ErrorFrames, Stamps},
};
use std::{fs, path::Path};

/// The rows of the first table below a heading, without its head; each row is its cells.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let section = page.split_once(heading).unwrap().1;
    let lines =
        section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    lines.skip(2).map(cells).collect()
}

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats.md")).unwrap()
}

/// What the page says of a format's row, with the options of `canter convert`.
fn kept(format: &Format) -> Option<[&'static str; 5]> {
    let keeps = format.keeps?;
    Some([
        match keeps.stamps {
            Stamps::Ns => "ns",
            Stamps::Us => "µs; ns with `--ns`",
            Stamps::UsFromFirst => "µs since the first frame; ns with `--ns`",
            Stamps::Float => "ns as a floating-point number of seconds",
        },
        match keeps.bus {
            BusLabel::Name => "name",
            BusLabel::Channel => "channel",
            BusLabel::ChannelAndName => "channel and name",
        },
        match keeps.direction {
            Directions::All => "yes",
            Directions::Asked => "with `--direction`",
            Directions::Known => "Rx and Tx",
            Directions::None => "no",
        },
        match keeps.error_frames {
            ErrorFrames::All => "all",
            ErrorFrames::ClassAndData => "class and data",
            ErrorFrames::Presence => "only their occurrence",
        },
        if keeps.dlc_above_8 { "yes" } else { "no" },
    ])
}

#[test]
fn the_page_lists_what_each_format_keeps_as_its_row_does() {
    let mut page = table(&page(), "## What each format keeps");
    for format in FORMATS {
        let Some(kept) = kept(format) else { continue };
        let names = [format!("`.{}`", format.name), format.title.to_owned()];
        let at = page.iter().position(|row| names.contains(&row[0]));
        let wanted = format!("docs/formats.md: | {} | {} |", names[0], kept.join(" | "));
        let row = page.remove(at.unwrap_or_else(|| panic!("the table of what is kept lacks {wanted}")));
        assert_eq!(row[1..], kept, "{wanted}");
    }
    assert!(page.is_empty(), "these are no formats: {page:?}");
}

#[test]
fn the_page_lists_every_format_that_is_read() {
    let mut page = table(&page(), "## Formats that canter reads");
    for format in FORMATS.iter().filter(|format| format.read.is_some()) {
        let word = format.title.split(' ').next().unwrap();
        let at = page.iter().position(|row| row[0].split(' ').next() == Some(word));
        let wanted = format!("docs/formats.md: | {} | which of its entries are read |", format.title);
        page.remove(at.unwrap_or_else(|| panic!("the table of formats that canter reads lacks {wanted}")));
    }
    assert!(page.is_empty(), "these are no formats: {page:?}");
}
