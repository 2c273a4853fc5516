"""Measures how long canter, python-can and asammdf take to read a frame, and `canter plot` beside asammdf:
    readers.py CANTER COUNT DBC FRAMES FOLDER    writes a line of JSON for each to the standard output
COUNT is the example `count` of canter-formats, which reads a recording and counts its frames; CANTER writes the MDF4 and plots.
python-can writes FRAMES frames of the database's messages as TRC and as its CSV, and reads them message by message; this script
writes what candump prints on a screen and SavvyCAN's CSV, which python-can does not read. asammdf opens the MDF4 and takes the
frames as arrays (`frames`), or decodes one signal by the database (`signal`). Times are processor time in µs per frame; Python's
are without its start and its imports, canter's and count's are of the whole program, the least of three runs. The files of an
earlier run in FOLDER are used again."""

import json
import os
import pathlib
import subprocess
import sys
import time

import measure

WRITTEN = ("trc", "csv", "screen.log", "gvret.csv")
SIGNAL = "MO_Drehzahl_01"  # of Motor_04, hundreds of whose frames are in each recording


def read_python_can(path):
    import can

    begun, count = time.process_time(), 0
    for _ in can.LogReader(path):
        count += 1
    return time.process_time() - begun, count


def read_asammdf(path, dbc, signal):
    from asammdf import MDF

    begun = time.process_time()
    file = MDF(path)
    if signal:
        count = len(file.extract_bus_logging({"CAN": [(dbc, 0)]}).get(signal).samples)
    else:
        groups = [at for at, group in enumerate(file.groups) if "CAN_DataFrame" in {one.name for one in group.channels}]
        count = sum(len(file.get("CAN_DataFrame", group=at, raw=True).samples) for at in groups)
    return time.process_time() - begun, count


def in_python(name, *arguments):
    """Runs a reader of this script in a program of its own: the processor time of reading in s, and how many it has read."""
    command = [sys.executable, __file__, "by", name, *map(str, arguments)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def program_s(command):
    """The least processor time of three runs, in s."""
    used = []
    for _ in range(3):
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        assert status == 0, f"{command}: {status}"
        used.append(usage.ru_utime + usage.ru_stime)
    return min(used)


def write_files(paths):
    """The log's frames in the other formats, written by python-can where it can."""
    import can

    writers = [can.Logger(paths["trc"]), can.Logger(paths["csv"])]
    with open(paths["screen.log"], "w") as screen, open(paths["gvret.csv"], "w") as gvret:
        gvret.write("Time Stamp,ID,Extended,Dir,Bus,LEN,D1,D2,D3,D4,D5,D6,D7,D8\n")
        for message in can.LogReader(paths["log"]):
            for writer in writers:
                writer(message)
            data = [f"{byte:02X}" for byte in message.data]
            number = f"{message.arbitration_id:08X}" if message.is_extended_id else f"{message.arbitration_id:03X}"
            stamp_us = round(message.timestamp * 1e6)
            screen.write(f" ({stamp_us // 1000000}.{stamp_us % 1000000:06d})  can0  {number}   [{len(data)}]  {' '.join(data)}\n")
            extended = str(message.is_extended_id).lower()
            gvret.write(f"{stamp_us},{message.arbitration_id:08X},{extended},Rx,0,{len(data)},{','.join(data)},\n")
    for writer in writers:
        writer.stop()


def main():
    canter, count, dbc = sys.argv[1:4]
    frames, folder = int(sys.argv[4]), pathlib.Path(sys.argv[5])
    folder.mkdir(parents=True, exist_ok=True)
    log, mdf = str(folder / "drive.log"), str(folder / "drive.mf4")
    paths = {"log": log, **{name: str(folder / f"drive.{name}") for name in WRITTEN}, "mf4": mdf}
    if not os.path.exists(mdf):
        measure.recording(log, dbc, frames)
        write_files(paths)
        subprocess.run([canter, "convert", log, "-o", mdf, "--overwrite", "-q"], check=True)
    for name, path in paths.items():
        ours_us = program_s([count, path]) * 1e6 / frames
        row = {"file": name, "frames": frames, "canter_us": round(ours_us, 3)}
        theirs = {"trc": "python_can", "csv": "python_can", "log": "python_can", "mf4": "asammdf"}.get(name)
        if theirs:
            used, read = in_python(theirs, path)
            assert read == frames, f"{theirs}: {name}: {read} frames"
            row |= {"program": theirs, "their_us": round(used * 1e6 / frames, 3), "times": round(used * 1e6 / frames / ours_us, 1)}
        print(json.dumps(row), flush=True)
    ours = program_s([canter, "plot", mdf, "--dbc", dbc, SIGNAL, "-o", str(folder / "plot.html"), "--overwrite", "-q"])
    for name, signal in (("frames", ""), ("signal", SIGNAL)):
        used, read = in_python("asammdf", mdf, dbc, signal)
        assert read, name
        row = {"plot of": SIGNAL, "frames": frames, "canter_s": round(ours, 3), f"asammdf_{name}_s": round(used, 3)}
        print(json.dumps({**row, "times": round(used / ours, 1)}), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "by":
        name, *arguments = sys.argv[2:]
        read = read_python_can(*arguments) if name == "python_can" else read_asammdf(*(arguments + ["", ""])[:3])
        print(json.dumps(read))
    else:
        main()
