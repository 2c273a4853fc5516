//! The lab's USB stick, mounted, written and unmounted again and again. No other disk is ever written: not outside of the
//! lab, and in the lab none but the one with the serial number that the lab gives its stick.

use super::{
    disk::run,
    row::{CANTER, LoadCommand, LoadRow},
};
use crate::lab::usb_stick::SERIAL;
use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// The load in a mount namespace of its own: when its process ends, however that is, nothing is mounted anywhere.
pub const LOAD: LoadRow = LoadRow {
    name: "usb-stick",
    ethernet: false,
    check: || stick().map(drop),
    lines: |_| {
        let words = ["unshare", "--mount", CANTER, "study", "load", "usb-stick"];
        vec![LoadCommand::beside_gateway(&words)]
    },
    work: &[("usb-stick", |_| mount_and_write(&stick().map_err(io::Error::other)?))],
};

/// The files that are written while the stick is mounted, and the bytes of each.
const FILES: usize = 4;
const FILE_BYTES: usize = 256 << 10;
const FOLDER: &str = "/tmp/canter-usb-stick";

/// The block device of the lab's stick, or why there is none.
fn stick() -> Result<PathBuf, String> {
    if !canter_measure::environment::in_lab() {
        return Err("writes to no stick but the lab's (canter lab --usb-stick)".to_owned());
    }
    let disk = disk_of(SERIAL, Path::new("/sys/block"));
    disk.map(|name| Path::new("/dev").join(name)).ok_or_else(|| {
        "this machine of the lab has no USB stick (canter lab --usb-stick; usb_stick = true in a study's [lab])"
            .to_owned()
    })
}

/// The name of the disk that is, or belongs to, the device with this serial number.
fn disk_of(serial: &str, disks: &Path) -> Option<PathBuf> {
    let has_it =
        |device: &Path| fs::read_to_string(device.join("serial")).is_ok_and(|it| it.trim() == serial);
    let mut entries = fs::read_dir(disks).ok()?.flatten();
    let found = entries.find(|disk| {
        let device = disk.path().join("device").canonicalize();
        device.is_ok_and(|device| device.ancestors().any(has_it))
    })?;
    Some(found.file_name().into())
}

/// Mounts the stick, writes and synchronises files, and unmounts it, without end.
fn mount_and_write(stick: &Path) -> io::Result<()> {
    let (folder, stick) = (Path::new(FOLDER), stick.to_string_lossy());
    fs::create_dir_all(folder)?;
    let block = vec![0x55; FILE_BYTES];
    loop {
        run(&["mount", "-t", "vfat", &stick, FOLDER])?;
        for number in 0..FILES {
            let mut file = File::create(folder.join(format!("file{number}")))?;
            file.write_all(&block)?;
            file.sync_all()?;
        }
        run(&["umount", FOLDER])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A tree as in /sys: the disk sda of the USB device 1-1 with a serial number, and the disk sdb of no such device.
    #[test]
    fn only_the_disk_of_the_device_with_the_serial_number_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        let disks = at("block");
        for (disk, device) in [("sda", "usb1/1-1/1-1:1.0/host0"), ("sdb", "pci/host1")] {
            fs::create_dir_all(at(device)).unwrap();
            fs::create_dir_all(disks.join(disk)).unwrap();
            symlink(at(device), disks.join(disk).join("device")).unwrap();
        }
        fs::create_dir(disks.join("loop0")).unwrap();
        fs::write(at("usb1/serial"), "0000:00:18.0\n").unwrap();
        fs::write(at("usb1/1-1/serial"), "someone-s-stick\n").unwrap();
        assert_eq!(disk_of(SERIAL, &disks), None);
        fs::write(at("usb1/1-1/serial"), format!("{SERIAL}\n")).unwrap();
        assert_eq!(disk_of(SERIAL, &disks), Some("sda".into()));
    }

    #[test]
    fn outside_of_the_lab_no_disk_is_written() {
        if canter_measure::environment::in_lab() {
            return;
        }
        assert!(stick().unwrap_err().contains("canter lab --usb-stick"));
    }
}
