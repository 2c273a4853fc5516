//! Channels of cards without a kernel driver, which this process controls: `port:0000:00:07.0`.

use super::{Carrier, Interface, Kind};
use crate::{
    Error, Result,
    frame::CAN_MTU,
    netlink::{
        controller::{BitTiming, Controller, State, Timing},
        counters::Counters,
    },
    port::{card::Name, channel},
};

pub(super) use crate::port::card::PREFIX;

/// The channel of this name. Its bit rate is part of the name; opening it starts the controller.
pub(super) fn find(text: &str, carrier: &'static Carrier) -> Result<Interface> {
    let name = name_of(text)?;
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
        carrier,
    })
}

fn name_of(text: &str) -> Result<Name> {
    text.parse().map_err(|error| Error::new(text, "find", error))
}

pub(super) fn refresh(interface: &mut Interface) -> Result<()> {
    *interface = find(&interface.name, interface.carrier)?;
    Ok(())
}

/// For this process only.
pub(super) fn set_up(interface: &mut Interface, up: bool) -> Result<()> {
    channel::set_up(&name_of(&interface.name)?, up)?;
    refresh(interface)
}

pub(super) fn counters(interface: &Interface) -> Result<Counters> {
    Ok(channel::counters(&name_of(&interface.name)?))
}

pub(super) fn set_bit_timing(interface: &mut Interface, _timing: &BitTiming) -> Result<()> {
    let why = "its bit rate is part of its name";
    Err(Error::unsupported(&interface.name, "set bit rate", why).hint("port:…@250000"))
}

/// The first channel of a card.
pub(super) fn name_of_card(address: &str, bitrate: u32) -> Result<String> {
    Ok(format!("{PREFIX}{address}@{bitrate}"))
}
