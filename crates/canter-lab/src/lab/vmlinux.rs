//! The uncompressed kernel inside a bzImage. QEMU starts it through PVH: no decompression in the guest (1.1 s), no
//! KASLR. Layout: Documentation/arch/x86/boot.rst, fields setup_sects, payload_offset and payload_length.

use super::lab_failure;
use canter_cli::failure::Result;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

const SETUP_SECTS: usize = 0x1f1;
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24c;
const SECTOR_BYTES: usize = 512;
/// The length of the uncompressed size after the payload, which some decompressors report as garbage.
const SIZE_BYTES: usize = 4;

/// Writes the ELF image inside `bzimage` to `vmlinux`.
pub fn extract(bzimage: &Path, vmlinux: &Path) -> Result<()> {
    let wrong = |reason: &str| lab_failure(format!("{}: {reason}", bzimage.display()));
    let image = fs::read(bzimage).map_err(|e| wrong(&e.to_string()))?;
    let payload = payload(&image).ok_or_else(|| wrong("not a bzImage with a payload"))?;
    let tool = tool(payload).ok_or_else(|| wrong("unknown compression (supported: zstd, xz, lz4, gzip)"))?;
    let packed = vmlinux.with_extension("packed");
    let mut done = false;
    for end in [payload.len(), payload.len().saturating_sub(SIZE_BYTES)] {
        fs::write(&packed, &payload[..end]).map_err(|e| wrong(&format!("{}: {e}", packed.display())))?;
        done = unpack(tool, &packed, vmlinux).map_err(|e| wrong(&format!("{tool}: {e}")))?;
        if done {
            break;
        }
    }
    let _ = fs::remove_file(&packed);
    if done { Ok(()) } else { Err(wrong(&format!("{tool}: the unpacked payload is no ELF file"))) }
}

/// Runs the tool; true when the output is a complete ELF file.
fn unpack(tool: &str, packed: &Path, to: &Path) -> std::io::Result<bool> {
    let status = Command::new(tool)
        .arg("-dcq")
        .stdin(File::open(packed)?)
        .stdout(File::create(to)?)
        .stderr(Stdio::null())
        .status()?;
    let mut magic = [0; 4];
    let read = std::io::Read::read(&mut File::open(to)?, &mut magic)?;
    Ok(status.success() && read == 4 && magic == *b"\x7fELF")
}

fn payload(image: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| {
        let field: [u8; 4] = image.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(field) as usize)
    };
    let sectors = match *image.get(SETUP_SECTS)? {
        0 => 4, // boot.rst: "if the setup_sects field contains 0, the real value is 4"
        sectors => usize::from(sectors),
    };
    let start = (sectors + 1) * SECTOR_BYTES + word(PAYLOAD_OFFSET)?;
    image.get(start..start + word(PAYLOAD_LENGTH)?)
}

fn tool(payload: &[u8]) -> Option<&'static str> {
    let magics: [(&[u8], &str); 4] = [
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"\xfd7zXZ", "xz"),
        (b"\x02\x21\x4c\x18", "lz4"),
        (b"\x1f\x8b", "gzip"),
    ];
    magics.iter().find(|(magic, _)| payload.starts_with(magic)).map(|(_, tool)| *tool)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn bzimage(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 2 * SECTOR_BYTES];
        image[SETUP_SECTS] = 1;
        image[PAYLOAD_OFFSET..PAYLOAD_OFFSET + 4].copy_from_slice(&16_u32.to_le_bytes());
        image[PAYLOAD_LENGTH..PAYLOAD_LENGTH + 4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        image.extend_from_slice(&[0; 16]);
        image.extend_from_slice(payload);
        image
    }

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut child =
            Command::new("gzip").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(content).unwrap();
        child.wait_with_output().unwrap().stdout
    }

    #[test]
    fn the_kernel_comes_out_whole_although_its_size_follows_it() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("bzImage"), folder.path().join("vmlinux"));
        let mut packed = gzip(b"\x7fELF and the rest");
        packed.extend_from_slice(&16_u32.to_le_bytes());
        fs::write(&from, bzimage(&packed)).unwrap();
        extract(&from, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"\x7fELF and the rest");
    }

    #[test]
    fn a_file_that_is_no_kernel_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("bzImage");
        for content in [&b""[..], b"text", &bzimage(b"unknown")] {
            fs::write(&from, content).unwrap();
            let failure = extract(&from, &folder.path().join("vmlinux")).unwrap_err();
            assert!(failure.message.contains("bzImage"), "{}", failure.message);
        }
    }
}
