//! Interrupts: lines shared with other devices, the processors that serve them, and priorities of their threads.

use super::{
    finding::{Check, Cost, Symptom},
    machine::{Machine, Patient},
};
use canter_io::kernel_threads;

pub const CHECKS: &[Check] = &[
    Check {
        name: "coalescing",
        about: "received frames held back to save interrupts",
        cost: Cost::Latency,
        look: coalescing,
    },
    Check {
        name: "shared-line",
        about: "interrupt lines shared with other devices",
        cost: Cost::Latency,
        look: shared,
    },
    Check {
        name: "affinity",
        about: "interrupts on the processor of a busier network card",
        cost: Cost::Latency,
        look: affinity,
    },
    Check {
        name: "thread-priority",
        about: "threads of interrupts and of NAPI on PREEMPT_RT that wait for other threads",
        cost: Cost::Latency,
        look: thread_priority,
    },
];

/// A line of /proc/interrupts that a device uses.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    number: u32,
    /// Interrupts so far, of all processors.
    served: u64,
    /// Names of the devices whose handlers the kernel calls.
    devices: Vec<String>,
}

impl Line {
    fn serves(&self, names: &[String]) -> bool {
        self.devices.iter().any(|device| names.contains(device))
    }
}

/// The interrupt line of an interface's controller, and the names by which it was found. Older drivers on SPI request the
/// line under the driver's name, which identifies a line only if no other line has that name.
fn line_of<'a>(machine: &Machine, lines: &'a [Line], patient: &Patient) -> Option<(&'a Line, Vec<String>)> {
    let names = machine.interrupt_names(patient);
    if let Some(line) = lines.iter().find(|line| line.serves(&names)) {
        return Some((line, names));
    }
    let driver = vec![patient.interface.driver.clone()?];
    let mut driver_lines = lines.iter().filter(|line| line.serves(&driver));
    let line = driver_lines.next().filter(|_| machine.is_on_spi(patient))?;
    driver_lines.next().is_none().then_some((line, driver))
}

fn lines(machine: &Machine) -> Vec<Line> {
    machine.text("proc/interrupts").unwrap_or_default().lines().filter_map(parse).collect()
}

/// Reads a line such as ` 23:  10  4   IO-APIC  23-fasteoi   can0, eth0`; `None` when the line has no number.
fn parse(line: &str) -> Option<Line> {
    let (number, rest) = line.split_once(':')?;
    let number = number.trim().parse().ok()?;
    let mut words = rest.split_whitespace().peekable();
    let mut served = 0;
    while let Some(count) = words.peek().and_then(|word| word.parse::<u64>().ok()) {
        served += count;
        words.next();
    }
    let rest: Vec<&str> = words.collect();
    // Chip, line and type come before the devices; their number of words depends on the chip.
    let list = rest.join(" ");
    let devices = list.split(", ").map(|device| device.rsplit(' ').next().unwrap_or(device).to_owned());
    Some(Line { number, served, devices: devices.collect() })
}

fn coalescing(machine: &Machine) -> Vec<Symptom> {
    let held = |patient: &Patient| {
        let set = patient.coalescing?;
        let us = set.rx_us.max(set.rx_us_irq);
        let frames = set.rx_frames.max(set.rx_frames_irq);
        (us > 0 && frames > 1).then(|| Symptom {
            thing: patient.interface.name.clone(),
            evidence: format!(
                "ethtool -c: the driver holds received frames back for up to {us} µs or {frames} frames"
            ),
            reason: "this saves interrupts, but the first frame waits for the next ones".into(),
            remedy: format!(
                "ip link set {0} down; ethtool -C {0} rx-usecs-irq 0 rx-frames-irq 1; ip link set {0} up",
                patient.interface.name
            ),
        })
    };
    machine.interfaces.iter().filter_map(held).collect()
}

fn shared(machine: &Machine) -> Vec<Symptom> {
    let lines = lines(machine);
    let symptom = |patient: &Patient| {
        let (line, names) = line_of(machine, &lines, patient)?;
        let others: Vec<&str> =
            line.devices.iter().filter(|device| !names.contains(device)).map(String::as_str).collect();
        if others.is_empty() {
            return None;
        }
        Some(Symptom {
            thing: patient.interface.name.clone(),
            evidence: format!("interrupt {} is shared with {}", line.number, others.join(", ")),
            reason: "each interrupt calls the handlers of all devices on the line; on PREEMPT_RT one handler delays the \
                     other"
                .into(),
            remedy: if machine.is_on_spi(patient) {
                "give the controller a GPIO of its own (interrupt= of its dtoverlay)".into()
            } else {
                "use another slot, or MSI if the card has it".into()
            },
        })
    };
    machine.interfaces.iter().filter_map(symptom).collect()
}

