//! The conditions of `--trigger`, as text. Identifiers, masks and error classes are in candump's notation.

use super::signal_condition::{Comparison, SignalCondition, Wanted};
use crate::databases::Databases;
use canter_capture::{Condition, ErrorKind, Pattern, When};
use canter_cli::{
    duration,
    failure::{self, Exit, Failure},
};
use canter_io::{Filter, Filters};
use std::{fmt, str::FromStr, sync::Arc, time::Duration};

/// How long identifiers are learned before others are new.
const LEARNED: Duration = Duration::from_secs(60);
/// The forms of a condition, for errors.
const FORMS: &str = "123:7FF, 0C9#40:C0, #FFFFFFFF, error, bus-off, error-passive, overrun, missing 0C9 > 50ms, new after 60s, \
                     Signal > 100 or SIGUSR1, each but the last perhaps behind IFACE and a comma";

/// A value of `--trigger`.
#[derive(Clone, Debug)]
pub struct Trigger {
    text: String,
    interface: Option<String>,
    when: Written,
}

#[derive(Clone, Debug)]
enum Written {
    When(When),
    /// A signal's value, for which the databases are needed.
    Signal(Wanted),
}

impl Trigger {
    /// The condition, by the databases of `--dbc`.
    ///
    /// # Errors
    /// No database has the signal.
    pub fn condition(&self, databases: &Arc<Databases>) -> failure::Result<Condition> {
        let when = match &self.when {
            Written::When(when) => when.clone(),
            Written::Signal(wanted) => {
                let content = SignalCondition::new(wanted.clone(), databases)
                    .map_err(|reason| Failure::new(Exit::Usage, format!("--trigger {self}: {reason}")))?;
                When::Content(Arc::new(content))
            }
        };
        Ok(Condition { text: self.text.clone(), interface: self.interface.clone(), when })
    }

    /// Whether SIGUSR1 is an event.
    pub fn is_request(&self) -> bool {
        matches!(self.when, Written::When(When::Request))
    }

