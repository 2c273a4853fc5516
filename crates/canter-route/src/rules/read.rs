//! Reads a rule file; docs/rules.md describes it. Errors have their position in the file.

use super::{
    Change, Convert, Kinds, Limit, Matching, Policy, RouteRules, Rule, RuleSet, graph,
    lookup::RULES_MAX,
    select,
    signals::{self, Databases, Load},
};
use canter_cli::{
    document::{Document, Table, instead},
    duration,
    failure::{Exit, Failure, Result},
};
use canter_io::{
    Filter,
    carrier::{self, Access},
    frame::{EFF_FLAG, ERR_FLAG},
    netlink::can_gw::{Crc8, Modification, Profile, Span, Xor},
};
use canter_signals::Database;
use std::{ops::Range, path::Path, sync::LazyLock};
use toml::de::DeValue;

const FILE: &[&str] = &["route", "rule", "match", "dbc"];
const RULE: &[&str] = &[
    "name",
    "frames",
    "filter",
    "drop",
    "and",
    "or",
    "xor",
    "set",
    "crc8",
    "xor-checksum",
    "limit",
    "burst",
    "convert",
    "hops",
    "echo",
    "keep-stamp",
    "same-interface",
];
/// Keys of a route. It has those of a rule too: a route without `[[route.rule]]` is a rule itself.
static ROUTE: LazyLock<Vec<&str>> =
    LazyLock::new(|| [&["from", "to", "both", "match", "dbc", "rule"], RULE].concat());
/// Keys that a route may set for all its rules.
const SHARED: &[&str] = &["hops", "echo", "keep-stamp", "same-interface"];
const OPERAND: &[&str] = &["id", "len", "flags", "data"];
const XOR: &[&str] = &["from", "to", "result", "init"];
const CRC8: &[&str] =
    &["from", "to", "result", "init", "final-xor", "polynomial", "table", "profile", "profile-data"];

/// Reads a file from disk, and the databases that it names, which lie in the file's folder.
pub fn file(path: &Path) -> Result<RuleSet> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let load = |name: &str| Database::open(folder.join(name)).map_err(|error| error.to_string());
    parse_with(&path.display().to_string(), &canter_cli::trouble::read_text(path)?, &load)
}

/// Reads a rule file for commands that need interfaces: refuses a file of rules without a route.
pub fn routes(path: &Path) -> Result<RuleSet> {
    let set = file(path)?;
    if set.loose.is_some() {
        let reason =
            "has rules without a route (add [[route]] with from and to, or use canter gateway --rules)";
        return Err(Failure::new(Exit::Usage, format!("{}: {reason}", path.display())));
    }
    Ok(set)
}

/// Reads a text that names no databases; `file` is its name in errors.
pub fn parse(file: &str, text: &str) -> Result<RuleSet> {
    parse_with(file, text, &|name| Err(format!("{name}: only a file of rules may name databases")))
}

/// Reads a text; `load` opens the databases that it names.
fn parse_with(file: &str, text: &str, load: Load<'_>) -> Result<RuleSet> {
    let document = Document::new(file, text);
    let parsed = document.parse()?;
    let top = document.table(&parsed, 0..0, FILE)?;
    let mut set = RuleSet::default();
    let databases = Databases::read(&top, load)?.unwrap_or_default();
    for table in top.tables("route", &ROUTE)? {
        let of_route = Databases::read(&table, load)?;
        route(&table, of_route.as_ref().unwrap_or(&databases), &mut set.routes)?;
    }
    let loose = rules(&top, &Rule::default(), &databases)?;
    if !loose.is_empty() {
        set.loose = Some(Policy { matching: matching(&top)?, rules: loose });
    }
    match (&set.loose, set.routes.is_empty()) {
        (Some(_), false) => {
            let span = top.first_key(&["rule"]).map_or(0..0, |(_, span)| span);
            return top
                .fault(&span, "a rule outside of a route, in a file that has routes (use [[route.rule]])");
        }
        (None, true) => return top.fault(&top.span, "the file has neither a [[route]] nor a [[rule]]"),
        _ => {}
    }
    if let Some((place, message)) = graph::conflict(&set.routes) {
        return Err(document.failure_at(place, message));
    }
    Ok(set)
}

