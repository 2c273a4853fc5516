//! Traffic control: a BPF program on what an interface receives (the classifier of the qdisc clsact), and what an
//! interface's own queue has dropped.
//!
//! linux/rtnetlink.h: `struct tcmsg`; linux/pkt_sched.h, linux/pkt_cls.h, linux/gen_stats.h; tc-bpf(8).

use super::{
    answer::Refusal,
    attribute::{Attributes, u32_at},
    request::Request,
};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Bytes of `struct tcmsg`: family and padding, interface, handle, parent, info.
const TCMSG_BYTES: usize = 20;

const ROOT: u32 = 0xffff_ffff; // TC_H_ROOT
const CLSACT: u32 = 0xffff_fff1; // TC_H_CLSACT
const CLSACT_HANDLE: u32 = 0xffff_0000;
const RECEIVED: u32 = 0xffff_fff2; // TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)

const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STATS_QUEUE: u16 = 3; // struct gnet_stats_queue: length, backlog, drops, …
const TCA_BPF_FD: u16 = 6;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_FLAGS: u16 = 8;
const TCA_BPF_FLAG_ACT_DIRECT: u32 = 1;

/// Our filter's place among others of the interface (its `pref`), and every protocol.
const PRIORITY: u32 = 1 << 16;
const EVERY_PROTOCOL: u32 = (libc::ETH_P_ALL as u16).to_be() as u32;
const FILTER_HANDLE: u32 = 1;

fn tcmsg(interface: u32, handle: u32, parent: u32, info: u32) -> [u8; TCMSG_BYTES] {
    let mut bytes = [0; TCMSG_BYTES];
    for (at, word) in [interface, handle, parent, info].into_iter().enumerate() {
        bytes[4 + 4 * at..][..4].copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

fn qdisc(kind: u16, flags: i32, interface: u32) -> Request {
    let mut request =
        Request::new(kind, libc::NLM_F_ACK | flags, &tcmsg(interface, CLSACT_HANDLE, CLSACT, 0));
    request.put_text(TCA_KIND, "clsact");
    request
}

fn filter(kind: u16, flags: i32, interface: u32) -> Request {
    let header = tcmsg(interface, FILTER_HANDLE, RECEIVED, PRIORITY | EVERY_PROTOCOL);
    let mut request = Request::new(kind, libc::NLM_F_ACK | flags, &header);
    request.put_text(TCA_KIND, "bpf");
    request
}

/// A program on the frames that an interface receives; dropping this removes it. A killed process leaves it behind.
#[derive(Debug)]
pub struct Classifier {
    interface: u32,
    /// The interface had no clsact before.
    owns_qdisc: bool,
}

impl Classifier {
    /// Puts it there.
    ///
    /// # Errors
    /// `EEXIST` when the interface has a program already; `ENOENT` or `EOPNOTSUPP` without the modules sch_ingress and
    /// cls_bpf.
    pub fn attach(program: BorrowedFd<'_>, interface: u32) -> Result<Self, Refusal> {
        let new = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let owns_qdisc = match super::ask(qdisc(libc::RTM_NEWQDISC, new, interface)) {
            Ok(_) => true,
            Err(refusal) if refusal.source.raw_os_error() == Some(libc::EEXIST) => false,
            Err(refusal) => return Err(refusal),
        };
        let mut request = filter(libc::RTM_NEWTFILTER, new, interface);
        request.nest(TCA_OPTIONS, |options| {
            options.put_u32(TCA_BPF_FD, program.as_raw_fd() as u32);
            options.put_text(TCA_BPF_NAME, "canter");
            options.put_u32(TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
        });
        let classifier = Self { interface, owns_qdisc };
        match super::ask(request) {
            Ok(_) => Ok(classifier),
            Err(refusal) => {
                classifier.give_back_qdisc();
                std::mem::forget(classifier); // the existing filter belongs to another program
                Err(refusal)
            }
        }
    }

    fn give_back_qdisc(&self) {
        if self.owns_qdisc {
            let _ = super::ask(qdisc(libc::RTM_DELQDISC, 0, self.interface)); // it may have been removed already
        }
    }
}

impl Drop for Classifier {
    fn drop(&mut self) {
        let _ = super::ask(filter(libc::RTM_DELTFILTER, 0, self.interface)); // it may have been removed already
        self.give_back_qdisc();
    }
}

/// Frames that the interface's queue has dropped since its creation; wraps at 2³². 0 without a queue.
pub fn queue_drops(interface: u32) -> Result<u32, Refusal> {
    let request = Request::new(libc::RTM_GETQDISC, libc::NLM_F_DUMP, &tcmsg(interface, 0, 0, 0));
    let answers = super::dump(request)?;
    Ok(answers.iter().find_map(|(_, message)| drops_of(message, interface)).unwrap_or_default())
}

/// As [`super::decode_any`].
pub(super) fn decode_any(message: &[u8]) {
    let _ = drops_of(message, u32_at(message, 4).unwrap_or_default());
}

/// `None`: another interface's, or not the outermost.
fn drops_of(message: &[u8], interface: u32) -> Option<u32> {
    let ours = u32_at(message, 4)? == interface && u32_at(message, 12)? == ROOT;
    let statistics = Attributes::behind(message, TCMSG_BYTES).nested(TCA_STATS2);
    if ours { u32_at(statistics.get(TCA_STATS_QUEUE)?, 8) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn a_filter_is_laid_out_as_tc_sends_it() {
        let mut request = filter(libc::RTM_NEWTFILTER, libc::NLM_F_CREATE | libc::NLM_F_EXCL, 5);
        request.nest(TCA_OPTIONS, |options| options.put_u32(TCA_BPF_FD, 3));
        #[rustfmt::skip]
        let expected = [
            56, 0, 0, 0, 44, 0, 5, 6, 1, 0, 0, 0, 0, 0, 0, 0,         // RTM_NEWTFILTER, REQUEST|ACK|CREATE|EXCL
            0, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0xf2, 0xff, 0xff, 0xff, // interface 5, handle 1, clsact's ingress
            0, 3, 1, 0,                                               // pref 1, every protocol
            8, 0, 1, 0, b'b', b'p', b'f', 0,
            12, 0, 2, 0, 8, 0, 6, 0, 3, 0, 0, 0,
        ];
        assert_eq!(request.finish(1), expected);
    }

    #[test]
    fn drops_are_read_of_the_outermost_queue_of_the_interface_alone() {
        let message = |interface, parent| {
            let mut request = Request::new(0, 0, &tcmsg(interface, 0, parent, 0));
            request
                .nest(TCA_STATS2, |stats| stats.put(TCA_STATS_QUEUE, &[0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0]));
            request.finish(1)[super::super::request::MESSAGE_HEADER_BYTES..].to_vec()
        };
        let seven = u32::from_ne_bytes([7, 0, 0, 0]);
        assert_eq!(drops_of(&message(5, ROOT), 5), Some(seven));
        assert_eq!(drops_of(&message(6, ROOT), 5), None);
        assert_eq!(drops_of(&message(5, 1), 5), None);
        assert_eq!(drops_of(&[0; 7], 5), None);
    }
}
