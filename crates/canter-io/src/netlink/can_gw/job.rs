//! One can-gw job: the frames that it forwards, and its modifications.

use super::{Crc8, Modification, Xor, rtcanmsg};
use crate::Filter;
use crate::netlink::attribute::{Attributes, u16_at, u32_at};
use crate::netlink::request::Request;
use crate::uapi::can_gw::{
    CGW_CS_CRC8, CGW_CS_XOR, CGW_DST_IF, CGW_FDMOD_AND, CGW_FDMOD_OR, CGW_FDMOD_SET, CGW_FDMOD_XOR,
    CGW_FILTER, CGW_FLAGS_CAN_ECHO, CGW_FLAGS_CAN_FD, CGW_FLAGS_CAN_IIF_TX_OK, CGW_FLAGS_CAN_SRC_TSTAMP,
    CGW_LIM_HOPS, CGW_MOD_AND, CGW_MOD_OR, CGW_MOD_SET, CGW_MOD_UID, CGW_MOD_XOR, CGW_SRC_IF,
    CGW_TYPE_CAN_CAN, RTCANMSG_BYTES,
};

/// A job: frames received on `source` that match are sent on `destination`. The modifications are applied in the order
/// and, or, xor, set; then the checksums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// The index of the source interface.
    pub source: u32,
    /// The index of the destination interface.
    pub destination: u32,
    /// Which frames; `None`: all, RTR frames too. With the EFF flag left out of the mask, both identifier formats.
    pub filter: Option<Filter>,
    /// The job forwards FD frames and no classic ones; otherwise the other way round. Both need two jobs.
    pub fd: bool,
    /// Local sockets on the destination see the forwarded frames as well.
    pub echo: bool,
    /// The frame keeps the stamp of its reception; otherwise the destination makes a new one.
    pub keep_stamp: bool,
    /// Source and destination may be the same interface.
    pub same_interface: bool,
    /// Combined with the frame by and.
    pub and: Modification,
    /// Combined with the frame by or.
    pub or: Modification,
    /// Combined with the frame by exclusive or.
    pub xor: Modification,
    /// Replaces parts of the frame.
    pub set: Modification,
    /// Written after the modifications, and only by jobs that have some.
    pub crc8: Option<Crc8>,
    /// Written after `crc8`, and only by jobs that have modifications.
    pub xor_checksum: Option<Xor>,
    /// How often a frame may be forwarded by the gateways of this machine, from this job on: 1…`max_hops` of the
    /// module (1 unless it was loaded with more).
    pub hops_max: Option<u8>,
    /// Names the job, so that its modifications can be replaced while it works; not 0, and only for jobs that have
    /// modifications.
    pub user_id: Option<u32>,
}

/// The attribute of each operation in classic and in FD jobs, in the order they are carried out.
const OPERATIONS: [(u16, u16); 4] = [
    (CGW_MOD_AND, CGW_FDMOD_AND),
    (CGW_MOD_OR, CGW_FDMOD_OR),
    (CGW_MOD_XOR, CGW_FDMOD_XOR),
    (CGW_MOD_SET, CGW_FDMOD_SET),
];

impl Job {
    /// A job that forwards every classic frame unchanged.
    pub fn between(source: u32, destination: u32) -> Self {
        Self { source, destination, ..Self::default() }
    }

    /// Whether it changes frames.
    pub fn modifies(&self) -> bool {
        !self.operands().iter().all(Modification::is_empty)
    }

    fn operands(&self) -> [Modification; 4] {
        [self.and, self.or, self.xor, self.set]
    }

