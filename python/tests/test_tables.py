"""canter.read and canter.decode: pyarrow tables with the frames and signals that python-can and cantools find. Needs no CAN."""

import datetime
import math
import pathlib
import struct
import subprocess
import sys

import can
import cantools
import pyarrow as pa
import pytest

import canter

DATABASE = """\
BO_ 291 Engine: 8 ECU
 SG_ Mode M : 0|4@1+ (1,0) [0|0] "" Dash
 SG_ Speed m0 : 8|16@1+ (0.25,0) [0|16000] "rpm" Dash
 SG_ Heat m1 : 15|8@0- (1,40) [0|0] "C" Dash

BO_ 292 Wide: 8 ECU
 SG_ Big : 0|64@1+ (1,0) [0|0] "" Dash

BO_ 293 Float: 8 ECU
 SG_ Real : 0|64@1- (1,0) [0|0] "V" Dash

VAL_ 291 Mode 0 "Cold" 1 "Hot" ;
SIG_VALTYPE_ 293 Real : 2;
"""
START_NS = 1_700_000_000_000_000_000


@pytest.fixture
def drive(tmp_path):
    """A recording of two buses with 1000 frames, 10 ms apart, and its database."""
    lines = []
    for n in range(1000):
        stamp = f"({START_NS // 10**9 + n // 100}.{n % 100 * 10000:06})"
        if n % 4 == 0:
            lines.append(f"{stamp} can0 123#{n // 4 % 2:02X}{n % 251:02X}{n % 7:02X}0000000000")
        elif n % 4 == 1:
            lines.append(f"{stamp} can1 124#{'FF' * 8}")
        elif n % 4 == 2:
            lines.append(f"{stamp} can1 125#{struct.pack('<d', [math.nan, math.inf, n / 3][n % 3]).hex().upper()}")
        else:
            lines.append(f"{stamp} can0 {['12345678#R', '123##3' + '00' * 64, '20000088#0000000000000000', '7FF#'][n // 4 % 4]}")
    log, dbc = tmp_path / "drive.log", tmp_path / "car.dbc"
    log.write_text("\n".join(lines) + "\n")
    dbc.write_text(DATABASE)
    return log, dbc


def test_a_table_has_every_frame_as_python_can_reads_it(drive):
    log, _ = drive
    table = canter.read(log)
    assert isinstance(table, pa.Table) and table.schema.field("stamp").type == pa.timestamp("ns", "UTC")
    rows = table.to_pylist()
    messages = list(can.CanutilsLogReader(log))
    assert len(rows) == len(messages) == 1000
    for row, message in zip(rows, messages):
        assert row["stamp"].timestamp() == pytest.approx(message.timestamp, abs=1e-6)
        kind = (message.is_error_frame, message.is_remote_frame, message.is_fd)
        assert (row["error"], row["rtr"], row["fd"]) == kind
        if not message.is_error_frame:  # python-can forgets the bus of error frames
            assert row["bus"] == message.channel
            assert (row["id"], row["extended"]) == (message.arbitration_id, message.is_extended_id)
            assert row["data"] == bytes(message.data) and row["len"] == len(message.data)
            assert (row["brs"], row["esi"]) == (message.bitrate_switch, message.error_state_indicator)


def test_signals_are_those_of_cantools(drive):
    log, dbc = drive
    tables = canter.decode(log, dbc)
    database = cantools.database.load_file(dbc)
    expected = {message.name: [] for message in database.messages}
    for message in can.CanutilsLogReader(log):
        if message.arbitration_id in (0x123, 0x124, 0x125) and not message.is_error_frame and not message.is_remote_frame:
            known = database.get_message_by_frame_id(message.arbitration_id)
            expected[known.name].append(known.decode(message.data, decode_choices=False))
    assert sorted(tables) == sorted(expected)
    for name, rows in expected.items():
        found = tables[name].drop(["stamp", "bus"]).to_pylist()
        assert len(found) == len(rows) > 200
        for one, other in zip(found, rows):
            one = {signal: value for signal, value in one.items() if value is not None}
            assert one.keys() == other.keys()
            assert all(value == other[key] or value != value and other[key] != other[key] for key, value in one.items()), (one, other)
    assert tables["Wide"].schema.field("Big").type == pa.uint64()
    assert b'"Speed":"rpm"' in tables["Engine"].schema.metadata[b"canter.units"]


