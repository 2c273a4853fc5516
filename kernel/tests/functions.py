#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""functions.py, in the lab's guest: what a bus and its controllers do. On any clock, on any kernel."""
import fcntl
import multiprocessing
import os
import socket
import struct
import subprocess
import sys
import time

import guest
from canwire import *
from guest import nodes, with_stalled_reader
from tap import Skip, between, equal, run

ERR_LOSTARB, ERR_CRTL, ERR_PROT, ERR_ACK, ERR_BUSOFF, ERR_BUSERROR, ERR_RESTARTED, ERR_CNT = \
    2, 4, 8, 0x20, 0x40, 0x80, 0x100, 0x200
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def stamped(name):
    """A socket that asks for hardware stamps, and hears this machine's own frames."""
    can = Can(name)
    can.socket.setsockopt(socket.SOL_SOCKET, 37, 0x44)  # SO_TIMESTAMPING: RX_HARDWARE, RAW_HARDWARE
    can.socket.settimeout(10)
    return can


def hardware_stamp(can):
    _, controls, _, _ = can.socket.recvmsg(72, 256)
    for _, kind, data in controls:
        if kind == 37:
            seconds, nanoseconds = struct.unpack_from("=qq", data, 32)
            return seconds * 1000000000 + nanoseconds
    raise AssertionError("no hardware stamp")


@test
def echoes_among_receptions():
    """What a node sent and what it received reach a socket in the order of the wire, however late"""
    nodes("w0", "w1", FIFO_FRAMES=32, TX_BUFFERS=3)
    hears_all, senders, tap = stamped("w0"), (Can("w0"), Can("w1")), Tap("A")
    hears_all.socket.setsockopt(socket.SOL_CAN_RAW, socket.CAN_RAW_RECV_OWN_MSGS, 1)

    def send():
        for number in range(6):
            senders[number % 2].send(0x100 + number, bytes(8))

    for _ in range(20):
        with_stalled_reader("w0", send, lambda: tap.head() == tap.position + 6)
        stamps = [hardware_stamp(hears_all) for _ in tap.read()]
        equal("stamps", stamps, sorted(stamps))


def errors_of(records):
    return [r.error for r in records if r.error]


@test
def all_at_once():
    """A frame reaches all other nodes, and its echo the sender's machine, with the end of frame as hardware stamp"""
    nodes("w0", "w1", "w2")
    readers = [stamped(name) for name in ("w0", "w1", "w2")]
    sender, tap = Can("w0"), Tap("A")
    sender.send(0x123, b"abc")
    stamps = {hardware_stamp(reader) for reader in readers}
    equal("different stamps", len(stamps), 1)
    record, = tap.read()
    equal("receivers", record.received, 0b110)
    before, real, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
    between("the stamp's clock less that of frames, ns", real - after - 1, stamps.pop() - record.end_ns, real - before + 1)


@test
def content():
    """Every kind of frame arrives as it was sent: SFF, EFF, RTR, FD with BRS and ESI, every length"""
    nodes("w0", "w1", bitrate=500000, dbitrate=2000000)
    sender, reader = Can("w0", fd=True), Can("w1", fd=True)
    for length in range(9):
        for can_id in (0x7ff, EFF | 0x12345678, length):
            sender.send(can_id, bytes(range(length)))
            equal("classic", reader.receive(), (can_id, None, bytes(range(length))))
        sender.send(RTR | 0x55, b"", length=length)
        got = reader.receive()
        equal("RTR", (got[0], len(got[2])), (RTR | 0x55, length))
    for length in (*range(9), 12, 16, 20, 24, 32, 48, 64):
        for flags in range(4):
            sender.send(EFF | 0x1abcdef0, bytes(range(length)), flags=flags)
            can_id, got_flags, data = reader.receive()
            equal("FD", (can_id, got_flags & 3, data), (EFF | 0x1abcdef0, flags, bytes(range(length))))
    sender.send(1, bytes(9), flags=0)
    equal("9 bytes are sent as 12", len(reader.receive()[2]), 12)


def nodes_with_raw_dlcs():
    """A bus of two nodes whose classic frames keep DLCs of 9 to 15"""
    wire = Wire()
    for name in ("w0", "w1"):
        wire.add(name, "A")
        try:
            up(name, 1000000, "cc-len8-dlc", "on")
        except AssertionError:
            raise Skip("ip(8) knows no cc-len8-dlc")
    return wire


@test
def raw_dlc():
    """With cc-len8-dlc a raw DLC of 9 to 15 is sent, and takes part in stuffing"""
    wire = nodes_with_raw_dlcs()
    tap, sender = Tap("A"), Can("w0")
    sender.socket.send(struct.pack("=IBBBB8s", 0x11, 8, 0, 0, 13, b"12345678"))
    wait_until(lambda: tap.head() > tap.position, 10, "the frame")
    equal("DLC", tap.read()[0].dlc, 13)


@test
def alone():
    """Alone on the bus a node repeats, stops counting at error-passive, and is heard when another comes"""
    # It repeats without an end: at 1 Mbit/s a kernel with KASAN has no time left to read the tap before it is overwritten.
    wire = nodes("w0", bitrate=125000)
    wire.add("w1", "A")
    tap, errors = Tap("A"), Can("w0", errors=True)
    Can("w0").send(0x123, b"1")
    wait_until(lambda: wire.node("w0")["errors_sent"] > 30, 30, "30 attempts")
    stats = wire.node("w0")
    equal("transmit error counter", stats["tx_errors"], 128)
    equal("state", guest.state("w0"), "ERROR-PASSIVE")
    records = tap.read()
    equal("errors", set(errors_of(records)), {ERROR_ACK})
    gaps = {records[n + 1].sof_ns - records[n].end_ns for n in range(20, 25)
            if not records[n + 1].marks & MARK_SLIPPED}
    between("gap of a passive sender in ns", 88000, min(gaps, default=88000), 88000)
    up("w1", 125000)
    reader = Can("w1")
    wait_until(lambda: wire.node("w0")["sent"] == 1, 10, "the frame to be sent")
    got = [frame for frame in errors.drain() if frame[0] & ERR]
    assert all(not frame[0] & ERR_BUSERROR for frame in got), got
    assert 0x20 in [frame[2][1] for frame in got], got  # it became passive; a late machine skips the warning
    assert stats["error_events_limited"] >= 25, stats


@test
def ways_of_taking_part():
    """Listen-only hears and does not acknowledge; loopback and presume-ack need nobody; loopback hears itself"""
    wire = nodes("w0")
    wire.add("w1", "A")
    up("w1", 1000000, "listen-only", "on")
    Can("w0").send(1, b"a")
    wait_until(lambda: wire.node("w0")["errors_sent"] > 5, 30, "errors")
    equal("sent", wire.node("w0")["sent"], 0)
    equal("counter of the listener", wire.node("w1")["rx_errors"], 0)
    wire.add("w2", "A")
    reader = Can("w1")
    up("w2")
    equal("the listener hears", reader.receive(), (1, None, b"a"))
    for number, mode in enumerate(("loopback", "presume-ack")):
        name = f"x{number}"
        wire.add(name, mode)
        up(name, 1000000, mode, "on")
        Can(name).send(2, b"b")
        wait_until(lambda: wire.node(name)["sent"] == 1, 10, mode)
        equal("errors", wire.node(name)["errors_sent"], 0)
        equal(f"received with {mode}", wire.node(name)["received"], 1 - number)


@test
def one_shot():
    """One-shot frames have no second try, and the next one goes out"""
    wire = nodes("w0", more=("one-shot", "on"))
    sender = Can("w0")
    sender.send(1, b"a")
    wait_until(lambda: counter("w0", "tx_errors") > 0, 10, "the error")
    equal("attempts", wire.node("w0")["errors_sent"], 1)
    nodes("w1")
    reader = Can("w1")
    sender.send(2, b"b")
    equal("heard", reader.receive(), (2, None, b"b"))
    equal("sent", wire.node("w0")["sent"], 1)


