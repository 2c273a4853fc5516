//! A whole car: a TOML file of buses, with the identifiers on each and their periods. docs/traffic.md lists the keys.

use super::{
    content::{Data, Ids, Lengths, fd_len},
    recipe::Recipe,
    source::Periodic,
};
use canter_cli::{
    document::{Document, Table},
    duration,
    failure::Result,
    trouble,
};
use canter_io::frame::{BRS, BitRate, SFF_MASK};
use std::path::Path;

/// A bus of the car.
pub struct Bus {
    /// The interface it is sent to.
    pub interface: String,
    /// In bit/s, if the file has it.
    pub rate: Option<BitRate>,
    pub frames: Vec<Periodic>,
}

const CAR_KEYS: &[&str] = &["bus"];
const BUS_KEYS: &[&str] = &["interface", "bitrate", "data-bitrate", "frame"];
const FRAME_KEYS: &[&str] =
    &["name", "id", "extended", "period", "phase", "jitter", "len", "data", "fd", "brs", "rtr"];

/// Reads a car.
pub fn load(path: &Path) -> Result<Vec<Bus>> {
    let text = trouble::read_text(path)?;
    read(path, &text)
}

/// Reads a car from a text; `path` is its name in errors.
pub fn read(path: &Path, text: &str) -> Result<Vec<Bus>> {
    let document = Document::new(path.display(), text);
    let parsed = document.parse()?;
    let buses = some_tables(&document.table(&parsed, 0..0, CAR_KEYS)?, "bus", BUS_KEYS)?;
    let mut car: Vec<Bus> = Vec::new();
    for table in &buses {
        let bus = bus(table)?;
        if car.iter().any(|one| one.interface == bus.interface) {
            let name = bus.interface;
            return table.fault(&table.span, format!("interface {name:?} already has a [[bus]]"));
        }
        car.push(bus);
    }
    Ok(car)
}

/// The tables of `[[key]]`; at least one.
fn some_tables<'t, 'a>(table: &Table<'t, 'a>, key: &str, known: &[&str]) -> Result<Vec<Table<'t, 'a>>> {
    let tables = table.tables(key, known)?;
    if tables.is_empty() { table.fault(&table.span, format!("[[{key}]] is missing")) } else { Ok(tables) }
}

fn bus(table: &Table<'_, '_>) -> Result<Bus> {
    let (interface, _) = table.needed_text("interface")?;
    let rate = |text: &str| match text.parse() {
        Ok(rate @ 1_000..=20_000_000_u32) => Ok(rate),
        _ => Err("must be 1000…20000000 bit/s".to_owned()),
    };
    let nominal = table.parsed("bitrate", rate)?;
    let data = table.parsed("data-bitrate", rate)?;
    let rate = match (nominal, data) {
        (None, Some((_, span))) => return table.fault(&span, "data-bitrate: needs bitrate"),
        (nominal, data) => {
            nominal.map(|(nominal, _)| BitRate { nominal, data: data.map_or(nominal, |(data, _)| data) })
        }
    };
    let tables = some_tables(table, "frame", FRAME_KEYS)?;
    let count = tables.len() as u64;
    let mut frames = Vec::new();
    for (at, table) in (0..).zip(&tables) {
        frames.push(frame(table, at, count)?);
    }
    Ok(Bus { interface: interface.to_owned(), rate, frames })
}

/// Frame `at` of `count` on its bus.
fn frame(table: &Table<'_, '_>, at: u64, count: u64) -> Result<Periodic> {
    let (period_ns, span) = table.need("period", table.parsed("period", duration::parse_ns)?)?;
    if period_ns == 0 {
        return table.fault(&span, "period: must be more than 0");
    }
    let phase = table.parsed("phase", duration::parse_ns)?;
    let jitter = table.parsed("jitter", duration::parse_ns)?;
    if let Some((jitter_ns, span)) = &jitter
        && *jitter_ns >= period_ns
    {
        return table.fault(span, "jitter: must be less than the period, to keep the order of frames");
    }
    // Without a phase, frames are spread over their period, so that those of the same period do not form a burst.
    let spread_ns = (u128::from(period_ns) * u128::from(at) / u128::from(count)) as u64;
    Ok(Periodic {
        recipe: recipe(table)?,
        period_ns,
        phase_ns: phase.map_or(spread_ns, |(ns, _)| ns),
        jitter_ns: jitter.map_or(0, |(ns, _)| ns),
    })
}

fn recipe(table: &Table<'_, '_>) -> Result<Recipe> {
    let (id, extended) = identifier(table)?;
    let flag = |key| table.flag(key).map(|on| on.unwrap_or(false));
    let (brs, fd) = (flag("brs")?, flag("fd")? || flag("brs")?);
    let data = table.parsed("data", str::parse)?.map_or(Data::Increment, |(data, _)| data);
    let lengths = match table.parsed("len", str::parse)? {
        Some((Lengths::Fixed(bytes), span)) if fd && fd_len(bytes) != bytes => {
            return table.fault(&span, "len: an FD frame has 0…8, 12, 16, 20, 24, 32, 48 or 64 bytes");
        }
        Some((lengths, _)) => lengths,
        None => Lengths::Fixed(8),
    };
    let recipe = Recipe {
        ids: Ids::Fixed(id),
        extended,
        lengths,
        data,
        fd,
        flags: if brs { BRS } else { 0 },
        rtr: flag("rtr")?,
        len8_dlc: false,
        mix: false,
    };
    recipe.fault().map_or(Ok(recipe), |fault| table.fault(&table.span, fault))
}

