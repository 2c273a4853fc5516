"""Frames, descriptors and locks over the life of a bus: what waits is handed out, what was opened is closed, nothing hangs."""

import faulthandler
import gc
import os
import pathlib
import subprocess
import sys
import threading

import can
import pytest

from test_bus import bus, flood, ip, number, vcan  # noqa: F401  (a fixture)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_recv_many_hands_out_what_waits_before_it_raises(vcan):
    with bus(vcan) as node:
        flood(vcan, 100)
        ip("link set vcan7 down")
        received = node.recv_many(1000, 1)
        assert [number(message) for message in received] == list(range(100))
        with pytest.raises(can.CanOperationError, match="it is down"):
            node.recv_many(1000, 1)
        assert node.stats["received"] == 100


def test_recv_many_loses_no_frame_beside_the_one_that_is_no_message(vcan, monkeypatch):
    made, fail_at = [], set()

    class Picky(can.Message):
        __slots__ = ()

        def __new__(cls, *arguments, **words):
            made.append(None)
            if len(made) in fail_at:
                raise MemoryError
            return super().__new__(cls)

    monkeypatch.setattr(can, "Message", Picky)
    with bus(vcan) as node:
        made.clear()
        fail_at.update((6, 7))
        flood(vcan, 10)
        assert [number(message) for message in node.recv_many(10, 1)] == [0, 1, 2, 3, 4]
        with pytest.raises(MemoryError):
            node.recv_many(10, 1)
        assert [number(message) for message in node.recv_many(10, 1)] == [6, 7, 8, 9]


def test_iterating_hands_out_what_waits_before_it_raises_and_loses_nothing_when_it_ends_early(vcan):
    with bus(vcan) as node:
        flood(vcan, 100)
        for message in node:
            if number(message) == 9:
                break
        ip("link set vcan7 down")
        received = []
        with pytest.raises(can.CanOperationError, match="it is down"):
            for message in node:
                received.append(number(message))
        assert received == list(range(10, 100))


def test_nothing_stays_open_after_shutdown_with_or_collection(vcan):
    bus(vcan).shutdown()  # whatever is opened once
    gc.collect()
    before = descriptors()
    node = bus(f"{vcan},vcan0")
    assert descriptors() > before
    node.shutdown()
    assert descriptors() == before, "shutdown closes at once, though the object lives"
    with bus(vcan) as node:
        node.fileno()
    assert descriptors() == before
    for _ in range(20):
        node = bus(vcan)
        node._is_shutdown = True  # as if its finalizer had not run: no warning is wanted here
        del node
    gc.collect()
    assert descriptors() == before


def test_stats_remain_after_the_interface_has_gone_and_after_shutdown(vcan):
    node = bus(vcan)
    flood(vcan, 7)
    assert len(node.recv_many(7, 1)) == 7
    ip("link delete vcan7")
    gone = node.stats
    assert (gone["received"], gone["lost_socket"]) == (7, 0)
    node.shutdown()
    assert node.stats == gone


def test_the_options_of_python_can_s_own_back_end_are_taken_as_it_takes_them(vcan):
    with bus(vcan, receive_own_messages=1, local_loopback=1, fd=0, ignore_rx_error_frames=0, can_filters=None) as node:
        node.send(can.Message(arbitration_id=1, is_extended_id=False))
        assert node.recv(1).arbitration_id == 1
    with bus(None, receive_own_messages=0) as everywhere:
        flood(vcan, 1)
        assert everywhere.recv(1).channel == vcan


FORKED = """
import os, sys, can
node = can.Bus(interface="canter", channel="vcan7")
other = can.Bus(interface="canter", channel="vcan7")
task = node.send_periodic(can.Message(arbitration_id=1, is_extended_id=False), 0.02)
assert other.recv(5).arbitration_id == 1
child = os.fork()
if child == 0:
    try:
        other.recv(0)
        print("the child received")
    except can.CanOperationError as error:
        print(error)
    node.shutdown()
    other.shutdown()
    sys.stdout.flush()
    del node, other, task
    os._exit(0)
os.waitpid(child, 0)
for _ in range(20):  # far more than wait from before
    assert other.recv(5) is not None, "the child ended the parent's task"
task.stop()
node.shutdown()
other.shutdown()
"""


def test_a_forked_process_is_told_so_and_does_not_disturb_the_one_that_opened_the_bus(vcan):
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "before this process was forked (open it in this process)" in done.stdout


#: How many times an interface goes away under the threads of the stress test: three take a second or two.
ROUNDS = int(os.environ.get("CANTER_STRESS_ROUNDS", "20"))
#: A round takes a second on a busy machine. How long all rounds take says nothing about a hang.
ROUND_S_MAX = 120


@pytest.fixture
def round_begins(capfd):
    """To be called in each round: one that does not end prints the stack of every thread and ends the process."""
    with capfd.disabled():
        stderr = os.dup(2)
    yield lambda: faulthandler.dump_traceback_later(ROUND_S_MAX, exit=True, file=stderr)
    faulthandler.cancel_dump_traceback_later()
    os.close(stderr)


@pytest.mark.parametrize("many", [False, True])
def test_notifier_senders_stats_and_a_lost_interface_never_hang_the_interpreter(vcan, many, round_begins):
    """Each thread goes on until its bus fails; a lock held while another thread holds the interpreter would hang all."""

    def until_it_fails(node: can.BusABC, work) -> None:
        try:
            while True:
                work(node)
        except can.CanOperationError:
            pass

    def send(node: can.BusABC) -> None:
        try:
            node.send(can.Message(arbitration_id=2, is_extended_id=False), timeout=0.001)
        except can.CanOperationError as error:
            if "full" not in str(error):
                raise

    for _ in range(ROUNDS):
        round_begins()
        node = bus(vcan, receive_own_messages=True)
        receive = (lambda node: node.recv_many(64, 0.01)) if many else (lambda node: node.recv(0.01))
        works = [receive, receive, send, send, lambda node: node.stats and node.recv(0)]
        threads = [threading.Thread(target=until_it_fails, args=[node, work], daemon=True) for work in works]
        for thread in threads:
            thread.start()
        while node.stats["received"] < 200:
            pass
        ip("link set vcan7 down")
        threads[0].join(0.05)
        node.shutdown()
        for thread in threads:
            thread.join()
        ip("link set vcan7 up")