def down_and_up(name):
    """Restarts an interface without the time that two programs take."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = fcntl.ioctl(control, 0x8913, struct.pack("16s24x", name.encode()))  # SIOCGIFFLAGS
        flags, = struct.unpack_from("H", request, 16)
        for wanted in (flags & ~1, flags | 1):  # IFF_UP
            fcntl.ioctl(control, 0x8914, struct.pack("16sH22x", name.encode(), wanted))  # SIOCSIFFLAGS


@test
def one_shot_behind_the_frames_of_others():
    """A one-shot frame of a node that was restarted within a frame is not lost to that frame's arbitration"""
    bitrate = 500  # a quarter of a second a frame: the restart is within it
    wire = nodes("w1", "w2", bitrate=bitrate)
    wire.add("w0", "A")
    up("w0", bitrate, "one-shot", "on")
    tap, winner, heard = Tap("A"), Can("w1"), Can("w2")
    # Before it has seen 11 recessive bits, a node acknowledges nothing.
    joined_ns = time.monotonic_ns() + 11 * 1000000000 // bitrate
    wait_until(lambda: time.monotonic_ns() > joined_ns, 20, "the nodes' joining")
    for can_id in (0x100, 0x101):
        winner.send(can_id, bytes(8))
    Can("w0").send(0x200, bytes(8))  # contends with 0x101
    wait_until(lambda: tap.head() > tap.position, 20, "the first frame")
    first, = tap.read()
    contended_ns = first.end_ns + 4 * 1000000000 // bitrate
    wait_until(lambda: time.monotonic_ns() > contended_ns, 20, "the second frame's start")
    down_and_up("w0")
    Can("w0").send(0x300, bytes(8))
    equal("frames ended meanwhile", tap.head() - tap.position, 0)
    wait_until(lambda: tap.head() == tap.position + 2, 20, "the new frame")
    second, new = tap.read()
    ends = [(record.id, record.error) for record in (second, new)]
    equal("on the wire", ends, [(0x101, ERROR_NONE), (0x300, ERROR_NONE)])
    equal("heard", [can_id for can_id, _, _ in heard.drain()], [0x100, 0x101, 0x300])
    equal("contenders of the second frame", second.pending, 0b101)
    equal("arbitrations lost", wire.node("w0")["arbitration_lost"], 0)


@test
def injected():
    """An injected error of each kind destroys as many frames as asked for, counts as ISO 11898-1 says, and is told"""
    wire = nodes("w0", "w1", "w2", more=("berr-reporting", "on"))
    sender, told, heard = Can("w0"), Can("w1", errors=True), Can("w2", errors=True)
    tap = Tap("A")
    for kind in (ERROR_BIT, ERROR_STUFF, ERROR_FORM, ERROR_CRC, ERROR_ACK):
        before = [wire.node(name) for name in ("w0", "w1", "w2")]
        more = {NODE: "w1"} if kind in (ERROR_STUFF, ERROR_FORM, ERROR_CRC) else {}
        wire.command(INJECT, {BUS: "A", ERROR: kind, COUNT: 1, **more})
        sender.send(0x100 + kind, b"x" * 8)
        wait_until(lambda: wire.node("w0")["sent"] == before[0]["sent"] + 1, 20, "the frame")
        after = [wire.node(name) for name in ("w0", "w1", "w2")]
        equal(f"transmit errors, kind {kind}", after[0]["tx_errors"], max(before[0]["tx_errors"] + 8 - 1, 0))
        first = 9 if more else 1
        equal("of the first to see it", after[1]["rx_errors"], max(before[1]["rx_errors"] + first - 1, 0))
        equal("of another", after[2]["rx_errors"], max(before[2]["rx_errors"] + 1 - 1, 0))
        equal("on the wire", [r.error for r in tap.read()], [kind, ERROR_NONE])
    got = [frame for frame in told.drain() if frame[0] & ERR]
    equal("error frames", len(got), 5)
    assert all(frame[0] & (ERR_PROT | ERR_BUSERROR) == ERR_PROT | ERR_BUSERROR for frame in got), got
    equal("location of the CRC error", got[3][2][3], 0x08)
    equal("heard once each", len([f for f in heard.drain() if not f[0] & ERR]), 5)


@test
def injected_into_a_node_that_is_deleted():
    """Errors for a node end with it: the next node in its slot sees none"""
    wire = nodes("w0", "w1", "w2")
    wire.command(INJECT, {BUS: "A", NODE: "w2", ERROR: ERROR_CRC, COUNT: 100})
    wire.delete("w2")
    wire.add("w2", "A")
    up("w2", 1000000)
    tap, heard = Tap("A"), Can("w2")
    Can("w0").send(0x123, b"abc")
    equal("heard", heard.receive(10), (0x123, None, b"abc"))
    equal("errors", errors_of(tap.read()), [])


@test
def probable():
    """Errors by probability hit that share of the frames, and none is lost"""
    wire = nodes("w0", "w1")
    wire.command(BUS_SET, {BUS: "A", SEED: 7})
    wire.command(INJECT, {BUS: "A", ERROR: ERROR_CRC, PROBABILITY: 100000000})
    wire.start("A", frame(0x100, bytes(8)), COUNT=1000)
    wire.wait_for_source("A", 120)
    bus = wire.bus("A")
    equal("frames", bus["frames"], 1000)
    between("errors in 1000 frames at 10 %", 70, bus["errors"], 155)


@test
def bus_off():
    """255 errors take a node off the bus; what waits is lost and counted; it restarts by hand and by itself"""
    wire = nodes("w0", "w1")
    sender, told, heard = Can("w0"), Can("w0", errors=True), Can("w1")
    wire.command(INJECT, {BUS: "A", ERROR: ERROR_BIT, NODE: "w0"})
    sender.send(1, b"lost")
    wait_until(lambda: guest.state("w0") == "BUS-OFF", 20, "bus-off")
    wire.command(INJECT, {BUS: "A", COUNT: 0})
    equal("bus-offs", wire.node("w0")["bus_offs"], 1)
    equal("attempts", wire.node("w0")["errors_sent"], 32)
    assert any(frame[0] & ERR_BUSOFF for frame in told.drain()), "no error frame told of it"
    ip("link", "set", "w0", "type", "can", "restart")
    wait_until(lambda: guest.state("w0") == "ERROR-ACTIVE", 10, "the restart")
    wait_until(lambda: try_send(sender, 2, b"back"), 10, "room")
    equal("heard after the restart", heard.receive(), (2, None, b"back"))
    down("w0")
    up("w0", 1000000, "restart-ms", "20")
    for turn in range(3):
        wire.command(INJECT, {BUS: "A", ERROR: ERROR_BIT, NODE: "w0", COUNT: 32})
        wait_until(lambda: try_send(sender, 3, b"lost"), 10, "room")
        wait_until(lambda: wire.node("w0")["bus_offs"] == turn + 2, 10, "bus-off")
        wait_until(lambda: guest.state("w0") == "ERROR-ACTIVE", 10, "the restart")
        wait_until(lambda: try_send(sender, 4, b"back"), 10, "room")
        equal("heard", heard.receive(), (4, None, b"back"))


def try_send(sender, can_id, data):
    try:
        sender.send(can_id, data)
        return True
    except OSError:
        return False


@test
def bus_off_with_a_full_queue():
    """Bus-off under a flood with restart-ms: the queue moves on each time, and nothing is sent twice"""
    wire = nodes("w0", "w1", more=("restart-ms", "1"))
    process, heard = guest.flood("w0", "100", 1000000), Can("w1")
    for turn in range(5):
        before = wire.node("w0")
        wire.command(INJECT, {BUS: "A", ERROR: ERROR_BIT, NODE: "w0", COUNT: 32})
        wait_until(lambda: wire.node("w0")["bus_offs"] > turn, 30, "bus-off")
        between_off = wire.node("w0")["sent"]
        wait_until(lambda: wire.node("w0")["sent"] > between_off + 20, 30, "frames after the restart")
    process.kill()
    process.wait()
    numbers = [struct.unpack("<Q", data)[0] for can_id, _, data in heard.drain() if can_id == 0x100]
    assert numbers == sorted(set(numbers)), "sent twice or out of order"


