//! Virtual wires for several commands: the bus that a name means, and the pace of its source.

use crate::traffic::pattern::Traffic;
use canter_cli::failure::{self, Exit, Failure};
use canter_io::{
    Interface,
    netlink::wire::{self, Pace},
};

/// The bus of a node's interface, or the bus of that name.
pub fn bus_of(name: &str) -> failure::Result<String> {
    wire::available()?;
    if let Some(node) = wire::nodes()?.into_iter().find(|node| node.name == name) {
        return Ok(node.bus);
    }
    if wire::buses()?.iter().any(|bus| bus.name == name) {
        return Ok(name.to_owned());
    }
    let reason = if Interface::find(name).is_ok() {
        "is not a node of a virtual wire"
    } else {
        "no such node or bus of a virtual wire"
    };
    Err(Failure::failed(format!("{name}: {reason} (canter wire list; canter wire add {name} --bus A)")))
}

/// The pace of a traffic and its frames per period; `None` when sending depends on arrivals.
pub fn pace(traffic: Traffic) -> failure::Result<Option<(Pace, u32)>> {
    Ok(match traffic {
        Traffic::OneAtATime => None,
        Traffic::Period(ns) => Some((Pace::Period(ns), 1)),
        Traffic::Load(percent) => Some((Pace::Load(percent * 10), 1)),
        Traffic::Burst { frames, every_ns } => Some((Pace::Period(every_ns), frames)),
        Traffic::Flood => Some((Pace::Always, 1)),
        Traffic::Ramp { .. } => {
            let reason = format!("--traffic {traffic}: a wire's source has no ramp (canter generate has)");
            return Err(Failure::new(Exit::Usage, reason));
        }
    })
}
