//! Sizes as people type them: `256K`, `64M`, `1G`, `100MB`, `100MiB`.

/// Reads a size, in bytes; `M` is `MiB`. The unit is required, because a number alone is easily wrong by a factor of 1000.
pub fn parse_bytes(text: &str) -> Result<usize, String> {
    let error = || format!("{text:?}: not a size (100M, 100MB, 100MiB)");
    let (number, unit) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
    let unit: u64 = match unit.to_ascii_uppercase().as_str() {
        "K" | "KIB" => 1 << 10,
        "M" | "MIB" => 1 << 20,
        "G" | "GIB" => 1 << 30,
        "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return Err(error()),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    bytes.filter(|&bytes| bytes > 0).and_then(|bytes| bytes.try_into().ok()).ok_or_else(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_unit_only() {
        for (text, bytes) in [
            ("256K", 256 << 10),
            ("64M", 64 << 20),
            ("512m", 512 << 20),
            ("2G", 2 << 30),
            ("100MB", 100_000_000),
            ("8kB", 8_000),
            ("3GiB", 3 << 30),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in
            ["", "64", "M", "-1M", "0K", "1.5G", "1B", "1 M", "2µ", "99999999999999999999G", "99999999999G"]
        {
            assert_eq!(parse_bytes(text), Err(format!("{text:?}: not a size (100M, 100MB, 100MiB)")));
        }
    }
}
