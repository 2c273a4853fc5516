//! What belongs beside a remedy: a safer way that comes first, what the remedy risks, and how it outlives the next boot.

use serde::Serialize;

/// Advice beside the remedy of a check's findings; an empty text is not printed.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Advice {
    /// What to do instead, if it is enough.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub safer: &'static str,
    /// What the remedy may harm.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub risk: &'static str,
    /// How to make the remedy last.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub lasting: &'static str,
}

impl Advice {
    const fn lasting(lasting: &'static str) -> Self {
        Self { safer: "", risk: "", lasting }
    }

    const fn risk(self, risk: &'static str) -> Self {
        Self { risk, ..self }
    }

    const fn safer(self, safer: &'static str) -> Self {
        Self { safer, ..self }
    }
}

const SYSCTL: &str = "the same name=value in /etc/sysctl.d/60-can.conf";
const NETWORKD: &str = "[CAN] in /etc/systemd/network/80-can.network (docs/services.md)";
const UNIT: &str = "a systemd service of Type=oneshot that runs the command at boot; numbers of interrupts and processes \
                    may change";

/// The advice of each check, by its name.
const TABLE: &[(&str, Advice)] = &[
    (
        "transmit-queue",
        Advice::lasting(
            "udev: SUBSYSTEM==\"net\", ACTION==\"add\", KERNEL==\"can*\", ATTR{tx_queue_len}=\"300\" in \
             /etc/udev/rules.d/80-can.rules",
        )
        .risk("a longer queue holds frames longer when the bus is busy or silent: what leaves it may be old"),
    ),
    (
        "queueing-discipline",
        Advice::lasting("[PFIFOFast] with Parent=root in /etc/systemd/network/80-can.network"),
    ),
    ("receive-queue", Advice::lasting(SYSCTL).risk("every socket of every program may use that much memory")),
    ("receive-limit", Advice::lasting(SYSCTL).risk("every user may make sockets use that much memory")),
    ("backlog", Advice::lasting(SYSCTL)),
    (
        "bus-state",
        Advice::lasting("")
            .risk("a restart before the cause is removed disturbs the other nodes of the bus again"),
    ),
    (
        "restart",
        Advice::lasting("RestartSec=100ms in [CAN] of /etc/systemd/network/80-can.network")
            .risk("a node with a wrong bit rate or a broken cable disturbs the others again after each restart"),
    ),
    ("overrun", Advice::lasting("")),
    ("controller-depth", Advice::lasting("")),
    (
        "sample-point",
        Advice::lasting(NETWORKD)
            .risk("the interface leaves the bus meanwhile; all nodes should have about the same sample point"),
    ),
    ("modes", Advice::lasting(NETWORKD).risk("the interface leaves the bus meanwhile")),
    ("kernel-bugs", Advice::lasting("")),
    (
        "coalescing",
        Advice::lasting("a udev rule with RUN+=\"/usr/sbin/ethtool -C …\", as root types it")
            .risk("more interrupts: on a slow processor a full bus may then need most of its time"),
    ),
    ("shared-line", Advice::lasting("")),
    (
        "affinity",
        Advice::lasting(UNIT).risk("irqbalance moves interrupts again: exempt it (IRQBALANCE_ARGS=--banirq=N)"),
    ),
    (
        "thread-priority",
        Advice::lasting(UNIT).risk("the thread then runs before all that is less urgent, disks and network included"),
    ),
    (
        "realtime-throttling",
        Advice::lasting(SYSCTL)
            .safer(
                "leave it and let nothing at a real-time priority spin: a method that blocks or polls is never always \
                 busy (canter methods)",
            )
            .risk("a real-time task that never sleeps then locks its processor for ever; on one processor, the machine"),
    ),
    (
        "governor",
        Advice::lasting("cpufreq.default_governor=performance on the kernel's command line")
            .risk("more power and heat; a board without a heat sink slows down when it is hot"),
    ),
    (
        "idle-states",
        Advice::lasting(UNIT)
            .safer("let the program that needs it ask for it: canter gateway --realtime keeps /dev/cpu_dma_latency open")
            .risk("more power and heat at all times"),
    ),
    (
        "clock-source",
        Advice::lasting("clocksource=NAME on the kernel's command line")
            .risk("the kernel may have refused that clock for a reason: dmesg | grep -i clocksource"),
    ),
    (
        "huge-pages",
        Advice::lasting("transparent_hugepage=madvise on the kernel's command line")
            .risk("programs with much memory that do not ask for huge pages run some per cent slower"),
    ),
    (
        "page-batches",
        Advice::lasting(SYSCTL).risk(
            "programs that take much memory wait more often for each other, which shows on tens of processors",
        ),
    ),
    (
        "capabilities",
        Advice::lasting("")
            .safer("let canter's services record and route: each unit has the rights that it needs, and no user has them \
                    (docs/services.md)")
            .risk("setcap gives these rights to every user who may run that file: to hear and send on all networks, to \
                   change them, and to starve other programs. Before it: chown root:GROUP and chmod 750"),
    ),
];

/// The advice of a check, by the check's name.
pub fn find(check: &str) -> Advice {
    TABLE.iter().find(|(name, _)| *name == check).map_or(Advice::default(), |&(_, advice)| advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_has_its_advice_and_each_advice_its_check() {
        let mut checks: Vec<&str> = crate::doctor::checks().map(|check| check.name).collect();
        let mut advised: Vec<&str> = TABLE.iter().map(|(name, _)| *name).collect();
        checks.sort_unstable();
        advised.sort_unstable();
        assert_eq!(checks, advised);
    }

    #[test]
    fn what_can_lock_a_machine_or_open_it_names_its_risk_and_a_safer_way() {
        for check in ["realtime-throttling", "capabilities"] {
            assert!(!find(check).risk.is_empty() && !find(check).safer.is_empty(), "{check}");
        }
    }
}
