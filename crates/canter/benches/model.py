#!/usr/bin/env python3
"""The model of `canter lab --cost desktop` against this machine, which should be quiet: make bench-model

What conversions of recordings take a frame, in user space: by the model, by the count of instructions, and here. What the
machine takes a frame for an instruction is unknown, so each column is compared as multiples of its geometric mean.
"""
import json
import math
import os
import resource
import subprocess
import sys
import tempfile

CANTER = sys.argv[1]
FEW, MANY, HERE = 1_000, 100_000, 500_000
REPEATS = 25
CONVERSIONS = [
    ("log", "pcapng"), ("log", "asc"), ("log", "blf"), ("log", "csv"), ("log", "mf4"), ("pcapng", "log"),
    ("pcapng", "pcapng"), ("blf", "log"), ("asc", "log"), ("csv", "log"), ("mf4", "log"), ("mf4", "pcapng"),
]


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


def profile(frames, read, written):
    lab = [CANTER, "lab", "--quiet", "--profile", "--cost", "desktop", "--clock", "virtual", "--json", "profile.json", "--"]
    subprocess.run(lab + convert(frames, read, written), check=True, stdin=subprocess.DEVNULL)
    with open("profile.json", encoding="utf-8") as file:
        programs = json.load(file)["programs"]
    return [sum(row[what] for row in programs) for what in ("time_ns", "instructions")]


def modelled(read, written):
    few, many = profile(FEW, read, written), profile(MANY, read, written)
    return [(b - a) / (MANY - FEW) for a, b in zip(few, many)]


def main():
    os.chdir(tempfile.mkdtemp())
    for frames in (FEW, MANY, HERE):
        write_log(frames)
        for written in ("pcapng", "asc", "blf", "csv", "mf4"):
            subprocess.run([CANTER, "convert", f"{frames}.log", "-o", f"{frames}.{written}", "-q"], check=True)
    here = [here_ns(read, written) for read, written in CONVERSIONS]
    rows = [(*pair, ns, *modelled(*pair)) for pair, ns in zip(CONVERSIONS, here)]
    means = [math.exp(sum(math.log(row[at]) for row in rows) / len(rows)) for at in (2, 3, 4)]
    print("from\tto\there_ns\tmodel_ns\tinstructions\tmodel_off_percent\tinstructions_off_percent")
    for read, written, *found in rows:
        here, *predicted = [value / mean for value, mean in zip(found, means)]
        off = [f"{100 * (one / here - 1):+.0f}" for one in predicted]
        print(read, written, *(f"{value:.1f}" for value in found), *off, sep="\t")


main()
