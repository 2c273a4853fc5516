//! `import`: converts the commands that `cangw -L` prints into a rule file. A command has the options of `cangw -A`; lines
//! that do not begin with `cangw` are comments.

use crate::rules::{Kinds, Matching, Policy, RouteRules, Rule, RuleSet, write};
use canter_cli::{
    document::Place,
    failure::{self, Exit, Failure},
    options::Common,
    trouble,
};
use canter_io::{
    filter::INVERSE,
    netlink::can_gw::{Crc8, Modification, Profile, Span, Xor},
};
use std::{fs, io::Read, path::Path};

pub fn run(path: &Path, common: &Common) -> failure::Result {
    let text = if path.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(path)
    };
    let text = text.map_err(|error| trouble::file_failure(path, "read", error))?;
    let set = parse(&text).map_err(|(line, error)| {
        Failure::new(
            Exit::Usage,
            format!("{}:{line}: {error} (the file must be the output of cangw -L)", path.display()),
        )
    })?;
    if common.shows_table() {
        print!("{}", write::file(&set, |_, _| Vec::new()));
    }
    Ok(Exit::Done)
}

/// Parses all commands; jobs of the same direction become one route.
pub fn parse(text: &str) -> Result<RuleSet, (usize, String)> {
    let mut set = RuleSet::default();
    for (at, line) in text.lines().enumerate() {
        let command = line.split('#').next().unwrap_or_default();
        let mut words = command.split_whitespace();
        if words.next() != Some("cangw") {
            continue;
        }
        let (from, to, rule) = job(words).map_err(|error| (at + 1, error))?;
        match set.routes.iter_mut().find(|route| route.from == from && route.to == to) {
            Some(route) => route.policy.rules.push(rule),
            None => {
                let policy = Policy { matching: Matching::All, rules: vec![rule] };
                set.routes.push(RouteRules { from, to, policy, place: Place::default() });
            }
        }
    }
    if set.routes.is_empty() {
        return Err((1, "no cangw -A command".to_owned()));
    }
    Ok(set)
}

/// One job from its options.
fn job<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<(String, String, Rule), String> {
    let (mut from, mut to) = (None, None);
    let mut rule = Rule { kinds: Kinds { classic: true, fd: false }, echo: Some(false), ..Rule::default() };
    while let Some(option) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{option}: the value is missing"));
        match option {
            "-A" => {}
            "-s" => from = Some(value()?.to_owned()),
            "-d" => to = Some(value()?.to_owned()),
            "-X" => rule.kinds = Kinds { classic: false, fd: true },
            "-e" => rule.echo = Some(true),
            "-t" => rule.keep_stamp = true,
            "-i" => rule.same_interface = true,
            "-u" => drop(value()?), // apply sets its own identifiers
            "-l" => {
                rule.hops = Some(value()?.parse().map_err(|_| "-l: must be a number of hops".to_owned())?)
            }
            "-f" => rule.filters.push(filter(value()?)?),
            "-m" | "-M" => modification(value()?, &mut rule, option == "-M")?,
            "-x" => rule.change.xor_checksum = Some(xor(value()?)?),
            "-c" => rule.change.crc8 = Some(crc8(value()?)?),
            "-p" => {
                let crc8 = rule.change.crc8.as_mut().ok_or("-p: must follow -c")?;
                crc8.profile = profile(value()?)?;
            }
            other => return Err(format!("{other}: is not an option of a job")),
        }
    }
    match (from, to) {
        (Some(from), Some(to)) => Ok((from, to, rule)),
        _ => Err("a job needs -s and -d".to_owned()),
    }
}

/// `123:C00007FF`, `123~7FF`: unlike candump's, eight digits do not make an identifier extended.
fn filter(text: &str) -> Result<canter_io::Filter, String> {
    let error = || format!("-f: {text:?} is not ID:MASK or ID~MASK");
    let (id, mask, inverse) = match (text.split_once(':'), text.split_once('~')) {
        (Some((id, mask)), _) => (id, mask, 0),
        (None, Some((id, mask))) => (id, mask, INVERSE),
        _ => return Err(error()),
    };
    let number = |text| u32::from_str_radix(text, 16).map_err(|_| error());
    Ok(canter_io::Filter { id: number(id)? | inverse, mask: number(mask)? })
}

