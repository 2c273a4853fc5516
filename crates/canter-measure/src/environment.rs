//! The environment of a measurement, read from the machine.

use crate::identity::Build;
use crate::result::{ClockKind, Environment, ResultFile, SCHEMA, Series};
use canter_io::Interface;
use std::fs;

impl Environment {
    /// The environment of this machine, with the interfaces that take part.
    pub fn read(interfaces: &[Interface]) -> Self {
        let cmdline = read("/proc/cmdline");
        let word = |key: &str| word(&cmdline, key).to_owned();
        let qemu = word("canter.qemu=");
        let cpuinfo = read("/proc/cpuinfo");
        Self {
            kernel: format!("{} {}", read("/proc/sys/kernel/osrelease"), read("/proc/sys/kernel/version")),
            cpu: cpu_model(&cpuinfo).to_owned(),
            // All processors, not only those that this process may use.
            processors: cpuinfo.lines().filter(|line| line.starts_with("processor")).count() as u32,
            clock: if word("canter.clock=") == "virtual" { ClockKind::Virtual } else { ClockKind::Real },
            qemu: if qemu.is_empty() { qemu } else { format!("QEMU {qemu}") },
            canter: env!("CARGO_PKG_VERSION").to_owned(),
            commit: Build::current().commit.to_owned(),
            boot: read("/proc/sys/kernel/random/boot_id"),
            date: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            interfaces: interfaces.iter().map(describe).collect(),
            cmdline,
        }
    }

    /// The kernel's release, as `uname -r` prints it: `6.12.117+deb12-rt-amd64`.
    pub fn release(&self) -> &str {
        self.kernel.split_whitespace().next().unwrap_or_default()
    }

    /// The day of the measurement, UTC: `2026-11-25`.
    pub fn day(&self) -> &str {
        self.date.split('T').next().unwrap_or_default()
    }

    /// The kernel's name in the papers: `6.12-rt`, `2.6.33`.
    pub fn flavour(&self) -> String {
        let release = self.release();
        let number: Vec<&str> =
            release.split(['.', '-', '+']).take(if release.starts_with("2.") { 3 } else { 2 }).collect();
        let realtime =
            release.split(['-', '+']).any(|word| word == "rt" || word.starts_with("rt") && word.len() < 6);
        format!("{}{}", number.join("."), if realtime { "-rt" } else { "" })
    }

    /// The value after `key` on the kernel's command line.
    pub fn word(&self, key: &str) -> &str {
        word(&self.cmdline, key)
    }
}

/// Whether this is `canter lab`, on whose SJA1000 cards a frame takes no time.
pub fn in_lab() -> bool {
    word(&read("/proc/cmdline"), "canter.lab=") == "1"
}

/// The result of this command with these series.
pub fn result(study: &str, title: &str, interfaces: &[Interface], series: Vec<Series>) -> ResultFile {
    ResultFile {
        schema: SCHEMA,
        study: study.to_owned(),
        title: title.to_owned(),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        environment: Environment::read(interfaces),
        series,
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn word<'a>(line: &'a str, key: &str) -> &'a str {
    line.split_whitespace().find_map(|word| word.strip_prefix(key)).unwrap_or_default()
}

fn cpu_model(cpuinfo: &str) -> &str {
    let model = cpuinfo.lines().find(|line| line.starts_with("model name") || line.starts_with("Model"));
    model.and_then(|line| line.split_once(':')).map_or("", |(_, name)| name.trim())
}

fn describe(interface: &Interface) -> String {
    let driver = interface.driver.as_deref().unwrap_or(interface.kind.as_str());
    let rate = interface.bitrate().map_or(String::new(), |rate| format!(", {rate} bit/s"));
    let qdisc = Some(&interface.qdisc).filter(|qdisc| !qdisc.is_empty()); // a character device has no qdisc
    let qdisc = qdisc.map(|qdisc| format!(", {qdisc}")).unwrap_or_default();
    format!("{}: {driver}{rate}, txqueuelen {}{qdisc}", interface.name, interface.tx_queue_len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_and_the_emulator_are_words_of_the_kernel_s_command_line() {
        let line = "console=ttyS0 canter.clock=virtual canter.shift=0 canter.qemu=7.2.22";
        assert_eq!(word(line, "canter.clock="), "virtual");
        assert_eq!(word(line, "canter.qemu="), "7.2.22");
        assert_eq!(word(line, "canter.lab="), "");
    }

    #[test]
    fn a_kernel_has_its_name_in_the_papers() {
        for (kernel, flavour) in [
            ("6.12.117+deb12-amd64 #1 SMP", "6.12"),
            ("6.1.0-49-rt-amd64 #1 SMP PREEMPT_RT", "6.1-rt"),
            ("2.6.33.7-rt29 #1", "2.6.33-rt"),
            ("3.0.1 #1 SMP", "3.0"),
            ("", ""),
        ] {
            let environment = Environment { kernel: kernel.to_owned(), ..Environment::default() };
            assert_eq!(environment.flavour(), flavour);
        }
    }

    #[test]
    fn the_processor_is_the_first_model_name() {
        assert_eq!(
            cpu_model("processor\t: 0\nmodel name\t: QEMU TCG CPU version 2.5+\n"),
            "QEMU TCG CPU version 2.5+"
        );
        assert_eq!(cpu_model(""), "");
    }
}
