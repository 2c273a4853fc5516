#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""A packet socket with PACKET_QDISC_BYPASS sends to an interface that is removed meanwhile (docs/upstream.md).

packet_snd() looks whether the interface is up, then may wait for room in the socket, then sends. This script makes it
wait: the room is taken by packets that a qdisc of another interface holds. It needs CAP_NET_ADMIN and CAP_NET_RAW in its
network namespace, so `unshare --user --map-root-user --net` is enough. Exit code 0: the packet was dropped, as it should
be. On a kernel with the mistake the sending thread dies of a division by zero, and nothing ends: 1 after five seconds.
"""

import os
import socket
import subprocess
import sys
import threading
import time

SOL_PACKET = 263
PACKET_QDISC_BYPASS = 20
ETH_P_IP = 0x0800


def run(words):
    subprocess.run(words.split(), check=True)


def fill(sender):
    try:
        while True:
            sender.sendto(bytes(16), socket.MSG_DONTWAIT, ("holds", ETH_P_IP))
    except BlockingIOError:
        pass


def send(sender, ended):
    try:
        sender.sendto(bytes(16), ("goes", ETH_P_IP))
    except OSError as error:
        print(error)
    ended.set()


def waits_for_room(thread):
    with open(f"/proc/self/task/{thread}/wchan") as file:
        return file.read() == "sock_alloc_send_pskb"


for name in ("holds", "goes"):
    run(f"ip link add {name} type dummy")
    run(f"ip link set {name} up")
run("tc qdisc add dev holds root tbf rate 8bit burst 100 limit 100000")

with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0) as sender:
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4608)
    fill(sender)
    sender.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
    ended = threading.Event()
    thread = threading.Thread(target=send, args=(sender, ended), daemon=True)
    thread.start()
    while not waits_for_room(thread.native_id):
        time.sleep(0.01)
    removal = subprocess.Popen("ip link delete goes".split())
    while os.path.exists("/sys/class/net/goes"):
        time.sleep(0.01)
    run("tc qdisc del dev holds root")
    if not ended.wait(5):
        print("the sender has not come back", flush=True)
        os._exit(1)
    sys.exit(removal.wait())
