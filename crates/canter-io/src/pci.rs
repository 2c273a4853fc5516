//! The driver of a PCI card, and its temporary replacement (`driver_override` in sysfs).

use crate::{Error, Result};
use std::{fs, io, path::PathBuf};

/// The sysfs folder of a card.
pub(crate) fn folder(address: &str) -> PathBuf {
    PathBuf::from("/sys/bus/pci/devices").join(address)
}

/// The PCI address of a card, from its interface's name or from an address: `can0`, `0000:00:04.0`.
///
/// # Errors
/// `ENODEV` when there is none.
pub fn address(name: &str) -> Result<String> {
    let plain = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
    if plain && folder(name).exists() {
        return Ok(name.to_owned());
    }
    let device = plain.then(|| fs::read_link(format!("/sys/class/net/{name}/device")).ok()).flatten();
    let address = device.and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    address.filter(|address| folder(address).exists()).ok_or_else(|| {
        let way_out = "the interface of a PCI card, or a card's address like 0000:00:04.0";
        Error::new(name, "find", io::Error::from_raw_os_error(libc::ENODEV)).hint(way_out)
    })
}

/// The number of a card's interrupt line.
///
/// # Errors
/// When it has none.
pub fn interrupt_line(address: &str) -> Result<u32> {
    let line = fs::read_to_string(folder(address).join("irq")).ok().and_then(|text| text.trim().parse().ok());
    line.filter(|&line| line > 0).ok_or_else(|| {
        let error = io::Error::from_raw_os_error(libc::ENOENT);
        Error::new(address, "find its interrupt line", error)
    })
}

/// The name of a card's driver.
pub fn driver(address: &str) -> Option<String> {
    let link = fs::read_link(folder(address).join("driver")).ok()?;
    Some(link.file_name()?.to_str()?.to_owned())
}

/// The name of the device that a card's driver has made in a class of sysfs: `can0` in `net`.
///
/// # Errors
/// `ENODEV` when there is none.
pub fn device(address: &str, class: &str) -> Result<String> {
    let class = folder(address).join(class);
    let entry = fs::read_dir(&class).ok().and_then(|mut entries| entries.next()?.ok());
    entry.map(|entry| entry.file_name().to_string_lossy().into_owned()).ok_or_else(|| {
        let error = io::Error::from_raw_os_error(libc::ENODEV);
        Error::new(class.display().to_string(), "find the card's device", error)
    })
}

/// A card that has another driver, or none, until this value is dropped.
#[derive(Debug)]
pub struct Lent {
    address: String,
    back_to: Option<String>,
}

impl Lent {
    /// Binds a card to `driver`, or unbinds its driver.
    ///
    /// # Errors
    /// `ENODEV` when the driver does not accept it; `EACCES` without root. The card then has its old driver again.
    pub fn bind(driver: Option<&str>, address: &str) -> Result<Self> {
        let lent = Self { address: address.to_owned(), back_to: self::driver(address) };
        bind(address, driver)?;
        if self::driver(address).as_deref() == driver {
            return Ok(lent);
        }
        let name = driver.unwrap_or_default();
        let error = Error::new(address, "bind", io::Error::from_raw_os_error(libc::ENODEV));
        Err(error.hint(format!("{name} does not accept it; the kernel log may have the reason")))
    }

    /// The card.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let _ = bind(&self.address, self.back_to.as_deref()); // it may have disappeared
    }
}

fn bind(address: &str, driver: Option<&str>) -> Result<()> {
    let card = folder(address);
    let write = |path: PathBuf, text: &str| {
        fs::write(path, text).map_err(|error| {
            let denied = error.kind() == io::ErrorKind::PermissionDenied;
            Error::new(address, "bind", error).hint(if denied { "needs root" } else { "" })
        })
    };
    if self::driver(address).as_deref() == driver {
        return Ok(());
    }
    // An empty line selects any driver that supports the card.
    write(card.join("driver_override"), driver.unwrap_or("\n"))?;
    if card.join("driver").exists() {
        write(card.join("driver/unbind"), address)?;
    }
    match driver {
        Some(_) => write("/sys/bus/pci/drivers_probe".into(), address),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_card_is_an_error_with_what_would_be_one() {
        for name in ["", "lo", "0000:ff:1f.7", "..", "a/b"] {
            let error = address(name).unwrap_err();
            assert_eq!(error.source.raw_os_error(), Some(libc::ENODEV), "{name}");
            assert!(error.way_out.contains("0000:00:04.0"));
        }
    }
}
