"""Measures from a recording to tables of signals in Parquet, by canter, by asammdf, and by python-can with cantools:
    measure.py CANTER DBC FRAMES FOLDER [SAMPLE]    writes a line of JSON for each program to the standard output
The recording, drive.log in FOLDER, has FRAMES frames of the database's messages, on one bus, with bytes that change one at a
time; that of an earlier run is used again. canter and python-can read it as a candump log, canter and asammdf as MDF4;
python-can reads only the first SAMPLE frames, if given. One run of each, one after the other.

`processors` is the processor time over the time on the wall, which other programs of the machine lengthen. `processors_useful`
is the processor time over that of the busiest thread: how many processors the program would keep busy on an idle machine."""

import itertools
import json
import os
import pathlib
import subprocess
import sys
import time


def recording(path, dbc, frames):
    import cantools
    import numpy

    messages = [m for m in cantools.database.load_file(dbc, strict=False).messages if m.length <= 8]
    chance = numpy.random.default_rng(7)
    payloads = chance.integers(0, 256, (len(messages), 8), dtype=numpy.uint8)
    chosen, places = chance.integers(0, len(messages), frames), chance.integers(0, 8, frames)
    bytes_, stamp = chance.integers(0, 256, (frames, 2), dtype=numpy.uint8), 1_700_000_000_000_000
    with open(path, "w") as file:
        for n in range(frames):
            message = messages[chosen[n]]
            payloads[chosen[n]][places[n]] = bytes_[n, 0]
            stamp += int(bytes_[n, 1])
            data = bytes(payloads[chosen[n]][: message.length]).hex().upper()
            name = f"{message.frame_id:08X}" if message.is_extended_frame else f"{message.frame_id:03X}"
            file.write(f"({stamp // 1000000}.{stamp % 1000000:06d}) can0 {name}#{data}\n")


def by_asammdf(source, dbc, folder):
    from asammdf import MDF

    signals = MDF(source).extract_bus_logging({"CAN": [(dbc, 0)]})
    for n, group in enumerate(signals.iter_groups()):
        group.to_parquet(f"{folder}/{n}.parquet")


def by_python_can(source, dbc, folder):
    import can
    import cantools
    import pyarrow
    import pyarrow.parquet

    database = cantools.database.load_file(dbc, strict=False)
    tables = {}
    for message in can.LogReader(source):
        try:
            number = message.arbitration_id | message.is_extended_id << 31
            values = database.decode_message(number, message.data, decode_choices=False)
        except (KeyError, cantools.database.errors.DecodeError):
            continue
        tables.setdefault(message.arbitration_id, []).append({"stamp": message.timestamp, **values})
    for number, rows in tables.items():
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), f"{folder}/{number}.parquet")


def processor_times(pid):
    """The processor time of each thread of a process, in s."""
    times = {}
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # the thread has ended
        times[path.parent.name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return times


def measured(name, command, frames):
    os.sync()
    begun = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    threads, pid = {}, 0
    while not pid:
        threads |= processor_times(child.pid)
        time.sleep(0.02)  # the period of the look at its threads
        pid, status, used = os.wait4(child.pid, os.WNOHANG)
    seconds = time.monotonic() - begun
    cpu_s = used.ru_utime + used.ru_stime
    print(json.dumps({
        "program": name,
        "frames": frames,
        "exit": os.waitstatus_to_exitcode(status),
        "us_per_frame": round(seconds * 1e6 / frames, 3),
        "cpu_us_per_frame": round(cpu_s * 1e6 / frames, 3),
        "processors": round(cpu_s / seconds, 2),
        "processors_useful": round(cpu_s / max(threads.values()), 2),
        "memory_mb": round(used.ru_maxrss / 1024),
    }), flush=True)


def main():
    canter, dbc, frames, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), pathlib.Path(sys.argv[4])
    folder.mkdir(parents=True, exist_ok=True)
    log, mdf = str(folder / "drive.log"), str(folder / "drive.mf4")
    if not os.path.exists(log):
        recording(log, dbc, frames)
    subprocess.run([canter, "convert", log, "-o", mdf, "--overwrite", "-q"], check=True)
    decode = [canter, "decode", "--dbc", dbc, "--format", "parquet", "--overwrite", "-q"]
    measured("canter decode, candump log", [*decode, log, "-o", str(folder / "log")], frames)
    measured("canter decode, MDF4", [*decode, mdf, "-o", str(folder / "mdf")], frames)
    sample = int(sys.argv[5]) if len(sys.argv) > 5 else frames
    short = str(folder / "sample.log")
    with open(log) as whole, open(short, "w") as part:
        part.writelines(itertools.islice(whole, sample))
    for name, source, count in (("asammdf", mdf, frames), ("python_can", short, sample)):
        out = folder / name
        out.mkdir(exist_ok=True)
        measured(name, [sys.executable, __file__, "by", name, source, dbc, str(out)], count)


if __name__ == "__main__":
    if sys.argv[1] == "by":
        {"asammdf": by_asammdf, "python_can": by_python_can}[sys.argv[2]](*sys.argv[3:])
    else:
        main()
