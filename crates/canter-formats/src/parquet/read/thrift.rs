//! Walks a structure of Thrift's compact protocol before the `parquet` crate reads it. The crate reads a field that it knows
//! as what it should be, whatever the file says that it is, and skips a list of truth values without taking a byte for each: six
//! bytes keep it busy two billion times. So here each known field must be what it should be, no list has truth values, and fields
//! are in the order of their numbers, so that none of them is stated twice.

/// The most values inside of each other.
const DEPTH_MAX: usize = 16;

/// What a field is.
pub enum Kind {
    Truth,
    Byte,
    /// A number of 2, 4 or 8 bytes; they look the same.
    Number,
    Double,
    Bytes,
    List(&'static Kind),
    Structure(&'static Fields),
}

/// The known fields of a structure, by their numbers.
pub type Fields = [(i64, Kind)];

impl Kind {
    /// Whether the file calls it so.
    fn is(&self, code: u8) -> bool {
        match self {
            Self::Truth => matches!(code, 1 | 2),
            Self::Byte => code == 3,
            Self::Number => matches!(code, 4..=6),
            Self::Double => code == 7,
            Self::Bytes => code == 8,
            Self::List(_) => code == 9,
            Self::Structure(_) => code == 12,
        }
    }
}

/// Passes each number of a structure to `take`, behind the numbers of the fields that lead to it; `None` if the structure cannot
/// be read.
pub fn walk(bytes: &[u8], fields: &Fields, take: &mut dyn FnMut(&[i64], i64)) -> Option<()> {
    Compact { rest: bytes, path: Vec::new(), take }.structure(fields)
}

/// What is left of the bytes, and the fields around the next one.
struct Compact<'a> {
    rest: &'a [u8],
    path: Vec<i64>,
    take: &'a mut dyn FnMut(&[i64], i64),
}

impl Compact<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn skip(&mut self, count: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    fn structure(&mut self, fields: &Fields) -> Option<()> {
        let mut last = 0;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            let field = match head >> 4 {
                0 => self.zigzag()?,
                delta => last + i64::from(delta),
            };
            if !(last + 1..=0x7fff).contains(&field) {
                return None;
            }
            last = field;
            self.path.push(field);
            let known = fields.iter().find(|(number, _)| *number == field);
            self.value(head & 15, known.map(|(_, kind)| kind))?;
            self.path.pop();
        }
    }

    fn value(&mut self, code: u8, known: Option<&Kind>) -> Option<()> {
        if self.path.len() > DEPTH_MAX || known.is_some_and(|kind| !kind.is(code)) {
            return None;
        }
        match (code, known) {
            // A truth value is in the field's type.
            (1 | 2, _) => Some(()),
            (3, _) => self.skip(1),
            (4..=6, _) => {
                let value = self.zigzag()?;
                (self.take)(&self.path, value);
                Some(())
            }
            (7, _) => self.skip(8),
            (8, _) => {
                let length = self.varint()?;
                self.skip(length)
            }
            (9, Some(Kind::List(kind))) => self.list(Some(kind)),
            (9 | 10, _) => self.list(None),
            (12, Some(Kind::Structure(fields))) => self.structure(fields),
            (12, _) => self.structure(&[]),
            _ => None,
        }
    }

    fn list(&mut self, known: Option<&Kind>) -> Option<()> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        let code = head & 15;
        if count > 0 && matches!(code, 1 | 2) {
            return None;
        }
        self.path.push(0);
        for _ in 0..count {
            self.value(code, known)?;
        }
        self.path.pop();
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INNER: &Fields = &[(1, Kind::Bytes), (2, Kind::Truth)];
    const FIELDS: &Fields = &[(1, Kind::Number), (2, Kind::List(&Kind::Structure(INNER))), (4, Kind::Double)];

    fn numbers(bytes: &[u8]) -> Option<Vec<(Vec<i64>, i64)>> {
        let mut all = Vec::new();
        walk(bytes, FIELDS, &mut |path, value| all.push((path.to_vec(), value)))?;
        Some(all)
    }

    #[test]
    fn each_number_comes_with_the_fields_around_it_and_what_is_unknown_is_passed_over() {
        let inner = [0x18, 2, b'a', b'b', 0x11, 0x35, 9, 0];
        let bytes = [&[0x15, 6, 0x19, 0x2c][..], &inner, &inner, &[0x27], &[7; 8], &[0x16, 1, 0]].concat();
        let want = [(vec![1], 3), (vec![2, 0, 5], -5), (vec![2, 0, 5], -5), (vec![5], -1)];
        assert_eq!(numbers(&bytes).unwrap(), want);
        // Field 9 is an empty list of nothing, or of truth values.
        assert_eq!((numbers(&[0x99, 0, 0]), numbers(&[0x99, 1, 0])), (Some(vec![]), Some(vec![])));
    }

    #[test]
    fn a_known_field_of_another_type_is_refused() {
        assert!(numbers(&[0x18, 1, b'a', 0]).is_none(), "bytes for a number");
        assert!(numbers(&[0x29, 0x15, 8, 0]).is_none(), "a list of numbers for one of structures");
        assert!(numbers(&[0x29, 0x1c, 0x15, 8, 0, 0]).is_none(), "a number inside of them for bytes");
        assert!(numbers(&[0x2a, 0x1c, 0, 0]).is_none(), "a set for a list");
        assert!(numbers(&[0x47, 1, 2, 3, 4, 5, 6, 7, 8, 0]).is_some());
        assert!(numbers(&[0x41, 0]).is_none(), "a truth value for a number with a fraction");
    }

    #[test]
    fn what_takes_no_bytes_and_has_no_bound_is_refused() {
        let many = [0xff, 0xff, 0xff, 0xff, 7];
        assert!(numbers(&[&[0x99, 0xf1][..], &many, &[0]].concat()).is_none(), "a list of truth values");
        assert!(numbers(&[0x99, 0x22, 1, 1, 0]).is_none(), "a short one");
        assert!(numbers(&[&[0x9b][..], &many, &[0x11, 0]].concat()).is_none(), "a map");
        let deep = |levels: usize| [[0x1c].repeat(levels), vec![0; levels + 1]].concat();
        // Field 1 is known; the structures are in field 9.
        assert!(numbers(&[&[0x9c][..], &deep(15), &[0]].concat()).is_some());
        assert!(numbers(&[&[0x9c][..], &deep(16), &[0]].concat()).is_none());
    }
}