fn route(table: &Table<'_, '_>, databases: &Databases, routes: &mut Vec<RouteRules>) -> Result<()> {
    let (from, from_span) = interface(table, "from")?;
    let (to, to_span) = interface(table, "to")?;
    let both = table.flag("both")?.unwrap_or(false);
    let shared = shared(table, &Rule::default())?;
    if from == to && !shared.same_interface {
        let message = format!("to: {to:?} is also the input (same-interface = true allows that)");
        return table.fault(&to_span, message);
    }
    // Two directions of the same gateway ignore each other's frames.
    let shared = Rule { hops: shared.hops.or(both.then_some(1)), ..shared };
    let inner = rules(table, &shared, databases)?;
    let rule_key =
        table.first_key(&RULE.iter().copied().filter(|key| !SHARED.contains(key)).collect::<Vec<_>>());
    let list = match rule_key {
        Some((key, span)) if !inner.is_empty() => {
            return table
                .fault(&span, format!("{key:?} in a route with [[route.rule]] (move it into the rules)"));
        }
        _ if inner.is_empty() => vec![rule(table, &shared, databases)?],
        _ => inner,
    };
    let policy = Policy { matching: matching(table)?, rules: list };
    let place = table.place(&from_span);
    if both {
        let policy = policy.clone();
        routes.push(RouteRules { from: to.to_owned(), to: from.to_owned(), policy, place });
    }
    let at = routes.len() - usize::from(both);
    routes.insert(at, RouteRules { from: from.to_owned(), to: to.to_owned(), policy, place });
    Ok(())
}

fn interface<'t>(table: &Table<'t, '_>, key: &str) -> Result<(&'t str, Range<usize>)> {
    let (name, span) = table.needed_text(key)?;
    let known_to_be_none = name.is_empty() || name.contains(char::is_whitespace) || name == "any";
    if known_to_be_none || (name.len() > 15 && carrier::table::carrier_of(name).access == Access::Sockets) {
        return table.fault(&span, format!("{key}: {name:?}: not an interface name of 1…15 characters"));
    }
    Ok((name, span))
}

fn matching(table: &Table<'_, '_>) -> Result<Matching> {
    let words = &[("first", Matching::First), ("all", Matching::All)];
    Ok(table.word("match", words)?.unwrap_or_default())
}

fn rules(table: &Table<'_, '_>, shared: &Rule, databases: &Databases) -> Result<Vec<Rule>> {
    let tables = table.tables("rule", RULE)?;
    if tables.len() > RULES_MAX {
        return table.fault(&table.span, format!("has more than {RULES_MAX} rules"));
    }
    tables.iter().map(|table| rule(table, shared, databases)).collect()
}

/// The keys that a route may set for all its rules; a rule may override them.
fn shared(table: &Table<'_, '_>, outer: &Rule) -> Result<Rule> {
    Ok(Rule {
        hops: table.number("hops", 1..=255)?.map(|hops| hops as u8).or(outer.hops),
        echo: table.flag("echo")?.or(outer.echo),
        keep_stamp: table.flag("keep-stamp")?.unwrap_or(outer.keep_stamp),
        same_interface: table.flag("same-interface")?.unwrap_or(outer.same_interface),
        ..Rule::default()
    })
}

fn rule(table: &Table<'_, '_>, outer: &Rule, databases: &Databases) -> Result<Rule> {
    let kinds = &[
        ("all", Kinds { classic: true, fd: true }),
        ("classic", Kinds { classic: true, fd: false }),
        ("fd", Kinds { classic: false, fd: true }),
    ];
    let conversions = &[("fd", Convert::Fd), ("fd-brs", Convert::FdBrs), ("classic", Convert::Classic)];
    let kinds = table.word("frames", kinds)?.unwrap_or_default();
    let mut filters = filters(table, databases)?;
    let change = change(table, kinds, databases, &mut filters)?;
    let rule = Rule {
        name: table.text("name")?.map(|(name, _)| name.to_owned()).unwrap_or_default(),
        kinds,
        filters,
        drop: table.flag("drop")?.unwrap_or(false),
        change,
        limit: limit(table)?,
        convert: table.word("convert", conversions)?,
        place: table.place(&table.span),
        ..shared(table, outer)?
    };
    let useless = table.first_key(&["and", "or", "xor", "set", "crc8", "xor-checksum", "limit", "convert"]);
    if let (true, Some((key, span))) = (rule.drop, useless) {
        return table.fault(&span, format!("{key:?} in a rule that drops its frames"));
    }
    Ok(rule)
}

