//! kernel/uapi/canwire.h: the generic netlink family and the analyzer's ring of the virtual wire. The structures give
//! sizes and offsets; messages and records are read as bytes.

pub const CANWIRE_GENL_NAME: &str = "canwire";
pub const CANWIRE_GENL_VERSION: u8 = 1;

pub const CANWIRE_BUS_NAME_SIZE: usize = 16;
pub const CANWIRE_SLOT_SOURCE: u8 = 255;

pub const CANWIRE_CMD_NODE_ADD: u8 = 1;
pub const CANWIRE_CMD_NODE_DELETE: u8 = 2;
pub const CANWIRE_CMD_NODE_GET: u8 = 3;
pub const CANWIRE_CMD_BUS_GET: u8 = 4;
pub const CANWIRE_CMD_BUS_SET: u8 = 5;
pub const CANWIRE_CMD_CONNECT: u8 = 6;
pub const CANWIRE_CMD_BABBLE: u8 = 7;
pub const CANWIRE_CMD_INJECT: u8 = 8;
pub const CANWIRE_CMD_SOURCE_LOAD: u8 = 9;
pub const CANWIRE_CMD_SOURCE_START: u8 = 10;
pub const CANWIRE_CMD_SOURCE_STOP: u8 = 11;

pub const CANWIRE_A_NODE: u16 = 1;
pub const CANWIRE_A_BUS: u16 = 2;
pub const CANWIRE_A_IFINDEX: u16 = 3;
pub const CANWIRE_A_SLOT: u16 = 4;
pub const CANWIRE_A_FIFO_BYTES: u16 = 5;
pub const CANWIRE_A_FIFO_FRAMES: u16 = 6;
pub const CANWIRE_A_TX_BUFFERS: u16 = 7;
pub const CANWIRE_A_FD_TOLERANT: u16 = 8;
pub const CANWIRE_A_CONNECTED: u16 = 9;
pub const CANWIRE_A_NAPI_ID: u16 = 10;
pub const CANWIRE_A_NODE_STATS: u16 = 11;
pub const CANWIRE_A_NODES: u16 = 12;
pub const CANWIRE_A_SLIP_NS: u16 = 13;
pub const CANWIRE_A_BITRATE: u16 = 14;
pub const CANWIRE_A_DATA_BITRATE: u16 = 15;
pub const CANWIRE_A_BUS_STATS: u16 = 16;
pub const CANWIRE_A_SOURCE_STATS: u16 = 17;
pub const CANWIRE_A_TAP_SIZE: u16 = 18;
pub const CANWIRE_A_ERROR: u16 = 19;
pub const CANWIRE_A_PROBABILITY: u16 = 20;
pub const CANWIRE_A_COUNT: u16 = 21;
pub const CANWIRE_A_FRAME: u16 = 22;
pub const CANWIRE_A_SCHEDULE: u16 = 23;
pub const CANWIRE_A_RESET: u16 = 24;
pub const CANWIRE_A_PERIOD_NS: u16 = 25;
pub const CANWIRE_A_LOAD: u16 = 26;
pub const CANWIRE_A_JITTER_NS: u16 = 27;
pub const CANWIRE_A_BURST: u16 = 28;
pub const CANWIRE_A_SOURCE_FLAGS: u16 = 29;
pub const CANWIRE_A_SEED: u16 = 30;
pub const CANWIRE_A_START_NS: u16 = 31;
pub const CANWIRE_A_CLOCK_DRIFT: u16 = 33;

pub const CANWIRE_SCHEDULE_MAX: usize = 1_000_000;
/// Entries that one message carries at most.
pub const CANWIRE_SCHEDULE_MESSAGE_MAX: usize = 800;

pub const CANWIRE_SOURCE_NUMBER: u32 = 0x01;
pub const CANWIRE_SOURCE_RANDOM_ID: u32 = 0x02;
pub const CANWIRE_SOURCE_RANDOM_FORMAT: u32 = 0x04;
pub const CANWIRE_SOURCE_RANDOM_LEN: u32 = 0x08;
pub const CANWIRE_SOURCE_RANDOM_DATA: u32 = 0x10;
pub const CANWIRE_SOURCE_SCHEDULE: u32 = 0x20;

pub const CANWIRE_MARK_SOURCE: u8 = 0x01;
pub const CANWIRE_MARK_INJECTED: u8 = 0x02;
pub const CANWIRE_MARK_SLIPPED: u8 = 0x04;
pub const CANWIRE_MARK_BABBLE: u8 = 0x08;
pub const CANWIRE_MARK_PASSIVE: u8 = 0x10;

/// "WTAP" read as bytes.
pub const CANWIRE_RING_MAGIC: u32 = 0x5041_5457;

#[allow(non_camel_case_types)]
#[repr(C)]
pub struct canwire_schedule_entry {
    pub at_ns: u64,
    pub frame: libc::canfd_frame,
}

#[allow(non_camel_case_types)]
#[repr(C)]
pub struct canwire_record {
    pub sof_ns: u64,
    pub end_ns: u64,
    pub pending: u64,
    pub received: u64,
    pub overrun: u64,
    pub id: u32,
    pub sender: u32,
    pub late_ns: u32,
    pub nominal_bits: u16,
    pub data_bits: u16,
    pub len: u8,
    pub dlc: u8,
    pub flags: u8,
    pub error: u8,
    pub error_bit: u16,
    pub slot: u8,
    pub marks: u8,
    pub data: [u8; 64],
}

