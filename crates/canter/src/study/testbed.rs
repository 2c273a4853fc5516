//! The papers' testbed in one machine: a sender with can0 and can1 on bus A and can2 on bus B, and a gateway with can3
//! on A and can4 on B. With two processors each side has its own, interrupts included.

use super::{definition::LatencyPlan, definition::Study, say};
use crate::{
    failure::{self, Failure},
    gateway::{Account, Method, paper_name},
    measure::result::{Condition, Series},
    meter::latency::{self, Measured, Setup, WireTime},
    options::Common,
    traffic::template::Template,
};
use canter_io::{
    Interface,
    interface::{BitTiming, Kind},
    sys::process,
};
use std::{
    fs,
    io::{BufRead, BufReader, Read},
    process::{Child, ChildStderr, Command, Stdio},
};

const SEND: &str = "can0";
const DIRECT: &str = "can1";
const ROUTED: &str = "can2";
const GATEWAY_IN: &str = "can3";
const GATEWAY_OUT: &str = "can4";

/// The papers' bit rate.
const BIT_RATE: u32 = 1_000_000;

/// The processors of the sender and of the gateway.
const SENDER_CPU: usize = 0;
const GATEWAY_CPU: usize = 1;

/// Measures every method of the plan, one after the other.
pub fn measure(
    study: &Study,
    plan: &LatencyPlan,
    common: &Common,
) -> failure::Result<(Vec<Series>, Vec<Interface>)> {
    let interfaces = set_up()?;
    let apart = std::thread::available_parallelism().is_ok_and(|count| count.get() > 1);
    if apart {
        place_interrupts(&[SEND, DIRECT, ROUTED], SENDER_CPU)?;
        place_interrupts(&[GATEWAY_IN, GATEWAY_OUT], GATEWAY_CPU)?;
    }
    // No progress bar of its own: this runs where nobody looks.
    let meter = Common { cpu: apart.then_some(SENDER_CPU), quiet: true, ..Common::default() };
    let setup = setup(plan)?;
    let floor_ns = floor(&setup, &meter)?;
    let mut series = Vec::new();
    for (done, method) in plan.methods.iter().enumerate() {
        let mut one = gateway_series(method, &setup, apart, &meter)?;
        one.floor_ns = Some(floor_ns);
        let outcome = one.latency_ns.as_ref().map_or("not on this machine".to_owned(), |latency| {
            format!("median {:.1} µs", latency.p50 as f64 / 1000.0)
        });
        say(common, &format!("{}: {} of {}: {method}: {outcome}", study.name, done + 1, plan.methods.len()));
        series.push(one);
    }
    Ok((series, interfaces))
}

/// Brings all five interfaces up.
fn set_up() -> failure::Result<Vec<Interface>> {
    let mut interfaces = Vec::new();
    for name in [SEND, DIRECT, ROUTED, GATEWAY_IN, GATEWAY_OUT] {
        let mut interface = Interface::find(name)?;
        if interface.kind == Kind::Can && interface.bitrate() != Some(BIT_RATE) {
            interface.down()?;
            interface.set_bit_timing(&BitTiming::classic(BIT_RATE))?;
        }
        interface.up()?;
        interfaces.push(interface);
    }
    Ok(interfaces)
}

/// Sends the interrupts of these interfaces to one processor.
fn place_interrupts(interfaces: &[&str], processor: usize) -> failure::Result<()> {
    let table = fs::read_to_string("/proc/interrupts")
        .map_err(|error| Failure::failed(format!("/proc/interrupts: read: {error}")))?;
    for line in interrupts_of(&table, interfaces) {
        let path = format!("/proc/irq/{line}/smp_affinity_list");
        fs::write(&path, processor.to_string())
            .map_err(|error| Failure::unable(format!("{path}: write {processor}: {error} (needs root)")))?;
    }
    Ok(())
}

/// The numbers of the lines in /proc/interrupts whose last column names one of `interfaces`.
fn interrupts_of<'a>(table: &'a str, interfaces: &[&str]) -> Vec<&'a str> {
    let named = |line: &&str| {
        let mut names = line.rsplit("  ").next().unwrap_or_default().split([',', ' ']);
        names.any(|name| interfaces.contains(&name))
    };
    table.lines().filter(named).filter_map(|line| line.trim_start().split(':').next()).collect()
}