def restart_for_ever(name, restarts):
    """Asks for restarts of the node, and counts those that the kernel did in `restarts`, a shared value."""
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    restart = struct.pack("=HHI", 8, 7, 1)  # IFLA_CAN_RESTART
    attributes = struct.pack("=HH4sHH", 8, 1, b"can", 4 + len(restart), 2) + restart  # IFLA_INFO_KIND, IFLA_INFO_DATA
    body = struct.pack("=BxHiII", 0, 0, socket.if_nametoindex(name), 0, 0) + \
        struct.pack("=HH", 4 + len(attributes), 18) + attributes  # IFLA_LINKINFO
    request = struct.pack("=IHHII", 16 + len(body), 16, 5, 1, 0) + body  # RTM_NEWLINK, with an answer
    while True:
        netlink.send(request)
        if not struct.unpack_from("=i", netlink.recv(4096), 16)[0]:
            restarts.value += 1


@test
def restarts_beside_bus_off():
    """A restart by hand in the moment of the bus-off leaves no node behind that is error-active and cannot send"""
    if os.cpu_count() < 2:
        raise Skip("needs two CPUs")
    wire = nodes("w0", "w1")
    sender, heard = Can("w0"), Can("w1")
    restarts = multiprocessing.Value("Q", 0)
    process = multiprocessing.Process(target=restart_for_ever, args=("w0", restarts), daemon=True)
    process.start()
    try:
        for turn in range(1, 101):
            wire.command(INJECT, {BUS: "A", ERROR: ERROR_BIT, NODE: "w0", COUNT: 32})
            sender.send(1, b"lost")
            wait_until(lambda: restarts.value == turn, 30, f"restart {turn}")
            equal("bus-offs", wire.node("w0")["bus_offs"], turn)
            wait_until(lambda: carrier("w0") and try_send(sender, 2, b"back") and heard.receive(1), 30,
                       f"a frame after restart {turn}")
            equal("state, carrier", (guest.state("w0"), carrier("w0")), ("ERROR-ACTIVE", 1))
            heard.drain()
    finally:
        process.kill()
        process.join()


def carrier(name):
    with open(f"/sys/class/net/{name}/carrier") as file:
        return int(file.read())


def overrun(expected, **fifo):
    wire = nodes("w0", **fifo)
    tap, errors = Tap("A"), Can("w0", errors=True)
    with_stalled_reader("w0", lambda: wire.start("A", frame(0x100, b"12345678"), PERIOD_NS=500000, COUNT=9),
                        lambda: not wire.source("A")["running"])
    wait_until(lambda: wire.node("w0")["fifo_used"] == 0, 10, "the FIFO to be read")
    records = tap.read()
    equal("on the wire", len(records), 9)
    equal("taken", sum(r.received for r in records), expected)
    equal("overrun", [bool(r.overrun) for r in records], [False] * expected + [True] * (9 - expected))
    equal("counted", wire.node("w0")["overruns"], 9 - expected)
    equal("as sja1000 counts", counter("w0", "rx_over_errors"), 1)
    got = errors.drain()
    equal("frames", len([f for f in got if not f[0] & ERR]), expected)
    told = [f for f in got if f[0] & ERR]
    equal("error frames", len(told), 1)
    equal("what it tells", (told[0][0] & 0x7f, told[0][2][1]), (ERR_CRTL, 1))


@test
def fifo_of_an_sja1000():
    """A receive FIFO of 64 bytes holds five frames of eight bytes; the rest is overrun, told of as by sja1000"""
    overrun(5)


@test
def fifo_in_frames():
    """A receive FIFO of five frames, as an MPC5200's, and one of a single frame"""
    overrun(5, FIFO_FRAMES=5)
    guest.remove_all()
    overrun(1, FIFO_FRAMES=1)


@test
def cut_off():
    """A node whose wire is cut hears nothing and repeats; joined again its frame goes out"""
    wire = nodes("w0", "w1", "w2")
    cut, other, heard = Can("w0"), Can("w1"), Can("w2")
    wire.command(CONNECT, {NODE: "w0", CONNECTED: 0})
    cut.send(1, b"a")
    other.send(2, b"b")
    equal("heard", heard.receive(), (2, None, b"b"))
    wait_until(lambda: wire.node("w0")["tx_errors"] == 128, 20, "the node to be passive")
    equal("not heard", cut.receive(0.05), None)
    wire.command(CONNECT, {NODE: "w0", CONNECTED: 1})
    equal("heard when joined", heard.receive(), (1, None, b"a"))


@test
def babbling():
    """A babbling node with the lowest identifier leaves the others nothing, until it stops"""
    wire = nodes("w0", "w1", "w2", bitrate=125000)  # it leaves a program time to read the tap on any machine
    heard, victim, tap = Can("w2"), Can("w1"), Tap("A")
    wire.command(BABBLE, {NODE: "w0", FRAME: frame(0, bytes(8))})
    wait_until(lambda: wire.node("w0")["sent"] > 50, 30, "babble")
    victim.send(0x10, b"v")
    wait_until(lambda: wire.node("w1")["arbitration_lost"] > 20, 30, "arbitration to be lost")
    equal("of the victim", wire.node("w1")["sent"], 0)
    wire.command(BABBLE, {NODE: "w0", COUNT: 0})
    wait_until(lambda: wire.node("w1")["sent"] == 1, 10, "the victim")
    records = tap.read()
    assert all(r.marks & MARK_BABBLE for r in records[:-1]) and records[-1].id == 0x10, records[-2:]
    wire.command(BABBLE, {NODE: "w0", FRAME: frame(0x20, b"x"), COUNT: 3})
    wait_until(lambda: len([r for r in tap.read() if r.id == 0x20]) >= 0 and wire.node("w0")["sent"] ==
               len([r for r in records if r.id == 0]) + 3, 10, "three frames")


@test
def babbling_without_fd():
    """A node that babbles FD frames sends none after FD was switched off"""
    wire = nodes("w0", "w1", bitrate=500000, dbitrate=2000000)
    wire.command(BABBLE, {NODE: "w0", FRAME: frame(0, bytes(12), FDF)})
    wait_until(lambda: wire.node("w0")["sent"] > 5, 30, "babble")
    down("w0")
    up("w0", 500000, "fd", "off")
    tap, heard = Tap("A"), Can("w1")
    Can("w0").send(0x123, b"abc")
    equal("heard", heard.receive(10), (0x123, None, b"abc"))
    equal("on the wire", [record.id for record in tap.read()], [0x123])


@test
def other_rates():
    """A node at another bit rate destroys frames until it is passive; then the others talk, and it hears nothing"""
    wire = nodes("w0", "w1", bitrate=500000)
    wire.add("w2", "A")
    up("w2", 250000)
    tap, heard = Tap("A"), Can("w1")
    Can("w0").send(0x123, b"abc")
    equal("heard in the end", heard.receive(30), (0x123, None, b"abc"))
    records = tap.read()
    assert len(records) > 10, records
    equal("errors", set(errors_of(records)), {ERROR_RATE})
    stranger = wire.node("w2")
    assert stranger["rx_errors"] >= 128 and not stranger["received"], stranger
    equal("state", guest.state("w2"), "ERROR-PASSIVE")
    wire.delete("w1")
    Can("w0").send(0x124, b"")
    wait_until(lambda: wire.node("w0")["errors_sent"] > len(errors_of(records)) + 20, 30, "nobody to acknowledge")


@test
def classic_among_fd():
    """A classic node destroys FD frames, one that is FD tolerant looks away; classic frames reach all"""
    wire = nodes("w0", "w1", bitrate=500000, dbitrate=2000000)
    wire.add("w2", "A", FD_TOLERANT=1)
    up("w2", 500000)
    sender, heard, classic, tap = Can("w0", fd=True), Can("w1", fd=True), Can("w2"), Tap("A")
    sender.send(1, b"a" * 12, flags=BRS)
    equal("heard", heard.receive()[2], b"a" * 12)
    sender.send(2, b"b")
    equal("heard by the classic one", classic.receive(), (2, None, b"b"))
    equal("errors", errors_of(tap.read()), [])
    wire.add("w3", "A")
    up("w3", 500000)
    sender.send(3, b"c" * 12, flags=0)
    heard.receive()
    equal("heard in the end", heard.receive(30)[2], b"c" * 12)
    equal("errors", set(errors_of(tap.read())), {ERROR_RATE})


