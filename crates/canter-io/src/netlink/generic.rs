//! Generic netlink: families of modules, by name. The kernel assigns each family a number when its module is loaded, so
//! a program must first ask for the number.
//!
//! linux/genetlink.h: `struct genlmsghdr` (command, version, two reserved bytes) and the controller, a family itself.

use super::{
    Answer,
    answer::Refusal,
    attribute::{Attributes, u16_at},
    request::Request,
    socket::Protocol,
};

/// Bytes of `struct genlmsghdr` (`GENL_HDRLEN`).
const HEADER_BYTES: usize = 4;

/// The controller, which knows all families, and what it is asked (linux/genetlink.h).
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// A registered family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    id: u16,
    version: u8,
}

impl Family {
    /// The family of this name, to be spoken to in this version; `None` when no module has registered it.
    pub fn find(name: &str, version: u8) -> Result<Option<Self>, Refusal> {
        let controller = Self { id: GENL_ID_CTRL, version: 1 };
        let mut request = controller.request(CTRL_CMD_GETFAMILY);
        request.put_text(CTRL_ATTR_FAMILY_NAME, name);
        match super::ask_by(Protocol::Generic, request) {
            Ok(answers) => {
                let id = answers.iter().find_map(|(_, payload)| family_id(payload));
                Ok(id.map(|id| Self { id, version }))
            }
            // "No such file or directory": genetlink's word for an unknown family.
            Err(refusal) if refusal.source.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    /// A command, to be acknowledged.
    pub fn request(self, command: u8) -> Request {
        self.message(command, libc::NLM_F_ACK)
    }

    /// A list that is asked for.
    pub fn dump_request(self, command: u8) -> Request {
        self.message(command, libc::NLM_F_DUMP)
    }

    fn message(self, command: u8, flags: i32) -> Request {
        Request::new(self.id, flags, &[command, self.version, 0, 0])
    }
}

/// Sends a command; returns when the family has acknowledged it.
pub fn ask(request: Request) -> Result<Vec<Answer>, Refusal> {
    super::ask_by(Protocol::Generic, request)
}

/// Asks for a list.
pub fn dump(request: Request) -> Result<Vec<Answer>, Refusal> {
    super::dump_by(Protocol::Generic, request)
}

/// The attributes of an answer.
pub fn attributes(payload: &[u8]) -> Attributes<'_> {
    Attributes::after_header(payload, HEADER_BYTES)
}

/// Decodes any bytes as [`super::decode_any`] does: the number of a family.
pub(super) fn decode_any(payload: &[u8]) {
    let _ = family_id(payload);
}

fn family_id(payload: &[u8]) -> Option<u16> {
    u16_at(attributes(payload).get(CTRL_ATTR_FAMILY_ID)?, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn a_command_is_laid_out_as_generic_netlink_wants_it() {
        let mut request = Family { id: 0x21, version: 2 }.request(5);
        request.put_u64(7, 1);
        #[rustfmt::skip]
        let expected = [
            32, 0, 0, 0, 0x21, 0, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0, // 32 bytes, REQUEST|ACK
            5, 2, 0, 0,                                         // struct genlmsghdr
            12, 0, 7, 0, 1, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(request.finish(1), expected);
    }

    #[test]
    fn the_controller_itself_is_found_by_name_and_others_are_told_apart() {
        let Ok(found) = Family::find("nlctrl", 1) else {
            return eprintln!("SKIP: this kernel has no generic netlink");
        };
        assert_eq!(found.map(|family| family.id), Some(GENL_ID_CTRL));
        assert_eq!(Family::find("no-such-family", 1).unwrap(), None);
    }
}
