//! Processors, clocks and memory: how fast a processor wakes up, how long reading the clock takes, and what keeps a processor.

use super::{
    finding::{Check, Cost, MACHINE, Symptom},
    machine::Machine,
};

/// The longest exit from an idle state, in µs, that does not matter beside the duration of a frame.
const IDLE_EXIT_US: i64 = 20;
/// Clock sources that take a few instructions to read; others need a trap or a bus access for each stamp.
const FAST_CLOCKS: &[&str] = &[
    "tsc",
    "tsc-early",
    "arch_sys_counter",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "riscv_clocksource",
];

pub const CHECKS: &[Check] = &[
    Check {
        name: "governor",
        about: "processors that change their speed",
        cost: Cost::Latency,
        look: governor,
    },
    Check {
        name: "idle-states",
        about: "idle states that take long to leave",
        cost: Cost::Latency,
        look: idle_states,
    },
    Check {
        name: "clock-source",
        about: "clock sources that are slow to read",
        cost: Cost::Latency,
        look: clock_source,
    },
    Check {
        name: "realtime-throttling",
        about: "real-time tasks stopped by the kernel",
        cost: Cost::Latency,
        look: throttling,
    },
    Check {
        name: "huge-pages",
        about: "memory that the kernel joins into huge pages meanwhile",
        cost: Cost::Latency,
        look: huge_pages,
    },
    Check {
        name: "page-batches",
        about: "interrupts held off while the kernel takes memory for a file",
        cost: Cost::Latency,
        look: page_batches,
    },
];

const PROCESSORS: &str = "sys/devices/system/cpu";

fn governor(machine: &Machine) -> Vec<Symptom> {
    let slow = |processor: String| {
        let governor = machine.text(&format!("{PROCESSORS}/{processor}/cpufreq/scaling_governor"))?;
        (governor != "performance").then_some((processor, governor))
    };
    let slow: Vec<_> = machine.list(PROCESSORS, "cpu").into_iter().filter_map(slow).collect();
    let Some((first, governor)) = slow.first() else { return Vec::new() };
    vec![Symptom {
        thing: MACHINE.into(),
        evidence: match slow.len() {
            1 => format!("{first} is governed by {governor}"),
            count => {
                format!(
                    "{first} is governed by {governor}; {} more are not governed by performance",
                    count - 1
                )
            }
        },
        reason: "after an idle time the processor handles the first frames at a low clock rate".into(),
        remedy: "cpupower frequency-set -g performance".into(),
    }]
}

fn idle_states(machine: &Machine) -> Vec<Symptom> {
    const FIRST: &str = "sys/devices/system/cpu/cpu0/cpuidle";
    let deep = machine.list(FIRST, "state").into_iter().filter_map(|state| {
        let read = |file: &str| machine.number(&format!("{FIRST}/{state}/{file}"));
        let exit_us =
            read("latency").filter(|&exit_us| exit_us > IDLE_EXIT_US && read("disable") != Some(1))?;
        let name = machine.text(&format!("{FIRST}/{state}/name")).unwrap_or(state);
        Some((exit_us, name))
    });
    let Some((exit_us, name)) = deep.max() else { return Vec::new() };
    vec![Symptom {
        thing: MACHINE.into(),
        evidence: format!("the idle state {name} takes {exit_us} µs to leave"),
        reason: "an interrupt that arrives in this idle state waits for this time".into(),
        remedy: format!(
            "cpupower idle-set -D {IDLE_EXIT_US}, or run a program that keeps /dev/cpu_dma_latency open"
        ),
    }]
}

fn clock_source(machine: &Machine) -> Vec<Symptom> {
    const FOLDER: &str = "sys/devices/system/clocksource/clocksource0";
    let Some(current) = machine.text(&format!("{FOLDER}/current_clocksource")) else { return Vec::new() };
    if FAST_CLOCKS.contains(&current.as_str()) {
        return Vec::new();
    }
    let available = machine.text(&format!("{FOLDER}/available_clocksource")).unwrap_or_default();
    let better = available.split_whitespace().find(|name| FAST_CLOCKS.contains(name));
    let remedy = better.map_or_else(
        || {
            "the kernel found no faster one; see its log for the reason: dmesg | grep -i clocksource"
                .to_owned()
        },
        |better| format!("echo {better} > /{FOLDER}/current_clocksource"),
    );
    vec![Symptom {
        thing: MACHINE.into(),
        evidence: format!("the clock source is {current} (available: {available})"),
        reason: "each stamp and each wait reads the clock, and this one needs a device access of a microsecond or more"
            .into(),
        remedy,
    }]
}