def test_buses_times_and_signals_are_chosen(drive):
    log, dbc = drive
    assert canter.read(log, buses=["can1"]).num_rows == 500
    assert canter.read(log, buses="can1", start=datetime.timedelta(seconds=5)).num_rows == 250
    end = datetime.datetime.fromtimestamp(START_NS // 10**9 + 1, datetime.timezone.utc)
    assert canter.read(log, end=end).num_rows == canter.read(log, end=START_NS + 10**9).num_rows == 100
    tables = canter.decode(log, {"can0": dbc}, signals=["Engine.*"])
    assert list(tables) == ["Engine"] and tables["Engine"].column_names == ["stamp", "bus", "Mode", "Speed", "Heat"]
    assert canter.decode(log, [dbc], signals=["Heat"])["Engine"].column_names == ["stamp", "bus", "Heat"]
    assert canter.decode(log, {"any": [dbc]}).keys() == canter.decode(log, dbc).keys()


def test_tables_go_to_pandas_and_to_other_libraries(drive):
    pandas = pytest.importorskip("pandas")
    log, dbc = drive
    frame = canter.decode(log, dbc)["Engine"].to_pandas()
    assert isinstance(frame, pandas.DataFrame) and str(frame["stamp"].dtype) == "datetime64[ns, UTC]"
    assert (frame["bus"] == "can0").all() and frame["Speed"].isna().sum() == frame["Heat"].notna().sum()
    import duckdb

    frames = canter.read(log)
    assert frames.num_columns == 13
    assert duckdb.sql("SELECT count(*) FROM frames WHERE bus = 'can1'").fetchall() == [(500,)]


def test_trouble_is_an_exception_with_one_line_or_a_warning(drive, tmp_path):
    log, dbc = drive
    for call, exception, said in [
        (lambda: canter.read(tmp_path / "none.log"), FileNotFoundError, "none.log: open"),
        (lambda: canter.read(dbc), ValueError, "no recording that canter reads"),
        (lambda: canter.read(log, buses=["can9"]), ValueError, "has no bus \"can9\" (it has can0, can1)"),
        (lambda: canter.decode(log, log), ValueError, "is it a DBC?"),
        (lambda: canter.decode(log, tmp_path / "none.dbc"), FileNotFoundError, "none.dbc: read"),
        (lambda: canter.decode(log, dbc, signals=["Sped"]), ValueError, "no message has the signal Sped"),
        (lambda: canter.decode(log, {"can7": dbc}), ValueError, "none of 875 frames matched: wrong database?"),
        (lambda: canter.read(log, start=datetime.datetime(2023, 1, 1)), ValueError, "has no time zone"),
        (lambda: canter.read(log, start=1.5), TypeError, "must be a datetime, a timedelta or ns since 1970"),
        (lambda: canter.read(log, start=-1), ValueError, "start: -1 is before"),
        (lambda: canter.read(log, zone="Mars/Crater"), ValueError, "zone"),
    ]:
        with pytest.raises(exception) as raised:
            call()
        assert said in str(raised.value) and "\n" not in str(raised.value), raised.value
    with pytest.warns(canter.RecordingWarning, match="shorter than their message: Engine"):
        short = tmp_path / "short.log"
        short.write_text("(1.000000) can0 123#00\n")
        table = canter.decode(short, dbc)["Engine"].to_pylist()
    assert [(row["Mode"], row["Speed"]) for row in table] == [(0, None)]
    cut = tmp_path / "cut.blf"
    subprocess.run([sys.executable, "-m", "can.logconvert", log, tmp_path / "whole.blf"], check=True)
    whole = (tmp_path / "whole.blf").read_bytes()
    cut.write_bytes(whole[: len(whole) - 40])
    with pytest.warns(canter.RecordingWarning, match="cut off"):
        canter.read(cut)
