//! Saved machines: a machine is saved once after its boot, when its modules are loaded and it waits for a command, and
//! restored for each later command, which takes a tenth of the time. Its key is all that a boot depends on; what
//! differs between commands (shares, environment, time of day) reaches the guest afterwards. The files of a saved machine
//! have a checksum: one that is damaged never continues.

use super::{
    analyzer::Loaded,
    cache::{Cache, Entry, MACHINES, Reservation},
    initramfs,
    kernel::{Extra, Kernel, identity},
    lab_failure,
    machine::Machine,
    memory::{self, Memory, Shared},
    monitor::Monitor,
    programs,
    progress::Progress,
    topology::{self, Paths},
};
use canter_cli::failure::Result;
use std::{
    fmt::Write,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};
use twox_hash::XxHash64;

/// The first line of a description: the version of the protocol between the host and a restored guest.
const VERSION: &str = "saved machine 2";
const MEMORY: &str = "memory";
const STATE: &str = "state";
const SUM: &str = "sum";
const DESCRIPTION: &str = "description";
/// The file of the guest's /proc/kallsyms: after each restore, kernel and modules are at the same addresses.
pub const SYMBOLS: &str = "kallsyms";

/// The inputs of a machine's boot, a line for each.
pub struct Description(String);

impl Description {
    /// Describes a machine that boots this kernel; `shares` is the number of its shared folders.
    pub fn new(machine: &Machine, kernel: &Kernel, shares: usize, qemu_version: &str) -> Result<Self> {
        let mut lines = format!("{VERSION}\nboot {}\n", machine.saved.unwrap_or(0));
        let qemu = programs::path(machine.arch.qemu());
        let _ = writeln!(lines, "qemu {qemu_version} {}", identity(&qemu));
        for argument in arguments(machine, shares, qemu_version) {
            let _ = writeln!(lines, "{}", argument.escape_default());
        }
        let _ = writeln!(lines, "kernel {} {}", kernel.release, kernel.key);
        let _ = writeln!(lines, "busybox {}", identity(&programs::path(programs::BUSYBOX)));
        let _ = writeln!(lines, "init {:016x}", hash(initramfs::INIT));
        for Extra { file, parameters } in initramfs::modules(machine, kernel, &Progress::new(true))? {
            let _ = writeln!(lines, "module {} {parameters}", identity(&file));
        }
        lines += &initramfs::drivers(machine);
        Ok(Self(lines))
    }

    /// The name of the machine's entry in the cache.
    pub fn name(&self) -> String {
        format!("{MACHINES}/{:016x}", hash(self.0.as_bytes()))
    }

    /// The saved machine; `None` when there is none yet. An error says why it cannot be used.
    pub fn find(&self, cache: &Cache) -> std::result::Result<Option<Saved>, String> {
        self.find_of_user(cache, user(Path::new("/proc/self"))?)
    }

    fn find_of_user(&self, cache: &Cache, this: u32) -> std::result::Result<Option<Saved>, String> {
        let Some(entry) = cache.find(&self.name())? else { return Ok(None) };
        if user(entry.path())? != this {
            return Err("another user has saved it".to_owned());
        }
        match fs::read_to_string(entry.path().join(DESCRIPTION)) {
            Ok(description) if description == self.0 => Ok(Some(Saved(entry))),
            _ => Err("it is another machine".to_owned()),
        }
    }

    /// A place to save the machine in; `None` when another lab is about to save it.
    pub fn reserve<'a>(&self, cache: &'a Cache) -> Result<Option<Place<'a>>> {
        let Some(reservation) = cache.reserve(&self.name())? else { return Ok(None) };
        let file = reservation.path().join(DESCRIPTION);
        fs::write(&file, &self.0).map_err(|e| lab_failure(format!("{}: {e}", file.display())))?;
        Ok(Some(Place(reservation)))
    }
}

/// QEMU's arguments without the paths that differ between commands.
fn arguments(machine: &Machine, shares: usize, qemu_version: &str) -> Vec<String> {
    let any = Path::new("any");
    let loaded = Loaded { plugin: any.to_owned(), folder: any.to_owned(), cost: None };
    let paths = Paths {
        kernel: any,
        initramfs: any,
        console: any,
        sockets: any,
        shares: &vec![any.to_owned(); shares],
        root: any,
        memory: Some(Memory { file: any, shared: false }),
        read_only: &[],
        analyzer: machine.analyzer.then_some(&loaded),
        usb_stick: machine.usb_stick.then_some(any),
    };
    topology::qemu_arguments(machine, &paths, qemu_version)
}

/// The checksums of a saved machine's state and memory.
fn sum(folder: &Path) -> io::Result<String> {
    let state = XxHash64::oneshot(0, &fs::read(folder.join(STATE))?);
    Ok(format!("{state:016x} {:016x}\n", memory::sum(&folder.join(MEMORY))?))
}

/// The user who owns a file.
fn user(path: &Path) -> std::result::Result<u32, String> {
    fs::metadata(path).map(|about| about.uid()).map_err(|e| format!("{}: {e}", path.display()))
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// A saved machine in use: nobody removes it before this is dropped.
pub struct Saved(Entry);

impl Saved {
    /// The state of the machine, for [`Monitor::restore`].
    pub fn state(&self) -> PathBuf {
        self.0.path().join(STATE)
    }

    /// The memory of the machine.
    pub fn memory(&self) -> PathBuf {
        self.0.path().join(MEMORY)
    }

    /// Why the machine cannot be restored, if its files are not those that were saved.
    pub fn damage(&self) -> Option<String> {
        let kept = fs::read_to_string(self.0.path().join(SUM));
        match (kept, sum(self.0.path())) {
            (Ok(kept), Ok(sum)) if kept == sum => None,
            (Ok(_), Ok(_)) => Some("it is damaged".to_owned()),
            (Err(error), _) | (_, Err(error)) => Some(error.to_string()),
        }
    }
}

/// A place to save a machine in; dropping this leaves nothing.
pub struct Place<'a>(Reservation<'a>);

