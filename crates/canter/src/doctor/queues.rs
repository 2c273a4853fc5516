//! Queues between a program and its interface: short queues lose frames, wrong queueing disciplines drop or reorder them.

use super::{
    finding::{Check, Cost, MACHINE, Symptom},
    machine::Machine,
};
use canter_io::{Interface, loss::softnet_drops};

/// Bytes of a socket's buffer that a queued frame takes (`skb->truesize`, measured on 6.1 and 6.12).
const FRAME_BYTES: i64 = 960;
/// The shortest frame, with its intermission: 47 bits.
const FRAME_BITS_MIN: i64 = 47;
/// The stall of a reader, in ms, that must lose no frame on a full bus: one and a half ticks of a 250 Hz kernel, rounded
/// up.
const STALL_MS: i64 = 10;
/// The kernel's default of net.core.netdev_max_backlog.
const BACKLOG_FRAMES: i64 = 1000;
/// The receive buffer that a program without CAP_NET_ADMIN needs to survive a stall of a second on one full bus.
const RECEIVE_BYTES_MAX: i64 = 4 << 20;
/// Queueing disciplines that drop or reorder on purpose.
const UNFAITHFUL: &[&str] =
    &["fq_codel", "codel", "cake", "fq", "sfq", "red", "sfb", "choke", "pie", "fq_pie", "netem"];

pub const CHECKS: &[Check] = &[
    Check {
        name: "transmit-queue",
        about: "txqueuelen against SO_SNDBUF",
        cost: Cost::Frames,
        look: transmit_queue,
    },
    Check {
        name: "queueing-discipline",
        about: "qdiscs that drop or reorder",
        cost: Cost::Frames,
        look: discipline,
    },
    Check {
        name: "receive-queue",
        about: "rmem_default against the bit rate",
        cost: Cost::Frames,
        look: receive_queue,
    },
    Check {
        name: "receive-limit",
        about: "rmem_max, for users without CAP_NET_ADMIN",
        cost: Cost::Frames,
        look: receive_limit,
    },
    Check {
        name: "backlog",
        about: "netdev_max_backlog, and frames lost in the backlog",
        cost: Cost::Frames,
        look: backlog,
    },
];

fn transmit_queue(machine: &Machine) -> Vec<Symptom> {
    let Some(send_bytes) = machine.number("proc/sys/net/core/wmem_default") else { return Vec::new() };
    let fits = send_bytes / FRAME_BYTES;
    let reason = "the queue fills before the buffer does: write() then fails with ENOBUFS instead of waiting, and a \
                  sender that does not retry loses the frame (can-gw, most programs)";
    let symptom = |interface: &Interface| Symptom {
        thing: interface.name.clone(),
        evidence: format!(
            "txqueuelen {}, but a socket's send buffer holds {fits} frames ({send_bytes} bytes)",
            interface.tx_queue_len
        ),
        reason: reason.into(),
        remedy: format!("ip link set {} txqueuelen {}", interface.name, round_up(fits + 1, 100)),
    };
    let interfaces = machine.interfaces.iter().map(|patient| &patient.interface);
    let short = interfaces.filter(|one| has_queue(one) && i64::from(one.tx_queue_len) <= fits);
    short.map(symptom).collect()
}

/// Whether the interface has a queue for frames to send.
fn has_queue(interface: &Interface) -> bool {
    !matches!(interface.qdisc.as_str(), "noqueue" | "noop" | "")
}

fn round_up(number: i64, step: i64) -> i64 {
    (number + step - 1) / step * step
}

fn discipline(machine: &Machine) -> Vec<Symptom> {
    let interfaces = machine.interfaces.iter().map(|patient| &patient.interface);
    let unfaithful = interfaces.filter(|interface| UNFAITHFUL.contains(&interface.qdisc.as_str()));
    let symptom = |interface: &Interface| Symptom {
        thing: interface.name.clone(),
        evidence: format!("its queueing discipline is {}", interface.qdisc),
        reason: "it is made for flows of IP packets: it drops or reorders frames to keep the queue short"
            .into(),
        remedy: format!("tc qdisc replace dev {} root pfifo_fast", interface.name),
    };
    unfaithful.map(symptom).collect()
}

