//! Writes a cpio archive ("newc"), the form of initramfs that every kernel unpacks, so that the lab needs no cpio
//! program. Format: Documentation/driver-api/early-userspace/buffer-format.rst.

/// The content of an initramfs: folders before their files.
pub struct Archive {
    bytes: Vec<u8>,
    inode: u32,
}

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const TRAILER: &str = "TRAILER!!!";

impl Archive {
    pub fn new() -> Self {
        Self { bytes: Vec::new(), inode: 0 }
    }

    pub fn folder(&mut self, name: &str) {
        self.entry(name, FOLDER, &[]);
    }

    /// Adds a file. Every file is executable: init and busybox must be, and for the others it does no harm.
    pub fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, PROGRAM, content);
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.entry(TRAILER, 0, &[]);
        self.bytes
    }

    /// Adds a header of a magic and 13 fields of eight hexadecimal digits; name and content end on multiples of four.
    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.inode += 1;
        let size = u32::try_from(content.len()).expect("a file of an initramfs is below 4 GiB");
        let links = if mode == FOLDER { 2 } else { 1 };
        let name_size = name.len() as u32 + 1;
        let fields = [self.inode, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn an_entry_is_a_header_a_name_and_a_padded_content() {
        let mut archive = Archive::new();
        archive.folder("bin");
        let folder = archive.bytes.len();
        assert_eq!(folder, (110 + 4_usize).next_multiple_of(4));
        archive.file("bin/x", b"hello");
        let file = &archive.bytes[folder..];
        assert!(file.starts_with(b"070701"));
        assert_eq!(&file[6 + 8..6 + 16], b"000081ED", "a regular file, rwxr-xr-x");
        assert_eq!(&file[6 + 6 * 8..6 + 7 * 8], b"00000005", "its size");
        assert_eq!(&file[110..116], b"bin/x\0");
        assert_eq!(&file[116..], b"hello\0\0\0");
        let whole = archive.finish();
        assert!(whole.len().is_multiple_of(4));
        assert!(whole.windows(11).any(|w| w == b"TRAILER!!!\0"));
    }

    #[test]
    fn cpio_reads_it_back() {
        let mut archive = Archive::new();
        archive.folder("a");
        archive.file("a/b", b"content");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.cpio");
        std::fs::write(&path, archive.finish()).unwrap();
        let input = std::fs::File::open(&path).unwrap();
        match std::process::Command::new("cpio")
            .args(["-i", "--to-stdout", "--quiet", "a/b"])
            .stdin(input)
            .output()
        {
            Ok(output) => assert_eq!(output.stdout, b"content"),
            // Past the test harness, for xtask/src/count.rs.
            Err(error) => {
                let report = format!("SKIP cpio reads an archive: {error}\n");
                std::io::stderr().write_all(report.as_bytes()).unwrap();
            }
        }
    }
}
