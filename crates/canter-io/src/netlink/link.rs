//! Interfaces by rtnetlink: the requests, and the content of an `RTM_NEWLINK`.
//!
//! rtnetlink(7), linux/if_link.h, linux/can/vxcan.h.

use super::attribute::{Attributes, u16_at, u32_at};
use super::controller::{BitTiming, Controller};
use super::counters::Counters;
use super::request::Request;

/// Bytes of `struct ifinfomsg`: family, padding, type, index, flags, change.
const IFINFOMSG_BYTES: usize = 16;
const _: () = assert!(size_of::<libc::ifinfomsg>() == IFINFOMSG_BYTES);

/// The peer's header and attributes in a vxcan's `IFLA_INFO_DATA` (linux/can/vxcan.h).
const VXCAN_INFO_PEER: u16 = 1;

fn ifinfomsg(index: u32, flags: u32, change: u32) -> [u8; IFINFOMSG_BYTES] {
    let mut bytes = [0; IFINFOMSG_BYTES];
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes[8..12].copy_from_slice(&flags.to_ne_bytes());
    bytes[12..16].copy_from_slice(&change.to_ne_bytes());
    bytes
}

/// A change of the interface with this index.
fn change(index: u32) -> Request {
    Request::new(libc::RTM_NEWLINK, libc::NLM_F_ACK, &ifinfomsg(index, 0, 0))
}

pub fn get_by_name(name: &str) -> Request {
    let mut request = Request::new(libc::RTM_GETLINK, libc::NLM_F_ACK, &ifinfomsg(0, 0, 0));
    request.put_text(libc::IFLA_IFNAME, name);
    request
}

pub fn get_by_index(index: u32) -> Request {
    Request::new(libc::RTM_GETLINK, libc::NLM_F_ACK, &ifinfomsg(index, 0, 0))
}

pub fn get_all() -> Request {
    Request::new(libc::RTM_GETLINK, libc::NLM_F_DUMP, &ifinfomsg(0, 0, 0))
}

pub fn create(kind: &str, name: &str, peer: Option<&str>) -> Request {
    let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let mut request = Request::new(libc::RTM_NEWLINK, flags, &ifinfomsg(0, 0, 0));
    request.put_text(libc::IFLA_IFNAME, name);
    request.nest(libc::IFLA_LINKINFO, |info| {
        info.put_text(libc::IFLA_INFO_KIND, kind);
        if let Some(peer) = peer {
            info.nest(libc::IFLA_INFO_DATA, |data| {
                data.nest(VXCAN_INFO_PEER, |other| {
                    other.append(&ifinfomsg(0, 0, 0));
                    other.put_text(libc::IFLA_IFNAME, peer);
                });
            });
        }
    });
    request
}

pub fn delete(index: u32) -> Request {
    Request::new(libc::RTM_DELLINK, libc::NLM_F_ACK, &ifinfomsg(index, 0, 0))
}

pub fn set_up(index: u32, up: bool) -> Request {
    let flag = libc::IFF_UP as u32;
    let header = ifinfomsg(index, if up { flag } else { 0 }, flag);
    Request::new(libc::RTM_NEWLINK, libc::NLM_F_ACK, &header)
}

pub fn set_u32(index: u32, attribute: u16, value: u32) -> Request {
    let mut request = change(index);
    request.put_u32(attribute, value);
    request
}

pub fn set_bit_timing(index: u32, timing: &BitTiming) -> Request {
    let mut request = change(index);
    request.nest(libc::IFLA_LINKINFO, |info| {
        info.put_text(libc::IFLA_INFO_KIND, "can");
        info.nest(libc::IFLA_INFO_DATA, |data| timing.encode(data));
    });
    request
}

/// The content of an `RTM_NEWLINK`.
#[derive(Clone, Debug)]
pub struct Link {
    /// `ARPHRD_…`, 280 for CAN.
    pub hardware: u16,
    pub name: String,
    pub index: u32,
    /// `IFLA_INFO_KIND`, `vcan`; empty when it has none.
    pub kind: String,
    /// Bytes of the largest frame.
    pub mtu: u32,
    /// `IFF_UP`
    pub up: bool,
    /// `IFF_RUNNING`
    pub running: bool,
    /// `IFF_ECHO`
    pub echo: bool,
    pub qdisc: String,
    pub tx_queue_len: u32,
    /// The index of a vxcan's other end.
    pub peer: Option<u32>,
    /// State and bit timing of an interface of can-dev.
    pub controller: Option<Controller>,
    /// What it has counted.
    pub counters: Counters,
}

impl Link {
    /// `None` when `payload` is too short or names no interface.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let attributes = Attributes::after_header(payload, IFINFOMSG_BYTES);
        let info = attributes.nested(libc::IFLA_LINKINFO);
        let data = info.get(libc::IFLA_INFO_DATA);
        let kind = info.get_text(libc::IFLA_INFO_KIND).unwrap_or_default();
        let flags = u32_at(payload, 8)?;
        let number = |attribute| attributes.get_u32(attribute).unwrap_or_default();
        let peer = attributes.get_u32(libc::IFLA_LINK).filter(|&index| index != 0 && kind == "vxcan");
        let controller = data.filter(|_| kind == "can").map(|data| Controller::decode(Attributes::new(data)));
        let counters = Counters::decode(
            attributes.get(libc::IFLA_STATS64).unwrap_or_default(),
            info.get(libc::IFLA_INFO_XSTATS).unwrap_or_default(),
        );
        Some(Self {
            hardware: u16_at(payload, 2)?,
            name: attributes.get_text(libc::IFLA_IFNAME)?,
            index: u32_at(payload, 4)?,
            kind,
            mtu: number(libc::IFLA_MTU),
            up: flags & libc::IFF_UP as u32 != 0,
            running: flags & libc::IFF_RUNNING as u32 != 0,
            echo: flags & libc::IFF_ECHO as u32 != 0,
            qdisc: attributes.get_text(libc::IFLA_QDISC).unwrap_or_default(),
            tx_queue_len: number(libc::IFLA_TXQLEN),
            peer,
            controller,
            counters,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn a_vxcan_is_created_with_its_peer_nested_three_deep() {
        #[rustfmt::skip]
        let expected = [
            88, 0, 0, 0, 16, 0, 5, 6, 1, 0, 0, 0, 0, 0, 0, 0, // RTM_NEWLINK, REQUEST|ACK|CREATE|EXCL
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,   // struct ifinfomsg
            6, 0, 3, 0, b'a', 0, 0, 0,                       // IFLA_IFNAME
            48, 0, 18, 0,                                    // IFLA_LINKINFO
            10, 0, 1, 0, b'v', b'x', b'c', b'a', b'n', 0, 0, 0,
            32, 0, 2, 0,                                     // IFLA_INFO_DATA
            28, 0, 1, 0,                                     // VXCAN_INFO_PEER
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            6, 0, 3, 0, b'b', 0, 0, 0,
        ];
        let bytes = create("vxcan", "a", Some("b")).finish(1);
        assert_eq!(bytes, expected);
    }

    proptest! {
        #[test]
        fn any_link_message_is_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Link::decode(&bytes);
        }
    }
}
