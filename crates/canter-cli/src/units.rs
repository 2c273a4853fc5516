//! Numbers for people: one unit and one precision per table or axis, ratios with three digits.

/// Separates thousands; a narrow space that does not break lines.
pub(crate) const THIN_SPACE: char = '\u{202f}';

/// A unit of time and its number of decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The unit as it is printed: `µs`.
    pub name: &'static str,
    ns: u64,
    decimals: u32,
}

impl Unit {
    /// The unit and decimals that give the smallest of `values` three digits; use them for all values.
    pub fn for_smallest(values: impl IntoIterator<Item = u64>) -> Self {
        let smallest = values.into_iter().filter(|&ns| ns > 0).min().unwrap_or(0);
        let (name, ns) = match smallest {
            0..1_000 => ("ns", 1),
            1_000..1_000_000 => ("µs", 1_000),
            1_000_000..1_000_000_000 => ("ms", 1_000_000),
            _ => ("s", 1_000_000_000),
        };
        let decimals = match smallest / ns {
            _ if ns == 1 => 0,
            0..10 => 2,
            10..100 => 1,
            _ => 0,
        };
        Self { name, ns, decimals }
    }

    /// The unit for durations of system calls, which are compared in ns up to ten thousand.
    pub fn for_calls(values: impl IntoIterator<Item = u64>) -> Self {
        match values.into_iter().filter(|&ns| ns > 0).min().unwrap_or(0) {
            0..10_000 => Self { name: "ns", ns: 1, decimals: 0 },
            smallest => Self::for_smallest([smallest]),
        }
    }

    /// A duration in this unit, without the unit's name: `13.7`.
    pub fn number(&self, ns: u64) -> String {
        let scale = 10_u128.pow(self.decimals);
        let unit = u128::from(self.ns);
        let scaled = (u128::from(ns) * scale + unit / 2) / unit;
        let integer = grouped(scaled / scale);
        if self.decimals == 0 {
            return integer;
        }
        format!("{integer}.{:0width$}", scaled % scale, width = self.decimals as usize)
    }

    /// A difference in this unit, without the unit's name: `−250`.
    pub fn signed(&self, ns: i64) -> String {
        let sign = if ns < 0 { "−" } else { "" };
        format!("{sign}{}", self.number(ns.unsigned_abs()))
    }
}

/// Microseconds, for text with a fixed number of decimals: `{:.1} µs`.
pub fn us(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

/// A single span with its unit: `13.7 µs`.
pub fn span(ns: u64) -> String {
    let unit = Unit::for_smallest([ns]);
    format!("{} {}", unit.number(ns), unit.name)
}

/// A span without trailing zeros, for axes and for the papers' round numbers: `100 µs`, `2.5 ms`.
pub fn round_span(ns: u64) -> String {
    let (name, unit) = match ns {
        0 => return "0".into(),
        1..1_000 => ("ns", 1),
        1_000..1_000_000 => ("µs", 1_000),
        1_000_000..1_000_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000_u64),
    };
    let thousandths = (u128::from(ns) * 1000 + u128::from(unit) / 2) / u128::from(unit);
    let (integer, rest) = (grouped(thousandths / 1000), format!("{:03}", thousandths % 1000));
    let rest = rest.trim_end_matches('0');
    let dot = if rest.is_empty() { "" } else { "." };
    format!("{integer}{dot}{rest} {name}")
}

/// A number with `decimals` digits after the point and a unit: `12.5 %`. Whole ns are printed by [`round_span`].
pub fn measured(value: u64, decimals: u8, unit: &str) -> String {
    if unit == "ns" && decimals == 0 {
        return round_span(value);
    }
    let scale = 10_u64.pow(u32::from(decimals.min(9)));
    let rest = match scale {
        1 => String::new(),
        _ => format!(".{:0width$}", value % scale, width = usize::from(decimals.min(9))),
    };
    let number = format!("{}{rest}", grouped(value / scale));
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

/// `a / b` as `1.09×`; `None` when `b` is 0.
pub fn ratio(a: u64, b: u64) -> Option<String> {
    (b > 0).then(|| {
        let ratio = a as f64 / b as f64;
        match ratio {
            0.0..0.0005 if a > 0 => "<0.001×".into(),
            0.0..0.0995 => format!("{ratio:.3}×"),
            0.0..9.995 => format!("{ratio:.2}×"),
            0.0..99.95 => format!("{ratio:.1}×"),
            _ => format!("{}×", grouped(ratio.round() as u128)),
        }
    })
}

/// A number with three digits: `0.0123`, `2.68`, `1234`.
pub fn digits(value: f64) -> String {
    if !value.is_finite() {
        return "∞".to_owned();
    }
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size => {
            let before = size.log10().floor() as i32;
            let decimals = usize::try_from(2 - before).unwrap_or_default().min(6);
            let text = format!("{value:.decimals$}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

/// A number with its thousands separated: `50 000`.
pub fn grouped(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let mut out = String::with_capacity(digits.len() * 2);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(THIN_SPACE);
        }
        out.push(digit);
    }
    out
}

/// A count of things, in singular or plural: `1 frame`, `3 200 frames`.
pub fn counted(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_one_unit() {
        let unit = Unit::for_smallest([13_670, 23_080, 1_200_499]);
        assert_eq!([13_670, 23_080, 1_200_499].map(|ns| unit.number(ns)), ["13.7", "23.1", "1\u{202f}200.5"]);
        assert_eq!(Unit::for_smallest([28, 1_850]).number(1_850), "1\u{202f}850");
        assert_eq!(Unit::for_smallest([]).name, "ns");
        assert_eq!(Unit::for_smallest([250_000]).signed(-250_400), "−250");
    }

    #[test]
    fn a_span_alone_has_its_own_unit() {
        assert_eq!(
            [9, 999, 1_000, 12_340, 999_999].map(span),
            ["9 ns", "999 ns", "1.00 µs", "12.3 µs", "1\u{202f}000 µs"]
        );
        assert_eq!([0, 100_000, 2_500_000].map(round_span), ["0", "100 µs", "2.5 ms"]);
    }

    #[test]
    fn a_measured_value_has_its_digits_and_unit() {
        assert_eq!(measured(125, 1, "%"), "12.5 %");
        assert_eq!(measured(21_277, 0, "frames/s"), "21\u{202f}277 frames/s");
        assert_eq!(measured(2_500, 0, "ns"), "2.5 µs");
        assert_eq!(measured(7, 200, ""), "0.000000007");
    }

    #[test]
    fn a_figure_without_unit_has_three_digits_and_no_trailing_zeros() {
        let shown = [0.0, 0.012_34, 2.684, 2.0, 99.96, 1234.4, f64::INFINITY].map(digits);
        assert_eq!(shown, ["0", "0.0123", "2.68", "2", "100", "1234", "∞"]);
    }

    #[test]
    fn a_ratio_has_three_digits() {
        assert_eq!(ratio(109, 100).as_deref(), Some("1.09×"));
        assert_eq!(ratio(15, 1000).as_deref(), Some("0.015×"));
        assert_eq!(ratio(23_000, 49).as_deref(), Some("469×"));
        assert_eq!(ratio(1, 0), None);
        assert_eq!(ratio(1, u64::MAX).as_deref(), Some("<0.001×"));
        assert_eq!(ratio(0, 7).as_deref(), Some("0.000×"));
    }
}
