//! Whether this kernel computes a CRC8 with relative places right. CVE-2026-31570: before the fix it used negative
//! places unchanged, so it read and wrote before the payload.

use std::fs;

/// The first fixed version of each stable series; from 7.0 on all are.
const FIXED: [[u32; 3]; 7] =
    [[5, 10, 253], [5, 15, 203], [6, 1, 168], [6, 6, 131], [6, 12, 80], [6, 18, 21], [6, 19, 11]];
const FIXED_FROM: [u32; 3] = [7, 0, 0];

/// Whether the running kernel is known to have the fix; false when its version cannot be read.
pub fn relative_crc8_is_safe() -> bool {
    fs::read_to_string("/proc/version").is_ok_and(|version| is_fixed(&version))
}

/// `version` as /proc/version has it: `Linux version RELEASE (…) … #1 SMP … Debian 6.1.192-2`. Debian 12 and older
/// have 6.1.0 as the release and the version they are made of at the end.
fn is_fixed(version: &str) -> bool {
    let mut words = version.split_whitespace();
    let release = words.nth(2);
    let debian = words.skip_while(|&word| word != "Debian").nth(1);
    [release, debian].into_iter().flatten().filter_map(numbers).any(|have| {
        have >= FIXED_FROM || FIXED.iter().any(|fixed| have[..2] == fixed[..2] && have[2] >= fixed[2])
    })
}

/// The first three numbers of `6.12.117+deb12-amd64`.
fn numbers(release: &str) -> Option<[u32; 3]> {
    let mut numbers =
        release.split(|character: char| !character.is_ascii_digit()).map(|part| part.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next().flatten().unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kernels_known_to_have_the_fix_count_as_fixed() {
        for (version, fixed) in [
            ("Linux version 6.12.117+deb12-amd64 (debian-kernel@lists.debian.org) (gcc) #1 SMP", true),
            (
                "Linux version 6.1.0-56-amd64 (d) (gcc) #1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-10-01)",
                true,
            ),
            (
                "Linux version 6.1.0-40-amd64 (d) (gcc) #1 SMP PREEMPT_DYNAMIC Debian 6.1.153-1 (2025-09-20)",
                false,
            ),
            ("Linux version 6.8.0-90-generic (buildd) (gcc) #91-Ubuntu SMP", false),
            ("Linux version 6.12.79 (me) (gcc) #1", false),
            ("Linux version 6.17.99 (me) (gcc) #1", false),
            ("Linux version 7.0-rc9 (me) (gcc) #1", true),
            ("Linux version 10.1.2 (me) (gcc) #1", true),
            ("", false),
        ] {
            assert_eq!(is_fixed(version), fixed, "{version}");
        }
    }
}
