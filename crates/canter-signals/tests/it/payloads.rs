//@ machine: host
//! Encoding what was decoded gives the same bits, for every kind of signal.

use canter_frame::Frame;
use canter_signals::{Batch, Codebook, Database, Message, Payload, Value, Values};
use proptest::prelude::*;

/// A message of 64 bytes with these signals: start, bits, big-endian, signed, factor, offset.
fn message(signals: &[(usize, usize, bool, bool, f64, f64)]) -> Message {
    let mut text = "BO_ 1 A: 64 X\n".to_owned();
    for (n, &(start, bits, big, signed, factor, offset)) in signals.iter().enumerate() {
        let (order, sign) = (u8::from(!big), if signed { '-' } else { '+' });
        text += &format!(" SG_ S{n} : {start}|{bits}@{order}{sign} ({factor},{offset}) [0|0] \"\" Y\n");
    }
    Database::parse(&text).unwrap().messages.remove(0)
}

prop_compose! {
    fn signal()(
        start in 0usize..512, bits in 1usize..=64, big in any::<bool>(), signed in any::<bool>(),
        factor in prop::sample::select(vec![1.0, 0.5, 0.125, 0.1, 3.0, -2.0, 1e-3, 0.00390625]),
        offset in prop::sample::select(vec![0.0, -40.0, 12.5, 1000.0]),
    ) -> (usize, usize, bool, bool, f64, f64) {
        (start, bits, big, signed, factor, offset)
    }
}

proptest! {
    #[test]
    fn patterns_of_a_payload_make_the_same_payload(
        signals in prop::collection::vec(signal(), 1..12), data in prop::collection::vec(any::<u8>(), 64),
    ) {
        let message = message(&signals);
        let (mut copy, mut covered) = (vec![0; 64], vec![0u8; 64]);
        message.visit(Payload::of_bytes(&data), |at, bits| {
            message.store(at, bits, &mut copy);
            message.store(at, u64::MAX, &mut covered);
        });
        for at in 0..64 {
            prop_assert_eq!(copy[at], data[at] & covered[at]);
        }
    }

    #[test]
    fn a_value_of_52_bits_or_an_integer_has_the_pattern_that_it_came_from(one in signal(), data in prop::collection::vec(any::<u8>(), 64)) {
        let message = message(&[one]);
        message.visit(Payload::of_bytes(&data), |at, bits| {
            let signal = &message.signals[at];
            let value = signal.value(bits);
            if signal.bits <= 48 || !matches!(value, Value::Float(_)) {
                assert_eq!(signal.pattern(value), Some(bits), "{value} {signal:?}");
            }
        });
    }

    #[test]
    fn a_batch_has_the_values_of_its_payloads(
        signals in prop::collection::vec(signal(), 1..6),
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..65), 0..8),
    ) {
        let message = message(&signals);
        let mut batch = Batch::new(&message);
        payloads.iter().for_each(|data| batch.push(Payload::of_bytes(data)));
        prop_assert_eq!(batch.len(), payloads.len());
        for at in 0..message.signals.len() {
            let single = payloads.iter().map(|data| Some(message.signals[at].value(message.pattern(at, Payload::of_bytes(data))?)));
            let single: Vec<Option<Value>> = single.collect();
            let (values, present) = message.values_of(at, &batch);
            let values: Vec<Value> = match values {
                Values::Integers(values) => values.into_iter().map(Value::Integer).collect(),
                Values::Unsigned(values) => values.into_iter().map(Value::Unsigned).collect(),
                Values::Floats(values) => values.into_iter().map(Value::Float).collect(),
            };
            let present = present.unwrap_or_else(|| vec![true; payloads.len()]);
            prop_assert_eq!(single.iter().map(Option::is_some).collect::<Vec<_>>(), present);
            prop_assert_eq!(single.into_iter().flatten().collect::<Vec<_>>(), values);
        }
    }

    #[test]
    fn a_short_payload_has_a_part_of_the_signals_of_a_long_one(
        signals in prop::collection::vec(signal(), 1..12), data in prop::collection::vec(any::<u8>(), 64), bytes in 0usize..64,
    ) {
        let message = message(&signals);
        let (mut short, mut long) = (Vec::new(), Vec::new());
        let missing = message.visit(Payload::of_bytes(&data[..bytes]), |at, bits| short.push((at, bits))).missing;
        message.visit(Payload::of_buffer(&data, 64), |at, bits| long.push((at, bits)));
        prop_assert_eq!(short.len() + missing as usize, long.len());
        prop_assert!(short.iter().all(|one| long.contains(one)));
    }
}

