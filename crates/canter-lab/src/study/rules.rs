//! The rules of a study's gateway: filters of which the last one that is checked matches, a modification, or hops
//! through virtual interfaces. They are a rule file (docs/rules.md), which can-gw and user-space gateways both accept.

use canter_measure::result::{Condition, Varied};
use serde::Deserialize;
use std::{fmt, fmt::Write, str::FromStr};

/// The number of standard identifiers.
const SFF_ALL: u32 = 2048;
/// The papers' largest number of jobs.
const FILTERS_MAX: u32 = 2048;
/// The maximum number of virtual interfaces on the way: can-gw forwards a frame at most six times.
const HOPS_MAX: u32 = 5;
/// The identifier of the test frame for extended filters.
const EFF_ID: &str = "12345678";
/// The name of [`Rules::Drop`].
const DROP: &str = "drop";
/// The prefix of the virtual interfaces on the way.
const VIA: &str = "canterhop";

/// The rules between the two interfaces.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Rules {
    /// One rule for every frame, which changes nothing.
    All,
    /// A number of rules with a filter each, of which the one that the kernel checks last matches.
    Filters(Filter, u32),
    /// One rule that changes each frame.
    Change(Change),
    /// A number of virtual interfaces on the way.
    Hops(u32),
    /// One rule by which each frame ends in the gateway: what remains is the work of receiving.
    Drop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    Sff,
    Eff,
    Masked,
    /// Exact extended filters, each with a change.
    Edited,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    And,
    Or,
    Xor,
    Set,
    Crc8,
    XorChecksum,
}

impl Filter {
    const ALL: [Self; 4] = [Self::Sff, Self::Eff, Self::Masked, Self::Edited];

    fn name(self) -> &'static str {
        match self {
            Self::Sff => "sff",
            Self::Eff => "eff",
            Self::Masked => "masked",
            Self::Edited => "edited",
        }
    }

    fn variant(self) -> &'static str {
        match self {
            Self::Sff => "SFF",
            Self::Eff => "EFF",
            Self::Masked => "masked EFF",
            Self::Edited => "edited EFF",
        }
    }
}

impl Change {
    const ALL: [Self; 6] = [Self::And, Self::Or, Self::Xor, Self::Set, Self::Crc8, Self::XorChecksum];

    fn name(self) -> &'static str {
        match self {
            Self::And => "and",
            Self::Or => "or",
            Self::Xor => "xor",
            Self::Set => "set",
            Self::Crc8 => "crc8",
            Self::XorChecksum => "xor-checksum",
        }
    }

    /// The line of a rule file, which changes the last payload bytes, never the frame's number in the first two.
    fn line(self) -> &'static str {
        match self {
            Self::And => "and = { data = \"FFFF00FFFFFFFFFF\" }",
            Self::Or => "or = { data = \"0000FF0000000000\" }",
            Self::Xor => "xor = { data = \"0000FF0000000000\" }",
            Self::Set => "set = { len = 8 }",
            Self::Crc8 => {
                "crc8 = { from = 0, to = 6, result = 7, polynomial = 0x1D, init = 0xFF, final-xor = 0xFF }"
            }
            Self::XorChecksum => "xor-checksum = { from = 0, to = 6, result = 7, init = 0 }",
        }
    }
}

impl FromStr for Rules {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        if text == DROP {
            return Ok(Self::Drop);
        }
        if let Some(change) = Change::ALL.into_iter().find(|change| change.name() == text) {
            return Ok(Self::Change(change));
        }
        let unknown = || {
            format!(
                "{text}: all, sff=N, eff=N, masked=N, edited=N, hops=N, and, or, xor, set, crc8, xor-checksum, {DROP}"
            )
        };
        let (kind, count) = text.split_once('=').ok_or_else(unknown)?;
        let number = |least: u32, most: u32| match count.parse() {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(format!("{text}: {least}…{most}")),
        };
        if kind == "hops" {
            return Ok(Self::Hops(number(0, HOPS_MAX)?));
        }
        let filter = Filter::ALL.into_iter().find(|filter| filter.name() == kind).ok_or_else(unknown)?;
        Ok(Self::Filters(filter, number(1, FILTERS_MAX)?))
    }
}

impl TryFrom<String> for Rules {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Drop => f.write_str(DROP),
            Self::Filters(filter, count) => write!(f, "{}={count}", filter.name()),
            Self::Change(change) => f.write_str(change.name()),
            Self::Hops(hops) => write!(f, "hops={hops}"),
        }
    }
}

