//! Interfaces of the kernel's network, by rtnetlink: `can0`, `vcan0`. Only these can be listed by the kernel, created,
//! and found by their index.

use super::{Carrier, Interface, Kind};
use crate::{
    Error, Result,
    netlink::{
        self,
        answer::Refusal,
        controller::{BitTiming, Modes},
        counters::Counters,
        link::{self, Link},
        request::Request,
    },
    pci,
};
use std::{fs, io};

/// Characters that an interface's name may have (`IFNAMSIZ` less its NUL).
const NAME_CHARACTERS_MAX: usize = libc::IFNAMSIZ - 1;

pub(super) fn find(name: &str, carrier: &'static Carrier) -> Result<Interface> {
    const STEP: &str = "find";
    check_name(name, STEP)?;
    match ask(link::get_by_name(name)) {
        Ok(link) => can_interface(link, carrier),
        Err(refusal) => Err(refusal.into_error(name, STEP, &whereabouts())),
    }
}

/// The CAN interface of this index.
pub(crate) fn by_index(index: u32, carrier: &'static Carrier) -> Result<Interface> {
    let link = ask(link::get_by_index(index));
    can_interface(
        link.map_err(|refusal| refusal.into_error(&format!("interface {index}"), "find", ""))?,
        carrier,
    )
}

/// All CAN interfaces of this network namespace, in the kernel's order.
pub(crate) fn list(carrier: &'static Carrier) -> Result<Vec<Interface>> {
    let can = can_links()?.into_iter();
    Ok(can.map(|link| with_driver(from_link(link, carrier))).collect())
}

fn can_links() -> Result<Vec<Link>> {
    let answers =
        netlink::dump(link::get_all()).map_err(|refusal| refusal.into_error("interfaces", "list", ""))?;
    let links = answers.iter().filter_map(|(_, payload)| Link::decode(payload));
    Ok(links.filter(|link| link.hardware == libc::ARPHRD_CAN).collect())
}

/// An interface as rtnetlink describes it, without the fields that only sysfs has.
pub(crate) fn from_link(link: Link, carrier: &'static Carrier) -> Interface {
    let kind = Kind::from_name(&link.kind);
    Interface {
        name: link.name,
        index: link.index,
        mtu: link.mtu,
        up: link.up,
        running: link.running,
        echo: link.echo,
        driver: None,
        qdisc: link.qdisc,
        tx_queue_len: link.tx_queue_len,
        peer: link.peer,
        controller: link.controller,
        kind,
        carrier,
    }
}

fn can_interface(link: Link, carrier: &'static Carrier) -> Result<Interface> {
    if link.hardware != libc::ARPHRD_CAN {
        let no = io::Error::new(io::ErrorKind::InvalidInput, "not a CAN interface");
        return Err(Error::new(link.name, "find", no).hint(whereabouts()));
    }
    Ok(with_driver(from_link(link, carrier)))
}

/// The fields that only sysfs has.
fn with_driver(mut interface: Interface) -> Interface {
    let link = fs::read_link(format!("/sys/class/net/{}/device/driver", interface.name)).ok();
    interface.driver = link.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    interface
}

/// One link, or `ENODEV`.
fn ask(request: Request) -> std::result::Result<Link, Refusal> {
    let answers = netlink::ask(request)?;
    let link = answers.iter().find_map(|(_, payload)| Link::decode(payload));
    link.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV).into())
}

/// By its index, so a new name shows too.
fn again(interface: &Interface, step: &'static str) -> Result<Link> {
    ask(link::get_by_index(interface.index)).map_err(|refusal| refusal.into_error(&interface.name, step, ""))
}

pub(super) fn refresh(interface: &mut Interface) -> Result<()> {
    *interface = with_driver(from_link(again(interface, "refresh")?, interface.carrier));
    Ok(())
}

pub(super) fn counters(interface: &Interface) -> Result<Counters> {
    Ok(again(interface, "counters")?.counters)
}

/// Creates a virtual interface. It is down.
pub(crate) fn create(
    kind: &'static str,
    name: &str,
    peer: Option<&str>,
    carrier: &'static Carrier,
) -> Result<Interface> {
    [Some(name), peer].into_iter().flatten().try_for_each(|name| check_name(name, "create"))?;
    netlink::ask(link::create(kind, name, peer)).map_err(|refusal| {
        let hint = match (refusal.source.raw_os_error(), peer) {
            (Some(libc::EOPNOTSUPP), _) => format!("modprobe {kind}, or run in canter lab"),
            (Some(libc::EEXIST), Some(peer)) => {
                format!("{name} or {peer} exists already; ip link delete removes it")
            }
            (Some(libc::EEXIST), None) => "ip link delete removes it".to_owned(),
            _ => String::new(),
        };
        refusal.into_error(name, "create", &hint)
    })?;
    find(name, carrier)
}

