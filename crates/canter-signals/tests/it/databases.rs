//@ machine: host
//! Files that contradict themselves, damaged files, and what is unusual in a DBC.

use canter_frame::Identifier;
use canter_signals::{Codebook, Database};
use proptest::prelude::*;

const ENGINE: &str = "\
VERSION \"\"

NS_ :
\tNS_DESC_

BS_:

BU_: ECU Dash

BO_ 291 Engine: 8 ECU
 SG_ Mode M : 0|4@1+ (1,0) [0|0] \"\" Dash
 SG_ Speed m0 : 8|16@1+ (0.25,0) [0|16000] \"rpm\" Dash
 SG_ Heat m1 : 15|8@0- (1,40) [0|0] \"C\" Dash
 SG_ Inner m2M : 8|8@1+ (1,0) [0|0] \"\" Dash
 SG_ Deep m3 : 16|8@1+ (1,0) [0|0] \"\" Dash

CM_ SG_ 291 Speed \"a comment with a line
BO_ 5 that looks like a message\";
VAL_ 291 Mode 0 \"Cold\" 1 \"Hot\" ;
SG_MUL_VAL_ 291 Inner Mode 2-2, 9-10;
SG_MUL_VAL_ 291 Deep Inner 3-5;
";

fn names(text: &str, data: &[u8]) -> String {
    let database = Database::parse(text).unwrap();
    let values = database.messages[0].values(data);
    values.map(|(signal, value)| format!("{}={value}", signal.name)).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_selector_selects_and_may_be_selected_itself() {
    for (data, expected) in [
        ([0, 4, 0, 0, 0, 0, 0, 0], "Mode=0 Speed=1"),
        ([1, 0xFF, 0, 0, 0, 0, 0, 0], "Mode=1 Heat=39"),
        ([2, 2, 7, 0, 0, 0, 0, 0], "Mode=2 Inner=2"),
        ([10, 5, 7, 0, 0, 0, 0, 0], "Mode=10 Inner=5 Deep=7"),
        ([11, 5, 7, 0, 0, 0, 0, 0], "Mode=11"),
    ] {
        assert_eq!(names(ENGINE, &data), expected);
    }
}

#[test]
fn a_frame_that_is_shorter_than_its_message_has_its_first_signals_only() {
    assert_eq!(names(ENGINE, &[0, 4]), "Mode=0");
    assert_eq!(names(ENGINE, &[]), "");
    assert_eq!(names(ENGINE, &[0; 64]), "Mode=0 Speed=0");
}

#[test]
fn what_contradicts_itself_is_left_out_and_remarked_with_its_line() {
    for (heading, signal, remark) in [
        (
            "BO_ 1 A: 1 X",
            "8|1@1+ (1,0)",
            "line 1: message A: signal S: begins behind the 1 bytes of the message: left out",
        ),
        (
            "BO_ 1 A: 1 X",
            "7|9@1+ (1,0)",
            "line 1: message A: signal S: ends behind the 1 bytes of the message: left out",
        ),
        ("BO_ 1 A: 16 X", "0|65@1+ (1,0)", "line 1: message A: signal S: has 65 bits, not 1…64: left out"),
        (
            "BO_ 1 A: 4000 X",
            "0|1@1+ (1,0)",
            "line 1: message A: 4000 bytes are more than any message has: left out",
        ),
        (
            "BO_ 4294967295 A: 8 X",
            "0|1@1+ (1,0)",
            "line 1: message A: 4294967295 is no identifier of 11 or 29 bits: left out",
        ),
        (
            "BO_ 2048 A: 8 X",
            "0|1@1+ (1,0)",
            "line 1: message A: 2048 has more than 11 bits and no mark: read as extended",
        ),
    ] {
        let database = Database::parse(&format!("{heading}\n SG_ S : {signal} [0|0] \"\" Y\n")).unwrap();
        assert_eq!(database.remarks, [remark]);
    }
}

#[test]
fn an_identifier_without_its_mark_keeps_its_bits_and_its_value_table() {
    let text = "BO_ 316495527 A: 8 X\n SG_ S : 0|8@1+ (1,0) [0|0] \"\" Y\n\nBO_ 21671 B: 8 X\n SG_ S : 0|8@1+ (1,0) [0|0] \"\" Y\n\nVAL_ 316495527 S 1 \"BO_ 5000\" ;\n";
    let database = Database::parse(text).unwrap();
    assert_eq!(database.messages[0].id, Identifier::Eff(316_495_527));
    assert_eq!(database.messages[0].signals[0].choice(1), Some("BO_ 5000"));
    assert_eq!(database.messages[1].signals[0].choice(1), None);
}

#[test]
fn a_later_message_replaces_one_with_the_same_identifier() {
    let message = |name: &str| format!("BO_ 1 {name}: 1 X\n SG_ S : 0|1@1+ (1,0) [0|0] \"\" Y\n\n");
    let database = Database::parse(&(message("A") + &message("B"))).unwrap();
    assert_eq!(database.messages.len(), 1);
    assert_eq!(database.messages[0].name, "B");
    assert_eq!(database.remarks, ["line 4: message B: has the identifier of A, which is left out"]);
}

#[test]
fn entries_for_signals_that_no_message_has_are_remarked_once_for_each_kind() {
    let text = "BO_ 1 A: 4 X\n SG_ S : 0|32@1- (1,0) [0|0] \"\" Y\n\nVAL_ 1 T 0 \"Off\" ;\nVAL_ 2 S 0 \"Off\" ;\n\
                VAL_ 1 S 0 \"Off\" ;\nSIG_VALTYPE_ 1 s : 1;\nSIG_VALTYPE_ 1 S : 1;\n";
    let database = Database::parse(text).unwrap();
    assert_eq!(
        database.remarks,
        [
            "VAL_ 1 T and 1 more: no message has these signals: left out",
            "SIG_VALTYPE_ 1 s: no message has this signal: left out"
        ]
    );
    assert_eq!(names(text, &0.5f32.to_le_bytes()), "S=0.5");
}

#[test]
fn names_that_are_there_twice_are_told_apart() {
    let signal = " SG_ S : 0|4@1+ (1,0) [0|0] \"\" Y\n";
    let text =
        format!("BO_ 1 A: 1 X\n{signal}{}\nBO_ 2147483650 A: 1 X\n{signal}", signal.replace("0|4", "4|4"));
    let database = Database::parse(&text).unwrap();
    let names: Vec<&str> = database.messages.iter().map(|message| message.name.as_str()).collect();
    assert_eq!((names, database.messages[0].signals.len()), (vec!["A", "A_00000002"], 1));
    assert_eq!(
        database.remarks,
        [
            "line 1: message A: signal S: has the name of another signal: left out",
            "line 5: message A: another message has this name: this one is called A_00000002"
        ]
    );
}

#[test]
fn signals_that_share_bits_in_one_frame_are_remarked_once_for_each_message() {
    let text = "BO_ 1 A: 3 X\n SG_ Mode M : 0|8@1+ (1,0) [0|0] \"\" Y\n SG_ B m0 : 8|8@1+ (1,0) [0|0] \"\" Y\n \
                SG_ C m1 : 8|8@1+ (1,0) [0|0] \"\" Y\n SG_ D m1 : 23|12@0+ (1,0) [0|0] \"\" Y\n";
    assert!(
        Database::parse(text).unwrap().remarks[0]
            .ends_with("ends behind the 3 bytes of the message: left out")
    );
    let remarks = |d: &str| Database::parse(&text.replace("23|12@0+", d)).unwrap().remarks;
    assert!(remarks("16|8@1+").is_empty(), "{:?}", remarks("16|8@1+"));
    let shared = "share bits: each is decoded from its own bits";
    assert_eq!(remarks("15|12@0+"), [format!("line 1: message A: signals C and D {shared}")]);
    assert_eq!(
        remarks("0|16@1+"),
        [format!(
            "line 1: message A: signals Mode and D {}",
            shared.replace("bits:", "bits (and another pair):")
        )]
    );
    let data = [1, 0x23, 0x45];
    assert_eq!(names(&text.replace("23|12@0+", "15|12@0+"), &data), "Mode=1 C=35 D=564");
}

#[test]
fn of_many_messages_with_shared_bits_the_first_three_are_named_and_the_others_counted() {
    let message = |id: u32| {
        let signal = |name: &str| format!(" SG_ {name} : 0|8@1+ (1,0) [0|0] \"\" Y\n");
        format!("BO_ {id} M{id}: 1 X\n{}{}\n", signal("A"), signal("B"))
    };
    for (messages, last) in [
        (3, "line 9: message M3: signals A and B share bits: each is decoded from its own bits"),
        (4, "1 more message has signals that share bits: each is decoded from its own bits"),
        (180, "177 more messages have signals that share bits: each is decoded from its own bits"),
    ] {
        let remarks = Database::parse(&(1..=messages).map(message).collect::<String>()).unwrap().remarks;
        assert_eq!((remarks.len(), remarks.last().unwrap().as_str()), (messages.min(4) as usize, last));
    }
}

#[test]
fn signals_that_select_each_other_are_left_out() {
    let text = ENGINE.replace("SG_MUL_VAL_ 291 Inner Mode 2-2, 9-10;", "SG_MUL_VAL_ 291 Inner Deep 1-1;");
    let database = Database::parse(&text).unwrap();
    assert_eq!(database.remarks.len(), 2, "{:?}", database.remarks);
    assert_eq!(names(&text, &[2, 1, 3, 0, 0, 0, 0, 0]), "Mode=2");
}

#[test]
fn a_broken_file_is_refused_with_its_line() {
    let broken = ENGINE.replace(" SG_ Heat m1 : 15|8@0-", " SG_ Heat m1 : 15|8 0-");
    let error = Database::parse(&broken).unwrap_err().to_string();
    assert!(error.starts_with("line 13, column 2: not DBC: SG_ Heat"), "{error}");
    assert_eq!(Database::parse("").unwrap_err().to_string(), "is empty: not a DBC");
    assert!(Database::parse("(1.0) can0 123#00").is_err());
}

#[test]
fn a_parameter_group_is_found_whatever_its_source_address() {
    let text = "BO_ 2364540158 EEC1: 8 X\n SG_ S : 24|16@1+ (0.125,0) [0|0] \"rpm\" Y\n\n\
                BA_DEF_ BO_ \"VFrameFormat\" ENUM \"StandardCAN\",\"ExtendedCAN\",\"reserved\",\"J1939PG\";\n\
                BA_DEF_DEF_ \"VFrameFormat\" \"J1939PG\";\n";
    let database = Database::parse(text).unwrap();
    let codebook = Codebook::new(&[&database]);
    for (id, found) in [(0x0CF0_0400, true), (0x18F0_0421, true), (0x18F0_0521, false), (0x18EF_0004, false)]
    {
        assert_eq!(codebook.message(Identifier::Eff(id)).is_some(), found, "{id:X}");
    }
    assert!(codebook.message(Identifier::Sff(4)).is_none());
}

proptest! {
    #[test]
    fn no_damage_makes_it_panic(place in 0usize..2000, count in 0usize..40, with in "[ -~\n]{0,8}") {
        let mut text: Vec<char> = ENGINE.chars().collect();
        let from = place.min(text.len());
        let to = (from + count).min(text.len());
        text.splice(from..to, with.chars());
        let _ = Database::parse(&text.into_iter().collect::<String>());
    }

    #[test]
    fn no_text_makes_it_panic(text in "(BO_|SG_|VAL_|SG_MUL_VAL_|[0-9]{1,20}|[MmAB]|[:|@+(,)\\[\\]\" \n;-]){0,60}") {
        let _ = Database::parse(&text);
    }
}