/// Since this version ordinary tasks have a server for the time that real-time tasks leave none of, and nothing throttles these.
const FAIR_SERVER_SINCE: [u32; 2] = [6, 12];
const FAIR_SERVER: &str = "sys/kernel/debug/sched/fair_server";

fn throttling(machine: &Machine) -> Vec<Symptom> {
    if !machine.is_realtime() {
        return Vec::new();
    }
    if machine.kernel() >= FAIR_SERVER_SINCE {
        return fair_server(machine);
    }
    let runtime = machine.number("proc/sys/kernel/sched_rt_runtime_us");
    let Some(runtime) = runtime.filter(|&us| us >= 0) else { return Vec::new() };
    let period = machine.number("proc/sys/kernel/sched_rt_period_us").unwrap_or(1_000_000);
    vec![Symptom {
        thing: MACHINE.into(),
        evidence: format!("kernel.sched_rt_runtime_us {runtime} of {period}"),
        reason: format!(
            "the kernel stops real-time tasks that are always busy, interrupt threads included, for {} ms in each period",
            (period - runtime) / 1000
        ),
        remedy: "sysctl -w kernel.sched_rt_runtime_us=-1".into(),
    }]
}

/// The server of ordinary tasks, whose setting only root sees, and only where debugfs is mounted.
fn fair_server(machine: &Machine) -> Vec<Symptom> {
    let runtime_ns = machine.number(&format!("{FAIR_SERVER}/cpu0/runtime"));
    if runtime_ns == Some(0) {
        return Vec::new();
    }
    let [major, minor] = FAIR_SERVER_SINCE;
    vec![Symptom {
        thing: MACHINE.into(),
        evidence: match runtime_ns {
            Some(ns) => format!("/{FAIR_SERVER}/cpu0/runtime is {ns} ns of each second"),
            None => format!("Linux {major}.{minor} and later give ordinary tasks 50 ms of each second"),
        },
        reason: "while an ordinary task waits for a processor, a real-time task there that is always busy, an interrupt's \
                 thread too, is stopped for this time; sched_rt_runtime_us changes nothing any more"
            .into(),
        remedy: format!(
            "mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug; \
             for each in /{FAIR_SERVER}/cpu*; do echo 0 > $each/runtime; done"
        ),
    }]
}

fn huge_pages(machine: &Machine) -> Vec<Symptom> {
    const ENABLED: &str = "sys/kernel/mm/transparent_hugepage/enabled";
    let is_chosen = |text: String| text.split_whitespace().any(|word| word == "[always]");
    if !machine.text(ENABLED).is_some_and(is_chosen) {
        return Vec::new();
    }
    vec![Symptom {
        thing: MACHINE.into(),
        evidence: format!("/{ENABLED} is always"),
        reason: "khugepaged looks through the memory of all programs every 10 s and copies 2 MB at a time; without full \
                 preemption even real-time tasks of its processor wait for that"
            .into(),
        remedy: format!("echo madvise > /{ENABLED}"),
    }]
}

/// Since this version the kernel takes up to 63 << CONFIG_PCP_BATCH_SCALE_MAX pages for a processor at once.
const LARGE_PAGE_BATCHES_SINCE: [u32; 2] = [6, 7];

