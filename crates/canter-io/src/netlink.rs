//! netlink, the kernel's interface to network interfaces, can-gw jobs and the virtual wire: one request and its
//! answers. [`crate::monitor`] receives the kernel's unsolicited reports.
//!
//! `attribute`, `request` and `answer` only look at bytes; `socket` makes the system calls; `link`, [`can_gw`] and
//! [`wire`] know what the bytes mean. linux/netlink.h, linux/rtnetlink.h, netlink(7), rtnetlink(7).

pub(crate) mod answer;
pub(crate) mod attribute;
pub mod can_gw;
pub(crate) mod controller;
pub(crate) mod counters;
pub(crate) mod generic;
pub(crate) mod link;
pub(crate) mod request;
pub(crate) mod socket;
pub mod wire;

use std::io;

use crate::Error;
use answer::{Messages, Refusal};
use request::Request;
use socket::{Protocol, Socket};

/// How often a dump is repeated when the kernel's list changes meanwhile.
const DUMP_ATTEMPTS_MAX: usize = 10;

/// One answer: its type (`RTM_…`) and all behind the message header.
pub(crate) type Answer = (u16, Vec<u8>);

/// A question with one answer, or a change: returns when the kernel has acknowledged it.
pub(crate) fn ask(request: Request) -> Result<Vec<Answer>, Refusal> {
    ask_by(Protocol::Route, request)
}

fn ask_by(protocol: Protocol, request: Request) -> Result<Vec<Answer>, Refusal> {
    match exchange(protocol, request)? {
        Some(answers) => Ok(answers),
        None => Err(io::Error::from(io::ErrorKind::InvalidData).into()), // only dumps are interrupted
    }
}

/// A list. Repeated when it changed while it was read (`NLM_F_DUMP_INTR`), since it would be neither old nor new.
pub(crate) fn dump(request: Request) -> Result<Vec<Answer>, Refusal> {
    dump_by(Protocol::Route, request)
}

fn dump_by(protocol: Protocol, request: Request) -> Result<Vec<Answer>, Refusal> {
    for _ in 0..DUMP_ATTEMPTS_MAX {
        if let Some(answers) = exchange(protocol, request.clone())? {
            return Ok(answers);
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "the list kept changing while it was read").into())
}

/// Sends the request on its own socket and collects the answers up to the acknowledgement. `None`: the dump was
/// interrupted by a change.
fn exchange(protocol: Protocol, request: Request) -> Result<Option<Vec<Answer>>, Refusal> {
    const SEQUENCE: u32 = 1; // one request per socket
    let socket = Socket::open(protocol)?;
    socket.send(&request.finish(SEQUENCE))?;
    let (mut answers, mut consistent, mut datagram) = (Vec::new(), true, Vec::new());
    loop {
        socket.receive(&mut datagram)?;
        for message in Messages::new(&datagram).filter(|message| message.sequence == SEQUENCE) {
            consistent &= i32::from(message.flags) & libc::NLM_F_DUMP_INTR == 0;
            match message.end() {
                None => answers.push((message.kind, message.payload.to_vec())),
                Some(end) => return end.map(|()| consistent.then_some(answers)),
            }
        }
    }
}

/// Decodes the messages of a datagram as every kind of answer that this crate reads. For fuzzers: an answer is decoded by
/// the request that it belongs to.
#[doc(hidden)]
pub fn decode_any(datagram: &[u8]) {
    for message in Messages::new(datagram) {
        let _ = message.end();
        let _ = link::Link::decode(message.payload);
        can_gw::decode_any(message.payload);
        generic::decode_any(message.payload);
        wire::decode_any(message.payload);
    }
}

/// The way out when the kernel requires `CAP_NET_ADMIN`.
const NEEDS_CAP_NET_ADMIN: &str = "needs CAP_NET_ADMIN: run as root, or setcap cap_net_admin,cap_net_raw+ep on \
                                   the program, or run in canter lab";

impl Refusal {
    /// The error of this crate: the kernel's own words and `hint`, as far as there are any, become the way out.
    /// When a capability is missing, the way out names it instead of the hint.
    pub(crate) fn into_error(self, thing: &str, step: &'static str, hint: &str) -> Error {
        let message = if self.message.is_empty() {
            String::new()
        } else {
            format!("the kernel reports: {}", self.message)
        };
        let hint = if self.source.raw_os_error() == Some(libc::EPERM) { NEEDS_CAP_NET_ADMIN } else { hint };
        let way_out: Vec<&str> =
            [message.as_str(), hint].into_iter().filter(|part| !part.is_empty()).collect();
        Error::new(thing, step, self.source).hint(way_out.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_carries_the_kernels_words_and_the_way_out() {
        let refusal =
            Refusal { source: io::Error::from_raw_os_error(libc::EINVAL), message: "no bit rate".into() };
        let error = refusal.into_error("can0", "up", "set a bit rate first");
        assert_eq!(
            error.to_string(),
            "can0: up: invalid argument (the kernel reports: no bit rate; set a bit rate first)"
        );
        let refusal = Refusal::from(io::Error::from_raw_os_error(libc::EPERM));
        assert!(
            refusal
                .into_error("vcan0", "create", "")
                .to_string()
                .contains("needs CAP_NET_ADMIN: run as root, or setcap")
        );
    }
}