/// `SET:ID:333.0.0000000000000000`, FD `SET:IFLD:333.1.8.00…`.
fn modification(text: &str, rule: &mut Rule, fd: bool) -> Result<(), String> {
    let error =
        || format!("{text:?} is not OPERATION:ELEMENTS:ID.{}LEN.DATA", if fd { "FLAGS." } else { "" });
    let [operation, elements, values] = text.split(':').collect::<Vec<_>>()[..] else { return Err(error()) };
    let change = &mut rule.change;
    let (operand, fill) = match operation {
        "AND" => (&mut change.and, 0xff),
        "OR" => (&mut change.or, 0),
        "XOR" => (&mut change.xor, 0),
        "SET" => (&mut change.set, 0),
        _ => return Err(error()),
    };
    let parts: Vec<_> = values.split('.').collect();
    let (id, flags, len, bytes) = match (fd, &parts[..]) {
        (false, [id, len, data]) => (id, "0", len, data),
        (true, [id, flags, len, data]) => (id, *flags, len, data),
        _ => return Err(error()),
    };
    let number = |text: &str| u32::from_str_radix(text, 16).map_err(|_| error());
    let byte = |text: &str| u8::from_str_radix(text, 16).map_err(|_| error());
    let has = |element: char| elements.contains(element);
    let mut data = [if fd { 0 } else { fill }; 64];
    let bytes = hex(bytes).filter(|bytes| bytes.len() == if fd { 64 } else { 8 });
    let bytes = if has('D') { bytes.ok_or_else(error)? } else { Vec::new() };
    data[..bytes.len()].copy_from_slice(&bytes);
    *operand = Modification {
        id: if has('I') { Some(number(id)?) } else { None },
        len: if has('L') { Some(byte(len)?) } else { None },
        flags: if has('F') && fd { Some(byte(flags)?) } else { None },
        data: has('D').then_some(data),
    };
    Ok(())
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let pairs = (0..text.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

/// `FROM:TO:RESULT:…`: three decimal positions, and the rest.
fn span(text: &str) -> Option<(Span, Vec<&str>)> {
    let mut parts = text.split(':');
    let mut position = || parts.next()?.parse::<i8>().ok();
    let span = Span::new(position()?, position()?, position()?);
    Some((span, parts.collect()))
}

/// `0:6:7:a5`.
fn xor(text: &str) -> Result<Xor, String> {
    let parsed = span(text).and_then(|(span, rest)| match rest[..] {
        [init] => Some(Xor { span, init: u8::from_str_radix(init, 16).ok()? }),
        _ => None,
    });
    parsed.ok_or_else(|| format!("-x: {text:?} is not FROM:TO:RESULT:INIT"))
}

/// `0:6:7:ff:ff:TABLE`, the table of 256 bytes.
fn crc8(text: &str) -> Result<Crc8, String> {
    let parsed = span(text).and_then(|(span, rest)| match rest[..] {
        [init, last, table] => {
            let byte = |text| u8::from_str_radix(text, 16).ok();
            let table = hex(table)?.try_into().ok()?;
            Some(Crc8 { init: byte(init)?, final_xor: byte(last)?, table, ..Crc8::with_polynomial(0, span) })
        }
        _ => None,
    });
    parsed.ok_or_else(|| format!("-c: {text:?} is not FROM:TO:RESULT:INIT:XOR:TABLE"))
}

/// `1:A5`, `2:` and 16 bytes, `3:`; cangw -L prints all 20 bytes of the profile's data.
fn profile(text: &str) -> Result<Profile, String> {
    let parsed = text.split_once(':').and_then(|(number, data)| {
        let data = hex(data)?;
        Some(match number {
            "0" => Profile::None,
            "1" => Profile::Value(*data.first()?),
            "2" => Profile::Counter(*data.first_chunk()?),
            "3" => Profile::Identifier,
            _ => return None,
        })
    });
    parsed.ok_or_else(|| format!("-p: {text:?} is not 1:BYTE, 2:16 BYTES or 3:"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::read;
    use proptest::prelude::*;

    #[test]
    fn commands_of_cangw_become_rules() {
        let table: String = Crc8::with_polynomial(0x1d, Span::default())
            .table
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect();
        let text = format!(
            "cangw -A -s can0 -d can1 -e -f 123:C00007FF -m SET:I:456.0.0000000000000000 -x 0:6:7:A5 # 1 handled 0 dropped 0 deleted\n\
             cangw -A -s can0 -d can1 -X -t -i -l 2 -M AND:FD:000.1.0.{} -c 0:-2:-1:ff:0f:{table} -p 1:5A00\n\
             something else\n",
            "F0".repeat(64)
        );
        let set = parse(&text).unwrap();
        assert_eq!((set.routes.len(), set.routes[0].policy.matching), (1, Matching::All));
        let [first, second] = &set.routes[0].policy.rules[..] else { panic!("two rules") };
        assert_eq!(first.echo, Some(true));
        assert_eq!(first.filters, [canter_io::Filter { id: 0x123, mask: 0xc000_07ff }]);
        assert_eq!(first.change.set, Modification::from_id(0x456));
        assert_eq!(first.change.xor_checksum, Some(Xor { span: Span::new(0, 6, 7), init: 0xa5 }));
        assert_eq!(
            (second.kinds.fd, second.keep_stamp, second.same_interface, second.hops),
            (true, true, true, Some(2))
        );
        assert_eq!((second.change.and.flags, second.change.and.data), (Some(1), Some([0xf0; 64])));
        let crc8 = second.change.crc8.unwrap();
        assert_eq!((crc8.table[1], crc8.final_xor, crc8.profile), (0x1d, 0x0f, Profile::Value(0x5a)));
        assert_eq!(read::parse("written", &write::file(&set, |_, _| vec![])).unwrap(), set);
    }

    #[test]
    fn malformed_commands_are_refused_with_their_line() {
        for (text, expected) in [
            ("", "no cangw -A command"),
            ("cangw -A -s can0", "a job needs -s and -d"),
            ("cangw -A -s can0 -d", "-d: the value is missing"),
            ("cangw -A -s a -d b -f 12", "-f: \"12\" is not"),
            ("cangw -A -s a -d b -m SET:I:1.2", "not OPERATION:ELEMENTS"),
            ("cangw -A -s a -d b -q", "-q: is not an option"),
        ] {
            let (line, error) = parse(text).unwrap_err();
            assert!(line == 1 && error.contains(expected), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(cangw|-A|-s|-d|-f|-m|-M|-x|-c|-p| |[0-9a-fA-F:.~]{1,8}|\\PC|\n){0,30}") {
            let _ = parse(&text);
        }
    }
}
