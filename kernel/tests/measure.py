#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""measure.py SET, in the lab's guest on the virtual clock: what figures depend on. Writes records for verify.py.

durations: random frames at six rates; load: one and five buses at 100 %; fill, cost, floor: what their names say;
contend: frames of three senders that all want the wire (more with CONTENDED=n).
"""
import os
import subprocess
import sys

import guest
from canwire import *
from guest import nodes, with_stalled_reader
from tap import between, equal, run

RESULTS = os.environ["CANWIRE_RESULTS"]
FRAMES = int(os.environ.get("FRAMES", "10000"))
CONTENDED = int(os.environ.get("CONTENDED", "9000"))
KERNEL = os.uname().release
ONE = frame(0x100, bytes(8))


def keep(name, tap):
    """All records since the tap was opened, for verify.py."""
    head = tap.head()
    assert head - tap.position < tap.records, "the ring is too small"
    with open(f"{RESULTS}/{name}-{KERNEL}.bin", "wb") as file:
        for n in range(tap.position, head):
            at = tap.offset + n % tap.records * tap.size
            file.write(tap.map[at:at + tap.size])


def durations():
    """Random frames at 125k, 250k, 500k, 1M, 500k/2M and 1M/5M, back to back: every one received, no slip"""
    rates = [(125000, None), (250000, None), (500000, None), (1000000, None), (500000, 2000000), (1000000, 5000000)]
    for number, (bitrate, dbitrate) in enumerate(rates):
        wire = nodes(f"w{number}", bus=f"R{number}", bitrate=bitrate, dbitrate=dbitrate)
        tap = Tap(f"R{number}")
        template = frame(0x100, bytes(8), FDF if dbitrate else 0)
        wire.start(f"R{number}", template, COUNT=FRAMES, SOURCE_FLAGS=RANDOM, SEED=number + 1)
        wire.wait_for_source(f"R{number}", 1000)
        bus = wire.bus(f"R{number}")
        equal("slips", bus["slips"], 0)
        equal("frames, overruns", (bus["frames"], bus["overruns"]), (FRAMES, 0))
        wait_until(lambda: wire.node(f"w{number}")["handed_over"] == FRAMES, 20, "the hand-over")
        keep(f"durations-{bitrate}-{dbitrate or 0}", tap)
        wire.delete(f"w{number}")


def full_load():
    """100 % at 1 Mbit/s on one bus and on five: every frame received by a socket or a node, no slip"""
    wire = nodes("w0", "w1")
    # Its queue takes them all: in the virtual clock a page of the program that is read from a file takes long.
    reader = subprocess.Popen(["candump", "-r", "8000000", "-n", "5000", "-L", "w1"], stdout=subprocess.DEVNULL)
    wait_until(lambda: " w1 " in open("/proc/net/can/rcvlist_all").read(), 60, "candump to listen")
    wire.start("A", ONE, COUNT=5000)
    equal("candump", reader.wait(60), 0)
    equal("slips", wire.bus("A")["slips"], 0)
    buses = "BCDEF"
    for bus in buses:
        nodes("r" + bus, bus=bus)
    for bus in buses:
        wire.start(bus, ONE, COUNT=8000)
    for bus in buses:
        wire.wait_for_source(bus, 200)
    for bus in buses:
        stats = wire.bus(bus)
        equal("frames, slips, overruns", (stats["frames"], stats["slips"], stats["overruns"]), (8000, 0, 0))
        wait_until(lambda: counter("r" + bus, "rx_packets") == 8000, 20, "the hand-over")
    return "late at worst " + ", ".join(f"{wire.bus(bus)['late_ns_max'] / 1000:.1f} us" for bus in "A" + buses)


def fill():
    """A sender with two transmit buffers fills 97 % of the bus with frames back to back"""
    for count in (1, 2, 3):
        wire = nodes("w0", "w1", bus=f"T{count}", TX_BUFFERS=count)
        tap = Tap(f"T{count}")
        guest.flood("w0", "100", 2000).wait()
        wait_until(lambda: wire.node("w0")["sent"] == 2000, 20, "the flood")
        records = tap.read()[100:-100]
        taken = sum(r.end_ns - r.sof_ns + 3000 for r in records)
        share = taken / (records[-1].end_ns + 3000 - records[0].sof_ns)
        if count == 2:
            assert share >= 0.97, share
        shares = shares + f", {share:.1%}" if count > 1 else f"{share:.1%}"
        guest.remove_all()
    return f"with 1, 2, 3 buffers {shares}"


def cost():
    """The wire costs at most 1000 instructions a frame with one receiver, 2500 where that wakes NAPI's thread"""
    most = 2500 if "-rt" in KERNEL else 1000
    costs = []
    for receivers in (1, 2, 5, 64):
        names = [f"w{n}" for n in range(receivers)]
        wire = nodes(*names)
        # With 64 all of them have taken a frame before the next one comes.
        wire.start("A", ONE, PERIOD_NS=300000 if receivers < 64 else 5000000, COUNT=1000 if receivers < 64 else 200)
        wire.wait_for_source("A")
        bus = wire.bus("A")
        equal("overruns", bus["overruns"], 0)
        costs.append(bus["callback_ns"] // bus["callbacks"])
        guest.remove_all()
    between("instructions a frame", 1, costs[0], most)
    # The same while NAPI has been told already and may not run: what is left is the wire's own.
    wire = nodes("w0", FIFO_FRAMES=512)
    with_stalled_reader("w0", lambda: wire.start("A", ONE, PERIOD_NS=300000, COUNT=400),
                        lambda: not wire.source("A")["running"])
    bus = wire.bus("A")
    own = bus["callback_ns"] // bus["callbacks"]
    equal("overruns", bus["overruns"], 0)
    between("instructions a frame without a wake-up", 1, own, 1000)
    guest.remove_all()
    return f"with 1, 2, 5, 64 receivers {', '.join(map(str, costs))}; {own} with 1 that need not be woken"


def floor():
    """The timer's lateness and the source's jitter: what is in a figure that the source and the tap make"""
    wire = nodes("w0")
    tap = Tap("A")
    wire.start("A", ONE, PERIOD_NS=700000, COUNT=1000)
    wire.wait_for_source("A")
    records = tap.read()
    steps = {b.sof_ns - a.sof_ns for a, b in zip(records, records[1:])}
    equal("steps between starts", steps, {700000})
    late = sorted(r.late_ns for r in records)
    between("median lateness in ns", 1, late[500], 800)
    return f"late {late[0]} to {late[-1]} ns, median {late[500]}"


def contend():
    """Three senders without a pause: nothing lost, nothing twice; verify.py looks at every arbitration"""
    each = CONTENDED // 3
    guest.unload()
    guest.load(f"tap_records={1 << max(CONTENDED + 1000, 2048).bit_length()}")
    # On PREEMPT_RT the threads of NAPI share the processor with the senders: their FIFOs have to be patient.
    wire = nodes("w0", "w1", "w2", "w3", FIFO_FRAMES=512)
    tap = Tap("A")
    floods = [guest.flood("w0", "300", each), guest.flood("w1", "100", each), guest.flood("w2", "12345678", each, True)]
    for process in floods:
        process.wait()
    wait_until(lambda: sum(wire.node(n)["sent"] for n in ("w0", "w1", "w2")) == 3 * each, 60, "the last frames")
    heard = wire.node("w3")
    wait_until(lambda: wire.node("w3")["fifo_used"] == 0, 60, "the hand-over")
    equal("handed over and overrun", (wire.node("w3")["handed_over"], heard["overruns"]), (3 * each, 0))
    equal("counted by the interface", counter("w3", "rx_packets"), 3 * each)
    keep("contend", tap)
    bus = wire.bus("A")
    slips = f", {bus['slips']} slips" if bus["slips"] else ""
    lost = sum(wire.node(n)["arbitration_lost"] for n in ("w0", "w1", "w2"))
    return f"{3 * each} frames, {lost} lost arbitrations{slips}"


def quiet():
    """The kernel's log has no complaint after all that"""
    equal("complaints", guest.trouble(), [])


def prepare():
    if not guest.is_loaded():
        guest.load()


if __name__ == "__main__":
    sets = {t.__name__: t for t in (durations, full_load, fill, cost, floor, contend, quiet)}
    wanted = sys.argv[1:] or list(sets)
    sys.exit(bool(run([sets[name] for name in wanted], prepare, guest.remove_all)))
