//! The guest's memory as a file. A machine that is to be saved has it in a file of the host's memory, from which the pages
//! that are not only zeros are copied. A restored machine maps the copy: QEMU reads a page when the guest first needs it,
//! and what the guest writes stays its own. Both are quicker than a state that contains the memory.

use canter_cli::size::parse_bytes;
use rustix::{
    fs::{MemfdFlags, SeekFrom, memfd_create, seek},
    io::Errno,
};
use std::{
    fs::File,
    io,
    os::{fd::AsRawFd, unix::fs::FileExt},
    path::{Path, PathBuf},
};
use twox_hash::XxHash64;

const PAGE: usize = 4096;
const ZEROS: [u8; PAGE] = [0; PAGE];
const BLOCK: usize = 256 * PAGE;

/// The host's whole memory in MiB, if the guest's memory (`2048M`, as QEMU reads it) is more than that. The kernel gives a
/// file of any size, and would end QEMU later.
pub fn host_has_only(wanted: &str) -> Option<u64> {
    let (wanted, host) = (mebibytes(wanted)?, host_mebibytes()?);
    (wanted > host).then_some(host)
}

/// The number of guests with this memory that the host has memory for.
pub fn guests_of(wanted: &str) -> Option<u64> {
    host_mebibytes()?.checked_div(mebibytes(wanted)?)
}

fn mebibytes(memory: &str) -> Option<u64> {
    Some(parse_bytes(memory).ok()? as u64 >> 20)
}

fn host_mebibytes() -> Option<u64> {
    let about = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kibibytes =
        about.lines().filter(|line| line.starts_with("MemTotal:") || line.starts_with("SwapTotal:"));
    Some(kibibytes.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum::<u64>() / 1024)
}

/// The file of a guest's memory, for QEMU.
#[derive(Clone, Copy)]
pub struct Memory<'a> {
    pub file: &'a Path,
    /// Whether the guest's writes go to the file.
    pub shared: bool,
}

/// The memory of a machine that is to be saved; QEMU gives it its size.
pub struct Shared {
    file: File,
    path: PathBuf,
}

impl Shared {
    pub fn new() -> io::Result<Self> {
        let file = File::from(memfd_create("canter-lab", MemfdFlags::CLOEXEC)?);
        // QEMU opens it by this process, so that no other child inherits it.
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into();
        Ok(Self { file, path })
    }

    pub fn of_qemu(&self) -> Memory<'_> {
        Memory { file: &self.path, shared: true }
    }

    /// Copies the memory of the stopped machine to a new file.
    pub fn copy(&self, to: &Path) -> io::Result<()> {
        let to = File::create_new(to)?;
        to.set_len(self.file.metadata()?.len())?;
        pages(&self.file, |offset, page| to.write_all_at(page, offset))
    }
}

/// The checksum of the pages in a copy that are not only zeros, with their places.
pub fn sum(copy: &Path) -> io::Result<u64> {
    let mut sum = 0;
    pages(&File::open(copy)?, |offset, page| {
        sum = XxHash64::oneshot(sum ^ offset, page);
        Ok(())
    })?;
    Ok(sum)
}

/// Calls `each` with the offset and the bytes of each page that is not only zeros.
fn pages(file: &File, mut each: impl FnMut(u64, &[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    let mut at = 0;
    loop {
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => data / PAGE as u64 * PAGE as u64,
            Err(Errno::NXIO) => return Ok(()), // no data behind it
            Err(error) => return Err(error.into()),
        };
        let read = file.read_at(&mut block, data)?;
        if read == 0 {
            return Ok(());
        }
        for (number, page) in block[..read].chunks(PAGE).enumerate() {
            if page != &ZEROS[..page.len()] {
                each(data + (number * PAGE) as u64, page)?;
            }
        }
        at = data + read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    /// A memory of 64 MiB with three pages that are not only zeros, and its copy.
    fn copied(folder: &Path) -> PathBuf {
        let shared = Shared::new().unwrap();
        shared.file.set_len(64 << 20).unwrap();
        for (offset, byte) in [(5, 1), (40 << 20, 2), ((64 << 20) - 1, 3)] {
            shared.file.write_all_at(&[byte], offset).unwrap();
        }
        shared.file.write_all_at(&[0; 3 * PAGE], 9 * PAGE as u64).unwrap();
        let copy = folder.join("memory");
        shared.copy(&copy).unwrap();
        copy
    }

    #[test]
    fn a_guest_has_no_more_memory_than_the_host() {
        assert_eq!(host_has_only("1M"), None);
        assert!(host_has_only("1000000G").is_some());
    }

    #[test]
    fn a_copy_has_every_byte_and_only_the_pages_that_are_not_zeros() {
        let folder = tempfile::tempdir().unwrap();
        let copy = copied(folder.path());
        let about = std::fs::metadata(&copy).unwrap();
        assert_eq!(about.len(), 64 << 20);
        assert!(about.blocks() * 512 <= 64 * 1024, "{} blocks", about.blocks());
        let bytes = std::fs::read(&copy).unwrap();
        assert_eq!((bytes[5], bytes[40 << 20], bytes[(64 << 20) - 1]), (1, 2, 3));
        assert_eq!(bytes.iter().filter(|&&byte| byte != 0).count(), 3);
    }

    #[test]
    fn a_byte_that_changes_or_moves_changes_the_sum() {
        let folder = tempfile::tempdir().unwrap();
        let copy = copied(folder.path());
        let first = sum(&copy).unwrap();
        let change = |offset, byte| {
            File::options().write(true).open(&copy).unwrap().write_all_at(&[byte], offset).unwrap();
            sum(&copy).unwrap()
        };
        assert_ne!(change(5, 4), first);
        assert_eq!(change(5, 1), first);
        assert_ne!(change(20 << 20, 1), first);
        assert_eq!(change(20 << 20, 0), first);
        change(5, 0);
        assert_ne!(change(5 + PAGE as u64, 1), first);
    }
}
