//! A card of [`BOARDS`] without a driver: finds it in sysfs, enables it, locks it against other processes, and returns
//! it.

use crate::{
    Error, Result, pci,
    sys::{file, ports::Ports},
};
use sja1000::boards::{self, BOARDS, Board, s5920};
use std::{
    fmt,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    str::FromStr,
};

/// The prefix of a channel's name.
pub(crate) const PREFIX: &str = "port:";
/// The bit rate of a name without one.
const BITRATE: u32 = 500_000;
/// Ports of a controller.
const CHANNEL_PORTS: u16 = sja1000::REGISTERS as u16;
/// The ports of one controller.
pub(super) type ChannelPorts = Ports<CHANNEL_PORTS>;

/// A name like `port:0000:00:07.0`, `port:00:07.0,1` or `port:00:07.0@250000`: PCI address, channel, bit rate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    domain: u16,
    bus: u8,
    slot: u8,
    function: u8,
    pub channel: u8,
    pub bitrate: u32,
}

impl FromStr for Name {
    type Err = io::Error;

    fn from_str(text: &str) -> io::Result<Self> {
        parse(text).ok_or_else(|| {
            let why =
                "a card's name is port:ADDRESS[,CHANNEL][@BITRATE], for example port:0000:00:07.0,0@500000";
            io::Error::new(io::ErrorKind::InvalidInput, why)
        })
    }
}

fn parse(text: &str) -> Option<Name> {
    let text = text.strip_prefix(PREFIX)?;
    let (text, bitrate) = match text.split_once('@') {
        Some((text, rate)) => (text, rate.parse().ok()?),
        None => (text, BITRATE),
    };
    let (address, channel) = match text.split_once(',') {
        Some((address, channel)) => (address, channel.parse().ok()?),
        None => (text, 0),
    };
    let (buses, function) = address.split_once('.')?;
    let mut from_the_end = buses.rsplit(':').map(|part| u16::from_str_radix(part, 16).ok());
    let slot = from_the_end.next()??;
    let bus = from_the_end.next()??;
    let domain = from_the_end.next().unwrap_or(Some(0))?;
    if from_the_end.next().is_some() || slot > 31 {
        return None;
    }
    let function = function.parse().ok().filter(|&function: &u8| function < 8)?;
    Some(Name { domain, bus: bus.try_into().ok()?, slot: slot as u8, function, channel, bitrate })
}

impl Name {
    /// As sysfs has it.
    pub fn address(&self) -> String {
        format!("{:04x}:{:02x}:{:02x}.{}", self.domain, self.bus, self.slot, self.function)
    }

    /// The channel without the bit rate, which only one process can use.
    pub fn place(&self) -> (String, u8) {
        (self.address(), self.channel)
    }

    /// A number that no interface of the kernel and no other channel of the first domain has.
    pub fn index(&self) -> u32 {
        let function = u32::from(self.bus) << 8 | u32::from(self.slot) << 3 | u32::from(self.function);
        0x4000_0000 | function << 2 | u32::from(self.channel)
    }

    fn folder(&self) -> PathBuf {
        pci::folder(&self.address())
    }

    fn attribute(&self, name: &str) -> io::Result<String> {
        fs::read_to_string(self.folder().join(name)).map(|text| text.trim().to_owned())
    }

    /// First port and length of a region.
    fn region(&self, number: u8) -> io::Result<(u64, u64)> {
        let text = self.attribute("resource")?;
        let line = text.lines().nth(number.into()).unwrap_or_default();
        let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
        let mut words = line.split_whitespace().map(hex);
        match (words.next().flatten(), words.next().flatten()) {
            (Some(first), Some(last)) if first > 0 && last > first && last <= 0xffff => {
                Ok((first, last - first + 1))
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the card has no I/O ports")),
        }
    }

    /// The row of the card; fails unless the card exists and has no kernel driver.
    pub fn look(&self) -> Result<&'static Board> {
        const STEP: &str = "find";
        let gone = || io::Error::from_raw_os_error(libc::ENODEV);
        let Some((vendor, device)) = ids(&self.folder()) else {
            return Err(Error::new(self.to_string(), STEP, gone()).hint(whereabouts()));
        };
        let Some(board) = boards::find(BOARDS, vendor, device) else {
            let why = "not a Kvaser PCI card";
            let error = io::Error::new(io::ErrorKind::InvalidInput, why);
            return Err(Error::new(self.to_string(), STEP, error).hint(whereabouts()));
        };
        let address = self.address();
        if let Some(driver) = pci::driver(&address) {
            let why = format!("the kernel's driver {driver} uses it");
            let way_out = format!("echo {address} > /sys/bus/pci/devices/{address}/driver/unbind");
            let error = io::Error::new(io::ErrorKind::ResourceBusy, why);
            return Err(Error::new(self.to_string(), STEP, error).hint(way_out));
        }
        Ok(board)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{},{}@{}", self.address(), self.channel, self.bitrate)
    }
}

/// Vendor and device of the card in this folder of sysfs.
fn ids(folder: &Path) -> Option<(u16, u16)> {
    let id = |name| {
        let text = fs::read_to_string(folder.join(name)).ok()?;
        u16::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
    };
    id("vendor").zip(id("device"))
}

