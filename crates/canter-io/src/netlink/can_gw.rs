//! can-gw, the kernel's own CAN gateway: jobs that forward frames from one interface to another, on the way through
//! the receive interrupt, without a process.
//!
//! Jobs are routes of the protocol family `AF_CAN`: `RTM_NEWROUTE`, `RTM_DELROUTE` and a dump by `RTM_GETROUTE`,
//! each with a `struct rtcanmsg` and attributes. linux/can/gw.h; cangw(1) uses the same interface.

mod checksum;
mod gateway;
mod job;
mod kernel_fix;
mod modification;

use std::{collections::VecDeque, io, path::Path};

use super::answer::Refusal;
use super::attribute::Attributes;
use super::link::{Link, get_by_index};
use super::request::Request;
use crate::uapi::can_gw::{
    CGW_DELETED, CGW_DROPPED, CGW_DST_IF, CGW_HANDLED, CGW_SRC_IF, CGW_TYPE_CAN_CAN, RTCANMSG_BYTES,
};
use crate::{Error, Result};

pub use checksum::{Crc8, Profile, Span, Xor};
pub use gateway::CanGateway;
pub use job::Job;
pub use kernel_fix::relative_crc8_is_safe;
pub use modification::Modification;

/// The counters of a job in frames; each wraps at 2³².
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounters {
    /// Forwarded.
    pub handled: u32,
    /// Not forwarded: the destination did not accept them (queue full, interface down), or there was no memory.
    pub dropped: u32,
    /// Deleted: too many hops, or a modification made them too long.
    pub deleted: u32,
}

/// A job that the kernel has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The job.
    pub job: Job,
    /// The job's counters.
    pub counters: JobCounters,
    /// `struct rtcanmsg` and attributes as the kernel stores them; they may contain operands that do not count, and the
    /// kernel deletes only a job with exactly the same bytes.
    message: Vec<u8>,
}

/// `struct rtcanmsg`.
fn rtcanmsg(flags: u16) -> [u8; RTCANMSG_BYTES] {
    let [low, high] = flags.to_ne_bytes();
    [libc::AF_CAN as u8, CGW_TYPE_CAN_CAN, low, high]
}

/// Fails unless this kernel has can-gw.
///
/// # Errors
/// `Unsupported` when the module can-gw is not loaded (sysfs has no `/sys/module/can_gw`).
pub fn available() -> Result<()> {
    if Path::new("/sys/module/can_gw").exists() {
        return Ok(());
    }
    Err(Error::unsupported("can-gw", "find", "the kernel's CAN gateway is not loaded").hint(MISSING))
}

const MISSING: &str = "modprobe can-gw, or run in canter lab";

/// Adds a job, which starts at once. A second equal job forwards every frame once more. A job with the
/// [`user_id`](Job::user_id), interfaces and filter of an existing job replaces the modifications of that job.
///
/// # Errors
/// `InvalidInput` for an invalid job; `Unsupported` for a CRC8 with a relative place on a kernel that is not
/// known to have the fix for CVE-2026-31570 (it writes in front of the frame); `EPERM` without
/// `CAP_NET_ADMIN`; `EOPNOTSUPP` without can-gw; `ENODEV` when an interface has disappeared.
pub fn add(job: &Job) -> Result<()> {
    const STEP: &str = "add can-gw job";
    if let Some(fault) = job.fault() {
        return Err(Error::new(route(job), STEP, io::Error::new(io::ErrorKind::InvalidInput, fault)));
    }
    if job.has_relative_crc8() && !relative_crc8_is_safe() {
        let why = "with a relative place of a CRC8 this kernel may write before the frame (CVE-2026-31570)";
        return Err(Error::unsupported(route(job), STEP, why).hint(
            "count all places from the start, or use Linux 6.1.168, 6.6.131, 6.12.80, 6.18.21, 7.0 or newer",
        ));
    }
    super::ask(job.request(libc::RTM_NEWROUTE)).map(drop).map_err(|refusal| {
        let hint = match refusal.source.raw_os_error() {
            Some(libc::EOPNOTSUPP) => MISSING,
            Some(libc::ENODEV) => "both ends must be CAN interfaces of this network namespace",
            Some(libc::EINVAL) if job.hops_max.is_some() => {
                "is hops_max above /sys/module/can_gw/parameters/max_hops?"
            }
            Some(libc::EINVAL) if job.user_id.is_some() => "another route has a job with this user id",
            _ => "",
        };
        refusal.into_error(&route(job), STEP, hint)
    })
}

