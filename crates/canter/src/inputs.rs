//! Every text that the program reads, as a table: for the fuzzer, and for the test that reads again what it has found.
//! Recordings are not here; they are the rows of [`canter_formats::FORMATS`].

use crate::{cli::COMMANDS, service::configuration::Configuration};
use canter_cli::program::Program;
use canter_frame::{Filters, Frame, LogLine};
use canter_lab::study;
use canter_measure::{result::ResultFile, verdicts::Verdicts};
use canter_route::{rules, traffic::car};
use canter_signals::Database;
use std::path::Path;

/// A kind of input.
pub struct Input {
    /// The name of the input and of its folder of seeds.
    pub name: &'static str,
    /// Reads any bytes, and must answer with a value or an error.
    pub read: fn(&[u8]),
}

/// Every kind of input but recordings.
pub static INPUTS: &[Input] = &[
    Input { name: "rules", read: read_rules },
    Input { name: "cangw", read: read_cangw },
    Input { name: "car", read: read_car },
    Input { name: "dbc", read: read_dbc },
    Input { name: "study", read: read_study },
    Input { name: "result", read: read_result },
    Input { name: "verdicts", read: read_verdicts },
    Input { name: "journal", read: read_journal },
    Input { name: "service", read: read_service },
    Input { name: "notation", read: read_notation },
    Input { name: "netlink", read: canter_io::netlink::decode_any },
];

/// The name of the input in errors.
const NAME: &str = "input";

/// Calls `read` if the bytes are text: the program refuses all other files before it parses them.
fn as_text(bytes: &[u8], read: impl FnOnce(&str)) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        read(text);
    }
}

fn read_rules(bytes: &[u8]) {
    as_text(bytes, |text| {
        if let Ok(set) = rules::read::parse(NAME, text) {
            rules::write::file(&set, |_, _| Vec::new());
        }
    });
}

fn read_cangw(bytes: &[u8]) {
    as_text(bytes, |text| {
        if let Ok(set) = rules::command::import::parse(text) {
            rules::write::file(&set, |_, _| Vec::new());
        }
    });
}

fn read_car(bytes: &[u8]) {
    as_text(bytes, |text| drop(car::read(Path::new(NAME), text)));
}

fn read_dbc(bytes: &[u8]) {
    as_text(bytes, |text| {
        if let Ok(database) = Database::parse(text) {
            let values = database.messages.iter().flat_map(|message| message.values(bytes));
            for (signal, value) in values {
                let _ = signal.pattern(value); // any answer is right, a panic is not
            }
        }
    });
}

fn read_study(bytes: &[u8]) {
    as_text(bytes, |text| drop(study::check_study_file(NAME, text)));
}

fn read_result(bytes: &[u8]) {
    if let Ok(result) = ResultFile::read(Path::new(NAME), bytes.to_vec()) {
        result.to_json();
    }
}

fn read_verdicts(bytes: &[u8]) {
    as_text(bytes, |text| {
        if let Ok(verdicts) = Verdicts::parse(Path::new(NAME), text) {
            verdicts.to_json();
        }
    });
}

fn read_journal(bytes: &[u8]) {
    as_text(bytes, |text| drop(study::check_journal(Path::new(NAME), text)));
}

fn read_service(bytes: &[u8]) {
    as_text(bytes, |text| {
        let program = Program(COMMANDS);
        let file = Configuration::new(Path::new(NAME), text.to_owned(), &program);
        let _ = file.rules();
        for kind in ["capture", "gateway"] {
            for name in file.names(kind).unwrap_or_default() {
                let _ = file.part(kind, &name);
            }
        }
    });
}

/// A frame, a line of a log and filters, each of which is printed so that it reads back.
fn read_notation(bytes: &[u8]) {
    as_text(bytes, |text| {
        if let Ok(frame) = text.parse::<Frame>() {
            assert_eq!(frame.to_string().parse(), Ok(frame), "{text:?}");
        }
        if let Ok(Some(line)) = LogLine::parse(text) {
            assert_eq!(LogLine::parse(&format!("{line:.9}")), Ok(Some(line)), "{text:?}");
        }
        if let Ok(filters) = text.parse::<Filters>() {
            assert_eq!(filters.to_string().parse(), Ok(filters), "{text:?}");
        }
    });
}