/// All cards.
fn whereabouts() -> String {
    let entries = fs::read_dir("/sys/bus/pci/devices").into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| {
            ids(&entry.path()).and_then(|(vendor, device)| boards::find(BOARDS, vendor, device)).is_some()
        })
        .map(|entry| format!("{PREFIX}{}", entry.file_name().to_string_lossy()))
        .collect();
    names.sort();
    match names.is_empty() {
        true => "this machine has no Kvaser PCI card; canter lab has port:00:04.0 and four more".into(),
        false => format!("cards: {}", names.join(", ")),
    }
}

/// A channel that this process owns; dropping this returns it.
#[derive(Debug)]
pub(super) struct Card {
    name: Name,
    /// Locked: one process at a time.
    _lock: File,
    /// This process enabled the card.
    enabled: bool,
}

impl Card {
    /// Takes a channel of a card with this board and returns its controller's ports, which the calling thread may
    /// access.
    /// `number` is the number of the port range.
    pub fn take(name: &Name, board: &Board, number: u32) -> Result<(Self, ChannelPorts)> {
        let step = |step| move |error| explain(name, step, error);
        let lock = File::open(name.folder().join("resource1")).map_err(step("open"))?;
        if !file::try_lock(&lock).map_err(step("lock"))? {
            let why = io::Error::new(io::ErrorKind::ResourceBusy, "another process uses it");
            return Err(Error::new(name.to_string(), "lock", why));
        }
        let enabled = name.attribute("enable").map_err(step("enable"))? == "0";
        if enabled {
            fs::write(name.folder().join("enable"), "1").map_err(step("enable"))?;
        }
        let card = Self { name: name.clone(), _lock: lock, enabled };
        let ports = card.ports(board, number).map_err(step("ioperm"))?;
        Ok((card, ports))
    }

    #[allow(unsafe_code)]
    fn ports(&self, board: &Board, number: u32) -> io::Result<ChannelPorts> {
        let (bridge, bridge_ports) = self.name.region(board.bridge_region)?;
        let (first, count) = self.name.region(board.channels_region)?;
        let fits = |&at: &u64| at + u64::from(CHANNEL_PORTS) <= count && bridge_ports >= s5920::PORTS.into();
        let Some(at) = board.channel_offset(self.name.channel).map(u64::from).filter(fits) else {
            let why = format!("the card has no channel {}", self.name.channel);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        };
        // The bridge is touched once, so its permission needs no range number after this call.
        // SAFETY: the card's bridge region, as sysfs has it, and no driver has the card (`Card::open`). The register
        // that is written sets the timing of the pass-through only.
        let bridge = unsafe { Ports::<{ s5920::PORTS }>::new(bridge as u16, number) };
        bridge.ask_once()?;
        bridge.write_long(s5920::PTCR, s5920::PTCR_WAIT);
        // SAFETY: inside of the card's region of channels. An SJA1000 knows no memory but its own.
        let ports = unsafe { ChannelPorts::new((first + at) as u16, number) };
        ports.permit()?;
        Ok(ports)
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        if self.enabled {
            let _ = fs::write(self.name.folder().join("enable"), "0"); // it may have disappeared
        }
    }
}

fn explain(name: &Name, step: &'static str, error: io::Error) -> Error {
    let way_out = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "needs root, and a kernel that is not locked down",
        Some(libc::ENOSYS) => "only x86 has I/O ports",
        _ => "",
    };
    Error::new(name.to_string(), step, error).hint(way_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_named_by_address_channel_and_bit_rate() {
        let full: Name = "port:0000:00:07.0,0@500000".parse().unwrap();
        for text in ["port:00:07.0", "port:0000:00:07.0", "port:00:07.0,0", "port:00:07.0@500000"] {
            assert_eq!(text.parse::<Name>().unwrap(), full, "{text}");
        }
        assert_eq!(full.to_string(), "port:0000:00:07.0,0@500000");
        let other: Name = "port:0001:0a:1f.7,3@125000".parse().unwrap();
        assert_eq!((other.address().as_str(), other.channel, other.bitrate), ("0001:0a:1f.7", 3, 125_000));
        assert_ne!(full.index(), "port:00:07.0,1".parse::<Name>().unwrap().index());
    }

    #[test]
    fn what_names_no_channel_is_refused_with_the_form() {
        for text in [
            "port:",
            "port:7",
            "port:07.0",
            "port:00:20.0",
            "port:00:07.8",
            "port:0:0:0:7.0",
            "port:00:07.0,x",
        ] {
            let error = text.parse::<Name>().unwrap_err();
            assert!(error.to_string().contains("port:ADDRESS[,CHANNEL][@BITRATE]"), "{text}: {error}");
        }
    }

    #[test]
    fn a_card_that_is_not_there_is_an_error_that_says_where_there_are_some() {
        let error = "port:ffff:00:07.0".parse::<Name>().unwrap().look().unwrap_err();
        assert_eq!(error.source.raw_os_error(), Some(libc::ENODEV));
        assert!(!error.way_out.is_empty());
    }
}
