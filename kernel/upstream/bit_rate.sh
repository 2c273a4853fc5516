#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# bit_rate.sh INTERFACE: sets a bit rate of 2^31 on a CAN controller, which must be refused (docs/upstream.md). Exit code
# 0: it was. On a kernel with the mistake ip(8) dies, and the lock of all network settings stays taken.
ip link set "$1" down type can bitrate 2147483648
[ $? = 2 ]
