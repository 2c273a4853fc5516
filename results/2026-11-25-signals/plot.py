"""Measures how long `canter plot` takes beside asammdf, which decodes the same signal of the same MDF4, in turns:
    plot.py CANTER DBC RECORDING    writes a line of JSON for each turn to the standard output
Times are in s: `wall` by the clock on the wall, `cpu` of all processors. Python's are without its start and its imports, canter's
are of the whole program, which writes its page."""

import json
import os
import subprocess
import sys
import tempfile
import time

SIGNAL = "MO_Drehzahl_01"
TURNS = 11
ASAMMDF = """
import json, sys, time
from asammdf import MDF
wall, cpu = time.perf_counter(), time.process_time()
count = len(MDF(sys.argv[1]).extract_bus_logging({"CAN": [(sys.argv[2], 0)]}).get(sys.argv[3]).samples)
print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "values": count}))
"""


def canter(command):
    begun = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0, f"{command}: {status}"
    return {"wall": time.perf_counter() - begun, "cpu": usage.ru_utime + usage.ru_stime}


def main(program, dbc, recording):
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "plot", recording, "--dbc", dbc, SIGNAL, "-o", f"{folder}/plot.html", "--overwrite"]
        for _ in range(TURNS):
            ours = canter(command)
            theirs = subprocess.run([sys.executable, "-c", ASAMMDF, recording, dbc, SIGNAL], stdout=subprocess.PIPE, check=True)
            theirs = json.loads(theirs.stdout)
            times = {name: round(theirs[name] / ours[name], 2) for name in ("wall", "cpu")}
            rounded = [{name: round(value, 3) for name, value in one.items()} for one in (ours, theirs)]
            print(json.dumps({"canter": rounded[0], "asammdf": rounded[1], "times": times}), flush=True)


main(*sys.argv[1:])