    /// Whether it needs a database.
    pub fn needs_database(&self) -> bool {
        matches!(self.when, Written::Signal(_))
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

impl FromStr for Trigger {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (rest, missing) = match text.strip_prefix("missing ") {
            Some(rest) => (rest.trim(), true),
            None => (text, false),
        };
        let (interface, rest) = split_interface(rest);
        let when = if missing { missing_frames(rest)? } else { condition(rest)? };
        if interface.is_some() && matches!(when, Written::When(When::Request)) {
            return Err("SIGUSR1 is of no interface".to_owned());
        }
        Ok(Self { text: text.to_owned(), interface, when })
    }
}

/// The interface before the first comma, unless a filter stands there; `any` is none.
fn split_interface(text: &str) -> (Option<String>, &str) {
    match text.split_once(',') {
        Some((first, rest)) if first.parse::<Filters>().is_err() && !first.contains(['#', '>', '<', '=']) => {
            ((first != "any").then(|| first.to_owned()), rest.trim())
        }
        _ => (None, text),
    }
}

fn condition(text: &str) -> Result<Written, String> {
    if text.eq_ignore_ascii_case("SIGUSR1") {
        return Ok(Written::When(When::Request));
    }
    if let Some((_, kind)) = ErrorKind::WORDS.iter().find(|(word, _)| *word == text) {
        return Ok(Written::When(When::Error(*kind)));
    }
    if let Some(rest) = text.strip_prefix("new").filter(|rest| rest.is_empty() || rest.starts_with(' ')) {
        return new_identifier(rest.trim());
    }
    if let Some(wanted) = signal(text)? {
        return Ok(Written::Signal(wanted));
    }
    match text.split_once('#') {
        Some((filter, data)) if !filter.is_empty() && !filter.contains(',') => frame_with_data(filter, data),
        _ => Ok(Written::When(When::Frame(filters(text)?))),
    }
}

fn filters(text: &str) -> Result<Filters, String> {
    match text.parse() {
        Ok(filters) if !text.is_empty() => Ok(filters),
        _ => Err(format!("{text:?} is no condition ({FORMS})")),
    }
}

/// `0C9#40:C0`: an identifier, and data under a mask.
fn frame_with_data(filter: &str, data: &str) -> Result<Written, String> {
    let id: Filter =
        filter.parse().map_err(|_| format!("{filter:?} is no identifier of a condition ({FORMS})"))?;
    let (inverse, (data, mask)) = match data.split_once('~') {
        Some(parts) => (true, parts),
        None => (false, data.split_once(':').unwrap_or((data, ""))),
    };
    let data = bytes(data)?;
    let mask = if mask.is_empty() { vec![0xff; data.len()] } else { bytes(mask)? };
    if data.is_empty() || data.len() != mask.len() {
        let (data, mask) = (data.len(), mask.len());
        return Err(format!(
            "{data} bytes of data and {mask} of mask: must be as many, and not 0 (0C9#40:C0)"
        ));
    }
    Ok(Written::When(When::Data(id, Pattern { data, mask, inverse })))
}

/// Reads bytes as candump writes them, with or without dots between them.
fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let refused = || format!("{text:?} is not data: two hex digits a byte, at most 64 bytes");
    let digits: Vec<u32> = text
        .chars()
        .filter(|&letter| letter != '.')
        .map(|letter| letter.to_digit(16))
        .collect::<Option<_>>()
        .ok_or_else(refused)?;
    if !digits.len().is_multiple_of(2) || digits.len() > 128 {
        return Err(refused());
    }
    Ok(digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
}

/// `0C9 > 50ms`, behind the word `missing`.
fn missing_frames(text: &str) -> Result<Written, String> {
    let parts = text.split_once('>').map(|(filter, limit)| (filter.trim(), limit.trim()));
    let (filter, limit) = parts.ok_or_else(|| format!("missing {text}: write missing 0C9 > 50ms"))?;
    let limit = duration::parse_ns(limit)?;
    if limit == 0 {
        return Err("a period must be more than 0".to_owned());
    }
    Ok(Written::When(When::Missing(filters(filter)?, Duration::from_nanos(limit))))
}

/// What follows the word `new`: nothing, or `after 60s`.
fn new_identifier(text: &str) -> Result<Written, String> {
    let learned = match text.strip_prefix("after") {
        Some(time) => Duration::from_nanos(duration::parse_ns(time.trim())?),
        None if text.is_empty() => LEARNED,
        None => return Err(format!("new {text}: write new, or new after 60s")),
    };
    Ok(Written::When(When::New(learned)))
}

/// `Engine.Speed > 3000`; `None`: there is no comparison in it.
fn signal(text: &str) -> Result<Option<Wanted>, String> {
    let Some(at) = text.find(['<', '>', '=', '!']) else { return Ok(None) };
    let (name, rest) = (text[..at].trim(), &text[at..]);
    let sign = &rest[..rest.find(|letter| !"<>=!".contains(letter)).unwrap_or(rest.len())];
    let comparison = Comparison::parse(sign)
        .ok_or_else(|| format!("{sign:?} is no comparison (>, >=, <, <=, == and !=)"))?;
    let value = rest[sign.len()..].trim();
    if name.is_empty() || value.is_empty() {
        return Err(format!("{text:?} compares nothing (write Signal > 100)"));
    }
    let (message, signal) = match name.split_once('.') {
        Some((message, signal)) => (Some(message.to_owned()), signal),
        None => (None, name),
    };
    Ok(Some(Wanted { message, signal: signal.to_owned(), comparison, value: value.to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        match text.parse::<Trigger>() {
            Ok(Trigger { interface, when, .. }) => {
                let when = match when {
                    Written::When(when) => format!("{when:?}"),
                    Written::Signal(wanted) => wanted.to_string(),
                };
                format!("{} {when}", interface.as_deref().unwrap_or("any"))
            }
            Err(reason) => format!("refused: {reason}"),
        }
    }

    #[test]
    fn conditions_are_read_with_and_without_an_interface() {
        for (text, expected) in [
            ("123:7FF,400:700", "any Frame(123:7FF,400:700)"),
            ("can0,123:7FF,400:700", "can0 Frame(123:7FF,400:700)"),
            ("any,0C9", "any Frame(0C9:C00007FF)"),
            ("can0,#00000040", "can0 Frame(#00000040)"),
            ("/dev/canchar0,12345678", "/dev/canchar0 Frame(12345678:DFFFFFFF)"),
            ("error", "any Error(Any)"),
            ("can1,bus-off", "can1 Error(BusOff)"),
            ("SIGUSR1", "any Request"),
            ("new", "any New(60s)"),
            ("can0,new after 5s", "can0 New(5s)"),
            ("missing can0,0C9 > 50ms", "can0 Missing(0C9:C00007FF, 50ms)"),
            ("missing 0C9:7FF,0CA:7FF>1.5s", "any Missing(0C9:7FF,0CA:7FF, 1.5s)"),
            ("can0,Engine.Speed >= 3000", "can0 Engine.Speed >= 3000"),
            ("State==Running", "any State == Running"),
        ] {
            assert_eq!(parsed(text), expected, "{text}");
        }
        let data = "any Data(0C9:C00007FF, Pattern { data: [64, 1], mask: [192, 255], inverse: false })";
        assert_eq!(parsed("0C9#40.01:C0FF"), data);
        assert!(parsed("can0,0C9:7FF#11~0F").contains("mask: [15], inverse: true"));
    }

    #[test]
    fn a_wrong_condition_is_refused_with_the_way_out() {
        for (text, expected) in [
            ("", "is no condition (123:7FF, 0C9#40:C0"),
            ("bus_off", "\"bus_off\" is no condition"),
            ("can0,", "is no condition"),
            ("0C9#4", "two hex digits a byte"),
            ("0C9#40:C0FF", "1 bytes of data and 2 of mask"),
            ("0C9#", "0 bytes of data"),
            ("xyz#11", "\"xyz\" is no identifier"),
            ("missing 0C9", "write missing 0C9 > 50ms"),
            ("missing 0C9 > 50", "is not a duration"),
            ("missing 0C9 > 0s", "must be more than 0"),
            ("new later", "write new, or new after 60s"),
            ("Speed =< 3", "\"=<\" is no comparison"),
            ("> 3", "compares nothing"),
            ("can0,SIGUSR1", "SIGUSR1 is of no interface"),
        ] {
            assert!(
                parsed(text).starts_with("refused") && parsed(text).contains(expected),
                "{text}: {}",
                parsed(text)
            );
        }
    }
}