fn filters(table: &Table<'_, '_>, databases: &Databases) -> Result<Vec<Filter>> {
    let mut filters = Vec::new();
    for (text, span) in table.texts("filter")? {
        match databases.filter(text) {
            Some(Ok(filter)) => {
                filters.push(filter);
                continue;
            }
            Some(Err(error)) => return table.fault(&span, format!("filter: {error}")),
            None => {}
        }
        match select::parse(text) {
            Ok(list) => filters.extend(list),
            Err(error) => {
                let near = databases.nearest_message(text);
                return table.fault(&span, format!("filter: {error}{near}"));
            }
        }
    }
    if let (true, Some(value)) = (filters.is_empty(), table.get("filter")) {
        return table
            .fault(&value.span(), "filter: must not be an empty list (leave it out to match every frame)");
    }
    Ok(filters)
}

fn change(
    table: &Table<'_, '_>,
    kinds: Kinds,
    databases: &Databases,
    filters: &mut Vec<Filter>,
) -> Result<Change> {
    let mut change = Change {
        and: operand(table, "and", kinds, 0xff)?,
        or: operand(table, "or", kinds, 0)?,
        xor: operand(table, "xor", kinds, 0)?,
        set: operand(table, "set", kinds, 0)?,
        crc8: crc8(table, kinds)?,
        xor_checksum: xor_checksum(table, kinds)?,
    };
    if let Some(inner) = table.open_inner("set")? {
        let signals = signals::assignments(&inner, OPERAND)?;
        match signals.first() {
            Some(first) if databases.is_empty() => {
                let near = instead(first.word(), OPERAND);
                let hint = "a signal needs dbc = [\"FILE\"] in the file";
                return inner.fault(&first.span, format!("{:?}: unknown key{near}; {hint}", first.word()));
            }
            Some(_) => signals::assign(&inner, &signals, databases, kinds, filters, &mut change)?,
            None => {}
        }
    }
    Ok(change)
}

/// One of the four operations; `fill` is the value of payload bytes that are not given.
fn operand(table: &Table<'_, '_>, key: &str, kinds: Kinds, fill: u8) -> Result<Modification> {
    let Some(inner) = table.open_inner(key)? else { return Ok(Modification::default()) };
    let has_signals = key == "set" && inner.entries().any(|(word, ..)| !OPERAND.contains(&word));
    if !has_signals {
        table.inner(key, OPERAND)?;
    }
    let len_max = if kinds.classic { 15 } else { 64 };
    let len = if key == "set" {
        inner.number("len", 0..=len_max)?.map(|len| len as u8)
    } else {
        inner.byte("len")?
    };
    let flags = inner.number("flags", 0..=7)?.map(|flags| flags as u8);
    if let (true, Some(value)) = (!kinds.fd, inner.get("flags")) {
        return inner.fault(
            &value.span(),
            format!("{key}: flags: only FD frames have flags, but this rule is for classic frames"),
        );
    }
    let data = match inner.text("data")? {
        None => None,
        Some((text, span)) => {
            let most = if kinds.fd { 64 } else { 8 };
            let bytes = bytes(text).filter(|bytes| (1..=most).contains(&bytes.len()));
            let Some(bytes) = bytes else {
                return inner.fault(&span, format!("{key}: data: {text:?} is not 1…{most} bytes in hex"));
            };
            let mut data = [fill; 64];
            data[..bytes.len()].copy_from_slice(&bytes);
            Some(data)
        }
    };
    let modification = Modification { id: can_id(&inner, key)?, len, flags, data };
    if modification.is_empty() && !has_signals {
        return inner.fault(&inner.span, format!("{key}: changes nothing (give id, len, flags or data)"));
    }
    Ok(modification)
}

/// An identifier as a string, or the whole `can_id` with its flags as a number.
fn can_id(table: &Table<'_, '_>, key: &str) -> Result<Option<u32>> {
    let Some(value) = table.get("id") else { return Ok(None) };
    let id = match value.get_ref() {
        DeValue::String(text) => match select::identifier(text) {
            Ok((id, _)) => id,
            Err(error) => return table.fault(&value.span(), format!("{key}: id: {error}")),
        },
        _ => table.number("id", 0..=i64::from(u32::MAX))?.unwrap_or_default() as u32,
    };
    let makes_error_frames = key != "and" && id & ERR_FLAG != 0;
    let without_eff = key == "set" && id & EFF_FLAG == 0 && id & canter_io::frame::EFF_MASK > 0x7ff;
    if makes_error_frames {
        return table.fault(&value.span(), format!("{key}: id: 0x20000000 would make error frames"));
    }
    if without_eff {
        let message =
            format!("{key}: id: above 7FF without the EFF flag (use 8 digits in quotes, or add 0x80000000)");
        return table.fault(&value.span(), message);
    }
    Ok(Some(id))
}

