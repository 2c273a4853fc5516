//! Further processors of a kernel before 6.5 in the virtual clock. While such a kernel starts a processor, the first one
//! calls schedule() in a loop without `pause`. QEMU before 8.1 lets a processor run until it pauses or a timer expires, and
//! gives the next one the time that is left then: none. So the kernel boots with one processor, and the guest's first script
//! starts the others while a program that does nothing but pause has its turns on the first.

use super::{arch::Arch, kernel::Kernel, machine::Clock, machine::Machine};

/// The name of that program in the guest's first archive.
pub const PAUSING: &str = "bin/pausing";

/// Lets the guest's first script start further processors, where the kernel cannot do it itself.
pub fn adapt(machine: &mut Machine, kernel: &Kernel) {
    if machine.clock == Clock::Virtual
        && machine.cpus > 1
        && machine.arch == Arch::Amd64
        && is_old(&kernel.release)
    {
        machine.append.push(format!("maxcpus=1 canter.cpus={}", machine.cpus));
    }
}

fn is_old(release: &str) -> bool {
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) < (Some(6), Some(5))
}

/// A program for x86-64 that executes `pause` until it is killed: an ELF file of one segment.
pub fn pausing() -> Vec<u8> {
    const START: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    const CODE: [u8; 4] = [0xf3, 0x90, 0xeb, 0xfc]; // pause, and back to it
    let size = HEADERS + CODE.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    let mut add = |bytes: usize, values: &[u64]| {
        values.iter().for_each(|value| file.extend(&value.to_le_bytes()[..bytes]));
    };
    add(2, &[2, 62]); // executable, for x86-64
    add(4, &[1]);
    add(8, &[START + HEADERS, 64, 0]); // where it starts; program headers; no section headers
    add(4, &[0]);
    add(2, &[64, 56, 1, 0, 0, 0]);
    add(4, &[1, 5]); // a segment to load, readable and executable
    add(8, &[0, START, START, size, size, 0x1000]);
    file.extend(CODE);
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt, process::Command, thread, time::Duration};

    #[test]
    fn kernels_before_6_5_are_old() {
        for (release, old) in [
            ("6.1.0-56-amd64", true),
            ("5.10", true),
            ("6.4.16", true),
            ("6.5.0", false),
            ("6.12.117+deb12-amd64", false),
            ("7.3.4", false),
        ] {
            assert_eq!(is_old(release), old, "{release}");
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_pausing_program_runs_until_it_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pausing");
        fs::write(&file, pausing()).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let mut child = Command::new(&file).spawn().expect("the kernel accepts the file");
        thread::sleep(Duration::from_millis(50));
        assert_eq!(child.try_wait().unwrap(), None, "it has not ended");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
