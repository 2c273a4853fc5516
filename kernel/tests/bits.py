#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""bits.py PROGRAM: holds canwire/bits.c, compiled as PROGRAM, against model.py for random frames. No kernel needed."""
import random
import subprocess
import sys

import model

FRAMES = 20000
rng = random.Random(2014)


def byte():
    """Often one that needs stuff bits."""
    return rng.choice((rng.randrange(256), 0, 0xff, 0xc1, 0xf8, 0x0f, 0x1f, 0x07))


def identifier():
    if rng.random() < 0.5:
        return rng.choice((rng.randrange(0x800), 0, 0x7ff, 0x7c1, 0x078))
    return model.EFF | rng.choice((rng.randrange(1 << 29), 0, 0x1fffffff, 0x1f07c1f0))


def random_frame():
    can_id, kind = identifier(), rng.random()
    if kind < 0.45:
        length = rng.randrange(9)
        dlc = rng.randrange(9, 16) if length == 8 and rng.random() < 0.3 else 0
        return can_id, length, 0, dlc, [byte() for _ in range(length)]
    if kind < 0.55:
        return can_id | model.RTR, rng.randrange(9), 0, 0, []
    length = rng.choice(list(model.DLC_OF))
    return can_id, length, model.FDF | rng.randrange(4), 0, [byte() for _ in range(length)]


frames = [random_frame() for _ in range(FRAMES)]
text = "".join(f"{i:x} {n:x} {f:x} {d:x} {bytes(data).hex() or '-'}\n" for i, n, f, d, data in frames)
answers = subprocess.run([sys.argv[1]], input=text, capture_output=True, text=True, check=True).stdout.split("\n")
wrong = 0
keys = []
for (can_id, length, flags, dlc, data), answer in zip(frames, answers):
    nominal, fast, key, code = answer.split()
    expected_dlc = dlc or (model.DLC_OF[length] if flags & model.FDF else length)
    expected = model.length_of(can_id, length, data, flags, dlc or None)
    keys.append(int(key, 16))
    if (int(nominal), int(fast), int(code)) != (*expected, expected_dlc):
        wrong += 1
        if wrong <= 5:
            print(f"# {can_id:x} {length} {flags:x} {bytes(data).hex()}: {answer}, expected {expected}")
print(f"{'not ok' if wrong else 'ok'} 1 - {FRAMES} random frames are as long as bit by bit ({wrong} are not)")

lost = 0
for first in range(0, FRAMES - 3, 3):
    some = frames[first:first + 3]
    arbitrations = [model.arbitration(i, f) for i, _, f, _, _ in some]
    if len(set(map(tuple, arbitrations))) < 3:
        continue
    best = min(range(3), key=lambda index: keys[first + index])
    lost += best != model.winner([(i, f) for i, _, f, _, _ in some])
print(f"{'not ok' if lost else 'ok'} 2 - of three frames the key chooses the one that a wired AND leaves over "
      f"({lost} times not)")
print("1..2")
sys.exit(bool(wrong or lost))
