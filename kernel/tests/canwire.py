# SPDX-License-Identifier: GPL-2.0-only
"""The tests' own client of canwire, independent of canter: generic netlink, the tap, CAN sockets, ip(8).

Written from uapi/canwire.h alone. Nothing here but Python's standard library.
"""
import mmap
import os
import select
import socket
import struct
import subprocess
import time

NODE_ADD, NODE_DELETE, NODE_GET, BUS_GET, BUS_SET, CONNECT, BABBLE, INJECT, SOURCE_LOAD, SOURCE_START, SOURCE_STOP = \
    range(1, 12)
(NODE, BUS, IFINDEX, SLOT, FIFO_BYTES, FIFO_FRAMES, TX_BUFFERS, FD_TOLERANT, CONNECTED, NAPI_ID, NODE_STATS, NODES,
 SLIP_NS, BITRATE, DATA_BITRATE, BUS_STATS, SOURCE_STATS, TAP_SIZE, ERROR, PROBABILITY, COUNT, FRAME, SCHEDULE, RESET,
 PERIOD_NS, LOAD, JITTER_NS, BURST, SOURCE_FLAGS, SEED, START_NS, PAD, CLOCK_DRIFT) = range(1, 34)
WIDTH = {IFINDEX: "I", SLOT: "B", FIFO_BYTES: "I", FIFO_FRAMES: "I", TX_BUFFERS: "B", FD_TOLERANT: "B",
         CONNECTED: "B", NAPI_ID: "I", NODES: "I", SLIP_NS: "Q", BITRATE: "I", DATA_BITRATE: "I", TAP_SIZE: "I",
         ERROR: "B", PROBABILITY: "I", COUNT: "I", PERIOD_NS: "Q", LOAD: "I", JITTER_NS: "Q", BURST: "I",
         SOURCE_FLAGS: "I", SEED: "Q", START_NS: "Q", CLOCK_DRIFT: "i"}
NUMBER, RANDOM_ID, RANDOM_FORMAT, RANDOM_LEN, RANDOM_DATA, FROM_SCHEDULE = (1 << n for n in range(6))
RANDOM = RANDOM_ID | RANDOM_FORMAT | RANDOM_LEN | RANDOM_DATA
ERROR_NONE, ERROR_BIT, ERROR_STUFF, ERROR_FORM, ERROR_CRC, ERROR_ACK, ERROR_RATE, ERROR_ABORTED = range(8)
SLOT_SOURCE = 255
MARK_SOURCE, MARK_INJECTED, MARK_SLIPPED, MARK_BABBLE, MARK_PASSIVE = (1 << n for n in range(5))

EFF, RTR, ERR = 1 << 31, 1 << 30, 1 << 29
BRS, ESI, FDF = 1, 2, 4

NODE_STATS_FIELDS = ("sent received overruns arbitration_lost errors_sent errors_received bus_offs tx_errors rx_errors "
                     "fifo_used fifo_used_max handed_over dropped error_events_limited").split()
BUS_STATS_FIELDS = ("frames errors busy_ns bits slips slip_ns late_ns_max late_ns_sum overruns callbacks callback_ns "
                    "first_sof_ns").split()
SOURCE_STATS_FIELDS = "running flags due sent errors waited waited_ns_max late_ns_max schedule_entries reserved".split()


class Refused(OSError):
    """What the kernel answered, with its sentence."""


def frame(can_id, data=b"", flags=0, length=None):
    """A struct canfd_frame."""
    return struct.pack("=IBBBB", can_id, len(data) if length is None else length, flags, 0, 0) + data.ljust(64, b"\0")


def entry(at_ns, a_frame):
    """A struct canwire_schedule_entry."""
    return struct.pack("=Q", at_ns) + a_frame


