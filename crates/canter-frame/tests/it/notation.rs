//@ machine: host
//! Checks the notation against the behavior of can-utils.

use canter_frame::frame::{BRS, EFF_MASK, ERR_FLAG, ESI, FDF, RTR_FLAG, len_of_dlc};
use canter_frame::notation::{Expected, parse_frame};
use canter_frame::{CandumpLine, Direction, Frame, Identifier, LogLine};
use proptest::prelude::*;

fn frame(text: &str) -> Frame {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The bytes that reach a socket.
fn written(frame: &Frame) -> String {
    let [a, b, c, d] = frame.can_id.to_le_bytes();
    let head = [a, b, c, d, frame.len, frame.flags, 0, frame.len8_dlc];
    let bytes = head.iter().chain(&frame.data[..frame.mtu() - 8]);
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_frame_reads_as_cansend_reads_it() {
    // The bytes that cansend 2020.11 writes to its socket; `_` as later versions read it.
    for (text, want) in [
        ("123#DE", "2301000001000000de00000000000000"),
        ("123#.11.", "23010000010000001100000000000000"),
        ("123#11.22.33", "23010000030000001122330000000000"),
        ("5AA#", "aa050000000000000000000000000000"),
        ("123#r", "23010040000000000000000000000000"),
        ("00000123#R3", "230100c0030000000000000000000000"),
        ("123#R8_E", "230100400800000e0000000000000000"),
        ("1F334455#1122334455667788", "5544339f080000001122334455667788"),
        ("123#1122334455667788_f", "230100000800000f1122334455667788"),
        ("20000004#deadBEEF", "0400002004000000deadbeef00000000"),
    ] {
        assert_eq!(written(&frame(text)), want, "{text}");
    }
    let padded = frame("123##1112233445566778899");
    assert_eq!(&written(&padded)[..40], "230100000c050000112233445566778899000000");
    assert_eq!((padded.len, padded.flags), (12, BRS | FDF));
    assert_eq!(frame("123##f"), frame("123##3"));
}

#[test]
fn an_invalid_frame_is_refused_with_the_position_of_the_error() {
    for (text, position, expected) in [
        ("", 0, Expected::Identifier),
        ("12#11", 0, Expected::Identifier),
        ("1234#11", 0, Expected::Identifier),
        ("123 #", 0, Expected::Identifier),
        ("1x3#11", 1, Expected::Digit),
        ("FFF#11", 0, Expected::Sff),
        ("80000123#", 0, Expected::Eff),
        ("40000123#11", 0, Expected::Eff),
        ("123#X", 4, Expected::Digit),
        ("123#D", 5, Expected::Digit),
        ("123#11..22", 7, Expected::Digit),
        ("123#1122334455667788 ", 20, Expected::End),
        ("123#112233445566778899", 20, Expected::End),
        ("123#1122334455667788_1", 21, Expected::Dlc),
        ("123#1122334455667788_", 21, Expected::Dlc),
        ("123#1122334455667788_9A", 22, Expected::End),
        ("123#11_9", 6, Expected::Digit),
        ("123#R9", 5, Expected::RtrLength),
        ("123#RX", 5, Expected::RtrLength),
        ("123#R7_9", 6, Expected::End),
        ("123##", 5, Expected::Flags),
        ("123##G", 5, Expected::Flags),
        ("123##1AABBC", 11, Expected::Digit),
        ("20000004#R", 9, Expected::ErrorData),
        ("20000004##1", 9, Expected::ErrorData),
    ] {
        let error = text.parse::<Frame>().expect_err(text);
        assert_eq!((error.position, error.expected), (position, expected), "{text}");
    }
    let long = format!("123##1{}", "00".repeat(65));
    assert_eq!(long.parse::<Frame>().unwrap_err().position, 6 + 128);
    let error = "123#X".parse::<Frame>().unwrap_err();
    assert_eq!(error.to_string(), "position 4: expected a hex digit");
}

#[test]
fn a_frame_prints_as_candump_prints_it() {
    // The lines that candump 2020.11 printed; it does not know `_`.
    for (text, line) in [
        ("123#DEAD", "  can0  123   [2]  DE AD"),
        ("123#", "  can0  123   [0] "),
        ("123#R", "  can0  123   [0]  remote request"),
        ("123#R5", "  can0  123   [5]  remote request"),
        ("123#R8_E", "  can0  123   [8]  remote request"),
        ("123#3132333435363738_B", "  can0  123   [8]  31 32 33 34 35 36 37 38"),
        ("123##56162", "  can0  123  [02]  61 62"),
        ("123##4", "  can0  123  [00] "),
        ("20000004#0000000000000000", "  can0  20000004   [8]  00 00 00 00 00 00 00 00   ERRORFRAME"),
        ("20000004#", "  can0  20000004   [0]                            ERRORFRAME"),
        ("1234567F#41", "  can0  1234567F   [1]  41"),
    ] {
        let frame = frame(text);
        assert_eq!(frame.to_string(), text);
        assert_eq!(format!("{frame:?}"), text);
        assert_eq!(CandumpLine { interface: "can0", frame: &frame, indent_sff: false }.to_string(), line);
    }
    let [short, long] = [frame("7FF#42"), frame("00000001##4313233343536373861626364")];
    let indented = |frame: &Frame| CandumpLine { interface: "can0", frame, indent_sff: true }.to_string();
    assert_eq!(indented(&short), "  can0       7FF   [1]  42");
    assert_eq!(indented(&long), "  can0  00000001  [12]  31 32 33 34 35 36 37 38 61 62 63 64");
}

#[test]
fn a_log_line_reads_and_prints_with_six_or_nine_digits() {
    for (text, stamp_ns, direction) in [
        ("(1700000000.123456) can0 123#DEADBEEF", 1_700_000_000_123_456_000, None),
        ("(0000000000.000001) can0 123#DEADBEEF R", 1000, Some(Direction::Received)),
        ("(0000000005.999999) can0 123#DEADBEEF T", 5_999_999_000, Some(Direction::Sent)),
        ("(1700000000.123456789) can0 123#DEADBEEF", 1_700_000_000_123_456_789, None),
    ] {
        let line = LogLine::parse(text).unwrap().expect(text);
        assert_eq!((line.stamp_ns, line.direction, line.interface), (stamp_ns, direction, "can0"));
        assert_eq!(line.frame, frame("123#DEADBEEF"));
        let printed = if text.find(')') == Some(18) { line.to_string() } else { format!("{line:.9}") };
        assert_eq!(printed, text);
    }
    let padded = LogLine::parse("(1.000000)   vcan10  123#R \r\n").unwrap().unwrap();
    assert_eq!((padded.interface, padded.frame), ("vcan10", frame("123#R")));
    for comment in
        ["", "# 3 frames", "DROPCOUNT: dropped 1 CAN frame on 'can0' socket (total drops 1)", " (1.000000)"]
    {
        assert_eq!(LogLine::parse(comment), Ok(None), "{comment}");
    }
}

#[test]
fn an_invalid_log_line_is_refused_with_the_position_of_the_error() {
    for (text, position, expected) in [
        ("(", 1, Expected::Stamp),
        ("(1700000000.123456 can0 123#", 1, Expected::Stamp),
        ("(.123456) can0 123#", 1, Expected::Stamp),
        ("(-1.123456) can0 123#", 1, Expected::Stamp),
        ("(17.12345) can0 123#", 4, Expected::Stamp),
        ("(17.12x456) can0 123#", 4, Expected::Stamp),
        ("(18446744074.000000) can0 123#", 1, Expected::StampRange),
        ("(99999999999999999999.000000) can0 123#", 1, Expected::StampRange),
        ("(17.123456)", 11, Expected::Interface),
        ("(17.123456) an-interface-that-is-long 123#", 12, Expected::Interface),
        ("(17.123456) can0", 16, Expected::Identifier),
        ("(17.123456) can0 123#X", 21, Expected::Digit),
        ("(17.123456) can0 123# X", 22, Expected::Direction),
        ("(17.123456) can0 123# R T", 24, Expected::Direction),
    ] {
        let error = LogLine::parse(text).expect_err(text);
        assert_eq!((error.position, error.expected), (position, expected), "{text}");
    }
}

fn identifiers() -> impl Strategy<Value = Identifier> {
    prop_oneof![(0..=0x7ffu16).prop_map(Identifier::Sff), (0..=EFF_MASK).prop_map(Identifier::Eff)]
}

/// Frames of every kind.
fn frames() -> impl Strategy<Value = Frame> {
    let bytes = |max: usize| prop::collection::vec(any::<u8>(), 0..=max);
    let full = (identifiers(), prop::array::uniform8(any::<u8>()), 9..=15u8, any::<bool>());
    prop_oneof![
        (identifiers(), bytes(8)).prop_map(|(id, data)| Frame::classic(id, &data).unwrap()),
        (identifiers(), 0..=8u8).prop_map(|(id, len)| Frame::rtr(id, len).unwrap()),
        full.prop_map(|(id, data, dlc, rtr)| {
            let mut frame = Frame::classic(id, &data).unwrap();
            frame.can_id |= if rtr { RTR_FLAG } else { 0 };
            frame.len8_dlc = dlc;
            frame
        }),
        (identifiers(), bytes(64), 0..=15u8, 0..=(BRS | ESI)).prop_map(|(id, mut data, dlc, flags)| {
            data.resize(len_of_dlc(dlc), 0x5a);
            Frame::fd(id, &data, flags).unwrap()
        }),
        (0..=EFF_MASK, bytes(8)).prop_map(|(classes, data)| {
            let mut frame = Frame::classic(Identifier::Sff(0), &data).unwrap();
            frame.can_id = ERR_FLAG | classes;
            frame
        }),
    ]
}

/// The text of a frame with one character changed or inserted.
fn altered_text() -> impl Strategy<Value = String> {
    (frames(), any::<prop::sample::Index>(), any::<char>(), any::<bool>()).prop_map(
        |(frame, at, char, insert)| {
            let mut text = frame.to_string();
            let at = at.index(text.len());
            text.replace_range(at..if insert { at } else { at + 1 }, &char.to_string());
            text
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn a_frame_prints_and_reads_back_the_same(frame in frames()) {
        prop_assert_eq!(frame.to_string().parse::<Frame>(), Ok(frame));
        prop_assert_eq!(frame.to_string().to_lowercase().parse::<Frame>(), Ok(frame));
    }

    #[test]
    fn a_log_line_prints_and_reads_back_the_same(
        frame in frames(), stamp_ns: u64, way in 0..3usize, interface in "[a-z.0-9-]{1,15}"
    ) {
        let direction = [None, Some(Direction::Received), Some(Direction::Sent)][way];
        let line = LogLine { stamp_ns, interface: &interface, frame, direction };
        let (fine, short) = (format!("{line:.9}"), line.to_string());
        prop_assert_eq!(LogLine::parse(&fine), Ok(Some(line)));
        let coarse = LogLine { stamp_ns: stamp_ns / 1000 * 1000, ..line };
        prop_assert_eq!(LogLine::parse(&short), Ok(Some(coarse)));
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..40), text in "\\PC{0,40}") {
        let _ = parse_frame(&bytes);
        let _ = text.parse::<Frame>();
        let _ = LogLine::parse(&text);
        let _ = LogLine::parse(&format!("({text}"));
        let _ = LogLine::parse(&format!("(1.000000) {text}"));
    }

    #[test]
    fn an_altered_frame_is_refused_within_its_text_or_is_a_frame(text in altered_text()) {
        let line = format!("(1.000000) can0 {text}");
        match text.parse::<Frame>() {
            Ok(frame) => prop_assert_eq!(frame.to_string().parse::<Frame>(), Ok(frame)),
            Err(error) => prop_assert!(error.position <= text.len()),
        }
        if let Err(error) = LogLine::parse(&line) {
            prop_assert!(error.position <= line.len());
        }
    }

    #[test]
    fn no_content_of_a_frame_makes_printing_panic(
        can_id: u32, len: u8, flags: u8, len8_dlc: u8, indent_sff: bool
    ) {
        let mut frame = Frame::default();
        (frame.can_id, frame.len, frame.flags, frame.len8_dlc) = (can_id, len, flags, len8_dlc);
        let _ = frame.to_string();
        let _ = CandumpLine { interface: "can0", frame: &frame, indent_sff }.to_string();
    }
}