/// Deletes the first equal job, also one that another program added. For several, [`Listed`] asks the kernel only once.
///
/// # Errors
/// `NotFound` when the kernel has no such job; `EPERM` without `CAP_NET_ADMIN`.
pub fn delete(job: &Job) -> Result<()> {
    Listed::now()?.delete(job)
}

/// A list of the kernel's jobs, from which found jobs are removed. The kernel deletes only a job with exactly the same
/// bytes, so each deletion needs the kernel's description of the job, and listing thousands of jobs takes a second or
/// more.
#[derive(Debug)]
pub struct Listed(VecDeque<Installed>);

impl Listed {
    /// Asks the kernel.
    ///
    /// # Errors
    /// As [`list`].
    pub fn now() -> Result<Self> {
        Ok(Self(list()?.into()))
    }

    /// Removes and returns the newest equal job. A caller that searches for the newest job first finds each at the
    /// front.
    pub fn take(&mut self, job: &Job) -> Option<Installed> {
        let at = self.0.iter().position(|installed| installed.job == *job)?;
        self.0.remove(at)
    }

    /// Deletes a job that is in the list.
    ///
    /// # Errors
    /// As [`delete`](fn@delete).
    pub fn delete(&mut self, job: &Job) -> Result<()> {
        const STEP: &str = "delete can-gw job";
        let Some(installed) = self.take(job) else {
            let no = io::Error::new(io::ErrorKind::NotFound, "the kernel has no such job");
            return Err(Error::new(route(job), STEP, no).hint("cangw -L lists them"));
        };
        super::ask(installed.deletion())
            .map(drop)
            .map_err(|refusal| refusal.into_error(&route(job), STEP, ""))
    }
}

/// All jobs of this network namespace, the newest first. None without can-gw; see [`available`].
///
/// # Errors
/// When the kernel does not return the list.
pub fn list() -> Result<Vec<Installed>> {
    let request = Request::new(libc::RTM_GETROUTE, libc::NLM_F_DUMP, &rtcanmsg(0));
    let answers = super::dump(request).map_err(|refusal| refusal.into_error("can-gw", "list jobs", ""))?;
    // Without can-gw the kernel returns the routes of all other families.
    Ok(answers.into_iter().filter_map(|(_, message)| Installed::decode(message)).collect())
}

/// Deletes all jobs, also those of other programs, like `cangw -F`.
///
/// # Errors
/// `EPERM` without `CAP_NET_ADMIN`; `EOPNOTSUPP` without can-gw.
pub fn flush() -> Result<()> {
    super::ask(flush_request()).map(drop).map_err(|refusal: Refusal| {
        let hint = if refusal.source.raw_os_error() == Some(libc::EOPNOTSUPP) { MISSING } else { "" };
        refusal.into_error("can-gw", "delete all jobs", hint)
    })
}

/// Both interfaces 0 mean every job.
fn flush_request() -> Request {
    let mut request = Request::new(libc::RTM_DELROUTE, libc::NLM_F_ACK, &rtcanmsg(0));
    request.put_u32(CGW_SRC_IF, 0);
    request.put_u32(CGW_DST_IF, 0);
    request
}

/// Decodes any bytes as [`super::decode_any`] does: a job, and the request that deletes it.
pub(super) fn decode_any(message: &[u8]) {
    let _ = Installed::decode(message.to_vec()).map(|job| job.deletion().finish(1));
}

impl Installed {
    /// `None` for a route of another family, or a gateway of another kind than CAN to CAN.
    fn decode(message: Vec<u8>) -> Option<Self> {
        let attributes = Attributes::after_header(&message, RTCANMSG_BYTES);
        let count = |attribute| attributes.get_u32(attribute).unwrap_or_default();
        let counters = JobCounters {
            handled: count(CGW_HANDLED),
            dropped: count(CGW_DROPPED),
            deleted: count(CGW_DELETED),
        };
        Some(Self { job: Job::decode(&message)?, counters, message })
    }

