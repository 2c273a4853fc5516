//! Signals: a database of 1000 messages with 8 signals each, in both byte orders, with and without sign and factor.

use canter_benches::{
    comparison::Comparisons,
    traffic::{Traffic, identifiers},
};
use canter_formats::Identifier;
use canter_signals::{Batch, Codebook, Database, Payload};
use std::{fmt::Write, hint::black_box};

const SIGNALS: &str = r#"
 SG_ Counter : 0|8@1+ (1,0) [0|0] "" Vector__XXX
 SG_ Speed : 8|16@1- (0.1,0) [0|0] "km/h" Vector__XXX
 SG_ Temperature : 31|12@0+ (0.5,-40) [0|0] "C" Vector__XXX
 SG_ Gear : 32|4@1+ (1,0) [0|0] "" Vector__XXX
 SG_ Torque : 47|8@0- (2,0) [0|0] "Nm" Vector__XXX
 SG_ Brake : 48|1@1+ (1,0) [0|0] "" Vector__XXX
 SG_ Mode : 49|7@1+ (1,0) [0|0] "" Vector__XXX
 SG_ Checksum : 56|8@1+ (1,0) [0|0] "" Vector__XXX
"#;

/// Measures decoding frame by frame and signal by signal, and encoding.
pub fn bench(comparisons: &mut Comparisons) {
    let traffic = Traffic::classic();
    let database = Database::parse(&database()).expect("a valid database");
    assert!(database.remarks.is_empty(), "{:?}", database.remarks);
    let codebook = Codebook::new(&[&database]);
    comparisons.measure("signals: find the message", &traffic, || {
        traffic.records.iter().filter(|record| codebook.place(record.frame.id()).is_some()).count()
    });
    comparisons.measure("signals: decode 8, patterns", &traffic, || decode_patterns(&codebook, &traffic));
    comparisons.measure("signals: decode 8, values", &traffic, || decode_values(&codebook, &traffic));
    comparisons.measure("signals: decode 8, by columns", &traffic, || decode_columns(&codebook, &traffic));
    comparisons.measure("signals: encode 8, patterns", &traffic, || encode(&codebook, &traffic));
}

fn database() -> String {
    let mut text = "VERSION \"\"\n\nBU_: ECU\n\n".to_owned();
    for (number, id) in identifiers().enumerate() {
        let id = match id {
            Identifier::Sff(id) => u32::from(id),
            Identifier::Eff(id) => id | 0x8000_0000,
        };
        _ = writeln!(text, "BO_ {id} Message{number}: 8 ECU{SIGNALS}");
    }
    text
}

fn decode_patterns(codebook: &Codebook<'_>, traffic: &Traffic) -> u64 {
    let mut sum = 0u64;
    for record in &traffic.records {
        let message = codebook.message(record.frame.id()).expect("the database has all identifiers");
        message.visit(Payload::of_frame(&record.frame), |_, bits| sum = sum.wrapping_add(bits));
    }
    sum
}

fn decode_values(codebook: &Codebook<'_>, traffic: &Traffic) {
    for record in &traffic.records {
        let message = codebook.message(record.frame.id()).expect("the database has all identifiers");
        message.visit(Payload::of_frame(&record.frame), |at, bits| {
            black_box(message.signals[at].value(bits));
        });
    }
}

/// Decodes as tables do: the payloads of each message are collected, and then each signal is a column.
fn decode_columns(codebook: &Codebook<'_>, traffic: &Traffic) {
    let mut batches: Vec<Batch> = codebook.messages().iter().map(|message| Batch::new(message)).collect();
    for record in &traffic.records {
        let place = codebook.place(record.frame.id()).expect("the database has all identifiers");
        batches[place].push(Payload::of_frame(&record.frame));
    }
    for (message, batch) in codebook.messages().iter().zip(&batches) {
        for at in 0..message.signals.len() {
            black_box(message.values_of(at, batch));
        }
    }
}

fn encode(codebook: &Codebook<'_>, traffic: &Traffic) {
    for record in &traffic.records {
        let message = codebook.message(record.frame.id()).expect("the database has all identifiers");
        let mut data = [0; 64];
        for at in 0..message.signals.len() {
            message.store(at, record.stamp_ns, &mut data);
        }
        black_box(data);
    }
}
