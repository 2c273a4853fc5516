"""A logger script at the rate of a full bus: 21 277 frames/s, what 1 Mbit/s carries of frames of 47 bits.

In the lab's virtual clock (``canter lab --clock virtual``) one instruction is one nanosecond: a machine of 1 GIPS with
one processor, which sends too. Stock python-can's script and canter's differ in ``interface=`` only. Both write the log
by python-can's own ``can.Logger``.
"""

import os
import subprocess
import sys
import tempfile

import can

FRAMES = 42_554
#: The time of a frame, in ns: two seconds of traffic.
PERIOD_NS = 47_000


def start_sender(channel: str) -> subprocess.Popen:
    traffic = [channel, "--traffic", f"period={PERIOD_NS}ns", "-n", str(FRAMES), "-I", "123", "-L", "0"]
    return subprocess.Popen(["canter", "generate", *traffic, "--realtime", "50", "--quiet"])


def log(interface: str, channel: str) -> tuple[int, int]:
    """Frames in the log, and what the back-end says to have lost (stock python-can does not know)."""
    path = os.path.join(tempfile.mkdtemp(), "drive.log")
    with can.Bus(interface=interface, channel=channel) as bus, can.Logger(path) as logger:
        sender = start_sender(channel)
        while True:
            message = bus.recv(0.5)
            if message is not None:
                logger(message)
            elif sender.poll() is not None:
                break
        lost = bus.stats["lost_socket"] if interface == "canter" else 0
    assert sender.returncode == 0, f"the sender failed: {sender.returncode}"
    with open(path) as file:
        return sum(1 for _ in file), lost


def main() -> int:
    channel = sys.argv[1] if len(sys.argv) > 1 else "vcan0"
    stock, _ = log("socketcan", channel)
    ours, told = log("canter", channel)
    print(f"{FRAMES} frames, one every {PERIOD_NS} ns")
    print(f"socketcan  {stock:>6} logged  {FRAMES - stock:>6} lost")
    print(f"canter     {ours:>6} logged  {FRAMES - ours:>6} lost, {told} by its own account")
    failed = ours != FRAMES or told != 0
    if stock > FRAMES * 3 // 4:
        print("python-can keeps up: this machine is too fast for the comparison (canter lab --clock virtual)")
        failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
