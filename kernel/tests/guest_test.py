#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Which lines of the kernel's log fail the modules' tests, by lines in the kernel's format."""
import os
import sys

sys.dont_write_bytecode = True
os.environ["CANWIRE_MODULE"] = "none"
import guest  # noqa: E402
from tap import equal, run  # noqa: E402

QUIET = """[    1.000000] canwire: bus A: made
[    1.000001] canchar_kvaser_pci 0000:00:04.0: canchar2: SJA1000 at ports 0xc000, interrupt 20
[    1.000002] BUG: KCSAN: data-race in do_timer / tick_do_update_jiffies64
"""
#: Each of them alone is trouble.
LOUD = [
    "[    2.000000] BUG: KASAN: slab-use-after-free in cw_poll+0x1/0x2 [canwire]",
    "[    2.000000] BUG: KCSAN: data-race in cw_xmit [canwire] / cw_wire_timer [canwire]",
    "[    2.000000] BUG: KCSAN: data-race in netif_rx / canchar_read [canchar]",
    "[    2.000000] BUG: sleeping function called from invalid context at kernel/locking/mutex.c:585",
    "[    2.000000] WARNING: CPU: 0 PID: 1 at net/core/dev.c:1 x+0x1/0x2",
    "[    2.000000] WARNING: possible circular locking dependency detected",
    "[    2.000000] UBSAN: shift-out-of-bounds in kernel/canwire/node.c:10:3",
    "[    2.000000] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks: rcu_preempt self-detected stall",
    "[    2.000000] Oops: general protection fault, probably for non-canonical address 0xdead000000000100: 0000 [#1]",
    "[    2.000000] unregister_netdevice: waiting for wcan0 to become free. Usage count = 2",
]


def trouble(log):
    guest.kernel_log = lambda: log
    return guest.trouble()


def a_log_without_reports_is_none():
    """What drivers say, and a race of the kernel's own, are no trouble"""
    equal("quiet", trouble(QUIET), [])


def each_kind_of_report_is_found():
    """Each kind of report is trouble, among other lines"""
    for line in LOUD:
        equal(line, trouble(QUIET + line + "\n" + QUIET), [line])


if __name__ == "__main__":
    sys.exit(bool(run([a_log_without_reports_is_none, each_kind_of_report_is_found], lambda: None, lambda: None)))
