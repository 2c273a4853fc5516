"""Prints what cantools decodes from random payloads of every message of DBC files, a line of JSON each:
    cantools_values.py SEED FILE...
Where signals overlap, cantools' unpacking goes wrong; then the values are those of its conversion on the signal's own bits."""

import json
import random
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


def decoded(message, data):
    values = message.decode(data, decode_choices=False)
    texts = {name: str(text) for name, text in message.decode(data).items() if not isinstance(text, (int, float))}
    for signal in message.signals:
        if signal.name in values and not signal.conversion.is_float:
            number = raw(signal, data)
            values[signal.name] = signal.conversion.raw_to_scaled(number, False)
            text = (signal.choices or {}).get(number)
            texts.pop(signal.name, None)
            if text is not None:
                texts[signal.name] = str(text)
    return {name: repr(value) for name, value in values.items()}, texts


def load(path):
    """The database; the encoding is what the bytes are, where cantools always takes Windows-1252."""
    with open(path, "rb") as file:
        content = file.read()
    try:
        content.decode("utf-8")
        encoding = "utf-8"
    except UnicodeDecodeError:
        encoding = "cp1252"
    try:
        return cantools.database.load_file(path, encoding=encoding), True
    except Exception:
        return cantools.database.load_file(path, encoding=encoding, strict=False), False


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
            for payload in range(PAYLOADS):
                bytes_ = (chance.choice((0, 255, chance.randrange(256))) if payload else 0 for _ in range(message.length))
                data = bytes(bytes_)
                line = {"message": message.name, "number": number, "data": data.hex()}
                try:
                    line["values"], line["texts"] = decoded(message, data)
                except Exception as error:
                    line["error"] = str(error)
                print(json.dumps(line))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
