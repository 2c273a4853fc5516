//! Errors in a file are reported with their position; correct values reach their rule.

use super::*;
use proptest::prelude::*;

fn complaint(text: &str) -> String {
    parse("rules.toml", text).map_or_else(|fault| fault.to_string(), |_| String::new())
}

const ROUTE_LINE: &str = "[[route]]\nfrom = \"can0\"\nto = \"can1\"\n";

#[test]
fn errors_have_line_column_and_the_nearest_known_word() {
    for (text, expected) in [
        ("[[route]]\nform = \"can0\"", r#"rules.toml:2:1: "form": unknown key (did you mean "from"?)"#),
        ("[[rout]]\n", r#"rules.toml:1:3: "rout": unknown key (did you mean "route"?)"#),
        ("[[route]]\nfrom = \"can0\"\n", r#"rules.toml:1:1: "to" is missing"#),
        ("[[route]]\nfrom = can0\n", "rules.toml:2:8: "),
        ("", "rules.toml:1:1: the file has neither a [[route]] nor a [[rule]]"),
        ("[[route]]\nfrom = \"a\"\nto = \"a\"", "rules.toml:3:6: to: \"a\" is also the input"),
    ] {
        assert!(complaint(text).starts_with(expected), "{text}: {}", complaint(text));
    }
    for (line, expected) in [
        ("filter = [\"123\", \"12\"]", "4:18: filter: \"12\" is not an identifier of 3"),
        ("filter = [\"123\", 12]", "4:18: filter: must be a string, not a number"),
        ("filter = []", "4:10: filter: must not be an empty list"),
        ("filter = \"123\"", "4:10: filter: must be a list [ … ], not a string"),
        ("frames = \"clasic\"", "4:10: frames: \"clasic\": unknown word (did you mean \"classic\"?)"),
        ("set = { id = \"1234\" }", "4:14: set: id: \"1234\" is not an identifier"),
        ("set = { id = 0x1234 }", "4:14: set: id: above 7FF without the EFF flag"),
        ("or = { id = 0x20000000 }", "4:13: or: id: 0x20000000 would make error frames"),
        ("set = { lenn = 3 }", "4:9: \"lenn\": unknown key (did you mean \"len\"?)"),
        ("set = { len = 16 }", "4:15: len: must be 0…15"),
        ("set = {}", "4:7: set: changes nothing"),
        ("or = { data = \"1\" }", "4:15: or: data: \"1\" is not 1…64 bytes in hex"),
        ("frames = \"classic\"\nor = { flags = 1 }", "5:16: or: flags: only FD frames"),
        ("xor-checksum = { from = 0, to = 6, result = 8 }", "4:45: result: must be -8…7"),
        ("xor-checksum = { from = 0, to = 6 }", "4:16: \"result\" is missing"),
        ("crc8 = { from = 0, to = 6, result = 7 }", "4:8: crc8: give either"),
        (
            "crc8 = { from = 0, to = 6, result = 7, polynomial = 7, profile = \"16u8\", profile-data = \"11\" }",
            "4:89: crc8: this profile needs 16",
        ),
        ("limit = \"fast\"", "4:9: limit: \"fast\" is not a number of frames"),
        ("limit = \"0/s\"", "4:9: limit: \"0/s\" is not a number of frames"),
        ("burst = 2", "4:9: burst: needs limit"),
        ("drop = true\nset = { len = 1 }", "5:1: \"set\" in a rule that drops"),
        ("hops = 0", "4:8: hops: must be 1…255"),
        (
            "filter = [\"123\"]\n[[route.rule]]\nfilter = [\"124\"]",
            "4:1: \"filter\" in a route with [[route.rule]]",
        ),
        ("[[route]]\nfrom = \"can1\"\nto = \"can0\"", "5:8: can0 → can1 → can0: a loop"),
        (
            "[[route]]\nfrom = \"can0\"\nto = \"can1\"",
            "5:8: can0 → can1: line 2 already has a route of this direction",
        ),
    ] {
        let text = format!("{ROUTE_LINE}{line}");
        let expected = format!("rules.toml:{expected}");
        assert!(complaint(&text).starts_with(&expected), "{line}: {}", complaint(&text));
    }
}

#[test]
fn both_directions_have_the_same_rules_and_one_hop() {
    let text =
        format!("{ROUTE_LINE}both = true\n[[route.rule]]\nfilter = [\"123\"]\n[[route.rule]]\ndrop = true");
    let set = parse("f", &text).unwrap();
    let labels: Vec<_> = set.routes.iter().map(RouteRules::label).collect();
    assert_eq!(labels, ["can0 → can1", "can1 → can0"]);
    assert_eq!(set.routes[0].policy, set.routes[1].policy);
    assert!(set.routes[0].policy.rules.iter().all(|rule| rule.hops == Some(1)));
}

#[test]
fn every_key_reaches_its_rule() {
    let text = format!(
        "{ROUTE_LINE}name = \"n\"\nframes = \"classic\"\nfilter = [\"123\", \"200-203\"]\nmatch = \"all\"\n\
         and = {{ data = \"F0\" }}\nset = {{ id = \"12345678\", len = 9 }}\n\
         crc8 = {{ from = 0, to = -2, result = -1, polynomial = 0x1d, init = 255, final-xor = 1, profile = \"1u8\", profile-data = \"a5\" }}\n\
         xor-checksum = {{ from = 6, to = 0, result = 7, init = 2 }}\nlimit = \"100/s\"\nburst = 3\nhops = 2\necho = true\nkeep-stamp = true\nconvert = \"fd-brs\""
    );
    let set = parse("f", &text).unwrap();
    let policy = &set.routes[0].policy;
    assert_eq!(policy.matching, Matching::All);
    let rule = &policy.rules[0];
    assert_eq!((rule.name.as_str(), rule.kinds.fd, rule.filters.len()), ("n", false, 2));
    assert_eq!(rule.change.and.data.unwrap()[..2], [0xf0, 0xff]);
    assert_eq!((rule.change.set.id, rule.change.set.len), (Some(0x9234_5678), Some(9)));
    let crc8 = rule.change.crc8.unwrap();
    assert_eq!((crc8.span, crc8.init, crc8.final_xor), (Span::new(0, -2, -1), 255, 1));
    assert_eq!((crc8.table[1], crc8.profile), (0x1d, Profile::Value(0xa5)));
    assert_eq!(rule.change.xor_checksum, Some(Xor { span: Span::new(6, 0, 7), init: 2 }));
    assert_eq!(rule.limit, Some(Limit { period_ns: 10_000_000, burst: 3 }));
    assert_eq!((rule.hops, rule.echo, rule.keep_stamp), (Some(2), Some(true), true));
    assert_eq!(rule.convert, Some(Convert::FdBrs));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(\\[\\[route\\]\\]|\\[\\[route.rule\\]\\]|from|to|filter|set|id|=|\"can0\"|\"can1\"|\\{|\\}|\\[|\\]|[ \n]|0x[0-9a-f]{1,9}|\\PC){0,40}") {
        let _ = parse("f", &text);
    }
}
