//! `canter doctor`: finds settings and losses of this machine that cost frames or latency. Each finding has its evidence,
//! its reason and a command that fixes it.

mod advice;
mod controller;
mod finding;
mod interrupts;
mod machine;
mod measurement;
mod processor;
mod queues;
mod report;
mod rights;

use canter_cli::{
    duration,
    failure::{self, Exit},
    interrupt::interrupt_flag,
    options::Common,
    terminal::{Ink, RED, YELLOW, wrapped},
    units::{self, counted},
};
use clap::Args;
use finding::{Check, Cost, Finding};
use machine::Machine;
use measurement::Measurement;
use serde::Serialize;
use std::path::PathBuf;

/// Find what loses frames or adds latency on this machine, and how to fix it
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter doctor                 check all CAN interfaces that are up, and the machine
  canter doctor can0 can1       check these interfaces, and the machine
  canter doctor --checks        list the checks
  canter doctor --json - | jq -r '.findings[].remedy'
  canter doctor --report pi4.json    for others to read: measures for two minutes
Exit code 1 when a finding can lose frames, 4 when no CAN interface is up, otherwise 0. The doctor only reads and changes \
nothing; with --report it also records all buses, into files that it removes. The report has no host name, user, serial \
number or address; read it before you send it.")]
pub struct Arguments {
    /// Interfaces to check; all that are up unless given
    #[arg(value_name = "IFACE")]
    interfaces: Vec<String>,
    /// List the checks without running them
    #[arg(long)]
    checks: bool,
    /// Write an anonymous report: machine, controllers, drivers, findings, and a measurement
    #[arg(long, value_name = "FILE", conflicts_with = "checks")]
    report: Option<PathBuf>,
    /// Duration of the measurement for --report
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = duration::parse_ns, requires = "report")]
    duration: u64,
}

/// The document of `--json`.
#[derive(Serialize)]
struct Report {
    interfaces: Vec<String>,
    checks: usize,
    findings: Vec<Finding>,
}

fn checks() -> impl Iterator<Item = &'static Check> {
    [queues::CHECKS, controller::CHECKS, interrupts::CHECKS, processor::CHECKS, rights::CHECKS]
        .into_iter()
        .flatten()
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    if arguments.checks {
        for check in checks() {
            println!("{:<8} {:<20} {}", check.cost.name(), check.name, check.about);
        }
        return Ok(Exit::Done);
    }
    let machine = Machine::read(&arguments.interfaces)?;
    let report = examine(&machine);
    if let Some(path) = &arguments.report {
        if !common.quiet {
            let time = units::round_span(arguments.duration);
            eprintln!("doctor: measures for {time}, without sending a frame (Ctrl-C: shorter)");
        }
        let measurement = Measurement::run(&machine, arguments.duration, &interrupt_flag()?)?;
        report::write(path, &machine, &report, &measurement)?;
        if !common.quiet {
            eprintln!("doctor: {}: written (read it before you send it)", path.display());
        }
    }
    common.write_json(&report)?;
    if common.shows_table() {
        print!("{}", table(&report, Ink::for_stdout()));
    }
    let loses_frames = report.findings.iter().any(|finding| finding.cost == Cost::Frames);
    Ok(match (loses_frames, report.interfaces.is_empty()) {
        (true, _) => Exit::Failed,
        (false, true) => Exit::Unable,
        (false, false) => Exit::Done,
    })
}

fn examine(machine: &Machine) -> Report {
    let interfaces = machine.interfaces.iter().map(|patient| patient.interface.name.clone()).collect();
    let mut findings: Vec<Finding> = checks().flat_map(|check| check.findings(machine)).collect();
    findings.sort_by_key(|finding| finding.cost == Cost::Latency);
    Report { interfaces, checks: checks().count(), findings }
}

/// Columns before the text of a line.
const INDENT: usize = 9;

