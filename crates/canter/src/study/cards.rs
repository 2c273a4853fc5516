//! The gateway's cards where one run measures methods of different drivers: each method gets them by the driver that it
//! works with, and afterwards the kernel's own driver has them again.

use super::side::Order;
use crate::{
    failure::{self, Failure},
    gateway::kind::Method,
};
use canter_io::pci::Lent;
use std::fs;

/// The driver of the kernel that makes a card an interface.
const SOCKETS: &str = "kvaser_pci";
/// The one that makes it a character device.
const CANCHAR: &str = "canchar_kvaser_pci";
/// bit/s, part of the name of a card that has no driver.
const BITRATE: u32 = 1_000_000;

/// A card as a method wants it, until it is dropped.
pub struct Fitted {
    /// How the method names it: `can3`, `/dev/canchar2`, `port:0000:00:07.0@1000000`.
    pub name: String,
    _lent: Lent,
}

/// The gateway's two cards as the order's method wants them; the inner `Err`: the machine cannot do it, and why.
pub fn fit(addresses: &[String; 2], order: &Order) -> failure::Result<Result<Vec<Fitted>, String>> {
    let method: Method = order.method.parse()?;
    let drivers = match method.pair {
        Some(pair) => [pair.receive.row.name, pair.transmit.row.name].map(driver_of),
        None => [Some(if method.kind.devices { CANCHAR } else { SOCKETS }); 2],
    };
    let mut fitted = Vec::new();
    for (address, driver) in addresses.iter().zip(drivers) {
        match Lent::to(driver, address) {
            Ok(lent) => fitted.push(Fitted { name: name(address, driver)?, _lent: lent }),
            Err(error) => return Ok(Err(error.to_string())),
        }
    }
    Ok(Ok(fitted))
}

fn driver_of(row: &str) -> Option<&'static str> {
    match row {
        "port" => None,
        "canchar" | "canchar-ring" => Some(CANCHAR),
        _ => Some(SOCKETS),
    }
}

/// What the driver has made of the card.
fn name(address: &str, driver: Option<&str>) -> failure::Result<String> {
    let Some(driver) = driver else { return Ok(format!("port:{address}@{BITRATE}")) };
    let (class, prefix) = if driver == CANCHAR { ("canchar", "/dev/") } else { ("net", "") };
    let folder = format!("/sys/bus/pci/devices/{address}/{class}");
    let mut entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let entry = entries.next().ok_or_else(|| Failure::failed(format!("{folder}: no device of {driver}")))?;
    Ok(format!("{prefix}{}", entry.file_name().to_string_lossy()))
}
