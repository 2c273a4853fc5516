//! Rights of this user, and bugs of this kernel.

use super::{
    finding::{Check, Cost, MACHINE, Symptom},
    machine::Machine,
};
use canter_io::netlink::can_gw;

/// Capabilities by their bit (linux/capability.h).
pub const NET_ADMIN: u32 = 12;
const NET_RAW: u32 = 13;
const IPC_LOCK: u32 = 14;
const SYS_NICE: u32 = 23;

pub const CHECKS: &[Check] = &[
    Check {
        name: "capabilities",
        about: "capabilities that this user does not have",
        cost: Cost::Latency,
        look: capabilities,
    },
    Check {
        name: "kernel-bugs",
        about: "can-gw's CRC8 with negative positions",
        cost: Cost::Frames,
        look: bugs,
    },
];

/// Whether this process has a capability; true when its capabilities cannot be read.
pub fn has_capability(machine: &Machine, capability: u32) -> bool {
    let status = machine.text("proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).is_none_or(|set| set >> capability & 1 == 1)
}

fn capabilities(machine: &Machine) -> Vec<Symptom> {
    const WANTED: [(u32, &str, &str); 3] = [
        (NET_RAW, "CAP_NET_RAW", "no packet rings: recording and routing use the slower sockets"),
        (SYS_NICE, "CAP_SYS_NICE", "--realtime is refused: busy processes delay the frames"),
        (IPC_LOCK, "CAP_IPC_LOCK", "--realtime is refused: memory that is paged out delays the frames"),
    ];
    let missing = WANTED.into_iter().filter(|&(capability, ..)| !has_capability(machine, capability));
    let symptom = |(_, name, reason): (u32, &str, &str)| Symptom {
        thing: MACHINE.into(),
        evidence: format!("this user has no {name}"),
        reason: reason.into(),
        remedy: "run as root, or setcap cap_net_raw,cap_net_admin,cap_sys_nice,cap_ipc_lock+ep on canter"
            .into(),
    };
    missing.map(symptom).collect()
}

fn bugs(machine: &Machine) -> Vec<Symptom> {
    if can_gw::relative_crc8_is_safe() {
        return Vec::new();
    }
    vec![Symptom {
        thing: MACHINE.into(),
        evidence: machine.text("proc/version").unwrap_or_default().split(" (").next().unwrap_or_default().into(),
        reason: "can-gw's CRC8 with negative positions writes before the payload (CVE-2026-31570): such rules corrupt \
                 memory"
            .into(),
        remedy: "update to kernel 6.1.168, 6.6.131, 6.12.80, 7.0 or later; until then use no CRC8 rule with negative \
                 positions"
            .into(),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::examples::{folder, machine};

    #[test]
    fn missing_capabilities_are_read_from_the_effective_set() {
        let root = folder(&[("proc/self/status", "Name:\tx\nCapEff:\t0000000000003000\n")]);
        let user = machine(&root, vec![]);
        let has = [NET_ADMIN, NET_RAW, SYS_NICE].map(|capability| has_capability(&user, capability));
        assert_eq!(has, [true, true, false]);
        assert_eq!(capabilities(&user).len(), 2);
        let root = folder(&[("proc/self/status", "CapEff:\t000001ffffffffff\n")]);
        assert_eq!(capabilities(&machine(&root, vec![])), []);
    }
}
