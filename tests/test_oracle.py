"""Every combination of a frame's flags and lengths, in files of every format and writer: what canter reads beside what
python-can, vblf, asammdf and tshark read of the same file. Where they differ, the specification decides, and DIFFERENCES has
the difference, the reason and who is right. A row that no frame needs any more fails, as does a difference without a row.

Part of `make test ONLY=peers`; needs target/debug/canter, target/python and tshark, no CAN.
"""

import csv
import decimal
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import can
from vblf.can import CanErrorFrameExt, CanFdMessage, CanFdMessage64, CanMessage, CanMessage2
from vblf.constants import CanFdFlags, Compression, ObjFlags, ObjType
from vblf.general import ObjectHeader
from vblf.writer import BlfWriter

ROOT = Path(__file__).parent.parent
CANTER = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").absolute() / "debug/canter"
READ = ROOT / "crates/canter/tests/peers/read.py"
LENGTHS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 32, 48, 64]
IDENTIFIERS = [(0x123, False), (0x123, True), (0x1FFFFFFF, True)]  # the second one also fits into 11 bits
DATA = bytes(range(1, 65))
START_US = 1_700_000_000_123_000


@dataclass(frozen=True)
class Frame:
    """A frame as one reader sees it; bus counts from 0, -1 is unknown."""

    stamp_ns: int
    bus: int
    id: int
    extended: bool
    kind: str  # data, remote, error
    fd: bool = False
    brs: bool = False
    esi: bool = False
    length: int = 0  # of a remote frame the requested one
    data: bytes = b""
    direction: str = "R"  # R, T, or - for unknown
    dlc: int = 0  # of what is written only

    def __str__(self):
        flags = "".join(name for name in ("fd", "brs", "esi") if getattr(self, name))
        return f"{self.id:x}{'x' if self.extended else ''} {self.kind} {flags} {self.length} {self.data.hex()} {self.direction}"


def combinations(directions, dlc_max=15, errors=False):
    """Every combination; `dlc_max` is the largest DLC of a classic frame."""
    frames = []

    def add(**fields):
        at = len(frames)
        frames.append(Frame(stamp_ns=(START_US + at * 1000) * 1000, bus=at % 3, **fields))

    for direction in directions:
        for ident, extended in IDENTIFIERS:
            common = {"id": ident, "extended": extended, "direction": direction}
            for dlc in range(dlc_max + 1):
                length = min(dlc, 8)
                add(kind="data", length=length, data=DATA[:length], dlc=dlc, **common)
                add(kind="remote", length=length, dlc=dlc, **common)
            for dlc in range(16):
                for brs in (False, True):
                    for esi in (False, True):
                        length = LENGTHS[dlc]
                        add(kind="data", fd=True, brs=brs, esi=esi, length=length, data=DATA[:length], dlc=dlc, **common)
    for bit in range(9 if errors else 0):
        add(id=1 << bit, extended=False, kind="error", length=8, data=DATA[:8], direction="-", dlc=8)
    return frames


# Writers.


def write_log(path, directions="RT-", dlc_max=15):
    """Frames in candump's notation, which has them all."""
    with open(path, "w") as file:
        for f in combinations(directions, dlc_max, errors=True):
            us = f.stamp_ns // 1000
            ident = f"{f.id | 0x20000000:08X}" if f.kind == "error" else f"{f.id:08X}" if f.extended else f"{f.id:03X}"
            dlc = f"_{f.dlc:X}" if f.dlc > 8 and not f.fd else ""
            if f.fd:
                text = f"{ident}##{f.brs | f.esi << 1:X}{f.data.hex()}"
            else:
                text = f"{ident}#{f'R{f.length}' if f.kind == 'remote' else f.data.hex()}{dlc}"
            direction = "" if f.direction == "-" else f" {f.direction}"
            print(f"({us // 10**6}.{us % 10**6:06}) can{f.bus} {text}{direction}", file=file)


def write_python_can(path):
    plain = Path(path).suffix == ".log"
    with can.Logger(path) as logger:
        for f in combinations("RT", dlc_max=8, errors=True):
            logger(can.Message(timestamp=f.stamp_ns / 1e9, channel=f"can{f.bus}" if plain else f.bus, arbitration_id=f.id,
                               is_extended_id=f.extended or f.kind == "error", is_remote_frame=f.kind == "remote",
                               is_error_frame=f.kind == "error", is_fd=f.fd, bitrate_switch=f.brs,
                               error_state_indicator=f.esi, dlc=f.length, data=f.data, is_rx=f.direction != "T"))


