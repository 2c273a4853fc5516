"""Prints the frames of a recording as an independent reader sees them, a line a frame:

stamp-in-ns bus id x|s kind(d|r|e) fd brs esi len data R|T|-

Usage: read.py READER FILE...; what a reader does not tell is `-`. Of several files each begins with the line `FILE path`.
"""
import sys


def line(stamp_ns, bus, ident, extended, kind, fd, brs, esi, length, data, direction):
    width = "x" if extended else "s"
    flags = f"{int(fd)} {int(brs)} {int(esi)}"
    print(stamp_ns, bus, f"{ident:X}", width, kind, flags, length, data.hex().upper() or "-", direction)


def python_can(path):
    import can

    options = {"relative_timestamp": False} if path.endswith(".asc") else {}
    for m in can.LogReader(path, **options):
        kind = "e" if m.is_error_frame else "r" if m.is_remote_frame else "d"
        data = b"" if kind == "r" else bytes(m.data)
        channel = m.channel - 1 if path.endswith(".trc") else m.channel  # of TRC it keeps the file's numbers, from 1
        line(round(m.timestamp * 1e6) * 1000, channel, m.arbitration_id, m.is_extended_id, kind, m.is_fd,
             m.bitrate_switch, m.error_state_indicator, m.dlc, data, "R" if m.is_rx else "T")


def vblf(path):
    import calendar
    import dataclasses

    from vblf.can import CanErrorFrameExt, CanFdMessage, CanMessage
    from vblf.reader import BlfReader

    with BlfReader(path) as reader:
        y, mo, _, d, h, mi, s, ms = dataclasses.astuple(reader.file_statistics.measurement_start_time)
        start = calendar.timegm((y, mo, d, h, mi, s)) * 10**9 + ms * 10**6
        for o in reader:
            if isinstance(o, CanErrorFrameExt):
                line(start + o.header.object_time_stamp, o.channel, o.frame_id & 0x1FFFFFFF, False, "e", 0, 0, 0,
                     o.dlc, o.data[: o.dlc], "-")
                continue
            if not isinstance(o, (CanMessage, CanFdMessage)):
                continue
            fd = isinstance(o, CanFdMessage)
            remote = bool(o.flags & 0x80)
            length = o.valid_data_bytes if fd else o.dlc
            flags = int(o.canfd_flags) if fd else 0
            line(start + o.header.object_time_stamp, o.channel, o.frame_id & 0x1FFFFFFF, bool(o.frame_id >> 31),
                 "r" if remote else "d", fd, flags & 2 > 0, flags & 4 > 0, length,
                 b"" if remote else o.data[:length], "T" if o.flags & 1 else "R")


def vector(path):
    """Objects as Vector's files have them, by vblf: stamp, channel, identifier, data, direction; or that it is an error."""
    from vblf.can import CanErrorFrame, CanErrorFrameExt, CanFdErrorFrame64, CanFdMessage, CanFdMessage64, CanMessage
    from vblf.can import CanMessage2
    from vblf.reader import BlfReader

    with BlfReader(path) as reader:
        for o in reader:
            if isinstance(o, (CanErrorFrame, CanErrorFrameExt, CanFdErrorFrame64)):
                print(o.header.object_time_stamp, o.channel, "error")
            elif isinstance(o, (CanMessage, CanMessage2, CanFdMessage, CanFdMessage64)):
                length = o.valid_data_bytes if isinstance(o, (CanFdMessage, CanFdMessage64)) else min(o.dlc, 8)
                sent = o.dir == 1 if isinstance(o, CanFdMessage64) else o.flags & 1
                data = bytes(o.data[:length]).hex().upper() or "-"
                print(o.header.object_time_stamp, o.channel, f"{o.frame_id & 0x1FFFFFFF:X}", data, "T" if sent else "R")


def mdf(path):
    """By asammdf's own channels; each group's name is its bus."""
    from asammdf import MDF

    with MDF(path) as f:
        start = round(f.header.start_time.timestamp() * 1e6) * 1000
        logged = {bus for bus in f.bus_logging_map["CAN"]}
        rows = []
        for at, group in enumerate(f.groups):
            cg = group.channel_group
            assert cg.flags & 0b110 == 0b110, "not marked as bus logging"
            assert cg.acq_source.bus_type == 2 and cg.acq_source.source_type == 2, "not a CAN bus"
            name = group.channels[1].name
            kind = {"CAN_DataFrame": "d", "CAN_RemoteFrame": "r", "CAN_ErrorFrame": "e"}[name]
            get = lambda member: f.get(f"{name}.{member}", at).samples
            times = f.get_master(at)
            data = get("DataBytes") if kind != "r" else None
            columns = zip(times, get("BusChannel"), get("ID"), get("IDE"), get("DLC"), get("DataLength"), get("Dir"),
                          get("EDL"), get("BRS"), get("ESI"))
            for row, (time, bus, ident, ide, dlc, length, sent, edl, brs, esi) in enumerate(columns):
                if kind == "d":
                    assert bus in logged, "not in the bus logging map"
                payload = bytes(data[row][:length]) if data is not None else b""
                rows.append((start + round(time * 1e6) * 1000, f"{cg.acq_name}/{bus}", int(ident), bool(ide), kind, edl,
                             brs, esi, dlc if kind == "r" else length, payload, "T" if sent else "R"))
        for row in sorted(rows, key=lambda row: row[0]):
            line(*row)


def table(rows):
    for stamp, bus, ident, extended, rtr, fd, brs, esi, error, dlc, length, data, direction in rows:
        kind = "e" if error else "r" if rtr else "d"
        line(stamp, bus, ident, extended, kind, fd, brs, esi, dlc if rtr else length, bytes(data), direction or "-")


COLUMNS = "bus, id, extended, rtr, fd, brs, esi, error, dlc, len, data, direction"


def pyarrow(path):
    import pyarrow.compute as pc
    import pyarrow.dataset as dataset

    rows = dataset.dataset(path, partitioning="hive").to_table().sort_by("stamp")
    stamps = pc.cast(rows["stamp"], "int64").to_pylist()
    table(zip(stamps, *(rows[name].to_pylist() for name in COLUMNS.split(", "))))


def duckdb(path):
    import duckdb

    query = f"select epoch_ns(stamp), {COLUMNS} from '{path}/**/*.parquet' order by stamp"
    table(duckdb.sql(query).fetchall())


def csv(path):
    import csv
    import decimal

    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            kind = "e" if row["error"] == "1" else "r" if row["rtr"] == "1" else "d"
            line(int(decimal.Decimal(row["stamp"]).scaleb(9)), row["interface"], int(row["id"], 16),
                 row["extended"] == "1", kind, row["fd"], row["brs"], row["esi"],
                 row["dlc"] if kind == "r" else row["len"], bytes.fromhex(row["data"]), row["direction"] or "-")


for path in sys.argv[2:]:
    if len(sys.argv) > 3:
        print(f"FILE {path}")
    globals()[sys.argv[1]](path)
