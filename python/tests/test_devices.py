"""canter on canchar devices: what holds of can0 holds of /dev/canchar0.

In canter lab --canchar virtual,3: two virtual devices that are joined, and a card with nobody beside it.
"""

import errno
import itertools
import pathlib
import subprocess
import sys
import threading
import time

import can
import pytest
import test_bus
from test_bus import (
    assert_readable_as_long_as_frames_wait,
    bus,
    flood,
    heard_by_notifier,
    is_readable,
    number,
    shut_down_under_a_waiting_recv,
)

NEAR, FAR = "/dev/canchar0", "/dev/canchar1"
CARD, ADDRESS = "/dev/canchar2", "0000:00:07.0"


def write(device: str, attribute: str, value: object) -> None:
    path = pathlib.Path("/sys/class/canchar", pathlib.Path(device).name, attribute)
    path.write_text(f"{value}\n")


def set_rate(bitrate: int) -> None:
    """Of both virtual devices; 0: frames take no time."""
    for device in (NEAR, FAR):
        write(device, "running", 0)
        write(device, "bitrate", bitrate)
        write(device, "running", 1)


@pytest.fixture(autouse=True)
def running():
    set_rate(0)


def message(value: int, **other) -> can.Message:
    data = value.to_bytes(8, "little")
    return can.Message(arbitration_id=value & 0x7FF, data=data, is_extended_id=False, **other)


def told(error: pytest.ExceptionInfo) -> str:
    """Its sentence, without the number that python-can puts behind it."""
    return str(error.value).partition(" [Error Code")[0]


def send(node: can.BusABC, count: int) -> None:
    node.send_many([message(value) for value in range(count)], timeout=5)


def take(node: can.BusABC, count: int) -> list[int]:
    """The numbers of as many messages, or of those that have come after a while."""
    taken = []
    while len(taken) < count and (some := node.recv_many(count - len(taken), 5)):
        taken += map(number, some)
    return taken


class TestThreadSafe(test_bus.TestThreadSafe):
    """python-can's own tests of two buses, but for FD. What one sends, the other has from its own device."""

    CHANNEL_1, CHANNEL_2 = NEAR, FAR
    LENIENT = {"check_channel": False}
    test_fd_message = test_fd_message_with_brs = None


def test_messages_come_out_as_they_went_in():
    sent = [
        can.Message(arbitration_id=0x123, is_extended_id=False, data=b"\x01\x02"),
        can.Message(arbitration_id=0x1ABCDEF, data=bytes(range(8))),
        can.Message(arbitration_id=0x7FF, is_extended_id=False, is_remote_frame=True, dlc=5),
        can.Message(arbitration_id=0, is_extended_id=False),
    ]
    with bus(NEAR) as near, bus(FAR) as far:
        near.send_many(sent)
        came = [far.recv(5) for _ in sent]
        for expected, one in zip(sent, came, strict=True):
            assert one.equals(expected, timestamp_delta=None, check_channel=False)
            assert one.channel == FAR and abs(one.timestamp - time.time()) < 60
        assert (near.stats["sent"], far.stats["received"]) == (4, 4)
        assert near.recv(0) is None, "it hears itself"


def test_many_are_received_at_once_and_by_iteration_in_their_order():
    with bus(NEAR) as near, bus(FAR) as far:
        send(near, 1000)
        assert take(far, 600) == list(range(600))
        assert [number(one) for one in itertools.islice(far, 400)] == list(range(600, 1000))
        assert far.stats["lost_socket"] == far.stats["overrun_events"] == far.stats["queued"] == 0


def test_losses_are_told_exactly_and_a_larger_queue_has_none():
    with bus(NEAR) as near, bus(FAR, rcvbuf=100_000) as small, bus(FAR) as large:
        send(near, 1000)
        received = []
        while messages := small.recv_many(timeout=0.2):
            received += map(number, messages)
        assert received == list(range(128)), "as many as a socket of so many bytes, in a power of two of slots"
        assert small.stats["lost_socket"] == 1000 - 128
        assert small.stats["receive_buffer"] == 128 * 24
        assert take(large, 1000) == list(range(1000))
        assert large.stats["lost_socket"] == 0 and large.stats["receive_buffer"] == 4096 * 24


def test_filters_are_the_kernel_s():
    standard = [{"can_id": 0x10, "can_mask": 0x7F0, "extended": False}]
    with bus(NEAR) as near, bus(FAR, can_filters=standard) as far:
        send(near, 100)
        near.send(can.Message(arbitration_id=0x10))
        assert take(far, 16) == list(range(0x10, 0x20))
        assert far.recv(0.1) is None and far.stats["received"] == 16
        far.set_filters([{"can_id": 0x10, "can_mask": 0x1FFFFFFF, "extended": True}])
        send(near, 100)
        near.send(can.Message(arbitration_id=0x10))
        assert far.recv(5).is_extended_id and far.recv(0.1) is None
        far.set_filters(None)
        send(near, 3)
        assert take(far, 3) == [0, 1, 2]


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("loopback", [False, True])
def test_who_hears_on_the_same_device_what_a_bus_sends(loopback, own):
    """As on an interface: with loopback the others do, and the bus itself if it wants to."""
    with bus(NEAR, local_loopback=loopback, receive_own_messages=own) as near, bus(NEAR) as beside, bus(FAR) as far:
        near.send(message(7))
        assert far.recv(5).is_rx, "the bus hears it anyway"
        heard = [node.recv(0.2) for node in (beside, near)]
        assert [one is not None for one in heard] == [loopback, loopback and own]
        assert not any(one.is_rx for one in heard if one is not None)