def vector_object(f, newer):
    """An object as Vector's programs write it, of the older or the newer kinds."""
    ns, channel, ident = f.stamp_ns - START_US * 1000, f.bus + 1, f.id | (1 << 31 if f.extended else 0)
    flags = (1 if f.direction == "T" else 0) | (0x80 if f.kind == "remote" else 0)
    if not f.fd:
        data = f.data.ljust(8, b"\0")
        if newer:
            return CanMessage2.new(ObjFlags.TIME_ONE_NANS, ns, channel, flags, f.dlc, ident, data, 0, 0)
        return CanMessage.new(ObjFlags.TIME_ONE_NANS, ns, channel, flags, f.dlc, ident, data)
    if newer:
        fd = CanFdFlags.FDF | (CanFdFlags.BRS if f.brs else 0) | (CanFdFlags.ESI if f.esi else 0)
        size = ObjectHeader.SIZE + CanFdMessage64._FORMAT.size + f.length
        header = ObjectHeader.new(size, ObjType.CAN_FD_MESSAGE_64, ObjFlags.TIME_ONE_NANS, 0, ns)
        return CanFdMessage64(header, channel, f.dlc, f.length, 0, ident, 0, fd, 0, 0, 0, 0, 0, int(f.direction == "T"),
                              0, 0, f.data, 0, 0)
    fd = 1 | f.brs << 1 | f.esi << 2
    header = ObjectHeader.new(ObjectHeader.SIZE + CanFdMessage._FORMAT.size, ObjType.CAN_FD_MESSAGE,
                              ObjFlags.TIME_ONE_NANS, 0, ns)
    return CanFdMessage(header, channel, flags, f.dlc, ident, 0, 0, fd, f.length, 0, 0, f.data.ljust(64, b"\0"), 0)


def write_vblf(path, newer):
    with BlfWriter(path, Compression.DEFAULT) as writer:
        for f in combinations("RT"):
            writer.write(vector_object(f, newer))


