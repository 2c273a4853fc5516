"""Prints what cantools decodes from random payloads of every message of DBC files, a line of JSON each:
    cantools_values.py SEED FILE...
Each selector of a multiplexed message has every value that selects a signal. cantools does not unpack messages whose signals
share bits or end behind them; of their databases, the values are those of its conversion on the signal's own bits."""

import json
import random
import re
import struct
import sys
import warnings

import cantools

PAYLOADS = 8


def raw(signal, data):
    """The raw integer of a signal, from the bits that the format describes."""
    if signal.byte_order == "little_endian":
        number = int.from_bytes(data, "little") >> signal.start
    else:
        first = signal.start // 8 * 8 + 7 - signal.start % 8
        number = int.from_bytes(data, "big") >> 8 * len(data) - first - signal.length
    number &= (1 << signal.length) - 1
    return number - (1 << signal.length) if signal.is_signed and number >> signal.length - 1 else number


def bits(signal):
    """The places of the signal's bits, the lowest first, in an integer of little-endian bytes."""
    if signal.byte_order == "little_endian":
        return [signal.start + n for n in range(signal.length)]
    first = signal.start // 8 * 8 + 7 - signal.start % 8
    order = [n // 8 * 8 + 7 - n % 8 for n in range(first, first + signal.length)]
    return order[::-1]


def selecting(message, signal, data):
    """The payload with the values of the selectors that select the signal."""
    number, by_name = int.from_bytes(data, "little"), {one.name: one for one in message.signals}
    while signal.multiplexer_ids:
        selected, signal = signal.multiplexer_ids[0], by_name[signal.multiplexer_signal]
        for n, place in enumerate(bits(signal)):
            number = number & ~(1 << place) | (selected >> n & 1) << place
    return number.to_bytes(len(data), "little")


def selected(signal, by_name, data):
    while signal.multiplexer_ids:
        selector = by_name[signal.multiplexer_signal]
        if raw(selector, data) not in signal.multiplexer_ids:
            return False
        signal = selector
    return True


def number(signal, data):
    """The raw number of a signal: the integer, or the float that its bits are."""
    integer = raw(signal, data)
    if not signal.conversion.is_float:
        return integer
    code, unsigned = {32: ("<f", "<I"), 64: ("<d", "<Q")}[signal.length]
    return struct.unpack(code, struct.pack(unsigned, integer % (1 << signal.length)))[0]


def decoded(message, data, is_strict):
    if is_strict:
        values = message.decode(data, decode_choices=False)
        texts = {name: str(text) for name, text in message.decode(data).items() if not isinstance(text, (int, float))}
    else:
        by_name = {signal.name: signal for signal in message.signals}
        values, texts = {}, {}
        for signal in message.signals:
            if max(bits(signal)) < 8 * len(data) and selected(signal, by_name, data):
                value = number(signal, data)
                values[signal.name] = signal.conversion.raw_to_scaled(value, False)
                if not signal.conversion.is_float and value in (signal.choices or {}):
                    texts[signal.name] = str(signal.choices[value])
    return {name: repr(value) for name, value in values.items()}, texts


# What comes before the number of a message.
BEFORE_NUMBER = re.compile(r'^(BO_ |BO_TX_BU_ |SIG_GROUP_ |VAL_ |SG_MUL_VAL_ |SIG_VALTYPE_ |CM_ [BS][OG]_ |BA_ "\w+" [BS][OG]_ )(\d+)', re.M)


# What comes before a name that begins with a digit, which cantools refuses.
BEFORE_DIGIT = "BEFORE_DIGIT_"


def mended(text, error):
    """The text without what cantools refuses and canter reads: identifiers without a mark, entries of unknown signals, comments
    without a name, texts without their semicolon, names that begin with a digit, a factor that begins with a point, and messages
    whose number is no identifier."""
    def marked(match):
        number = int(match[2])
        return match[1] + str(number | 1 << 31 if 0x800 <= number < 1 << 29 else number)

    for kind, message, signal in re.findall(r"(SIG_VALTYPE_|VAL_) (\d+) (\w+)", error):
        text = re.sub(rf"^{kind} +{message} +{signal}\b[^;]*;", "", text, flags=re.M)
    for number in set(re.findall(r"^BO_ (\d+)", text, re.M)):
        if 1 << 29 <= int(number) < 1 << 31 or int(number) & 0x7FFFFFFF >= 1 << 29:
            text = re.sub(rf"^BO_ {number} .*\n(?:[ \t]+SG_.*\n)*", "", text, flags=re.M)
    text = re.sub(r'^CM_ (SG_ \d+|\d+) +"[^"]*";', "", text, flags=re.M).replace("(.", "(0.")
    text = re.sub(r'"[ \t]*\n(?=(?:BO_|CM_|VAL_|BA_) |\s*$(?!\n))', '";\n', text + "\n")
    text = re.sub(r"^([ \t]*SG_ |BO_ \d+ |VAL_ \d+ |CM_ SG_ \d+ )(?=\d+[A-Za-z_])", r"\1" + BEFORE_DIGIT, text, flags=re.M)
    return BEFORE_NUMBER.sub(marked, text)


def read(text):
    """The database; and whether cantools checks that signals lie within their message and share no bits."""
    try:
        return cantools.database.load_string(text, "dbc"), True
    except Exception:
        return cantools.database.load_string(text, "dbc", strict=False), False


def load(path):
    """The database; the encoding is what the bytes are, where cantools always takes Windows-1252."""
    with open(path, "rb") as file:
        content = file.read()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("cp1252")
    for _ in range(3):
        try:
            return read(text)
        except Exception as error:
            text = mended(text, str(error))
    return read(text)


def main(seed, paths):
    warnings.simplefilter("ignore")
    for path in paths:
        chance = random.Random(seed)
        try:
            database, strict = load(path)
        except Exception as error:
            print(json.dumps({"file": path, "error": str(error)}))
            continue
        print(json.dumps({"file": path, "strict": strict, "messages": len(database.messages)}))
        for message in database.messages:
            number = message.frame_id | message.is_extended_frame << 31
            payloads = []
            for payload in range(PAYLOADS):
                bytes_ = (chance.choice((0, 255, chance.randrange(256))) if payload else 0 for _ in range(message.length))
                payloads.append(bytes(bytes_))
            for signal in message.signals:
                if signal.multiplexer_ids:
                    payloads.append(selecting(message, signal, chance.randbytes(message.length)))
            for data in payloads:
                line = {"message": message.name, "number": number, "data": data.hex()}
                try:
                    line["values"], line["texts"] = decoded(message, data, strict)
                except Exception as error:
                    line["error"] = str(error)
                print(json.dumps(line).replace(BEFORE_DIGIT, ""))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
