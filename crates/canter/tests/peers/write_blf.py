"""Writes the frames of a candump log by vblf as the objects that Vector's newer tools write, CAN_MESSAGE2 and
CAN_FD_MESSAGE_64, every other one with its extra part: write_blf.py LOG FILE."""
import sys

import can
from vblf.can import CanFdMessage64, CanMessage2
from vblf.constants import CanFdFlags, Compression, ObjFlags, ObjType
from vblf.general import ObjectHeader
from vblf.writer import BlfWriter

FIXED, EXTRA = CanFdMessage64._FORMAT.size, CanFdMessage64._FORMAT_EXT.size
DLC = [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 32, 48, 64]


def fd_object(m, at, ns, channel, ident):
    flags = CanFdFlags.FDF | (CanFdFlags.BRS if m.bitrate_switch else 0)
    flags |= CanFdFlags.ESI if m.error_state_indicator else 0
    end = ObjectHeader.SIZE + FIXED + len(m.data)
    extra = end if at % 2 else 0
    header = ObjectHeader.new(end + (EXTRA if extra else 0), ObjType.CAN_FD_MESSAGE_64, ObjFlags.TIME_ONE_NANS, 0, ns)
    return CanFdMessage64(header, channel, DLC.index(len(m.data)), len(m.data), 0, ident, 0, flags, 0, 0, 0, 0, 0,
                          int(not m.is_rx), extra, 0, bytes(m.data), 0xFFFFFFFF, 0xFFFFFFFF)


def classic_object(m, ns, channel, ident):
    flags = (0 if m.is_rx else 1) | (0x80 if m.is_remote_frame else 0)
    data = b"" if m.is_remote_frame else bytes(m.data)
    return CanMessage2.new(ObjFlags.TIME_ONE_NANS, ns, channel, flags, m.dlc, ident, data.ljust(8, b"\0"), 0, 0)


first = None
with BlfWriter(sys.argv[2], Compression.DEFAULT) as writer:
    for at, m in enumerate(can.LogReader(sys.argv[1])):
        us = round(m.timestamp * 1e6)
        first = us if first is None else first
        channel, ns = int(str(m.channel).removeprefix("can")) + 1, (us - first) * 1000
        ident = m.arbitration_id | (1 << 31 if m.is_extended_id else 0)
        writer.write(fd_object(m, at, ns, channel, ident) if m.is_fd else classic_object(m, ns, channel, ident))
