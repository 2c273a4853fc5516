//! The papers' testbed in one machine: a sender with can0 and can1 on bus A and can2 on bus B, and a gateway with can3
//! on A and can4 on B. With two processors each side has its own, interrupts included.
//!
//! On virtual wires the sender's interfaces are not needed but for one that acknowledges what the gateway sends: the
//! wires send and stamp by themselves, so that nothing of the sender runs beside the gateway.

use super::{definition::LatencyPlan, definition::Study, say};
use crate::{
    failure::{self, Failure},
    gateway::{Account, Method, paper_name},
    lab::Bus,
    measure::result::{Condition, Series},
    meter::latency::{self, InstrumentName, Measured, Setup, WireTime},
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
    time::Duration,
};

/// What is where.
struct Testbed {
    send: &'static str,
    direct: Option<&'static str>,
    routed: &'static str,
    gateway_in: &'static str,
    gateway_out: &'static str,
    /// The interfaces that have to be up.
    up: &'static [&'static str],
    /// Up while a gateway starts, which may have to send a frame on the bus that it receives from.
    witness: Option<&'static str>,
    instrument: InstrumentName,
}

const CARDS: Testbed = Testbed {
    send: "can0",
    direct: Some("can1"),
    routed: "can2",
    gateway_in: "can3",
    gateway_out: "can4",
    up: &["can0", "can1", "can2", "can3", "can4"],
    witness: None,
    instrument: InstrumentName::Socket,
};

const WIRES: Testbed = Testbed {
    send: "A",
    direct: None,
    routed: "B",
    gateway_in: "wcan3",
    gateway_out: "wcan4",
    up: &["wcan2", "wcan3", "wcan4"],
    witness: Some("wcan1"),
    instrument: InstrumentName::Wire,
};

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
    let testbed = if study.lab.bus == Bus::Wire { &WIRES } else { &CARDS };
    let interfaces = testbed.set_up()?;
    let apart = std::thread::available_parallelism().is_ok_and(|count| count.get() > 1);
    if apart && testbed.instrument == InstrumentName::Socket {
        place_interrupts(&["can0", "can1", "can2"], SENDER_CPU)?;
        place_interrupts(&["can3", "can4"], GATEWAY_CPU)?;
    }
    // No progress bar of its own: this runs where nobody looks.
    let meter = Common { cpu: apart.then_some(SENDER_CPU), quiet: true, ..Common::default() };
    let setup = testbed.setup(plan)?;
    let floor_ns = testbed.floor(&setup, &meter)?;
    let mut series = Vec::new();
    for (done, method) in plan.methods.iter().enumerate() {
        let mut one = testbed.gateway_series(method, &setup, apart, &meter)?;
        one.floor_ns = floor_ns.or(one.floor_ns);
        let outcome = one.latency_ns.as_ref().map_or("not on this machine".to_owned(), |latency| {
            format!("median {:.1} µs", latency.p50 as f64 / 1000.0)
        });
        say(common, &format!("{}: {} of {}: {method}: {outcome}", study.name, done + 1, plan.methods.len()));
        series.push(one);
    }
    Ok((series, interfaces))
}

/// Brings an interface up at the papers' bit rate.
fn set_up(name: &str) -> failure::Result<Interface> {
    let mut interface = Interface::find(name)?;
    if interface.kind == Kind::Can && interface.bitrate() != Some(BIT_RATE) {
        interface.down()?;
        interface.set_bit_timing(&BitTiming::classic(BIT_RATE))?;
    }
    interface.up()?;
    Ok(interface)
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

impl Testbed {
    /// Starts a gateway while somebody on its bus acknowledges.
    fn witnessed<T>(&self, start: impl FnOnce() -> failure::Result<T>) -> failure::Result<T> {
        const SETTLED: Duration = Duration::from_millis(20);
        let Some(name) = self.witness else { return start() };
        let mut witness = set_up(name)?;
        let started = start();
        std::thread::sleep(SETTLED);
        witness.down()?;
        started
    }

    /// Brings the interfaces up.
    fn set_up(&self) -> failure::Result<Vec<Interface>> {
        self.up.iter().map(|name| set_up(name)).collect()
    }

    fn setup(&self, plan: &LatencyPlan) -> failure::Result<Setup> {
        let traffic =
            plan.traffic.parse().map_err(|error| Failure::failed(format!("study: traffic: {error}")))?;
        Ok(Setup {
            send: self.send.to_owned(),
            direct: self.direct.map(str::to_owned),
            routed: self.routed.to_owned(),
            traffic,
            count: plan.count,
            gap: plan.gap_ns()?,
            template: Template::classic(plan.len),
            null: false,
            wire_time: WireTime::Auto,
            instrument: self.instrument,
            timeline: plan.timeline,
        })
    }

    /// What the meter shows where there is no gateway: can3 hears the sender's bus as can1 does. `None`: the instrument
    /// tells it with each result.
    fn floor(&self, setup: &Setup, meter: &Common) -> failure::Result<Option<u64>> {
        if self.instrument == InstrumentName::Wire {
            return Ok(None);
        }
        let null = Setup { routed: self.gateway_in.to_owned(), null: true, ..setup.clone() };
        let measured = latency::measure(&null, meter, &[])?;
        Ok(Some(measured.series.latency_ns.map_or(0, |latency| latency.p50)))
    }

    /// One gateway, from its start to its account.
    fn gateway_series(
        &self,
        method: &str,
        setup: &Setup,
        apart: bool,
        meter: &Common,
    ) -> failure::Result<Series> {
        let unavailable = |reason: String| {
            let condition = Condition { traffic: setup.traffic.name().to_owned(), ..Condition::default() };
            let paper_name = paper_name(method).to_owned();
            Ok(Series { paper_name, ..Series::unavailable(method, condition, reason) })
        };
        if method.parse::<Method>().is_err() {
            return unavailable("not part of this version".to_owned());
        }
        let watched = [Interface::find(self.gateway_in)?, Interface::find(self.gateway_out)?];
        let started = self.witnessed(|| Gateway::start(self, method, apart))?;
        let gateway = match started {
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
    fn start(testbed: &Testbed, method: &str, apart: bool) -> failure::Result<Started> {
        let failed =
            |error: std::io::Error| Failure::failed(format!("study: start gateway {method}: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args(["gateway", testbed.gateway_in, testbed.gateway_out, "--method", method, "--json", "-"]);
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