    /// The fault of a job of which the kernel would ignore a part, or worse; `None` for a valid job.
    pub fn fault(&self) -> Option<&'static str> {
        let operands = self.operands().into_iter().zip([false, false, false, true]);
        if self.source == 0 || self.destination == 0 {
            return Some("an interface of index 0: simulated interfaces are outside of the kernel");
        } else if self.source == self.destination && !self.same_interface {
            return Some("source and destination are the same interface, which the job does not allow");
        } else if self.hops_max == Some(0) || self.user_id == Some(0) {
            return Some("hops_max and user_id are not 0");
        } else if !self.modifies() && (self.crc8.is_some() || self.xor_checksum.is_some()) {
            return Some("the kernel writes checksums into modified frames only: add a modification");
        } else if !self.modifies() && self.user_id.is_some() {
            return Some("the kernel ignores the user id of a job without modifications");
        }
        let spans =
            [self.crc8.as_ref().map(|crc8| crc8.span), self.xor_checksum.as_ref().map(|xor| xor.span)];
        if !spans.iter().flatten().all(|span| span.fits(self.fd)) {
            return Some("a checksum's place is outside of the payload: -8…7, of FD jobs -64…63");
        }
        operands.into_iter().find_map(|(operand, set)| operand.fault(self.fd, set))
    }

    /// Whether it needs a kernel without CVE-2026-31570.
    pub(super) fn has_relative_crc8(&self) -> bool {
        self.crc8.as_ref().is_some_and(|crc8| crc8.span.is_relative())
    }

    fn flags(&self) -> u16 {
        let flag = |flag, on| if on { flag } else { 0 };
        flag(CGW_FLAGS_CAN_ECHO, self.echo)
            | flag(CGW_FLAGS_CAN_SRC_TSTAMP, self.keep_stamp)
            | flag(CGW_FLAGS_CAN_IIF_TX_OK, self.same_interface)
            | flag(CGW_FLAGS_CAN_FD, self.fd)
    }

    /// The job as a request of type `RTM_NEWROUTE` or `RTM_DELROUTE`.
    pub(super) fn request(&self, kind: u16) -> Request {
        let mut request = Request::new(kind, libc::NLM_F_ACK, &rtcanmsg(self.flags()));
        if let Some(hops) = self.hops_max {
            request.put(CGW_LIM_HOPS, &[hops]);
        }
        for (operand, (classic, fd)) in self.operands().iter().zip(OPERATIONS) {
            if !operand.is_empty() {
                request.put(if self.fd { fd } else { classic }, &operand.encode(self.fd));
            }
        }
        if let Some(user_id) = self.user_id {
            request.put_u32(CGW_MOD_UID, user_id);
        }
        if let Some(crc8) = &self.crc8 {
            request.put(CGW_CS_CRC8, &crc8.encode());
        }
        if let Some(xor) = &self.xor_checksum {
            request.put(CGW_CS_XOR, &xor.encode());
        }
        if let Some(filter) = self.filter {
            request.put(CGW_FILTER, &[filter.id.to_ne_bytes(), filter.mask.to_ne_bytes()].concat());
        }
        request.put_u32(CGW_SRC_IF, self.source);
        request.put_u32(CGW_DST_IF, self.destination);
        request
    }

    /// From `struct rtcanmsg` and attributes; `None` when it is something else.
    pub(super) fn decode(message: &[u8]) -> Option<Self> {
        let [family, kind] = *message.first_chunk()?;
        if i32::from(family) != libc::AF_CAN || kind != CGW_TYPE_CAN_CAN {
            return None;
        }
        let flags = u16_at(message, 2)?;
        let fd = flags & CGW_FLAGS_CAN_FD != 0;
        let attributes = Attributes::after_header(message, RTCANMSG_BYTES);
        let [and, or, xor, set] = OPERATIONS.map(|(classic, of_fd)| {
            let operand = attributes.get(if fd { of_fd } else { classic });
            operand.and_then(|bytes| Modification::decode(bytes, fd)).unwrap_or_default()
        });
        Some(Self {
            source: attributes.get_u32(CGW_SRC_IF)?,
            destination: attributes.get_u32(CGW_DST_IF)?,
            filter: attributes.get(CGW_FILTER).and_then(filter),
            fd,
            echo: flags & CGW_FLAGS_CAN_ECHO != 0,
            keep_stamp: flags & CGW_FLAGS_CAN_SRC_TSTAMP != 0,
            same_interface: flags & CGW_FLAGS_CAN_IIF_TX_OK != 0,
            and,
            or,
            xor,
            set,
            crc8: attributes.get(CGW_CS_CRC8).and_then(Crc8::decode),
            xor_checksum: attributes.get(CGW_CS_XOR).and_then(Xor::decode),
            hops_max: attributes.get(CGW_LIM_HOPS).and_then(|value| value.first().copied()),
            user_id: attributes.get_u32(CGW_MOD_UID),
        })
    }
}

/// `struct can_filter`.
fn filter(bytes: &[u8]) -> Option<Filter> {
    Some(Filter { id: u32_at(bytes, 0)?, mask: u32_at(bytes, 4)? })
}

#[cfg(test)]
mod tests {
    use super::super::{Profile, Span};
    use super::*;
    use crate::netlink::request::MESSAGE_HEADER_BYTES;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn a_job_is_laid_out_as_the_kernel_reads_it() {
        let job = Job {
            filter: Some(Filter { id: 0x123, mask: 0xc000_07ff }),
            echo: true,
            set: Modification { len: Some(4), ..Modification::from_id(0x333) },
            xor_checksum: Some(Xor { span: Span::new(0, -2, -1), init: 0xa5 }),
            hops_max: Some(1),
            ..Job::between(3, 7)
        };
        #[rustfmt::skip]
        let expected = [
            88, 0, 0, 0, 24, 0, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0, // RTM_NEWROUTE, REQUEST|ACK
            29, 1, 1, 0,                                      // AF_CAN, CGW_TYPE_CAN_CAN, CGW_FLAGS_CAN_ECHO
            5, 0, 13, 0, 1, 0, 0, 0,                          // CGW_LIM_HOPS
            21, 0, 4, 0, 0x33, 3, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, // CGW_MOD_SET: ID|LEN
            8, 0, 5, 0, 0, 0xfe, 0xff, 0xa5,                  // CGW_CS_XOR
            12, 0, 11, 0, 0x23, 1, 0, 0, 0xff, 7, 0, 0xc0,    // CGW_FILTER
            8, 0, 9, 0, 3, 0, 0, 0, 8, 0, 10, 0, 7, 0, 0, 0,  // CGW_SRC_IF, CGW_DST_IF
        ];
        assert_eq!(job.request(libc::RTM_NEWROUTE).finish(1), expected);
    }

