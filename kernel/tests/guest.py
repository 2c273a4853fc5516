# SPDX-License-Identifier: GPL-2.0-only
"""What the sets of tests share in the guest: the module, nodes, floods, the kernel's log."""
import os
import re
import subprocess

from canwire import Can, Refused, Tap, Wire, down, ip, up, wait_until  # noqa: F401
from tap import Skip

MODULE = os.environ["CANWIRE_MODULE"]
TROUBLE = re.compile(r"BUG:|WARNING:|Oops|general protection|inconsistent lock|possible (recursive|circular)|KASAN|"
                     r"scheduling while atomic|UBSAN:|ODEBUG:|rcu.*stall|unregister_netdevice: waiting|NOHZ tick-stop error")


def insert(name, *parameters):
    """A module beside canwire's."""
    path = os.path.join(os.path.dirname(MODULE), f"{name}.ko")
    done = subprocess.run(["insmod", path, *parameters], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def load(*parameters):
    insert("canwire", *parameters)


def unload():
    done = subprocess.run(["rmmod", "canwire"], capture_output=True, text=True)
    return done.returncode


def is_loaded():
    return os.path.isdir("/sys/module/canwire")


def kernel():
    """The version of the kernel: (6, 12)."""
    return tuple(int(number) for number in os.uname().release.split(".")[:2])


def clock_is_virtual():
    with open("/proc/cmdline", encoding="ascii") as file:
        return "canter.clock=virtual" in file.read().split()


def kernel_log():
    return subprocess.run(["dmesg"], capture_output=True, text=True).stdout


def trouble():
    """What the kernel reports. One with KCSAN reports its own data races, too; those of our modules name one."""
    return [line for line in kernel_log().split("\n")
            if TROUBLE.search(line) and ("BUG: KCSAN" not in line or "[can" in line)]


def nodes(*names, bus="A", bitrate=1000000, dbitrate=None, more=(), **attributes):
    """Makes nodes and sets them up; answers the commands' client."""
    wire = Wire()
    for name in names:
        wire.add(name, bus, **attributes)
        up(name, bitrate, *more, dbitrate=dbitrate)
    return wire


def remove_all():
    """Taps, nodes and with them buses."""
    while Tap.opened:
        Tap.opened.pop().close()
    if not is_loaded():
        return
    wire = Wire()
    for name in wire.nodes():
        wire.delete(name)


def flood(name, can_id, count, eff=False):
    """cangen: frames back to back with a counter as data."""
    ip("link", "set", name, "txqueuelen", "1000")
    return subprocess.Popen(["cangen", name, *(["-e"] if eff else []), "-g", "0", "-I", can_id, "-L", "8", "-D", "i",
                             "-p", "10", "-n", str(count)], stderr=subprocess.DEVNULL)


def state(name):
    text = ip("-d", "link", "show", name)
    return re.search(r"state ([A-Z-]+) (\(|restart|$)", text.split("can ", 1)[1]).group(1)


def with_stalled_reader(name, action, is_over):
    """Runs `action` until it is over while the node's NAPI thread cannot run: one CPU, and this process at real-time
    priority, which it keeps because it never sleeps."""
    if os.cpu_count() != 1:
        raise Skip("needs one CPU")
    with open(f"/sys/class/net/{name}/threaded", "w") as file:
        file.write("1")
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(60))
    try:
        action()
        while not is_over():
            pass
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
