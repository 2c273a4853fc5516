//! `canter doctor --report FILE`: a machine on which canter was tried, for others to read: the machine, its controllers, the
//! doctor's findings, and a measurement. Nothing in it names the machine or its user.

use super::{
    Report,
    machine::{Machine, Patient},
    measurement::Measurement,
};
use canter_cli::{
    failure::{self, Failure},
    whole_file,
};
use canter_io::{Interface, interface::Timing};
use canter_measure::environment::in_lab;
use serde::Serialize;
use serde_json::Value;
use std::{collections::BTreeMap, env, path::Path};

/// The name of this document.
const SCHEMA: &str = "canter-doctor/1";
/// A name that is shorter occurs in texts that do not mean it.
const NAME_BYTES_MIN: usize = 3;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    canter: &'static str,
    date: String,
    machine: About,
    interfaces: Vec<Controller>,
    doctor: &'a Report,
    measurement: &'a Measurement,
}

/// The machine's kind, which others may have too.
#[derive(Serialize)]
struct About {
    architecture: &'static str,
    /// `Raspberry Pi 4 Model B Rev 1.4`, or the vendor and product of a PC.
    model: String,
    processor: String,
    processors: u32,
    memory_mib: u64,
    distribution: String,
    kernel: String,
    realtime: bool,
    clock_source: String,
    /// Whether this is a machine of `canter lab`.
    lab: bool,
}

#[derive(Serialize)]
struct Controller {
    name: String,
    kind: String,
    driver: String,
    /// What the kernel identifies the kind of device by: `pci:v000010E8d00008406…`, `usb:v0C72p000Cd…`, `spi:mcp2515`.
    device: String,
    chip: String,
    state: String,
    fd: bool,
    bitrate: u32,
    sample_point_permille: u32,
    data_bitrate: u32,
    clock_hz: u32,
    restart_ms: u32,
    modes: Vec<&'static str>,
    supported: Vec<&'static str>,
    queue: u32,
    queueing_discipline: String,
    /// What driver and kernel have counted, without zeros.
    counters: BTreeMap<&'static str, u64>,
}

/// Writes the report.
///
/// # Errors
/// When FILE cannot be written.
pub fn write(
    path: &Path,
    machine: &Machine,
    doctor: &Report,
    measurement: &Measurement,
) -> failure::Result<()> {
    let document = Document {
        schema: SCHEMA,
        canter: env!("CARGO_PKG_VERSION"),
        date: jiff::Timestamp::now().strftime("%Y-%m").to_string(),
        machine: About::read(machine),
        interfaces: machine.interfaces.iter().map(|patient| Controller::read(patient, machine)).collect(),
        doctor,
        measurement,
    };
    let failed = |error| Failure::failed(format!("{}: {error}", path.display()));
    let mut value = serde_json::to_value(document).map_err(failed)?;
    rename(&mut value, &Names::find(machine));
    let text = serde_json::to_string_pretty(&value).map_err(failed)?;
    whole_file::write(path, "write the report", &(text + "\n"))
}

impl About {
    fn read(machine: &Machine) -> Self {
        let text = |path: &str| machine.text(path).unwrap_or_default();
        let environment = canter_measure::result::Environment::read(&[]);
        let board = text("proc/device-tree/model").trim_end_matches('\0').to_owned();
        let product = [text("sys/class/dmi/id/sys_vendor"), text("sys/class/dmi/id/product_name")];
        let memory = text("proc/meminfo");
        let memory = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
        let memory_kib = memory.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        let release = text("etc/os-release");
        let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
        Self {
            architecture: env::consts::ARCH,
            model: if board.is_empty() { product.join(" ").trim().to_owned() } else { board },
            processor: environment.cpu,
            processors: environment.processors,
            memory_mib: memory_kib.unwrap_or(0) / 1024,
            distribution: name.unwrap_or_default().trim_matches('"').to_owned(),
            kernel: environment.kernel,
            realtime: machine.is_realtime(),
            clock_source: text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            lab: in_lab(),
        }
    }
}

impl Controller {
    fn read(patient: &Patient, machine: &Machine) -> Self {
        let Patient { interface, counters, .. } = patient;
        let controller = interface.controller.clone().unwrap_or_default();
        let Timing { bitrate, sample_point, .. } = controller.timing;
        let modalias = format!("sys/class/net/{}/device/modalias", interface.name);
        Self {
            name: interface.name.clone(),
            kind: interface.kind.as_str().to_owned(),
            driver: interface.driver.clone().unwrap_or_default(),
            device: machine.text(&modalias).unwrap_or_default(),
            chip: controller.chip,
            state: controller.state.map(|state| state.to_string()).unwrap_or_default(),
            fd: interface.supports_fd(),
            bitrate,
            sample_point_permille: sample_point,
            data_bitrate: controller.data_timing.map_or(0, |timing| timing.bitrate),
            clock_hz: controller.clock_hz,
            restart_ms: controller.restart_ms,
            modes: controller.modes.names().collect(),
            supported: controller.supported.into_iter().flat_map(|modes| modes.names()).collect(),
            queue: interface.tx_queue_len,
            queueing_discipline: interface.qdisc.clone(),
            counters: counters.rows().filter(|one| one.1 > 0).collect(),
        }
    }
}

