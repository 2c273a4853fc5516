"""Puts the questions of docs/fleet.md to the drives of a fleet whose answers are known:
    fleet.py CANTER FOLDER FRAMES PROGRAM…    each PROGRAM is duckdb, or the path of spark-submit
The fleet has FRAMES frames in all, with gaps of which this script keeps an account. canter decodes the drives, and each program
runs as the page has it, with the queries of the page. Any difference between an answer and the account is an error."""

import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

DATABASE = """\
VERSION ""

NS_ :

BS_:

BU_: ECU

BO_ 291 Engine: 8 ECU
 SG_ EngineSpeed : 7|16@0+ (0.25,0) [0|16383.75] "rpm" ECU
 SG_ EngineTemperature : 16|8@1+ (1,-40) [-40|215] "C" ECU
 SG_ Torque : 32|16@1- (0.5,0) [-16384|16383.5] "Nm" ECU

BO_ 416 Brake: 4 ECU
 SG_ BrakePressure : 0|16@1+ (0.01,0) [0|655.35] "bar" ECU
 SG_ BrakeSwitch : 16|1@1+ (1,0) [0|1] "" ECU

BO_ 2566832638 Odometer: 8 ECU
 SG_ Distance : 0|32@1+ (5,0) [0|21474836475] "m" ECU

BO_ 1024 Body: 2 ECU
 SG_ Doors : 0|4@1+ (1,0) [0|15] "" ECU
"""

TICK_US = 10_000  # Engine's period
JITTER_US = 900
BAND_RPM = 500
# Long enough to be seen, and short enough to be no pause between two drives.
GAP_PERIODS_MAX = 200
# Vehicle, the day and second at which a drive begins, its share of all frames, its gaps for a million frames.
DRIVES = [
    ("V1", 0, 8 * 3600, 1, 0),
    ("V2", 0, 9 * 3600, 1, 40),
    ("V2", 2, 9 * 3600, 1, 15),
    ("V3", 1, 24 * 3600 - 20, 2, 60),  # past midnight
    ("V4", 1, 0, 4, 200),
    ("V5/b", 3, 3600, 1, 25),  # a name that a folder must not have
]
FIRST_DAY_S = 1_784_160_000  # 2026-07-16 in UTC


