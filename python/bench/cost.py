"""What receiving costs a frame, beside python-can's own back-end in the same run.

Frames are queued first and then received, so only the receiver's work is measured. In the lab's virtual clock
(``canter lab --clock virtual``) one instruction is one nanosecond; elsewhere the figures are times.
"""

import socket
import struct
import sys
import time

import can

FRAMES = 4000


def fill(channel: str) -> None:
    with socket.socket(socket.PF_CAN, socket.SOCK_RAW, socket.CAN_RAW) as sender:
        sender.bind((channel,))
        for number in range(FRAMES):
            sender.send(struct.pack("=IB3x8s", number & 0x7FF, 8, struct.pack("<Q", number)))


def check(messages: list[can.Message]) -> None:
    numbers = [struct.unpack("<Q", message.data)[0] for message in messages]
    assert numbers == list(range(FRAMES)), "frames are missing or out of order"


def by_recv(bus: can.BusABC) -> list[can.Message]:
    return [bus.recv(0) for _ in range(FRAMES)]


def by_recv_many(bus: can.BusABC) -> list[can.Message]:
    messages = []
    while len(messages) < FRAMES:
        messages += bus.recv_many(1000, 0)
    return messages


def cost_ns(interface: str, receive, channel: str) -> float:
    with can.Bus(interface=interface, channel=channel) as bus:
        best = None
        for _ in range(3):
            fill(channel)
            begin = time.perf_counter_ns()
            messages = receive(bus)
            passed = (time.perf_counter_ns() - begin) / FRAMES
            check(messages)
            best = passed if best is None else min(best, passed)
        return best


def main() -> int:
    channel = sys.argv[1] if len(sys.argv) > 1 else "vcan0"
    stock = cost_ns("socketcan", by_recv, channel)
    rows = [
        ("socketcan recv()", stock, None),
        ("canter recv()", cost_ns("canter", by_recv, channel), 1 / 4),
        ("canter recv_many()", cost_ns("canter", by_recv_many, channel), 1 / 12),
    ]
    failed = False
    for name, cost, ceiling in rows:
        ratio = cost / stock
        bound = f"(ceiling {ceiling:.3f})" if ceiling else ""
        print(f"{name:<20} {cost:>9.0f} a frame  {ratio:.3f} {bound}")
        failed |= ceiling is not None and ratio > ceiling
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
