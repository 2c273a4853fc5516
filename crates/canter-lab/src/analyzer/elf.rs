//! The functions of a program or library: its symbol tables, with addresses as offsets in the file.
//! The format: elf(5).

const SYMBOLS: u64 = 2; // SHT_SYMTAB
const DYNAMIC_SYMBOLS: u64 = 11; // SHT_DYNSYM
const LOADED: u64 = 1; // PT_LOAD
const FUNCTION: u8 = 2; // STT_FUNC
const HEADER: usize = 64;
const SEGMENT: usize = 56;
const SYMBOL: usize = 24;

/// Functions, ascending by their offsets in the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Functions(Vec<Function>);

#[derive(Debug, PartialEq, Eq)]
struct Function {
    offset: u64,
    size: u64,
    name: String,
}

impl Functions {
    /// The functions of a 64-bit little-endian file; none when it is another one, is damaged, or has no symbols.
    pub fn read(bytes: &[u8]) -> Self {
        let mut functions = Elf(bytes).functions().unwrap_or_default();
        functions.sort_by_key(|function| (function.offset, std::cmp::Reverse(function.size)));
        functions.dedup_by_key(|function| function.offset);
        Self(functions)
    }

    /// The function at an offset in the file.
    pub fn at(&self, offset: u64) -> Option<&str> {
        let after = self.0.partition_point(|function| function.offset <= offset);
        let function = self.0.get(after.checked_sub(1)?)?;
        (offset - function.offset < function.size.max(1)).then_some(function.name.as_str())
    }
}

struct Elf<'a>(&'a [u8]);

impl Elf<'_> {
    fn number(&self, at: usize, width: usize) -> Option<u64> {
        let field = self.0.get(at..at.checked_add(width)?)?;
        Some(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn place(&self, at: usize, width: usize) -> Option<usize> {
        usize::try_from(self.number(at, width)?).ok()
    }

    /// Where an entry of a table begins; `None` unless the file has the whole entry.
    fn entry(&self, table: usize, number: usize, bytes: usize) -> Option<usize> {
        let at = table.checked_add(number.checked_mul(bytes)?)?;
        (at.checked_add(bytes)? <= self.0.len()).then_some(at)
    }

    fn functions(&self) -> Option<Vec<Function>> {
        if !self.0.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let (first, count) = (self.place(0x28, 8)?, self.place(0x3c, 2)?);
        let section = |number: usize| self.entry(first, number, HEADER);
        let mut functions = Vec::new();
        for number in 0..count {
            let at = section(number)?;
            if ![SYMBOLS, DYNAMIC_SYMBOLS].contains(&self.number(at + 4, 4)?) {
                continue;
            }
            let (table, bytes) = (self.place(at + 0x18, 8)?, self.place(at + 0x20, 8)?);
            let names = self.place(section(self.place(at + 0x28, 4)?)? + 0x18, 8)?;
            let places = (0..bytes / SYMBOL).map_while(|symbol| self.entry(table, symbol, SYMBOL));
            functions.extend(places.filter_map(|at| self.symbol(at, names)));
        }
        Some(functions)
    }

    fn symbol(&self, at: usize, names: usize) -> Option<Function> {
        let (kind, address) = (self.number(at + 4, 1)? as u8 & 0xf, self.number(at + 8, 8)?);
        if kind != FUNCTION || address == 0 {
            return None;
        }
        let name = self.0.get(names.checked_add(self.place(at, 4)?)?..)?;
        let name = &name[..name.iter().position(|byte| *byte == 0)?];
        let (offset, size) = (self.file_offset(address)?, self.number(at + 16, 8)?);
        Some(Function { offset, size, name: String::from_utf8_lossy(name).into_owned() })
    }

    /// The offset in the file of what is loaded at this address.
    fn file_offset(&self, address: u64) -> Option<u64> {
        let (first, count) = (self.place(0x20, 8)?, self.place(0x38, 2)?);
        (0..count).find_map(|number| {
            let at = self.entry(first, number, SEGMENT)?;
            let (offset, start) = (self.number(at + 8, 8)?, self.number(at + 16, 8)?);
            let within =
                address.checked_sub(start).filter(|within| *within < self.number(at + 32, 8).unwrap_or(0));
            within.filter(|_| self.number(at, 4) == Some(LOADED))?.checked_add(offset)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_this_test_at_its_place() {
        let path = std::env::current_exe().unwrap();
        let functions = Functions::read(&std::fs::read(&path).unwrap());
        let here = Functions::read as *const () as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mapped = maps.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            let (start, end) = words.next()?.split_once('-')?;
            let [start, end, offset] =
                [start, end, words.nth(1)?].map(|text| u64::from_str_radix(text, 16).ok());
            (start?..end?).contains(&here).then_some(here - start? + offset?)
        });
        let name = functions.at(mapped.unwrap()).unwrap();
        assert!(name.contains("Functions") && name.contains("read"), "{name}");
    }

    #[test]
    fn a_damaged_file_has_no_functions_and_does_no_harm() {
        let whole = std::fs::read("/proc/self/exe").unwrap();
        for length in [0, 6, 63, 64, 1000] {
            Functions::read(&whole[..length.min(whole.len())]);
        }
        let mut wild = whole[..4096].to_vec();
        wild[0x28..0x30].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(Functions::read(&wild), Functions::default());
        assert_eq!(Functions::read(b"no program"), Functions::default());
    }
}
