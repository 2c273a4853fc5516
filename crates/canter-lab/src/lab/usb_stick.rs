//! The lab's USB stick: an image of 64 MiB in the folder of one run, with an empty FAT16 file system, as sticks are sold.
//! It has the same bytes in every run, so a machine that was saved after it had read some of them is restored beside a
//! new one. The guest tells it from all other disks by its serial number.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

/// The serial number that the stick reports on its bus. An image of other bytes needs another one: it is in QEMU's arguments,
/// which tell saved machines apart.
pub const SERIAL: &str = "canter-lab-stick";

/// The modules by which the guest has the stick as a disk.
pub const MODULES: &[&str] = &["xhci-pci", "usb-storage", "sd_mod"];

/// The disk that these modules make: the machine has no other of theirs.
pub const DISK: &str = "/sys/block/sda";

const SECTOR_BYTES: u16 = 512;
const SECTORS: u32 = 131_072;
const SECTORS_PER_CLUSTER: u8 = 4;
/// The sectors of each of the two tables: two bytes for each of the 32 695 clusters and for two more entries.
const TABLE_SECTORS: u16 = 128;
const TABLES: u8 = 2;
const ROOT_ENTRIES: u16 = 512;
/// A disk that is not removed, in the first sector and in the first entry of the tables.
const MEDIA: u8 = 0xf8;

/// Makes the image of a new stick. What nobody has written takes no space.
pub fn make(path: &Path) -> io::Result<()> {
    let image = File::create_new(path)?;
    image.set_len(u64::from(SECTORS) * u64::from(SECTOR_BYTES))?;
    image.write_all_at(&first_sector(), 0)?;
    // The first two entries belong to no cluster.
    for table in 0..u64::from(TABLES) {
        let at = (1 + table * u64::from(TABLE_SECTORS)) * u64::from(SECTOR_BYTES);
        image.write_all_at(&[MEDIA, 0xff, 0xff, 0xff], at)?;
    }
    Ok(())
}

/// The first sector, by Microsoft's "FAT32 File System Specification", the tables of BS_ and BPB_ for FAT16.
fn first_sector() -> [u8; 512] {
    let mut sector = [0; 512];
    let mut put = |at: usize, bytes: &[u8]| sector[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &[0xeb, 0x3c, 0x90]);
    put(3, b"CANTER  ");
    put(11, &SECTOR_BYTES.to_le_bytes());
    put(13, &[SECTORS_PER_CLUSTER]);
    put(14, &1_u16.to_le_bytes()); // sectors before the tables: this one
    put(16, &[TABLES]);
    put(17, &ROOT_ENTRIES.to_le_bytes());
    put(21, &[MEDIA]);
    put(22, &TABLE_SECTORS.to_le_bytes());
    put(32, &SECTORS.to_le_bytes());
    put(36, &[0x80, 0, 0x29]);
    put(39, b"CANT");
    put(43, b"CANTER LAB ");
    put(54, b"FAT16   ");
    put(510, &[0x55, 0xaa]);
    sector
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::MetadataExt};

    #[test]
    fn every_stick_has_the_same_bytes_and_takes_little_space() {
        let folder = tempfile::tempdir().unwrap();
        let images = ["one", "two"].map(|name| {
            let path = folder.path().join(name);
            make(&path).unwrap();
            path
        });
        let about = fs::metadata(&images[0]).unwrap();
        assert_eq!(about.len(), 64 << 20);
        assert!(about.blocks() * 512 < 1 << 20, "{} blocks", about.blocks());
        let [one, two] = images.map(|path| fs::read(path).unwrap());
        assert!(one == two);
    }

    #[test]
    fn the_tables_have_an_entry_for_every_cluster() {
        let root_sectors = u32::from(ROOT_ENTRIES) * 32 / u32::from(SECTOR_BYTES);
        let data = SECTORS - 1 - u32::from(TABLES) * u32::from(TABLE_SECTORS) - root_sectors;
        let clusters = data / u32::from(SECTORS_PER_CLUSTER);
        assert_eq!(clusters, 32_695);
        assert!((4085..65525).contains(&clusters), "other numbers are FAT12 and FAT32");
        assert!((clusters + 2) * 2 <= u32::from(TABLE_SECTORS) * u32::from(SECTOR_BYTES));
    }
}
