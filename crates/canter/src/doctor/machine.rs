//! The machine that the doctor examines: interfaces as the kernel reports them, and files below /proc and /sys. Tests
//! make up both.

use canter_cli::{failure, trouble};
use canter_io::{
    Interface,
    ethtool::{self, Coalescing},
    interface::Counters,
};
use std::{fs, path::PathBuf};

/// This machine, or one made up by a test.
#[derive(Debug)]
pub struct Machine {
    /// The folder that is read in place of `/`.
    root: PathBuf,
    pub interfaces: Vec<Patient>,
}

/// An interface with the counters of its driver.
#[derive(Debug)]
pub struct Patient {
    pub interface: Interface,
    pub counters: Counters,
    /// How the driver holds back interrupts; `None` when it does not report that.
    pub coalescing: Option<Coalescing>,
}

impl Machine {
    /// This machine with the named interfaces and devices; without names, with all that are up.
    pub fn read(names: &[String]) -> failure::Result<Self> {
        let interfaces = if names.is_empty() {
            let interfaces = Interface::list()?.into_iter().chain(Interface::devices());
            interfaces.filter(|interface| interface.up).collect()
        } else {
            let find = |name: &String| -> failure::Result<Interface> {
                let interface = Interface::find(name)?;
                // A bus-off interface is a finding; one that is down cannot be examined.
                if interface.up {
                    Ok(interface)
                } else {
                    trouble::refuse_down(&interface).map(|()| interface)
                }
            };
            names.iter().map(find).collect::<failure::Result<Vec<_>>>()?
        };
        let patient = |interface: Interface| {
            let counters = interface.counters()?;
            let coalescing = ethtool::coalescing(&interface.name).ok();
            Ok(Patient { interface, counters, coalescing })
        };
        let interfaces = interfaces.into_iter().map(patient).collect::<failure::Result<_>>()?;
        Ok(Self { root: PathBuf::from("/"), interfaces })
    }

    #[cfg(test)]
    pub fn made_up(root: &std::path::Path, interfaces: Vec<Patient>) -> Self {
        Self { root: root.to_owned(), interfaces }
    }

    /// The text of a file without its last line end; `None` when the file does not exist or cannot be read.
    pub fn text(&self, path: &str) -> Option<String> {
        let text = fs::read(self.root.join(path)).ok()?;
        Some(String::from_utf8_lossy(&text).trim_end().to_owned())
    }

    /// The number in a file.
    pub fn number(&self, path: &str) -> Option<i64> {
        self.text(path)?.trim().parse().ok()
    }

    /// The names that the interface's interrupt may have in /proc/interrupts. Most drivers request it under the interface's
    /// name; drivers of controllers on SPI (mcp251x, mcp251xfd) under the device's name, `spi0.0`.
    pub fn interrupt_names(&self, patient: &Patient) -> Vec<String> {
        let name = &patient.interface.name;
        let link = self.root.join(format!("sys/class/net/{name}/device"));
        let device = fs::read_link(link).ok();
        let device = device.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        [name.strip_prefix("/dev/").unwrap_or(name).to_owned()].into_iter().chain(device).collect()
    }

    /// Whether the interface's controller is reached by SPI.
    pub fn is_on_spi(&self, patient: &Patient) -> bool {
        self.interrupt_names(patient).get(1).is_some_and(|device| device.starts_with("spi"))
    }

    /// The names in a folder that begin with `prefix`, sorted by length, then by name.
    pub fn list(&self, folder: &str, prefix: &str) -> Vec<String> {
        let names = fs::read_dir(self.root.join(folder)).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(prefix)).collect();
        names.sort_by_key(|name| (name.len(), name.clone()));
        names
    }

    /// Whether the kernel is PREEMPT_RT.
    pub fn is_realtime(&self) -> bool {
        self.text("proc/version").is_some_and(|version| version.contains("PREEMPT_RT"))
    }

    /// The kernel's version, `[6, 12]`; zeros where nobody says it.
    pub fn kernel(&self) -> [u32; 2] {
        let text = self.text("proc/version").unwrap_or_default();
        let release = text.strip_prefix("Linux version ").unwrap_or_default();
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
        [numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)]
    }

    /// Interfaces with a controller behind them.
    pub fn controllers(&self) -> impl Iterator<Item = &Patient> {
        self.interfaces.iter().filter(|patient| patient.interface.controller.is_some())
    }
}
