"""Writes the data frames of a candump log as loggers write MDF4, by asammdf: payloads of variable length, apart from
the records. None of them may be empty or end in a zero byte. write_mdf.py LOG FILE
"""
import sys
from datetime import datetime, timezone

import can
import numpy as np
from asammdf import MDF, Signal

frames = [m for m in can.LogReader(sys.argv[1])]
start = int(frames[0].timestamp)
times = np.array([m.timestamp - start for m in frames])
members = {
    "BusChannel": np.array([int(m.channel.removeprefix("can")) + 1 for m in frames], "<u1"),
    "ID": np.array([m.arbitration_id for m in frames], "<u4"),
    "IDE": np.array([m.is_extended_id for m in frames], "<u1"),
    "DLC": np.array([can.util.len2dlc(m.dlc) for m in frames], "<u1"),
    "DataLength": np.array([m.dlc for m in frames], "<u1"),
    "Dir": np.array([not m.is_rx for m in frames], "<u1"),
    "EDL": np.array([m.is_fd for m in frames], "<u1"),
    "BRS": np.array([m.bitrate_switch for m in frames], "<u1"),
    "ESI": np.array([m.error_state_indicator for m in frames], "<u1"),
    "DataBytes": np.array([bytes(m.data) for m in frames], "S"),
}
with MDF(version="4.11") as mdf:
    mdf.header.start_time = datetime.fromtimestamp(start, timezone.utc)
    channels = members.items()
    mdf.append([Signal(values, times, name=f"CAN_DataFrame.{name}", encoding="latin-1") for name, values in channels])
    mdf.save(sys.argv[2], compression=1, overwrite=True)
