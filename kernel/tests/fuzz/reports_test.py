#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Which reports of the kernel's log are ours, by logs in the kernel's format (Documentation/dev-tools/kcsan.rst, kasan.rst)."""
import os
import sys

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
import guest  # noqa: E402  (of this folder)
from tap import equal, run  # noqa: E402

FRAME = "=" * 66


def race(writer, reader):
    return f"""[   12.345678] {FRAME}
[   12.345679] BUG: KCSAN: data-race in {reader[0].split("+")[0]} / {writer[0].split("+")[0]}
[   12.345680]
[   12.345681] write to 0xffffffffc009a628 of 8 bytes by task 487 on cpu 0:
""" + "".join(f"[   12.345682]  {name}\n" for name in writer) + """[   12.345683]
[   12.345684] read to 0xffffffffc009a628 of 8 bytes by interrupt on cpu 1:
""" + "".join(f"[   12.345685]  {name}\n" for name in reader) + f"""[   12.345686]
[   12.345687] value changed: 0x00000000000009a6 -> 0x00000000000009b2
[   12.345688]
[   12.345689] Reported by Kernel Concurrency Sanitizer on:
[   12.345690] CPU: 1 UID: 0 PID: 488 Comm: fuzz Tainted: G           O       6.12.117 #1
[   12.345691] {FRAME}
"""


KERNEL = race(["tick_do_update_jiffies64+0x1d/0x30", "tick_nohz_handler+0x89/0xd0"],
              ["do_timer+0x10/0x20", "hrtimer_interrupt+0x1/0x2"])
OURS = race(["cw_xmit+0x1d/0x30 [canwire]", "dev_hard_start_xmit+0x1/0x2"],
            ["cw_node_sent+0x10/0x20 [canwire]", "hrtimer_interrupt+0x1/0x2"])
BELOW = race(["skb_queue_tail+0x1/0x2", "netif_rx+0x2/0x3"], ["skb_dequeue+0x1/0x2", "cw_poll+0x1/0x2 [canwire]"])
LINES = """[   13.000000] canchar_kvaser_pci 0000:00:04.0: canchar2: SJA1000 at ports 0xc000, interrupt 20
[   13.000001] canwire: bus A: made
"""


TESTS = []


def test(function):
    TESTS.append(function)
    return function


def judged(log):
    """Of each report: ours, bad."""
    return [(guest.is_ours(report), guest.is_bad(report)) for report in guest.reports(log)]


@test
def race_of_the_kernel():
    """A data race of the kernel is no failure, though lines of ours stand around it"""
    equal("reports", judged(LINES + KERNEL + LINES), [(False, False)])


@test
def race_of_ours():
    """A data race of ours is one"""
    equal("reports", judged(LINES + OURS + LINES), [(True, True)])


@test
def race_below_ours():
    """So is one in the kernel with a call of ours"""
    equal("reports", judged(BELOW), [(True, True)])


@test
def race_of_the_clock():
    """One of the kernel's clock with its own update is none, but one of a caller of it is"""
    clock = ["timekeeping_cycles_to_ns+0x22/0xa0", "ktime_get_mono_fast_ns+0x4f/0x72",
             "canprobe_floor_reached+0x23/0xd4 [canprobe]"]
    update = ["timekeeping_update+0x1/0x2", "hrtimer_interrupt+0x1/0x2"]
    equal("of the clock", judged(race(update, clock)), [(False, False)])
    equal("of a caller", judged(race(clock[2:], clock[2:])), [(True, True)])


@test
def races_on_the_kernels_own():
    """Nor is one on NAPI's or a queue's state or a sleeper's timer by the kernel's own two functions, but with one of ours it is"""
    poll = ["napi_complete_done+0x35/0x225", "cw_node_poll+0x978/0x990 [canwire]"]
    schedule = ["napi_schedule_prep+0x67/0xb6", "cw_node_interrupt+0x49/0x62 [canwire]"]
    expires = ["hrtimer_wakeup+0x23/0x3d", "__hrtimer_run_queues+0x10f/0x1b3"]
    sleeps = ["schedule_hrtimeout_range_clock+0x101/0x16e", "napi_disable+0x8a/0xff", "cw_stop+0x57/0x7d [canwire]"]
    wakes = ["netif_tx_wake_queue+0x1e/0x48", "cw_node_hand_over+0x584/0xa1a [canwire]"]
    takes = ["__qdisc_run+0x100/0x867", "qdisc_run+0x15/0x1f"]
    equal("of NAPI", judged(race(schedule, poll)), [(False, False)])
    equal("of a queue", judged(race(wakes, takes)), [(False, False)])
    equal("of a queue with ours", judged(race(wakes[1:], takes)), [(True, True)])
    equal("of a sleeper", judged(race(sleeps, expires)), [(False, False)])
    equal("with ours", judged(race(schedule[1:], poll)), [(True, True)])


@test
def races_in_a_row():
    """Races in a row are judged one by one"""
    equal("reports", judged(KERNEL + OURS + KERNEL), [(False, False), (True, True), (False, False)])


@test
def other_reports():
    """Other reports are failures, whoever they name"""
    oops = "[    1.000000] BUG: unable to handle page fault for address: ffffffffc0390130\n[    1.000001] Oops: 0000\n" \
           "[    1.000002] RIP: 0010:filp_flush+0x18/0x70\n[    1.000003] ---[ end trace 0000000000000000 ]---\n"
    equal("reports", judged(oops + LINES), [(False, True)])


@test
def stalls():
    """A stall is a failure when it names a function of ours"""
    stall = "[    1.000000] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:\n[    1.000001]  {}\n"
    equal("elsewhere", judged(stall.format("do_idle+0x1/0x2")), [(False, False)])
    equal("in canwire", judged(stall.format("cw_wire_timer+0x1/0x2 [canwire]")), [(True, True)])


if __name__ == "__main__":
    sys.exit(bool(run(TESTS, lambda: None, lambda: None)))