fn affinity(machine: &Machine) -> Vec<Symptom> {
    let processors = machine.list("sys/devices/system/cpu", "cpu");
    let processors = processors.iter().filter(|name| name[3..].parse::<u32>().is_ok()).count();
    let lines = lines(machine);
    let served_by = |line: &Line| machine.text(&format!("proc/irq/{}/effective_affinity_list", line.number));
    let is_patient = |name: &String| machine.interfaces.iter().any(|one| one.interface.name == *name);
    let cards: Vec<String> =
        machine.list("sys/class/net", "").into_iter().filter(|name| !is_patient(name)).collect();
    let symptom = |patient: &Patient| {
        let (line, _) = line_of(machine, &lines, patient)?;
        let processor = served_by(line)?;
        // Lines of several queues have names such as eth0-rx-0.
        let is_card_line = |line: &&Line| {
            line.devices.iter().any(|device| cards.iter().any(|card| device.split('-').next() == Some(card)))
        };
        let busy = lines.iter().filter(is_card_line).find(|other| {
            other.served > line.served && served_by(other).as_deref() == Some(processor.as_str())
        })?;
        Some(Symptom {
            thing: patient.interface.name.clone(),
            evidence: format!(
                "processor {processor} serves its interrupt {} and also {} (interrupt {}, {} so far)",
                line.number,
                busy.devices.join(", "),
                busy.number,
                busy.served
            ),
            reason: "its frames wait while the processor handles the network card's packets".into(),
            remedy: format!(
                "echo PROCESSOR > /proc/irq/{}/smp_affinity_list, with a PROCESSOR other than {processor}",
                line.number
            ),
        })
    };
    if processors < 2 { Vec::new() } else { machine.interfaces.iter().filter_map(symptom).collect() }
}

/// The thread of an interrupt on PREEMPT_RT, or of an interface's NAPI.
struct Thread {
    process: String,
    /// The thread's name: `irq/23-can0`, `napi/can5-8193`.
    name: String,
    priority: u8,
}

impl Thread {
    /// The interface whose NAPI the thread serves.
    fn napi(&self) -> Option<&str> {
        kernel_threads::napi_interface(&self.name)
    }

    fn priority_in_words(&self) -> String {
        match self.priority {
            0 => "no real-time priority".to_owned(),
            priority => format!("priority {priority}"),
        }
    }
}

fn threads(machine: &Machine) -> Vec<Thread> {
    let thread = |process: String| {
        let name = machine.text(&format!("proc/{process}/comm"))?;
        let priority = kernel_threads::real_time_priority(&machine.text(&format!("proc/{process}/stat"))?)?;
        let thread = Thread { process, name, priority };
        // An interface keeps its thread when NAPI's work is in the soft interrupt again.
        let works = |interface| {
            machine
                .text(&format!("sys/class/net/{interface}/threaded"))
                .is_some_and(|text| text.trim() != "0")
        };
        // irq/23-s-can0 runs only if a handler has a second half, and then after the first half.
        let serves_interrupts = thread.name.starts_with("irq/") && !thread.name.contains("-s-");
        (serves_interrupts || thread.napi().is_some_and(works)).then_some(thread)
    };
    let processes = machine.list("proc", "").into_iter().filter(|name| name.parse::<u32>().is_ok());
    processes.filter_map(thread).collect()
}

const WAITS: &str = "at equal or lower priority its frames wait until the other handler has finished";
/// The figures of docs/realtime.md.
const MEASURED: &str = "one of 1000 frames beside 100 Mbit/s of Ethernet took 200 µs through a gateway, and 20 µs with \
                        the thread above (7.3-rt; on 6.12-rt no less); without a real-time priority frames are lost beside a \
                        busy processor";

