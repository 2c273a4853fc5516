"""Compares the tables of `canter decode` with what cantools decodes from the same log: decode.py LOG DBC PARQUET MF4
Prints how many values are equal; any difference is an error."""

import math
import pathlib
import sys

import can
import cantools
import pyarrow.parquet
from asammdf import MDF


def equal(ours, theirs):
    if ours is None or isinstance(ours, float) and math.isnan(ours):
        return theirs is None or isinstance(theirs, float) and math.isnan(theirs)
    return theirs is not None and (ours == theirs or math.isclose(ours, theirs, rel_tol=1e-15))


def expected(log, database):
    """The rows of each message: stamp in ns, values."""
    rows = {}
    for frame in can.LogReader(log):
        message = database.get_message_by_frame_id(frame.arbitration_id | frame.is_extended_id << 31)
        values = message.decode(frame.data, decode_choices=False, allow_truncated=True)
        rows.setdefault(message.name, []).append((round(frame.timestamp * 1e6) * 1000, values))
    return rows


def compare(name, ours, theirs, columns):
    """Compares the rows of a message; each row is a stamp and a dictionary."""
    assert len(ours) == len(theirs), f"{name}: {len(ours)} rows, not {len(theirs)}"
    count = 0
    for (our_stamp, our_values), (stamp, values) in zip(ours, theirs):
        assert abs(our_stamp - stamp) <= 1000, f"{name}: {our_stamp} {stamp}"
        for column in columns:
            assert equal(our_values[column], values.get(column)), f"{name}.{column}: {our_values[column]} {values.get(column)}"
            count += values.get(column) is not None
    return count


def main(log, dbc, parquet, mf4):
    database = cantools.database.load_file(dbc)
    rows = expected(log, database)
    count = 0
    for name, theirs in rows.items():
        table = pyarrow.parquet.ParquetDataset(pathlib.Path(parquet) / f"message={name}").read()
        columns = [signal.name for signal in database.get_message_by_name(name).signals]
        table = table.sort_by("stamp").to_pydict()
        stamps = [stamp.value for stamp in table["stamp"]]
        ours = [(stamp, {c: table[c][n] for c in columns}) for n, stamp in enumerate(stamps)]
        count += compare(name, ours, theirs, columns)
    measured, start = MDF(mf4), None
    start = measured.header.abs_time
    seen = set()
    for at, group in enumerate(measured.groups):
        name = group.channel_group.acq_name
        theirs, seen = rows[name], seen | {name}
        columns = {c.name: measured.get(c.name, group=at, ignore_invalidation_bits=True) for c in group.channels if c.name != "time"}
        stamps = next(iter(columns.values())).timestamps
        def value(signal, n):
            bits = signal.invalidation_bits
            return None if bits is not None and bits[n] else signal.samples[n].item()
        ours = [(start + round(s * 1e9), {c: value(signal, n) for c, signal in columns.items()}) for n, s in enumerate(stamps)]
        count += compare(name, ours, theirs, list(columns))
        units = {signal.name: signal.unit or "" for signal in database.get_message_by_name(name).signals}
        assert {c: signal.unit for c, signal in columns.items()} == units
    assert seen == set(rows), seen
    print(f"{count} values are equal")


if __name__ == "__main__":
    main(*sys.argv[1:])
