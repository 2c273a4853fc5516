//! The gateway's cards when one run measures methods of different drivers: binds the cards to the driver that a method
//! needs, and afterwards to the kernel's driver again.

use canter_cli::failure::{self, Failure};
use canter_io::{
    carrier::table::{CANCHAR, NETWORK},
    pci::Lent,
};
use canter_route::gateway::kind::Method;

/// The bit rate in the name of a card that has no driver, in bit/s.
const BITRATE: u32 = 1_000_000;

/// A card bound to the driver of a method; dropping this restores the kernel's driver.
pub struct Fitted {
    /// The card's name for the method: `can3`, `/dev/canchar2`, `port:0000:00:07.0@1000000`.
    pub name: String,
    _lent: Lent,
}

/// Binds the gateway's two cards to the method's driver.
pub fn fit(addresses: &[String; 2], method: &str) -> failure::Result<Vec<Fitted>> {
    let kind: Method = method.parse()?;
    let cards = match kind.pair {
        Some(pair) => [pair.receive.row.carriers, pair.transmit.row.carriers]
            .map(|carriers| carriers.iter().find_map(|carrier| carrier.card)),
        None => [if kind.kind.devices { CANCHAR.card } else { NETWORK.card }; 2],
    };
    let mut fitted = Vec::new();
    for (address, card) in addresses.iter().zip(cards) {
        let Some(card) = card else {
            return Err(Failure::unable(format!("{method}: no card carries its frames")));
        };
        let lent = Lent::bind(card.driver, address).map_err(|error| Failure::unable(error.to_string()))?;
        fitted.push(Fitted { name: (card.name)(address, BITRATE)?, _lent: lent });
    }
    Ok(fitted)
}
