//! The guest's first files. The archive of a boot has busybox, the modules and the first script: what a machine is before
//! it has a command, and all that a saved machine contains. The archive of a session follows when the guest asks for it:
//! the scripts that mount the host's files and run the command, and what they need to know.

use super::{
    bring_up,
    cpio::Archive,
    distribution::Family,
    fd_driver,
    kernel::{Extra, Kernel},
    lab_failure,
    machine::Machine,
    modprobe, playground, programs,
    progress::Progress,
    shell, topology, usb_stick,
};
use canter_cli::failure::Result;
use canter_io::clock;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Modules without which the guest cannot reach the host's files and streams.
const NEEDED: &[&str] = &["virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay"];
/// The CAN modules. A kernel that lacks one boots anyway.
const CAN: &[&str] =
    &["can", "can-raw", "can-bcm", "can-gw", "vcan", "vxcan", "sch_tbf", "can-dev", "kvaser_pci"];

/// The script of a boot.
pub const INIT: &[u8] = include_bytes!("guest/init");

/// Variables that the lab passes to the command; a name that ends with `_` is a prefix.
const ENVIRONMENT: &[&str] = &["PATH", "HOME", "TERM", "LANG", "CANTER_", "RUST_", "CARGO_"];
const SYSTEM_FOLDERS: &[&str] =
    &["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/// The guest's folder with the running binary, named `canter`.
const OWN_FOLDER: &str = "/run/canter-lab/bin";

/// The inputs of a session's scripts.
pub struct Session<'a> {
    pub command: &'a [String],
    /// The current directory of the command.
    pub folder: &'a Path,
    /// The folders that are shared with the host.
    pub shares: &'a [PathBuf],
    /// Entries of the host's /tmp and /run that the guest sees.
    pub visible: &'a [PathBuf],
    /// Marks the end of a complete stream.
    pub token: &'a str,
    /// Read-only folders by their tags.
    pub read_only: &'a [(&'static str, PathBuf)],
}

/// The archive that the kernel unpacks and runs.
pub fn boot(machine: &Machine, kernel: &Kernel, root: &Path, progress: &Progress) -> Result<Vec<u8>> {
    let busybox = busybox(machine, root);
    if !programs::is_static(&busybox) {
        let install = Family::host().install(&[programs::BUSYBOX.packages]);
        return Err(lab_failure(format!("{}: not a static program ({install})", busybox.display())));
    }
    let mut archive = Archive::new();
    for folder in ["bin", "dev", "proc", "sys", "run", "tmp", "ov", "modules"] {
        archive.folder(folder);
    }
    let busybox_bytes =
        std::fs::read(&busybox).map_err(|e| lab_failure(format!("{}: {e}", busybox.display())))?;
    archive.file("bin/busybox", &busybox_bytes);
    let mut order = String::new();
    for Extra { file, parameters } in modules(machine, kernel, progress)? {
        let name = modprobe::plain_name(&file.to_string_lossy());
        archive.file(&format!("modules/{name}"), &modprobe::read_plain(&file)?);
        let _ = writeln!(order, "{name} {parameters}");
    }
    archive.file("modules/order", order.as_bytes());
    archive.file("init", INIT);
    archive.file(bring_up::PAUSING, &bring_up::pausing());
    let awaited = if machine.usb_stick { usb_stick::DISK } else { "" };
    archive.file("modules/awaited", awaited.as_bytes());
    archive.file("modules/drivers", drivers(machine).as_bytes());
    Ok(archive.finish())
}

/// The archive that the guest unpacks when it is ready for a command.
pub fn session(machine: &Machine, kernel: &Kernel, session: &Session) -> Vec<u8> {
    let mut archive = Archive::new();
    archive.file("arrive", include_bytes!("guest/arrive"));
    archive.file("session", include_bytes!("guest/session"));
    archive.file("lab", variables(machine, kernel, session).as_bytes());
    archive.file("shares", shares(session).as_bytes());
    archive.file("visible", visible(machine, session).as_bytes());
    archive.file("command", command(session, std::env::vars_os()).as_bytes());
    archive.finish()
}

/// The host's busybox, or that of another architecture's root.
fn busybox(machine: &Machine, root: &Path) -> PathBuf {
    match machine.arch.is_host() {
        true => programs::path(programs::BUSYBOX),
        false => root.join("usr/bin/busybox"),
    }
}

/// The modules that a boot loads, in their order.
pub fn modules(machine: &Machine, kernel: &Kernel, progress: &Progress) -> Result<Vec<Extra>> {
    let usb_stick = if machine.usb_stick { usb_stick::MODULES } else { &[] };
    for (modules, purpose) in
        [(NEEDED, "the lab needs them to share files with the guest"), (usb_stick, "--usb-stick needs them")]
    {
        let needed = kernel.index.order(modules);
        if !needed.absent.is_empty() {
            return Err(lab_failure(format!(
                "kernel {}: it has no {} ({purpose})",
                kernel.release,
                needed.absent.join(", ")
            )));
        }
    }
    let net: &[&str] = if machine.net { &["e1000"] } else { &[] };
    // Loaded after the SJA1000 driver, so that those cards are can0…can4.
    let own_fd = machine.fd_cards > 0 && kernel.index.has(fd_driver::MODULE);
    let fd: &[&str] = if own_fd { &[fd_driver::MODULE] } else { &[] };
    let wanted = kernel.index.order(&[NEEDED, CAN, net, fd, usb_stick].concat());
    if !wanted.absent.is_empty() && machine.verbose {
        progress.say(&format!("kernel {} lacks the modules {}", kernel.release, wanted.absent.join(", ")));
    }
    let folder = kernel.modules.as_ref().map(|folder| folder.join(&kernel.release)).unwrap_or_default();
    let files = wanted.files.iter().map(|file| Extra::new(folder.join(file)));
    Ok(files.chain(kernel.extra_modules.iter().cloned()).collect())
}

