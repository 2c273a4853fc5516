//! The kernel's description of its types, BTF (/sys/kernel/btf): the size of one of its structures, for code that
//! depends on it. Documentation/bpf/btf.rst.

use crate::netlink::attribute::{u16_at, u32_at};
use std::{fs, path::Path};

const FOLDER: &str = "/sys/kernel/btf";
/// The kernel without its modules, on which every module's description is based.
const KERNEL: &str = "vmlinux";

const MAGIC: u16 = 0xeb9f;
/// Bytes of `struct btf_type`.
const TYPE_BYTES: usize = 12;
const KIND_STRUCT: u32 = 4;

/// A description: its types, and their names.
struct Description<'a> {
    types: &'a [u8],
    names: &'a [u8],
}

impl<'a> Description<'a> {
    /// From a file, `struct btf_header` first.
    fn new(file: &'a [u8]) -> Option<Self> {
        if u16_at(file, 0)? != MAGIC {
            return None;
        }
        let part = |offset, len| {
            let start = u32_at(file, 4)?.checked_add(u32_at(file, offset)?)? as usize;
            file.get(start..start.checked_add(u32_at(file, len)? as usize)?)
        };
        Some(Self { types: part(8, 12)?, names: part(16, 20)? })
    }

    /// The size of the structure `name` in bytes. A module's types have names of the kernel, `before`, and own ones.
    fn size_of(&self, name: &str, before: &[u8]) -> Option<u32> {
        let mut rest = self.types;
        while !rest.is_empty() {
            let (name_at, info, size) = (u32_at(rest, 0)?, u32_at(rest, 4)?, u32_at(rest, 8)?);
            let kind = info >> 24 & 0x1f;
            if kind == KIND_STRUCT && self.has_name(name_at as usize, before, name) {
                return Some(size);
            }
            rest = rest.get(TYPE_BYTES + details(kind, info as u16)..)?;
        }
        None
    }

    fn has_name(&self, at: usize, before: &[u8], name: &str) -> bool {
        let found = before.get(at..).filter(|rest| !rest.is_empty());
        let found = found.or_else(|| self.names.get(at.checked_sub(before.len())?..)).unwrap_or_default();
        found.split(|byte| *byte == 0).next() == Some(name.as_bytes())
    }
}

/// How many bytes follow a type's first ones, by its kind and the number of its members.
fn details(kind: u32, members: u16) -> usize {
    let members = usize::from(members);
    match kind {
        1 | 14 | 17 => 4,                // INT, VAR, DECL_TAG
        3 => 12,                         // ARRAY
        4 | 5 | 15 | 19 => 12 * members, // STRUCT, UNION, DATASEC, ENUM64
        6 | 13 => 8 * members,           // ENUM, FUNC_PROTO
        _ => 0,
    }
}

/// The size in bytes of a structure of this module, or of the kernel where the module is a part of it. `None`: the
/// kernel has no type information, or not this structure.
pub fn size_of(module: &str, structure: &str) -> Option<u32> {
    let read = |name| fs::read(Path::new(FOLDER).join(name)).ok();
    let kernel = read(KERNEL)?;
    let kernel = Description::new(&kernel)?;
    let module = read(module);
    let of_module = module.as_deref().and_then(Description::new);
    of_module.and_then(|own| own.size_of(structure, kernel.names)).or_else(|| kernel.size_of(structure, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A description with one type before the structure `pair` of 8 bytes with two members; its names begin at `base`.
    fn file(first: [u32; 3], details: usize, base: u32) -> Vec<u8> {
        let names = b"\0pair\0";
        let mut types: Vec<u8> = first.iter().flat_map(|word| word.to_ne_bytes()).collect();
        types.resize(types.len() + details, 0xff);
        types.extend([base + 1, 4 << 24 | 2, 8].iter().flat_map(|word: &u32| word.to_ne_bytes()));
        types.resize(types.len() + 24, 0);
        let mut file = [MAGIC.to_ne_bytes(), [1, 0]].concat();
        for word in [24, 0, types.len() as u32, types.len() as u32, names.len() as u32] {
            file.extend(word.to_ne_bytes());
        }
        [file, types, names.to_vec()].concat()
    }

    #[test]
    fn a_structure_is_found_behind_types_of_every_kind() {
        for (kind, members, details) in [
            (1, 0, 4),
            (2, 0, 0),
            (3, 0, 12),
            (5, 3, 36),
            (6, 3, 24),
            (8, 0, 0),
            (13, 2, 16),
            (14, 0, 4),
            (15, 2, 24),
            (19, 2, 24),
        ] {
            let file = file([0, kind << 24 | members, 4], details, 100);
            let description = Description::new(&file).unwrap();
            assert_eq!(description.size_of("pair", &[0; 100]), Some(8), "{kind}");
            assert_eq!(description.size_of("pai", &[0; 100]), None);
            let before = [&[0; 101][..], b"couple\0"].concat();
            assert_eq!(description.size_of("couple", &before), Some(8), "a name of the kernel's");
        }
    }

    proptest! {
        #[test]
        fn no_description_makes_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..120), header: bool) {
            if header && bytes.len() >= 24 {
                let good = file([0, 0, 0], 0, 0);
                bytes[..24].copy_from_slice(&good[..24]);
            }
            if let Some(description) = Description::new(&bytes) {
                let _ = description.size_of("pair", &[]);
            }
        }
    }
}