impl Place<'_> {
    /// Saves the machine that waits for its session, with its symbols.
    pub fn save(
        self,
        monitor: &mut Monitor,
        socket: &Path,
        memory: &Shared,
        symbols: &[u8],
        progress: &Progress,
    ) -> Result<()> {
        let folder = self.0.path();
        let saved = fs::write(folder.join(SYMBOLS), symbols).and_then(|()| {
            monitor.save(&folder.join(STATE), socket, || memory.copy(&folder.join(MEMORY)))?;
            fs::write(folder.join(SUM), sum(folder)?)
        });
        saved.map_err(|e| lab_failure(format!("{}: {e}", folder.display())))?;
        self.0.keep(progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::{self, arch::Arch, machine::Clock, modprobe::Index};

    const NEEDED: &str = "virtio_pci.ko\nvirtio_console.ko\n9pnet_virtio.ko\n9p.ko\noverlay.ko\nxhci-pci.ko\nusb-storage.ko\nsd_mod.ko\n";

    fn kernel() -> Kernel {
        let index = Index::builtin_only(NEEDED);
        Kernel { release: "6.12".to_owned(), key: "a".to_owned(), index, ..Kernel::default() }
    }

    fn machine() -> Machine {
        Machine { arch: Arch::Amd64, ..Machine::default() }
    }

    fn named(machine: &Machine, kernel: &Kernel, shares: usize, qemu_version: &str) -> String {
        Description::new(machine, kernel, shares, qemu_version).unwrap().name()
    }

    #[test]
    fn whatever_a_boot_depends_on_makes_another_machine() {
        let module = |name, value| lab::module(name, value).unwrap();
        let extra = |parameters: &str| {
            let extra = Extra { file: "/proc/self/exe".into(), parameters: parameters.to_owned() };
            Kernel { extra_modules: vec![extra], ..kernel() }
        };
        let machines = [
            machine(),
            Machine { clock: Clock::Virtual, ..machine() },
            Machine { clock: Clock::Virtual, shift: 3, ..machine() },
            Machine { cpus: 2, ..machine() },
            Machine { memory: "1G".to_owned(), ..machine() },
            Machine { cards: 4, ..machine() },
            Machine { fd_cards: 1, ..machine() },
            Machine { net: true, ..machine() },
            Machine { usb_stick: true, ..machine() },
            Machine { append: vec!["threadirqs".to_owned()], ..machine() },
            Machine { saved: Some(1), ..machine() },
            Machine { analyzer: true, ..machine() },
            Machine { modules: vec![module("canchar", "virtual,3")], ..machine() },
            Machine { modules: vec![module("canchar", "virtual,4")], ..machine() },
        ];
        let mut names: Vec<_> =
            machines.iter().map(|machine| named(machine, &kernel(), 1, "7.2.22")).collect();
        names.push(named(&machine(), &kernel(), 2, "7.2.22"));
        names.push(named(&machine(), &kernel(), 1, "7.2.23"));
        names.push(named(&machine(), &Kernel { key: "b".to_owned(), ..kernel() }, 1, "7.2.22"));
        names.push(named(&machine(), &Kernel { release: "6.1".to_owned(), ..kernel() }, 1, "7.2.22"));
        names.push(named(&machine(), &extra("devices=1"), 1, "7.2.22"));
        names.push(named(&machine(), &extra("devices=2"), 1, "7.2.22"));
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn what_reaches_the_guest_after_its_boot_makes_no_other_machine() {
        let same = [
            Machine { systemd: true, ..machine() },
            Machine { timeout: std::time::Duration::from_secs(1), ..machine() },
            Machine { console: Some("console".into()), verbose: true, quiet: true, ..machine() },
            Machine { shares: vec!["/srv".into()], ..machine() },
        ];
        for other in same {
            assert_eq!(named(&other, &kernel(), 1, "7"), named(&machine(), &kernel(), 1, "7"), "{other:?}");
        }
    }

    #[test]
    fn a_file_that_changes_is_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("module.ko");
        fs::write(&file, "one").unwrap();
        let first = identity(&file);
        assert_eq!(identity(&file), first);
        fs::write(&file, "three").unwrap();
        let second = identity(&file);
        assert_ne!(second, first);
        fs::remove_file(&file).unwrap();
        assert_ne!(identity(&file), second);
    }

    #[test]
    fn a_machine_that_another_user_has_saved_is_not_restored() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let description = Description::new(&machine(), &kernel(), 1, "7.2.22").unwrap();
        let this = user(Path::new("/proc/self")).unwrap();
        assert!(description.find_of_user(&cache, this).unwrap().is_none());
        let place = description.reserve(&cache).unwrap().unwrap();
        place.0.keep(&Progress::new(true)).unwrap();
        assert!(description.find_of_user(&cache, this).unwrap().is_some());
        let refused = description.find_of_user(&cache, this + 1).err();
        assert_eq!(refused.as_deref(), Some("another user has saved it"));
    }
}