@test
def contention():
    """Three senders at once: the lowest identifier wins each time, and every frame arrives once and in order"""
    count = 600
    wire = nodes("w0", "w1", "w2", "w3", bitrate=25000)  # 5 ms a frame: senders are ahead of the wire on any machine
    tap, heard = Tap("A"), Can("w3")
    floods = [guest.flood("w0", "300", count), guest.flood("w1", "100", count), guest.flood("w2", "12345678", count, True)]
    got = []
    wait_until(lambda: got.extend(heard.drain()) or len(got) >= 3 * count or
               wire.node("w3")["overruns"] + len(got) >= 3 * count, 120, "all frames")
    for process in floods:
        process.wait()
    records = [r for r in tap.read() if not r.error]
    equal("frames on the wire", len(records), 3 * count)
    order = {0: 0x300 << 18, 1: 0x100 << 18, 2: 0x12345678}
    contended = 0
    for record in records:
        slots = [slot for slot in order if record.pending >> slot & 1]
        contended += len(slots) > 1
        equal("winner", record.slot, min(slots, key=order.get))
    for can_id in (0x300, 0x100, EFF | 0x12345678):
        numbers = [struct.unpack("<Q", r.data)[0] for r in records if r.id == can_id]
        equal(f"order of {can_id:x}", numbers, list(range(count)))
    equal("received and lost", len(got) + sum(r.overrun >> 3 & 1 for r in records), 3 * count)
    assert contended > 3 * count * 4 // 9, contended
    return f"{contended} of {3 * count} contended"


def overrun_and_slips(tap, bus, node, count):
    """Of a bus that was always busy: every frame was received or is told to be lost, and every wait is told."""
    wire, records = Wire(), tap.read()
    equal("frames", len([r for r in records if not r.error]), count)
    equal("neither received nor overrun", [r for r in records if bool(r.received) == bool(r.overrun)], [])
    received = sum(bool(r.received) for r in records)
    wait_until(lambda: wire.node(node)["handed_over"] == received, 60, "the hand-over")
    equal("packets", counter(node, "rx_packets"), received)
    equal("overruns told by the node and the bus", (wire.node(node)["overruns"], wire.bus(bus)["overruns"]),
          (count - received, count - received))
    waits = 0
    for before, after in zip(records, records[1:]):
        wait = after.sof_ns - before.end_ns - 3000
        equal("a wait is marked", wait > 0, bool(after.marks & MARK_SLIPPED))
        between("a wait after a frame that was late", 0, wait, before.late_ns + min(before.late_ns, 2000000))
        waits += wait
    stats = wire.bus(bus)
    between("waits told in all", waits, stats["slip_ns"], waits + 2 * max(records[-1].late_ns, 1))
    return count - received, stats["slips"]


@test
def always_busy():
    """At 100 % on one bus and then on five no frame is lost that is not told to be, and the wire's waits are told too"""
    one, count, lost, slips = frame(0x100, bytes(8)), 2000, 0, 0
    for buses in ("A", "BCDEF"):
        taps = {}
        for bus in buses:
            wire = nodes("r" + bus, bus=bus)
            taps[bus] = Tap(bus)
        for bus in buses:
            wire.start(bus, one, COUNT=count)
        for bus in buses:
            wire.wait_for_source(bus, 300)
            of_bus = overrun_and_slips(taps[bus], bus, "r" + bus, count)
            lost, slips = lost + of_bus[0], slips + of_bus[1]
    return f"{lost} of {6 * count} overrun, {slips} slips"


@test
def source_schedules():
    """The source keeps a period, a burst, a jitter, a load and a recorded schedule, to the nanosecond where it can"""
    wire = nodes("w0")
    one = frame(0x100, bytes(8))
    tap = Tap("A")

    def starts(**plan):
        """The records, and whether this machine's lateness moved none of them."""
        wire.start("A", **plan)
        wire.wait_for_source("A")
        records, late = tap.read(), wire.source("A")["late_ns_max"]
        slipped = any(r.marks & MARK_SLIPPED for r in records)
        return records, late < 100000 and not slipped

    def steps(records):
        return [b.sof_ns - a.sof_ns for a, b in zip(records, records[1:])]

    records, exact = starts(a_frame=one, PERIOD_NS=1000000, COUNT=50, SOURCE_FLAGS=NUMBER)
    equal("numbers", [int.from_bytes(r.data[:2], "little") for r in records], list(range(50)))
    assert not exact or set(steps(records)) == {1000000}, steps(records)
    records, exact = starts(a_frame=one, PERIOD_NS=2000000, BURST=3, COUNT=30)
    equal("frames", len(records), 30)
    tight = [b.sof_ns - a.end_ns == 3000 for a, b in zip(records, records[1:])]
    assert not exact or tight == ([True, True, False] * 10)[:29], tight
    records, exact = starts(a_frame=one, PERIOD_NS=1000000, JITTER_NS=400000, COUNT=50)
    assert not exact or len(set(steps(records))) > 25 and 600000 <= min(steps(records)), steps(records)
    assert not exact or max(steps(records)) <= 1400000, steps(records)
    records, exact = starts(a_frame=one, LOAD=250, COUNT=50)
    step = (records[0].end_ns - records[0].sof_ns + 3000) * 4
    assert not exact or set(steps(records)) == {step}, (step, steps(records))
    times = [0, 400000, 400000, 3000000]
    frames = [frame(0x10 + n, bytes([n])) for n in range(4)]
    wire.command(SOURCE_LOAD, {BUS: "A", RESET: b"", SCHEDULE: b"".join(map(entry, times[:2], frames[:2]))})
    wire.command(SOURCE_LOAD, {BUS: "A", SCHEDULE: b"".join(map(entry, times[2:], frames[2:]))})
    records, exact = starts(SOURCE_FLAGS=FROM_SCHEDULE, COUNT=5, PERIOD_NS=5000000)
    equal("order", [r.id for r in records], [0x10, 0x11, 0x12, 0x13] * 5)
    seen = {records[n + 1].sof_ns - records[n].sof_ns for n in range(0, 20, 4)}
    assert not exact or seen == {400000}, seen
    wire.start("A", frame(0x7f0, b""), SOURCE_FLAGS=0)
    wait_until(lambda: wire.source("A")["sent"] > 20, 30, "an endless source")
    wire.command(SOURCE_STOP, {BUS: "A"})
    equal("running", wire.source("A")["running"], 0)
    return "exact" if exact else "this machine was late"