fn receive_queue(machine: &Machine) -> Vec<Symptom> {
    let Some(bytes) = machine.number("proc/sys/net/core/rmem_default") else { return Vec::new() };
    let fastest =
        machine.interfaces.iter().filter_map(|patient| Some((patient, patient.interface.bitrate()?)));
    let Some((patient, bitrate)) = fastest.max_by_key(|&(_, bitrate)| bitrate) else { return Vec::new() };
    let frames = bytes / FRAME_BYTES;
    let per_second = i64::from(bitrate) / FRAME_BITS_MIN;
    let covered_us = frames * 1_000_000 / per_second.max(1);
    if covered_us >= STALL_MS * 1000 {
        return Vec::new();
    }
    let needed = round_up(per_second * STALL_MS / 1000 * FRAME_BYTES, 4096).max(212_992);
    vec![Symptom {
        thing: MACHINE.into(),
        evidence: format!(
            "net.core.rmem_default {bytes}: {frames} frames, {}.{} ms of a full bus at {bitrate} bit/s ({})",
            covered_us / 1000,
            covered_us / 100 % 10,
            patient.interface.name
        ),
        reason: format!(
            "a program that does not set SO_RCVBUF loses frames without notice when it stalls for {STALL_MS} ms"
        ),
        remedy: format!("sysctl -w net.core.rmem_default={needed}"),
    }]
}

fn receive_limit(machine: &Machine) -> Vec<Symptom> {
    let may_exceed = super::rights::has_capability(machine, super::rights::NET_ADMIN);
    let limit = machine.number("proc/sys/net/core/rmem_max");
    let Some(limit) = limit.filter(|&limit| !may_exceed && limit < RECEIVE_BYTES_MAX) else {
        return Vec::new();
    };
    vec![Symptom {
        thing: MACHINE.into(),
        evidence: format!("net.core.rmem_max {limit}, and this user has no CAP_NET_ADMIN to exceed it"),
        reason: format!(
            "the receive queue of a program cannot hold more than {} frames",
            2 * limit / FRAME_BYTES
        ),
        remedy: format!("sysctl -w net.core.rmem_max={RECEIVE_BYTES_MAX}"),
    }]
}

fn backlog(machine: &Machine) -> Vec<Symptom> {
    const PATH: &str = "proc/sys/net/core/netdev_max_backlog";
    let mut symptoms = Vec::new();
    let reason = "drivers without NAPI pass frames through the backlog, one per processor and shared with Ethernet; \
                  frames that do not fit are lost";
    if let Some(frames) = machine.number(PATH).filter(|&frames| frames < BACKLOG_FRAMES) {
        symptoms.push(Symptom {
            thing: MACHINE.into(),
            evidence: format!(
                "net.core.netdev_max_backlog {frames}; the kernel's default is {BACKLOG_FRAMES}"
            ),
            reason: reason.into(),
            remedy: format!("sysctl -w net.core.netdev_max_backlog={BACKLOG_FRAMES}"),
        });
    }
    let lost = softnet_drops(&machine.text("proc/net/softnet_stat").unwrap_or_default());
    if lost > 0 {
        let doubled = machine.number(PATH).unwrap_or(BACKLOG_FRAMES).max(BACKLOG_FRAMES) * 2;
        symptoms.push(Symptom {
            thing: MACHINE.into(),
            evidence: format!("{lost} packets lost in the backlog since boot (/proc/net/softnet_stat)"),
            reason: reason.into(),
            remedy: format!("sysctl -w net.core.netdev_max_backlog={doubled}"),
        });
    }
    symptoms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::examples::{folder, machine, patient};

    #[test]
    fn a_transmit_queue_shorter_than_the_send_buffer_is_found() {
        let root = folder(&[("proc/sys/net/core/wmem_default", "212992\n")]);
        let mut one = patient("can0");
        one.interface.tx_queue_len = 221;
        let found = transmit_queue(&machine(&root, vec![one]));
        assert_eq!(found[0].remedy, "ip link set can0 txqueuelen 300");
        let mut one = patient("can0");
        one.interface.tx_queue_len = 222;
        assert_eq!(transmit_queue(&machine(&root, vec![one])), []);
        let mut one = patient("vcan0");
        (one.interface.tx_queue_len, one.interface.qdisc) = (10, "noqueue".into());
        assert_eq!(transmit_queue(&machine(&root, vec![one])), []);
    }

    #[test]
    fn the_default_receive_queue_is_enough_for_1_mbit_and_half_of_it_is_not() {
        let enough = folder(&[("proc/sys/net/core/rmem_default", "212992\n")]);
        assert_eq!(receive_queue(&machine(&enough, vec![patient("can0")])), []);
        let half = folder(&[("proc/sys/net/core/rmem_default", "106496\n")]);
        let found = receive_queue(&machine(&half, vec![patient("can0")]));
        assert_eq!(
            found[0].evidence,
            "net.core.rmem_default 106496: 110 frames, 5.1 ms of a full bus at 1000000 bit/s (can0)"
        );
        assert_eq!(receive_queue(&machine(&half, vec![])), [], "a vcan has no bit rate");
    }

    #[test]
    fn losses_of_the_backlog_are_summed_over_all_processors() {
        assert_eq!(softnet_drops("0000af 00000001 00\n000010 0000000f 00\n"), 16);
        assert_eq!(softnet_drops("nonsense"), 0);
    }
}
