"""canter for Python: the fast SocketCAN back-end of python-can, and recordings as pyarrow tables.

    import can
    with can.Bus(interface="canter", channel="can0") as bus:
        for message in bus:
            print(message)

It receives many frames per system call and keeps the interpreter out of it; what comes out are real ``can.Message``
objects. See :class:`canter.bus.CanterBus` for channels, options and the counters of losses, and :mod:`canter.tables` for
``canter.read(path)`` and ``canter.decode(path, dbc)``.
"""

import can

from canter import requirements

if reason := requirements.problem(can.__version__, can.Message):
    raise ImportError(reason)

from canter.bus import CanterBus  # noqa: E402  (after the check)
from canter.tables import RecordingWarning, decode, read  # noqa: E402

__all__ = ["CanterBus", "RecordingWarning", "decode", "read"]
