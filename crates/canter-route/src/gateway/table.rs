//! The table of gateways, and how a name finds its row.

use super::{
    bare_metal::BARE_METAL,
    can_gw::CAN_GW,
    kind::{Kind, Method},
    pairs::PAIRS,
};
use canter_io::{Error, method::table::PAPER_PAIRS};
use std::str::FromStr;

/// In the order of `canter methods`.
pub static GATEWAYS: &[Kind] = &[PAIRS, CAN_GW, BARE_METAL];

/// Methods of earlier versions, and what there is instead.
const GONE: &[(&str, &str)] =
    &[("bpf", "canter has it no more (use can-gw, or a user-space pair such as ring/spin+write)")];

/// The method of a name: a row's name, its name in the 2014 paper, or a pair.
///
/// # Errors
/// No method has this name.
pub fn find(name: &str, table: &'static [Kind]) -> Result<Method, Error> {
    if let Some(kind) = kind(name, table) {
        return Ok(Method { kind, pair: None });
    }
    if let Some((_, instead)) = GONE.iter().find(|(gone, _)| *gone == name) {
        return Err(Error::unsupported(name, "method", *instead));
    }
    let pair = name.parse().map_err(|error: Error| {
        if name.contains('+') {
            return error; // it lists the receivers, or the senders
        }
        let kinds: Vec<_> = table.iter().filter(|kind| !kind.pairs).map(|kind| kind.name).collect();
        error.hint(format!("there are {} and pairs such as read+write: canter methods", kinds.join(", ")))
    })?;
    let kind = table
        .iter()
        .find(|kind| kind.pairs)
        .ok_or_else(|| Error::unsupported(name, "method", "no gateway here is a pair of methods"))?;
    Ok(Method { kind, pair: Some(pair) })
}

/// The default method: the default pair of the interfaces.
pub fn usual() -> Method {
    Method { kind: &PAIRS, pair: None }
}

/// The row of a name; `None` for pairs.
fn kind(name: &str, table: &'static [Kind]) -> Option<&'static Kind> {
    let named =
        |kind: &&Kind| !kind.pairs && !name.is_empty() && [kind.name, kind.paper_name].contains(&name);
    table.iter().find(named)
}

/// The name of a method in the 2014 paper; empty when the paper has none.
pub fn paper_name(method: &str) -> &'static str {
    match kind(method, GATEWAYS) {
        Some(kind) => kind.paper_name,
        None => PAPER_PAIRS.iter().find(|(_, name)| *name == method).map_or("", |(paper, _)| paper),
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        find(name, GATEWAYS)
    }
}