class Netlink:
    """Generic netlink to one family."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
        for option in (10, 11):  # NETLINK_CAP_ACK, NETLINK_EXT_ACK
            self.socket.setsockopt(270, option, 1)  # SOL_NETLINK
        self.socket.settimeout(30)
        self.sequence = 0
        found = self.call(16, 3, [(2, b"canwire\0")])  # CTRL_CMD_GETFAMILY by name
        self.family = struct.unpack("=H", found[0][1][:2])[0]

    def call(self, family, command, attributes, dump=False):
        """Sends, and answers the attributes of each message that comes back."""
        self.sequence += 1
        body = struct.pack("=BBH", command, 1, 0)
        for kind, value in attributes:
            body += struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)
        flags = 1 | (0x300 if dump else 4)
        self.socket.send(struct.pack("=IHHII", 16 + len(body), family, flags, self.sequence, 0) + body)
        answers = []
        while True:
            data = self.socket.recv(1 << 17)
            while data:
                length, kind, _, sequence, _ = struct.unpack("=IHHII", data[:16])
                message, data = data[16:length], data[(length + 3) & ~3:]
                if sequence != self.sequence:
                    continue
                if kind == 3:
                    return answers
                if kind == 2:
                    error, = struct.unpack("=i", message[:4])
                    if error:
                        raise Refused(-error, os.strerror(-error) + ": " + extended(message))
                    return answers
                answers.append(dict(parse(message[4:])))


def extended(message):
    """The sentence in an extended acknowledgement."""
    for kind, value in parse(message[20:]):
        if kind == 1:
            return value.rstrip(b"\0").decode()
    return ""


def parse(attributes):
    while len(attributes) >= 4:
        length, kind = struct.unpack("=HH", attributes[:4])
        yield kind & 0x3fff, attributes[4:length]
        attributes = attributes[(length + 3) & ~3:]


class Wire:
    """The commands of canwire, with attributes as {attribute: value}."""

    def __init__(self):
        self.netlink = Netlink()

    def command(self, command, attributes, dump=False):
        raw = []
        for kind, value in attributes.items():
            if isinstance(value, str):
                value = value.encode() + b"\0"
            elif isinstance(value, int):
                value = struct.pack("=" + WIDTH[kind], value)
            raw.append((kind, value))
        return self.netlink.call(self.netlink.family, command, raw, dump)

    def add(self, name, bus, **more):
        self.command(NODE_ADD, {NODE: name, BUS: bus, **{globals()[k]: v for k, v in more.items()}})

    def delete(self, name):
        self.command(NODE_DELETE, {NODE: name})

    def node(self, name):
        answer = self.command(NODE_GET, {NODE: name})[0]
        return dict(zip(NODE_STATS_FIELDS, struct.unpack("=7Q4I3Q", answer[NODE_STATS])), raw=answer)

    def nodes(self):
        return [a[NODE].rstrip(b"\0").decode() for a in self.command(NODE_GET, {}, dump=True)]

    def bus(self, name):
        answer = self.command(BUS_GET, {BUS: name})[0]
        return dict(zip(BUS_STATS_FIELDS, struct.unpack("=12Q", answer[BUS_STATS])), raw=answer)

    def buses(self):
        return [a[BUS].rstrip(b"\0").decode() for a in self.command(BUS_GET, {}, dump=True)]

    def source(self, name):
        answer = self.command(BUS_GET, {BUS: name})[0]
        return dict(zip(SOURCE_STATS_FIELDS, struct.unpack("=2I6Q2I", answer[SOURCE_STATS])))

    def start(self, bus, a_frame=None, **more):
        attributes = {BUS: bus, **{globals()[k]: v for k, v in more.items()}}
        if a_frame is not None:
            attributes[FRAME] = a_frame
        self.command(SOURCE_START, attributes)

    def wait_for_source(self, bus, seconds=60):
        wait_until(lambda: not self.source(bus)["running"], seconds, f"the source of {bus} to end")


def wait_until(condition, seconds, what):
    """Conditions, not times: a slow machine takes its time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s in vain for {what}")
        time.sleep(0.005)