#[allow(non_camel_case_types)]
#[repr(C)]
pub struct canwire_ring {
    pub magic: u32,
    pub version: u16,
    pub record_size: u16,
    pub record_offset: u32,
    pub records: u32,
    pub bus: [u8; CANWIRE_BUS_NAME_SIZE],
    pub reserved: [u8; 32],
    pub head: u64,
    pub reserved2: [u64; 7],
    pub stats: [u64; 12],
}

// The same numbers as in kernel/uapi/canwire.h.
const _: () = assert!(size_of::<libc::canfd_frame>() == 72 && size_of::<canwire_schedule_entry>() == 80);
const _: () = assert!(size_of::<canwire_record>() == 128 && size_of::<canwire_ring>() == 224);
const _: () = assert!(std::mem::offset_of!(canwire_record, id) == 40);
const _: () = assert!(std::mem::offset_of!(canwire_record, error_bit) == 60);
const _: () = assert!(std::mem::offset_of!(canwire_record, data) == 64);
const _: () = assert!(std::mem::offset_of!(canwire_ring, head) == 64);
const _: () = assert!(std::mem::offset_of!(canwire_ring, stats) == 128);

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    /// `NAME value` of every line that defines one, in C or in Rust.
    fn constants(text: &str) -> BTreeMap<&str, u64> {
        text.lines()
            .filter_map(|line| {
                let line = line.trim().trim_start_matches("#define").trim_start_matches("pub const").trim();
                let name = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next()?;
                let value = line[name.len()..].trim_start_matches(|c| c != '=' && c != '\t');
                let value =
                    value.trim_matches(|c: char| c == '=' || c == ';' || c == ',' || c.is_whitespace());
                let value = value.split([' ', ',']).next()?.replace('_', "");
                let number = match value.strip_prefix("0x") {
                    Some(digits) => u64::from_str_radix(digits, 16).ok()?,
                    None => value.parse().ok()?,
                };
                name.starts_with("CANWIRE_").then_some((name, number))
            })
            .collect()
    }

    #[test]
    fn every_number_here_is_that_of_the_kernel_s_header() {
        let theirs = constants(include_str!("../../../../kernel/uapi/canwire.h"));
        let ours = constants(include_str!("canwire.rs"));
        assert!(ours.len() > 50, "{ours:?}");
        for (name, number) in &ours {
            if *name != "CANWIRE_SCHEDULE_MESSAGE_MAX" {
                assert_eq!(theirs.get(name), Some(number), "{name}");
            }
        }
        let missing =
            theirs.keys().copied().filter(|name| name.starts_with("CANWIRE_A_") && !ours.contains_key(name));
        assert_eq!(missing.collect::<Vec<_>>(), ["CANWIRE_A_PAD", "CANWIRE_A_UNSPEC"]);
    }

    /// The names of a list in the family's description, in order: `name:` at this depth, between two lines.
    fn listed(text: &str, from: &str, to: &str, indent: &str) -> Vec<String> {
        let begin = text.find(from).unwrap();
        let end = text[begin..].find(to).map_or(text.len(), |at| begin + at);
        let names =
            text[begin..end].lines().filter_map(|line| line.strip_prefix(indent)?.strip_prefix("name: "));
        names.map(|name| name.to_uppercase().replace('-', "_")).collect()
    }

    /// `entries: [ a, b ]` of a definition.
    fn entries<'a>(text: &'a str, definition: &str) -> Vec<&'a str> {
        let after = &text[text.find(definition).unwrap()..];
        let line = after.lines().find_map(|line| line.trim().strip_prefix("entries: [ ")).unwrap();
        line.trim_end_matches(" ]").split(", ").collect()
    }

    #[test]
    fn every_number_of_the_description_for_ynl_is_that_of_the_header() {
        let theirs = constants(include_str!("../../../../kernel/uapi/canwire.h"));
        let text = include_str!("../../../../kernel/uapi/canwire.yaml");
        let attributes = listed(text, "attribute-sets:", "operations:", "        ");
        let commands = listed(text, "operations:", "the end of the file", "      ");
        for (prefix, names) in [("CANWIRE_A_", attributes), ("CANWIRE_CMD_", commands)] {
            // They count from 1; the header has one without a name, 0.
            let header_names =
                theirs.keys().filter(|name| name.starts_with(prefix) && !name.ends_with("_UNSPEC"));
            assert_eq!(header_names.count(), names.len(), "{prefix}");
            for (number, name) in (1..).zip(&names) {
                assert_eq!(theirs.get(format!("{prefix}{name}").as_str()), Some(&number), "{name}");
            }
        }
        for (number, name) in (0..).zip(entries(text, "name: error\n")) {
            let name = format!("CANWIRE_ERROR_{}", name.to_uppercase());
            assert_eq!(theirs.get(name.as_str()), Some(&number), "{name}");
        }
        for (bit, name) in entries(text, "name: source-flags\n").iter().enumerate() {
            let name = format!("CANWIRE_SOURCE_{}", name.to_uppercase().replace('-', "_"));
            assert_eq!(theirs.get(name.as_str()), Some(&(1 << bit)), "{name}");
        }
    }
}