impl Rules {
    /// The identifier of the test frames.
    pub fn frame_id(&self) -> &'static str {
        match self {
            Self::Filters(Filter::Sff, _) => "7FF",
            Self::Filters(..) => EFF_ID,
            _ => "123",
        }
    }

    /// Writes the rules into a result's condition.
    pub fn mark(&self, condition: &mut Condition) {
        condition.variant = self.variant().to_owned();
        condition.varied = self.varied();
    }

    /// Whether a series was measured with these rules.
    pub fn are_of(&self, condition: &Condition) -> bool {
        condition.variant == self.variant() && condition.varied == self.varied()
    }

    fn variant(&self) -> &'static str {
        match self {
            Self::Filters(filter, _) => filter.variant(),
            Self::Change(change) => change.name(),
            Self::Drop => DROP,
            Self::All | Self::Hops(_) => "",
        }
    }

    fn varied(&self) -> Option<Varied> {
        let (name, value) = match self {
            Self::Filters(_, count) => ("filters", *count),
            Self::Hops(hops) => ("virtual interfaces", *hops),
            Self::All | Self::Change(_) | Self::Drop => return None,
        };
        Some(Varied { name: name.to_owned(), unit: String::new(), value: value.into() })
    }

    /// The number of rules.
    pub fn jobs(&self) -> u64 {
        if let Self::Filters(_, count) = self { u64::from(*count) } else { 1 }
    }

    /// The virtual interfaces that must exist.
    pub fn via(&self) -> Vec<String> {
        let hops = if let Self::Hops(hops) = self { *hops } else { 0 };
        (0..hops).map(|hop| format!("{VIA}{hop}")).collect()
    }

    /// The rules of a route in a file that has several; without rules, a route that forwards every frame.
    pub fn routes(&self, from: &str, to: &str) -> String {
        self.file(from, to).unwrap_or_else(|| route(from, to))
    }

    /// The rule file; `None` when none is needed.
    pub fn file(&self, from: &str, to: &str) -> Option<String> {
        match self {
            Self::All => None,
            Self::Filters(filter, count) => Some(filters(*filter, *count, from, to)),
            Self::Change(change) => Some(route(from, to) + change.line() + "\n"),
            Self::Drop => Some(route(from, to) + "drop = true\n"),
            Self::Hops(_) => {
                let via = self.via();
                let stops: Vec<&str> =
                    [from].into_iter().chain(via.iter().map(String::as_str)).chain([to]).collect();
                Some(stops.windows(2).map(|pair| route(pair[0], pair[1])).collect())
            }
        }
    }
}

fn route(from: &str, to: &str) -> String {
    format!("[[route]]\nfrom = \"{from}\"\nto = \"{to}\"\n")
}

fn filters(filter: Filter, count: u32, from: &str, to: &str) -> String {
    let mut text = route(from, to);
    for at in 1..=count {
        // The kernel inserts each new job at the front of its list, so the first job of the file is the last in the
        // list.
        let last = at == 1;
        let id = match filter {
            Filter::Sff if last => "7FF".to_owned(),
            Filter::Sff => format!("{:03X}", (at - 1) % (SFF_ALL - 1)),
            Filter::Eff | Filter::Edited if last => EFF_ID.to_owned(),
            Filter::Eff | Filter::Edited => format!("{:08X}", 0x1000_0000 + at * 7919),
            Filter::Masked if last => "12345600:9FFFFF00".to_owned(),
            Filter::Masked => format!("{:08X}:9FFFFF00", 0x1000_0000 + at * 256),
        };
        let _ = writeln!(text, "[[route.rule]]\nframes = \"classic\"\nfilter = [\"{id}\"]"); // into memory
        if filter == Filter::Edited {
            text += Change::Xor.line();
            text += "\n";
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_route::rules::read;

    const ALL: [&str; 14] = [
        "all",
        "drop",
        "sff=1",
        "sff=2048",
        "eff=80",
        "masked=2048",
        "edited=80",
        "hops=0",
        "hops=5",
        "and",
        "or",
        "xor",
        "set",
        "crc8",
    ];

    #[test]
    fn rules_are_read_back_as_written() {
        for text in ALL {
            assert_eq!(text.parse::<Rules>().unwrap_or(Rules::All).to_string(), text);
        }
        for text in ["", "eff", "eff=0", "eff=2049", "hops=6", "rain", "rain=1", "sff=-1"] {
            assert!(text.parse::<Rules>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_gateway_accepts_every_rule_file() {
        for text in ALL {
            let rules: Rules = text.parse().expect("it is one of them");
            let Some(file) = rules.file("can3", "can4") else { continue };
            let set = read::parse("study", &file).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(set.routes.len(), 1 + rules.via().len(), "{text}");
            let count: usize = set.routes.iter().map(|route| route.policy.rules.len()).sum();
            assert_eq!(count as u64, rules.jobs().max(set.routes.len() as u64), "{text}");
        }
    }
}
