#!/usr/bin/env python3
"""The model of `canter lab --cost desktop` against this machine, which should be quiet: make bench-model

What conversions of recordings, and the parts of `make bench-user-space` that touch no file, take a frame in user space: by the
model, by the count of instructions, and here. What the machine takes for an instruction is unknown, so each column is compared
as multiples of its geometric mean.
"""
import json
import math
import os
import resource
import subprocess
import sys
import tempfile

CANTER, BENCHES, ONLY = sys.argv[1:]
FEW, MANY, HERE = 1_000, 100_000, 500_000
REPEATS = 25
CONVERSIONS = [
    ("log", "pcapng"), ("log", "asc"), ("log", "blf"), ("log", "csv"), ("log", "mf4"), ("pcapng", "log"),
    ("pcapng", "pcapng"), ("blf", "log"), ("asc", "log"), ("csv", "log"), ("mf4", "log"), ("mf4", "pcapng"),
]
PARTS = ("batch:", "ring:", "rules:", "signals:", "histogram:")


def chosen(part):
    return any(word in part for word in ONLY.split(","))


def write_log(frames):
    with open(f"{frames}.log", "w", encoding="ascii") as file:
        for n in range(frames):
            data = f"{n * 7919 % 2**32:08X}{n:08X}"
            file.write(f"({1700000000 + n // 20000}.{n % 20000 * 50:06}) can{n % 20} {256 + n % 20:03X}#{data}\n")


def convert(frames, read, written):
    return [CANTER, "convert", f"{frames}.{read}", "-o", f"out.{written}", "--overwrite", "-q"]


def user_s(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def here_ns(read, written):
    many = min(user_s(convert(HERE, read, written)) for _ in range(REPEATS))
    few = min(user_s(convert(FEW, read, written)) for _ in range(REPEATS))
    return (many - few) * 1e9 / (HERE - FEW)


def profile(command):
    """What the command printed, and the model's time and the instructions of each function of its program."""
    lab = [CANTER, "lab", "--quiet", "--profile", "--cost", "desktop", "--clock", "virtual", "--json", "profile.json",
           "--timeout", "1h", "--"]
    run = subprocess.run(lab + command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    with open("profile.json", encoding="utf-8") as file:
        return run.stdout, json.load(file)["programs"]


def total(programs):
    return [sum(row[what] for row in programs) for what in ("time_ns", "instructions")]


def modelled(read, written):
    few, many = [total(profile(convert(frames, read, written))[1]) for frames in (FEW, MANY)]
    return [(b - a) / (MANY - FEW) for a, b in zip(few, many)]


def table(text):
    """The nanoseconds a frame of each bench, of the table that the benches print at their end."""
    rows = [line.rsplit(None, 3) for line in text.split("memcpy, ns")[-1].splitlines()]
    return {row[0].strip(): float(row[1]) for row in rows if len(row) == 4}


def benches_here():
    parts = [part for part in PARTS if chosen(part)]
    runs = [subprocess.run([BENCHES, "--bench", part], check=True, stdout=subprocess.PIPE, text=True) for part in parts]
    return {name: ns for run in runs for name, ns in table(run.stdout).items()}


def bench_modelled(name):
    """In the virtual clock the benches' nanoseconds are instructions. What is not the bench's own is little of a second's work."""
    printed, programs = profile([BENCHES, "--bench", "--profile-time", "1", name])
    time_ns, instructions = total(programs)
    a_frame = table(printed)[name]
    return [a_frame * time_ns / instructions, a_frame]


def rows():
    """The name of each, its time here, by the model, and its instructions. Only the time here needs a quiet machine."""
    conversions = CONVERSIONS if chosen("convert:") else []
    for frames in (FEW, MANY, HERE) if conversions else ():
        write_log(frames)
        for written in ("pcapng", "asc", "blf", "csv", "mf4"):
            subprocess.run([CANTER, "convert", f"{frames}.log", "-o", f"{frames}.{written}", "-q"], check=True)
    here = [here_ns(*pair) for pair in conversions]
    benches = benches_here()
    found = [(f"convert: {pair[0]} to {pair[1]}", ns, *modelled(*pair)) for pair, ns in zip(conversions, here)]
    return found + [(name, ns, *bench_modelled(name)) for name, ns in benches.items()]


def main():
    os.chdir(tempfile.mkdtemp())
    found = rows()
    means = [math.exp(sum(math.log(row[at]) for row in found) / len(found)) for at in (1, 2, 3)]
    print("what\there_ns\tmodel_ns\tinstructions\tmodel_off_percent\tinstructions_off_percent")
    for name, *figures in found:
        measured, *models = [value / mean for value, mean in zip(figures, means)]
        off = [f"{100 * (one / measured - 1):+.0f}" for one in models]
        print(name, *(f"{value:.1f}" for value in figures), *off, sep="\t")


main()
