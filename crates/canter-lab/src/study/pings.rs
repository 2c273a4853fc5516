//! Round-trip times, by `canter ping` and `canter pong` as separate processes.

use super::{
    definition::{PingPair, PingPlan},
    ethernet::Ethernet,
    load::{self, Load, Part},
    preparation::{Rate, set_up},
    tuning::Tuning,
};
use canter_cli::failure::{self, Exit, Failure};
use canter_io::{Interface, process};
use canter_measure::result::{Condition, ResultFile, Series};
use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

/// Sets up the interfaces of all pairs.
pub fn interfaces(plan: &PingPlan) -> failure::Result<Vec<Interface>> {
    let mut interfaces: Vec<Interface> = Vec::new();
    for name in plan.pairs.iter().flat_map(|pair| [&pair.from, &pair.to]) {
        if !interfaces.iter().any(|known| known.name == *name) {
            interfaces.push(set_up(name, rate(plan))?);
        }
    }
    Ok(interfaces)
}

fn rate(plan: &PingPlan) -> Rate {
    if plan.timeless { Rate::Timeless } else { Rate::Classic }
}

/// Every pair under every load and tuning, but for those whose number is `known`.
pub fn measure(
    plan: &PingPlan,
    known: &BTreeSet<usize>,
    done: &mut dyn FnMut(usize, &str, Series),
) -> failure::Result<()> {
    let loads: Vec<Load> = plan.loads.iter().filter_map(|load| load.parse().ok()).collect();
    let ethernet = if loads.iter().any(|load| load.is_ethernet()) { Ethernet::of_lab()? } else { None };
    let mut numbers = 0..;
    for load in loads {
        for &tuning in &plan.tuning {
            for pair in &plan.pairs {
                let number = numbers.next().unwrap_or_default();
                if known.contains(&number) {
                    continue;
                }
                for name in [&pair.from, &pair.to] {
                    set_up(name, rate(plan))?;
                }
                let one = match tuned_ping(plan, pair, tuning, load, ethernet.as_ref()) {
                    Err(Failure { exit: Exit::Unable, message }) => {
                        Series::unavailable(&pair.method, Condition::default(), message)
                    }
                    measured => measured?,
                };
                let (load, variant) = (load.name().to_owned(), tuning.to_string());
                let label = [&pair.method, "load", &load, &variant].join(" ");
                let condition = Condition { load, variant, ..one.condition };
                let one = Series { quantity: "round-trip".to_owned(), condition, ..one };
                done(number, label.trim_end(), one);
            }
        }
    }
    Ok(())
}

fn tuned_ping(
    plan: &PingPlan,
    pair: &PingPair,
    tuning: Tuning,
    load: Load,
    ethernet: Option<&Ethernet>,
) -> failure::Result<Series> {
    let _tuned = tuning.apply(&[&pair.from, &pair.to])?;
    let _running = load::start(load, None, ethernet, Part::Both)?;
    ping(plan, pair)
}

/// The time between two pings. Without pauses, two real-time programs would leave a load no processor time. A prime
/// number of µs is not in step with the kernel's timers.
const INTERVAL: &str = "1009us";

fn ping(plan: &PingPlan, pair: &PingPair) -> failure::Result<Series> {
    let failed = |what: String| Failure::failed(format!("study: ping by {}: {what}", pair.method));
    let program = super::program()?;
    let realtime = plan.realtime.to_string();
    let mut pong = Command::new(&program)
        .args(["pong", &pair.to, "--method", &pair.method, "--realtime", &realtime])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let mut line = String::new();
    let log = pong.stderr.take();
    let mut log = BufReader::new(log.ok_or_else(|| failed("no log".to_owned()))?);
    log.read_line(&mut line).map_err(|error| failed(error.to_string()))?; // the line is `pong: …`, or an error
    if !line.starts_with("pong: ") {
        let _ = pong.wait();
        return Err(super::unable(&line));
    }
    let output = Command::new(&program)
        .args([
            "ping",
            &pair.from,
            "--method",
            &pair.method,
            "--interval",
            INTERVAL,
            "--json",
            "-",
            "--quiet",
        ])
        .args(["--count", &plan.count.to_string(), "--len", &plan.len.to_string(), "--realtime", &realtime])
        .args(["--jitter", &format!("{}ns", plan.jitter), "--seed", &plan.seed.to_string()])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    process::terminate(&pong).map_err(|error| failed(error.to_string()))?;
    let _ = pong.wait();
    let result: Result<ResultFile, _> = serde_json::from_slice(&output.stdout);
    let series = result.ok().and_then(|result| result.series.into_iter().next());
    series.ok_or_else(|| super::unable(&String::from_utf8_lossy(&output.stderr)))
}