fn page_batches(machine: &Machine) -> Vec<Symptom> {
    const FRACTION: &str = "proc/sys/vm/percpu_pagelist_high_fraction";
    if machine.kernel() < LARGE_PAGE_BATCHES_SINCE || machine.number(FRACTION) != Some(0) {
        return Vec::new();
    }
    vec![Symptom {
        thing: MACHINE.into(),
        evidence: "vm.percpu_pagelist_high_fraction 0".into(),
        reason: "while a program writes a file, the kernel takes up to 2016 pages of memory at once and holds interrupts off \
                 for as long: 0.3 to 0.6 ms at 1 G instructions/s, in which a bus of 1 Mbit/s fills a controller of five \
                 frames; with the remedy a tenth"
            .into(),
        remedy: "sysctl -w vm.percpu_pagelist_high_fraction=100000".into(),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::examples::{folder, machine};

    #[test]
    fn processors_that_slow_down_or_sleep_deeply_are_found() {
        let root = folder(&[
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n"),
            ("sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "0\n"),
            ("sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "133\n"),
            ("sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C6\n"),
            ("sys/devices/system/cpu/cpu0/cpuidle/state1/disable", "0\n"),
        ]);
        let sick = machine(&root, vec![]);
        assert_eq!(governor(&sick)[0].evidence, "cpu1 is governed by powersave");
        assert_eq!(idle_states(&sick)[0].evidence, "the idle state C6 takes 133 µs to leave");
        std::fs::write(root.path().join("sys/devices/system/cpu/cpu0/cpuidle/state1/disable"), "1\n")
            .unwrap();
        assert_eq!(idle_states(&sick), []);
    }

    #[test]
    fn a_slow_clock_source_names_the_faster_one() {
        let root = folder(&[
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
            ("sys/devices/system/clocksource/clocksource0/available_clocksource", "hpet tsc acpi_pm\n"),
        ]);
        assert!(clock_source(&machine(&root, vec![]))[0].remedy.starts_with("echo tsc >"));
    }

    #[test]
    fn huge_pages_matter_where_the_kernel_makes_them_unasked() {
        let found = |text| {
            let root = folder(&[("sys/kernel/mm/transparent_hugepage/enabled", text)]);
            huge_pages(&machine(&root, vec![])).len()
        };
        assert_eq!(found("[always] madvise never\n"), 1);
        assert_eq!(found("always [madvise] never\n"), 0);
        assert_eq!(huge_pages(&machine(&folder(&[]), vec![])), [], "a kernel without them");
    }

    #[test]
    fn large_page_batches_matter_since_6_7_unless_they_are_limited() {
        let found = |version, fraction| {
            let fraction = ("proc/sys/vm/percpu_pagelist_high_fraction", fraction);
            page_batches(&machine(&folder(&[("proc/version", version), fraction]), vec![])).len()
        };
        assert_eq!(found("Linux version 6.1.0-56-amd64", "0\n"), 0);
        assert_eq!(found("Linux version 6.7.1", "0\n"), 1);
        assert_eq!(found("Linux version 7.3.4+deb13-amd64", "100000\n"), 0);
    }

    #[test]
    fn throttling_matters_on_a_realtime_kernel_only() {
        let files = |version| {
            folder(&[("proc/version", version), ("proc/sys/kernel/sched_rt_runtime_us", "950000\n")])
        };
        assert_eq!(throttling(&machine(&files("Linux PREEMPT_DYNAMIC"), vec![])), []);
        let found = throttling(&machine(&files("Linux version 6.1.0-56-rt PREEMPT_RT"), vec![]));
        assert!(found[0].reason.contains("50 ms") && found[0].remedy.contains("sysctl"), "{found:?}");
    }

    /// Tried with a busy SCHED_FIFO task: 6.12 stops it beside a waiting ordinary task alone, whatever sched_rt_runtime_us says.
    #[test]
    fn since_6_12_a_server_of_ordinary_tasks_matters_instead() {
        let newer = ("proc/version", "Linux version 6.12.117+deb12-rt PREEMPT_RT");
        let unlimited = ("proc/sys/kernel/sched_rt_runtime_us", "-1\n");
        let found = |runtime: &[(&str, &str)]| {
            throttling(&machine(&folder(&[&[newer, unlimited], runtime].concat()), vec![]))
        };
        assert!(found(&[])[0].remedy.contains("fair_server"), "{:?}", found(&[]));
        let runtime = |text| ("sys/kernel/debug/sched/fair_server/cpu0/runtime", text);
        assert!(found(&[runtime("50000000\n")])[0].evidence.contains("50000000 ns"));
        assert_eq!(found(&[runtime("0\n")]), []);
    }
}