class Record:
    """struct canwire_record."""
    LAYOUT = struct.Struct("=QQQQQIIIHHBBBBHBB64s")
    FIELDS = ("sof_ns end_ns pending received overrun id sender late_ns nominal_bits data_bits len dlc flags error "
              "error_bit slot marks raw").split()
    __slots__ = FIELDS

    def __init__(self, data):
        for field, value in zip(self.FIELDS, self.LAYOUT.unpack(data)):
            setattr(self, field, value)

    @property
    def data(self):
        return self.raw[:self.len] if self.flags & FDF or not self.id & RTR else b""

    def __repr__(self):
        return (f"sof {self.sof_ns} end {self.end_ns} id {self.id:x} len {self.len} flags {self.flags} "
                f"error {self.error}@{self.error_bit} slot {self.slot} marks {self.marks:x} pending {self.pending:x} "
                f"received {self.received:x} overrun {self.overrun:x} {self.data.hex()}")


class Tap:
    """A reader of a bus's ring: records since it was opened. An open one keeps the module."""
    opened = []

    def __init__(self, bus):
        Tap.opened.append(self)
        self.fd = os.open(f"/dev/canwire-{bus}", os.O_RDONLY)
        page = mmap.mmap(self.fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ)
        magic, version, self.size, self.offset, self.records = struct.unpack("=IHHII", page[:16])
        assert (magic, version, self.size, self.offset) == (0x50415457, 1, 128, 4096), page[:16]
        page.close()
        self.map = mmap.mmap(self.fd, self.offset + self.records * self.size, mmap.MAP_SHARED, mmap.PROT_READ)
        self.position = self.head()

    def head(self):
        return struct.unpack_from("=Q", self.map, 64)[0]

    def read(self):
        """All that is new. Fails when the writer was faster than the reader."""
        head, start = self.head(), self.position
        got = [Record(self.map[at:at + self.size]) for at in
               (self.offset + n % self.records * self.size for n in range(start, head))]
        assert self.head() - start < self.records, "the tap's ring has been overwritten"
        self.position = head
        return got

    def poll(self, seconds):
        poller = select.poll()
        poller.register(self.fd, select.POLLIN)
        return [event for _, event in poller.poll(seconds * 1000)]

    def close(self):
        if self.map.closed:
            return
        self.map.close()
        os.close(self.fd)


def ip(*arguments):
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def up(name, bitrate=1000000, *more, dbitrate=None):
    fd = ["dbitrate", str(dbitrate), "fd", "on"] if dbitrate else []
    ip("link", "set", name, "type", "can", "bitrate", str(bitrate), *fd, *more)
    ip("link", "set", name, "up")


def down(name):
    ip("link", "set", name, "down")


def counter(name, which):
    with open(f"/sys/class/net/{name}/statistics/{which}") as file:
        return int(file.read())


class Can:
    """A raw CAN socket; FD frames and error frames too when asked for."""

    def __init__(self, name, fd=False, errors=False, own=False):
        self.socket = socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW)
        if fd:
            self.socket.setsockopt(socket.SOL_CAN_RAW, socket.CAN_RAW_FD_FRAMES, 1)
        if errors:
            self.socket.setsockopt(socket.SOL_CAN_RAW, 2, 0x1fffffff)  # CAN_RAW_ERR_FILTER
        if own:
            self.socket.setsockopt(socket.SOL_CAN_RAW, socket.CAN_RAW_RECV_OWN_MSGS, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
        self.socket.bind((name,))

    def send(self, can_id, data=b"", flags=None, length=None):
        length = len(data) if length is None else length
        if flags is None:
            raw = struct.pack("=IB3x8s", can_id, length, data)
        else:
            raw = struct.pack("=IBB2x64s", can_id, length, flags, data)
        self.socket.send(raw)

    def receive(self, seconds=10):
        """(id, flags or None, data) or None when nothing comes."""
        self.socket.settimeout(seconds)
        try:
            raw = self.socket.recv(72)
        except TimeoutError:
            return None
        except socket.timeout:
            return None
        can_id, length, flags = struct.unpack("=IBB", raw[:6])
        return can_id, flags if len(raw) == 72 else None, raw[8:8 + length]

    def drain(self):
        got = []
        while (one := self.receive(0.01)) is not None:
            got.append(one)
        return got

    def close(self):
        self.socket.close()