    /// The request that deletes it: the kernel's description, without the counters.
    fn deletion(&self) -> Request {
        let (header, _) = self.message.split_at(RTCANMSG_BYTES.min(self.message.len()));
        let mut request = Request::new(libc::RTM_DELROUTE, libc::NLM_F_ACK, header);
        for (attribute, value) in Attributes::after_header(&self.message, RTCANMSG_BYTES) {
            if ![CGW_HANDLED, CGW_DROPPED, CGW_DELETED].contains(&attribute) {
                request.put(attribute, value);
            }
        }
        request
    }
}

/// `can3 → can4`, for errors.
fn route(job: &Job) -> String {
    let name = |index| {
        let answers = super::ask(get_by_index(index)).unwrap_or_default();
        let link = answers.iter().find_map(|(_, payload)| Link::decode(payload));
        link.map_or_else(|| format!("interface {index}"), |link| link.name)
    };
    format!("{} → {}", name(job.source), name(job.destination))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn the_flush_is_a_deletion_between_no_interfaces() {
        #[rustfmt::skip]
        let expected = [
            36, 0, 0, 0, 25, 0, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0, // RTM_DELROUTE, REQUEST|ACK
            29, 1, 0, 0,                                      // AF_CAN, CGW_TYPE_CAN_CAN
            8, 0, 9, 0, 0, 0, 0, 0, 8, 0, 10, 0, 0, 0, 0, 0,
        ];
        assert_eq!(flush_request().finish(1), expected);
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn a_dumped_job_is_read_and_deleted_with_the_operands_that_do_not_count() {
        // What Linux 6.12 and 6.1 dump after `cangw -A -s va -d vb -e -m SET:I:123.4.1122334455667788`, one frame
        // later: the length and the data are there, though only the identifier is set.
        #[rustfmt::skip]
        let message = [
            29, 1, 1, 0,
            8, 0, 7, 0, 1, 0, 0, 0,
            21, 0, 4, 0, 35, 1, 0, 0, 4, 0, 0, 0, 17, 34, 51, 68, 85, 102, 119, 136, 1, 0, 0, 0,
            8, 0, 9, 0, 7, 0, 0, 0, 8, 0, 10, 0, 8, 0, 0, 0,
        ];
        let installed = Installed::decode(message.to_vec()).unwrap();
        let expected = Job { echo: true, set: Modification::from_id(0x123), ..Job::between(7, 8) };
        assert_eq!(installed.job, expected);
        assert_eq!(installed.counters, JobCounters { handled: 1, ..JobCounters::default() });
        let request = installed.deletion().finish(1);
        assert_eq!((request[4], &request[16..20], &request[20..]), (25, &message[..4], &message[12..]));
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn a_dumped_fd_job_is_read_with_its_flags_and_checksum() {
        // What Linux 6.12 and 6.1 dump after `cangw -A -s va -d vb -X -M OR:FD:000.1.0.ABAB…AB -x 0:62:63:a5`.
        let mut message = vec![29, 1, 8, 0, 77, 0, 16, 0, 0, 0, 0, 0, 0, 1, 0, 0];
        message.extend([0xab; 64]);
        message.extend([
            12, 0, 0, 0, 8, 0, 5, 0, 0, 62, 63, 165, 8, 0, 9, 0, 7, 0, 0, 0, 8, 0, 10, 0, 8, 0, 0, 0,
        ]);
        let expected = Job {
            fd: true,
            or: Modification { flags: Some(1), ..Modification::from_data(&[0xab; 64]) },
            xor_checksum: Some(Xor { span: Span::new(0, 62, 63), init: 0xa5 }),
            ..Job::between(7, 8)
        };
        assert_eq!(Installed::decode(message).map(|installed| installed.job), Some(expected));
    }

    #[test]
    fn routes_of_other_families_are_no_jobs() {
        assert_eq!(Installed::decode(vec![2; 40]), None);
        assert_eq!(Installed::decode(vec![]), None);
    }

    proptest! {
        #[test]
        fn any_message_is_read_without_a_panic(mut message in proptest::collection::vec(any::<u8>(), 0..400), can: bool) {
            if can && message.len() >= 2 {
                message[..2].copy_from_slice(&[29, 1]);
            }
            if let Some(installed) = Installed::decode(message) {
                let _ = installed.deletion();
            }
        }
    }
}
