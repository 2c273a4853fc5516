//! The kernel's functions as the analyzer gets them: address, stage, flags and mark of each, from /proc/kallsyms.

use super::stage::{FUNCTIONS, MARKS, MODULES, Stage, VECTOR_BYTES, VECTORS_FROM, VECTORS_OF};
use std::{
    collections::HashMap,
    fmt::{self, Write},
    sync::LazyLock,
};

/// The rows of [`FUNCTIONS`] and [`MARKS`] by name, for 150 000 symbols of a kernel.
struct Rows {
    whole: HashMap<&'static str, usize>,
    starts: Vec<(&'static str, usize)>,
    marks: HashMap<&'static str, usize>,
}

static ROWS: LazyLock<Rows> = LazyLock::new(|| {
    let (mut whole, mut starts) = (HashMap::new(), Vec::new());
    for (row, (pattern, ..)) in FUNCTIONS.iter().enumerate() {
        match pattern.strip_suffix('*') {
            Some(start) => starts.push((start, row)),
            None => _ = whole.entry(*pattern).or_insert(row),
        }
    }
    Rows { whole, starts, marks: MARKS.iter().map(|(name, _)| *name).zip(0..).collect() }
});

/// A function of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub address: u64,
    pub name: String,
    /// The module that has it; empty: the kernel itself.
    pub module: String,
}

impl Symbol {
    /// The function's stage with its flags; `None`: that of its caller.
    fn stage(&self) -> Option<(Stage, u32)> {
        if !self.module.is_empty() {
            return MODULES.iter().find(|(name, _)| *name == self.module).map(|&(_, stage)| (stage, 0));
        }
        let start = ROWS.starts.iter().find(|(start, _)| self.name.starts_with(start)).map(|(_, row)| *row);
        let whole = ROWS.whole.get(self.name.as_str()).copied();
        // The first row that fits.
        let row = start.into_iter().chain(whole).min()?;
        let (_, stage, flags) = FUNCTIONS[row];
        Some((stage, flags))
    }

    /// The number of the function's mark; 0: none.
    fn mark(&self) -> usize {
        ROWS.marks.get(self.name.as_str()).map_or(0, |row| row + 1)
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.module.as_str() {
            "" => f.write_str(&self.name),
            module => write!(f, "{} [{module}]", self.name),
        }
    }
}

/// The functions in the text of /proc/kallsyms, ascending by address, one for each address.
pub fn functions(kallsyms: &str) -> Vec<Symbol> {
    let mut symbols: Vec<Symbol> = kallsyms.lines().filter_map(function).flat_map(parts).collect();
    // Of several names of one address, one with a row.
    let rank = |symbol: &Symbol| (symbol.stage().is_none(), symbol.name.starts_with("__pfx_"));
    symbols.sort_by(|one, other| one.address.cmp(&other.address).then_with(|| rank(one).cmp(&rank(other))));
    symbols.dedup_by_key(|symbol| symbol.address);
    symbols
}

/// A line of /proc/kallsyms: `ffffffff81000000 T _text` or `ffffffffc0000000 t can_rcv\t[can]`.
fn function(line: &str) -> Option<Symbol> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    if address < 1 << 63 || !matches!(words.next()?, "t" | "T" | "w" | "W") {
        return None;
    }
    let name = words.next()?.to_owned();
    let module = words.next().unwrap_or("").trim_matches(['[', ']']).to_owned();
    Some(Symbol { address, name, module })
}

/// A function; of an arm64 kernel's vectors, each.
fn parts(symbol: Symbol) -> Vec<Symbol> {
    if symbol.name != "vectors" || !symbol.module.is_empty() {
        return vec![symbol];
    }
    let names = VECTORS_FROM.iter().flat_map(|from| VECTORS_OF.map(|of| format!("vectors:{from}_{of}")));
    let address = |number| symbol.address + number * VECTOR_BYTES;
    (0..)
        .zip(names)
        .map(|(number, name)| Symbol { address: address(number), name, module: String::new() })
        .collect()
}

/// The lines of a request that describe these functions, with their marks when these are wanted.
pub fn request(symbols: &[Symbol], marks: bool) -> String {
    let mut text = String::new();
    for symbol in symbols {
        let (stage, flags) = symbol.stage().map_or((0, 0), |(stage, flags)| (stage as u32, flags));
        let mark = if marks { symbol.mark() } else { 0 };
        let _ = writeln!(text, "f {:x} {stage} {flags} {mark}", symbol.address);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "\
ffffffff81000000 T _text
ffffffff81000000 T startup
ffffffff81000200 t asm_exc_page_fault
ffffffff81000100 T asm_common_interrupt
ffffffff81000300 t tasklet_hi_action
ffffffff82000000 D data
0000000000001000 A absolute
ffffffffc0000100 t sja1000_start_xmit\t[sja1000]
ffffffffc0000000 T can_send\t[can]
";

    #[test]
    fn each_vector_of_an_arm64_kernel_is_a_function() {
        let symbols = functions("ffff800080010800 T vectors\nffff800080011080 t el1t_64_sync\n");
        let found: Vec<_> = symbols.iter().map(|symbol| (symbol.address, symbol.name.as_str())).collect();
        assert_eq!(found.len(), 17);
        assert_eq!(found[5], (0xffff_8000_8001_0a80, "vectors:el1h_64_irq"));
        assert_eq!(found[16], (0xffff_8000_8001_1080, "el1t_64_sync"));
        assert!(request(&symbols, false).contains("f ffff800080010a80 1 33 0\n")); // aside, an entry
    }

    #[test]
    fn functions_get_the_stage_of_their_row_or_their_module() {
        let symbols = functions(KALLSYMS);
        let stages: Vec<_> = symbols.iter().map(|symbol| symbol.stage().map(|(stage, _)| stage)).collect();
        assert_eq!(
            stages,
            [
                None,
                Some(Stage::Interrupt),
                Some(Stage::SystemCall),
                Some(Stage::SoftInterrupt),
                Some(Stage::CanCore),
                Some(Stage::Driver)
            ]
        );
        assert!(request(&symbols, false).ends_with("f ffffffffc0000100 2 0 0\n"));
        let request = request(&symbols, true);
        assert!(request.contains("f ffffffff81000200 7 104 0\n"), "{request}");
        assert!(request.ends_with("f ffffffffc0000100 2 0 1\n"), "{request}");
    }
}
