"""The python-can back-end ``canter``."""

from __future__ import annotations

import itertools
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import can
from can import BusABC, BusState, CanInitializationError, CanProtocol, Message
from can.broadcastmanager import CyclicSendTaskABC, LimitedDurationCyclicSendTaskABC

from canter import _native

__all__ = ["CanterBus"]

#: The default size of a receive queue in bytes: about 5 000 frames, a fifth of a second of a full bus.
#: The system's default holds 277 frames; a garbage collection takes longer than they arrive.
RECEIVE_BUFFER = 4 << 20

#: The kernel's limit of filters per socket (``CAN_RAW_FILTER_MAX``); more filters are applied here.
KERNEL_FILTERS_MAX = 512

_EFF_FLAG = 0x80000000

_DEVICES = "/dev/canchar"

_STATES = {
    "ERROR-ACTIVE": BusState.ACTIVE,
    "ERROR-WARNING": BusState.ACTIVE,
    "ERROR-PASSIVE": BusState.PASSIVE,
    "BUS-OFF": BusState.ERROR,
}


class CanterBus(BusABC):
    """SocketCAN and canchar devices by batches.

    A device has the same options as an interface. It behaves like a classic interface without a hardware clock: it
    cannot send FD frames, and the kernel takes the stamps.

    :param channel:
        An interface (``"can0"``), a canchar device (``"/dev/canchar0"``), several (``"can0,/dev/canchar0"``), or all
        interfaces (``"any"`` or ``""``), without devices. With several, :attr:`can.Message.channel` is the channel of a
        received message, and selects the channel to send a message.
    :param fd: Receive and send CAN FD frames too.
    :param receive_own_messages: Receive the messages that this bus sends.
    :param local_loopback:
        Let other sockets of this machine, or other files of the device, receive the messages of this bus. Without
        it, this bus does not receive them either. On a device it costs an interrupt per frame sent.
    :param ignore_rx_error_frames: Do not receive error frames.
    :param rcvbuf:
        Size of the receive queue in bytes: 960 or more per frame. The kernel doubles it (:attr:`stats` has the actual
        size). Without CAP_NET_ADMIN its limit is ``net.core.rmem_max``. A device's queue has a slot for every 960
        bytes, rounded up to a power of two: 2 to 4096 (which are 4 MiB).
    :param can_hardware_timestamps: Stamp messages with the controller's clock, if it has one.
    :param bitrate:
        The expected bit rate in bit/s: an interface that runs at another rate is refused. ``ip link`` or
        ``/sys/class/canchar`` sets the rate, which needs rights that a receiver does not need. Interfaces without a
        bit rate, such as vcan, accept any value.
    :param data_bitrate: The same for the data phase of CAN FD.
    :param can_filters: See :meth:`can.BusABC.set_filters`; up to 512 are applied by the kernel.

    :raises ~can.exceptions.CanInitializationError:
        When a channel cannot be opened or has another bit rate, with the reason in one line.
    """

    def __init__(
        self,
        channel: str = "",
        receive_own_messages: bool = False,
        local_loopback: bool = True,
        fd: bool = False,
        can_filters: can.typechecking.CanFilters | None = None,
        ignore_rx_error_frames: bool = False,
        rcvbuf: int = RECEIVE_BUFFER,
        can_hardware_timestamps: bool = False,
        bitrate: int | None = None,
        data_bitrate: int | None = None,
        **kwargs: Any,
    ) -> None:
        self._is_shutdown = True  # while it is not open: nothing must be shut down
        names = [""] if channel in ("", "any", None) else [name.strip() for name in str(channel).split(",")]
        # The kernel's broadcast manager reaches interfaces only.
        self._without_bcm = len(names) == 1 and names[0].startswith(_DEVICES)
        self.channel = channel
        self.channel_info = f"canter channel '{channel}'"
        self._can_protocol = CanProtocol.CAN_FD if fd else CanProtocol.CAN_20
        self._error_frames = not ignore_rx_error_frames
        self._filtered_here = False
        self._bcm_sockets: dict[str, Any] = {}
        self._task_ids = itertools.count(1)
        self._task_guard = threading.Lock()
        self._native = _native.Bus(
            names,
            own_frames=bool(receive_own_messages),  # python-can's own back-end takes 0 and 1, too
            echo=bool(local_loopback),
            fd=bool(fd),
            error_frames=self._error_frames,
            queue_bytes=rcvbuf,
            hardware_stamps=bool(can_hardware_timestamps),
        )
        for name, *has in self._native.bit_rates():
            _refuse_other_rate(name, "bitrate", bitrate, has[0])
            _refuse_other_rate(name, "dbitrate", data_bitrate, has[1])
        self._is_shutdown = False
        super().__init__(channel=channel, can_filters=can_filters, **kwargs)

    # Receiving

    def recv(self, timeout: float | None = None) -> Message | None:
        """The next message, or None after ``timeout`` seconds (None: wait forever).

        :raises ~can.exceptions.CanOperationError:
            When an interface goes down or away, once: later calls wait until it is up again.
        """
        if not self._filtered_here:
            return self._native.recv(timeout)
        return super().recv(timeout)

    def _recv_internal(self, timeout: float | None) -> tuple[Message | None, bool]:
        return self._native.recv(timeout), not self._filtered_here

    def recv_many(self, max: int = 256, timeout: float | None = None) -> list[Message]:
        """Up to ``max`` messages: those waiting, or the first to arrive within ``timeout`` seconds; else an empty list.

        The cheapest way to receive: ``for message in bus.recv_many(): …``.
        """
        messages = self._native.recv_many(max, timeout)
        if self._filtered_here:
            messages = [message for message in messages if self._matches_filters(message)]
        return messages

    def __iter__(self) -> Iterator[Message]:
        """All messages, without end. One after the other, so that none is lost when the loop ends early."""
        while True:
            message = self.recv(timeout=1.0)
            if message is not None:
                yield message

    def fileno(self) -> int:
        """A descriptor for select, poll and asyncio: readable while :meth:`recv` would not wait."""
        return self._native.fileno()

    def _apply_filters(self, filters: can.typechecking.CanFilters | None) -> None:
        pairs = []
        for wanted in filters or []:
            identifier, mask = wanted["can_id"], wanted["can_mask"]
            if "extended" in wanted:
                mask |= _EFF_FLAG
                identifier |= _EFF_FLAG if wanted["extended"] else 0
            pairs.append((identifier, mask))
        self._filtered_here = len(pairs) > KERNEL_FILTERS_MAX
        self._native.set_filters([] if self._filtered_here else pairs, self._error_frames)

    # Sending

    def send(self, msg: Message, timeout: float | None = None) -> None:
        """Sends a message; when the interface's queue is full, tries again for ``timeout`` seconds.

        :raises ~can.exceptions.CanOperationError: When the queue stays full, or the interface or device is down or gone.
        :raises ValueError: When the message is no CAN frame.
        """
        self._native.send(msg, timeout or 0.0)

    def send_many(self, messages: Sequence[Message], timeout: float | None = None) -> None:
        """Sends messages in order; ``timeout`` is for each."""
        for message in messages:
            self._native.send(message, timeout or 0.0)

    def _send_periodic_internal(
        self,
        msgs: Sequence[Message] | Message,
        period: float,
        duration: float | None = None,
        autostart: bool = True,
        modifier_callback: Callable[[Message], None] | None = None,
    ) -> CyclicSendTaskABC:
        if modifier_callback is not None:
            warnings.warn("a modifier_callback needs a thread: less exact than the kernel's timer", stacklevel=3)
            return BusABC._send_periodic_internal(self, msgs, period, duration, autostart, modifier_callback)
        messages = LimitedDurationCyclicSendTaskABC._check_and_convert_messages(msgs)
        channel = str(messages[0].channel or self.channel)
        if self._without_bcm or channel.startswith(_DEVICES):
            return BusABC._send_periodic_internal(self, msgs, period, duration, autostart)
        # The kernel's broadcast manager, through python-can's code for it.
        from can.interfaces.socketcan.socketcan import CyclicSendTask, create_bcm_socket

        with self._task_guard:
            if channel not in self._bcm_sockets:
                self._bcm_sockets[channel] = create_bcm_socket(channel)
            task_id = next(self._task_ids)
        return CyclicSendTask(
            self._bcm_sockets[channel], task_id, messages, period, duration, autostart=autostart
        )

    # Counters and state

    @property
    def stats(self) -> dict[str, int]:
        """Counts of received and lost frames since the bus was opened, by place.

        ``received``, ``sent``, ``queued`` (received, not handed out yet), ``lost_socket`` (the receive queue was full;
        exact), ``lost_driver``, ``overrun_events`` (the controller's FIFO was full; each at least one frame) and
        ``receive_buffer`` (bytes of the smallest; on a device 24 a frame).
        """
        return self._native.stats()

    @property
    def state(self) -> BusState:
        """The controller's state; ACTIVE for virtual interfaces."""
        return _STATES.get(self._native.state() or "", BusState.ACTIVE)

    @state.setter
    def state(self, new_state: BusState) -> None:
        raise NotImplementedError("the state is set by ip link set … type can …, or in /sys/class/canchar")

    def shutdown(self) -> None:
        """Ends all periodic tasks and all waiting, and closes all channels. It may be called twice.

        A device is closed when all frames have been sent, or after a second. In a process that was forked it ends
        nothing: the channels and the tasks are those of the process that opened the bus.
        """
        if self._native.is_forked():
            self._is_shutdown = True
            return
        super().shutdown()
        self._native.close()
        for bcm_socket in self._bcm_sockets.values():
            bcm_socket.close()
        self._bcm_sockets.clear()

    @staticmethod
    def _detect_available_configs() -> list[can.typechecking.AutoDetectedConfig]:
        return [{"interface": "canter", "channel": name} for name in _native.interfaces()]


def _refuse_other_rate(name: str, option: str, wanted: Any, has: int | None) -> None:
    if wanted is None or has is None:
        return
    try:
        rate = int(wanted)
    except (TypeError, ValueError):
        rate = 0
    if rate <= 0:
        raise CanInitializationError(f"{name}: {option} {wanted!r}: not a number of bit/s (it has {has})")
    if rate != has:
        raise CanInitializationError(f"{name}: {option} {rate}: it has {has} ({_set_rate(name, option, rate)})")


def _set_rate(name: str, option: str, rate: int) -> str:
    if name.startswith(_DEVICES):
        attributes = f"/sys/class/canchar/{name.removeprefix('/dev/')}"
        return f"echo 0 > {attributes}/running; echo {rate} > {attributes}/bitrate; echo 1 > {attributes}/running"
    return f"ip link set {name} down; ip link set {name} up type can {option} {rate}"
