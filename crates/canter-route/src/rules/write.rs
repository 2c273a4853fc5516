//! Writes rules as a file that [`super::read`] reads as the same.

use super::{Change, Convert, Limit, Matching, RouteRules, Rule, RuleSet, select};
use canter_io::{
    frame::{EFF_FLAG, EFF_MASK, SFF_MASK},
    netlink::can_gw::{Crc8, Modification, Profile, Span},
};
use std::fmt::Write;

/// The text of the file. `notes` returns comment lines for a rule of a route, without their `#`.
pub fn file(set: &RuleSet, notes: impl Fn(usize, usize) -> Vec<String>) -> String {
    let mut text = String::new();
    for (at, route) in set.routes.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        self::route(&mut text, route, |rule| notes(at, rule));
    }
    for (at, rule) in set.loose.iter().flat_map(|policy| &policy.rules).enumerate() {
        table(&mut text, "[[rule]]", rule, &notes(0, at));
    }
    text
}

fn route(text: &mut String, route: &RouteRules, notes: impl Fn(usize) -> Vec<String>) {
    put(text, format_args!("[[route]]\nfrom = {:?}\nto = {:?}", route.from, route.to));
    if route.policy.matching == Matching::All {
        put(text, format_args!("match = \"all\""));
    }
    if let [rule] = &route.policy.rules[..] {
        notes(0).iter().for_each(|note| put(text, format_args!("# {note}")));
        return self::rule(text, rule);
    }
    for (at, rule) in route.policy.rules.iter().enumerate() {
        table(text, "[[route.rule]]", rule, &notes(at));
    }
}

fn table(text: &mut String, head: &str, rule: &Rule, notes: &[String]) {
    put(text, format_args!("\n{head}"));
    notes.iter().for_each(|note| put(text, format_args!("# {note}")));
    self::rule(text, rule);
}

fn rule(text: &mut String, rule: &Rule) {
    if !rule.name.is_empty() {
        put(text, format_args!("name = {}", quoted(&rule.name)));
    }
    match (rule.kinds.classic, rule.kinds.fd) {
        (true, false) => put(text, format_args!("frames = \"classic\"")),
        (false, true) => put(text, format_args!("frames = \"fd\"")),
        _ => {}
    }
    if !rule.filters.is_empty() {
        let list: Vec<_> = rule.filters.iter().map(|filter| format!("{:?}", select::show(filter))).collect();
        put(text, format_args!("filter = [{}]", list.join(", ")));
    }
    for (key, is_set) in
        [("drop", rule.drop), ("keep-stamp", rule.keep_stamp), ("same-interface", rule.same_interface)]
    {
        if is_set {
            put(text, format_args!("{key} = true"));
        }
    }
    if let Some(echo) = rule.echo {
        put(text, format_args!("echo = {echo}"));
    }
    if let Some(hops) = rule.hops {
        put(text, format_args!("hops = {hops}"));
    }
    change(text, &rule.change);
    if let Some(Limit { period_ns, burst }) = rule.limit {
        put(text, format_args!("limit = \"1/{period_ns}ns\"\nburst = {burst}"));
    }
    if let Some(convert) = rule.convert {
        let word = match convert {
            Convert::Fd => "fd",
            Convert::FdBrs => "fd-brs",
            Convert::Classic => "classic",
        };
        put(text, format_args!("convert = {word:?}"));
    }
}

fn change(text: &mut String, change: &Change) {
    let operands =
        [("and", &change.and, 0xff), ("or", &change.or, 0), ("xor", &change.xor, 0), ("set", &change.set, 0)];
    for (key, operand, fill) in operands {
        if !operand.is_empty() {
            put(text, format_args!("{key} = {{ {} }}", self::operand(operand, fill).join(", ")));
        }
    }
    if let Some(crc8) = &change.crc8 {
        put(text, format_args!("crc8 = {{ {} }}", self::crc8(crc8)));
    }
    if let Some(xor) = &change.xor_checksum {
        put(text, format_args!("xor-checksum = {{ {}, init = {:#04X} }}", span(xor.span), xor.init));
    }
}

fn operand(operand: &Modification, fill: u8) -> Vec<String> {
    let id = operand.id.map(|id| format!("id = {}", can_id(id)));
    let len = operand.len.map(|len| format!("len = {len}"));
    let flags = operand.flags.map(|flags| format!("flags = {flags}"));
    let data = operand.data.map(|data| {
        let len = data.iter().rposition(|&byte| byte != fill).map_or(1, |last| last + 1);
        format!("data = \"{}\"", hex(&data[..len]))
    });
    [id, len, flags, data].into_iter().flatten().collect()
}

/// As a string when it is only an identifier.
fn can_id(id: u32) -> String {
    match id {
        ..=SFF_MASK => format!("\"{id:03X}\""),
        EFF_FLAG.. if id & !(EFF_FLAG | EFF_MASK) == 0 => format!("\"{:08X}\"", id & EFF_MASK),
        _ => format!("0x{id:08X}"),
    }
}

fn crc8(crc8: &Crc8) -> String {
    // The first entry of a table that is not of byte 0 is its polynomial.
    let polynomial = crc8.table[1];
    let regular = Crc8::with_polynomial(polynomial, crc8.span).table == crc8.table;
    let mut text = span(crc8.span);
    let put = |text: &mut String, part: String| *text += &format!(", {part}");
    put(
        &mut text,
        if regular {
            format!("polynomial = {polynomial:#04X}")
        } else {
            format!("table = \"{}\"", hex(&crc8.table))
        },
    );
    put(&mut text, format!("init = {:#04X}, final-xor = {:#04X}", crc8.init, crc8.final_xor));
    match crc8.profile {
        Profile::None => {}
        Profile::Value(value) => put(&mut text, format!("profile = \"1u8\", profile-data = \"{value:02X}\"")),
        Profile::Counter(values) => {
            put(&mut text, format!("profile = \"16u8\", profile-data = \"{}\"", hex(&values)))
        }
        Profile::Identifier => put(&mut text, "profile = \"sffid-xor\"".to_owned()),
    }
    text
}