def convert(source, target, *options):
    done = subprocess.run([CANTER, "convert", source, "-o", target, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


def pcap_of(pcapng, target):
    """tcpdump's format by Wireshark's editcap, of one bus: pcap has no interfaces."""
    one = target.with_suffix(".pcapng")
    convert(pcapng, one, "--filter", "can0")
    subprocess.run(["editcap", "-F", "nsecpcap", one, target], check=True, capture_output=True)


# Readers.


def of_canter(path):
    table = Path(f"{path}.csv")
    convert(path, table)
    frames = []
    with open(table, newline="") as file:
        for row in csv.DictReader(file):
            kind = "error" if row["error"] == "1" else "remote" if row["rtr"] == "1" else "data"
            bus = row["interface"].removeprefix("can")
            frames.append(Frame(
                int(decimal.Decimal(row["stamp"]).scaleb(9)), int(bus) if bus.isdigit() else -1, int(row["id"], 16),
                row["extended"] == "1", kind, row["fd"] == "1", row["brs"] == "1", row["esi"] == "1",
                min(int(row["dlc"]), 8) if kind == "remote" else int(row["len"]), bytes.fromhex(row["data"]),
                row["direction"] or "-"))
    return frames


def of_script(reader, path):
    """By read.py: stamp bus id x|s kind fd brs esi len data direction."""
    out = subprocess.run([sys.executable, READ, reader, path], capture_output=True, text=True, env={**os.environ, "TZ": "UTC"})
    assert out.returncode == 0, out.stderr
    kinds = {"d": "data", "r": "remote", "e": "error"}

    def bus(name):
        number = name.rsplit("/", 1)[-1].removeprefix("can")
        return (int(number) if number.isdigit() else -1) - (reader in ("vblf", "mdf"))

    lines = [line.split(" ") for line in out.stdout.splitlines()]
    return [Frame(int(stamp), bus(name), int(ident, 16), width == "x", kinds[kind], fd == "1", brs == "1", esi == "1",
                  int(length), b"" if data == "-" else bytes.fromhex(data), direction)
            for stamp, name, ident, width, kind, fd, brs, esi, length, data, direction in lines]


TSHARK = ("frame.time_epoch frame.interface_name can.id can.flags.xtd can.flags.rtr can.flags.err can.len canfd.flags.brs "
          "canfd.flags.esi data.data frame.packet_flags_direction").split()


def of_tshark(path):
    command = ["tshark", "-r", path, "-T", "fields", *(word for field in TSHARK for word in ("-e", field))]
    out = subprocess.run(command, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    frames = []
    for line in out.stdout.splitlines():
        row = line.split("\t") + [""] * len(TSHARK)
        stamp, name, ident, xtd, rtr, err, length, brs, esi, data, direction = row[: len(TSHARK)]
        kind = "error" if err == "1" else "remote" if rtr == "1" else "data"
        bus = name.removeprefix("can")
        frames.append(Frame(
            int(decimal.Decimal(stamp).scaleb(9)), int(bus) if bus.isdigit() else -1, int(ident or "0"), xtd == "1", kind,
            brs != "", brs == "1", esi == "1", int(length), bytes.fromhex(data) if kind == "data" else b"",
            {"0x00000001": "R", "0x00000002": "T"}.get(direction, "-")))
    return frames


# What the readers see otherwise, and why.


@dataclass(frozen=True)
class Difference:
    """Frames that a reader shows otherwise than canter: as `change` says, or not at all."""

    reader: str
    files: str  # how their names end
    which: callable
    change: callable  # None: the reader has no such frame; `which` is asked of canter's
    reason: str


def is_error(f):
    return f.kind == "error"


def above_8(f):
    return not f.fd and f.length > 8


# The error frame that canter makes of one without details: a bus error (linux/can/error.h).
BUS_ERROR = {"id": 0x80, "extended": False, "length": 8, "data": bytes(8), "direction": "-"}
ISO_DLC = "ISO 11898-1: a DLC of 9 to 15 of a classic frame means 8 bytes; the reader shows the DLC as the length"
NO_DIRECTION = "An error frame is a report of the controller: it was neither sent nor received, and has no identifier (linux/can/error.h)"

DIFFERENCES = [
    Difference("python_can", ".blf", above_8, lambda f: replace(f, length=8), ISO_DLC),
    Difference("vblf", ".blf", above_8, lambda f: replace(f, length=8), ISO_DLC),
    Difference("mdf", ".mf4", above_8, lambda f: replace(f, length=8), ISO_DLC),
    Difference("python_can", ".asc", lambda f: f.fd and f.kind == "remote", lambda f: replace(f, kind="data"),
               "ISO 11898-1: FD has no remote frames; a CANFD line without data is a frame with a DLC of 0"),
    Difference("python_can", ".asc", is_error, lambda f: replace(f, **BUS_ERROR), "ASC has no details of error frames"),
    Difference("python_can", ".blf", is_error, lambda f: replace(f, extended=False, direction="-"), NO_DIRECTION),
    Difference("mdf", ".mf4", is_error, lambda f: replace(f, direction="-"), NO_DIRECTION),
    Difference("python_can", "theirs.log", is_error, lambda f: replace(f, bus=None, **{**BUS_ERROR, "data": DATA[:8]}),
               "python-can writes each error frame as class 80 with its data, and reads neither bus nor data back"),
    Difference("python_can", "up-to-8.log", is_error, lambda f: replace(f, bus=None, **{**BUS_ERROR, "data": DATA[:8]}),
               "candump's notation: an error frame has a bus and data; python-can reads neither"),
    Difference("python_can", "up-to-8.log", lambda f: f.extended and f.data == DATA[:8] and f.id.bit_count() == 1,
               lambda f: replace(f, kind="error", extended=False, direction="-"),
               "linux/can.h: CAN_ERR_FLAG marks every error frame; python-can asks for the class of bus errors, too"),
    Difference("python_can", "theirs.mf4", is_error, lambda f: replace(f, bus=f.bus - 1, **BUS_ERROR),
               "ASAM MDF4 bus logging: the ID of CAN_ErrorFrame is that of the frame that failed, not the kernel's class; and "
               "see the next row"),
    Difference("python_can", "theirs.mf4", lambda f: not is_error(f), lambda f: replace(f, bus=f.bus - 1),
               "ASAM MDF4 bus logging: channels count from 1; python-can writes and reads them from 0"),
    Difference("tshark", "", is_error, lambda f: replace(f, id=None, data=None), "tshark shows what they report as fields of text"),
    Difference("tshark", ".blf", is_error, None, "tshark 4.0 reads no CAN_ERROR_EXT"),
    Difference("tshark", ".blf", lambda f: f.kind == "data", lambda f: replace(f, fd=None, brs=None, esi=None),
               "tshark 4.0 does not show the flags of FD frames of a BLF"),
]


# Files, what makes them, and their readers.
FILES = {
    "ours.csv": [],
    "ours.pcapng": ["tshark"],
    "one.pcap": ["tshark"],
    "ours.asc": ["python_can"],
    "ours.blf": ["python_can", "vblf", "tshark"],
    "ours.mf4": ["mdf"],
    "up-to-8.log": ["python_can"],
    "plain.log": ["tshark"],
    "theirs.asc": ["python_can"],
    "theirs.blf": ["python_can", "tshark"],
    "theirs.mf4": ["python_can"],
    "theirs.log": ["python_can"],
    "older.blf": ["python_can", "vblf"],  # tshark 4.0 takes a time that vblf writes for the method of compression
}


def make(folder):
    log, short = folder / "all.log", folder / "short.log"
    write_log(log)
    write_log(short, "RT", dlc_max=8)  # python-can takes a frame without direction for received
    for end in ("csv", "pcapng", "asc", "blf", "mf4"):
        convert(log, folder / f"ours.{end}")
    convert(short, folder / "up-to-8.log", "--direction")  # a DLC above 8 ends python-can's reader
    convert(short, folder / "plain.log")  # and a direction tshark's
    pcap_of(folder / "ours.pcapng", folder / "one.pcap")
    for end in ("asc", "blf", "mf4", "log"):
        write_python_can(str(folder / f"theirs.{end}"))
    write_vblf(folder / "older.blf", newer=False)


def to_the_us(f):
    """Stamps of floating-point numbers are off by parts of a µs."""
    return replace(f, stamp_ns=(f.stamp_ns + 500) // 1000)


def shown(expected, f):
    """What a reader shows, which may be None, put into the same field of canter's frame."""
    return replace(f, **{name: None for name in vars(expected) if getattr(expected, name) is None})


def compare(reader, name, ours, theirs):
    """The rows of DIFFERENCES that were needed."""
    rows = [row for row in DIFFERENCES if row.reader == reader and name.endswith(row.files)]
    used = set()
    for row in rows:
        if row.change is None:
            used |= {row.reason for f in ours if row.which(f)}
            ours = [f for f in ours if not row.which(f)]
    assert len(ours) == len(theirs), f"{reader} reads {len(theirs)} frames of {name}, canter {len(ours)}"
    for at, (our, their) in enumerate(zip(ours, theirs)):
        expected = to_the_us(their)
        for row in rows:
            if row.change and row.which(their):
                changed = row.change(expected)
                if changed != expected:
                    used.add(row.reason)
                expected = changed
        our = shown(expected, to_the_us(our))
        if their.bus < 0 and reader == "tshark":
            our = replace(our, bus=-1)
        assert our == expected, f"{name}, frame {at}: {reader} shows {their}, canter {our}"
    return used


def test_canter_reads_every_combination_as_others_do_or_as_the_specification_says(tmp_path):
    make(tmp_path)
    of_other = lambda reader, path: of_tshark(path) if reader == "tshark" else of_script(reader, path)
    with ThreadPoolExecutor(2) as pool:
        ours = {name: pool.submit(of_canter, tmp_path / name) for name in FILES}
        pairs = [(reader, name) for name, readers in FILES.items() for reader in readers]
        theirs = {pair: pool.submit(of_other, pair[0], tmp_path / pair[1]) for pair in pairs}
    # All of what was written: here canter is compared with the list of combinations itself.
    written = [replace(f, dlc=0) for f in combinations("RT-", errors=True)]
    assert [replace(f, length=min(f.length, 8) if not f.fd else f.length) for f in written] == ours["ours.csv"].result()
    used = Counter()
    for reader, name in pairs:
        used.update((reader, reason) for reason in compare(reader, name, ours[name].result(), theirs[reader, name].result()))
    unused = [row.reason for row in DIFFERENCES if (row.reader, row.reason) not in used]
    assert not unused, f"differences that are none any more: {unused}"


def test_newer_objects_of_vector_are_read_as_they_were_written(tmp_path):
    """CAN_MESSAGE2 and CAN_FD_MESSAGE_64: python-can 4.6 and tshark 4.0 end at vblf's padding."""
    write_vblf(tmp_path / "newer.blf", newer=True)
    frames = of_canter(tmp_path / "newer.blf")
    written = combinations("RT")
    assert [f.stamp_ns - frames[0].stamp_ns for f in frames] == [f.stamp_ns - written[0].stamp_ns for f in written]
    assert [replace(f, stamp_ns=0) for f in frames] == [replace(f, stamp_ns=0, dlc=0) for f in written]
