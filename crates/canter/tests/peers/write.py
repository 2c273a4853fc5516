"""Writes the frames of a candump log by python-can: write.py LOG FILE."""
import sys

import can

channels = {}
with can.Logger(sys.argv[2]) as logger:
    for message in can.LogReader(sys.argv[1]):
        if isinstance(message.channel, str):
            message.channel = int(message.channel.removeprefix("can"))
        logger(message)