/// Pairs of hex digits, optionally with dots between them.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|&byte| byte != b'.')
        .map(|byte| (byte as char).to_digit(16).map(|digit| digit as u8))
        .collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// The positions of a checksum, all within the longest payload: a kernel without the fix writes to any position.
fn span(table: &Table<'_, '_>, kinds: Kinds) -> Result<Span> {
    let most = if kinds.classic { 8 } else { 64 };
    let position = |key: &str| match table.number(key, -most..=most - 1)? {
        Some(position) => Ok(position as i8),
        None => table.fault(&table.span, format!("{key:?} is missing (a byte, {}…{})", -most, most - 1)),
    };
    Ok(Span::new(position("from")?, position("to")?, position("result")?))
}

fn xor_checksum(table: &Table<'_, '_>, kinds: Kinds) -> Result<Option<Xor>> {
    let Some(inner) = table.inner("xor-checksum", XOR)? else { return Ok(None) };
    Ok(Some(Xor { span: span(&inner, kinds)?, init: inner.byte("init")?.unwrap_or(0) }))
}

fn crc8(table: &Table<'_, '_>, kinds: Kinds) -> Result<Option<Crc8>> {
    let Some(inner) = table.inner("crc8", CRC8)? else { return Ok(None) };
    let span = span(&inner, kinds)?;
    let mut crc8 = match (inner.byte("polynomial")?, inner.text("table")?) {
        (Some(polynomial), None) => Crc8::with_polynomial(polynomial, span),
        (None, Some((text, at))) => match bytes(text).and_then(|bytes| bytes.try_into().ok()) {
            Some(table) => Crc8 { table, ..Crc8::with_polynomial(0, span) },
            None => return inner.fault(&at, "crc8: table: must be 256 bytes in hex"),
        },
        _ => {
            return inner.fault(&inner.span, "crc8: give either a polynomial (0x2F) or a table of 256 bytes");
        }
    };
    crc8.init = inner.byte("init")?.unwrap_or(0);
    crc8.final_xor = inner.byte("final-xor")?.unwrap_or(0);
    crc8.profile = profile(&inner)?;
    Ok(Some(crc8))
}

fn profile(table: &Table<'_, '_>) -> Result<Profile> {
    let words = &[("none", 0), ("1u8", 1), ("16u8", 16), ("sffid-xor", 2)];
    let profile = table.word("profile", words)?.unwrap_or(0);
    let wanted = match profile {
        1 => 1,
        16 => 16,
        _ => 0,
    };
    let (data, at) = match table.text("profile-data")? {
        Some((text, at)) => (bytes(text), at),
        None => (Some(Vec::new()), table.span.clone()),
    };
    let data = data.filter(|data| data.len() == wanted);
    let made = data.and_then(|data| {
        Some(match profile {
            1 => Profile::Value(*data.first()?),
            16 => Profile::Counter(data.try_into().ok()?),
            2 => Profile::Identifier,
            _ => Profile::None,
        })
    });
    match made {
        Some(profile) => Ok(profile),
        None => table.fault(&at, format!("crc8: this profile needs {wanted} bytes of profile-data")),
    }
}

/// `100/s`, `1/10ms`.
fn limit(table: &Table<'_, '_>) -> Result<Option<Limit>> {
    let burst = table.number("burst", 1..=10_000)?;
    let Some((text, span)) = table.text("limit")? else {
        return match table.get("burst") {
            Some(value) => table.fault(&value.span(), "burst: needs limit"),
            None => Ok(None),
        };
    };
    let period = text.split_once('/').and_then(|(frames, time)| {
        let frames: u64 = frames.trim().parse().ok()?;
        let time = time.trim();
        let one = if time.starts_with(|first: char| first.is_ascii_digit()) { "" } else { "1" };
        let ns = duration::parse_ns(&format!("{one}{time}")).ok()?;
        ns.checked_div(frames).filter(|period| (1..=3_600_000_000_000).contains(period))
    });
    match period {
        Some(period_ns) => Ok(Some(Limit { period_ns, burst: burst.unwrap_or(1) as u32 })),
        None => {
            table.fault(&span, format!("limit: {text:?} is not a number of frames per time (100/s, 1/10ms)"))
        }
    }
}

#[cfg(test)]
mod tests;
