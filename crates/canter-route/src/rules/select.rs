//! The notation of filters in rule files: candump's `ID:MASK` and `ID~MASK`, and short notations.
//!
//! | text | passes |
//! | --- | --- |
//! | `123`, `12345678` | the data frames of this identifier, standard (3 digits) or extended (8) |
//! | `123#R` | its remote requests |
//! | `200-2FF`, `18DA0000-18DAFFFF` | the data frames of these identifiers |
//! | `~123` | every frame but the data frames of this identifier |
//! | `123:7FF`, `123~7FF` | as with candump: frames that match, frames that do not |
//!
//! Each becomes masks, which can-gw and the engine evaluate alike.

use canter_io::{
    Filter,
    filter::INVERSE,
    frame::{EFF_FLAG, EFF_MASK, RTR_FLAG, SFF_MASK},
};

/// The mask bits that distinguish data from remote frames and standard from extended identifiers.
const FORMAT: u32 = EFF_FLAG | RTR_FLAG;

/// Reads one filter; a range becomes several masks that have no frame in common.
pub fn parse(text: &str) -> Result<Vec<Filter>, String> {
    if text.contains(':') || text.split_once('~').is_some_and(|(before, _)| !before.is_empty()) {
        return text.parse().map(|filter| vec![filter]).map_err(|error| format!("{text:?}: {error}"));
    }
    if let Some((first, last)) = text.split_once('-') {
        let ((first, width), (last, other)) = (identifier(first)?, identifier(last)?);
        if width != other {
            return Err(format!("{text:?}: one end is a standard identifier and the other an extended one"));
        }
        if first > last {
            return Err(format!("{text:?}: the first identifier is above the last"));
        }
        return Ok(range(first, last));
    }
    let (inverse, plain) = text.strip_prefix('~').map_or((0, text), |plain| (INVERSE, plain));
    let (plain, remote) = match plain.strip_suffix("#R").or_else(|| plain.strip_suffix("#r")) {
        Some(plain) => (plain, RTR_FLAG),
        None => (plain, 0),
    };
    let (id, width) = identifier(plain)?;
    Ok(vec![Filter { id: id | remote | inverse, mask: width | FORMAT }])
}

/// An identifier with its EFF flag, and the mask of its width.
pub fn identifier(text: &str) -> Result<(u32, u32), String> {
    let error =
        || format!("{text:?} is not an identifier of 3 (000…7FF) or 8 (00000000…1FFFFFFF) hex digits");
    let number = u32::from_str_radix(text, 16).map_err(|_| error())?;
    match (text.len(), number) {
        (3, 0..=SFF_MASK) if !text.starts_with('+') => Ok((number, SFF_MASK)),
        (8, 0..=EFF_MASK) if !text.starts_with('+') => Ok((number | EFF_FLAG, EFF_MASK)),
        _ => Err(error()),
    }
}

/// Data frames of `first`…`last`, as the fewest aligned blocks.
fn range(first: u32, last: u32) -> Vec<Filter> {
    let width = if first & EFF_FLAG == 0 { SFF_MASK } else { EFF_MASK };
    let (mut at, last) = (u64::from(first & width), u64::from(last & width));
    let mut blocks = Vec::new();
    while at <= last {
        let mut size = if at == 0 { u64::from(width) + 1 } else { 1 << at.trailing_zeros() };
        while at + size - 1 > last {
            size /= 2;
        }
        let mask = width & !(size as u32 - 1);
        blocks.push(Filter { id: at as u32 | first & EFF_FLAG, mask: mask | FORMAT });
        at += size;
    }
    blocks
}

/// A filter in the shortest notation that [`parse`] reads as the same.
pub fn show(filter: &Filter) -> String {
    let Filter { id, mask } = *filter;
    let inverse = if id & INVERSE != 0 { "~" } else { "" };
    let remote = if id & RTR_FLAG != 0 { "#R" } else { "" };
    let plain = id & !(INVERSE | RTR_FLAG);
    if mask == SFF_MASK | FORMAT && plain <= SFF_MASK {
        return format!("{inverse}{plain:03X}{remote}");
    }
    if mask == EFF_MASK | FORMAT && plain & EFF_FLAG != 0 && plain & !(EFF_FLAG | EFF_MASK) == 0 {
        return format!("{inverse}{:08X}{remote}", plain & EFF_MASK);
    }
    filter.to_string()
}

