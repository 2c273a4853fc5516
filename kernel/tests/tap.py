# SPDX-License-Identifier: GPL-2.0-only
"""A test is a function whose docstring is a sentence; this runs some and prints TAP."""
import sys
import traceback


class Skip(Exception):
    """This machine cannot; the reason."""


def run(tests, prepare, clean):
    failed = 0
    print(f"1..{len(tests)}", flush=True)
    for number, test in enumerate(tests, 1):
        sentence = " ".join(test.__doc__.split())
        try:
            prepare()
            note = test()
            print(f"ok {number} - {sentence}" + (f" ({note})" if note else ""), flush=True)
        except Skip as why:
            print(f"ok {number} - {sentence} # SKIP {why}", flush=True)
        except Exception as error:
            failed += 1
            lines = traceback.format_exc().strip().split("\n")
            print(f"not ok {number} - {sentence}\n" + "\n".join("# " + line for line in lines[-8:]), flush=True)
        finally:
            try:
                clean()
            except Exception as error:
                failed += 1
                print(f"not ok - cleaning up after it: {error}", flush=True)
    return failed


def equal(what, got, expected):
    assert got == expected, f"{what}: {got!r} instead of {expected!r}"


def between(what, low, got, high):
    assert low <= got <= high, f"{what}: {got!r} is not between {low!r} and {high!r}"
