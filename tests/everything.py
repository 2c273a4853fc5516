#!/usr/bin/env python3
"""Runs the lines of `make test-all`, one after the other, and does not repeat what has passed.

    tests/everything.py STATE ALLOWED LINE...

A line is a target of the Makefile. One that passed is remembered in the folder STATE with the commit that it passed on, so
that an interrupted run goes on where it was; with files that differ from the commit nothing is remembered. Each line's
output stays in STATE/LINE.log. A line that fails does not stop the others. At the end one row per line says whether it
passed, how long it took and what its tests counted. The exit code is 1 when a line failed, or skipped a test that the file
ALLOWED does not list.
"""
import json
import pathlib
import sys

from tally import Clock, minutes, not_allowed, patterns, revision, run


def remembered(state, line, commit):
    """What a line printed as its row when it passed on this commit, or nothing."""
    try:
        passed = json.loads((state / f"{line}.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return passed["row"] if commit and not commit.endswith("+") and passed["commit"] == commit else None


def remember(state, line, commit, row):
    if commit and not commit.endswith("+"):
        (state / f"{line}.json").write_text(json.dumps({"commit": commit, "row": row}))


def check(state, line, allowed, make):
    """Runs a line: whether it passed, and its row."""
    clock = Clock()
    with open(state / f"{line}.log", "wb") as log:
        code, tally = run([*make, line], log)
    unknown = not_allowed(tally.skips, allowed)
    for skip in unknown:
        print(f"skipped and not allowed: {skip}")
    counts = f"{tally.passed} passed, {tally.failed} failed, {len(tally.skips)} skipped"
    verdict = "passed" if code == 0 and not unknown else "FAILED"
    row = f"{verdict}  {line:18} {minutes(clock.read()[0]):>13}  {counts}"
    return code == 0 and not unknown, row


def main(state, allowed, lines, make=("make", "--no-print-directory")):
    state = pathlib.Path(state)
    state.mkdir(parents=True, exist_ok=True)
    allowed, commit, rows, failed = patterns(allowed), revision(), [], 0
    if not commit or commit.endswith("+"):
        print("test-all: files differ from the commit: no line is remembered", flush=True)
    for number, line in enumerate(lines, 1):
        row = remembered(state, line, commit)
        if row is None:
            print(f"test-all: {number} of {len(lines)}: make {line}", flush=True)
            try:
                passed, row = check(state, line, allowed, make)
            except KeyboardInterrupt:
                rows += [f"not run {one}" for one in lines[number - 1 :]]
                failed += 1
                break
            failed += not passed
            if passed and revision() == commit:
                remember(state, line, commit, row)
        else:
            row += ", before"
        rows.append(row)
    print("\n".join([f"test-all at {commit or 'no commit'}:", *rows]), flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