@test
def tap_is_read_only():
    """The tap cannot be written to, wakes its readers, and says when the bus is gone"""
    wire = nodes("w0", "w1")
    try:
        os.close(os.open("/dev/canwire-A", os.O_RDWR))
        raise AssertionError("opened for writing")
    except PermissionError:
        pass
    tap = Tap("A")
    try:
        mmap.mmap(tap.fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        raise AssertionError("mapped for writing")
    except PermissionError:
        pass
    equal("quiet", tap.poll(0.05), [])
    Can("w0").send(1, b"a")
    equal("awake", tap.poll(10), [select.POLLIN])
    equal("read", len(tap.read()), 1)
    equal("rmmod with an open tap", guest.unload() != 0, True)
    wire.delete("w0")
    wire.delete("w1")
    assert tap.poll(10)[0] & select.POLLHUP
    equal("still there", len(tap.read()), 0)
    wire.add("w0", "A")
    again = Tap("A")
    equal("a new ring", again.head(), 0)
    again.close()
    tap.close()


@test
def packet_sockets():
    """A packet socket sends classic and FD frames of their size only: CAN XL and others are dropped and counted"""
    wire = nodes("w0", "w1", bitrate=500000, dbitrate=2000000)
    tap, before = Tap("A"), counter("w0", "tx_dropped")
    classic = struct.pack("=IB3x8s", 0x123, 2, b"ab")
    # struct canxl_frame of 13 to 16 bytes: byte 4 has the XL flag, and would be a length of 255.
    sizes = {0x000c: [classic], 0x000d: [frame(0x124, bytes(12), FDF)],
             0x000e: [struct.pack("=IBBHI", 0x125, 0xff, 0, length, 0) + bytes(length) for length in range(1, 5)],
             0x0800: [classic, bytes(72)]}
    for protocol, packets in sizes.items():
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as packet:
            packet.bind(("w0", protocol))
            for content in packets:
                try:
                    packet.send(content)
                except OSError:
                    pass  # a kernel may refuse it itself
    wait_until(lambda: wire.node("w0")["sent"] == 2, 10, "the two frames that are CAN frames")
    Can("w0").send(0x7ff, b"")  # behind all others
    wait_until(lambda: wire.node("w0")["sent"] == 3, 10, "the last frame")
    equal("on the wire", [record.id for record in tap.read()], [0x123, 0x124, 0x7ff])
    equal("received", wire.node("w1")["received"], 3)
    assert counter("w0", "tx_dropped") > before


@test
def foreign_bits_of_identifiers():
    """A frame that a socket sends as an error frame, or with too long an identifier, is a data frame on the wire"""
    nodes("w0", "w1", bitrate=500000, dbitrate=2000000)
    sender, reader, tap = Can("w0", fd=True), Can("w1", fd=True, errors=True), Tap("A")
    for sent, arrives in ((ERR | 4, 4), (0x1123, 0x123), (EFF | ERR | 0x12345678, EFF | 0x12345678)):
        sender.send(sent, b"a")
        equal("classic", reader.receive()[0], arrives)
        sender.send(sent, b"a" * 12, flags=0)
        equal("FD", reader.receive()[0], arrives)
    equal("on the wire", {record.id for record in tap.read()}, {4, 0x123, EFF | 0x12345678})


@test
def raw_dlc_of_others():
    """A frame without a raw DLC has none where it arrives, whatever its sender's socket or the source's request said"""
    wire = nodes_with_raw_dlcs()
    reader = Can("w1")

    def arrives():
        return reader.socket.recv(16)[7]
    for length, raw, expected in ((3, 0, 0), (3, 13, 0), (8, 0, 0), (8, 13, 13)):
        Can("w0").socket.send(struct.pack("=IBBBB8s", 0x11, length, 0, 0, raw, bytes(8)))
        equal(f"of a socket, length {length}, raw DLC {raw}", arrives(), expected)
    wire.start("A", struct.pack("=IBBBB64x", 0x11, 8, 0, 0, 200), COUNT=1)
    equal("of the source", arrives(), 0)


@test
def random_lengths():
    """A frame of random length has zeros behind its data"""
    nodes("w0", "w1")
    wire, reader, tap = Wire(), Can("w1"), Tap("A")
    wire.start("A", frame(0x100, b"\xff" * 8), SOURCE_FLAGS=RANDOM_LEN, COUNT=50)
    wire.wait_for_source("A")
    records = tap.read()
    equal("frames", len(records), 50)
    assert len({r.len for r in records}) > 4, records
    heard = 0
    for record in records:
        expected = b"\xff" * record.len + bytes(8 - record.len)
        equal("in the tap", record.raw[:8], expected)
        if record.received >> 1 & 1:  # the FIFO of a machine that is late may be full
            equal("in a socket", reader.socket.recv(16)[8:], expected)
            heard += 1
    equal("received and lost", heard + sum(record.overrun >> 1 & 1 for record in records), 50)
    assert heard == 50 or not guest.clock_is_virtual(), heard


@test
def passive_esi():
    """An error-passive node sends FD frames with ESI, and without it when it is error-active again"""
    wire = nodes("w0", "w1", bitrate=500000, dbitrate=2000000)
    sender, reader = Can("w0", fd=True), Can("w1", fd=True)
    flags = []
    # 17 errors of 8 each make it passive; nine sent frames later it is active again.
    wire.command(INJECT, {BUS: "A", ERROR: ERROR_BIT, COUNT: 17})
    for number in range(12):
        sender.send(number, bytes(8), flags=BRS)
        flags.append(reader.receive()[1] & ESI)
    equal("ESI of the first", flags[0], ESI)
    equal("ESI of the last", flags[-1], 0)
    equal("it changes once", sorted(flags, reverse=True), flags)


@test
def cut_off_in_the_data_phase():
    """A frame whose sender disappears in the data phase ends after that, not before"""
    # Its data takes 8 ms, so that a slow kernel's command comes before its end.
    wire = nodes("w0", "w1", "w2", bitrate=20000, dbitrate=80000)
    tap, sender = Tap("A"), Can("w0", fd=True)
    sender.send(1, bytes(range(64)), flags=BRS)
    wait_until(lambda: tap.head() > tap.position, 10, "a whole frame")
    whole, cut, frames = tap.read()[0], None, 1
    while cut is None:  # until its data is hit: the machine may be late
        assert frames < 1000, "no command was in time for the data of any frame"
        sender.send(1, bytes(range(64)), flags=BRS)
        frames += 1
        time.sleep(0.005)
        asked_ns = time.monotonic_ns()
        wire.command(CONNECT, {NODE: "w0", CONNECTED: 0})
        wire.command(CONNECT, {NODE: "w0", CONNECTED: 1})
        # It is repeated, so that nothing of it is left when the next one is cut off.
        wait_until(lambda: wire.node("w0")["sent"] == frames, 10, "frame %d to be sent" % frames)
        cut = next((r for r in tap.read() if r.error == ERROR_ABORTED and 0 < r.data_bits < whole.data_bits), None)
    assert cut.end_ns > asked_ns, "it ended before it was cut off"


@test
def unprivileged():
    """Without CAP_NET_ADMIN the taps and buses of other network namespaces are closed"""
    wire = nodes("w0")
    ip("netns", "add", "canwire-test")
    try:
        look = """
import ctypes, os, sys
sys.path.insert(0, %r)
from canwire import BUS, BUS_GET, Refused, Wire
os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
wire, answers = Wire(), []
try:
    os.close(os.open("/dev/canwire-A", os.O_RDONLY)); answers.append("tap")
except PermissionError:
    pass
try:
    wire.command(BUS_GET, {BUS: "A"}); answers.append("bus")
except Refused:
    pass
answers.append(str(len(wire.command(BUS_GET, {}, dump=True))))
print(" ".join(answers))
""" % os.path.dirname(os.path.abspath(__file__))
        def seen(*prefix):
            done = subprocess.run([*prefix, sys.executable, "-c", look], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            return done.stdout.strip()
        equal("with a node here", seen(), "tap bus 1")
        equal("from another namespace", seen("ip", "netns", "exec", "canwire-test"), "0")
    finally:
        ip("netns", "delete", "canwire-test")


@test
def refusals():
    """What cannot be done is refused, with a sentence that says why"""
    wire = nodes("w0")
    long = frame(0x100, bytes(9))
    cases = [
        (NODE_ADD, {NODE: "w0", BUS: "A"}, "interface of this name"),
        (NODE_ADD, {NODE: "w1", BUS: "no/slash"}, "letters"),
        (NODE_ADD, {NODE: "w%d", BUS: "A"}, "name that an interface can have"),
        (NODE_ADD, {NODE: "w1"}, "BUS is missing"),
        (NODE_ADD, {NODE: "w1", BUS: "A", FIFO_BYTES: 64, FIFO_FRAMES: 5}, "not both"),
        (NODE_ADD, {NODE: "w1", BUS: "A", TX_BUFFERS: 4}, "range"),
        (NODE_ADD, {NODE: "w1", BUS: "A", CLOCK_DRIFT: 1_000_001}, "range"),
        (NODE_ADD, {NODE: "w1", BUS: "A", CLOCK_DRIFT: -1_000_001}, "range"),
        (NODE_DELETE, {NODE: "can0"}, "no interface of this name is a node"),
        (NODE_DELETE, {NODE: "nosuch"}, "no interface of this name is a node"),
        (BUS_GET, {BUS: "B"}, "no bus of this name"),
        (SOURCE_START, {BUS: "A", FRAME: long}, "cannot"),
        (SOURCE_START, {BUS: "A", FRAME: frame(0x800, b"")}, "can be sent"),
        (SOURCE_START, {BUS: "A"}, "FRAME is missing"),
        (SOURCE_START, {BUS: "A", FRAME: frame(1, b""), PERIOD_NS: 10}, "1 us"),
        (SOURCE_START, {BUS: "A", FRAME: frame(1, b""), PERIOD_NS: 10000, LOAD: 500}, "not both"),
        (SOURCE_START, {BUS: "A", FRAME: frame(1, b""), PERIOD_NS: 10000, JITTER_NS: 10000}, "less than the period"),
        (SOURCE_START, {BUS: "A", FRAME: frame(1, b""), BITRATE: 7000000}, "80 MHz"),
        (SOURCE_START, {BUS: "A", FRAME: frame(1, b""), START_NS: 1 << 63}, "2^62"),
        (SOURCE_START, {BUS: "A", FRAME: frame(1, b"x"), SOURCE_FLAGS: NUMBER}, "two bytes"),
        (SOURCE_START, {BUS: "A", SOURCE_FLAGS: FROM_SCHEDULE}, "no schedule"),
        (SOURCE_LOAD, {BUS: "A", SCHEDULE: entry(5, frame(1, b"")) + entry(4, frame(1, b""))}, "backwards"),
        (SOURCE_LOAD, {BUS: "A", SCHEDULE: entry(1 << 61, frame(1, b""))}, "2^61"),
        (SOURCE_LOAD, {BUS: "A", SCHEDULE: b"x" * 79}, "80 bytes"),
        (INJECT, {BUS: "A"}, "ERROR is missing"),
        (INJECT, {BUS: "A", ERROR: ERROR_CRC, PROBABILITY: 1000000001}, "out of"),
        (BABBLE, {NODE: "w0", FRAME: frame(1, bytes(12), FDF)}, "FD is off"),
        (CONNECT, {NODE: "w0"}, "CONNECTED is missing"),
    ]
    for command, attributes, part in cases:
        try:
            wire.command(command, attributes)
            raise AssertionError(f"{command} {attributes} was done")
        except Refused as refused:
            sentence = str(refused)
            assert part in sentence or part == "cannot" and "can be sent" in sentence, (attributes, sentence)
    down("w0")
    try:
        wire.start("A", frame(1, b""))
        raise AssertionError("a source without a bit rate")
    except Refused as refused:
        assert "bit rate" in str(refused), refused
    wire.start("A", frame(1, b""), BITRATE=250000, COUNT=1)
    wait_until(lambda: wire.source("A")["errors"] > 3, 10, "nobody to acknowledge")


@test
def busy_poll():
    """A socket that has sent on a node has the node's NAPI id, which SO_BUSY_POLL needs"""
    wire = nodes("w0", "w1")
    number, = struct.unpack("=I", wire.node("w0")["raw"][NAPI_ID])
    if not number:
        raise Skip("this kernel has no busy polling")
    can = Can("w0")
    can.send(1, b"")
    equal("SO_INCOMING_NAPI_ID", can.socket.getsockopt(socket.SOL_SOCKET, 56), number)


@test
def namespaces():
    """Nodes work in and between network namespaces, and come back when one is deleted"""
    wire = nodes("w0", "w1")
    ip("netns", "add", "canwire-test")
    try:
        ip("link", "set", "w1", "netns", "canwire-test")
        equal("nodes seen here", wire.nodes(), ["w0"])
        run_in = ["ip", "netns", "exec", "canwire-test"]
        subprocess.run([*run_in, "ip", "link", "set", "w1", "up", "type", "can", "bitrate", "1000000"], check=True)
        dump = subprocess.Popen([*run_in, "candump", "-n", "1", "-L", "w1"], stdout=subprocess.PIPE, text=True)
        sender = Can("w0")

        def heard():
            if dump.poll() is None:
                try_send(sender, 0x42, b"ns")
                time.sleep(0.05)
            return dump.poll() is not None
        wait_until(heard, 30, "candump in the namespace")
        assert "w1 042#6E73" in dump.stdout.read()
    finally:
        ip("netns", "delete", "canwire-test")
    wait_until(lambda: "w1" in wire.nodes(), 20, "the node to come back")
    wire.delete("w1")
    equal("nodes", wire.nodes(), ["w0"])


@test
def link_delete():
    """ip link del changes nothing: only canwire takes its nodes away"""
    wire = nodes("w0")
    subprocess.run(["ip", "link", "del", "w0"])
    equal("nodes", wire.nodes(), ["w0"])


@test
def sixty_four():
    """64 nodes on one bus all hear a frame; a 65th is refused; deleted under traffic, they are gone"""
    names = [f"n{n}" for n in range(64)]
    wire = nodes(*names)
    try:
        wire.add("n64", "A")
        raise AssertionError("a 65th node")
    except Refused as refused:
        assert "64 nodes" in str(refused), refused
    tap = Tap("A")
    Can("n5").send(0x100, b"hello")
    wait_until(lambda: tap.head() > tap.position, 10, "the frame")
    equal("received", tap.read()[0].received, (1 << 64) - 1 & ~(1 << 5))
    wait_until(lambda: all(wire.node(name)["handed_over"] == 1 for name in names if name != "n5"), 20, "the hand-over")
    wire.start("A", frame(0x100, bytes(8)), PERIOD_NS=20000000)
    tap.close()
    for name in names:
        wire.delete(name)
    equal("buses", wire.buses(), [])


@test
def thirty_two_buses():
    """There are 32 buses at most; one that is deleted makes room"""
    wire = Wire()
    for number in range(32):
        wire.add(f"n{number}", f"B{number}")
    try:
        wire.add("n32", "B32")
        raise AssertionError("a 33rd bus")
    except Refused as refused:
        assert "32 buses" in str(refused), refused
    wire.delete("n0")
    wire.add("n32", "B32")


def turns_beside(buses, nodes_each):
    """A program's turns beside wires that may be late for ever, and with more nodes than the machine can serve are."""
    names = {bus: [f"{bus}{n}" for n in range(nodes_each)] for bus in buses}
    for bus in buses:
        wire = nodes(*names[bus], bus=bus, bitrate=8000000)  # a frame every 6 µs
        wire.command(BUS_SET, {BUS: bus, SLIP_NS: (1 << 64) - 1})
    for bus in buses:
        wire.start(bus, frame(0x100), LOAD=1000)
    # What a program waits for between two turns: frames, and how long against how late the wire is meanwhile.
    longest, most, turns, frames, late, before = 0, 0, 0, 0, 0, time.monotonic_ns()
    while late < 600000000:
        stats, now = wire.bus(buses[0]), time.monotonic_ns()
        longest, before = max(longest, now - before), now
        most, frames = max(most, stats["frames"] - frames), stats["frames"]
        turns, late = turns + 1, stats["late_ns_max"]
    for bus in buses:
        wire.command(SOURCE_STOP, {BUS: bus})
    equal("slips", stats["slips"], 0)
    # Wires rest after 16 frames, and a turn of this program takes many system calls.
    between("frames between two turns", 0, most, (64 if guest.clock_is_virtual() else 256) * 16)
    if guest.clock_is_virtual():
        between("wait for a turn, ns", 0, longest, late // 2)
    for bus in buses:
        for name in names[bus]:
            wire.delete(name)
    return f"{turns} turns in {frames} frames; a program waits {longest // 1000000} ms and {most} frames at most"


@test
def catching_up():
    """A wire that may be late for ever, with more nodes than the machine can serve, leaves time for programs"""
    return turns_beside("A", 64)


@test
def catching_up_together():
    """Eight such wires do not fill each other's rests"""
    return turns_beside("ABCDEFGH", 8)


@test
def slipping_together():
    """Wires that slip rest as well, and go on"""
    wire, buses, count = Wire(), "ABCDEFGH", 500
    for bus in buses:
        nodes(*[f"{bus}{n}" for n in range(8)], bus=bus, bitrate=8000000)
    for bus in buses:
        wire.start(bus, frame(0x100), COUNT=count)
    for bus in buses:
        wire.wait_for_source(bus, 300)
        equal(f"frames of {bus}", wire.bus(bus)["frames"], count)
    slips = sum(wire.bus(bus)["slips"] for bus in buses)
    if guest.clock_is_virtual():
        between("slips", count, slips, len(buses) * count)
    return f"{slips} slips"


@test
def removal():
    """Nodes and the module go and come under traffic from senders, source, babble and readers"""
    wire = nodes("w0", "w1", "w2")
    nodes("w3", "w4", bus="B")
    wire.start("B", frame(0x50, bytes(8)), PERIOD_NS=400000)
    wire.start("A", frame(0x20, bytes(8)), LOAD=300)
    processes = [guest.flood("w0", "300", 10000000), guest.flood("w1", "200", 10000000),
                 guest.flood("w3", "301", 10000000),
                 subprocess.Popen(["candump", "any"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)]
    tap = Tap("A")
    for turn in range(8):
        wire.command(BABBLE, {NODE: "w2", FRAME: frame(5, bytes(8)), COUNT: 100})
        wire.command(CONNECT, {NODE: "w0", CONNECTED: turn & 1})
        wire.delete("w2")
        wire.add("w2", "A")
        up("w2")
        processes.append(guest.flood("w2", "10", 200))
        down("w1")
        up("w1")
        wire.delete("w4")
        wire.add("w4", "B")
        up("w4")
        wire.command(INJECT, {BUS: "A", ERROR: ERROR_CRC, COUNT: 10})
    wire.command(CONNECT, {NODE: "w0", CONNECTED: 1})
    tap.close()
    wire.netlink.socket.close()
    equal("rmmod", guest.unload(), 0)
    for process in processes:
        process.kill()
        process.wait()
    guest.load()


@test
def parameters():
    """Module parameters make nodes, and wrong ones are refused with a message"""
    equal("rmmod", guest.unload(), 0)
    try:
        guest.load("nodes=wcan0:A,wcan1:A,wcan2:B", "fifo_frames=5", "tx_buffers=3")
        wire = Wire()
        equal("nodes", wire.nodes(), ["wcan0", "wcan1", "wcan2"])
        equal("FIFO", wire.node("wcan2")["raw"][FIFO_FRAMES], struct.pack("=I", 5))
        wire.netlink.socket.close()
        equal("rmmod", guest.unload(), 0)
        for wrong in ("nodes=w0", "nodes=w0:A,w0:A", "nodes=w0:a/b", "tx_buffers=0", "tap_records=1000"):
            try:
                guest.load(wrong)
                raise ValueError(f"{wrong} was taken")
            except AssertionError:
                pass
        assert "wanted: name:bus" in guest.kernel_log()
    finally:
        if not guest.is_loaded():
            guest.load()


# Keeps what it could open.
OPENER = """
import os, sys
kept = []
while True:
    try:
        kept.append(os.open(sys.argv[1], os.O_RDONLY))
    except OSError:
        pass
"""


def refusal(attempt):
    """Why an attempt is refused."""
    try:
        attempt()
    except AssertionError as error:
        return str(error)
    raise ValueError("it was taken")


def load_in_vain(path, refused, times):
    """Loads a module that is refused, while two programs open the file."""
    openers = [subprocess.Popen([sys.executable, "-c", OPENER, path]) for _ in range(2)]
    try:
        for _ in range(times):
            refusal(refused)
    finally:
        for opener in openers:
            opener.kill()
            opener.wait()


@test
def refused_with_open_tap():
    """A module that is refused leaves no open tap behind, whoever opens it meanwhile"""
    equal("rmmod", guest.unload(), 0)
    # The second node fails when the first and its bus exist.
    load_in_vain("/dev/canwire-A", lambda: guest.load("nodes=w0:A,w0:A"), 50)
    equal("complaints", guest.trouble(), [])
    guest.load()


@test
def refused_with_open_device():
    """canchar without its driver of cards is refused, and leaves no open virtual device behind"""
    guest.insert("name_taken")
    try:
        load_in_vain("/dev/canchar0", lambda: guest.insert("canchar", "virtual=8"), 5)
    finally:
        subprocess.run(["rmmod", "name_taken"], check=True)
    equal("complaints", guest.trouble(), [])
    guest.insert("canchar", "virtual=8")
    subprocess.run(["rmmod", "canchar"], check=True)


class Devices:
    """canchar with nodes of the wire: /dev/canchar0 and on, running; the module goes at the end."""

    def __init__(self, *names, bitrate=1000000, start=True):
        guest.insert("canchar", f"wire={','.join(names)}")
        self.files = []
        if start:
            for number in range(len(names)):
                self.set(number, "bitrate", bitrate)
                self.set(number, "running", 1)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        for file in self.files:
            os.close(file)
        subprocess.run(["rmmod", "canchar"], check=True)

    def set(self, number, attribute, value):
        with open(f"/sys/class/canchar/canchar{number}/{attribute}", "w") as file:
            file.write(str(value))

    def get(self, number, attribute):
        with open(f"/sys/class/canchar/canchar{number}/{attribute}") as file:
            return file.read().strip()

    def open(self, number, flags=os.O_NONBLOCK):
        self.files.append(os.open(f"/dev/canchar{number}", os.O_RDWR | flags))
        return self.files[-1]


def char_frame(can_id, data=b""):
    return struct.pack("=QIBBH8s", 0, can_id, len(data), 0, 0, data)


def char_frames(file, count=1):
    """The next frames of a device, as identifier and data."""
    came = b""

    def more():
        nonlocal came
        try:
            came += os.read(file, 24 * 64)
        except BlockingIOError:
            pass
        return len(came) >= 24 * count

    wait_until(more, 10, f"{count} frames")
    return [(can_id, data[:length]) for _, can_id, length, _, _, data in struct.iter_unpack("=QIBBH8s", came)]


@test
def driven_by_canchar():
    """A node that canchar drives sends and receives as any other; its interface cannot go up meanwhile"""
    wire = nodes("w0")
    wire.add("w1", "A")
    wire.add("w2", "A")
    heard, tap = Can("w0"), Tap("A")
    with Devices("w1", "w2") as devices:
        equal("nodes", [devices.get(number, "node") for number in (0, 1)], ["w1", "w2"])
        first, second = devices.open(0), devices.open(1)
        for can_id, data in ((0x123, b"abc"), (EFF | 0x12345678, bytes(range(8))), (RTR | 0x55, b"")):
            os.write(first, char_frame(can_id, data))
            equal("by a socket", heard.receive(), (can_id, None, data))
            equal("by the other device", char_frames(second), [(can_id, data)])
        heard.send(0x77, b"x")
        equal("by both", char_frames(first) + char_frames(second), [(0x77, b"x")] * 2)
        why = refusal(lambda: up("w1"))
        assert "busy" in why, why
        assert "w1: stays down: " in guest.kernel_log()
        equal("errors", errors_of(tap.read()), [])
    up("w1")
    heard.send(0x78, b"y")
    equal("driven by its interface again", wire.node("w1")["received"] >= 1, True)


@test
def refused_by_canchar():
    """canchar refuses a node that is up, one that is not there, one with another driver and too large a FIFO"""
    wire = nodes("w0")
    wire.add("w1", "A", FIFO_FRAMES=65)
    for words, reason in (("w0", "its interface is up"), ("nosuch", "canwire has no such node"), ("w1,w1", "64 frames"),
                          ("w1", "64 frames")):
        before = guest.kernel_log().count(reason)
        refusal(lambda: guest.insert("canchar", f"wire={words}"))
        equal(f"lines with '{reason}'", guest.kernel_log().count(reason), before + 1)
    down("w0")
    refusal(lambda: guest.insert("canchar", "wire=w0,w0"))
    up("w0")
    equal("still usable", guest.state("w0"), "ERROR-ACTIVE")
    guest.remove_all()
    wire.netlink.socket.close()
    equal("rmmod", guest.unload(), 0)
    refusal(lambda: guest.insert("canchar", "wire=w0"))
    assert "canwire is not loaded" in guest.kernel_log()
    guest.insert("canchar", "virtual=1")
    subprocess.run(["rmmod", "canchar"], check=True)
    guest.load()


@test
def deleted_under_canchar():
    """A node that is deleted wakes readers of its device with ENODEV; modules go in the only order there is"""
    wire = nodes("w0")
    wire.add("w1", "A")
    wire.add("w2", "A")
    with Devices("w1", "w2") as devices:
        equal("canwire is in use", guest.unload() != 0, True)
        code = "import os, sys\nos.read(os.open('/dev/canchar0', os.O_RDWR), 24)"
        reader = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
        file = devices.open(0)
        wait_until(lambda: "canchar" in open(f"/proc/{reader.pid}/wchan").read(), 20, "a reader")
        os.write(file, char_frame(0x10, b"on its way"[:8]))
        wire.delete("w1")
        assert "No such device" in reader.communicate(timeout=20)[1]
        for call in (lambda: os.read(file, 24), lambda: os.write(file, char_frame(1))):
            try:
                call()
                raise ValueError("a device without a node moves frames")
            except OSError as error:
                equal("error", error.errno, 19)
        equal("the device is gone", os.path.exists("/dev/canchar0"), False)
        wire.add("w1", "A")
        up("w1")
        other = devices.open(1)
        Can("w1").send(0x55, b"z")
        equal("the other device", char_frames(other), [(0x55, b"z")])
        Can("w0").send(1)
        guest.remove_all()
    equal("rmmod", guest.unload(), 0)
    guest.load()


@test
def moved_under_canchar():
    """A node that canchar drives is disconnected, stopped and started under traffic, and sends when it is back"""
    wire = nodes("w0")
    wire.add("w1", "A")
    flood = guest.flood("w0", "300", 1000000)
    with Devices("w1") as devices:
        for turn in range(40):
            wire.command(CONNECT, {NODE: "w1", CONNECTED: turn & 1})
            devices.set(0, "running", turn >> 1 & 1)
            if turn & 2:
                try:
                    os.write(devices.open(0), char_frame(0x10, bytes([turn])))
                except BlockingIOError:
                    pass
            while len(devices.files) > 2:
                os.close(devices.files.pop(0))
        wire.command(CONNECT, {NODE: "w1", CONNECTED: 1})
        devices.set(0, "running", 0)
        devices.set(0, "running", 1)
        flood.kill()
        flood.wait()
        heard = Can("w0")
        os.write(devices.open(0), char_frame(0x11, b"back"))
        wait_until(lambda: (0x11, None, b"back") in heard.drain(), 20, "its frame")


@test
def bus_off_under_canchar():
    """Errors take a device off the bus; started again it is heard when it has seen 128 sequences of 11 bits"""
    wire = nodes("w0")
    wire.add("w1", "A")
    heard, tap = Can("w0"), Tap("A")
    with Devices("w1") as devices:
        file = devices.open(0)
        wire.command(INJECT, {BUS: "A", ERROR: ERROR_BIT, COUNT: 40})
        os.write(file, char_frame(0x123, b"never"))
        wait_until(lambda: devices.get(0, "state") == "bus-off", 20, "bus-off")
        equal("bus-offs", wire.node("w1")["bus_offs"], 1)
        wire.command(INJECT, {BUS: "A", COUNT: 0})
        began = time.monotonic_ns()
        devices.set(0, "running", 1)
        os.write(file, char_frame(0x124, b"again"))
        equal("heard", heard.receive(), (0x124, None, b"again"))
        waited = [r for r in tap.read() if not r.error][-1].sof_ns - began
        between("waited, in ns", 128 * 11 * 1000, waited, 10**9)
        equal("state", devices.get(0, "state"), "error-active")
        wire.command(INJECT, {BUS: "A", ERROR: ERROR_CRC, COUNT: 14})  # 112 by then
        os.write(file, char_frame(0x125, b"warned"))
        equal("heard", heard.receive(), (0x125, None, b"warned"))
        wait_until(lambda: devices.get(0, "state") == "error-warning", 20, "a warning")
        for _ in range(20):
            os.write(file, char_frame(0x126, b"well"))
            equal("heard", heard.receive(), (0x126, None, b"well"))
        wait_until(lambda: devices.get(0, "state") == "error-active", 20, "no more warning")


@test
def bursts_beside_a_busy_processor():
    """Beside a program at priority 55, a handler in a thread at 50 loses what a FIFO of five does not hold; one at 60 and
    a hard one lose nothing"""
    if os.cpu_count() != 1:
        raise Skip("needs one CPU")
    wire = nodes("w0")
    names = ("w1", "w2", "w3")
    for name in names:
        wire.add(name, "A")
    with Devices(*names) as devices:
        for number, priority in ((0, 50), (1, 60)):
            devices.set(number, "thread_priority", priority)
            devices.set(number, "threaded", 1)
        files = [devices.open(number) for number in range(3)]
        for count in (5, 6, 12):
            before = [wire.node(name)["overruns"] for name in names]
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(55))
            try:
                wire.start("A", frame(0x100, b"12345678"), PERIOD_NS=150000, COUNT=count)
                while wire.source("A")["running"]:
                    pass
            finally:
                os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            lost = [wire.node(name)["overruns"] - old for name, old in zip(names, before)]
            if guest.clock_is_virtual():
                equal(f"lost of {count}", lost, [count - 5, 0, 0])
            else:  # the emulation itself may take longer than five frames
                between(f"lost of {count}", count - 5, lost[0], count)
                equal(f"lost of {count} by a hard handler", lost[2], 0)
            for file, lost_here in zip(files, lost):
                equal("came", len(char_frames(file, count - lost_here)), count - lost_here)


class Probe:
    """canprobe with two cards: frames go from the first to the second. At the end both are the kernel's again."""
    PCI = "/sys/bus/pci/devices"

    def __init__(self):
        self.cards = [name for name in sorted(os.listdir(self.PCI)) if self.vendor(name) == "0x10e8"][:2]
        if len(self.cards) < 2:
            raise Skip("needs two Kvaser cards")
        guest.insert("canprobe")

    def __enter__(self):
        for card in self.cards:
            self.bind(card, "canprobe")
        self.file = os.open("/dev/canprobe", os.O_RDONLY)
        return self

    def __exit__(self, *why):
        os.close(self.file)
        for card in self.cards:
            self.bind(card, "")
        subprocess.run(["rmmod", "canprobe"], check=True)

    def vendor(self, card):
        with open(f"{self.PCI}/{card}/vendor") as file:
            return file.read().strip()

    def bind(self, card, driver):
        """Takes a card from its driver, and gives it to another; an empty name: the kernel's."""
        for path, text in ((f"{card}/driver_override", driver or "\n"), (f"{card}/driver/unbind", card),
                           ("../drivers_probe", card)):
            if os.path.exists(f"{self.PCI}/{path}"):
                with open(f"{self.PCI}/{path}", "w") as file:
                    file.write(text)

    def send_one(self):
        plan = struct.pack("=IBBH8sQQIII12x", 0x123, 2, 0, 0, b"ab", 0, 1000000, 1, 1, 500000)
        fcntl.ioctl(self.file, 0x4038c420, plan)  # CANPROBE_START

    def received(self):
        return struct.unpack("=6IQ", fcntl.ioctl(self.file, 0x8020c422, bytes(32)))[2]  # CANPROBE_GET_STATE


@test
def rebound_under_canprobe():
    """Cards that were bound again, the file of canprobe still open, send and receive"""
    with Probe() as probe:
        for turn in range(3):
            probe.send_one()
            wait_until(lambda: probe.received() == turn + 1, 10, f"frame {turn + 1}")
            probe.bind(probe.cards[turn % 2], "canprobe")


@test
def quiet_kernel():
    """The kernel's log has no complaint after all that"""
    equal("complaints", guest.trouble(), [])


def prepare():
    if not guest.is_loaded():
        guest.load()


if __name__ == "__main__":
    # Names of functions, or with a minus of those to leave out; or 1/2: the first of two parts.
    words = sys.argv[1:]
    number, parts = map(int, words.pop(0).split("/")) if words and "/" in words[0] else (1, 1)
    named = {word.removeprefix("-") for word in words}
    left_out = any(word.startswith("-") for word in words)
    chosen = [t for t in TESTS if not named or (t.__name__ in named) != left_out]
    # The last one looks at what the others left in the kernel's log.
    chosen = [t for at, t in enumerate(chosen) if at % parts == number - 1 or (parts > 1 and t is quiet_kernel)]
    failed = run(chosen, prepare, guest.remove_all)
    sys.exit(bool(failed))
