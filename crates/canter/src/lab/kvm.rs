//! Whether KVM works: on some machines the device exists and no guest comes up. So the lab boots a test guest once per
//! QEMU version and boot of the host. The guest must reach its command in time; the verdict is kept.

use super::{
    cache::Cache,
    machine::{Accel, Clock, Ended, Machine},
    progress::Progress,
    streams::{Input, Streams},
};
use crate::failure::Result;
use std::fs;
use std::io;
use std::time::Duration;

/// Far longer than a guest with a working KVM takes; emulation takes about 4 s.
const DEADLINE: Duration = Duration::from_secs(5);

/// KVM or TCG for a machine with `--accel auto`. `try_boot` boots a machine that runs an empty command.
pub fn choose(
    machine: &Machine,
    cache: &Cache,
    qemu_version: &str,
    progress: &Progress,
    try_boot: impl FnOnce(&Machine, Streams) -> Result<Option<Ended>>,
) -> Result<Accel> {
    if machine.accel != Accel::Auto {
        return Ok(machine.accel);
    }
    let device = fs::File::options().read(true).write(true).open("/dev/kvm");
    if machine.clock == Clock::Virtual || !machine.arch.is_host() || device.is_err() {
        return Ok(Accel::Tcg);
    }
    drop(device);
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let verdict = cache.path(&format!("kvm-{qemu_version}-{}", boot_id.trim()));
    match fs::read_to_string(&verdict).as_deref() {
        Ok("works") => return Ok(Accel::Kvm),
        Ok(_) => return Ok(Accel::Tcg),
        Err(_) => {}
    }
    let step = progress.step("testing /dev/kvm, once per boot of this machine (--accel tcg skips the test)");
    let probe = Machine { accel: Accel::Kvm, timeout: DEADLINE, ..Machine::default() };
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
    progress.say(&format!("/dev/kvm {text} here: using {}", accel.name()));
    let _ = fs::write(verdict, text); // without it the next run tries again
    Ok(accel)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose_for(machine: &Machine) -> Accel {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        choose(machine, &cache, "7", &Progress::new(true), |_, _| panic!("no boot is needed")).unwrap()
    }

    #[test]
    fn a_requested_accelerator_and_the_virtual_clock_need_no_test() {
        let machine = |clock, accel| Machine { clock, accel, ..Machine::default() };
        assert_eq!(choose_for(&machine(Clock::Real, Accel::Tcg)), Accel::Tcg);
        assert_eq!(choose_for(&machine(Clock::Real, Accel::Kvm)), Accel::Kvm);
        assert_eq!(choose_for(&machine(Clock::Virtual, Accel::Auto)), Accel::Tcg);
    }
}
