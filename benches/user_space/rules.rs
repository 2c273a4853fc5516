//! The rule engine: frames that it chooses by their identifiers, and changes of frames. Each batch is filled before, which
//! `batch: push` measures alone.

use canter_benches::{
    comparison::Comparisons,
    traffic::{Traffic, identifiers},
};
use canter_io::{
    Batch,
    batch::{BATCH_FRAMES, Meta},
};
use canter_route::rules::{engine::Engine, read};

/// Rule files with one rule for all frames.
const CHANGES: &[(&str, &str)] = &[
    ("forward all", "[[rule]]\n"),
    ("one identifier", "[[rule]]\nfilter = ['123']\n"),
    ("set", "[[rule]]\nset = { data = '1122334455667788' }\n"),
    (
        "and, or, xor",
        "[[rule]]\nand = { data = 'FF00FF00FF00FF00' }\nor = { data = '0011001100110011' }\n\
         xor = { data = '1111111111111111' }\n",
    ),
    ("xor-checksum", "[[rule]]\nxor-checksum = { from = 0, to = 6, result = 7, init = 0xA5 }\n"),
    ("crc8", "[[rule]]\ncrc8 = { from = 0, to = 6, result = 7, init = 0xFF, polynomial = 0x2F }\n"),
    ("limit", "[[rule]]\nlimit = '100/s'\n"),
];

/// Measures the engine with each rule file.
pub fn bench(comparisons: &mut Comparisons) {
    let traffic = Traffic::classic();
    for (name, text) in CHANGES {
        bench_file(comparisons, &traffic, name, text);
    }
    bench_file(comparisons, &traffic, "a rule for each of 1000", &rule_of_each_identifier());
    bench_file(comparisons, &traffic, "64 masks", &rules_of_masks());
}

fn bench_file(comparisons: &mut Comparisons, traffic: &Traffic, name: &str, text: &str) {
    let rules = read::parse(name, text).unwrap_or_else(|failure| panic!("{name}: {failure}"));
    let mut engine = Engine::new(&rules.loose.expect("the file has no routes"), BATCH_FRAMES);
    let mut batch = Batch::new(BATCH_FRAMES);
    comparisons.measure(&format!("rules: {name}"), traffic, || {
        for records in traffic.records.chunks(BATCH_FRAMES) {
            batch.clear();
            for record in records {
                let meta = Meta { stamp_ns: record.stamp_ns, ..Meta::default() };
                batch.push(&record.frame, meta);
            }
            engine.apply(&mut batch, |meta| meta.stamp_ns);
        }
    });
}

fn rule_of_each_identifier() -> String {
    identifiers().map(|id| format!("[[rule]]\nfilter = ['{id}']\n")).collect()
}

/// Masks that no table of identifiers covers: extended, by two nibbles far apart.
fn rules_of_masks() -> String {
    (0..64).map(|at| format!("[[rule]]\nfilter = ['{:08X}:1F00003F']\n", 0x1800_0000 | at)).collect()
}