/// As text, candump's notation: 3 digits standard, 8 extended. As a number, extended when it does not fit 11 bits.
fn identifier(table: &Table<'_, '_>) -> Result<(u32, bool)> {
    let number = table.get("id").is_some_and(|value| value.get_ref().is_integer());
    let read = |text: &str| {
        let radix = if number { 10 } else { 16 };
        let id = u32::from_str_radix(text, radix).ok().filter(|&id| id <= canter_io::frame::EFF_MASK);
        match (id, text.len()) {
            (Some(id), _) if number => Ok((id, id > SFF_MASK)),
            (Some(id), 3) if id <= SFF_MASK => Ok((id, false)),
            (Some(id), 8) => Ok((id, true)),
            _ => {
                Err("must be \"123\" (000…7FF), \"12345678\" (extended, to 1FFFFFFF), or a number".to_owned())
            }
        }
    };
    let ((id, extended), _) = table.need("id", table.parsed("id", read)?)?;
    Ok((id, extended || table.flag("extended")?.unwrap_or(false)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn car(text: &str) -> std::result::Result<Vec<Bus>, String> {
        read(Path::new("car.toml"), text).map_err(|failure| failure.to_string())
    }

    #[test]
    fn the_example_of_the_documentation_is_a_car() {
        let car = car(include_str!("../../../../docs/car.toml")).unwrap();
        assert_eq!(car.iter().map(|bus| bus.interface.as_str()).collect::<Vec<_>>(), ["can0", "can2"]);
        assert!(car.iter().all(|bus| bus.rate.is_some() && bus.frames.len() > 3));
    }

    #[test]
    fn frames_without_a_phase_are_spread_over_their_period() {
        let text =
            "[[bus]]\ninterface = 'a'\n".to_owned() + &"[[bus.frame]]\nid = 1\nperiod = '10ms'\n".repeat(4);
        let phases: Vec<u64> = car(&text).unwrap()[0].frames.iter().map(|frame| frame.phase_ns).collect();
        assert_eq!(phases, [0, 2_500_000, 5_000_000, 7_500_000]);
    }

    #[test]
    fn errors_have_their_place_and_the_way_out() {
        let frame = |lines: &str| format!("[[bus]]\ninterface = \"can0\"\n[[bus.frame]]\n{lines}\n");
        for (text, expected) in [
            ("", "car.toml:1:1: [[bus]] is missing"),
            ("[[buss]]", "car.toml:1:3: \"buss\": unknown key (did you mean \"bus\"?)"),
            ("bus = 5", "car.toml:1:7: bus: must be written as [[bus]]"),
            ("[[bus]]\ninterface = 'a'\ncolour = 3", "known: interface, bitrate, data-bitrate, frame)"),
            ("[[bus]]\n\nfoo", "car.toml:3:4: "),
            ("[[bus]]\ninterface = true", "car.toml:2:13: interface: must be a string, not a boolean"),
            ("[[bus]]\ninterface = 'a'\nbitrate = 5", "car.toml:3:11: bitrate: must be 1000…20000000 bit/s"),
            (
                &frame("id = '123'\nperod = '1ms'"),
                "car.toml:5:1: \"perod\": unknown key (did you mean \"period\"?)",
            ),
            (&frame("id = '123'"), "car.toml:3:1: \"period\" is missing"),
            (&frame("period = '1ms'"), "car.toml:3:1: \"id\" is missing"),
            (&frame("id = '1234'\nperiod = '1ms'"), "car.toml:4:6: id: must be \"123\" (000…7FF)"),
            (&frame("id = '123'\nperiod = '1'"), "car.toml:5:10: period: \"1\" is not a duration"),
            (&frame("id = '123'\nperiod = '0ms'"), "car.toml:5:10: period: must be more than 0"),
            (
                &frame("id = '123'\nperiod = '1ms'\njitter = '1ms'"),
                "car.toml:6:10: jitter: must be less than",
            ),
            (&frame("id = '123'\nperiod = '1ms'\nlen = 9"), "car.toml:3:1: length 9: a classic frame has"),
            (&frame("id = '123'\nperiod = '1ms'\nlen = 9\nfd = true"), "car.toml:6:7: len: an FD frame has"),
            (&frame("id = '123'\nperiod = '1ms'\ndata = 'xyz1'"), "car.toml:6:8: data: must be r, i, or"),
            (
                &frame("id = '123'\nperiod = '1ms'\nfd = 1"),
                "car.toml:6:6: fd: must be true or false, not a number",
            ),
        ] {
            let error = car(text).err().unwrap_or_else(|| panic!("{text}"));
            assert!(error.contains(expected) && !error.contains('\n'), "{text}\n{error}");
        }
    }

    #[test]
    fn identifiers_are_candumps_text_or_a_number() {
        for (id, expected) in [
            ("'123'", (0x123, false)),
            ("'00000123'", (0x123, true)),
            ("0x123", (0x123, false)),
            ("0x1234", (0x1234, true)),
            ("291\nextended = true", (0x123, true)),
        ] {
            let text = format!("[[bus]]\ninterface = 'a'\n[[bus.frame]]\nperiod = '1s'\nid = {id}");
            let recipe = car(&text).unwrap()[0].frames[0].recipe;
            assert_eq!((recipe.ids, recipe.extended), (Ids::Fixed(expected.0), expected.1), "{id}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[\\[\\]a-z='0-9 .\n]{0,200}") {
            let _ = car(&text);
            let _ = car(&format!("[[bus]]\ninterface = 'a'\n[[bus.frame]]\nid = '123'\nperiod = '1ms'\n{text}"));
        }
    }
}