class Account:
    """What the questions must find."""

    def __init__(self):
        self.gaps, self.bands = {}, {}

    def gap(self, vehicle, lost, step_us):
        gaps, sum_lost, longest_us = self.gaps.get(vehicle, (0, 0, 0))
        self.gaps[vehicle] = (gaps + 1, sum_lost + lost, max(longest_us, step_us))

    def speed(self, vehicle, raw):
        band = self.bands.setdefault(raw // (4 * BAND_RPM) * BAND_RPM, {})
        band[vehicle] = band.get(vehicle, 0) + 1

    def lost(self):
        rows = [(v, "can0", gaps, lost, us / 1e3) for v, (gaps, lost, us) in self.gaps.items()]
        return sorted(rows, key=lambda row: (-row[3], row[0]))

    def histogram(self):
        return [(band, len(frames), sum(frames.values())) for band, frames in sorted(self.bands.items())]


def drive(file, account, chance, vehicle, begin_us, frames, gaps):
    """Writes a drive of so many frames, and notes what is missing from it."""
    per_tick = 1 + 1 / 2 + 1 / 5 + 1 / 100
    ticks = int(frames / per_tick)
    missing = {}
    if gaps:
        places = range(10, ticks - GAP_PERIODS_MAX, max(GAP_PERIODS_MAX + 2, ticks // gaps))
        missing = {tick: chance.choice([1, 2, chance.randint(1, GAP_PERIODS_MAX)]) for tick in places}
    fastest = 4 * (3000 + 700 * (ord(vehicle[1]) - ord("0")))  # each vehicle has bands that no slower one has
    speed, skip_to, last_us, lost = 3200, 0, None, 0
    for tick in range(ticks):
        due_us = begin_us + tick * TICK_US
        if tick in missing:
            lost, skip_to = missing[tick], tick + missing[tick]
        if tick >= skip_to:
            stamp_us = due_us + chance.randint(0, JITTER_US)
            if lost:
                account.gap(vehicle, lost, stamp_us - last_us)
                lost = 0
            last_us = stamp_us
            speed = min(fastest, max(0, speed + chance.randint(-60, 61)))
            if tick % 1009 == 5:
                data = "0C"  # too short for EngineSpeed
            else:
                account.speed(vehicle, speed)
                data = f"{speed:04X}{60 + tick % 50:02X}00{tick & 0xFFFF:04X}0000"
            file.write(f"({stamp_us // 1000000}.{stamp_us % 1000000:06d}) can0 123#{data}\n")
        if tick % 2 == 0:
            file.write(f"({(due_us + 1500) // 1000000}.{(due_us + 1500) % 1000000:06d}) can1 1A0#{tick & 0xFFFF:04X}0100\n")
        if tick % 5 == 0:
            file.write(f"({(due_us + 2000) // 1000000}.{(due_us + 2000) % 1000000:06d}) can0 400#0{tick % 16:X}00\n")
        if tick % 100 == 0:
            file.write(f"({(due_us + 2500) // 1000000}.{(due_us + 2500) % 1000000:06d}) can1 18FEC1FE#{tick:08X}FFFFFFFF\n")


def fleet(folder, frames):
    """Writes the drives; returns their account, and a vehicle and a log for each."""
    account, chance, logs = Account(), random.Random(39), []
    shares = sum(share for *_, share, _ in DRIVES)
    for number, (vehicle, day, second, share, gaps) in enumerate(DRIVES):
        log = folder / f"{number}.log"
        begin_us = (FIRST_DAY_S + day * 86400 + second) * 1_000_000
        own_frames = frames * share // shares
        with log.open("w") as file:
            drive(file, account, chance, vehicle, begin_us, own_frames, max(2, gaps * own_frames // 1_000_000) if gaps else 0)
        logs.append((vehicle, log))
    return account, logs


def write_page(folder):
    """Writes the page's queries and programs as files of the names that the page gives them."""
    page = (pathlib.Path(__file__).parents[4] / "docs/fleet.md").read_text()
    blocks = re.findall(r"^\*\*([a-z]+\.(?:sql|py))\*\*.*?```(?:sql|python)\n(.*?)```", page, re.M | re.S)
    names = [name for name, _ in blocks]
    assert names == ["lost.sql", "histogram.sql", "duck.py", "spark.py"], names
    for name, text in blocks:
        (folder / name).write_text(text)


def rows(text):
    """The rows that a program printed."""
    number = lambda word: float(word) if "." in word else int(word) if word.isdigit() else word
    return [tuple(number(word) for word in line.split(" ")) for line in text.splitlines()]


def ask(program, folder):
    """Both questions to a program: their rows, one after the other."""
    if program == "duckdb":
        command, path = [sys.executable, "duck.py"], os.environ["PATH"]
    else:
        command, path = [program, "--master", "local[2]", "spark.py"], f"{program.parent}:{os.environ['PATH']}"
    command += ["signals", "lost.sql", "histogram.sql"]
    asked = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, "PATH": path})
    if asked.returncode:
        sys.exit(f"{program}: exit code {asked.returncode}\n{asked.stderr[-4000:]}")
    return rows(asked.stdout)


def main():
    canter, folder, frames = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    programs = [name if name == "duckdb" else pathlib.Path(name).absolute() for name in sys.argv[4:]]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    account, logs = fleet(folder, frames)
    (folder / "car.dbc").write_text(DATABASE)
    for vehicle, log in logs:
        decode = [canter, "decode", log, "--dbc", folder / "car.dbc", "--format", "parquet", "-q"]
        subprocess.run([*decode, "-o", folder / "signals", "--vehicle", vehicle], check=True)
        log.unlink()
    write_page(folder)
    lost, histogram = account.lost(), account.histogram()
    assert len(lost) == 4, "V1 loses nothing"
    for program in programs:
        answer = ask(program, folder)
        if answer != lost + histogram:
            sys.exit(f"{program}: answered {answer}, but the fleet has {lost} and {histogram}")
        print(f"{getattr(program, 'name', program)}: {len(lost)} rows of losses, {len(histogram)} bands, as planted")
    print(f"{frames} frames, {sum(row[3] for row in lost)} lost periods, {sum(row[2] for row in histogram)} engine speeds")


if __name__ == "__main__":
    main()