fn table(report: &Report, ink: Ink) -> String {
    let mut text = String::new();
    let wrapped = |text: &str| wrapped(text, INDENT, INDENT);
    let same_evidence =
        |one: &Finding, next: &Finding| one.check == next.check && one.evidence == next.evidence;
    for group in report.findings.chunk_by(same_evidence) {
        let Finding { check, cost, evidence, reason, .. } = &group[0];
        let style = if *cost == Cost::Frames { RED } else { YELLOW };
        let things: Vec<&str> = group.iter().map(|finding| finding.thing.as_str()).collect();
        let headline = wrapped(&format!("{}: {evidence} [{check}]", things.join(" ")));
        text += &format!("{}{headline}\n", ink.paint(style, &format!("{:<9}", cost.name())));
        text += &format!("    why  {}\n", wrapped(reason));
        let advice = &group[0].advice;
        let line = |name: &str, advice: &str| match advice {
            "" => String::new(),
            advice => format!("    {name:<5}{}\n", wrapped(advice)),
        };
        text += &line("safe", advice.safer);
        for finding in group {
            text += &format!("    do   {}\n", finding.remedy);
        }
        text += &line("risk", advice.risk);
        text += &line("keep", advice.lasting);
        text += "\n";
    }
    let count = |cost| report.findings.iter().filter(|finding| finding.cost == cost).count();
    let interfaces = match report.interfaces.as_slice() {
        [] => "no CAN interface is up".to_owned(),
        names => names.join(" "),
    };
    text += &match (count(Cost::Frames), count(Cost::Latency)) {
        (0, 0) if report.interfaces.is_empty() => format!(
            "No CAN interface is up: {} checks found nothing wrong with the machine, and examined no bus.\n\
             ip link set can0 up type can bitrate 500000 starts one; ip -brief link show type can lists them.\n",
            report.checks
        ),
        (0, 0) => format!("Nothing found by {} checks ({interfaces}).\n", report.checks),
        (frames, latency) => {
            let frames = counted(frames as u64, "finding");
            format!(
                "{} checks ({interfaces}): {frames} on lost frames, {latency} on latency.\n",
                report.checks
            )
        }
    };
    text
}

#[cfg(test)]
mod examples {
    use super::machine::{Machine, Patient};
    use canter_io::{
        Interface,
        carrier::table::NETWORK,
        interface::{Controller, Counters, Kind, Timing},
    };
    use std::{fs, path::Path};

    /// The root folder of a machine with these files.
    pub fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    pub fn machine(root: &tempfile::TempDir, interfaces: Vec<Patient>) -> Machine {
        Machine::made_up(root.path(), interfaces)
    }

    /// A machine with one interface and no files.
    pub fn machine_with(patient: Patient) -> Machine {
        Machine::made_up(Path::new("/nonexistent"), vec![patient])
    }

    /// A healthy controller at 1 Mbit/s.
    pub fn patient(name: &str) -> Patient {
        let timing = Timing { bitrate: 1_000_000, sample_point: 750, ..Timing::default() };
        let interface = Interface {
            name: name.into(),
            index: 3,
            mtu: 16,
            kind: Kind::Can,
            up: true,
            running: true,
            echo: true,
            driver: Some("kvaser_pci".into()),
            qdisc: "pfifo_fast".into(),
            tx_queue_len: 300,
            peer: None,
            controller: Some(Controller { timing, ..Controller::default() }),
            carrier: &NETWORK,
        };
        Patient { interface, counters: Counters::default(), coalescing: None }
    }

    pub fn with_controller(change: impl FnOnce(&mut Controller)) -> Patient {
        let mut patient = patient("can0");
        patient.interface.controller.as_mut().map(change);
        patient
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_that_cost_frames_come_first_and_each_has_a_remedy() {
        let mut sick = examples::patient("can0");
        sick.interface.qdisc = "fq_codel".into();
        let files = [("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave")];
        let root = examples::folder(&files);
        let report = examine(&examples::machine(&root, vec![sick]));
        insta::assert_snapshot!(table(&report, Ink::none()), @r#"
        frames   can0: its queueing discipline is fq_codel [queueing-discipline]
            why  it is made for flows of IP packets: it drops or reorders frames to keep
                 the queue short
            do   tc qdisc replace dev can0 root pfifo_fast
            keep [PFIFOFast] with Parent=root in /etc/systemd/network/80-can.network

        latency  machine: cpu0 is governed by powersave [governor]
            why  after an idle time the processor handles the first frames at a low
                 clock rate
            do   cpupower frequency-set -g performance
            risk more power and heat; a board without a heat sink slows down when it is
                 hot
            keep cpufreq.default_governor=performance on the kernel's command line

        23 checks (can0): 1 finding on lost frames, 1 on latency.
        "#);
    }

    #[test]
    fn without_an_interface_nothing_found_is_not_all_well() {
        let root = examples::folder(&[]);
        let text = table(&examine(&examples::machine(&root, vec![])), Ink::none());
        assert!(text.starts_with("No CAN interface is up: "), "{text}");
        assert!(!text.contains("Nothing found"), "{text}");
    }

    #[test]
    fn no_two_checks_have_the_same_name() {
        let mut names: Vec<&str> = checks().map(|check| check.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), checks().count());
    }
}