/// One line per card that one of our modules drives instead of the kernel's driver: the driver and the card's address.
pub fn drivers(machine: &Machine) -> String {
    let cards = machine.modules.iter().flat_map(|chosen| {
        let line = |&card: &u8| format!("{} {}\n", chosen.module.driver, topology::card_address(card));
        chosen.loading.cards.iter().map(line)
    });
    cards.collect()
}

/// The variables of a session's scripts.
fn variables(machine: &Machine, kernel: &Kernel, session: &Session) -> String {
    let path = |path: Option<PathBuf>| shell::quote(&path.unwrap_or_default().to_string_lossy());
    // In another root, modules and program are not under the host's paths: they are mounted separately.
    let of_host = |path: Option<PathBuf>| path.filter(|_| machine.arch.is_host());
    let tags: Vec<_> = session.read_only.iter().map(|(tag, _)| *tag).collect();
    format!(
        "NOW={}\nMODULES={}\nPROGRAM={}\nTOKEN={}\nREAD_ONLY='{}'\nSYSTEMD={}\nANALYZER={}\nTERMINAL={}\n",
        clock::realtime_ns() / 1_000_000_000,
        path(of_host(kernel.modules.clone()).map(|folder| folder.canonicalize().unwrap_or(folder))),
        path(of_host(std::env::current_exe().ok())),
        shell::quote(session.token),
        tags.join(" "),
        if machine.systemd { "1" } else { "" },
        if machine.analyzer { topology::ANALYZER_TAG } else { "" },
        if machine.terminal { playground::TERMINAL } else { "" }
    )
}

/// A line for each shared folder: its tag and its path.
fn shares(session: &Session) -> String {
    let line =
        |(number, path): (usize, &PathBuf)| format!("{} {}\n", topology::share_tag(number), path.display());
    session.shares.iter().enumerate().map(line).collect()
}

/// A line for each entry of the host's /tmp and /run that is visible. Another root is not the host's.
fn visible(machine: &Machine, session: &Session) -> String {
    let entries = if machine.arch.is_host() { session.visible } else { &[] };
    entries.iter().map(|path| format!("{}\n", path.display())).collect()
}

/// The script that becomes the command. A variable that is not UTF-8 stays on the host.
fn command(session: &Session, environment: impl Iterator<Item = (OsString, OsString)>) -> String {
    let mut script = String::new();
    let mut path = String::new();
    let plain =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    for (name, value) in environment.filter_map(plain) {
        let passed = ENVIRONMENT.iter().any(|v| name == *v || v.ends_with('_') && name.starts_with(v));
        let a_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if name == "PATH" {
            path = value;
        } else if passed && a_name {
            let _ = writeln!(script, "export {name}={}", shell::quote(&value));
        }
    }
    let _ = writeln!(script, "export PATH={}", shell::quote(&search_path(&path)));
    let _ = writeln!(script, "cd {} || exit 125", shell::quote(&session.folder.to_string_lossy()));
    let _ = writeln!(script, "{}", shell::command_line(session.command));
    script
}

/// The host's PATH, with the lab's own program before it and the system's folders behind it.
fn search_path(path: &str) -> String {
    let mut folders: Vec<_> = path.split(':').filter(|folder| !folder.is_empty()).collect();
    for folder in SYSTEM_FOLDERS {
        if !folders.contains(folder) {
            folders.push(folder);
        }
    }
    format!("{OWN_FOLDER}:{}", folders.join(":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_of_a_module_are_given_to_its_driver_by_their_addresses() {
        let modules = vec![crate::lab::module("canchar", "virtual,3,4").unwrap()];
        let lines = drivers(&Machine { modules, ..Machine::default() });
        assert_eq!(lines, "canchar_kvaser_pci 0000:00:07.0\ncanchar_kvaser_pci 0000:00:1a.0\n");
    }

    #[test]
    fn the_command_keeps_its_folder_words_and_environment() {
        let command_words = ["echo".to_owned(), "a b".to_owned()];
        let folders = ["/tmp/my dir", "/srv"].map(PathBuf::from);
        let session = Session {
            command: &command_words,
            folder: &folders[0],
            shares: &folders,
            visible: &[],
            token: "T",
            read_only: &[],
        };
        assert_eq!(shares(&session), "share0 /tmp/my dir\nshare1 /srv\n");
        let environment = [
            ("PATH", "/usr/bin:/opt/x"),
            ("HOME", "/root"),
            ("RUST_LOG", "a=1 b"),
            ("SECRET", "x"),
            ("RUSTUP", "y"),
            ("CANTER_CACHE", "/c"),
        ];
        let not_text = std::os::unix::ffi::OsStringExt::from_vec(b"a\xff".to_vec());
        let all = environment.iter().map(|(n, v)| ((*n).into(), (*v).into()));
        let script = command(&session, all.chain([("RUST_ODD".into(), not_text)]));
        assert_eq!(
            script,
            "export HOME=/root\nexport RUST_LOG='a=1 b'\nexport CANTER_CACHE=/c\n\
             export PATH=/run/canter-lab/bin:/usr/bin:/opt/x:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin\n\
             cd '/tmp/my dir' || exit 125\nexec echo 'a b'\n"
        );
    }
}