    #[test]
    fn what_the_kernel_would_ignore_or_suffer_from_is_refused() {
        let plain = Job::between(3, 7);
        let modifying = Job { set: Modification::from_id(1), ..plain.clone() };
        let xor = |result| Some(Xor { span: Span::new(0, 6, result), init: 0 });
        assert_eq!((plain.fault(), modifying.fault()), (None, None));
        for (job, part) in [
            (Job::between(0, 0), "index 0"),
            (Job::between(3, 3), "the same interface"),
            (Job { xor_checksum: xor(7), ..plain.clone() }, "modified frames only"),
            (Job { user_id: Some(1), ..plain.clone() }, "user id"),
            (Job { hops_max: Some(0), ..plain.clone() }, "not 0"),
            (Job { xor_checksum: xor(8), ..modifying.clone() }, "outside"),
            (Job { set: Modification { len: Some(16), ..Default::default() }, ..plain.clone() }, "deleted"),
            (
                Job { or: Modification { flags: Some(1), ..Default::default() }, ..plain.clone() },
                "FD jobs only",
            ),
            (Job { or: Modification::from_data(&[1; 9]), ..plain.clone() }, "8 bytes"),
        ] {
            assert!(job.fault().is_some_and(|fault| fault.contains(part)), "{part}: {:?}", job.fault());
        }
    }

    fn modification(fd: bool) -> impl Strategy<Value = Modification> {
        let data = vec(any::<u8>(), if fd { 64 } else { 8 });
        (option::of(any::<u32>()), option::of(any::<u8>()), option::of(any::<u8>()), option::of(data))
            .prop_map(move |(id, len, flags, data)| Modification {
                id,
                len,
                flags: flags.filter(|_| fd),
                data: data.and_then(|data| Modification::from_data(&data).data),
            })
    }

    fn checksums() -> impl Strategy<Value = (Option<Crc8>, Option<Xor>)> {
        let span = || any::<[i8; 3]>().prop_map(|[from, to, result]| Span { from, to, result });
        let profile = prop_oneof![
            Just(Profile::None),
            any::<u8>().prop_map(Profile::Value),
            any::<[u8; 16]>().prop_map(Profile::Counter),
            Just(Profile::Identifier),
        ];
        let crc8 =
            (span(), any::<[u8; 3]>(), profile).prop_map(|(span, [polynomial, init, final_xor], profile)| {
                Crc8 { init, final_xor, profile, ..Crc8::with_polynomial(polynomial, span) }
            });
        (option::of(crc8), option::of((span(), any::<u8>()).prop_map(|(span, init)| Xor { span, init })))
    }

    fn job() -> impl Strategy<Value = Job> {
        let filter = (any::<u32>(), 1..u32::MAX).prop_map(|(id, mask)| Filter { id, mask });
        let rest = (
            any::<[u32; 2]>(),
            any::<[bool; 3]>(),
            option::of(filter),
            option::of(1u8..),
            option::of(1u32..),
        );
        (any::<bool>(), rest, checksums()).prop_flat_map(|(fd, rest, (crc8, xor_checksum))| {
            (modification(fd), modification(fd), modification(fd), modification(fd)).prop_map(
                move |(and, or, xor, set)| {
                    let (
                        [source, destination],
                        [echo, keep_stamp, same_interface],
                        filter,
                        hops_max,
                        user_id,
                    ) = rest;
                    Job {
                        source,
                        destination,
                        filter,
                        fd,
                        echo,
                        keep_stamp,
                        same_interface,
                        and,
                        or,
                        xor,
                        set,
                        crc8,
                        xor_checksum,
                        hops_max,
                        user_id,
                    }
                },
            )
        })
    }

    proptest! {
        #[test]
        fn a_job_comes_back_as_it_was_sent(job in job()) {
            let bytes = job.request(libc::RTM_NEWROUTE).finish(1);
            prop_assert_eq!(Job::decode(&bytes[MESSAGE_HEADER_BYTES..]), Some(job));
        }
    }
}
