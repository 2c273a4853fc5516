#!/usr/bin/env python3
"""Numbered frames for packaging/drive.sh: their sender, with a record of what it sent, and the check of what became of them.

    numbered.py send INTERFACE RECORD PHASE [COUNT]     COUNT frames; without COUNT, until SIGTERM
    numbered.py check FOLDER RECORD PHASE               only in PHASE frames may be lost
"""

import collections
import glob
import itertools
import json
import signal
import socket
import struct
import sys
import time

#: struct can_frame of <linux/can.h>: identifier, length, 8 bytes.
FRAME = struct.Struct("=IB3x8s")
PAUSE_S = 0.001


def send(interface: str, record: str, phase: str, count: str = "") -> None:
    """Sends the next numbers; the record gets `NUMBER PHASE` after each, as the logs write the number."""
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    node = socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW)
    node.bind((interface,))
    with open(record, "a+", encoding="ascii") as kept:
        kept.seek(0)
        first = sum(1 for _ in kept)
        for number in itertools.islice(itertools.count(first), int(count) if count else None):
            if ended:
                break
            node.send(FRAME.pack(1, 8, number.to_bytes(8, "big")))
            kept.write(f"{number:016X} {phase}\n")
            time.sleep(PAUSE_S)


def check(folder: str, record: str, lossy: str) -> None:
    """Every number of the record is once in a file, or an account has counted it as lost."""
    with open(record, encoding="ascii") as kept:
        sent = dict(line.split() for line in kept)
    written = collections.Counter()
    for name in glob.glob(f"{folder}/*.log"):
        with open(name, encoding="ascii") as log:
            written.update(line.split("#")[1].strip() for line in log)
    accounts = []
    for name in sorted(glob.glob(f"{folder}/*.account.json")):
        with open(name, encoding="utf-8") as text:
            accounts.append(json.load(text))
            print(name, accounts[-1]["frames"], accounts[-1]["verdict"], sep=": ")
    lost = sum(sum(one["lost"].values()) - one["lost"]["overrun_events"] for one in accounts)
    missing = [number for number in sent if number not in written]
    for phase, count in collections.Counter(sent.values()).items():
        print(f"{phase}: {count} sent, {sum(sent[number] == phase for number in missing)} missing")
    faults = [f"{number}: in the files {times} times" for number, times in written.items() if times > 1]
    faults += [f"{number}: in a file and never sent" for number in written if number not in sent]
    faults += [f"{number}: missing, of phase {sent[number]}" for number in missing if sent[number] != lossy]
    if not missing or len(missing) != lost:
        faults.append(f"{len(missing)} frames are missing, and the accounts have {lost} as lost")
    if faults:
        sys.exit("\n".join(faults[:20]))
    print(f"{len(sent)} frames sent = {len(written)} in files + {lost} in {len(accounts)} accounts as lost")


if __name__ == "__main__":
    {"send": send, "check": check}[sys.argv[1]](*sys.argv[2:])