def test_errors_are_frames_unless_unwanted_and_the_state_follows():
    with bus(NEAR) as node, bus(NEAR, ignore_rx_error_frames=True) as unwilling:
        assert node.state is can.BusState.ACTIVE
        write(NEAR, "report", "error-passive")
        error = node.recv(5)
        # CAN_ERR_CRTL and CAN_ERR_CNT; CAN_ERR_CRTL_TX_PASSIVE, and the error counters.
        assert error.is_error_frame and error.arbitration_id == 0x204, error
        assert (error.data[1], error.data[6]) == (0x20, 128)
        assert node.state is can.BusState.PASSIVE
        write(NEAR, "report", "bus-off")
        assert node.recv(5).arbitration_id == 0x240
        assert node.state is can.BusState.ERROR
        assert unwilling.recv(0.1) is None


def test_a_polled_descriptor_is_readable_while_frames_wait():
    with bus(NEAR) as near, bus(FAR) as far:
        assert not is_readable(far, 0)
        send(near, 200)
        assert_readable_as_long_as_frames_wait(far, 200, 5)


def test_asyncio_s_notifier_hears_every_frame():
    with bus(NEAR) as near, bus(FAR) as far:
        assert heard_by_notifier(far, 200, lambda: send(near, 200)) == list(range(200))


def test_interfaces_and_devices_are_one_bus_in_order_and_each_can_be_sent_to():
    with bus(f"vcan0, {NEAR}") as both, bus("vcan0") as first, bus(FAR) as second:
        flood("vcan0", 1)
        second.send(message(1))
        first.send(message(2))
        heard = [both.recv(5) for _ in range(3)]
        assert [(number(one), one.channel) for one in heard] == [(0, "vcan0"), (1, NEAR), (2, "vcan0")]
        assert take(first, 1) == [0]
        both.send_many([message(3, channel=NEAR), message(4, channel="vcan0")])
        assert (take(second, 1), take(first, 1)) == ([3], [4])
        with pytest.raises(can.CanOperationError, match="names no channel"):
            both.send(message(5))


def test_any_has_no_devices():
    with bus("any") as everywhere, bus(FAR) as far:
        far.send(message(1))
        assert everywhere.recv(0.2) is None
        with pytest.raises(can.CanOperationError, match=r"/dev/canchar0: send: .* \(name it as a channel\)"):
            everywhere.send(message(2, channel=NEAR))


def test_another_bit_rate_is_refused_with_what_to_type():
    with bus(NEAR, bitrate=123):
        pass  # it has none
    set_rate(500_000)
    with bus(NEAR, bitrate=500_000):
        pass
    with pytest.raises(can.CanInitializationError) as error:
        bus(NEAR, bitrate=250_000)
    attributes = "/sys/class/canchar/canchar0"
    way_out = f"echo 0 > {attributes}/running; echo 250000 > {attributes}/bitrate; echo 1 > {attributes}/running"
    assert told(error) == f"{NEAR}: bitrate 250000: it has 500000 ({way_out})"
    subprocess.run(way_out, shell=True, check=True)
    with bus(NEAR, bitrate=250_000):
        pass


def test_a_full_queue_is_told_or_waited_for_and_shutting_down_sends_what_is_in_it():
    set_rate(20_000)  # 5.55 ms a frame
    with bus(FAR) as far:
        with bus(NEAR) as near:
            with pytest.raises(can.CanOperationError) as error:
                for value in range(100):
                    near.send(message(value))
            assert told(error).startswith(f"{NEAR}: send: transmit queue full: "), error
            assert told(error).endswith("(send with a timeout)") and error.value.error_code == errno.EAGAIN
            queued = near.stats["sent"]
            near.send(message(queued), timeout=5)
        assert take(far, queued + 1) == list(range(queued + 1))


def test_fd_frames_cannot_be_sent_and_other_options_of_a_socket_do_no_harm():
    with bus(NEAR, fd=True, can_hardware_timestamps=True) as near, bus(FAR, fd=True) as far:
        near.send(message(1))
        assert take(far, 1) == [1]
        with pytest.raises(can.CanOperationError) as error:
            near.send(message(2, is_fd=True))
        assert told(error) == f"{NEAR}: send: invalid argument (a device cannot send FD frames)"
        with pytest.raises(can.CanOperationError, match="cannot send error frames"):
            near.send(can.Message(arbitration_id=4, is_error_frame=True, data=bytes(8)))


