//! Results of gateways on three kernels, and verdicts on claims of every criterion.

use super::{Random, condition, file, series};
use serde_json::{Value, json};
use std::{fs, path::Path};

/// Writes both into a folder.
pub fn write(folder: &Path) {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut names = Vec::new();
    for (n, result) in gateways(&mut random).into_iter().enumerate() {
        let kernel = ["6.1", "6.12", "6.12-rt", "6.12"][n];
        let date = result["environment"]["date"].as_str().expect("a date");
        names.push(format!("{} {kernel} {date}", result["study"].as_str().expect("a study")));
        fs::write(folder.join(format!("{n}.json")), result.to_string()).expect("a result file");
    }
    names.sort();
    let verdicts = json!({"verdicts_schema": 2, "results": names, "claims": claims()});
    fs::write(folder.join("verdicts.json"), verdicts.to_string()).expect("verdicts");
}

/// Three kernels by one instrument, and other gateways by another one. One gateway loses all on 6.1, one is invalid on
/// 6.12-rt, one was not measured there, and one loses some.
fn gateways(random: &mut Random) -> Vec<Value> {
    let mut measured = |instrument: &str, kernel: &str, medians: &[(&str, f64)]| {
        let one = |&(gateway, ns): &(&str, f64)| {
            let silent = gateway == "read+write" && kernel == "6.1.5-amd64";
            let frames = if silent { 0 } else { 100 };
            let mut condition = condition("one-at-a-time", "none");
            condition["instrument"] = instrument.into();
            let latencies = (0..frames).map(|_| random.latency(ns)).collect();
            let lost = if silent { 100 } else { u64::from(gateway == "ring/spin+write") * 3 };
            let mut one = series(gateway, condition, latencies, lost);
            if gateway == "canchar+canchar" && kernel.contains("-rt") {
                one["ledger"]["received"] = 7.into();
            }
            one
        };
        medians.iter().map(one).collect::<Vec<_>>()
    };
    let plain = [("bare-metal", 1.8e3), ("port+port", 1.9e3), ("can-gw", 6e3), ("<script>", 9e3)];
    let slow = [("canchar+canchar", 7e3), ("read+write", 14e3)];
    let all = [plain.as_slice(), &slow].concat();
    let sockets = [("can-gw", 12e3), ("ring/spin+write", 14e3), ("read+write", 18e3)];
    let title = "Gateways by <b>driver</b>";
    vec![
        file("gateways", title, "6.1.5-amd64", measured("probe", "6.1.5-amd64", &all)),
        file("gateways", title, "6.12.1-amd64", measured("probe", "6.12.1-amd64", &all)),
        file("gateways", title, "6.12.1-rt-amd64", measured("probe", "6.12.1-rt-amd64", &all[1..])),
        file("sockets", "Gateways by sockets", "6.12.1-amd64", measured("", "6.12.1-amd64", &sockets)),
    ]
}

fn claim(name: &str, at: &str, verdict: &str, more: Value) -> Value {
    let mut claim = json!({
        "study": "gateways", "claim": name, "at": at, "says": format!("What the paper says of {name}"),
        "verdict": verdict, "figures": "so and so", "boots": 1,
        "frames": 1000, "kernels": ["6.12"], "instruments": ["wire"],
    });
    for (key, value) in more.as_object().expect("an object") {
        claim[key] = value.clone();
    }
    claim
}

/// Each criterion, each verdict, each paper, and names that try to leave their place.
fn claims() -> Vec<Value> {
    let number = |quantity: &str| json!({"number": {"quantity": quantity}});
    let within = |value: f64, from: f64, to: f64| {
        json!({
            "value": value, "low": value * 0.9, "high": value * 1.1, "from": from, "to": to, "paper": 3.0,
            "plot": number("ratio"),
        })
    };
    let mut beyond = within(9.0, 2.0, 4.5);
    beyond["cause"] = "a <b>hash</b>".into();
    beyond["second"] = json!({"study": "gateways", "agrees": true, "found": "9 µs / 1 µs = 9"});
    let at_least = json!({
        "value": 78.3, "low": 75.6, "high": 81.8, "from": 2.0, "paper": 2.0, "plot": number("ratio"),
    });
    let none_lost = json!({
        "value": 0.0, "low": 0.0, "high": 0.004, "from": 0.0, "to": 0.0, "paper": 0.0, "plot": number("share"),
    });
    let some_lost = json!({
        "value": 0.617, "low": 0.58, "high": 0.65, "from": 0.222, "to": 0.5, "paper": 0.333, "plot": number("share"),
    });
    let order = json!({"plot": {"order": {"quantity": "time", "apart": 1.0, "figures": [
        {"label": "</text><script>", "figure": [12_000.0, 11_900.0, 12_100.0]},
        {"label": "read+write", "figure": [9_000.0, 8_000.0, 9_500.0]},
    ]}}});
    let course = |quantity: &str, points: Value, allowed: Value| {
        let lines = json!([{"label": "can-gw", "points": points}]);
        json!({"plot": {"course": {"quantity": quantity, "figure": "median", "against": "filters", "lines": lines, "allowed": allowed}}})
    };
    let flat = course(
        "time",
        json!([[1, 3720, 3700, 3730], [80, 3722, 3710, 3735], [2048, 3725, 3715, 3740]]),
        json!([{"at": 1, "from": 3720, "to": 3794.4}, {"at": 2048, "from": 3720, "to": 3794.4}]),
    );
    let rising = course(
        "time",
        json!([[0, 3700, 3700, 3700], [1, 5600, 5500, 5700], [5, 14_900, 14_000, 15_000]]),
        json!([{"at": 5, "from": 4600}]),
    );
    let losses =
        |from: f64| json!([[120, from, from, from], [160, from / 9.0, 0.0, from], [500, 0, 0, 0.004]]);
    let knee = json!({
        "value": 0.57, "low": 0.32, "high": 1.0, "from": 0.0, "to": 0.787, "paper": 0.787,
        "plot": {"course": {
            "quantity": "share", "figure": "lost frames", "against": "period, µs",
            "lines": [{"label": "can-gw", "points": losses(0.4)}, {"label": "read+write", "points": losses(0.6)}],
            "allowed": [{"at": 0, "from": 0}, {"at": 393.5, "from": 0}],
        }},
    });
    vec![
        claim("within", "2010, figure 5", "holds", within(3.0, 2.0, 4.5)),
        claim("beyond", "2010, figure 6", "no longer so", beyond),
        claim("across", "2011, figure 8", "open", within(4.4, 2.0, 4.5)),
        claim("at-least", "2011, figure 8", "holds", at_least),
        claim("none-lost", "2014, figure 4.3", "holds", none_lost),
        claim("some-lost", "2014, figure 4.3", "not by this instrument", some_lost),
        claim("order", "2014, figure 4.2", "open", order),
        claim("flat", "2011, figure 9", "holds", flat),
        claim("rising", "2011, figure 15", "holds", rising),
        claim("knee", "2014, figure 4.4", "open", knee),
        claim("too-few-boots", "WCCD, table 1", "open", json!({"boots": 0})),
        claim("cannot", "WCCD, table 2", "not measured yet", json!({"figures": "no <img> & \"such\" card"})),
        claim(
            "own",
            "my own \"notes\"",
            "holds",
            json!({"study": "<b>\u{1b}", "says": "<script>alert(1)</script>"}),
        ),
    ]
}
