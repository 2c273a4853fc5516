//! canwire, the virtual CAN bus that has time: its nodes, its faults and its source of traffic, by generic netlink.
//!
//! A *bus* is one wire, a *node* a controller on it with an interface, the *source* another controller
//! from which the kernel sends by a timer. Bit rates, modes and restart of a node are set as of any controller, by its
//! [`Interface`](crate::Interface). A [`Tap`](crate::tap::Tap) reads the frames on a wire. kernel/uapi/canwire.h.

mod bus;
mod fault;
mod node;
mod source;

use super::{
    Answer,
    answer::Refusal,
    attribute::{Attributes, u32_at, u64_at},
    generic::{self, Family},
    request::Request,
};
use crate::uapi::canwire::{CANWIRE_GENL_NAME, CANWIRE_GENL_VERSION};
use crate::{Error, Result};
use std::{
    io,
    sync::{Mutex, PoisonError},
};

pub use bus::{Bus, BusStats, bus, buses, set_seed, set_slip};
pub use fault::{Fault, Injection, babble, connect, inject, stop_babbling, stop_injecting};
pub use node::{Fifo, Node, NodeOptions, NodeStats, add, delete, node, nodes, nodes_of};
pub use source::{Pace, Random, Source, SourceStats, load, start, start_schedule, stop};

/// The remedy when the module is not loaded.
const MISSING: &str =
    "modprobe canwire (kernel/README.md describes how to build it), or canter lab --bus wire";

/// Whether the module is loaded.
///
/// # Errors
/// `Unsupported`, with the way out.
pub fn available() -> Result<()> {
    find_family().map(drop)
}

/// The family's number, asked for once: it changes only when the module is loaded again.
static FAMILY: Mutex<Option<Family>> = Mutex::new(None);

fn family() -> Result<Family> {
    let mut known = FAMILY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(family) = *known {
        return Ok(family);
    }
    let family = find_family()?;
    *known = Some(family);
    Ok(family)
}

fn find_family() -> Result<Family> {
    let found = match Family::find(CANWIRE_GENL_NAME, CANWIRE_GENL_VERSION) {
        // No generic netlink (a kernel without it, user-mode emulation): nor is there a module that speaks it.
        Err(refusal) if refusal.source.raw_os_error() == Some(libc::EPROTONOSUPPORT) => None,
        found => found.map_err(|refusal| refusal.into_error("canwire", "find", ""))?,
    };
    found.ok_or_else(|| {
        Error::unsupported("canwire", "find", "the kernel module canwire is not loaded").hint(MISSING)
    })
}

/// Sends a command about `thing`, with what `fill` adds.
fn command(thing: &str, step: &'static str, command: u8, fill: impl FnOnce(&mut Request)) -> Result<()> {
    let mut request = family()?.request(command);
    fill(&mut request);
    generic::ask(request).map(drop).map_err(|refusal| explain(refusal, thing, step))
}

/// Asks for a list.
fn list(thing: &str, command: u8, fill: impl FnOnce(&mut Request)) -> Result<Vec<Answer>> {
    let mut request = family()?.dump_request(command);
    fill(&mut request);
    generic::dump(request).map_err(|refusal| explain(refusal, thing, "list"))
}

/// Asks about one thing.
fn get(thing: &str, command: u8, fill: impl FnOnce(&mut Request)) -> Result<Vec<Answer>> {
    let mut request = family()?.request(command);
    fill(&mut request);
    generic::ask(request).map_err(|refusal| explain(refusal, thing, "find"))
}

fn explain(refusal: Refusal, thing: &str, step: &'static str) -> Error {
    *FAMILY.lock().unwrap_or_else(PoisonError::into_inner) = None; // the module may have been loaded again
    let hint = match refusal.source.raw_os_error() {
        Some(libc::ENODEV | libc::ENOENT) => "canter wire list shows buses and nodes",
        _ => "",
    };
    refusal.into_error(thing, step, hint)
}

fn nothing(thing: &str) -> Error {
    let no = io::Error::new(io::ErrorKind::InvalidData, "the module's answer is invalid");
    Error::new(thing, "find", no).hint("are canter and canwire of the same version?")
}

/// The attributes of the answers that have any.
fn each(answers: &[Answer]) -> impl Iterator<Item = Attributes<'_>> {
    answers.iter().map(|(_, payload)| generic::attributes(payload))
}

/// Decodes any bytes as [`super::decode_any`] does: a node, and a bus with its source.
pub(super) fn decode_any(payload: &[u8]) {
    let attributes = generic::attributes(payload);
    let _ = (Node::decode(attributes), Bus::decode(attributes));
}

fn byte(attributes: Attributes<'_>, kind: u16) -> Option<u8> {
    attributes.get(kind)?.first().copied()
}

/// The number at byte `at` of a structure; one that is not there was not in that version yet and is 0.
fn long(bytes: &[u8], at: usize) -> u64 {
    u64_at(bytes, at).unwrap_or_default()
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32_at(bytes, at).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Frame;
    use proptest::prelude::*;

    #[test]
    fn without_the_module_the_error_names_the_ways_out() {
        if std::path::Path::new("/sys/module/canwire").exists() {
            return eprintln!("SKIP: canwire is loaded here");
        }
        let error = available().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        let text = error.to_string();
        assert!(
            text.starts_with("canwire: find: the kernel module canwire is not loaded (modprobe canwire"),
            "{text}"
        );
    }

    #[test]
    fn a_frame_is_laid_out_as_the_kernel_has_it() {
        let frame: Frame = "12345678##1AABB".parse().unwrap();
        let bytes = frame.kernel_bytes();
        assert_eq!(bytes[..4], 0x9234_5678u32.to_ne_bytes());
        assert_eq!(bytes[4..12], [2, 5, 0, 0, 0xaa, 0xbb, 0, 0]);
    }

    proptest! {
        #[test]
        fn any_answer_is_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let answers = [(0, bytes)];
            for attributes in each(&answers) {
                let _ = (Node::decode(attributes), Bus::decode(attributes));
            }
        }
    }
}
