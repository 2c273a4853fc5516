# SPDX-License-Identifier: GPL-2.0-only
"""How long a CAN frame is, bit by bit, after ISO 11898-1: every bit of it as (value, whether in the data phase).

Written without a look at canwire/bits.c and without a thought for speed.
"""
EFF, RTR = 1 << 31, 1 << 30
BRS, ESI, FDF = 1, 2, 4
DLC_OF = {**{n: n for n in range(9)}, 12: 9, 16: 10, 20: 11, 24: 12, 32: 13, 48: 14, 64: 15}


def number(value, width):
    return [value >> shift & 1 for shift in range(width - 1, -1, -1)]


def remainder(bits, polynomial, width, start):
    register = start
    for bit in bits:
        top = register >> (width - 1) & 1
        register = register << 1 & (1 << width) - 1
        if top != bit:
            register ^= polynomial
    return number(register, width)


def stuffed(bits, also_after_last):
    """Pairs in, pairs out: after five equal bits one of the other value, in the phase of the bit after it."""
    out, run = [], 0
    for place, (bit, fast) in enumerate(bits):
        run = run + 1 if out and out[-1][0] == bit else 1
        out.append((bit, fast))
        last = place == len(bits) - 1
        if run == 5 and not (last and not also_after_last):
            out.append((1 - bit, fast if last else bits[place + 1][1]))
            run = 1
    return out


def identifier(can_id, rtr):
    """From SOF to the end of the arbitration field; a standard frame's IDE belongs to what follows."""
    if can_id & EFF:
        value = can_id & 0x1fffffff
        return [0] + number(value >> 18, 11) + [1, 1] + number(value & 0x3ffff, 18) + [rtr]
    return [0] + number(can_id & 0x7ff, 11) + [rtr]


def classic(can_id, length, data, dlc=None):
    rtr = can_id >> 30 & 1
    bits = identifier(can_id, rtr) + ([0, 0] if can_id & EFF else [0, 0])  # r1, r0 or IDE, r0
    bits += number(length if dlc is None else dlc, 4)
    if not rtr:
        for byte in data[:length]:
            bits += number(byte, 8)
    bits += remainder(bits, 0x4599, 15, 0)
    wire = stuffed([(bit, False) for bit in bits], True)
    return len(wire) + 1 + 1 + 1 + 7, 0  # CRC delimiter, ACK, its delimiter, EOF


def fd(can_id, length, data, flags):
    fast = bool(flags & BRS)
    head = identifier(can_id, 0) + ([] if can_id & EFF else [0])  # RRS is in it; IDE
    head += [1, 0, int(fast)]  # FDF, res, BRS
    bits = [(bit, False) for bit in head]
    bits += [(bit, fast) for bit in [flags >> 1 & 1] + number(DLC_OF[length], 4)]
    for byte in data[:length]:
        bits += [(bit, fast) for bit in number(byte, 8)]
    wire = stuffed(bits, False)

    count = len(wire) - len(bits)
    gray = count % 8 ^ count % 8 >> 1
    stuff_count = number(gray, 3)
    stuff_count.append(sum(stuff_count) % 2)
    width, polynomial = (17, 0x1685b) if length <= 16 else (21, 0x102899)
    protected = [bit for bit, _ in wire] + stuff_count
    tail = stuff_count + remainder(protected, polynomial, width, 1 << width - 1)
    for place, bit in enumerate(tail):
        if place % 4 == 0:
            wire.append((1 - wire[-1][0], fast))  # a fixed stuff bit in front, and after every four
        wire.append((bit, fast))
    # BRS turns fast and the CRC delimiter slow at their sample points: of the two together one bit is fast.
    wire += [(1, fast)] + [(0, False)] + [(1, False)] * 8
    quick = sum(1 for _, is_fast in wire if is_fast)
    return len(wire) - quick, quick


def length_of(can_id, length, data, flags, dlc=None):
    """(nominal bits, data bits) from the first bit of SOF to the last of EOF."""
    return fd(can_id, length, data, flags) if flags & FDF else classic(can_id, length, data, dlc)


def arbitration(can_id, flags):
    """The bits that contend: to RTR in an extended frame, to IDE in a standard one."""
    rtr = 0 if flags & FDF else can_id >> 30 & 1
    return identifier(can_id, rtr) + ([] if can_id & EFF else [0])


def winner(frames):
    """Of (id, flags): the place of the one that a wired AND leaves over, bit by bit."""
    left = dict(enumerate(arbitration(can_id, flags) for can_id, flags in frames))
    for place in range(33):
        bits = {index: bits[place] for index, bits in left.items() if place < len(bits)}
        if bits and min(bits.values()) == 0:
            left = {index: left[index] for index in left if bits.get(index) == 0}
        if len(left) == 1:
            break
    return next(iter(left))