fn span(Span { from, to, result }: Span) -> String {
    format!("from = {from}, to = {to}, result = {result}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// A string in TOML's quotes.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = writeln!(text, "{line}"); // writing to a String cannot fail
}

#[cfg(test)]
pub mod tests {
    use super::super::{Kinds, Policy, read};
    use super::*;
    use canter_cli::document::Place;
    use canter_io::{Filter, netlink::can_gw::Xor};
    use proptest::{collection::vec, option, prelude::*};

    fn modification(kinds: Kinds, set: bool) -> impl Strategy<Value = Modification> {
        let data = vec(any::<u8>(), if kinds.fd { 1..=64 } else { 1..=8 });
        let len = if !set {
            0..=255
        } else if kinds.classic {
            0..=15u8
        } else {
            0..=64
        };
        let id = any::<u32>().prop_map(move |id| match id {
            id if id & 1 == 0 => id >> 1 & SFF_MASK,
            id => id & (EFF_MASK | 0x4000_0000) | EFF_FLAG,
        });
        (option::of(id), option::of(len), option::of(0u8..8), option::of(data)).prop_map(
            move |(id, len, flags, data)| Modification {
                id,
                len,
                flags: flags.filter(|_| kinds.fd),
                data: data.and_then(|data| Modification::from_data(&data).data),
            },
        )
    }

    fn and(kinds: Kinds) -> impl Strategy<Value = Modification> {
        modification(kinds, false).prop_map(move |mut and| {
            if let (Some(data), false) = (&mut and.data, kinds.fd) {
                data[8..].fill(0xff);
            }
            and
        })
    }

    fn span(kinds: Kinds) -> impl Strategy<Value = Span> {
        let most = if kinds.classic { 8i8 } else { 64 };
        [-most..most, -most..most, -most..most].prop_map(|[from, to, result]| Span::new(from, to, result))
    }

    /// Changes as a file can say them, for frames of these kinds.
    pub fn changes(kinds: Kinds) -> impl Strategy<Value = Change> {
        let profile = prop_oneof![
            Just(Profile::None),
            any::<u8>().prop_map(Profile::Value),
            any::<[u8; 16]>().prop_map(Profile::Counter),
            Just(Profile::Identifier),
        ];
        let crc8 = (span(kinds), any::<[u8; 4]>(), profile, any::<bool>()).prop_map(
            |(span, [polynomial, init, final_xor, other], profile, odd)| {
                let mut crc8 = Crc8 { init, final_xor, profile, ..Crc8::with_polynomial(polynomial, span) };
                crc8.table[7] ^= if odd { other } else { 0 };
                crc8
            },
        );
        let xor = (span(kinds), any::<u8>()).prop_map(|(span, init)| Xor { span, init });
        (
            and(kinds),
            modification(kinds, false),
            modification(kinds, false),
            modification(kinds, true),
            option::of(crc8),
            option::of(xor),
        )
            .prop_map(|(and, or, xor, set, crc8, xor_checksum)| Change {
                and,
                or,
                xor,
                set,
                crc8,
                xor_checksum,
            })
    }

    fn filters() -> impl Strategy<Value = Vec<Filter>> {
        const TEXTS: &[&str] =
            &["123", "~123", "123#R", "12345678", "~12345678", "400:700", "400~700", "18DA0000:9FFF0000"];
        let filter = prop::sample::select(TEXTS).prop_map(|text| select::parse(text).unwrap().remove(0));
        vec(filter, 0..4)
    }

    pub fn rules() -> impl Strategy<Value = Rule> {
        let kinds = prop_oneof![Just((true, true)), Just((true, false)), Just((false, true))];
        kinds.prop_flat_map(|(classic, fd)| {
            let kinds = Kinds { classic, fd };
            let limit = (1u64..1_000_000_000_000, 1u32..100)
                .prop_map(|(period_ns, burst)| Limit { period_ns, burst });
            let convert = prop_oneof![Just(Convert::Fd), Just(Convert::FdBrs), Just(Convert::Classic)];
            let rest = (
                option::of(limit),
                option::of(convert),
                option::of(1u8..),
                option::of(any::<bool>()),
                any::<[bool; 2]>(),
            );
            ("[a-zA-Z\"\\\\ é]{0,6}", filters(), changes(kinds), rest).prop_map(
                move |(name, filters, change, rest)| {
                    let (limit, convert, hops, echo, [keep_stamp, drop]) = rest;
                    let rule = Rule { name, kinds, filters, hops, echo, keep_stamp, ..Rule::default() };
                    if drop { Rule { drop, ..rule } } else { Rule { change, limit, convert, ..rule } }
                },
            )
        })
    }

    proptest! {
        #[test]
        fn a_written_file_is_read_as_the_same_rules(rules in vec(rules(), 1..4), all: bool) {
            let matching = if all { Matching::All } else { Matching::First };
            let policy = Policy { matching, rules };
            let route = RouteRules { from: "can0".into(), to: "can1".into(), policy, place: Place::default() };
            let set = RuleSet { routes: vec![route], loose: None };
            let text = file(&set, |_, _| vec!["a note".to_owned()]);
            match read::parse("written", &text) {
                Ok(read) => prop_assert_eq!(read, set, "{}", text),
                Err(fault) => prop_assert!(false, "{fault}\n{text}"),
            }
        }
    }
}
