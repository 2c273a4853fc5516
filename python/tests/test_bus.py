"""canter's own promises, in the lab: what a user of python-can relies on and its own tests do not ask."""

import asyncio
import errno
import gc
import pathlib
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from unittest import mock

import can
import pytest

from test import back2back_test


class TestThreadSafe(back2back_test.TestThreadSafeBus):
    """python-can's own test, on canter. On a vcan all frames are of this machine, so directions are not compared."""

    INTERFACE_1 = INTERFACE_2 = "canter"
    CHANNEL_1 = CHANNEL_2 = "vcan0"
    LENIENT = {"check_direction": False}

    def setUp(self):
        equals = can.Message.equals
        lenient = mock.patch.object(
            can.Message, "equals", lambda one, other, **how: equals(one, other, **how | self.LENIENT)
        )
        lenient.start()
        self.addCleanup(lenient.stop)
        super().setUp()


def ip(line: str) -> None:
    subprocess.run(["ip", *line.split()], check=True)


@pytest.fixture
def vcan():
    """A vcan of this test's own."""
    ip("link add vcan7 type vcan")
    ip("link set vcan7 mtu 72 up")
    yield "vcan7"
    subprocess.run(["ip", "link", "delete", "vcan7"], check=False, capture_output=True)


def bus(channel: str, **options) -> can.BusABC:
    return can.Bus(interface="canter", channel=channel, **options)


def flood(channel: str, count: int) -> None:
    """Sends numbered frames by a socket of its own."""
    with socket.socket(socket.PF_CAN, socket.SOCK_RAW, socket.CAN_RAW) as sender:
        sender.bind((channel,))
        for number in range(count):
            sender.send(struct.pack("=IB3x8s", number & 0x7FF, 8, struct.pack("<Q", number)))


def number(message: can.Message) -> int:
    return struct.unpack("<Q", message.data)[0]


def sleeps(thread: int) -> bool:
    """Whether a thread of this process sleeps in a call (proc_pid_syscall(5)) that is not futex(2), number 202 on x86-64, by
    which Python's threads wait for each other."""
    return pathlib.Path(f"/proc/self/task/{thread}/syscall").read_text().split()[0] not in ("running", "202")


def shut_down_under_a_waiting_recv(node: can.BusABC) -> None:
    """Twice, while another thread waits for a message; which ends that."""
    ended, sleeper = [], []

    def wait() -> None:
        sleeper.append(threading.get_native_id())
        with pytest.raises(can.CanOperationError, match="shut down"):
            node.recv()
        ended.append(True)

    waiting = threading.Thread(target=wait)
    waiting.start()
    deadline = time.monotonic() + 20
    while not sleeper or not sleeps(sleeper[0]):
        assert time.monotonic() < deadline, "it does not wait"
        time.sleep(0.005)
    node.shutdown()
    node.shutdown()
    waiting.join(10)
    assert ended == [True]


def heard_by_notifier(node: can.BusABC, count: int, send) -> list[int]:
    """The numbers that an asyncio notifier hands out while another thread sends."""

    async def hear() -> list[int]:
        reader = can.AsyncBufferedReader()
        notifier = can.Notifier(node, [reader], loop=asyncio.get_running_loop())
        await asyncio.to_thread(send)
        heard = [number(await asyncio.wait_for(reader.get_message(), 10)) for _ in range(count)]
        notifier.stop()
        return heard

    return asyncio.run(hear())


def is_readable(node: can.BusABC, wait: float) -> bool:
    return select.select([node], [], [], wait)[0] != []


def assert_readable_as_long_as_frames_wait(node: can.BusABC, count: int, wait: float) -> None:
    """So many numbered ones wait there, from 0 on."""
    for expected in range(count):
        assert is_readable(node, wait), f"frame {expected} waits unseen"
        assert number(node.recv(0)) == expected
    assert not is_readable(node, 0)


def test_losses_are_told_exactly_and_a_larger_queue_has_none(vcan):
    with bus(vcan, rcvbuf=100_000) as small, bus(vcan) as large:
        flood(vcan, 1000)
        received = []
        while messages := small.recv_many(timeout=0.2):
            received += messages
        assert 0 < len(received) < 1000
        assert small.stats["lost_socket"] == 1000 - len(received)
        assert [number(message) for message in received] == list(range(len(received)))
        assert len(large.recv_many(2000, 0.2)) == 1000
        assert large.stats["lost_socket"] == 0 and large.stats["received"] == 1000
        assert large.stats["receive_buffer"] >= 4 << 20