def test_periodic_sending_is_a_thread_s():
    with bus(f"vcan0,{NEAR}") as both, bus(NEAR) as alone, bus(FAR) as far, bus("vcan0") as first:
        tasks = [
            alone.send_periodic(message(1), 0.01),
            both.send_periodic([message(2, channel=NEAR), message(0x802, channel=NEAR)], 0.01),
            both.send_periodic(message(3, channel="vcan0"), 0.01),
        ]
        heard = take(far, 60)
        assert all(heard.count(value) >= 5 for value in (1, 2, 0x802)) and set(heard) == {1, 2, 0x802}, heard
        assert set(take(first, 10)) == {3}
        tasks[0].modify_data(message(0x801))
        while number(far.recv(5)) != 0x801:
            pass
        for task in tasks:
            task.stop()
        deadline = time.monotonic() + 20
        while far.recv(0.2) is not None:
            assert time.monotonic() < deadline, "a task goes on"


def test_a_device_that_stops_is_told_once_behind_its_frames_and_heard_again_when_it_runs():
    with bus(NEAR) as near, bus(f"{FAR},vcan0") as far:
        send(near, 5)
        write(FAR, "running", 0)
        assert take(far, 5) == list(range(5))
        with pytest.raises(can.CanOperationError) as error:
            far.recv(5)
        assert told(error) == (
            f"{FAR}: receive: network is down (it is down: echo 1 > /sys/class/canchar/canchar1/running, and start again)"
        )
        assert error.value.error_code == errno.ENETDOWN
        assert not is_readable(far, 0), "who polls would not rest"
        assert far.recv(0.2) is None
        flood("vcan0", 1)
        assert far.recv(5).channel == "vcan0"
        with pytest.raises(can.CanOperationError, match="is down"):
            far.send(message(1, channel=FAR))
        threading.Timer(0.3, lambda: (write(FAR, "running", 1), send(near, 3))).start()
        assert take(far, 3) == [0, 1, 2]
        assert not is_readable(far, 0)
        send(near, 1)
        assert is_readable(far, 5), "it is polled again"


def test_a_device_that_stops_ends_a_waiting_recv():
    with bus(NEAR) as node:
        threading.Timer(0.3, lambda: write(NEAR, "running", 0)).start()
        with pytest.raises(can.CanOperationError, match=f"{NEAR}: receive: network is down"):
            node.recv(20)


def bind(driver: str) -> None:
    """Gives the card to a driver; none: to the kernel's own."""
    card = pathlib.Path("/sys/bus/pci/devices", ADDRESS)
    (card / "driver_override").write_text(f"{driver}\n")
    (card / "driver" / "unbind").write_text(ADDRESS)
    pathlib.Path("/sys/bus/pci/drivers_probe").write_text(ADDRESS)


def test_a_card_that_leaves_ends_a_waiting_recv_and_comes_back_under_its_number():
    write(CARD, "bitrate", 500_000)
    write(CARD, "running", 1)
    node = bus(CARD, bitrate=500_000)
    threading.Timer(0.3, lambda: bind("")).start()
    with pytest.raises(can.CanOperationError) as error:
        node.recv(20)
    assert told(error) == f"{CARD}: receive: no such device (it has disappeared)"
    assert node.recv(0.2) is None
    assert node.stats["received"] == node.stats["overrun_events"] == 0
    with pytest.raises(can.CanOperationError, match="it has disappeared"):
        node.send(message(1))
    node.shutdown()
    assert node.stats["lost_socket"] == 0, "counts outlive the file"
    bind("canchar_kvaser_pci")
    deadline = time.monotonic() + 20
    while not pathlib.Path(CARD).exists():
        assert time.monotonic() < deadline, "the bus still has it open"
        time.sleep(0.01)
    bus(CARD).shutdown()


def test_shutting_down_ends_a_waiting_recv_of_another_thread():
    node = bus(NEAR)
    shut_down_under_a_waiting_recv(node)
    for fails in (node.recv, node.fileno, lambda: node.send(message(1))):
        with pytest.raises(can.CanOperationError, match="shut down"):
            fails()


def test_a_device_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(can.CanInitializationError, match=rf"/dev/canchar9: find: no such device \(devices: {NEAR}, ") as error:
        bus("/dev/canchar9")
    assert error.value.error_code == errno.ENODEV
    with pytest.raises(can.CanInitializationError, match="sim:a: open: "):
        bus("sim:a")


AS_NOBODY = f"""
import os, can, canter
os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
try:
    can.Bus(interface="canter", channel="{NEAR}")
except can.CanInitializationError as error:
    print(error.error_code, error)
"""


def test_a_device_that_is_not_permitted_is_told_in_one_line():
    done = subprocess.run([sys.executable, "-c", AS_NOBODY], capture_output=True, text=True, check=False)
    assert done.stdout.startswith(f"{errno.EACCES} {NEAR}: open: permission denied (needs root, or a udev rule"), done
    assert done.stdout.count("\n") == 1, done


def test_devices_are_detected():
    found = can.detect_available_configs("canter")
    assert {"interface": "canter", "channel": NEAR} in found
    assert {"interface": "canter", "channel": "vcan0"} in found
