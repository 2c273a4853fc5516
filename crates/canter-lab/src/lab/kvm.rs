//! Whether KVM works: on some machines the device exists and no guest comes up. So the lab boots a test guest once per
//! kernel, QEMU version and boot of the host. The guest must reach its command in time; the verdict is kept.

use super::{
    cache::Cache,
    kernel::Kernel,
    machine::{Accel, Clock, Ended, Machine},
    progress::Progress,
    streams::{Input, Streams},
};
use canter_cli::failure::Result;
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

/// Timeout of the test guest, far longer than with a working KVM; emulation takes about 4 s.
const DEADLINE: Duration = Duration::from_secs(5);
const DEVICE: &str = "/dev/kvm";
/// The cache's folder of verdicts.
const FOLDER: &str = "kvm";

/// The subject of a verdict, besides the host.
pub struct Key<'a> {
    pub qemu_version: &'a str,
    pub kernel: &'a Kernel,
}

impl Key<'_> {
    /// The verdict's file, which ends with this boot of the host.
    fn file(&self, boot: &str) -> PathBuf {
        let Kernel { release, key, .. } = self.kernel;
        Path::new(FOLDER).join(format!("{release}-{key}-{}-{boot}", self.qemu_version))
    }
}

/// KVM or TCG for a machine with `--accel auto`. `try_boot` boots a machine that runs an empty command.
pub fn choose(
    machine: &Machine,
    cache: &Cache,
    key: &Key,
    progress: &Progress,
    try_boot: impl FnOnce(&Machine, Streams) -> Result<Option<Ended>>,
) -> Result<Accel> {
    if machine.accel != Accel::Auto {
        return Ok(machine.accel);
    }
    let device = fs::File::options().read(true).write(true).open(DEVICE);
    if machine.clock == Clock::Virtual || !machine.arch.is_host() || device.is_err() {
        return Ok(Accel::Tcg);
    }
    drop(device);
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    judge(machine, cache, key, boot.trim(), progress, try_boot)
}

/// The verdict for this kernel, from the cache or from a test guest.
fn judge(
    machine: &Machine,
    cache: &Cache,
    key: &Key,
    boot: &str,
    progress: &Progress,
    try_boot: impl FnOnce(&Machine, Streams) -> Result<Option<Ended>>,
) -> Result<Accel> {
    let verdict = cache.path(&key.file(boot).to_string_lossy());
    match fs::read_to_string(&verdict).as_deref() {
        Ok("works") => return Ok(Accel::Kvm),
        Ok("does not work") => return Ok(Accel::Tcg),
        _ => {}
    }
    let release = &key.kernel.release;
    let step = progress.step(&format!(
        "testing {DEVICE} with {release}, once per boot of this machine (--accel tcg skips the test)"
    ));
    let probe = Machine { accel: Accel::Kvm, timeout: DEADLINE, arch: machine.arch, ..Machine::default() };
    let streams = Streams { stdin: Input::Null, stdout: Box::new(io::sink()), stderr: Box::new(io::sink()) };
    let ended = try_boot(&probe, streams)?;
    drop(step);
    if matches!(ended, Some(Ended::Interrupted(_))) {
        return Ok(Accel::Tcg); // no verdict, and the run that follows sees the signal too
    }
    let (accel, text) = match ended {
        Some(Ended::Exit(0)) => (Accel::Kvm, "works"),
        _ => (Accel::Tcg, "does not work"),
    };
    progress.say(&format!("{DEVICE} {text} here with {release}: using {}", accel.name()));
    let _ = keep(&verdict, text, boot); // without it the next run tries again
    Ok(accel)
}

/// Writes a verdict, and removes those of earlier boots.
fn keep(verdict: &Path, text: &str, boot: &str) -> io::Result<()> {
    let Some(folder) = verdict.parent() else { return Ok(()) };
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(folder)?.flatten() {
        if !entry.file_name().to_string_lossy().ends_with(boot) {
            let _ = fs::remove_file(entry.path());
        }
    }
    fs::write(verdict, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: fn() -> Progress = || Progress::new(true);

    fn kernel(key: &str) -> Kernel {
        Kernel { release: "6.12".to_owned(), key: key.to_owned(), ..Kernel::default() }
    }

    fn choose_for(machine: &Machine) -> Accel {
        let folder = tempfile::tempdir().unwrap();
        let (cache, kernel) = (Cache::at(folder.path()), kernel("a"));
        let key = Key { qemu_version: "7", kernel: &kernel };
        choose(machine, &cache, &key, &QUIET(), |_, _| panic!("no boot is needed")).unwrap()
    }

    #[test]
    fn a_requested_accelerator_and_the_virtual_clock_need_no_test() {
        let machine = |clock, accel| Machine { clock, accel, ..Machine::default() };
        assert_eq!(choose_for(&machine(Clock::Real, Accel::Tcg)), Accel::Tcg);
        assert_eq!(choose_for(&machine(Clock::Real, Accel::Kvm)), Accel::Kvm);
        assert_eq!(choose_for(&machine(Clock::Virtual, Accel::Auto)), Accel::Tcg);
    }

    /// The verdict about the kernel of this key, by a test guest that ends like this, or from the cache.
    fn judged(
        cache: &Cache,
        key: &str,
        qemu_version: &str,
        boot: &str,
        test: Option<Option<Ended>>,
    ) -> Accel {
        let kernel = kernel(key);
        let key = Key { qemu_version, kernel: &kernel };
        let try_boot = |_: &Machine, _| Ok(test.expect("the verdict is in the cache"));
        judge(&Machine::default(), cache, &key, boot, &QUIET(), try_boot).unwrap()
    }

    #[test]
    fn each_kernel_has_its_own_verdict_for_a_qemu_and_a_boot() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let (works, fails) = (Some(Some(Ended::Exit(0))), Some(None));
        assert_eq!(judged(&cache, "a", "7", "today", works), Accel::Kvm);
        assert_eq!(judged(&cache, "b", "7", "today", fails), Accel::Tcg);
        assert_eq!(judged(&cache, "a", "7", "today", None), Accel::Kvm);
        assert_eq!(judged(&cache, "b", "7", "today", None), Accel::Tcg);
        assert_eq!(judged(&cache, "a", "10", "today", fails), Accel::Tcg);
        assert_eq!(judged(&cache, "b", "7", "tomorrow", works), Accel::Kvm);
        assert_eq!(
            fs::read_dir(cache.path(FOLDER)).unwrap().count(),
            1,
            "verdicts of earlier boots are gone"
        );
    }

    #[test]
    fn an_interrupted_test_is_no_verdict_and_neither_is_a_half_written_one() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        assert_eq!(judged(&cache, "a", "7", "today", Some(Some(Ended::Interrupted(2)))), Accel::Tcg);
        assert_eq!(judged(&cache, "a", "7", "today", Some(Some(Ended::Exit(0)))), Accel::Kvm);
        let kernel = kernel("a");
        let file = Key { qemu_version: "7", kernel: &kernel }.file("today");
        fs::write(cache.path(&file.to_string_lossy()), "").unwrap();
        assert_eq!(judged(&cache, "a", "7", "today", Some(Some(Ended::Exit(0)))), Accel::Kvm);
    }
}