def test_a_polled_descriptor_is_readable_while_frames_wait_in_the_batch(vcan):
    with bus(vcan) as node:
        assert not is_readable(node, 0)
        flood(vcan, 3)
        assert_readable_as_long_as_frames_wait(node, 3, 1)


def test_asyncio_s_notifier_hears_every_frame(vcan):
    with bus(vcan) as node:
        assert heard_by_notifier(node, 100, lambda: flood(vcan, 100)) == list(range(100))


def test_several_channels_are_one_bus_in_order_and_each_can_be_sent_to(vcan):
    with bus("vcan0,vcan7") as both, bus("vcan0") as first, bus("vcan7") as second:
        first.send(can.Message(arbitration_id=1, is_extended_id=False))
        second.send(can.Message(arbitration_id=2, is_extended_id=False))
        first.send(can.Message(arbitration_id=3, is_extended_id=False))
        heard = [both.recv(1) for _ in range(3)]
        assert [(one.arbitration_id, one.channel) for one in heard] == [(1, "vcan0"), (2, "vcan7"), (3, "vcan0")]
        both.send(can.Message(arbitration_id=4, channel="vcan7", is_extended_id=False))
        assert second.recv(1).arbitration_id == 4
        with pytest.raises(can.CanOperationError, match="names no channel"):
            both.send(can.Message(arbitration_id=5))


def test_any_hears_all_interfaces_and_names_them(vcan):
    with bus("any") as everywhere:
        flood(vcan, 1)
        assert everywhere.recv(1).channel == vcan


def test_any_names_an_interface_that_was_renamed_or_has_another_s_index(vcan):
    with bus("any") as everywhere:
        flood(vcan, 1)
        assert everywhere.recv(1).channel == vcan
        index = socket.if_nametoindex(vcan)
        ip(f"link set {vcan} down")
        ip(f"link set {vcan} name vcan8")
        try:
            ip("link set vcan8 up")
            flood("vcan8", 1)
            assert everywhere.recv(1).channel == "vcan8"
        finally:
            ip("link delete vcan8")
        ip(f"link add {vcan} index {index} type vcan")
        ip(f"link set {vcan} up")
        flood(vcan, 1)
        assert [message.channel for message in everywhere.recv_many(9, 1)] == [vcan]


def test_more_filters_than_the_kernel_takes_still_filter(vcan):
    filters = [{"can_id": 2 * n, "can_mask": 0x7FF, "extended": False} for n in range(600)]
    with bus(vcan, can_filters=filters, rcvbuf=4 << 20) as node:
        flood(vcan, 100)
        messages = node.recv_many(200, 1)
        assert [message.arbitration_id for message in messages] == list(range(0, 100, 2))


def test_an_unknown_channel_is_refused_with_python_can_s_exception_and_the_way_out():
    with pytest.raises(can.CanInitializationError, match=r"nocan9: find: no such device \(CAN interfaces: .*vcan0") as error:
        bus("nocan9")
    assert error.value.error_code == errno.ENODEV


def test_another_bit_rate_is_refused_with_what_to_type():
    ip("link set can0 down")
    ip("link set can0 up type can bitrate 500000")
    with bus("can0", bitrate=500_000):
        pass
    expected = "can0: bitrate 250000: it has 500000 (ip link set can0 down; ip link set can0 up type can bitrate 250000)"
    with pytest.raises(can.CanInitializationError) as error:
        bus("can0", bitrate=250_000)
    assert str(error.value) == expected
    with pytest.raises(can.CanInitializationError, match="not a number of bit/s"):
        bus("can0", bitrate=-1)
    with bus("vcan0", bitrate=123):
        pass  # it has none


def test_a_bus_that_was_never_open_leaves_nothing_to_shut_down(caplog):
    with pytest.raises(can.CanInitializationError):
        bus("nocan9")
    gc.collect()
    assert "shut down" not in caplog.text


AS_NOBODY = """
import os, can, canter
os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
with can.Bus(interface="canter", channel="vcan0", rcvbuf=64 << 20) as bus, can.Bus(interface="canter", channel="vcan0") as other:
    other.send(can.Message(arbitration_id=1, is_extended_id=False))
    print(bus.recv(5).arbitration_id, bus.stats["receive_buffer"])
"""