fn setup(plan: &LatencyPlan) -> failure::Result<Setup> {
    let traffic =
        plan.traffic.parse().map_err(|error| Failure::failed(format!("study: traffic: {error}")))?;
    Ok(Setup {
        send: SEND.to_owned(),
        direct: Some(DIRECT.to_owned()),
        routed: ROUTED.to_owned(),
        traffic,
        count: plan.count,
        gap: plan.gap_ns()?,
        template: Template::classic(plan.len),
        null: false,
        wire_time: WireTime::Auto,
    })
}

/// What the meter shows where there is no gateway: can3 hears the sender's bus as can1 does.
fn floor(setup: &Setup, meter: &Common) -> failure::Result<u64> {
    let null = Setup { routed: GATEWAY_IN.to_owned(), null: true, ..setup.clone() };
    let measured = latency::measure(&null, meter, &[])?;
    Ok(measured.series.latency_ns.map_or(0, |latency| latency.p50))
}

/// One gateway, from its start to its account.
fn gateway_series(method: &str, setup: &Setup, apart: bool, meter: &Common) -> failure::Result<Series> {
    let unavailable = |reason: String| {
        let condition = Condition { traffic: setup.traffic.name().to_owned(), ..Condition::default() };
        let paper_name = paper_name(method).to_owned();
        Ok(Series { paper_name, ..Series::unavailable(method, condition, reason) })
    };
    if method.parse::<Method>().is_err() {
        return unavailable("not part of this version".to_owned());
    }
    let watched = [Interface::find(GATEWAY_IN)?, Interface::find(GATEWAY_OUT)?];
    let gateway = match Gateway::start(method, apart)? {
        Started::Running(gateway) => gateway,
        Started::Unable(reason) => return unavailable(reason),
    };
    let measured = latency::measure(setup, meter, &[&watched[0], &watched[1]]);
    let account = gateway.stop()?;
    if !account.failure.is_empty() {
        return Err(Failure::failed(format!("study: gateway {method}: {}", account.failure)));
    }
    let Measured { mut series, account: meter_account, .. } = measured?;
    series.ledger = meter_account.ledger(&account.counts);
    series.method = method.to_owned();
    series.paper_name = paper_name(method).to_owned();
    Ok(series)
}

/// A gateway as a process of its own, as on the papers' second machine.
struct Gateway {
    process: Child,
    log: BufReader<ChildStderr>,
}

enum Started {
    Running(Gateway),
    /// The machine cannot do it, and why.
    Unable(String),
}

impl Gateway {
    fn start(method: &str, apart: bool) -> failure::Result<Started> {
        let failed =
            |error: std::io::Error| Failure::failed(format!("study: start gateway {method}: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args(["gateway", GATEWAY_IN, GATEWAY_OUT, "--method", method, "--json", "-"]);
        if apart {
            command.args(["--cpu", &GATEWAY_CPU.to_string()]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().map_err(failed)?;
        let Some(log) = process.stderr.take() else { return Err(Failure::failed("study: gateway: no log")) };
        let mut log = BufReader::new(log);
        let mut line = String::new();
        log.read_line(&mut line).map_err(failed)?; // it routes, or why it does not
        if line.starts_with("gateway: ") {
            return Ok(Started::Running(Self { process, log }));
        }
        let code = process.wait().map_err(failed)?.code();
        let reason = line.trim().trim_start_matches("canter: ").to_owned();
        match code {
            Some(code) if code == failure::Exit::Unable as i32 => Ok(Started::Unable(reason)),
            _ => Err(Failure::failed(format!("study: gateway {method}: {reason}"))),
        }
    }

    /// Ends it and reads its account.
    fn stop(mut self) -> failure::Result<Account> {
        let failed = |error: std::io::Error| Failure::failed(format!("study: end gateway: {error}"));
        process::terminate(&self.process).map_err(failed)?;
        let mut text = String::new();
        if let Some(output) = &mut self.process.stdout {
            output.read_to_string(&mut text).map_err(failed)?;
        }
        let mut log = String::new();
        self.log.read_to_string(&mut log).map_err(failed)?;
        self.process.wait().map_err(failed)?;
        serde_json::from_str(&text)
            .map_err(|error| Failure::failed(format!("study: gateway's account: {error}: {}", log.trim())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_are_found_by_the_interface_that_owns_them() {
        let table = "           CPU0       CPU1       \n  \
                     16:        120          0   IO-APIC  16-fasteoi   can4\n  \
                     20:          0          0   IO-APIC  20-fasteoi   can0, virtio2\n \
                     NMI:          0          0   Non-maskable interrupts\n";
        assert_eq!(interrupts_of(table, &["can0", "can1"]), ["20"]);
        assert_eq!(interrupts_of(table, &["can4"]), ["16"]);
        assert!(interrupts_of(table, &["can"]).is_empty());
    }
}