pub(super) fn delete(interface: &Interface) -> Result<()> {
    match interface.kind {
        Kind::Can => super::refuse_to_delete(interface),
        _ => change(interface, link::delete(interface.index), "delete", |_, _| String::new()),
    }
}

pub(super) fn set_up(interface: &mut Interface, up: bool) -> Result<()> {
    let step = if up { "up" } else { "down" };
    set(interface, link::set_up(interface.index, up), step, |interface, error| {
        let unset = up && interface.kind == Kind::Can && interface.bitrate().is_none();
        if unset && error == Some(libc::EINVAL) { "set a bit rate first".into() } else { String::new() }
    })
}

pub(super) fn set_mtu(interface: &mut Interface, bytes: u32) -> Result<()> {
    set(interface, link::set_u32(interface.index, libc::IFLA_MTU, bytes), "set mtu", busy)
}

pub(super) fn set_tx_queue_len(interface: &mut Interface, frames: u32) -> Result<()> {
    let request = link::set_u32(interface.index, libc::IFLA_TXQLEN, frames);
    set(interface, request, "set txqueuelen", |_, _| String::new())
}

pub(super) fn set_bit_timing(interface: &mut Interface, timing: &BitTiming) -> Result<()> {
    const STEP: &str = "set bit rate";
    if interface.kind != Kind::Can {
        let why = format!("a {} has no bit rate", interface.kind);
        return Err(Error::unsupported(&interface.name, STEP, why));
    }
    let request = link::set_bit_timing(interface.index, timing);
    set(interface, request, STEP, |interface, error| match error {
        Some(libc::EOPNOTSUPP) => modes_hint(interface, timing),
        Some(libc::EINVAL | libc::EDOM | libc::ERANGE) => format!(
            "its clock of {} Hz cannot produce {} bit/s; the kernel log may have details",
            interface.controller.as_ref().map_or(0, |controller| controller.clock_hz),
            timing.bitrate,
        ),
        _ => busy(interface, error),
    })
}

/// Which of the wanted modes the controller does not have.
fn modes_hint(interface: &Interface, timing: &BitTiming) -> String {
    let supported = interface.controller.as_ref().and_then(|controller| controller.supported);
    let missing = supported.map(|supported| Modes(timing.modes().0 & !supported.0)).unwrap_or_default();
    let names: Vec<&str> = missing.names().collect();
    if names.is_empty() {
        "the controller does not have one of the wanted modes".into()
    } else {
        format!("the controller does not have {}", names.join(", "))
    }
}

fn busy(interface: &Interface, error: Option<i32>) -> String {
    let busy = error == Some(libc::EBUSY);
    if busy { format!("bring it down first: ip link set {} down", interface.name) } else { String::new() }
}

/// Makes a change and reads the interface again.
fn set(
    interface: &mut Interface,
    request: Request,
    step: &'static str,
    hint: impl FnOnce(&Interface, Option<i32>) -> String,
) -> Result<()> {
    change(interface, request, step, hint)?;
    refresh(interface)
}

fn change(
    interface: &Interface,
    request: Request,
    step: &'static str,
    hint: impl FnOnce(&Interface, Option<i32>) -> String,
) -> Result<()> {
    netlink::ask(request).map(drop).map_err(|refusal| {
        let hint = hint(interface, refusal.source.raw_os_error());
        refusal.into_error(&interface.name, step, &hint)
    })
}

/// A hint for an unknown name: the interfaces that exist.
fn whereabouts() -> String {
    let names: Vec<String> = can_links().unwrap_or_default().into_iter().map(|link| link.name).collect();
    if names.is_empty() {
        "this machine has no CAN interface; canter lab has can0…can4".into()
    } else {
        format!("CAN interfaces: {}", names.join(", "))
    }
}

/// Whether the kernel accepts a name (`dev_valid_name`).
fn check_name(name: &str, step: &'static str) -> Result<()> {
    let bad = |character: char| {
        character == '/' || character == ':' || character == '\0' || character.is_whitespace()
    };
    let fault = if name.is_empty() || name.len() > NAME_CHARACTERS_MAX {
        "an interface's name has 1…15 characters"
    } else if name.contains(bad) || name == "." || name == ".." {
        "an interface's name cannot contain spaces, slashes or colons, or be . or .."
    } else {
        return Ok(());
    };
    Err(Error::new(name, step, io::Error::new(io::ErrorKind::InvalidInput, fault)))
}

/// The interface that the driver has created for a card.
pub(super) fn name_of_card(address: &str, _bitrate: u32) -> Result<String> {
    pci::device(address, "net")
}

pub(super) fn up_by(name: &str, set_rate: bool) -> String {
    let rate = if set_rate { " type can bitrate 500000" } else { "" };
    format!("ip link set {name} up{rate}")
}

pub(super) fn restart_by(name: &str) -> String {
    format!("ip link set {name} type can restart")
}

pub(super) fn restart_always_by(name: &str) -> String {
    format!("ip link set {name} down; ip link set {name} up type can restart-ms 100")
}