/// Names that the report replaces, and what stands in their place.
struct Names(BTreeMap<String, String>);

impl Names {
    /// The machine's name, its user's, and interfaces with a name that somebody gave them.
    fn find(machine: &Machine) -> Self {
        let host = machine.text("proc/sys/kernel/hostname").unwrap_or_default();
        let users = ["USER", "LOGNAME", "SUDO_USER"].map(|name| env::var(name).unwrap_or_default());
        let interfaces: Vec<&Interface> = machine.interfaces.iter().map(|one| &one.interface).collect();
        Self::new(&host, &users, &interfaces)
    }

    fn new(host: &str, users: &[String], interfaces: &[&Interface]) -> Self {
        let mut names = BTreeMap::new();
        let mut hide = |name: &str, instead: String| {
            if name.len() >= NAME_BYTES_MIN && !["root", "localhost", "machine"].contains(&name) {
                names.insert(name.to_owned(), instead);
            }
        };
        hide(host, "HOST".to_owned());
        hide(host.split('.').next().unwrap_or_default(), "HOST".to_owned());
        users.iter().for_each(|user| hide(user, "USER".to_owned()));
        for (number, interface) in interfaces.iter().enumerate() {
            if !is_the_kernels(&interface.name) {
                hide(&interface.name, format!("interface{number}"));
            }
        }
        Self(names)
    }

    /// The text with each of the names replaced, where it is a word.
    fn replace(&self, text: &str) -> String {
        let is_word = |c: char| c.is_alphanumeric() || "_-.".contains(c);
        let mut replaced = text.to_owned();
        for (name, instead) in &self.0 {
            let mut out = String::new();
            let mut rest = replaced.as_str();
            while let Some(at) = rest.find(name.as_str()) {
                let (before, after) = (&rest[..at], &rest[at + name.len()..]);
                let alone = !before.ends_with(is_word) && !after.starts_with(is_word);
                out += before;
                out += if alone { instead } else { name };
                rest = after;
            }
            replaced = out + rest;
        }
        replaced
    }
}

/// Whether the kernel or a driver gave this name, and not a person: `can0`, `/dev/canchar1`.
fn is_the_kernels(name: &str) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    stem != name && ["can", "vcan", "vxcan", "slcan", "wcan", "/dev/canchar"].contains(&stem)
}

/// Replaces names in all texts of a document.
fn rename(value: &mut Value, names: &Names) {
    match value {
        Value::String(text) => *text = names.replace(text),
        Value::Array(list) => list.iter_mut().for_each(|one| rename(one, names)),
        Value::Object(members) => members.values_mut().for_each(|one| rename(one, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{super::examples, *};
    use crate::doctor::examine;

    #[test]
    fn a_report_has_no_name_of_the_machine_its_user_or_an_interface() {
        let mut patient = examples::patient("annas-bus");
        patient.interface.qdisc = "fq_codel".into();
        let root = examples::folder(&[
            ("proc/sys/kernel/hostname", "benz7.example.org"),
            ("etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"),
            ("sys/class/net/annas-bus/device/modalias", "spi:mcp2515"),
            ("sys/class/dmi/id/product_name", "Board of benz7"),
            ("sys/class/dmi/id/product_serial", "SERIAL77"),
            ("sys/class/net/annas-bus/address", "00:11:22:33:44:55"),
        ]);
        let machine = examples::machine(&root, vec![patient]);
        let file = root.path().join("report.json");
        write(&file, &machine, &examine(&machine), &Measurement::default()).unwrap();
        let text = std::fs::read_to_string(file).unwrap();
        for secret in ["benz7", "annas-bus", "SERIAL77", "00:11:22"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        for part in
            ["\"interface0\"", "spi:mcp2515", "Board of HOST", "Debian GNU/Linux 12", "dev interface0 root"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn only_whole_words_are_replaced_and_usual_names_stay() {
        let names = Names::new("pi4", &["bob".to_owned(), String::new(), "root".to_owned()], &[]);
        assert_eq!(
            names.replace("pi4: bob's pi4x bobby /home/bob root"),
            "HOST: USER's pi4x bobby /home/USER root"
        );
        for (name, kernels) in
            [("can0", true), ("vcan12", true), ("/dev/canchar3", true), ("can", false), ("body0", false)]
        {
            assert_eq!(is_the_kernels(name), kernels, "{name}");
        }
    }
}