#[test]
fn floats_keep_nan_and_infinities() {
    let text = "BO_ 1 A: 12 X\n SG_ F : 0|32@1- (1,0) [0|0] \"\" Y\n SG_ D : 32|64@1- (1,0) [0|0] \"\" Y\n\n\
                SIG_VALTYPE_ 1 F : 1;\nSIG_VALTYPE_ 1 D : 2;\n";
    let message = Database::parse(text).unwrap().messages.remove(0);
    for (single, double) in
        [(f32::NAN, f64::NEG_INFINITY), (1.5, 1e300), (f32::INFINITY, -0.0), (-0.25, f64::NAN)]
    {
        let data = [&single.to_le_bytes()[..], &double.to_le_bytes()].concat();
        let values: Vec<f64> = message.values(&data).map(|(_, value)| value.as_f64()).collect();
        assert_eq!(values[0].to_bits(), f64::from(single).to_bits());
        assert_eq!(values[1].to_bits(), double.to_bits());
        let encoded = message.encode(&[("F", values[0].into()), ("D", values[1].into())]).unwrap();
        assert_eq!(encoded, data);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let message = message(&[(0, 8, false, true, 0.5, 0.0)]);
    for (value, result) in [
        (63.5, Some(127)),
        (-64.0, Some(0x80)),
        (64.0, None),
        (-64.5, None),
        (f64::NAN, None),
        (f64::INFINITY, None),
    ] {
        assert_eq!(message.signals[0].pattern(value.into()), result, "{value}");
    }
    let error = message.encode(&[("S0", 64.into())]).unwrap_err();
    assert_eq!(error.to_string(), "A: S0: 64 does not fit into the signal");
    assert_eq!(message.encode(&[("X", 64.into())]).unwrap_err().to_string(), "A: X: no such signal");
}

#[test]
fn a_filter_passes_the_frames_that_the_codebook_knows() {
    let text = "BO_ 2364540158 EEC1: 8 X\n\nBO_ 2348810494 TSC1: 8 X\n\nBO_ 291 Engine: 8 X\n\nBA_DEF_ BO_ \"VFrameFormat\" ENUM \"StandardCAN\",\"ExtendedCAN\",\"reserved\",\"J1939PG\";\nBA_DEF_DEF_ \"VFrameFormat\" \"J1939PG\";\nBA_ \"VFrameFormat\" BO_ 291 0;\n";
    let database = Database::parse(text).unwrap();
    let codebook = Codebook::new(&[&database]);
    let mut passed = 0;
    for text in [
        "0CF00421#00",
        "18F004FE#00",
        "0CF00500#00",
        "0C000021#",
        "1800FF21#",
        "00000021#",
        "123#00",
        "00000123#",
        "124#",
    ] {
        let frame: Frame = text.parse().unwrap();
        for message in &database.messages {
            let means = codebook.message(frame.id()).is_some_and(|known| known.name == message.name);
            assert_eq!(message.filter().matches(&frame), means, "{text} {}", message.name);
            passed += u32::from(means);
        }
    }
    assert_eq!(passed, 7);
    let request: Frame = "123#R".parse().unwrap();
    assert!(!database.message("Engine").unwrap().filter().matches(&request));
}
