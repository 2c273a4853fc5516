//! Amounts of memory as people type them: `256K`, `64M`, `1G`.

/// Units, in bytes.
const UNITS: [(&str, u64); 3] = [("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)];

/// Reads an amount, in bytes. The unit is required, because a number alone is easily wrong by a factor of 1000.
pub fn parse_bytes(text: &str) -> Result<usize, String> {
    let error = || format!("{text:?} is not an amount of memory (256K, 64M, 1G)");
    let (number, unit) =
        UNITS.iter().find_map(|&(name, unit)| Some((text.strip_suffix(name)?, unit))).ok_or_else(error)?;
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(error());
    }
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    bytes.filter(|&bytes| bytes > 0).and_then(|bytes| bytes.try_into().ok()).ok_or_else(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_with_their_unit_only() {
        assert_eq!(parse_bytes("256K"), Ok(256 << 10));
        assert_eq!(parse_bytes("64M"), Ok(64 << 20));
        for text in ["", "64", "M", "-1M", "0K", "1.5G", "99999999999999999999G", "99999999999G"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }
}