def test_without_capabilities_it_works_and_tells_how_large_the_queue_became():
    done = subprocess.run([sys.executable, "-c", AS_NOBODY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    identifier, receive_buffer = map(int, done.stdout.split())
    limit = int(pathlib.Path("/proc/sys/net/core/rmem_max").read_text())
    assert identifier == 1 and 0 < receive_buffer <= 2 * limit < 64 << 20


REFUSED = """
import ctypes, can
libc = ctypes.CDLL(None, use_errno=True)
class Filter(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint16), ("filter", ctypes.POINTER(Filter))]
# What a container's seccomp profile does to socket(AF_CAN, ...): EPERM.
code = [(0x20, 0, 0, 0), (0x15, 0, 3, 41), (0x20, 0, 0, 16), (0x15, 0, 1, 29), (6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000)]
filters = (Filter * len(code))(*[Filter(*line) for line in code])
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(Program(len(code), filters))) == 0
try:
    can.Bus(interface="canter", channel="vcan0")
except can.CanInitializationError as error:
    print(error.error_code, error)
"""


def test_a_socket_that_is_not_permitted_is_told_in_one_line():
    done = subprocess.run([sys.executable, "-c", REFUSED], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert len(lines) == 1 and lines[0].startswith(f"{errno.EPERM} "), (done.stdout, done.stderr)
    assert "permitted" in lines[0] and "socket" in lines[0], lines


def test_an_interface_that_is_removed_ends_a_waiting_recv(vcan):
    with bus(vcan) as node:
        threading.Timer(0.3, lambda: ip("link delete vcan7")).start()
        with pytest.raises(can.CanOperationError, match="vcan7: receive: "):
            node.recv(20)


def test_frames_before_a_failure_are_received_before_it_is_told(vcan):
    with bus(vcan) as node:
        flood(vcan, 5)
        ip("link set vcan7 down")
        assert [number(node.recv(1)) for _ in range(5)] == list(range(5))
        with pytest.raises(can.CanOperationError, match="it is down"):
            node.recv(1)


def test_threads_that_wait_together_share_what_comes(vcan):
    """Frames are taken by batches: what one thread took must wake the others."""
    shares = []

    def take(node: can.BusABC) -> None:
        shares.append([node.recv(20) for _ in range(25)])

    with bus(vcan) as node:
        threads = [threading.Thread(target=take, args=[node]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for _ in range(25):
            time.sleep(0.02)
            flood(vcan, 8)
        for thread in threads:
            thread.join(30)
    assert [len(share) for share in shares] == [25] * 8
    assert None not in [message for share in shares for message in share], "a thread slept while frames waited"


def test_shutting_down_ends_a_waiting_recv_of_another_thread(vcan):
    shut_down_under_a_waiting_recv(bus(vcan))


def test_a_message_that_is_no_frame_is_refused(vcan):
    with bus(vcan) as node:
        with pytest.raises(ValueError, match="length"):
            node.send(can.Message(arbitration_id=1, data=bytes(9)))
        with pytest.raises(ValueError, match="identifier"):
            node.send(can.Message(arbitration_id=0x800, is_extended_id=False))


def test_fd_and_remote_frames_come_out_as_they_went_in(vcan):
    with bus(vcan, fd=True) as one, bus(vcan, fd=True) as other:
        sent = [
            can.Message(arbitration_id=0x123, is_extended_id=False, is_remote_frame=True, dlc=5),
            can.Message(arbitration_id=0x1ABCDEF, data=bytes(range(64)), is_fd=True, bitrate_switch=True),
            can.Message(arbitration_id=0x7FF, is_extended_id=False, data=b"\x01", is_fd=True, error_state_indicator=True),
        ]
        one.send_many(sent)
        for expected, message in zip(sent, other.recv_many(3, 1), strict=True):
            assert message.equals(expected, timestamp_delta=None, check_channel=False, check_direction=False)


def test_a_message_class_whose_setter_refuses_other_values_is_received(vcan):
    """The slots of such a class cannot be found by a mark of another type; setattr fills them in."""
    slot = can.Message.timestamp

    class Strict(can.Message):
        __slots__ = ()

        @property
        def timestamp(self) -> float:
            return slot.__get__(self)

        @timestamp.setter
        def timestamp(self, value: float) -> None:
            if not isinstance(value, float):
                raise TypeError(f"a timestamp is a float, not {type(value).__name__}")
            slot.__set__(self, value)

    with mock.patch.object(can, "Message", Strict), bus(vcan) as node:
        # The kernel begins to stamp a moment after the bus was opened; a frame of before has the time of its reading.
        stamped_when_sent = False
        while not stamped_when_sent:
            flood(vcan, 1)
            sent = time.time()
            stamped_when_sent = node.recv(1).timestamp <= sent
        flood(vcan, 2)
        first, second = node.recv(1), node.recv(1)
    assert [type(first), type(second)] == [Strict, Strict]
    assert [number(first), number(second)] == [0, 1]
    assert 0 < first.timestamp <= second.timestamp


def test_its_interfaces_are_detected(vcan):
    found = can.detect_available_configs("canter")
    assert {"interface": "canter", "channel": vcan} in found
