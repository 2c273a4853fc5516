#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""verify.py FOLDER, on the host: the records that measure.py kept, against model.py, frame by frame."""
import collections
import glob
import os
import re
import sys

import model
from canwire import EFF, RTR, Record

ORDER = {0: 0x300, 1: 0x100, 2: EFF | 0x12345678}


def records_of(path):
    with open(path, "rb") as file:
        data = file.read()
    return [Record(data[at:at + 128]) for at in range(0, len(data), 128)]


def durations(path):
    """Every duration and every gap is that of the bits, and the whole run takes their sum."""
    nominal, fast = map(int, re.search(r"durations-(\d+)-(\d+)-", path).groups())
    bit, fast_bit = 1e9 / nominal, 1e9 / (fast or nominal)
    records, worst, kinds, ideal, wrong = records_of(path), 0.0, collections.Counter(), 0.0, 0
    for place, r in enumerate(records):
        slow_bits, fast_bits = model.length_of(r.id, r.len, r.data, r.flags, r.dlc if not r.flags & model.FDF else None)
        wrong += (slow_bits, fast_bits) != (r.nominal_bits, r.data_bits)
        expected = slow_bits * bit + fast_bits * fast_bit
        worst = max(worst, abs(r.end_ns - r.sof_ns - expected))
        ideal += expected
        if place:
            gap = r.sof_ns - records[place - 1].end_ns
            worst = max(worst, abs(gap - 3 * bit))
            ideal += 3 * bit
        kinds["FD" if r.flags & model.FDF else "RTR" if r.id & RTR else "classic"] += 1
    span = records[-1].end_ns - records[0].sof_ns
    ppm = (span - ideal) / ideal * 1e6
    good = not wrong and worst <= 1 and abs(ppm) <= 10 and len(records) >= 1000
    return good, (f"{len(records)} frames ({', '.join(f'{n} {k}' for k, n in sorted(kinds.items()))}) at {nominal}"
                  f"{f'/{fast}' if fast else ''}: {wrong} of wrong length, worst difference {worst:.2f} ns, "
                  f"{ppm:+.4f} ppm over {span / 1e9:.3f} s")


def contend(path):
    """In every arbitration the one that a wired AND leaves over has won; each sender's frames are all there."""
    records, contended, wrong = records_of(path), 0, 0
    for r in records:
        slots = [slot for slot in ORDER if r.pending >> slot & 1]
        if len(slots) > 1:
            contended += 1
            wrong += slots[model.winner([(ORDER[slot], 0) for slot in slots])] != r.slot
    lost = 0
    for can_id in ORDER.values():
        numbers = [int.from_bytes(r.data, "little") for r in records if r.id == can_id and not r.error]
        lost += numbers != list(range(len(records) // 3))
    good = not wrong and not lost and contended > len(records) // 3 and not any(r.error for r in records)
    return good, f"{len(records)} frames, {contended} contended, {wrong} wrong winners, {lost} senders with gaps"


failed = 0
paths = sorted(glob.glob(f"{sys.argv[1]}/*.bin"))
print(f"1..{len(paths)}")
for number, path in enumerate(paths, 1):
    name = os.path.basename(path)
    good, note = (durations if name.startswith("durations") else contend)(path)
    failed += not good
    print(f"{'ok' if good else 'not ok'} {number} - {name}: {note}")
sys.exit(bool(failed or not paths))
