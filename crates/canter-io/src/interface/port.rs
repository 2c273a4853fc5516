//! Channels of cards that a process of ours drives itself: `port:0000:00:07.0`.

use super::{Controller, Counters, Interface, Kind, State, Timing};
use crate::{
    Error, Result,
    frame::CAN_MTU,
    method::port::{card::Name, channel},
};

pub(super) use crate::method::port::card::PREFIX;

/// The channel of this name. Its bit rate is part of the name, and it goes on the bus when it is opened.
pub(super) fn find(text: &str) -> Result<Interface> {
    let name: Name = text.parse().map_err(|error| Error::new(text, "find", error))?;
    name.look()?;
    let up = channel::is_up(&name);
    let controller = Controller {
        chip: "sja1000".to_owned(),
        state: Some(if up { State::ErrorActive } else { State::Stopped }),
        timing: Timing { bitrate: name.bitrate, ..Timing::default() },
        ..Controller::default()
    };
    Ok(Interface {
        name: text.to_owned(),
        index: name.index(),
        mtu: CAN_MTU as u32,
        kind: Kind::Port,
        up,
        running: up,
        echo: false,
        driver: None,
        qdisc: String::new(),
        tx_queue_len: 1,
        peer: None,
        controller: Some(controller),
    })
}

impl Interface {
    /// For this process only.
    pub(super) fn port_run(&mut self, up: bool) -> Result<()> {
        channel::set_up(&self.port_name()?, up)?;
        *self = find(&self.name)?;
        Ok(())
    }

    pub(super) fn port_counters(&self) -> Result<Counters> {
        Ok(channel::counters(&self.port_name()?))
    }

    fn port_name(&self) -> Result<Name> {
        self.name.parse().map_err(|error| Error::new(&self.name, "find", error))
    }
}