/// Whether no frame matches both filters; false for inverse filters, which share frames with nearly every other.
pub fn disjoint(a: &Filter, b: &Filter) -> bool {
    let common = effective_mask(a) & effective_mask(b);
    a.id & INVERSE == 0 && b.id & INVERSE == 0 && (a.id ^ b.id) & common != 0
}

/// A standard filter drops mask bits that standard frames do not have, as the kernel does.
pub fn effective_mask(filter: &Filter) -> u32 {
    if filter.mask & EFF_FLAG != 0 && filter.id & EFF_FLAG == 0 {
        filter.mask & (SFF_MASK | FORMAT)
    } else {
        filter.mask & (EFF_MASK | FORMAT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_io::Frame;
    use proptest::prelude::*;

    fn passes(text: &str, frame: &str) -> bool {
        let frame: Frame = frame.parse().unwrap();
        parse(text).unwrap().iter().any(|filter| filter.matches(&frame))
    }

    #[test]
    fn each_notation_passes_its_frames() {
        for (filter, frame, wanted) in [
            ("123", "123#11", true),
            ("123", "123#R", false),
            ("123", "00000123#", false),
            ("123#R", "123#R4", true),
            ("123#R", "123#", false),
            ("12345678", "12345678#", true),
            ("~123", "123#", false),
            ("~123", "123#R", true),
            ("~123", "00000123#", true),
            ("200-2FF", "1FF#", false),
            ("200-2FF", "200#", true),
            ("200-2FF", "2FF#", true),
            ("200-2FF", "300#", false),
            ("200-2FF", "200##0", true),
            ("000-7FF", "7FF#", true),
            ("00000000-1FFFFFFF", "1FFFFFFF#", true),
            ("00000000-1FFFFFFF", "7FF#", false),
            ("123:7FF", "00000123#R", true),
            ("123~7FF", "00000123#", false),
        ] {
            assert_eq!(passes(filter, frame), wanted, "{filter} {frame}");
        }
        for text in
            ["", "12", "800", "20000000", "123-00000124", "124-123", "123-", "xyz", "123:", "+12", "~"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_range_passes_exactly_its_identifiers_and_each_once(a in 0u32..0x800, b in 0u32..0x800, extended: bool) {
            let (first, last) = (a.min(b), a.max(b));
            let width = if extended { 8 } else { 3 };
            let filters = parse(&format!("{first:0width$X}-{last:0width$X}")).unwrap();
            prop_assert!(filters.len() <= 20);
            for id in 0..0x800 {
                let frame: Frame = format!("{id:0width$X}#").parse().unwrap();
                let hits = filters.iter().filter(|filter| filter.matches(&frame)).count();
                prop_assert_eq!(hits, usize::from((first..=last).contains(&id)));
            }
        }

        #[test]
        fn a_shown_filter_is_read_as_the_same_filter(id in 0u32..0x8000_0000, mask: u32, exact: bool, extended: bool) {
            let id = if extended { id & EFF_MASK | EFF_FLAG | id & (INVERSE | RTR_FLAG) } else { id & 0x0fff_ffff };
            let mask = if exact { FORMAT | if extended { EFF_MASK } else { SFF_MASK } } else { mask & !INVERSE };
            let filter = Filter { id, mask };
            prop_assert_eq!(parse(&show(&filter)).unwrap(), vec![filter], "{}", show(&filter));
        }

        #[test]
        fn filters_called_disjoint_have_no_frame_in_common(a in 0u32..0x10, b in 0u32..0x10, m in 0u32..0x10, n in 0u32..0x10) {
            let (a, b) = (Filter { id: a, mask: m }, Filter { id: b, mask: n });
            let common = (0..0x10).any(|id| {
                let frame: Frame = format!("{id:03X}#").parse().unwrap();
                a.matches(&frame) && b.matches(&frame)
            });
            prop_assert_eq!(disjoint(&a, &b), !common);
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,20}") {
            let _ = parse(&text);
        }
    }
}
