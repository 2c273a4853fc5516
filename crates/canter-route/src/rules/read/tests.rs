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

const DATABASE: &str = "BO_ 291 Engine: 8 ECU
 SG_ Mode M : 0|4@1+ (1,0) [0|0] \"\" Dash
 SG_ Speed : 9|14@1+ (0.25,0) [0|4000] \"rpm\" Dash
 SG_ Heat m1 : 31|12@0- (1,40) [0|0] \"C\" Dash
 SG_ Cold m0 : 30|8@0- (1,40) [0|0] \"C\" Dash
 SG_ Twin : 12|8@1+ (1,0) [0|0] \"\" Dash

BO_ 292 Brake: 8 ECU
 SG_ Twin : 0|8@1+ (1,0) [0|0] \"\" Dash

BO_ 293 Long: 64 ECU
 SG_ Late : 500|8@1+ (1,0) [0|0] \"\" Dash

VAL_ 291 Mode 0 \"Off\" 1 \"Hot\" ;
";

fn with_database(line: &str) -> Result<RuleSet> {
    let load = |name: &str| match name {
        "car.dbc" => Database::parse(DATABASE).map_err(|error| error.to_string()),
        _ => Err(format!("{name}: read: no such file")),
    };
    parse_with("rules.toml", &format!("{ROUTE_LINE}dbc = [\"car.dbc\"]\n{line}"), &load)
}

#[test]
fn a_signal_is_set_and_all_other_bits_stay() {
    let edit = |line: &str, frame: &str| {
        let set = with_database(line).unwrap();
        let rule = &set.routes[0].policy.rules[0];
        let mut frame: canter_io::Frame = frame.parse().unwrap();
        assert!(rule.filters.iter().any(|filter| filter.matches(&frame)), "{line}");
        super::super::edit::Edit::new(&rule.change, frame.is_fd()).unwrap().apply(&mut frame).unwrap();
        frame.to_string()
    };
    let set = "set = { Speed = 900 }";
    // 3600 in 14 bits from bit 9 on.
    assert_eq!(edit(set, "123#FFFFFFFFFFFFFFFF"), "123#FF211CFFFFFFFFFF".replace("211C", "219C"));
    assert_eq!(edit(set, "123#0000000000000000"), "123#00201C0000000000");
    assert_eq!(edit("set = { Engine.Speed = 900.0 }", "123#00"), "123#00");
    assert_eq!(edit("set = { Mode = \"Hot\", Heat = 39 }", "123#F000000000"), "123#F10000FFF0");
    // What comes before set in the order of operations changes other bits only; set.data is the ground of the signals.
    let all = "and = { data = \"0F0F0F\" }\nor = { data = \"800180\" }\nxor = { data = \"FFFFFF\" }\nset = { Mode = 5 }";
    assert_eq!(edit(all, "123#FFFFFF"), "123#75F070");
    assert_eq!(edit("set = { data = \"FF\", Mode = 0 }", "123#112233"), "123#F00000");
    assert_eq!(edit("filter = [\"Brake\"]\nset = { Twin = 7 }", "124#0011"), "124#0711");
    assert_eq!(
        edit("frames = \"fd\"\nset = { Late = 255 }", &format!("125##0{}", "00".repeat(64)))[130..],
        *"F00F"
    );
}

#[test]
fn names_of_messages_are_filters() {
    let set = with_database("filter = [\"Engine\", \"200\"]").unwrap();
    let filters = &set.routes[0].policy.rules[0].filters;
    assert_eq!(filters.iter().map(select::show).collect::<Vec<_>>(), ["123", "200"]);
}

#[test]
fn signals_that_cannot_be_set_are_refused_with_the_way_out() {
    for (line, expected) in [
        ("set = { Sped = 1 }", "5:9: set: no message has the signal Sped (did you mean Speed?)"),
        ("set = { Engin.Speed = 1 }", "set: no message is named Engin (did you mean Engine?)"),
        ("set = { Engine.Sped = 1 }", "5:16: set: Engine has no signal Sped (did you mean Speed?)"),
        ("set = { Twin = 1 }", "set: Twin is in several messages: Engine, Brake (name one: Message.Twin)"),
        ("set = { Speed = 1, Brake.Twin = 1 }", "set: no message has all of these signals"),
        (
            "set = { Speed = 4000.25 }",
            "set: Speed: 4000.25 is out of range: the database allows 0 to 4000 rpm",
        ),
        ("set = { Mode = 16 }", "set: Mode: 16 does not fit into its 4 bits"),
        (
            "set = { Speed = 900.1 }",
            "set: Speed: 900.1 is none of its values: the nearest is 900 rpm (steps of 0.25)",
        ),
        ("set = { Mode = \"Hat\" }", "set: Mode: \"Hat\" is no text of its value table (did you mean Hot?)"),
        ("set = { Mode = true }", "set: Mode: must be a number, or a text of its value table"),
        (
            "set = { Heat = 1 }",
            "set: Heat: is multiplexed: frames have it only where Mode is \"Hot\" (set Mode = \"Hot\", too)",
        ),
        (
            "set = { Mode = 0, Heat = 1 }",
            "set: Heat: is multiplexed out: frames have it where Mode is \"Hot\"",
        ),
        ("set = { Speed = 0, Engine.Twin = 1 }", "overlaps another signal that the rule sets"),
        (
            "filter = [\"123\", \"124\"]\nset = { Speed = 0 }",
            "set: the rule's filters pass other frames than those of Engine",
        ),
        ("filter = [\"Engin\"]", "filter: \"Engin\" is not an identifier of 3"),
        ("frames = \"classic\"\nset = { Late = 0 }", "set: Late: lies behind the end of the rule's frames"),
        ("or = { Speed = 0 }", "\"Speed\": unknown key"),
    ] {
        let fault = with_database(line).map_or_else(|fault| fault.to_string(), |_| String::new());
        assert!(fault.contains(expected), "{line}: {fault}");
        assert_eq!(fault.lines().count(), 1, "{fault}");
    }
    let no_database = complaint(&format!("{ROUTE_LINE}set = {{ EngineSpeed = 1 }}"));
    assert!(
        no_database.contains("\"EngineSpeed\": unknown key") && no_database.contains("a signal needs dbc"),
        "{no_database}"
    );
    let missing = complaint(&format!("{ROUTE_LINE}dbc = [\"x.dbc\"]"));
    assert!(missing.starts_with("rules.toml:4:8: dbc: x.dbc"), "{missing}");
}