fn thread_priority(machine: &Machine) -> Vec<Symptom> {
    if !machine.is_realtime() {
        return Vec::new();
    }
    let threads = threads(machine);
    let lines = lines(machine);
    let names: Vec<(&str, Vec<String>)> = machine
        .interfaces
        .iter()
        .map(|patient| {
            let line = line_of(machine, &lines, patient).map(|(_, names)| names);
            (patient.interface.name.as_str(), line.unwrap_or_else(|| machine.interrupt_names(patient)))
        })
        .collect();
    let interface_of = |thread: &Thread| {
        let device = thread.name.split_once('-')?.1;
        let is_whose = |(interface, names): &&(&str, Vec<String>)| match thread.napi() {
            Some(served) => served == *interface,
            None => names.iter().any(|name| name == device),
        };
        names.iter().find(is_whose).map(|(interface, _)| *interface)
    };
    let urgent =
        threads.iter().filter(|thread| interface_of(thread).is_none()).max_by_key(|thread| thread.priority);
    let Some(urgent) = urgent else { return Vec::new() };
    let symptom = |thread: &Thread| {
        let name = interface_of(thread)?;
        (thread.priority <= urgent.priority).then(|| Symptom {
            thing: name.into(),
            evidence: format!(
                "{} has {}, {} has priority {}",
                thread.name,
                thread.priority_in_words(),
                urgent.name,
                urgent.priority
            ),
            reason: match thread.napi() {
                None => WAITS.into(),
                Some(_) => format!("{WAITS}; {MEASURED}"),
            },
            remedy: format!("chrt -f -p {} {}", (urgent.priority + 10).min(98), thread.process),
        })
    };
    threads.iter().filter_map(symptom).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::examples::{folder, machine, patient};
    use canter_io::ethtool::Coalescing;

    const TABLE: &str = "           CPU0       CPU1\n  1:  9  0  IO-APIC   1-edge      i8042\n \
                         23:  10   5   IO-APIC  23-fasteoi   can0, can1\n \
                         24: 900   0  PCI-MSI 409600-edge      eth0-rx-0\nNMI:  0  0   Non-maskable interrupts\n";

    #[test]
    fn a_line_of_the_table_has_a_number_a_count_and_devices() {
        let line = parse(" 23:  10   5   IO-APIC  23-fasteoi   can0, can1").unwrap();
        assert_eq!(line, Line { number: 23, served: 15, devices: vec!["can0".into(), "can1".into()] });
        assert_eq!(parse("NMI:  0  0   Non-maskable interrupts"), None);
        assert_eq!(parse("           CPU0"), None);
    }

    #[test]
    fn a_shared_line_and_a_shared_processor_are_found() {
        let root = folder(&[
            ("proc/interrupts", TABLE),
            ("proc/irq/23/effective_affinity_list", "0\n"),
            ("proc/irq/24/effective_affinity_list", "0\n"),
            ("sys/devices/system/cpu/cpu0/x", ""),
            ("sys/devices/system/cpu/cpu1/x", ""),
            ("sys/class/net/eth0/x", ""),
            ("sys/class/net/can0/x", ""),
        ]);
        let sick = machine(&root, vec![patient("can0")]);
        assert_eq!(shared(&sick)[0].evidence, "interrupt 23 is shared with can1");
        let found = affinity(&sick);
        assert_eq!(
            found[0].evidence,
            "processor 0 serves its interrupt 23 and also eth0-rx-0 (interrupt 24, 900 so far)"
        );
        std::fs::write(root.path().join("proc/irq/23/effective_affinity_list"), "1\n").unwrap();
        assert_eq!(affinity(&sick), []);
    }

    #[test]
    fn an_interrupt_thread_that_is_no_more_urgent_than_others_is_found_on_a_realtime_kernel() {
        let stat = |priority: u32| format!("70 (irq/23-can0) S {} {priority} 1 0", "0 ".repeat(36).trim());
        let root = folder(&[
            ("proc/version", "Linux version 6.12-rt SMP PREEMPT_RT Debian"),
            ("proc/70/comm", "irq/23-can0\n"),
            ("proc/70/stat", &stat(50)),
            ("proc/71/comm", "irq/24-eth0\n"),
            ("proc/71/stat", &stat(50)),
        ]);
        let found = thread_priority(&machine(&root, vec![patient("can0")]));
        assert_eq!(found[0].remedy, "chrt -f -p 60 70");
        std::fs::write(root.path().join("proc/70/stat"), stat(60)).unwrap();
        assert_eq!(thread_priority(&machine(&root, vec![patient("can0")])), []);
    }

    #[test]
    fn a_thread_of_napi_without_a_priority_is_found_while_it_works() {
        let stat = |priority: u32| format!("70 (napi) S {} {priority} 1 0", "0 ".repeat(36).trim());
        let root = folder(&[
            ("proc/version", "Linux version 6.12-rt SMP PREEMPT_RT Debian"),
            ("proc/70/comm", "napi/can0-8193\n"),
            ("proc/70/stat", &stat(0)),
            ("proc/71/comm", "irq/24-eth0\n"),
            ("proc/71/stat", &stat(50)),
            ("sys/class/net/can0/threaded", "1\n"),
        ]);
        let found = thread_priority(&machine(&root, vec![patient("can0")]));
        assert_eq!(
            found[0].evidence,
            "napi/can0-8193 has no real-time priority, irq/24-eth0 has priority 50"
        );
        assert_eq!(found[0].remedy, "chrt -f -p 60 70");
        std::fs::write(root.path().join("sys/class/net/can0/threaded"), "0\n").unwrap();
        assert_eq!(thread_priority(&machine(&root, vec![patient("can0")])), []);
    }

    /// Two hats on one SPI bus, the first as mcp251x of 6.x asks for its interrupt.
    fn raspberry_pi(first: &str) -> tempfile::TempDir {
        let table = format!(
            "     CPU0 CPU1\n 56: 900 0 ARMCTRL-level 80 Level eth0\n185: 12 0 pinctrl-bcm2835 25 Level {first}\n\
             186: 34 0 pinctrl-bcm2835 24 Level spi0.1\n"
        );
        let root = folder(&[
            ("proc/interrupts", &table),
            ("proc/version", "Linux version 6.12-rt SMP PREEMPT_RT"),
            ("proc/irq/185/effective_affinity_list", "0\n"),
            ("proc/irq/56/effective_affinity_list", "0\n"),
            ("sys/devices/system/cpu/cpu0/x", ""),
            ("sys/devices/system/cpu/cpu1/x", ""),
            ("sys/class/net/eth0/x", ""),
            ("sys/class/net/can0/x", ""),
            ("sys/devices/platform/soc/fe204000.spi/spi_master/spi0/spi0.0/x", ""),
        ]);
        let device = "../../../devices/platform/soc/fe204000.spi/spi_master/spi0/spi0.0";
        std::os::unix::fs::symlink(device, root.path().join("sys/class/net/can0/device")).unwrap();
        root
    }

    fn hat() -> Patient {
        let mut hat = patient("can0");
        hat.interface.driver = Some("mcp251x".into());
        hat
    }

    #[test]
    fn a_controller_on_spi_is_found_by_its_device_or_by_its_driver() {
        for name in ["spi0.0", "mcp251x"] {
            let root = raspberry_pi(name);
            let found = affinity(&machine(&root, vec![hat()]));
            let evidence = "processor 0 serves its interrupt 185 and also eth0 (interrupt 56, 900 so far)";
            assert_eq!(found.first().map(|found| found.evidence.as_str()), Some(evidence), "{name}");
        }
        // Two hats of one driver: which line is whose cannot be told by the driver's name.
        let root = raspberry_pi("mcp251x");
        let table = std::fs::read_to_string(root.path().join("proc/interrupts")).unwrap();
        std::fs::write(root.path().join("proc/interrupts"), table.replace("spi0.1", "mcp251x")).unwrap();
        assert_eq!(affinity(&machine(&root, vec![hat()])), []);
    }

    #[test]
    fn the_thread_of_a_controller_on_spi_and_what_shares_its_line_are_found() {
        let root = raspberry_pi("spi0.0, gpio-keys");
        let stat = |priority: u32| format!("70 (irq/185) S {} {priority} 1 0", "0 ".repeat(36).trim());
        for (process, name) in [("70", "irq/185-spi0.0\n"), ("71", "irq/56-eth0\n")] {
            std::fs::create_dir_all(root.path().join("proc").join(process)).unwrap();
            std::fs::write(root.path().join(format!("proc/{process}/comm")), name).unwrap();
            std::fs::write(root.path().join(format!("proc/{process}/stat")), stat(50)).unwrap();
        }
        let sick = machine(&root, vec![hat()]);
        let found = thread_priority(&sick);
        assert_eq!(found.first().map(|found| found.thing.as_str()), Some("can0"));
        let found = shared(&sick);
        assert_eq!(found[0].evidence, "interrupt 185 is shared with gpio-keys");
        assert!(found[0].remedy.contains("dtoverlay"), "{found:?}");
    }

    #[test]
    fn frames_that_are_held_back_are_found() {
        let root = folder(&[]);
        let mut one = patient("can0");
        one.coalescing = Some(Coalescing { rx_us_irq: 200, rx_frames_irq: 8, ..Coalescing::default() });
        assert!(coalescing(&machine(&root, vec![one]))[0].evidence.contains("200 µs or 8 frames"));
        let mut one = patient("can0");
        one.coalescing = Some(Coalescing { rx_frames_irq: 1, ..Coalescing::default() });
        assert_eq!(coalescing(&machine(&root, vec![one])), []);
    }
}
