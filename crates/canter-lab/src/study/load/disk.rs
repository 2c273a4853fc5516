//! A file written, synchronised and deleted again and again.

use super::row::{LoadCommand, LoadRow};
use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

pub const LOAD: LoadRow = LoadRow {
    name: "disk",
    ethernet: false,
    check: || Ok(()),
    lines: |_| vec![LoadCommand::own("disk")],
    work: &[("disk", |_| disk())],
};

const FILE_BYTES: usize = 1 << 20;

/// Writes to a disk without end; in the lab, to a file system on a loop device in memory.
fn disk() -> io::Result<()> {
    let folder = if canter_measure::environment::in_lab() { loop_device()? } else { std::env::temp_dir() };
    let path = folder.join(format!("canter-load-{}", std::process::id()));
    let block = vec![0x55; FILE_BYTES];
    loop {
        let mut file = File::create(&path)?;
        file.write_all(&block)?;
        file.sync_all()?;
        drop(file);
        fs::remove_file(&path)?;
    }
}

/// Mounts ext4 on a loop device on a file in memory. The lab has no disk, and this does the same work without the disk's
/// interrupts.
fn loop_device() -> io::Result<PathBuf> {
    let folder = Path::new("/tmp/canter-disk");
    if folder.exists() {
        return Ok(folder.to_owned());
    }
    let image = "/tmp/canter-disk.img";
    File::create(image)?.set_len(64 << 20)?;
    run(&["modprobe", "-a", "loop", "ext4"])?;
    run(&["mkfs.ext4", "-q", "-F", image])?;
    fs::create_dir(folder)?;
    run(&["mount", "-o", "loop", image, "/tmp/canter-disk"])?;
    Ok(folder.to_owned())
}

/// Runs a program that has nothing to read and whose output nobody reads; an error is its words and how it ended.
pub(super) fn run(words: &[&str]) -> io::Result<()> {
    let mut command = Command::new(words[0]);
    match command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).status()? {
        status if status.success() => Ok(()),
        status => Err(io::Error::other(format!("{}: {status}", words.join(" ")))),
    }
}
